"""How user text looks inside messages, and what was probably meant."""

from __future__ import annotations

from difflib import SequenceMatcher

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablectl.attributes.policy import declarable_keys
from tablectl.policies.spelling_hints import cut, did_you_mean, nearest, shown

KEYS = tuple(declarable_keys("oss"))


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


def test_a_key_with_the_same_first_and_last_word_alone_gives_no_hint() -> None:
    keys = KEYS
    assert nearest("delta.autoVacuum.enabled", keys) is None
    assert nearest("delta.appendOnyl", keys) == "delta.appendOnly"
    assert nearest("delta.parquet.vorder.enable", keys) == "delta.parquet.vorder.enabled"
    assert nearest("delta.autoOptimise.autoCompact", keys) == "delta.autoOptimize.autoCompact"
    assert nearest("engine.catalogue", ["engine.catalog", "engine.cluster"]) == "engine.catalog"


@given(st.sampled_from([each for each in KEYS if len(each) > 12]), st.data())
def test_a_key_with_one_wrong_letter_is_its_own_hint(key: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(len("delta.") + 1, len(key) - 2))
    slip = key[:at] + key[at + 1 :]
    found = nearest(slip, KEYS)
    assert found is not None
    assert SequenceMatcher(None, slip, found.casefold()).ratio() >= SequenceMatcher(None, slip, key.casefold()).ratio()
