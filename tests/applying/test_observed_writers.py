"""Writers, as a table's history knows them."""

from __future__ import annotations

from typing import Any

import pytest

from tablectl.applying.observed_writers import active_near, is_writer, name_of, possible_failures, writers_seen
from tablectl.delta.protocol import Client
from tablectl.model.commit import AppTransaction, Commit
from tablectl.model.plan import Phase
from tablectl.model.run_report import StatementRun, WriterRun
from tablectl.model.stamp import Stamp

SPARK = Client("delta-spark", (4, 4, 0))


def commit(version: int, operation: str = "WRITE", user: str = "etl", app: str = "", **more: Any) -> Commit:
    transactions = (AppTransaction(app, 1),) if app else ()
    facts: dict[str, Any] = {"changes_data": True, "client": SPARK, "transactions": transactions, **more}
    return Commit(version, 1000 + version, operation, user, **facts)


@pytest.mark.parametrize(
    ("one", "name"),
    [
        (commit(1), "WRITE by etl"),
        (commit(1, user=""), "WRITE by Delta Spark 4.4.0"),
        (commit(1, job={"jobId": "12", "jobName": "nightly", "clusterId": "a"}), "WRITE by job nightly"),
        (commit(1, job={"jobId": "12", "notebookId": "42", "clusterId": "b"}), "WRITE by job 12"),
        (commit(1, job={"notebookId": "42", "clusterId": "b"}), "WRITE by notebook 42"),
        (commit(1, user="", job={"clusterId": "b"}), "WRITE by cluster b"),
        (commit(1, "STREAMING UPDATE", app="4f1c"), "STREAMING UPDATE of 4f1c"),
        (commit(1, "", ""), "commits by Delta Spark 4.4.0"),
        (commit(1, "x" * 500, "y" * 500), f"{'x' * 59}… by {'y' * 59}…"),
    ],
)
def test_what_tells_writers_apart(one: Commit, name: str) -> None:
    assert name_of(one) == name


@pytest.mark.parametrize(
    ("one", "writes"),
    [
        (commit(1), True),
        (commit(0, "CREATE TABLE AS SELECT"), False),
        (commit(1, "SET TBLPROPERTIES", changes_data=False), False),
        (commit(1, "REORG", user_metadata=Stamp("r", "d").text()), False),
        (commit(1, user_metadata="nightly"), True),
    ],
)
def test_who_is_a_writer(one: Commit, writes: bool) -> None:
    assert is_writer(one) is writes


def test_the_writers_of_some_commits_by_name() -> None:
    before = [commit(1), commit(2, "MERGE"), commit(3), commit(4, "STREAMING UPDATE", app="4f1c")]
    assert writers_seen(before) == (
        WriterRun(name="MERGE by etl", commits=1, last=1002),
        WriterRun(name="STREAMING UPDATE of 4f1c", commits=1, last=1004),
        WriterRun(name="WRITE by etl", commits=2, last=1003),
    )


def test_no_history_knows_no_one() -> None:
    assert writers_seen([]) == ()


MINUTE = 60_000
HOUR = 60 * MINUTE


def at(*minutes: int, user: str = "etl") -> list[Commit]:
    """Commits of one writer at these minutes."""
    return [
        Commit(number, minute * MINUTE, "WRITE", user, SPARK, changes_data=True)
        for number, minute in enumerate(minutes, 1)
    ]


@pytest.mark.parametrize(
    ("minutes", "window", "near"),
    [
        ((999,), (1000, 1001), True),  # just before it
        ((995,), (1000, 1001), False),  # one commit has no rhythm
        ((990, 990, 991), (1000, 1001), False),  # a table that was filled, and is idle
        ((1002,), (1000, 1001), True),  # just after it
        ((985, 970, 955), (1000, 1001), True),  # every quarter of an hour
        ((900, 885, 870), (1000, 1001), False),  # and silent since
        ((0, 1440, 2880), (4320, 4321), True),  # every night, and now
        ((0, 1440, 2880), (4300, 4301), True),  # a little early
        ((0, 1440, 2880), (3600, 3601), False),  # every night, and it is noon
        ((0, 1440, 2880), (3600, 4300), True),  # from noon to night
        ((0, 1440, 2880), (30_000, 30_001), False),  # a job that was given up
    ],
)
def test_who_was_at_work_near_a_window(minutes: tuple[int, ...], window: tuple[int, int], near: bool) -> None:
    since, until = (each * MINUTE for each in window)
    assert active_near(at(*minutes), since, until) == (frozenset({"WRITE by etl"}) if near else frozenset())


def test_our_own_commits_are_not_writers_at_work() -> None:
    ours = commit(3, user_metadata=Stamp("r", "d").text())
    assert active_near([ours], 0, 2000) == frozenset()


def sent_at(minute: int) -> StatementRun:
    return StatementRun(
        id="closed", sql="", phase=Phase.CLOSED, milliseconds=1000, at=minute * MINUTE, fails="all writes fail once"
    )


@pytest.mark.parametrize(("minute", "named"), [(1000, True), (1100, False), (1300, True)])
def test_a_writer_between_two_statements_for_which_the_gate_was_open_did_not_fail(minute: int, *, named: bool) -> None:
    """A table was copied for hours between them."""
    sent, commits = (sent_at(1000), sent_at(1300)), at(minute)
    found = possible_failures(sent, (), commits, writers_seen(commits), 1301 * MINUTE)
    assert [each.reason for each in found] == ["no guard was seen"] * named
