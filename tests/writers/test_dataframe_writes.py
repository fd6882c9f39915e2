"""What a ``DataFrameWriter`` does, from the calls that built it."""

from __future__ import annotations

from typing import Any

import pytest

from tablectl.writers.dataframe_writes import Call, may_read, v1_write, v2_write


def call(name: str, *args: Any, **given: Any) -> Call:
    return name, args, given


DELTA, APPEND = call("format", "delta"), call("mode", "append")


@pytest.mark.parametrize(
    ("calls", "target", "appends"),
    [
        ((DELTA, APPEND, call("save", "/t")), "/t", True),
        ((call("save", "/t", "delta", "append"),), "/t", True),
        ((call("save", path="/t", format="delta", mode="APPEND"),), "/t", True),
        ((DELTA, APPEND, call("option", "path", "/t"), call("save")), "/t", True),
        ((DELTA, call("save", "/t")), "/t", False),
        ((DELTA, APPEND, call("mode", "overwrite"), call("save", "/t")), "/t", False),
        ((DELTA, APPEND, call("option", "mergeSchema", True), call("save", "/t")), "/t", False),
        ((DELTA, APPEND, call("options", mergeSchema="true"), call("save", "/t")), "/t", False),
        ((DELTA, call("save", "/t", mode="append", mergeSchema="true")), "/t", False),
        ((DELTA, APPEND, call("option", "mergeSchema", "false"), call("save", "/t")), "/t", True),
        ((APPEND, call("saveAsTable", "a.b")), "a.b", True),
        ((call("saveAsTable", "a.b", None, "append"),), "a.b", True),
        ((call("saveAsTable", "a.b"),), "a.b", False),
        ((call("insertInto", "a.b"),), "a.b", True),
        ((call("insertInto", "a.b", True),), "a.b", False),
        ((call("mode", "overwrite"), call("insertInto", "a.b")), "a.b", False),
        ((call("mode", "overwrite"), call("insertInto", "a.b", False)), "a.b", True),
    ],
)
def test_writes(calls: tuple[Call, ...], target: str, appends: bool) -> None:
    found = v1_write(calls, "parquet")
    assert found is not None
    assert (found.target, found.may_append) == (target, appends)


def test_other_formats_are_not_guarded() -> None:
    assert v1_write((APPEND, call("save", "/t")), "parquet") is None
    assert v1_write((call("format", "csv"), APPEND, call("save", "/t")), "delta") is None
    assert v1_write((APPEND, call("save", "/t")), "delta") is not None


def test_writes_by_the_second_api() -> None:
    assert v2_write("a.b", (call("append"),)).may_append
    assert not v2_write("a.b", (call("option", "mergeSchema", "true"), call("append"))).may_append
    assert not v2_write("a.b", (call("overwritePartitions"),)).may_append


def test_what_cannot_be_asked_may_read() -> None:
    assert may_read(object(), object(), "/t")
