"""What jobs cost each other, by replaying their past writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tablectl.delta.names import TableName
from tablectl.delta.protocol import Client
from tablectl.insight.advice.conflict_loss import Layout, conflict_loss
from tablectl.insight.advice.jobs import Jobs, find_jobs
from tablectl.insight.conflict_context import ConflictContext
from tablectl.log.reader import read_table
from tests.insight.advice.job_log import MINUTE, SECOND, JobLog

SPARK = ConflictContext(client=Client("delta-spark", (4, 4, 0)))


def jobs_of(log: JobLog) -> Jobs:
    found = find_jobs(log.past().commits)
    assert found is not None
    return found


@pytest.fixture
def busy(tmp_path: Path) -> JobLog:
    """Four jobs, each with a region of its own, that never rest."""
    log = JobLog(tmp_path / "t")
    log.regions(rounds=10)
    return log


def test_writers_of_their_own_regions_are_jobs_of_their_own(busy: JobLog) -> None:
    found = jobs_of(busy)
    assert [len(job.writes) for job in found.jobs] == [10, 10, 10, 10]
    assert found.jobs[0].name == "UPDATE by region, id (Delta Spark 4.4.0), 1 of 4"


def test_a_writer_that_mostly_fails_and_has_few_writes_does_not_hide_the_jobs_of_the_others(busy: JobLog) -> None:
    busy.wait(MINUTE)
    busy.write("UPDATE", "((region#1 = r9) AND (id#2L > 0))", took=MINUTE)
    assert [len(job.writes) for job in jobs_of(busy).jobs] == [10, 10, 10, 10, 1]


def test_literals_that_are_used_once_are_one_job(tmp_path: Path) -> None:
    log = JobLog(tmp_path / "t")
    for day in [0, 0, 0, 1, 2, 3, 4]:
        log.wait(MINUTE)
        log.write("UPDATE", f"(day#1 = {day})", took=SECOND)
    assert [len(job.writes) for job in jobs_of(log).jobs] == [7]


def test_jobs_that_never_rest_fail_each_other_on_a_table_without_partitions(busy: JobLog) -> None:
    loss = conflict_loss(jobs_of(busy), Layout(), SPARK)
    assert loss.conflicting
    assert loss.failed > 1000
    assert not any(pair.failing == pair.committing for pair in loss.pairs), "a job waits for itself"


def test_partitions_by_the_column_of_their_conditions_end_all_conflicts(busy: JobLog) -> None:
    jobs = jobs_of(busy)
    assert conflict_loss(jobs, Layout.assumed_by("region", jobs), SPARK).seconds == 0
    assert conflict_loss(jobs, Layout.assumed_by("id", jobs), SPARK).seconds > 0, "no job restricts it to a value"


def admitted_in_europe(
    place: Path, columns: tuple[str, ...], *partitions: dict[str, str]
) -> list[dict[str, str | None]]:
    """The partitions that the condition `region = eu` leaves, of those that updates touched."""
    log = JobLog(place, columns={"region": "string", "country": "string"}, partitions=columns)
    for each in partitions:
        log.wait(MINUTE)
        log.write("UPDATE", "(region#1 = eu)", took=8 * SECOND, partition=each)
    jobs = jobs_of(log)
    left = Layout.of(read_table(TableName("", (str(place),)), str(place)), jobs).admitted(jobs.jobs[0].writes[0])
    return [dict(zip(columns, each, strict=True)) for each in left or ()]


@pytest.mark.parametrize("columns", [("region", "country"), ("country", "region")])
def test_a_condition_leaves_the_same_partitions_in_any_order_of_the_columns(
    tmp_path: Path, columns: tuple[str, ...]
) -> None:
    germany, canada = {"region": "eu", "country": "de"}, {"region": "us", "country": "ca"}
    assert admitted_in_europe(tmp_path / "t", columns, germany, canada) == [germany]


def test_a_file_whose_partition_the_log_does_not_tell_may_be_in_any(tmp_path: Path) -> None:
    left = admitted_in_europe(tmp_path / "t", ("region", "country"), {}, {"region": "us", "country": "ca"})
    assert left == [{"region": None, "country": None}]


def test_a_job_that_runs_twice_at_once_conflicts_with_itself(tmp_path: Path) -> None:
    log = JobLog(tmp_path / "t")
    for _ in range(10):
        log.wait(10 * SECOND)
        log.write("MERGE", "(s.id#1 = id#2)", took=8 * SECOND)
        log.write("MERGE", "(s.id#1 = id#2)", took=8 * SECOND, read=log.write("WRITE", blind=True) - 2)
    loss = conflict_loss(jobs_of(log), Layout(), SPARK)
    assert any(pair.failing == pair.committing for pair in loss.pairs)


def test_blind_appends_conflict_with_readers_only_under_serializable(tmp_path: Path) -> None:
    log = JobLog(tmp_path / "t")
    for _ in range(20):
        log.wait(MINUTE)
        log.write("WRITE", took=SECOND, blind=True)
        log.wait(MINUTE)
        log.write("MERGE", "(s.id#1 = id#2)", took=MINUTE)
    jobs = jobs_of(log)
    assert conflict_loss(jobs, Layout(), SPARK).seconds > 0
    relaxed = SPARK.with_property("delta.isolationLevel", "WriteSerializable")
    assert conflict_loss(jobs, Layout(), relaxed).seconds == 0


def test_jobs_of_different_hours_do_not_meet(tmp_path: Path) -> None:
    log = JobLog(tmp_path / "t")
    for day in range(20):
        log.now = 1_793_577_600_000 + day * 86_400_000 + 2 * 3_600_000
        log.write("MERGE", "(s.id#1 = id#2)", took=30 * MINUTE)
        log.wait(8 * 3_600_000)
        log.write("DELETE", "(id#2 < 3)", took=30 * MINUTE)
    loss = conflict_loss(jobs_of(log), Layout(), SPARK)
    assert (loss.conflicting, loss.seconds) == (True, 0)
