"""What is written into a policy file is read back as it was."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablectl.delta.names import TableName
from tablectl.policies.parse_yaml import parse_document
from tablectl.policies.variables import Variables, escape_variables, read_table, read_table_key, variables_of
from tablectl.policies.write_yaml import table_key, write_key, write_text, write_value
from tablectl.policies.yaml_nodes import ListNode, MapNode, Scalar, is_text

texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])) | st.text(
    "ab:#, -${}[]'\"\\\n*&!|>%@`~01", max_size=8
)


def parsed(line: str) -> MapNode:
    problems: list[object] = []
    root = parse_document(line.encode(), "p.yaml", problems)  # type: ignore[arg-type]
    assert problems == []
    assert isinstance(root, MapNode)
    return root


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("payments", "payments"),
        ("interval 60 days", "interval 60 days"),
        ("true", "true"),
        ("60", "60"),
        ("s3://lake/a", "s3://lake/a"),
        ("on", '"on"'),
        ("No", '"No"'),
        ("1e3", "1e3"),
        ("1.5", '"1.5"'),
        ("012", '"012"'),
        ("2026-11-20", '"2026-11-20"'),
        ("12:30", '"12:30"'),
        ("null", '"null"'),
        ("~", '"~"'),
        ("", '""'),
        ("*all", '"*all"'),
        ("a: b", '"a: b"'),
        ("a #b", '"a #b"'),
        ("it's", "it's"),
        ('say "x"', 'say "x"'),
        (" x", '" x"'),
        ("a\nb\x07", '"a\\nb\\x07"'),
        ("${TEAM}", "$${TEAM}"),
        ("${env:HOME}", "${env:HOME}"),
    ],
)
def test_values(text: str, written: str) -> None:
    assert write_text(text) == written


def test_keys_must_be_text_and_columns_stand_in_brackets() -> None:
    assert [write_key(text) for text in ("owner.team", "60", "on", "<<")] == ["owner.team", '"60"', '"on"', '"<<"']
    assert write_value(("a", "`b.c`", "d, e", "on")) == '[a, "`b.c`", "d, e", "on"]'
    assert write_value(None) == "null"


def test_names_of_tables() -> None:
    assert table_key(TableName("", ("/lake/a b",)), "c") == "delta.`/lake/a b`"
    assert table_key(TableName("c", ("s", "a.b")), "c") == "c.s.`a.b`"
    assert table_key(TableName("spark_catalog", ("s", "t")), "spark_catalog") == "s.t"
    assert table_key(TableName("spark_catalog", ("s", "t")), "c") == "spark_catalog.s.t"
    assert write_key("`a-b`.c") == '"`a-b`.c"'
    name = TableName("", ("/lake/${X} $${Y}",))
    assert read_table(table_key(name, "c"), Variables(), "c") == name
    assert table_key(TableName("", ("/lake/a*[x]",)), "c") == "delta.`/lake/a[*][[]x]`"


@given(st.text(st.sampled_from("ab*?[]!-`$${X}_.: #"), min_size=1, max_size=12))
def test_any_folder_has_a_key(folder: str) -> None:
    name = TableName("", (f"/lake/x{folder}",))
    key = table_key(name, "c")
    assert read_table_key(key, Variables(), "c") == name
    assert list(parsed(f"{write_key(key)}: 1").entries) == [key]


@given(texts, st.booleans())
def test_every_value_is_read_back(text: str, flow: bool) -> None:
    line = f"{{k: {write_text(text, flow=True)}}}" if flow else f"k: {write_text(text)}\n"
    value = parsed(line).entries["k"][1]
    assert isinstance(value, Scalar)
    assert is_text(value)
    assert Variables().expand(value.text) == text


@given(texts, st.booleans())
def test_every_key_is_read_back(text: str, flow: bool) -> None:
    line = f"{{{write_key(text, flow=True)}: 1}}" if flow else f"{write_key(text)}: 1\n"
    assert list(parsed(line).entries) == [text]


@given(st.lists(texts, min_size=1).map(tuple))
def test_every_list_is_read_back(items: tuple[str, ...]) -> None:
    value = parsed(f"k: {write_value(items)}\n").entries["k"][1]
    assert isinstance(value, ListNode)
    assert tuple(Variables().expand(each.text) for each in value.items if isinstance(each, Scalar)) == items


@given(texts)
def test_what_is_escaped_takes_no_variable(text: str) -> None:
    assert variables_of(escape_variables(text)) == ()
    assert Variables().expand(escape_variables(text)) == text
