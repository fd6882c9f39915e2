"""Long values, of which changes, plans and reports hold a digest."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tablectl.model.safe_text import LONGEST_VALUE, cut, is_cut


def test_a_value_of_the_longest_length_is_kept() -> None:
    assert cut("x" * LONGEST_VALUE) == "x" * LONGEST_VALUE
    assert not is_cut("x" * LONGEST_VALUE)


def test_a_longer_one_is_its_beginning_its_length_and_its_digest() -> None:
    shown = cut("x" * 10_001)
    assert is_cut(shown)
    assert shown.startswith("x" * 100 + "… (10,001 characters, SHA-256 ")


def test_long_values_that_differ_at_the_end_differ() -> None:
    assert cut("x" * 20_000 + "a") != cut("x" * 20_000 + "b")


@given(st.text(max_size=30), st.text(max_size=30))
def test_two_values_are_the_same_exactly_where_their_digests_are(one: str, other: str) -> None:
    assert (cut(one * 1000) == cut(other * 1000)) == (one * 1000 == other * 1000)


@given(st.text(min_size=1, max_size=30))
def test_whatever_was_cut_is_known_to_be(text: str) -> None:
    assert is_cut(cut(text * 10_001))
