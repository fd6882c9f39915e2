"""Checkpoints of each kind, written with pyarrow."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import obstore
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tablectl.model.errors import LiveError
from tablectl.model.live import LiveTable

Put = Callable[..., None]
Read = Callable[..., LiveTable]
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


KINDS = [classic, multi, v2_parquet, v2_json]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_checkpoint(put: Put, read: Read, kind: Callable[[Put], None]) -> None:
    kind(put)
    put(5, [{"commitInfo": {}}])
    table = read(look_back=0)
    assert (table.version, table.table_id, dict(table.properties)) == (5, "one", {"x": "1"})
    assert table.partition_columns == ("a",)
    assert table.clustering == (("a",),)
    assert table.protocol.writer_features == set(FEATURES)
    table = read(look_back=0, counts=True)
    assert (table.files, table.bytes, table.vectors) == (6, 60, 3)


@pytest.mark.parametrize("kind", KINDS)
def test_commits_after_the_checkpoint_win(put: Put, read: Read, kind: Callable[[Put], None]) -> None:
    kind(put)
    put(5, [{"commitInfo": {}}])
    gone = {"path": "f0", "deletionVector": {"storageType": "u", "pathOrInlineDv": "ab", "offset": 1}}
    domain = {"domainMetadata": {"domain": "delta.clustering", "configuration": "", "removed": True}}
    put(6, [domain, {"remove": gone}, {"add": {"path": "f1", "size": 11}}, {"remove": {"path": "f2"}}])
    table = read(counts=True)
    assert table.clustering == ()
    assert (table.files, table.bytes, table.vectors) == (5, 51, 2)


def test_old_checkpoints_have_no_domains(put: Put, read: Read) -> None:
    without_domains(put)
    put(5, [{"commitInfo": {}}])
    table = read(counts=True)
    assert (table.clustering, table.files, table.vectors) == (None, 6, 3)


def test_a_checkpoint_with_parts_missing_is_passed_over(put: Put, read: Read) -> None:
    put(0, [PROTOCOL, METADATA, DOMAIN])
    for version in range(1, 6):
        put(version, [{"commitInfo": {}}])
    put(checkpoint(5, 1, 2), b"half")
    assert read().clustering == (("a",),)


def test_only_what_is_needed_is_fetched(put: Put, read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    content = parquet([*adds(30_000), *STATE], group=5000)
    put(checkpoint(5), content)
    put(5, [{"commitInfo": {}}])
    fetched = 0
    original = obstore.get_range

    def counted(*args: Any, **options: Any) -> Any:
        nonlocal fetched
        fetched += options["length"]
        return original(*args, **options)

    monkeypatch.setattr(obstore, "get_range", counted)
    assert read().table_id == "one"
    assert fetched < len(content) / 2
    footer = int.from_bytes(content[-8:-4], "little")
    assert fetched < 3 * footer + 70_000  # readers fetch the last 64 KiB first


@pytest.mark.parametrize("statistics", [True, False])
@pytest.mark.parametrize("place", [0, 8_190, 8_500, 9_000])
def test_state_lies_anywhere_among_the_files(put: Put, read: Read, place: int, *, statistics: bool) -> None:
    other: Row = {"domainMetadata": {"domain": "owner.own", "configuration": "{}", "removed": False}}
    rows = [other, *adds(place), *STATE, *adds(9_000 - place, place)]
    for group in (20_000, 4_096, 97):
        put(checkpoint(5), parquet(rows, group=group, statistics=statistics))
        put(5, [{"commitInfo": {}}])
        table = read(look_back=0, counts=True)
        assert (table.table_id, table.clustering, dict(table.properties)) == ("one", (("a",),), {"x": "1"})
        assert table.protocol.writer_features == set(FEATURES)
        assert (table.files, table.vectors) == (9_000, 4_500)


def test_what_is_no_checkpoint(put: Put, read: Read) -> None:
    put(5, [{"commitInfo": {}}])
    for content in (b"", b"PAR1", b"PAR1" + b"x" * 50 + b"PAR1", parquet(STATE)[:-9], parquet(STATE)[9:], b"\0" * 999):
        put(checkpoint(5), content)
        with pytest.raises(LiveError, match=r"0{19}5\.checkpoint\.parquet"):
            read()


def test_other_columns_than_a_checkpoint_has(put: Put, read: Read) -> None:
    put(5, [{"commitInfo": {}}])
    for columns in ({"protocol": [1, 2]}, {"metaData": ["x", None]}, {"nothing": [1]}, {"protocol": [{"x": 1}]}):
        sink = io.BytesIO()
        pq.write_table(pa.table(columns), sink)
        put(checkpoint(5), sink.getvalue())
        with pytest.raises(LiveError, match="memory:///lake/t"):
            read()


def test_sidecars_that_are_missing_or_hostile(put: Put, read: Read) -> None:
    put(5, [{"commitInfo": {}}])
    for path in ("gone.parquet", "../../../secret", "", "/", 5):
        put(f"{5:020d}.checkpoint.{UUID}.json", [*STATE, {"checkpointMetadata": {}}, {"sidecar": {"path": path}}])
        assert read().table_id == "one"
        with pytest.raises(LiveError, match="memory:///lake/t"):
            read(counts=True)


def test_a_json_checkpoint_that_is_cut(put: Put, read: Read) -> None:
    put(5, [{"commitInfo": {}}])
    text = "\n".join(map(json.dumps, [*STATE, {"checkpointMetadata": {"version": 5}}])).encode()
    for cut in range(0, len(text), 7):
        put(f"{5:020d}.checkpoint.{UUID}.json", text[:cut])
        with pytest.raises(LiveError, match=r"memory:///lake/t"):
            read()
