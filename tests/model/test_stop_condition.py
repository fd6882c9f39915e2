"""``--stop-if``: what is read, what is refused, and what holds where something is unknown."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablectl.model.stop_condition import OPERATORS, TERMS, Count, Counts, parse_stop_condition


def counts(**given: Count) -> Counts:
    return {term: given.get(term, Count(0)) for term in TERMS}


@pytest.mark.parametrize("text", ["failed > 0", "failed > 1 or silent >= 2", "  orphans>10  or stopped > 0 "])
def test_a_condition_is_read_and_written(text: str) -> None:
    condition = parse_stop_condition(text)
    assert parse_stop_condition(condition.text) == condition


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("broken > 1", "the words are failed, orphans, silent, stopped: 'broken' is none of them"),
        ("failed < 1", "the operators are > and >=: '<' is none of them"),
        ("failed > 1.5", "failed is compared with a whole number below 1,000,000: '1.5' is none"),
        ("failed > -1", "failed is compared with a whole number below 1,000,000: '-1' is none"),
        ("failed > ²", "failed is compared with a whole number below 1,000,000: '²' is none"),
        ("failed >= 0", "`failed >= 0` always holds: write `failed > 0`"),
        ("failed", "write one of failed, orphans, silent, stopped, then > or >=, then a whole number"),
        ("failed > 0 and silent > 0", "write one of failed"),
        ("", "for example `failed > 0 or silent > 2`"),
        ("failed > 0 or " * 20, "at most 200 characters are read"),
        (" or ".join(["failed > 0"] * 9), "at most 8 comparisons are read"),
    ],
)
def test_an_error_names_what_is_allowed(text: str, why: str) -> None:
    with pytest.raises(ValueError, match="^" + re.escape(why)):
        parse_stop_condition(text)


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        condition = parse_stop_condition(text)
    except ValueError:
        return
    assert all(each.term in TERMS and each.operator in OPERATORS for each in condition.comparisons)


def test_an_unknown_count_neither_holds_nor_fails() -> None:
    condition = parse_stop_condition("orphans > 2 or silent > 0")
    assert condition.holding(counts(orphans=Count(3, unknown=True)))  # what is known is enough
    unknown = counts(orphans=Count(2, unknown=True))
    assert not condition.holding(unknown)
    assert [each.text for each in condition.untold(unknown)] == ["orphans > 2"]
    assert not condition.untold(counts(orphans=Count(2)))
