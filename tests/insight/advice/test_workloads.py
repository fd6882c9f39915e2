"""Advice for whole workloads: what an engineer would say who looks at the table, and where that is nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.insight.advice.job_log import COLUMNS, DAY, GB, MINUTE, SECOND, JobLog, advised, codes

MB = 1_000_000
_USER = {"user": "string", "id": "long", "v": "long"}
_WIDE = {**{f"c{number}": "string" for number in range(40)}, "key": "long"}


def services(log: JobLog, column: str, values: list[str], *, size: int = 100 * MB) -> JobLog:
    """Services that each update the rows of their own value of a column, one after the other, all day."""
    for _ in range(20):
        for value in values:
            log.wait(8 * SECOND)
            condition = f"(({column}#12 = {value}) AND (id#13L > 0))"
            log.write("UPDATE", condition, took=8 * SECOND, size=size)
    return log


# Partitions


def test_regions_of_which_there_are_few_become_partitions(tmp_path: Path) -> None:
    log = services(JobLog(tmp_path / "t"), "region", ["r0", "r1", "r2", "r3"])
    (advice,), _ = advised(log)
    assert (advice.code, advice.declare[1]) == ("A02", ("partitioning", "", ("region",)))
    assert advice.leaves == pytest.approx(0.0)
    price = " ".join(advice.cost)
    assert "up to 8 partitions by the statistics" in price
    assert "UPDATE by region, id (Delta Spark 4.4.0), 1 of 4 has the most to lose: with a guard it waits" in price
    assert "saves 0 a week if one does" in price, "the rows of an UPDATE may move, and then nothing is gained"


@pytest.mark.parametrize(
    ("columns", "column", "values", "ranges", "rows", "why"),
    [
        (_USER, "id", ["1", "2", "3"], {"id": (0, 999_999)}, 3_000_000, "allow more than 1,000 values of id"),
        (_USER, "user", ["a", "b", "c"], {"user": ("a", "z")}, 3_000_000, "allow more than 1,000 values of user"),
        (_USER, "user", ["a", "b", "c"], {}, 4, "how many values user has is unknown"),
        (COLUMNS, "day", ["2026-11-01", "2026-11-02"], {"day": ("2025-01-01", "2026-11-02")}, 10**6, "small files"),
    ],
    ids=["a million users", "a million names", "no statistics", "two years of days"],
)
def test_columns_of_many_values_do_not_become_partitions(
    tmp_path: Path,
    columns: dict[str, str],
    column: str,
    values: list[str],
    ranges: dict[str, tuple[object, object]],
    rows: int,
    why: str,
) -> None:
    log = services(JobLog(tmp_path / "t", columns=columns, ranges=ranges, rows=rows), column, values)
    advice, untold = advised(log, bytes=40 * GB)
    assert [each.code for each in advice] == ["A01"]
    assert untold == ()
    assert why in advice[0].evidence[-1], "one verdict: what was tried, and why not"


@pytest.mark.parametrize(
    ("columns", "column", "values", "ranges"),
    [
        ({"tenant": "integer", "id": "long"}, "tenant", ["1", "2", "3"], {"tenant": (1, 12)}),
        (COLUMNS, "day", ["2026-11-01", "2026-11-02"], {"day": ("2026-10-25", "2026-11-02")}),
        ({"flag": "boolean", "id": "long"}, "flag", ["true", "false"], {}),
    ],
    ids=["twelve tenants", "nine days", "a flag"],
)
def test_numbers_days_and_flags_of_few_values_become_partitions(
    tmp_path: Path, columns: dict[str, str], column: str, values: list[str], ranges: dict[str, tuple[object, object]]
) -> None:
    log = services(JobLog(tmp_path / "t", columns=columns, ranges=ranges, rows=10**6), column, values)
    (advice,), _ = advised(log, bytes=40 * GB)
    assert advice.declare[1] == ("partitioning", "", (column,))


def test_a_column_that_an_update_changes_does_not_become_a_partition(tmp_path: Path) -> None:
    log = JobLog(tmp_path / "t", columns={"status": "string", "id": "long"}, ranges={"status": ("done", "open")})
    for _ in range(20):
        for before, after in (("new", "open"), ("open", "done"), ("done", "gone")):
            log.wait(8 * SECOND)
            log.write("UPDATE", f"(status#12 = {before})", took=8 * SECOND, ranges={"status": (after, after)})
    advice, untold = advised(log)
    assert [each.code for each in advice] == ["A01"]
    assert untold == ()
    assert "jobs change status" in advice[0].evidence[-1]


def test_a_column_is_known_by_the_name_that_it_had(tmp_path: Path) -> None:
    log = services(JobLog(tmp_path / "t"), "region", ["r0", "r1", "r2", "r3"])
    first = log.path / "_delta_log" / f"{0:020d}.json"
    mapped = {"delta.columnMapping.id": 2, "delta.columnMapping.physicalName": "region"}
    lines = [json.loads(each) for each in first.read_text().splitlines()]
    for each in lines:
        if "metaData" in each:
            schema = json.loads(each["metaData"]["schemaString"])
            for column in schema["fields"]:
                named = {"delta.columnMapping.physicalName": column["name"], "delta.columnMapping.id": 1}
                column["metadata"] = mapped if column["name"] == "region" else named
                column["name"] = "area" if column["name"] == "region" else column["name"]
            each["metaData"]["schemaString"] = json.dumps(schema)
            each["metaData"]["configuration"] = {"delta.columnMapping.mode": "name"}
        if "protocol" in each:
            each["protocol"] = {"minReaderVersion": 2, "minWriterVersion": 5}
    first.write_text("".join(json.dumps(each) + "\n" for each in lines))
    (advice,), untold = advised(log)
    assert ("partitioning", "", ("area",)) in advice.declare, untold


def test_a_rewrite_that_is_never_paid_back_is_not_advised(tmp_path: Path) -> None:
    log = services(JobLog(tmp_path / "t"), "region", ["r0", "r1", "r2", "r3"], size=10)
    (advice,), _ = advised(log, bytes=1000 * 1000 * GB)
    assert advice.code == "A01"
    assert "paid back after" in advice.evidence[-1]


# What cannot be scheduled


def test_a_stream_is_started_between_the_others_and_a_load_of_once_is_not_scheduled(tmp_path: Path) -> None:
    log = JobLog(tmp_path / "t")
    log.write("WRITE", took=SECOND)
    for number in range(60):
        log.wait(70 * SECOND)
        log.write("MERGE", "(s.id#1L = id#2L)", took=60 * SECOND, user="nightly")
        log.wait(SECOND)
        version = log.write("STREAMING UPDATE", took=20 * SECOND)
        file = log.path / "_delta_log" / f"{version:020d}.json"
        txn = {"txn": {"appId": "11111111-aaaa", "version": number, "lastUpdated": log.now}}
        file.write_text(file.read_text() + json.dumps(txn) + "\n")
    advice, _ = advised(log)
    (apart,) = [each for each in advice if each.code == "A01"]
    assert "stream 11111111 never ends: start it with Trigger.AvailableNow" in apart.do
    assert "WRITE" not in apart.do
    assert "INSERT" not in apart.do
    assert apart.do.startswith("schedule apart, or in one workflow: MERGE")


# Rewrites, layout, statistics


def rewriting(log: JobLog, *, copied: int, changed: int, operation: str = "MERGE") -> JobLog:
    """A job that rewrites a gigabyte each hour."""
    names = (
        ("numTargetRowsCopied", "numTargetRowsUpdated") if operation == "MERGE" else ("numCopiedRows", "numDeletedRows")
    )
    for _ in range(40):
        log.wait(60 * MINUTE)
        metrics = dict(zip(names, map(str, (copied, changed)), strict=True))
        log.write(operation, "(id#1L = 7)", took=60 * SECOND, metrics=metrics, size=GB)
    return log


def ordered(log: JobLog, *, runs: int = 8, added: int = 10 * MB) -> JobLog:
    """A table that OPTIMIZE … ZORDER BY rewrites each night."""
    for _ in range(runs):
        for _ in range(6):
            log.wait(4 * 60 * MINUTE)
            log.write("WRITE", took=60 * SECOND, size=added, blind=True)
        log.write("OPTIMIZE", took=600 * SECOND, size=20 * GB, operationParameters={"zOrderBy": '["region"]'})
    return log


def searching(log: JobLog, column: str) -> JobLog:
    """A MERGE every three hours that opens all files to find its rows."""
    for _ in range(40):
        log.wait(180 * MINUTE)
        metrics = {"scanTimeMs": str(100 * SECOND)}
        log.write("MERGE", f"(s.k#1L = {column}#2L)", took=100 * SECOND, metrics=metrics, size=10 * GB)
    return log


def writing(log: JobLog, pause: int, count: int = 60) -> JobLog:
    """Appends that read nothing."""
    for _ in range(count):
        log.wait(pause)
        log.write("WRITE", took=SECOND, blind=True)
    return log


def erasing(log: JobLog, days: int, *, purged: bool = False) -> JobLog:
    """A DELETE that marks rows in deletion vectors, and appends on the days after it."""
    log.write("DELETE", "(id#1L = 7)", took=SECOND, metrics={"numDeletionVectorsAdded": "1", "numDeletedRows": "1"})
    if purged:
        log.wait(DAY)
        log.write("REORG", took=SECOND)
    return writing(log, DAY, days)


_INTERVAL = "delta.checkpointInterval"


@pytest.mark.parametrize(
    ("make", "state", "code", "declared"),
    [
        (lambda at: rewriting(JobLog(at), copied=10**9, changed=100), {}, "A15", ("deletion_vectors", "", "enabled")),
        (
            lambda at: rewriting(JobLog(at), copied=10**6, changed=1, operation="DELETE"),
            {},
            "A15",
            ("deletion_vectors", "", "enabled"),
        ),
        (lambda at: ordered(JobLog(at)), {"bytes": 20 * GB}, "A16", ("clustering", "", ("region",))),
        (
            lambda at: writing(JobLog(at, properties={_INTERVAL: "1000"}), MINUTE),
            {},
            "A17",
            ("properties", _INTERVAL, "100"),
        ),
        (
            lambda at: writing(JobLog(at, properties={"delta.logRetentionDuration": "interval 365 days"}), MINUTE),
            {},
            "A17",
            ("retention", "log", "30 days"),
        ),
        (
            lambda at: searching(JobLog(at, columns=_WIDE, ranges={}), "key"),
            {"files": 2000, "bytes": 200 * GB},
            "A18",
            ("properties", "delta.dataSkippingNumIndexedCols", "41"),
        ),
        (
            lambda at: searching(
                JobLog(at, columns=COLUMNS, properties={"delta.dataSkippingStatsColumns": "region,day"}), "id"
            ),
            {"files": 2000, "bytes": 200 * GB},
            "A18",
            ("data_skipping", "", ("region", "day", "id")),
        ),
        (lambda at: erasing(JobLog(at, features=("deletionVectors",)), 25), {"vectors": 1}, "A19", None),
    ],
    ids=[
        "a MERGE that copies 10^9 rows",
        "a DELETE that copies a million rows",
        "ZORDER BY each night",
        "a checkpoint each thousand commits",
        "a log that is kept for a year",
        "a key beyond the first 32 columns",
        "a key that the list leaves out",
        "rows that were deleted long ago",
    ],
)
def test_what_is_advised(
    tmp_path: Path,
    make: Callable[[Path], JobLog],
    state: dict[str, Any],
    code: str,
    declared: tuple[str, str, object] | None,
) -> None:
    advice, _ = advised(make(tmp_path / "t"), **state)
    assert [each.code for each in advice] == [code]
    assert advice[0].declare == ((declared,) if declared else ())
    assert all((advice[0].cost, advice[0].evidence, advice[0].computed))


@pytest.mark.parametrize(
    ("make", "state"),
    [
        (lambda at: rewriting(JobLog(at), copied=1000, changed=900), {}),
        (
            lambda at: rewriting(
                JobLog(at, properties={"delta.enableDeletionVectors": "false"}), copied=10**9, changed=100
            ),
            {},
        ),
        (lambda at: ordered(JobLog(at), runs=2), {}),
        (lambda at: ordered(JobLog(at), added=30 * GB), {}),
        (lambda at: ordered(JobLog(at, partitions=("day",))), {}),
        (lambda at: writing(JobLog(at, properties={_INTERVAL: "100"}), MINUTE), {}),
        (lambda at: writing(JobLog(at, properties={"delta.logRetentionDuration": "interval 365 days"}), DAY, 20), {}),
        (lambda at: searching(JobLog(at), "id"), {"files": 20}),
        (lambda at: erasing(JobLog(at, features=("deletionVectors",)), 3), {"vectors": 1}),
        (lambda at: erasing(JobLog(at, features=("deletionVectors",)), 25, purged=True), {"vectors": 1}),
        (lambda at: writing(JobLog(at), 10 * MINUTE), {}),
        (lambda at: services(JobLog(at, partitions=("region",)), "region", ["r0"]), {}),
    ],
    ids=[
        "a MERGE that changes what it rewrites",
        "vectors that someone turned off",
        "ZORDER BY now and then",
        "ZORDER BY of new data",
        "ZORDER BY inside of partitions",
        "a checkpoint each hundred commits",
        "a year of few commits",
        "a small table",
        "rows that were deleted this week",
        "rows that were deleted and purged",
        "appends alone",
        "one job on its own partition",
    ],
)
def test_where_nothing_is_to_be_done(tmp_path: Path, make: Callable[[Path], JobLog], state: dict[str, Any]) -> None:
    assert codes(make(tmp_path / "t"), **state) == []
