"""The facts of upkeep, from a log."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tablectl.log.checksum import SizeBin, parse_checksum
from tablectl.log.file_facts import facts_of_commits
from tablectl.model.commit import Commit
from tablectl.model.stamp import Stamp
from tablectl.support.json_text import write_json

WEEK = 7 * 86_400_000.0
OURS = Stamp("r1", "p").text()


def commit(version: int, operation: str, at: int, stamp: str = "", **metrics: int) -> Commit:
    made = Commit(version, at, operation, user_metadata=stamp, changes_data=True)
    return replace(made, metrics={key: str(value) for key, value in metrics.items()})


def test_the_last_optimize_and_what_was_written_since_its_run_began() -> None:
    facts = facts_of_commits(
        [
            commit(5, "WRITE", 500, numFiles=7, numOutputBytes=70),
            commit(4, "OPTIMIZE", 400, OURS, numRemovedFiles=3, numRemovedBytes=30, numAddedFiles=1),
            commit(3, "MERGE", 300, numTargetFilesAdded=2, numTargetFilesRemoved=1, numTargetBytesRemoved=9),
            commit(2, "OPTIMIZE", 200, OURS, numRemovedFiles=4, numRemovedBytes=40, numAddedFiles=1),
            commit(1, "WRITE", 100, numFiles=50),
        ],
        keep=WEEK,
        cut=False,
    )
    assert (facts.optimized_at, facts.optimized_by_us, facts.added_since) == (400, True, 9)
    assert facts.removed == ((400, 3, 30), (300, 1, 9), (200, 4, 40))
    assert [(each.name, each.files) for each in facts.writers] == [
        ("WRITE by an unknown client", 57),
        ("MERGE by an unknown client", 2),
    ]


def test_a_commit_without_metrics_may_have_removed_files() -> None:
    """Delta Spark writes none with `spark.databricks.delta.history.metricsEnabled` off."""
    delete = commit(2, "DELETE", 200)
    overwrite = replace(commit(2, "WRITE", 200, numFiles=3), overwrites=True)
    for silent in (delete, overwrite):
        assert facts_of_commits([silent], keep=WEEK, cut=True).unread == "a commit has no metrics of it"
    told = [
        replace(delete, metrics={"numRemovedFiles": "0"}),
        replace(delete, blind_append=True),
        replace(delete, changes_data=False),
        commit(2, "WRITE", 200, numFiles=3),
        commit(0, "CREATE TABLE AS SELECT", 100),
        commit(2, "ROW TRACKING BACKFILL", 200),
    ]
    assert [facts_of_commits([each], keep=WEEK, cut=True).unread for each in told] == [""] * len(told)


def test_files_that_the_last_vacuum_had_to_keep_still_count() -> None:
    day = 86_400_000
    facts = facts_of_commits(
        [
            commit(4, "VACUUM END", 20 * day),
            commit(3, "DELETE", 15 * day, numRemovedFiles=3, numRemovedBytes=30),
            commit(2, "DELETE", 5 * day, numRemovedFiles=8, numRemovedBytes=80),
        ],
        keep=WEEK,
        cut=False,
    )
    assert (facts.vacuumed_at, facts.removed) == (20 * day, ((15 * day, 3, 30),))


def test_a_vacuum_that_failed_does_not_count() -> None:
    failed = replace(commit(4, "VACUUM END", 900), parameters={"status": "FAILED"})
    assert facts_of_commits([failed], keep=WEEK, cut=False).vacuumed_at == 0


def test_metrics_of_a_stranger_are_numbers_or_nothing() -> None:
    hostile = replace(
        commit(1, "WRITE", 1), metrics={"numFiles": "9" * 400, "numOutputBytes": "-1", "numRemovedFiles": "½"}
    )
    facts = facts_of_commits([hostile], keep=WEEK, cut=False)
    assert (facts.writers, facts.removed) == ((), ())


def checksum(**more: Any) -> bytes:
    body = {
        "txnId": "t",
        "protocol": {"minReaderVersion": 1, "minWriterVersion": 2},
        "metadata": {"id": "i", "schemaString": "{}", "partitionColumns": [], "configuration": {}},
        "numFiles": 3,
        "tableSizeBytes": 300,
        **more,
    }
    return write_json(body).encode()


def histogram(**more: Any) -> dict[str, Any]:
    return {"sortedBinBoundaries": [0, 100, 200], "fileCounts": [2, 0, 1], "totalBytes": [50, 0, 250], **more}


def test_a_checksum_has_the_sizes_of_the_files() -> None:
    for key in ("fileSizeHistogram", "histogramOpt"):
        found = parse_checksum(checksum(**{key: histogram()}))
        assert found is not None
        assert found.histogram == (SizeBin(100, 2, 50), SizeBin(200, 0, 0), SizeBin(float("inf"), 1, 250))


def test_a_histogram_that_does_not_add_up_is_ignored() -> None:
    wrong = (
        histogram(fileCounts=[2, 0, 2]),
        histogram(fileCounts=[2, 1]),
        histogram(sortedBinBoundaries=[200, 100, 0]),
        histogram(totalBytes=["50", 0, 250]),
        histogram(fileCounts=[]),
        [1, 2, 3],
        histogram(sortedBinBoundaries=[0] * 5000, fileCounts=[0] * 5000, totalBytes=[0] * 5000),
    )
    for each in wrong:
        found = parse_checksum(checksum(fileSizeHistogram=each))
        assert found is not None
        assert found.histogram is None


def test_files_that_delta_rs_removed_are_counted_without_bytes() -> None:
    found = facts_of_commits([commit(1, "DELETE", 100, num_removed_files=6, num_added_files=1)], keep=0, cut=False)
    assert found.removed == ((100, 6, 0),)
