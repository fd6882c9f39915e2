"""Checkpoints of each kind, written with pyarrow."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

Put = Callable[..., None]
Row = dict[str, Any]

UUID = "748a6541-0f8d-4447-82ca-5c89ca51c5a3"
SCHEMA_TEXT = '{"type":"struct","fields":[{"name":"a","type":"long","nullable":true,"metadata":{}}]}'
TEXTS = pa.list_(pa.string())
VECTOR = pa.struct({"storageType": pa.string(), "pathOrInlineDv": pa.string(), "offset": pa.int32()})
COLUMNS = {
    "txn": pa.struct({"appId": pa.string(), "version": pa.int64()}),
    "add": pa.struct({"path": pa.string(), "size": pa.int64(), "deletionVector": VECTOR, "stats": pa.string()}),
    "remove": pa.struct({"path": pa.string()}),
    "metaData": pa.struct(
        {
            "id": pa.string(),
            "schemaString": pa.string(),
            "partitionColumns": TEXTS,
            "configuration": pa.map_(pa.string(), pa.string()),
        }
    ),
    "protocol": pa.struct(
        {
            "minReaderVersion": pa.int32(),
            "minWriterVersion": pa.int32(),
            "readerFeatures": TEXTS,
            "writerFeatures": TEXTS,
        }
    ),
    "domainMetadata": pa.struct({"domain": pa.string(), "configuration": pa.string(), "removed": pa.bool_()}),
    "sidecar": pa.struct({"path": pa.string(), "sizeInBytes": pa.int64()}),
}
FEATURES = ["clustering", "deletionVectors", "domainMetadata"]
PROTOCOL: Row = {
    "protocol": {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["deletionVectors"],
        "writerFeatures": FEATURES,
    }
}
METADATA: Row = {
    "metaData": {"id": "one", "schemaString": SCHEMA_TEXT, "partitionColumns": ["a"], "configuration": {"x": "1"}}
}
DOMAIN: Row = {
    "domainMetadata": {"domain": "delta.clustering", "configuration": '{"clusteringColumns":[["a"]]}', "removed": False}
}
STATE = [PROTOCOL, METADATA, DOMAIN]


def adds(count: int, first: int = 0) -> list[Row]:
    vector = {"storageType": "u", "pathOrInlineDv": "ab", "offset": 1}
    return [
        {
            "add": {
                "path": f"f{number}",
                "size": 10,
                "stats": "s" * 50,
                **({} if number % 2 else {"deletionVector": vector}),
            }
        }
        for number in range(first, first + count)
    ]


def parquet(
    rows: list[Row], columns: tuple[str, ...] = tuple(COLUMNS), group: int = 1000, *, statistics: bool = True
) -> bytes:
    schema = pa.schema([(name, COLUMNS[name]) for name in columns])
    table = pa.Table.from_pylist([_parquet_row(row) for row in rows], schema)
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=group, write_page_checksum=True, write_statistics=statistics)
    return sink.getvalue()


def _parquet_row(row: Row) -> Row:
    if "metaData" not in row:
        return row
    return {"metaData": {**row["metaData"], "configuration": list(row["metaData"]["configuration"].items())}}


def checkpoint(version: int, part: int = 0, parts: int = 0) -> str:
    return f"{version:020d}.checkpoint" + (f".{part:010d}.{parts:010d}" if parts else "") + ".parquet"


def classic(put: Put) -> None:
    put(checkpoint(5), parquet([*adds(6), *STATE]))


def without_domains(put: Put) -> None:
    rows = [*adds(6), {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, METADATA]
    put(checkpoint(5), parquet(rows, ("add", "metaData", "protocol")))


def multi(put: Put) -> None:
    for part, rows in enumerate([adds(3), [PROTOCOL, DOMAIN], [METADATA, *adds(3, 3)]], 1):
        put(checkpoint(5, part, 3), parquet(rows))


def v2_parquet(put: Put) -> None:
    sidecars = [{"sidecar": {"path": f"s{number}.parquet", "sizeInBytes": 1}} for number in (1, 2)]
    put(f"{5:020d}.checkpoint.{UUID}.parquet", parquet([*STATE, *sidecars], (*tuple(COLUMNS)[3:],)))
    put("_sidecars/s1.parquet", parquet(adds(4), ("add", "remove")))
    put("_sidecars/s2.parquet", parquet(adds(2, 4), ("add", "remove")))


def v2_json(put: Put) -> None:
    info: list[Row] = [{"checkpointMetadata": {"version": 5}}, {"txn": {"appId": "a", "version": 1}}]
    sidecar = {"sidecar": {"path": "file:/elsewhere/_delta_log/_sidecars/s%201.parquet"}}
    put(f"{5:020d}.checkpoint.{UUID}.json", [*info, *STATE, sidecar])
    put("_sidecars/s 1.parquet", parquet(adds(6), ("add", "remove")))


def v2_json_inline(put: Put) -> None:
    """Some files are in the checkpoint itself, the others in a sidecar."""
    tombstone = {"remove": {"path": "gone", "size": 10, "deletionTimestamp": 1}}
    rows = [{"checkpointMetadata": {"version": 5}}, *STATE, *adds(4), tombstone]
    put(f"{5:020d}.checkpoint.{UUID}.json", [*rows, {"sidecar": {"path": "s.parquet"}}])
    put("_sidecars/s.parquet", parquet(adds(2, 4), ("add", "remove")))


KINDS = [classic, multi, v2_parquet, v2_json, v2_json_inline]
