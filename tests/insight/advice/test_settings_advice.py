"""Advice on what could be lost: retention against declared streams, and appends that read first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tablectl.attributes.policy import Policy
from tablectl.insight.advice.advice_records import Advice, TableFacts
from tablectl.insight.advice.advise import advise
from tablectl.insight.advice.jobs import find_jobs
from tablectl.model.stream_progress import StreamPosition, StreamState, UnknownStream
from tablectl.model.table_options import NO_OPTIONS
from tests.builders import read_path
from tests.insight.advice.job_log import DAY, MINUTE, JobLog

DATABRICKS = {"engineInfo": "Databricks-Runtime/15.4.x-scala2.12", "isolationLevel": "WriteSerializable"}


def advised(log: JobLog, *streams: StreamState) -> tuple[Sequence[Advice], Sequence[str]]:
    past = log.past()
    facts = TableFacts(
        live=read_path(str(log.path)),
        past=past,
        jobs=find_jobs(past.commits),
        dialect="oss",
        policy=Policy(),
        options=NO_OPTIONS,
        streams=streams,
    )
    return advise(facts)


def stream(read: int | None) -> StreamPosition:
    return StreamPosition("fraud", "/c", "q", 7, 0, read)


def daily(path: Path, **properties: str) -> JobLog:
    """A table that gets one append a day: version 2 is 19 days older than version 21."""
    log = JobLog(path, properties={f"delta.{key}": value for key, value in properties.items()})
    for _ in range(20):
        log.wait(DAY)
        log.write("WRITE", blind=True)
    return log


def test_a_stream_that_is_further_behind_than_the_retention_is_a_risk(tmp_path: Path) -> None:
    (first, *_), _ = advised(daily(tmp_path / "t", logRetentionDuration="interval 10 days"), stream(6))
    assert first.code == "A13"
    assert first.declare == (("retention", "deleted_files", "28 days"), ("retention", "log", "28 days"))
    assert (first.benefit, first.amount) == ("days of risk", 11.0)  # 14 - 10, and 14 - 7
    assert first.evidence == (
        "fraud is 14.0 days behind the newest commit",
        "the table keeps the log for 10 days and deleted files for 7 days",
    )


def test_files_that_are_kept_for_longer_keep_the_log_as_long(tmp_path: Path) -> None:
    (first, *_), _ = advised(daily(tmp_path / "t"), stream(2))  # 18 days behind, and the log is kept for 30
    assert first.declare == (("retention", "deleted_files", "36 days"), ("retention", "log", "36 days"))


@pytest.mark.parametrize("read", [21, 16])
def test_a_stream_that_is_near_needs_nothing(tmp_path: Path, read: int) -> None:
    assert [each.code for each in advised(daily(tmp_path / "t"), stream(read))[0]] == []


def test_a_retention_that_is_long_enough_needs_nothing(tmp_path: Path) -> None:
    log = daily(tmp_path / "t", deletedFileRetentionDuration="interval 20 days")
    assert advised(log, stream(6))[0] == ()


def test_a_stream_whose_position_is_unknown_is_said(tmp_path: Path) -> None:
    found, untold = advised(daily(tmp_path / "t"), UnknownStream("fraud", "/c", "access is denied"))
    assert found == ()
    assert "the stream fraud has an unknown position: access is denied" in untold


def appends(path: Path, *, late: bool, **info: Any) -> JobLog:
    log = JobLog(path)
    for _ in range(40):
        log.wait(30 * MINUTE)
        version = log.write("WRITE", blind=False, **info)
        if late:
            log.write("WRITE", blind=False, read=version - 1, **info)
    return log


def test_appends_that_missed_what_they_read_may_need_serializable(tmp_path: Path) -> None:
    found, _ = advised(appends(tmp_path / "t", late=True, **DATABRICKS))
    (ledger,) = [each for each in found if each.code == "A14"]
    assert ledger.declare == (("isolation", "", "Serializable"),)
    assert ledger.evidence == (
        "80 appends read the table before they wrote, at WriteSerializable",
        "40 of them committed after another write that they had not read",
    )


def test_appends_that_saw_everything_or_are_serializable_already_need_nothing(tmp_path: Path) -> None:
    for name, late, info in (("a", False, DATABRICKS), ("b", True, {**DATABRICKS, "isolationLevel": "Serializable"})):
        assert "A14" not in [each.code for each in advised(appends(tmp_path / name, late=late, **info))[0]]
