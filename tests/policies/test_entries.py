"""The keys of ``defaults`` and of a table's entry."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tablectl.policies.declared_tables import Specs

Read = Callable[..., Specs]
Wrong = Callable[..., list[str]]


def test_location_and_tags(read: Read) -> None:
    text = "version: 1\ntables:\n  a.b:\n    location: ${ROOT}/a/b/\n    tags: [streaming, 'team/${T}', 42]\n"
    (spec,) = read(text, variables={"ROOT": "s3://lake", "T": "x-1"}).tables
    assert (spec.location, spec.tags) == ("s3://lake/a/b", ("streaming", "team/x-1", "42"))
    assert str(spec.sources["location"]) == "policies.yaml:4:5"


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ("clusterin: [a]", '3:9: unknown key "clusterin"\n  hint: did you mean `clustering`?'),
        ("tag: [a]", '3:9: unknown key "tag"\n  hint: did you mean `tags`?'),
        (
            "delta.appendOnly: true",
            ('3:9: "delta.appendOnly" is not allowed here\n  hint: table properties go under `properties:`'),
        ),
        (
            "delta.isolationLevel: x",
            '3:9: "delta.isolationLevel" is not allowed here\n  hint: declare `isolation:` instead',
        ),
        ("location: lake/x", "3:19: the path 'lake/x' is relative: write it from the root, or as a URI"),
        ("location: null", "3:19: `location` has no value\n  hint: for example `location: s3://lake/sales/orders`"),
        (
            "location: [/x]",
            ("3:19: `location` takes text, not a list\n  hint: for example `location: s3://lake/sales/orders`"),
        ),
        ("tags: streaming", '3:15: `tags` takes a list, not "streaming"\n  hint: for example `tags: [streaming]`'),
        ("tags: [a b]", '3:16: "a b" is not a tag\n  hint: a tag is made of letters, digits, _ . / and -'),
        ("tags: [a, a]", '3:19: the tag "a" occurs twice\n  hint: keep one of them'),
        ("tags: [null]", "3:16: `tags.1` has no value\n  hint: for example `tags: [streaming]`"),
        (
            "properties: [a]",
            (
                "3:21: `properties` takes a map of keys to texts, not a list\n"
                "  hint: for example `properties: {owner.team: payments}`"
            ),
        ),
        (
            "unmanaged: isolation",
            '3:20: `unmanaged` takes a list, not "isolation"\n  hint: for example `unmanaged: [isolation]`',
        ),
        (
            "unmanaged: [isolatio]",
            ('3:21: "isolatio" is neither an attribute nor an inherited property\n  hint: did you mean `isolation`?'),
        ),
        (
            "unmanaged: [delta.appendOnl]",
            ('3:21: "delta.appendOnl" is not known to Delta\n  hint: did you mean `delta.appendOnly`?'),
        ),
        (
            "unmanaged: [delta.isolationLevel]",
            ('3:21: "delta.isolationLevel" has an attribute of its own\n  hint: write isolation'),
        ),
        (
            "unmanaged: [isolation], isolation: default",
            (
                '3:21: "isolation" is declared by this table and cannot be '
                "unmanaged as well\n  hint: remove it from `unmanaged`, or remove its declaration"
            ),
        ),
        (
            "unmanaged: [DELTA.appendonly], properties: {delta.appendOnly: true}",
            (
                '3:21: "DELTA.appendonly" is declared by this table and cannot be unmanaged as well\n'
                "  hint: remove it from `unmanaged`, or remove its declaration"
            ),
        ),
    ],
)
def test_what_is_refused(table_wrong: Wrong, entry: str, problem: str) -> None:
    assert table_wrong(entry) == [f"policies.yaml:{problem}"]


OF_PATTERNS = "it belongs to a pattern, and says how many tables it matches"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("defaults: {location: /x}", '2:12: "location" is not allowed here\n  hint: a location belongs to one table'),
        *(
            (
                f"{place}: {{{key}: {value}}}{'}' * ends}",
                f'{at}: "{key}" is not allowed here\n  hint: {OF_PATTERNS}',
            )
            for key, value in (("may_be_empty", "true"), ("min_tables", "2"))
            for place, at, ends in (
                ("defaults", "2:12", 0),
                ("profiles: {gold", "2:19", 1),
                ("tables: {a.b", "2:16", 1),
            )
        ),
        ("tables: {a.*: {min_tables: 0}}", '2:28: `min_tables` needs at least 1, not "0"'),
        (
            "defaults: {unmanaged: [isolation]}",
            ('2:12: "unmanaged" is not allowed here\n  hint: defaults inherit nothing: leave out what is not managed'),
        ),
        (
            "defaults:",
            (
                "2:10: `defaults` takes a map of attributes, not nothing\n"
                "  hint: for example `defaults: {isolation: Serializable}`"
            ),
        ),
        (
            "tables: {a.b: [x]}",
            ("2:15: a table takes a map of attributes, not a list\n  hint: for example `isolation: Serializable`"),
        ),
    ],
)
def test_what_is_refused_elsewhere(wrong: Wrong, text: str, problem: str) -> None:
    assert wrong(f"version: 1\n{text}") == [f"policies.yaml:{problem}"]


@pytest.mark.parametrize("entry", ["", "{}", "null", "~"])
def test_an_empty_entry_takes_the_defaults(read: Read, entry: str) -> None:
    (spec,) = read(f"version: 1\ndefaults: {{isolation: default, tags: [x]}}\ntables:\n  a.b: {entry}\n").tables
    assert (spec.policy.isolation, spec.tags) == ("default", ("x",))
    assert str(spec.sources["isolation"]) == "policies.yaml:2:12"


def test_a_wrong_default_is_reported_once_however_many_inherit_it(wrong: Wrong) -> None:
    defaults = "version: 1\ndefaults: {properties: {a: no}, isolation: x}\n"
    assert len(wrong(f"{defaults}tables:\n  a.b: {{unmanaged: [a, isolation]}}\n  a.c:\n")) == 2
