"""Delta Kernel, delta-rs and clients of unknown kind as losers; delta-rs against the real ``deltalake``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError

from tablectl.conflicts.rules.decide import decide
from tablectl.conflicts.transactions import Conflict, ConflictResult, CurrentTransaction, Level, Reads
from tablectl.engine.errors import engine_error
from tablectl.model.commits import CommittedTransaction, Kind, ProtocolChange
from tests.conflicts.examples import (
    PROPERTY,
    RECLUSTER,
    A,
    alter,
    append,
    appended,
    client,
    reader,
    rewritten,
)
from tests.conflicts.log_records import Log

KERNEL: dict[str, Any] = {"client": client("kernel 4.4.0")}
DELTA_RS: dict[str, Any] = {"client": client("delta-rs 1.6.6")}
RAISED = CommittedTransaction(kind=Kind.UPGRADE_PROTOCOL, protocol=ProtocolChange(adds=("x",)))


@pytest.mark.parametrize(
    ("committed", "current", "conflict"),
    [
        (alter(), append(**KERNEL), Conflict.METADATA_CHANGED),
        (RAISED, append(**KERNEL), Conflict.PROTOCOL_CHANGED),
        (alter(protocol=ProtocolChange()), append(**KERNEL), Conflict.PROTOCOL_CHANGED),
        (RECLUSTER, append(**KERNEL), None),
        (RECLUSTER, append(domains=("delta.clustering",), **KERNEL), Conflict.WRITE),
        (appended(), reader(**KERNEL), None),
        (rewritten(A), append(**KERNEL), None),
        (rewritten(A), reader(**KERNEL), Conflict.WRITE),
        (
            CommittedTransaction(kind=Kind.APPEND, app_ids=("q",)),
            append(app_ids=("q",), **KERNEL),
            Conflict.TRANSACTION,
        ),
        (CommittedTransaction(kind=Kind.APPEND, app_ids=("q",)), append(**KERNEL), None),
    ],
)
def test_kernel_merges_no_metadata_and_looks_at_no_added_file(
    committed: CommittedTransaction, current: CurrentTransaction, conflict: Conflict | None
) -> None:
    assert decide(committed, current).conflict is conflict


def test_delta_rs_knows_no_domains() -> None:
    outcome = decide(RECLUSTER, append(**DELTA_RS))
    assert outcome.result is ConflictResult.UNKNOWN
    assert not outcome.succeeds


def test_delta_rs_may_be_lucky_with_added_files_and_never_with_removed_ones() -> None:
    assert decide(appended(), reader(**DELTA_RS)).result is ConflictResult.MAY_FAIL
    assert decide(rewritten(A, Kind.OPTIMIZE), reader(**DELTA_RS)).result is ConflictResult.MAY_FAIL
    assert decide(rewritten(A), reader(**DELTA_RS)).result is ConflictResult.FAILS
    assert decide(rewritten(A), append(**DELTA_RS)).conflict is Conflict.DELETE_READ
    assert decide(rewritten(A, Kind.OPTIMIZE), append(**DELTA_RS)).succeeds


@pytest.mark.parametrize(
    ("committed", "current", "succeeds"),
    [
        (rewritten(A, Kind.OPTIMIZE), append(client=client("unknown")), True),
        (rewritten(A, Kind.UPDATE), append(client=client("unknown")), False),
        (RECLUSTER, append(client=client("unknown")), False),
        (PROPERTY, append(client=client("unknown")), False),
        (appended(), append(client=client("unknown")), True),
        (appended(), reader(client=client("unknown")), False),
    ],
)
def test_an_unknown_client_gets_the_worst_outcome_of_the_known(
    committed: CommittedTransaction, current: CurrentTransaction, succeeds: bool
) -> None:
    assert decide(committed, current).succeeds is succeeds


# The real deltalake, one process and two handles: the second commits while the first still holds the older version.

_ROW = pa.table({"id": [9], "p": ["a"]})


def _write(path: Path, mode: Any = "append", **more: Any) -> None:
    write_deltalake(path, _ROW, mode=mode, **more)


def _commit(path: Path, *actions: dict[str, Any], operation: str = "SET TBLPROPERTIES") -> None:
    log = Log(path)
    info = {"commitInfo": {"timestamp": 1, "operation": operation, "operationParameters": {}, "isBlindAppend": True}}
    file = path / "_delta_log" / f"{log.newest() + 1:020}.json"
    file.write_text("\n".join(json.dumps(action) for action in (info, *actions)), encoding="utf-8")


def _alter(path: Path) -> None:
    metadata = Log(path).last("metaData", Log(path).newest() + 1)
    _commit(path, {"metaData": {**metadata, "configuration": {"owner.team": "x"}}})


def _same(path: Path) -> None:
    _commit(path, {"metaData": Log(path).last("metaData", Log(path).newest() + 1)})


def _raise(path: Path) -> None:
    protocol = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["appendOnly", "invariants"]}
    _commit(path, {"protocol": protocol}, operation="UPGRADE PROTOCOL")


def _txn(path: Path) -> None:
    _commit(path, {"txn": {"appId": "q", "version": 1}}, operation="STREAMING UPDATE")


def _delete_a(path: Path) -> None:
    DeltaTable(path).delete("p = 'a'")


def _optimize(path: Path) -> None:
    DeltaTable(path).optimize.compact()


_RS_COMMITTED: list[Callable[[Path], None]] = [_alter, _same, _raise, _txn, _write, _delete_a, _optimize]


def _rs_append(table: DeltaTable) -> None:
    write_deltalake(table, _ROW, mode="append")


def _rs_stream(table: DeltaTable) -> None:
    properties = CommitProperties(app_transactions=[Transaction("q", 1)])
    write_deltalake(table, _ROW, mode="append", commit_properties=properties)


def _rs_update(table: DeltaTable) -> None:
    table.update(updates={"id": "id + 1"}, predicate="p = 'a'")


def _rs_merge(table: DeltaTable) -> None:
    merger = table.merge(_ROW, "t.p = s.p", source_alias="s", target_alias="t")
    merger.when_matched_update_all().when_not_matched_insert_all().execute()


def _rs_delete_b(table: DeltaTable) -> None:
    table.delete("p = 'b'")


def _rs_compact_b(table: DeltaTable) -> None:
    table.optimize.compact(partition_filters=[("p", "=", "b")])


def _changing(kind: Kind, letter: str | None) -> Callable[[Log], CurrentTransaction]:
    def describe(log: Log) -> CurrentTransaction:
        live = log.files(log.newest()).items()
        paths = tuple(path for path, values in live if letter in {None, values["p"]})
        reads = Reads(partitions=((letter,),) if letter else None, files=paths)
        changes = kind is not Kind.OPTIMIZE
        return append(kind=kind, partitioned=True, reads=reads, removes=paths, data_change=changes, **DELTA_RS)

    return describe


def _blind(log: Log) -> CurrentTransaction:
    return append(partitioned=True, **DELTA_RS)


def _stream(log: Log) -> CurrentTransaction:
    return append(kind=Kind.STREAMING_APPEND, app_ids=("q",), partitioned=True, **DELTA_RS)


@pytest.mark.parametrize("level", list(Level)[:2])
@pytest.mark.parametrize("committed", _RS_COMMITTED, ids=lambda committed: committed.__name__)
@pytest.mark.parametrize(
    ("current", "describe"),
    [
        (_rs_append, _blind),
        (_rs_stream, _stream),
        (_rs_update, _changing(Kind.UPDATE, "a")),
        (_rs_delete_b, _changing(Kind.DELETE, "b")),
        (_rs_merge, _changing(Kind.MERGE, None)),
        (_rs_compact_b, _changing(Kind.OPTIMIZE, "b")),
    ],
)
def test_delta_rs_does_what_the_rules_say(
    tmp_path: Path,
    committed: Callable[[Path], None],
    current: Callable[[DeltaTable], None],
    describe: Callable[[Log], CurrentTransaction],
    level: Level,
) -> None:
    configuration = {"delta.isolationLevel": level.value}
    for letter in "aabb":
        rows = pa.table({"id": [1], "p": [letter]})
        write_deltalake(tmp_path, rows, mode="append", partition_by=["p"], configuration=configuration)
    handle, log = DeltaTable(tmp_path), Log(tmp_path)
    described = describe(log)
    committed(tmp_path)
    outcome = decide(log.committed(log.newest()), described)
    happened = _condition_of(current, handle)
    if happened:
        assert not outcome.succeeds
        assert outcome.conflict == happened
    else:
        # Where it asks the statistics of the files, it may be luckier than the records can tell.
        assert outcome.result in {ConflictResult.COMMITS, ConflictResult.MAY_FAIL}


def _condition_of(current: Callable[[DeltaTable], None], handle: DeltaTable) -> str:
    try:
        current(handle)
    except CommitFailedError as error:
        return engine_error(error).condition
    return ""
