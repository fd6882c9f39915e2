"""How many values a column has at most: from the statistics of tables that another client wrote."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date, timedelta
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

from tablectl.delta.schema import Field
from tablectl.log.column_values import column_values
from tablectl.model.commit_contents import ColumnValues
from tablectl.storage.log_stores import Stores
from tablectl.storage.object_stores import StoreOptions

FIRST = date(2026, 11, 1)
_NO_UPDATES: Mapping[int, frozenset[str]] = {}


def values(path: Path, name: str, kind: str, updates: Mapping[int, frozenset[str]] = _NO_UPDATES) -> ColumnValues:
    version = deltalake.DeltaTable(path).version()
    with Stores(StoreOptions()) as stores:
        return column_values(stores, str(path), version, Field(name, kind), updates)


def written(path: Path) -> Path:
    """Three files: one of a single region, and two of several, with a null."""
    for regions in (["a", "a", "a"], ["a", "b", "c"], ["b", "c", None]):
        rows = {
            "region": pa.array(regions, pa.string()),
            "tenant": [4, 5, 9],
            "day": [FIRST + timedelta(days) for days in (0, 3, 4)],
            "flag": [True, False, True],
        }
        deltalake.write_deltalake(path, pa.table(rows), mode="append")
    return path


@pytest.mark.parametrize("checkpoint", [False, True])
@pytest.mark.parametrize(
    ("name", "kind", "most"),
    [
        ("region", "string", 1 + 3 + 2 + 1),
        ("tenant", "long", 6),
        ("day", "date", 5),
        ("flag", "boolean", 3),
        ("other", "string", None),
    ],
    ids=["rows of mixed files, and null", "a range of numbers", "a range of days", "a flag", "no statistics"],
)
def test_values_are_bounded(tmp_path: Path, name: str, kind: str, most: int | None, *, checkpoint: bool) -> None:
    written(tmp_path)
    if checkpoint:
        deltalake.DeltaTable(tmp_path).create_checkpoint()
    assert values(tmp_path, name, kind).most == most


def test_a_file_that_was_removed_does_not_count(tmp_path: Path) -> None:
    deltalake.DeltaTable(written(tmp_path)).delete("region IS NULL OR region <> 'a'")
    assert values(tmp_path, "region", "string").most == 1


def test_an_update_that_leaves_no_row_of_its_condition_changed_the_column(tmp_path: Path) -> None:
    table = pa.table({"region": ["a", "a"], "v": [1, 2]})
    deltalake.write_deltalake(tmp_path, table)
    deltalake.DeltaTable(tmp_path).update({"v": "3"}, predicate="region = 'a'")
    deltalake.DeltaTable(tmp_path).update({"region": "'b'"}, predicate="region = 'a'")
    assert not values(tmp_path, "region", "string", {1: frozenset("a")}).changed
    assert values(tmp_path, "region", "string", {2: frozenset("a")}).changed


@pytest.mark.parametrize(
    "statistics",
    [
        None,
        "",
        "[",
        "[]",
        "{}",
        "7",
        '{"numRecords": "7"}',
        '{"numRecords": -1, "nullCount": {"region": 0}, "minValues": {"region": "a"}, "maxValues": {"region": "b"}}',
        '{"numRecords": 1, "nullCount": {"region": 0}, "minValues": {"region": 1}, "maxValues": {"region": 2}}',
        '{"numRecords": 1, "nullCount": [], "minValues": {"region": "a"}, "maxValues": {"region": "b"}}',
        "[" * 10_000,
    ],
)
def test_statistics_that_say_nothing_bound_nothing(tmp_path: Path, statistics: str | None) -> None:
    deltalake.write_deltalake(tmp_path, pa.table({"region": ["a", "b"]}))
    commit = tmp_path / "_delta_log" / f"{0:020d}.json"
    lines = [json.loads(each) for each in commit.read_text().splitlines()]
    for each in lines:
        if "add" in each:
            each["add"]["stats"] = statistics
    commit.write_text("".join(json.dumps(each) + "\n" for each in lines))
    assert values(tmp_path, "region", "string").most is None
