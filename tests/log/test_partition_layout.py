"""How the files of a partitioned table lie in its partitions: from commits, and from a checkpoint and what follows."""

from __future__ import annotations

import json
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

from tablectl.delta.names import TableName
from tablectl.log import reader
from tablectl.log.reader import ReadRequest, read_many
from tablectl.model.file_layout import PartitionLayout
from tablectl.model.table import Depth, LiveTable


def measured(path: Path) -> LiveTable:
    request = ReadRequest(TableName("", (str(path),)), str(path), lambda _table: Depth(layout=True))
    (found,) = read_many([request])
    assert isinstance(found, LiveTable), found
    return found


def sizes(path: Path) -> list[int]:
    """Bytes of each partition, by an independent reader."""
    totals: dict[str, int] = {}
    table = pa.table(deltalake.DeltaTable(path).get_add_actions(flatten=True))
    for row in table.to_pylist():
        totals[str(row["partition.day"])] = totals.get(str(row["partition.day"]), 0) + row["size_bytes"]
    return sorted(totals.values())


@pytest.mark.parametrize("checkpoint", [False, True])
def test_a_partitioned_table(tmp_path: Path, checkpoint: bool) -> None:
    days = pa.table({"id": range(9), "day": ["a", "b", "c"] * 3, "hour": ["1", "1", None] * 3})
    for number in range(4):
        deltalake.write_deltalake(tmp_path, days, mode="append", partition_by=["day", "hour"])
        if checkpoint and number == 1:
            deltalake.DeltaTable(tmp_path).create_checkpoint()
    deltalake.DeltaTable(tmp_path).delete("day = 'b'")
    found = measured(tmp_path)
    left = sizes(tmp_path)
    assert found.layout == PartitionLayout(2, left[0], (("day", 2), ("hour", 2)))


def test_columns_are_named_as_the_table_names_them(tmp_path: Path) -> None:
    log = tmp_path / "_delta_log"
    log.mkdir()
    field = {"name": "day", "type": "string", "nullable": True, "metadata": {"delta.columnMapping.physicalName": "c-1"}}
    metadata = {
        "id": "1",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": [field]}),
        "partitionColumns": ["day"],
        "configuration": {"delta.columnMapping.mode": "name"},
    }
    add = {"path": "x", "size": 7, "partitionValues": {"c-1": "a"}, "modificationTime": 0, "dataChange": True}
    actions = [
        {"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}},
        {"metaData": metadata},
        {"add": add},
        {"add": {**add, "path": "y", "partitionValues": {"c-1": "b"}}},
    ]
    (log / f"{0:020d}.json").write_text("\n".join(map(json.dumps, actions)))
    assert measured(tmp_path).layout == PartitionLayout(2, 7, (("day", 2),))


def test_it_is_not_looked_for_without_partitions_or_beyond_the_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, many = tmp_path / "plain", tmp_path / "many"
    rows = pa.table({"id": range(5), "day": list("abcde")})
    deltalake.write_deltalake(plain, rows)
    deltalake.write_deltalake(many, rows, partition_by=["day"])
    assert measured(plain).layout is None
    assert measured(many).layout is not None
    monkeypatch.setattr(reader, "MOST_FILES", 4)
    assert measured(many).layout is None


@pytest.mark.parametrize(
    ("with_rows", "without", "said"),
    [(2, 0, 0), (1, 2, 2), (0, 3, 3)],
)
def test_files_without_a_number_of_rows_are_counted(tmp_path: Path, with_rows: int, without: int, said: int) -> None:
    """Delta derives row ids from the number of rows. Other writers may leave statistics out, or a part of them."""
    log = tmp_path / "_delta_log"
    log.mkdir()
    field = {"name": "a", "type": "long", "nullable": True, "metadata": {}}
    metadata = {
        "id": "1",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": [field]}),
        "partitionColumns": [],
        "configuration": {},
    }
    texts = ['{"numRecords": 3}'] * with_rows + [None, '{"minValues": {}}', "{"][:without]
    file = {"size": 7, "partitionValues": {}, "modificationTime": 0, "dataChange": True}
    added = [{"add": {**file, "path": f"f{number}", "stats": text}} for number, text in enumerate(texts)]
    actions = [{"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, {"metaData": metadata}, *added]
    (log / f"{0:020d}.json").write_text("\n".join(map(json.dumps, actions)))
    request = ReadRequest(TableName("", (str(tmp_path),)), str(tmp_path), lambda _table: Depth(row_counts=True))
    (found,) = read_many([request])
    assert isinstance(found, LiveTable), found
    assert found.uncounted == said


def test_statistics_that_a_checkpoint_has_as_columns_alone_are_not_missed(tmp_path: Path) -> None:
    properties = {"delta.checkpoint.writeStatsAsJson": "false", "delta.checkpoint.writeStatsAsStruct": "true"}
    deltalake.write_deltalake(tmp_path, pa.table({"a": [1]}), configuration=properties)
    deltalake.DeltaTable(tmp_path).create_checkpoint()
    request = ReadRequest(TableName("", (str(tmp_path),)), str(tmp_path), lambda _table: Depth(row_counts=True))
    (found,) = read_many([request])
    assert isinstance(found, LiveTable), found
    assert found.uncounted == 0
