"""What makes two entries one table, and what the digest follows."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tablectl.policies.declared_tables import Specs

Read = Callable[..., Specs]
Wrong = Callable[..., list[str]]

HEAD = "version: 1\ntables:\n"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("lake.a.b", "LAKE.`A`.b"),
        ("a.b", "spark_catalog.a.b"),
        ("delta.`/x/y`", "DELTA.`file:///x//y/`"),
        ("delta.`s3://l/x`", "delta.`s3a://l/x`"),
    ],
)
def test_one_table_declared_twice(wrong: Wrong, one: str, other: str) -> None:
    (said,) = wrong(f"{HEAD}  {one}:\n", f"{HEAD}  {other}:\n")
    assert said.startswith("policies.yaml:3:3: the table")
    assert said.endswith("is declared twice: first at more.yaml:3:3\n  hint: make one entry of the two")


def test_three_times_names_the_first_each_time(wrong: Wrong) -> None:
    assert [said.split(" first ")[1][:21] for said in wrong(f"{HEAD}  a.b:\n  A.b:\n  a.B:\n")] == [
        "at policies.yaml:3:3\n",
        "at policies.yaml:3:3\n",
    ]


def test_two_names_for_one_place(wrong: Wrong) -> None:
    text = f"{HEAD}  a.b: {{location: s3a://lake//x/}}\n  delta.`s3://lake/x`:\n  a.c:\n    location: s3n://lake/x\n"
    assert wrong(text) == [
        (
            'policies.yaml:4:3: "delta.`s3://lake/x`" lies where "a.b" does, declared at policies.yaml:3:3\n'
            "  hint: declare each table under one name"
        ),
        (
            'policies.yaml:6:5: "a.c" lies where "a.b" does, declared at policies.yaml:3:3\n'
            "  hint: declare each table under one name"
        ),
    ]


BASE = HEAD + "  a.b: {isolation: default, properties: {x: '1', y: null}}\n  a.c: {clustering: [p, q]}\n"


@pytest.mark.parametrize(
    "text",
    [
        (
            "# a comment\n---\ntables: {a.c: {clustering: [p,q]},\n"
            "  A.b: {properties: {y: ~, x: 1}, isolation: 'default'}}\nversion: 1\n"
        ),
        (
            "version: 1\ndefaults: {isolation: default}\ntables:\n  a.b: {properties: {x: '1', y: }}\n"
            "  a.c: {clustering: ['`p`', q], unmanaged: [isolation]}\n"
        ),
    ],
)
def test_the_digest_does_not_follow_the_writing(read: Read, text: str) -> None:
    assert read(text).digest == read(BASE).digest
    assert len(read(BASE).digest) == 64


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("default", "Serializable"),
        ("y: null", "y: 'null'"),
        ("y: null", "z: null"),
        ("[p, q]", "[q, p]"),
        ("a.c", "a.d"),
        ("isolation: default,", ""),
        ("a.c: {", "a.c: {tags: [t], "),
        ("a.c: {", "a.c: {location: /l, "),
    ],
)
def test_the_digest_follows_what_holds(read: Read, old: str, new: str) -> None:
    assert read(BASE.replace(old, new)).digest != read(BASE).digest


def test_the_digest_does_not_follow_the_layout_of_files(read: Read) -> None:
    one, other = f"{HEAD}  a.c: {{clustering: [p, q]}}\n", BASE[: BASE.index("  a.c")]
    assert read(one, other).digest == read(BASE).digest


def test_tables_come_in_one_order(read: Read) -> None:
    names = [spec.name.text for spec in read(f"{HEAD}  b.a:\n  A.z:\n  a.b:\n  delta.`/x`:\n").tables]
    assert names == ["delta.`/x`", "a.b", "A.z", "b.a"]
