"""Who wrote a table, when and for how long, from its commits; and which of them fail by which statement."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablectl.conflicts.past_writers import PastWriters, is_write, loss_of, past_writers
from tablectl.delta.protocol import Client
from tablectl.model.commit import AppTransaction, Commit
from tablectl.model.commit_contents import LIVE, NEW, CommittedTransaction, Kind, MetadataChange
from tablectl.model.expected_loss import DAYS, LONGEST_WRITE
from tests.builders import make_basis

SPARK = Client("delta-spark", (4, 4, 0))
RUST = Client("delta-rs", (1, 6, 6))
START = 1_793_577_600_000
"""Monday, 2 November 2026, 00:00 UTC."""
MINUTE = 60_000
BASIS = make_basis(vectors=0, files=1, bytes=1)
SET = (CommittedTransaction(kind=Kind.SET_PROPERTIES, metadata=MetadataChange(sets=(("a", "b"),)), data_change=False),)
VECTORS = (
    CommittedTransaction(
        kind=Kind.SET_PROPERTIES,
        metadata=MetadataChange(sets=(("delta.enableDeletionVectors", "true"),)),
        data_change=False,
    ),
)
REORG = (CommittedTransaction(kind=Kind.REORG, added=(NEW,), removed=(LIVE,), data_change=False),)


def commit(version: int, minute: float, operation: str = "MERGE", took: object = None, **facts: Any) -> Commit:
    metrics = {} if took is None else {"executionTimeMs": str(took)}
    given: dict[str, Any] = {"client": SPARK, "changes_data": True, "read_version": version - 1, **facts}
    return Commit(version, round(START + minute * MINUTE), operation, metrics=MappingProxyType(metrics), **given)


def past(*commits: Commit, **more: Any) -> PastWriters:
    found = past_writers(tuple(reversed(commits)), BASIS, "oss", **more)
    assert found is not None
    return found


def durations(found: PastWriters) -> list[float]:
    return [write.seconds for writer in found.writers for write in writer.writes]


def every_ten_minutes(**facts: Any) -> list[Commit]:
    return [commit(number, number * 10, **facts) for number in range(1, 40)]


def failed(found: PastWriters, *statements: tuple[CommittedTransaction, ...]) -> float:
    return max(each.failed for each in loss_of(found, statements))


def test_the_duration_is_the_one_that_the_commit_records() -> None:
    assert durations(past(commit(1, 0, took=30_000), commit(2, 10, took=90_000))) == [90.0, 30.0]


def test_a_commit_that_records_none_is_like_the_others_of_its_writer() -> None:
    found = past(commit(1, 0, took=30_000), commit(2, 10), commit(3, 10.1))
    assert durations(found) == pytest.approx([6, 30, 30])


def test_otherwise_it_is_between_the_first_file_and_the_version_that_it_read() -> None:
    found = past(
        commit(1, 0, "UPDATE", 1000), *(commit(n, n * 60, first_file=START + (n * 60 - 10) * MINUTE) for n in (2, 3))
    )
    assert durations(found) == [1.0, 900, 900] or durations(found)[:2] == [
        900,
        900,
    ]  # a half more than the time since the first file; no more than is possible


def test_a_single_file_tells_little_about_the_duration() -> None:
    found = past(commit(1, 0, "UPDATE", 1), commit(2, 60, first_file=START + 60 * MINUTE))
    assert durations(found) == pytest.approx([60, 0.001])  # between a second and an hour
    assert found.writers[0].writes[0].at_most == 3600


def test_a_restored_file_is_older_than_the_write() -> None:
    found = past(commit(1, 0, "UPDATE", 1), commit(2, 60, first_file=START - 900 * MINUTE))
    assert durations(found)[0] == 60


@pytest.mark.parametrize("took", ["-5", "0", str(2**63), "9" * 400, "NaN", "1e9", "٣", "", "86400001"])
def test_an_impossible_duration_is_not_used(took: str) -> None:
    assert durations(past(commit(1, 0, "UPDATE", 1), commit(2, 60, took=took)))[0] == 60.0


def test_a_readversion_from_the_future_is_not_used() -> None:
    assert durations(past(commit(1, 0), commit(2, 1, read_version=9))) == [60.0, 60.0]  # a minute, if nothing is known


def test_a_set_fails_appends_and_a_reorg_does_not() -> None:
    found = past(*every_ten_minutes(operation="WRITE", took=60_000, blind_append=True))
    assert failed(found, SET) == pytest.approx(0.1, rel=0.1)
    assert failed(found, REORG) == 0


def test_a_client_that_adopts_a_change_loses_nothing_and_an_old_one_does() -> None:
    new = every_ten_minutes(took=60_000)
    old = every_ten_minutes(took=60_000, client=Client("delta-spark", (4, 0, 1)))
    assert failed(past(*new), VECTORS) == 0
    assert failed(past(*old), VECTORS) > 0.05


def test_an_append_of_delta_rs_reads_nothing_although_it_says_that_it_is_not_blind() -> None:
    rust = past(*every_ten_minutes(operation="WRITE", took=60_000, client=RUST, blind_append=False))
    spark = past(*every_ten_minutes(operation="WRITE", took=60_000, blind_append=False))
    assert [each.current.kind for found in (rust, spark) for each in found.writers] == [
        Kind.APPEND,
        Kind.READING_INSERT,
    ]


def test_an_unknown_operation_reads_and_changes_everything() -> None:
    (writer,) = past(*every_ten_minutes(operation="Manual Update")).writers
    assert writer.current.kind is Kind.MERGE


def test_two_statements_close_together_do_not_fail_one_write_twice() -> None:
    found = past(*every_ten_minutes(took=60_000))
    assert failed(found, SET, SET) == pytest.approx(failed(found, SET), rel=0.05)


def test_commits_of_applies_and_of_maintenance_are_not_writes() -> None:
    assert not is_write(commit(3, 1, user_metadata='{"tablectl":1}'))
    assert not is_write(commit(0, 1, "CREATE TABLE AS SELECT"))
    assert not is_write(commit(3, 1, "VACUUM START"))
    assert not is_write(commit(3, 1, "SET TBLPROPERTIES", changes_data=False))
    assert is_write(commit(3, 1, "WRITE"))


def test_a_writer_with_a_guard_can_be_left_out() -> None:
    stream = every_ten_minutes(
        operation="STREAMING UPDATE", took=60_000, transactions=(AppTransaction("q1", 1),), user="ann"
    )
    found = past(*stream)
    assert found.without({"q1"}).writes == found.without({"ann"}).writes == 0
    assert found.without({"q2"}).writes == 39


def test_the_notebooks_of_one_user_are_writers_of_their_own() -> None:
    first = [commit(number, number * 10, job={"notebookId": "1", "clusterId": str(number)}) for number in range(1, 9)]
    other = [commit(number, number * 10, job={"notebookId": "2"}) for number in range(9, 12)]
    found = past(*first, *other).writers
    assert sorted((sorted(each.names), len(each.writes)) for each in found) == [(["1"], 8), (["2"], 3)]


def test_without_a_time_nothing_is_known() -> None:
    assert past_writers((), BASIS, "oss") is None
    assert past_writers((Commit(1, 0, "MERGE"),), BASIS, "oss") is None


def test_one_clock_of_the_future_moves_nothing() -> None:
    writes = every_ten_minutes(took=60_000)
    wrong = [*writes[:-1], commit(40, 10 * 365 * 24 * 60.0, took=60_000)]
    assert past(*wrong).period == past(*writes[:-1]).period
    assert past(*wrong).writes == 38


def test_time_without_writes_until_now_counts() -> None:
    writes = every_ten_minutes(took=60_000)
    later = START / 1000 + 10 * 24 * 3600
    assert past(*writes, now=later).period.seconds > 20 * past(*writes).period.seconds


HOSTILE = st.builds(
    commit,
    st.integers(0, 2**63),
    st.floats(-1e9, 1e9),
    st.sampled_from(["WRITE", "MERGE", "STREAMING UPDATE", "", "x" * 200]),
    st.one_of(st.none(), st.integers(), st.text(max_size=30)),
    read_version=st.one_of(st.none(), st.integers(-1, 2**63)),
    blind_append=st.sampled_from([None, True, False]),
    overwrites=st.booleans(),
    schema_writer=st.booleans(),
    client=st.sampled_from([SPARK, RUST, Client("unknown"), Client("databricks", (14, 3))]),
)


@given(st.lists(HOSTILE, max_size=30), st.sampled_from([SET, REORG, VECTORS]))
def test_no_history_breaks_the_model(commits: list[Commit], made: tuple[CommittedTransaction, ...]) -> None:
    found = past_writers(tuple(commits), BASIS, "oss")
    if found is not None:
        assert found.period.seconds <= DAYS * 86_400
        assert all(0 <= each <= LONGEST_WRITE for each in durations(found))
        week = loss_of(found, [made, made])
        assert all(0 <= each.failed < float("inf") and 0 <= each.seconds < float("inf") for each in week)
