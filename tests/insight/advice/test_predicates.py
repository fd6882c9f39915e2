"""Conditions of past writes, from the text that Spark prints."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablectl.insight.advice.jobs import Condition, read_predicate

_TEXT = st.text(alphabet="()ANDOR =<>#1Laé'`,. \n", max_size=60)


def equals(column: str, *values: str) -> Condition:
    return Condition(column, "equals", frozenset(values))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('["((region#12 = r1) AND (id#13L > 0))"]', (equals("region", "r1"), Condition("id", "range"))),
        ('["(region#1 IN (a,b c))"]', (equals("region", "a", "b c"),)),
        ('["(s.id#1 = id#2)"]', (Condition("s.id", "join"), Condition("id", "join"))),
        ('["(7 = id#2)"]', (equals("id", "7"),)),
        ('["(isnotnull(day#3) AND (day#3 >= 2026-11-01))"]', (Condition("day", "range"),)),
        ('["((a#1 = 1) OR (b#2 = 2))"]', (Condition("a", "other"), Condition("b", "other"))),
        ('["(upper(region#1) = R1)"]', (Condition("region", "other"),)),
        ("region = 'r1' AND day >= '2026-01-01'", (equals("region", "r1"), Condition("day", "range"))),
        ("[]", ()),
        ("", ()),
    ],
)
def test_a_condition_is_read_as_spark_prints_it(text: str, found: tuple[Condition, ...]) -> None:
    assert read_predicate(text) == found


@pytest.mark.parametrize(
    "text",
    [
        "((a#1 = 1)",
        "a#1 = 1) AND (",
        '["(a#1 = 1", 7]',
        "[" * 20_000,
        "(" * 9_000,
        "(" * 4_990 + "a" + ")" * 4_990,
        "x" * 9_999 + "…",
    ],
)
def test_text_that_cannot_be_read_is_not_a_condition(text: str) -> None:
    assert read_predicate(text) == ()


@given(_TEXT, st.booleans())
def test_no_text_breaks_the_reader_and_every_column_is_in_it(text: str, listed: bool) -> None:
    for each in read_predicate(json.dumps([text]) if listed else text):
        assert each.column
        assert each.column in text


@given(st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=5))
def test_conjuncts_are_found_however_they_are_nested(columns: list[str]) -> None:
    text = f"({columns[0]}#1 = 0)"
    for number, column in enumerate(columns[1:], 1):
        text = f"({text} AND ({column}#{number} = {number}))"
    assert {each.column for each in read_predicate(json.dumps([text]))} == set(columns)
