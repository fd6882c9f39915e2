"""Checkpoints in the layout of Delta Spark 4.4: its columns, codec, page sizes and checksums; state before files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from itertools import chain, islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

_ROWS_PER_PAGE = 20_000
_BATCH = 5_000
_BATCHES_PER_GROUP = 30
"""150,000 rows are about what fits the 128 MB after which parquet-mr ends a row group."""

_TEXT, _LONG, _INT, _BOOL = pa.string(), pa.int64(), pa.int32(), pa.bool_()
_TEXTS, _LIST = pa.map_(_TEXT, _TEXT), pa.list_(_TEXT)
_VECTOR = pa.struct(
    {
        "storageType": _TEXT,
        "pathOrInlineDv": _TEXT,
        "offset": _INT,
        "sizeInBytes": _INT,
        "cardinality": _LONG,
        "maxRowIndex": _LONG,
    }
)
_ADD = {
    "path": _TEXT,
    "partitionValues": _TEXTS,
    "size": _LONG,
    "modificationTime": _LONG,
    "dataChange": _BOOL,
    "tags": _TEXTS,
    "deletionVector": _VECTOR,
    "baseRowId": _LONG,
    "defaultRowCommitVersion": _LONG,
    "clusteringProvider": _TEXT,
    "stats": _TEXT,
}
_REMOVE = {
    "path": _TEXT,
    "deletionTimestamp": _LONG,
    "dataChange": _BOOL,
    "extendedFileMetadata": _BOOL,
    "partitionValues": _TEXTS,
    "size": _LONG,
    "deletionVector": _VECTOR,
    "baseRowId": _LONG,
    "defaultRowCommitVersion": _LONG,
}
_METADATA = {
    "id": _TEXT,
    "name": _TEXT,
    "description": _TEXT,
    "format": pa.struct({"provider": _TEXT, "options": _TEXTS}),
    "schemaString": _TEXT,
    "partitionColumns": _LIST,
    "configuration": _TEXTS,
    "createdTime": _LONG,
}
_PROTOCOL = {"minReaderVersion": _INT, "minWriterVersion": _INT, "readerFeatures": _LIST, "writerFeatures": _LIST}
_STATS_TYPES = {"long": _LONG, "integer": _INT, "string": _TEXT, "double": pa.float64(), "date": pa.date32()}


def write_checkpoint(
    path: Path,
    state: Sequence[Mapping[str, Any]],
    files: Iterable[Mapping[str, Any]],
    parsed: Mapping[str, str] | None = None,
) -> int:
    """Write a classic checkpoint of some actions and ``add`` actions; the number of its rows.

    With ``parsed``, the table's columns and their types, each file has its statistics as columns too
    (``stats_parsed``), as Delta Spark 4 writes them.
    """
    schema, rows = _schema(parsed), 0
    actions = chain(state, (_added(file, parsed) for file in files))
    with pq.ParquetWriter(
        path,
        schema,
        compression="snappy",
        use_dictionary=False,
        write_page_index=True,
        write_page_checksum=True,
        max_rows_per_page=_ROWS_PER_PAGE,
    ) as writer:
        for group in _groups(pa.RecordBatch.from_pylist(actions, schema) for actions in _slices(actions)):
            writer.write_table(group, row_group_size=group.num_rows)
            rows += group.num_rows
    return rows


def _schema(parsed: Mapping[str, str] | None) -> pa.Schema:
    add = dict(_ADD)
    if parsed:
        values = pa.struct({name: _STATS_TYPES[kind] for name, kind in parsed.items()})
        nulls = pa.struct(dict.fromkeys(parsed, _LONG))
        add["stats_parsed"] = pa.struct(
            {"numRecords": _LONG, "minValues": values, "maxValues": values, "nullCount": nulls, "tightBounds": _BOOL}
        )
    return pa.schema(
        {
            "txn": pa.struct({"appId": _TEXT, "version": _LONG, "lastUpdated": _LONG}),
            "add": pa.struct(add),
            "remove": pa.struct(_REMOVE),
            "metaData": pa.struct(_METADATA),
            "protocol": pa.struct(_PROTOCOL),
            "domainMetadata": pa.struct({"domain": _TEXT, "configuration": _TEXT, "removed": _BOOL}),
        }
    )


def _added(file: Mapping[str, Any], parsed: Mapping[str, str] | None) -> dict[str, Any]:
    if not parsed:
        return {"add": {**file, "dataChange": False}}
    stats = json.loads(file["stats"])
    for bounds in (stats["minValues"], stats["maxValues"]):
        bounds |= {name: date.fromisoformat(bounds[name]) for name, kind in parsed.items() if kind == "date"}
    return {"add": {**file, "dataChange": False, "stats_parsed": stats}}


def _slices(actions: Iterable[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    rest = iter(actions)
    while few := list(islice(rest, _BATCH)):
        yield few


def _groups(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    rest = iter(batches)
    while few := list(islice(rest, _BATCHES_PER_GROUP)):
        yield pa.Table.from_batches(few)
