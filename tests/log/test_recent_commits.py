"""The versions of a table that add rows, by real logs on a disk."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from tablectl.log import recent_commits
from tablectl.log.recent_commits import newest_row_version
from tablectl.model.errors import LiveError
from tablectl.storage.log_stores import Stores
from tablectl.storage.object_stores import StoreOptions


def log(table: Path, versions: Iterable[int], rows: Iterable[int], checkpoint: int | None = None) -> Path:
    """A log with some commits left, some of which add rows; the others are compactions."""
    folder = table / "_delta_log"
    folder.mkdir()
    for version in versions:
        added = {"path": f"{version}.parquet", "partitionValues": {}, "size": 1, "modificationTime": 1}
        actions = [{"commitInfo": {"operation": "WRITE"}}, {"add": {**added, "dataChange": version in rows}}]
        (folder / f"{version:020d}.json").write_text("\n".join(map(json.dumps, actions)))
    if checkpoint is not None:
        (folder / f"{checkpoint:020d}.checkpoint.parquet").write_bytes(b"PAR1")
    return table


def newest(table: Path) -> int:
    with Stores(StoreOptions()) as stores:
        return newest_row_version(stores, str(table))


def test_the_newest_version_with_rows_is_found_although_old_commits_were_cleaned_up(tmp_path: Path) -> None:
    assert newest(log(tmp_path, range(11, 16), rows=[11, 13], checkpoint=10)) == 13


def test_versions_that_cannot_be_read_any_more_may_have_rows(tmp_path: Path) -> None:
    assert newest(log(tmp_path, range(11, 16), rows=[], checkpoint=10)) == 10


def test_versions_that_are_too_many_to_read_may_have_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent_commits, "MOST_COMMITS", 3)
    assert newest(log(tmp_path, range(6), rows=[0])) == 2


def test_a_table_without_rows_has_no_such_version(tmp_path: Path) -> None:
    assert newest(log(tmp_path, range(3), rows=[])) == -1


def test_a_log_without_any_commit_left_cannot_tell(tmp_path: Path) -> None:
    with pytest.raises(LiveError, match="has no commit left"):
        newest(log(tmp_path, [], rows=[], checkpoint=10))
