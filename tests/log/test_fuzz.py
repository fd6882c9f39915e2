"""Damaged logs: a clear error that names the file, or the right answer, never another one."""

from __future__ import annotations

import json
from typing import Any

import obstore
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from obstore.store import MemoryStore

from tablectl.model.errors import LiveError
from tablectl.model.table import LiveTable
from tablectl.storage.object_stores import StoreOptions
from tests.builders import read_path

LOCATION = "memory:///t"
Logs = dict[str, bytes]


def schema(*columns: str) -> str:
    return json.dumps(
        {"type": "struct", "fields": [{"name": each, "type": "long", "metadata": {}} for each in columns]}
    )


def state(version: int, prefix: str) -> dict[str, Any]:
    """What each version of the sample says of itself: every version another thing."""
    return {
        "protocol": {
            "minReaderVersion": 1,
            "minWriterVersion": 7,
            "writerFeatures": ["clustering", "domainMetadata", f"f{version // 3}"],
        },
        "metaData": {
            "id": prefix,
            "schemaString": schema("a", "b", f"c{version}"),
            "partitionColumns": [],
            "configuration": {"v": str(version), "note": 'a "metaData" {}\\ \u00e9'},
        },
        "domainMetadata": {
            "domain": "delta.clustering",
            "configuration": json.dumps({"clusteringColumns": [[f"c{version}"]]}),
            "removed": False,
        },
    }


def sample(prefix: str = "one", versions: int = 6, *, checksums: bool = True) -> Logs:
    files: Logs = {}
    for version in range(versions):
        now = state(version, prefix)
        actions: list[dict[str, Any]] = [{"commitInfo": {"operation": "WRITE", "txnId": f"{prefix}-{version}"}}]
        actions += [{kind: value} for kind, value in now.items()]
        actions += [{"add": {"path": f"p{version}", "size": 5, "dataChange": True, "stats": '{"numRecords":1}'}}]
        if version == versions - 1:
            actions = [actions[0], actions[-1]]
            now = state(version - 1, prefix)
        files[f"{version:020d}.json"] = b"".join(
            json.dumps(each, separators=(",", ":")).encode() + b"\n" for each in actions
        )
        crc = {
            "txnId": f"{prefix}-{version}",
            "tableSizeBytes": 5 * version + 5,
            "numFiles": version + 1,
            "numDeletionVectorsOpt": 0,
            "domainMetadata": [now["domainMetadata"]],
            "metadata": now["metaData"],
            "protocol": now["protocol"],
        }
        if checksums:
            files[f"{version:020d}.crc"] = json.dumps(crc, separators=(",", ":")).encode()
    files["_last_checkpoint"] = b'{"version":3,"size":9}'
    files[f"{3:020d}.checkpoint.parquet"] = checkpoint(state(3, prefix))
    return files


def checkpoint(now: dict[str, Any]) -> bytes:
    meta = {**now["metaData"], "configuration": list(now["metaData"]["configuration"].items())}
    rows: list[dict[str, Any]] = [
        {"protocol": now["protocol"]},
        {"metaData": meta},
        {"domainMetadata": now["domainMetadata"]},
        *({"add": {"path": f"p{version}", "size": 5}} for version in range(4)),
    ]
    columns = {
        "protocol": pa.struct(
            {
                "minReaderVersion": pa.int32(),
                "minWriterVersion": pa.int32(),
                "readerFeatures": pa.list_(pa.string()),
                "writerFeatures": pa.list_(pa.string()),
            }
        ),
        "metaData": pa.struct(
            {
                "id": pa.string(),
                "schemaString": pa.string(),
                "partitionColumns": pa.list_(pa.string()),
                "configuration": pa.map_(pa.string(), pa.string()),
            }
        ),
        "domainMetadata": pa.struct({"domain": pa.string(), "configuration": pa.string(), "removed": pa.bool_()}),
        "add": pa.struct({"path": pa.string(), "size": pa.int64()}),
    }
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows, pa.schema(list(columns.items()))), sink, write_page_checksum=True)
    return bytes(sink.getvalue())


def read(files: Logs, **choices: Any) -> LiveTable | LiveError:
    store = MemoryStore()
    for name, content in files.items():
        obstore.put(store, f"t/_delta_log/{name}", content)
    try:
        return read_path(LOCATION, options=StoreOptions(memory=store), **choices)
    except LiveError as error:
        return error


FULL = sample()
BARE = {
    name: content for name, content in sample(checksums=False).items() if int(name[:20] if name[0] != "_" else 4) > 3
}
BARE_WITH_CHECKPOINT = {
    name: content
    for name, content in sample(checksums=False).items()
    if name[0] == "_" or "checkpoint" in name or name[:20] == f"{3:020d}" or name[:20] > f"{3:020d}"
}
LAST = {**BARE_WITH_CHECKPOINT}
del LAST[f"{4:020d}.json"], LAST[f"{5:020d}.json"]
OTHER = sample("two")
RIGHT = read(FULL)
assert isinstance(RIGHT, LiveTable)
RIGHT_BARE = read(BARE_WITH_CHECKPOINT)
assert isinstance(RIGHT_BARE, LiveTable)
RIGHT_LAST = read(LAST)
assert isinstance(RIGHT_LAST, LiveTable)
CHECKSUMS = sorted(name for name in FULL if name.endswith(".crc"))


def facts(table: LiveTable) -> tuple[Any, ...]:
    """What must be right in any case. Counts may be unknown, the writers of damaged commits too."""
    return table.version, table.table_id, table.protocol, table.schema, table.clustering, dict(table.properties)


def check(result: LiveTable | LiveError, right: LiveTable, name: str) -> None:
    if isinstance(result, LiveError):
        assert name in result.message
        assert LOCATION in result.message
    else:
        assert facts(result) == facts(right)
        assert result.files in {right.files, None}


def test_the_samples_are_read_right() -> None:
    assert isinstance(RIGHT, LiveTable)
    assert RIGHT.files == 6
    assert RIGHT.clustering == (("c4",),)
    assert isinstance(RIGHT_BARE, LiveTable)
    assert facts(RIGHT_BARE) == facts(RIGHT)
    assert isinstance(RIGHT_LAST, LiveTable)
    assert RIGHT_LAST.clustering == (("c3",),)


@pytest.mark.parametrize("every", [pytest.param(1, marks=pytest.mark.slow), 13])
def test_every_truncation_of_every_file(every: int) -> None:
    """A commit cut between two lines is a shorter commit: nothing in the format tells, so only other cuts are made. Of
    empty files, ``test_checkpoint`` and ``test_parse_commit`` say what they mean.
    """
    assert isinstance(RIGHT, LiveTable)
    assert isinstance(RIGHT_BARE, LiveTable)
    for files, right in ((FULL, RIGHT), (BARE_WITH_CHECKPOINT, RIGHT_BARE)):
        for name, content in files.items():
            step = every if name.endswith(".json") else 7 * every
            for cut in range(1, len(content), step):
                head = content[:cut]
                whole_lines = name.endswith(".json") and content[cut - 1 : cut + 1].count(b"\n")
                if not whole_lines:
                    check(read({**files, name: head}), right, name)


@given(name=st.sampled_from(CHECKSUMS), other=st.sampled_from(CHECKSUMS), foreign=st.booleans())
def test_stale_and_foreign_checksums(name: str, other: str, foreign: bool) -> None:
    result = read({**FULL, name: (OTHER if foreign else FULL)[other]})
    assert isinstance(result, LiveTable)
    assert isinstance(RIGHT, LiveTable)
    check(result, RIGHT, name)


@given(name=st.sampled_from(CHECKSUMS), content=st.binary(max_size=200))
def test_checksums_of_any_bytes(name: str, content: bytes) -> None:
    result = read({**FULL, name: content})
    assert isinstance(RIGHT, LiveTable)
    assert isinstance(result, LiveTable)
    check(result, RIGHT, name)


@given(st.sets(st.sampled_from(CHECKSUMS)), st.booleans())
def test_any_checksum_may_be_missing(missing: set[str], hint: bool) -> None:
    files = {name: content for name, content in FULL.items() if name not in missing}
    if not hint:
        del files["_last_checkpoint"]
    result = read(files)
    assert isinstance(RIGHT, LiveTable)
    assert isinstance(result, LiveTable)
    check(result, RIGHT, "")


@given(st.sampled_from(sorted(FULL)), st.binary(max_size=100))
def test_files_of_any_bytes(name: str, content: bytes) -> None:
    result = read({**FULL, name: content})
    if isinstance(result, LiveError):
        assert LOCATION in result.message


@given(st.data())
@settings(max_examples=300)
def test_overwritten_bytes_in_commits(data: st.DataObject) -> None:
    """Other bytes may be another valid log: then the reading is what that log says, by plain replay."""
    name = data.draw(st.sampled_from([each for each in BARE_WITH_CHECKPOINT if each.endswith(".json")]))
    content = BARE_WITH_CHECKPOINT[name]
    at = data.draw(st.integers(0, len(content) - 1))
    new = data.draw(st.binary(min_size=1, max_size=4))
    damaged = content[:at] + new + content[at + len(new) :]
    result = read({**BARE_WITH_CHECKPOINT, name: damaged})
    if isinstance(result, LiveError):
        assert LOCATION in result.message
        return
    expected = replayed({**BARE_WITH_CHECKPOINT, name: damaged})
    assert expected is not None
    assert dict(result.properties) == expected["metaData"]["configuration"]
    assert result.table_id == expected["metaData"]["id"]
    assert result.protocol.writer_features == set(expected["protocol"]["writerFeatures"])
    columns = json.loads(expected["domainMetadata"]["configuration"])["clusteringColumns"]
    clustered = "clustering" in result.protocol.writer_features
    assert result.clustering == (tuple(tuple(column) for column in columns) if clustered else None)


def replayed(files: Logs) -> dict[str, Any] | None:
    found = state(3, "one")
    for version in (4, 5):
        for line in files[f"{version:020d}.json"].split(b"\n"):
            if line.strip():
                try:
                    found.update(json.loads(line))
                except ValueError:
                    return None
    return found


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_overwritten_bytes_in_a_checkpoint(data: st.DataObject) -> None:
    """Pages carry checksums; the footer does not, but it only says where values are."""
    name = f"{3:020d}.checkpoint.parquet"
    content = LAST[name]
    at = data.draw(st.integers(0, len(content) - 1))
    new = data.draw(st.binary(min_size=1, max_size=8))
    result = read({**LAST, name: content[:at] + new + content[at + len(new) :]})
    assert isinstance(RIGHT_LAST, LiveTable)
    if isinstance(result, LiveError):
        assert LOCATION in result.message
    else:
        assert facts(result) == facts(RIGHT_LAST)
