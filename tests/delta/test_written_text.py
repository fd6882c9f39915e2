"""delta-rs obeys the text that tablectl writes, and ignores others that Delta Spark takes (delta-1.17)."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError

from tablectl.delta.properties import written_text

_DAY = 86_400
_ROWS = pa.table({"id": [1, 2]})
_LOG, _FILES, _APPEND = "delta.logRetentionDuration", "delta.deletedFileRetentionDuration", "delta.appendOnly"


def commits(place: Path) -> list[Path]:
    return sorted((place / "_delta_log").glob("*.json"))


def edit(commit: Path, action: str, **changed: Any) -> None:
    lines = [json.loads(line) for line in commit.read_text().splitlines()]
    for each in lines:
        if action in each:
            each[action] |= changed
    commit.write_text("".join(f"{json.dumps(each)}\n" for each in lines))


def create(place: Path, key: str, text: str) -> DeltaTable:
    """A table with a property as Spark stores it, as typed. delta-rs itself rejects some of the texts."""
    write_deltalake(place, _ROWS)
    (created,) = commits(place)
    edit(created, "metaData", configuration={key: text})
    edit(created, "protocol", minReaderVersion=1, minWriterVersion=2)
    return DeltaTable(place)


def commits_kept(place: Path, text: str) -> int:
    """How many of nine commits of 45 days ago a clean-up of the log keeps."""
    table = create(place, _LOG, text)
    for _ in range(8):
        write_deltalake(table, _ROWS, mode="append")
    old = time.time() - 45 * _DAY
    for commit in commits(place):
        edit(commit, "commitInfo", timestamp=int(old * 1000))
        os.utime(commit, (old, old))
    table = DeltaTable(place)
    table.create_checkpoint()
    table.cleanup_metadata()
    return len(commits(place))


def files_vacuumed(place: Path, text: str) -> int:
    """How many files that were removed 10 days ago a VACUUM deletes."""
    create(place, _FILES, text).delete("id = 1")
    edit(commits(place)[-1], "remove", deletionTimestamp=int((time.time() - 10 * _DAY) * 1000))
    return len(DeltaTable(place).vacuum(dry_run=True))


def takes_deletes(place: Path, text: str) -> bool:
    table = create(place, _APPEND, text)
    try:
        table.delete("id = 1")
    except DeltaError:
        return False
    return True


@pytest.mark.parametrize("text", ["60 days", "INTERVAL 60 DAYS", "interval 59 days 24 hours", "1440 hours"])
def test_a_clean_up_of_the_log_keeps_what_the_policy_says(tmp_path: Path, text: str) -> None:
    assert commits_kept(tmp_path, written_text(_LOG, text)) == 9


def test_a_clean_up_of_the_log_ignores_an_interval_as_spark_takes_it(tmp_path: Path) -> None:
    assert commits_kept(tmp_path, "60 days") < 9


@pytest.mark.parametrize(
    "text", ["2 weeks", "interval 2 WEEKS", "1 day 13 days", "interval 1209600.0 seconds", "336 hours"]
)
def test_a_vacuum_keeps_what_the_policy_says(tmp_path: Path, text: str) -> None:
    assert files_vacuumed(tmp_path / "typed", text) == 1
    assert files_vacuumed(tmp_path / "written", written_text(_FILES, text)) == 0


@pytest.mark.parametrize(
    "text", ["interval 2 weeks", "interval 14 day", "interval  +2  weeks", " interval 1209600000000 microseconds "]
)
def test_an_interval_that_delta_rs_reads_is_left_as_it_is(tmp_path: Path, text: str) -> None:
    assert files_vacuumed(tmp_path, text) == 0
    assert written_text(_FILES, text) == text


@pytest.mark.parametrize("text", ["TRUE", "True"])
def test_rows_of_an_append_only_table_stay(tmp_path: Path, text: str) -> None:
    assert takes_deletes(tmp_path / "typed", text)
    assert not takes_deletes(tmp_path / "written", written_text(_APPEND, text))
