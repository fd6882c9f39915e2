"""The commit of a dead apply's statement, in real logs."""

from __future__ import annotations

import json
from typing import Any

import pytest

import tablectl
from tablectl.leases.lease_records import Gate, RunningStatement, tail
from tablectl.model.errors import LiveError
from tablectl.model.stamp import Stamp
from tablectl.writers.statement_log import StatementLog
from tests.s3 import S3Server
from tests.writers.conftest import Place

STATEMENT = RunningStatement("spark", "tablectl-r1-1", 570, "r1", 3)
METADATA = {"metaData": {"id": "t", "configuration": {}}}


def commit(run: str = "", *, last: bool = False) -> bytes:
    """A commit, with the stamp of a run; Delta Spark writes ``commitInfo`` first, delta-rs last."""
    stamp = {"userMetadata": Stamp(run, "d").text()} if run else {}
    lines: list[Any] = [{"commitInfo": {"operation": "SET TBLPROPERTIES", **stamp}}, METADATA]
    return b"\n".join(json.dumps(line, separators=(",", ":")).encode() for line in (lines[::-1] if last else lines))


def put(place: Place, version: int, data: bytes, folder: str = "") -> None:
    target = place.path / "_delta_log" / folder / f"{version:020d}{'.' + folder if folder else ''}.json"
    target.parent.mkdir(exist_ok=True)
    target.write_bytes(data)


@pytest.mark.parametrize("last", [False, True])
def test_the_commit_is_found_among_those_of_others(place: Place, last: bool) -> None:
    put(place, 3, commit("r1"))
    log = StatementLog(str(place))
    assert not log.has(STATEMENT), "that one was there before the statement"
    put(place, 4, commit())
    put(place, 5, commit("r2"))
    assert not log.has(STATEMENT)
    put(place, 6, commit("r1", last=last))
    assert log.has(STATEMENT)


def test_a_statement_that_makes_several_commits_is_never_found(place: Place) -> None:
    put(place, 4, commit("r1"))
    assert not StatementLog(str(place)).has(RunningStatement("spark", "tablectl-r1-1", 570, "r1", None))


def test_a_staged_commit_proves_nothing(place: Place) -> None:
    """The catalog may not have accepted it."""
    put(place, 4, commit("r1"), "_staged_commits")
    assert not StatementLog(str(place)).has(STATEMENT)


def test_a_look_reads_a_limited_number_of_commits_and_the_next_one_goes_on_after_them(place: Place) -> None:
    for version in range(4, 200):
        put(place, version, commit())
    put(place, 200, commit("r1"))
    log = StatementLog(str(place))
    assert [log.has(STATEMENT) for _ in range(2)] == [False, True]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"not json",
        b'{"commitInfo":5}',
        b'{"commitInfo":{"userMetadata":[]}}',
        b'{"commitInfo"' + b":[" * 40_000,
        b'{"commitInfo":{"userMetadata":"' + b"x" * 100_000 + b'"}}',
        b"\n".join([b"{}"] * 2_000) + b"\n" + commit("r1"),
    ],
    ids=lambda data: str(len(data)),
)
def test_what_no_apply_writes_is_passed_over(place: Place, data: bytes) -> None:
    log = StatementLog(str(place))
    put(place, 4, data)
    assert not log.has(STATEMENT)
    put(place, 5, commit("r1"))
    assert log.has(STATEMENT)


def test_a_log_out_of_reach_is_an_error_and_no_answer() -> None:
    with pytest.raises(LiveError):
        StatementLog("hdfs://nn/w/orders").has(STATEMENT)


def test_it_is_found_in_a_bucket(s3: S3Server, bucket: str) -> None:
    log = StatementLog(f"{bucket}/lake/orders")
    s3.put(bucket, f"lake/orders/_delta_log/{4:020d}.json", commit())
    assert not log.has(STATEMENT)
    s3.put(bucket, f"lake/orders/_delta_log/{5:020d}.json", commit("r1"))
    assert log.has(STATEMENT)


def test_a_guard_goes_on_when_the_statement_of_a_dead_apply_is_in_the_log(place: Place) -> None:
    lease = place.apply(ttl=0.2)
    lease.gate(Gate.CLOSED)
    lease.announce(STATEMENT)
    put(place, 4, commit("r1"))
    with tablectl.guard(None, str(place), "append", timeout=60):
        last = tail(place.records)
    assert last is not None
    assert last.reason.endswith("and the commit of its statement is in the log")


def test_and_waits_while_it_is_not(place: Place) -> None:
    lease = place.apply(ttl=0.2)
    lease.gate(Gate.CLOSED)
    lease.announce(STATEMENT)
    with pytest.raises(tablectl.GuardTimeout), tablectl.guard(None, str(place), "append", timeout=1):
        pytest.fail("it went through")
