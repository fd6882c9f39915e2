"""How user text looks inside messages, and what was probably meant."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablectl.policies.spelling_hints import cut, did_you_mean, nearest, shown


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("no", '"no"'),
        ('say "hi"', "'say \"hi\"'"),
        ("a\nb", r"'a\nb'"),
        ("\ud800", r"'\ud800'"),
        ("x" * 99, f'"{"x" * 59}…"'),
    ],
)
def test_texts_are_quoted_and_cut(text: str, said: str) -> None:
    assert shown(text) == said


@settings(deadline=None)
@given(st.text())
def test_whatever_is_shown_can_be_printed_on_one_line(text: str) -> None:
    assert shown(text).isprintable()
    assert len(shown(text)) < 1000


def test_suggestions_fold_case_and_know_when_to_be_silent() -> None:
    assert nearest("serializable", ("Serializable", "default")) == "Serializable"
    assert nearest("zzz", ("Serializable", "default")) is None
    assert nearest("s" * 10_000, ("Serializable",)) is None
    assert did_you_mean("clusterin", ("clustering", "tags")) == "did you mean `clustering`?"
    assert did_you_mean("zzz", ("clustering", "tags")) == "known here: clustering, tags"
    assert did_you_mean("zzz", map(str, range(20))).endswith("10, 11, …")


def test_long_messages_are_cut() -> None:
    assert cut("short") == "short"
    assert len(cut("x" * 10_000)) == 300
