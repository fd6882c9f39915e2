"""Text of others in text for people."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tablectl.model.safe_text import printable, value_text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 東京", "plain é 東京"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\nb\tc\r", "a\\nb\\tc\\r"),
        ("\u202egpj.exe", "\\u202egpj.exe"),
        ("\x00\x7f\x9b", "\\x00\\x7f\\x9b"),
        ("\ud800", "\\ud800"),
        ("\U000e0001", "\\U000e0001"),
    ],
)
def test_control_characters_are_shown_not_sent(text: str, shown: str) -> None:
    assert printable(text) == shown


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=40))
@example("\u2028\u2029\x85")
def test_whatever_is_printed_is_printable(text: str) -> None:
    assert printable(text).isprintable()
    assert value_text(text).isprintable()
    assert value_text((text,)).isprintable()


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "not set"),
        ("payments", "payments"),
        ("not set", "'not set'"),
        ("", "''"),
        (" x", "' x'"),
        ("a\nb", "'a\\nb'"),
        ("a\\nb", "a\\nb"),
        (("id", "a\x1b"), "[id, a\\x1b]"),
        ((), "[]"),
    ],
)
def test_values(value: str | tuple[str, ...] | None, shown: str) -> None:
    assert value_text(value) == shown
