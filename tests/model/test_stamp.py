"""The stamp in every commit: written, read back, and never mistaken for another's words."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablectl.model.stamp import Stamp, read_stamp


def test_the_text_is_small_json_that_reads_back() -> None:
    stamp = Stamp(run="5f0c", plan="ab" * 32)
    assert stamp.text() == '{"tablectl":{"plan":"' + "ab" * 32 + '","run":"5f0c"}}'
    assert read_stamp(stamp.text()) == stamp


def test_reasons_are_in_the_text_where_there_are_any() -> None:
    stamp = Stamp("5f0c", "d", proceed="the load hangs")
    assert stamp.text() == '{"tablectl":{"plan":"d","proceed":"the load hangs","run":"5f0c"}}'


def test_a_reason_does_not_read_the_environment_of_the_engine() -> None:
    """Spark replaces ``${env:NAME}`` in the value of a setting, and the run would not know its own commits again."""
    stamp = Stamp("5f0c", "d", proceed="${env:HOME} hangs")
    assert "$" not in stamp.text()
    assert read_stamp(stamp.text()) == stamp


@settings(max_examples=100, deadline=None)
@given(st.text(), st.text(), st.text(), st.text())
def test_any_stamp_reads_back(run: str, plan: str, proceed: str, override: str) -> None:
    stamp = Stamp(run, plan, proceed, override)
    assert read_stamp(stamp.text()) == stamp


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nightly load",
        "null",
        "7",
        "[]",
        "{}",
        '"tablectl"',
        '{"tablectl": null}',
        '{"tablectl": "run plan"}',
        '{"tablectl": ["run", "plan"]}',
        '{"tablectl": {"run": "5f0c"}}',
        '{"job": {"run": "5f0c", "plan": "x"}}',
        "[" * 100_000,
        '{"tablectl": ' + "9" * 5000 + "}",
    ],
    ids=lambda text: text[:20],
)
def test_what_someone_else_wrote_is_not_a_stamp(text: str) -> None:
    assert read_stamp(text) is None


@settings(max_examples=100, deadline=None)
@given(
    st.recursive(st.none() | st.integers() | st.text(), lambda each: st.lists(each) | st.dictionaries(st.text(), each))
)
def test_any_json_is_a_stamp_or_none(body: object) -> None:
    assert read_stamp(json.dumps(body)) is None
    read_stamp(json.dumps({"tablectl": body}))
