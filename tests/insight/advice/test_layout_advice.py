"""Advice on files and on the protocol, from the state of a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tablectl.model.file_layout import ClusteringState, FileGroup, PartitionLayout
from tests.insight.advice.job_log import GB, MINUTE, SECOND, JobLog, advised, codes


@pytest.fixture
def log(tmp_path: Path) -> JobLog:
    return JobLog(tmp_path / "t")


def searching(log: JobLog, scan: int, removes: int = 2) -> JobLog:
    for _ in range(40):
        log.wait(180 * MINUTE)
        metrics = {"scanTimeMs": str(scan)}
        log.write(
            "MERGE", "((s.id#1L = id#2L) AND (v#3 > 0))", took=scan, metrics=metrics, removes=removes, size=10 * GB
        )
    return log


def test_writers_that_search_many_files_get_clustering_by_their_columns(log: JobLog) -> None:
    (first, *_), _ = advised(searching(log, 100 * SECOND), files=2000, bytes=2000 * GB)
    assert (first.code, first.declare) == ("A07", (("clustering", "", ("id", "v")),))
    assert first.benefit == "writer-seconds a week"


@pytest.mark.parametrize(
    "state", [{"files": 20}, {"files": 2000, "partition_columns": ("day",)}, {"files": 2000, "clustering": (("id",),)}]
)
def test_small_partitioned_and_clustered_tables_get_no_clustering(log: JobLog, state: dict[str, Any]) -> None:
    assert "A07" not in codes(searching(log, 100 * SECOND), **{"bytes": 2000 * GB, **state})


def test_writers_that_touch_all_files_gain_nothing_by_clustering(log: JobLog) -> None:
    assert "A07" not in codes(searching(log, 100 * SECOND, removes=1000), files=1000, bytes=1000 * GB)


def test_data_outside_of_the_clustering_is_to_be_optimized(log: JobLog) -> None:
    parts = (FileGroup(columns=("id",), files=1, bytes=GB), FileGroup(columns=None, files=9, bytes=9 * GB))
    marks = ClusteringState(parts=parts)
    assert codes(log, clustering=(("id",),), marks=marks) == ["A08"]
    assert codes(log, clustering=(("id",),), marks=ClusteringState(parts=parts[:1])) == []


def test_small_files_are_compacted_unless_the_table_says_otherwise(log: JobLog, tmp_path: Path) -> None:
    log.write("WRITE", took=SECOND, blind=True)
    (advice,), _ = advised(log, files=5000, bytes=5000)
    assert (advice.code, advice.declare) == ("A09", (("properties", "delta.autoOptimize.autoCompact", "true"),))
    assert any("INSERT (Delta Spark 4.4.0) added 1 of" in each for each in advice.evidence)
    other = JobLog(tmp_path / "off", properties={"delta.autoOptimize.autoCompact": "false"})
    assert codes(other, files=5000, bytes=5000) == []
    assert codes(log, files=5000, bytes=5000 * GB) == []


def test_many_deletion_vectors_are_purged(log: JobLog) -> None:
    assert codes(log, files=300, vectors=100, bytes=300 * GB) == ["A10"]
    assert codes(log, files=300, vectors=80, bytes=300 * GB) == []


def test_many_small_partitions_become_clustering_unless_they_keep_jobs_apart(tmp_path: Path) -> None:
    layout = PartitionLayout(400, 1_000_000, (("region", 400),))
    calm = JobLog(tmp_path / "calm", partitions=("region",))
    assert codes(calm, layout=layout) == ["A11"]
    busy = JobLog(tmp_path / "busy", partitions=("region",))
    busy.regions(rounds=20)
    assert codes(busy, layout=layout) == []


def test_jobs_that_do_not_name_their_partitions_are_told_to(tmp_path: Path) -> None:
    log = JobLog(tmp_path / "t", partitions=("region",))
    for _ in range(20):
        for region in ("a", "b"):
            log.wait(20 * SECOND)
            log.write(
                "MERGE",
                "(s.id#1L = id#2L)",
                took=60 * SECOND,
                partition={"region": region},
                user=region,
                userName=region,
            )
    advice, _ = advised(log)
    assert [each.code for each in advice] == ["A03"]
    assert "add a condition on region" in advice[0].do


def test_what_a_plan_would_refuse_is_not_advised_and_says_why(tmp_path: Path) -> None:
    log = JobLog(
        tmp_path / "t", features=("rowTracking", "domainMetadata"), properties={"delta.enableRowTracking": "true"}
    )
    log.regions(rounds=12)
    (advice,), _ = advised(log)
    assert advice.code == "A01"
    assert "tried: partition by region" in advice.evidence[-1]
    assert "a plan refuses it, because" in advice.evidence[-1]


def test_used_and_implied_features_are_not_surplus(tmp_path: Path) -> None:
    used = JobLog(tmp_path / "t", features=("deletionVectors",), properties={"delta.enableDeletionVectors": "true"})
    assert codes(used) == []
    assert codes(JobLog(tmp_path / "u")) == [], "a protocol by numbers lists no features"


def test_commits_without_times_tell_nothing(tmp_path: Path) -> None:
    log = JobLog(tmp_path / "t")
    for file in (log.path / "_delta_log").glob("*.json"):
        file.write_text(file.read_text().replace('"timestamp"', '"no"'))
    assert advised(log)[1] == ("the commits have no usable times: conflicts are unknown",)
