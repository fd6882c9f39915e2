"""The cache believes only a file that no other user can have written."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from tablectl.log.disk_cache import FILE, DiskCache
from tests.log.test_disk_cache import KNOWN, written

pytestmark = pytest.mark.skipif(os.name == "nt", reason="files of Windows have no such modes")


def test_a_file_that_others_could_have_written_is_not_believed(tmp_path: Path) -> None:
    written(tmp_path).chmod(0o644)  # as after a checkout
    assert DiskCache(tmp_path).state("/lake/t") is None


def test_a_folder_that_others_can_write_is_not_used(tmp_path: Path) -> None:
    written(tmp_path)
    tmp_path.chmod(0o777)
    assert DiskCache(tmp_path).state("/lake/t") is None


def test_a_link_to_another_database_leaves_it_untouched(tmp_path: Path) -> None:
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as file:
        file.execute("CREATE TABLE entries (mine TEXT)")
    other.chmod(0o600)
    before = other.read_bytes()
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / FILE).symlink_to(other)
    written(tmp_path / "cache")
    assert other.read_bytes() == before


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE theirs (a)",
        "CREATE VIEW v AS SELECT 1",
        "CREATE TRIGGER t AFTER INSERT ON entries BEGIN SELECT 1; END",
    ],
)
def test_a_file_with_a_trigger_or_tables_of_others_is_left_alone(tmp_path: Path, sql: str) -> None:
    path = written(tmp_path)
    with sqlite3.connect(path) as file:
        file.execute(sql)
    before = path.read_bytes()
    assert DiskCache(tmp_path).state("/lake/t") is None
    written(tmp_path)
    assert path.read_bytes() == before


def test_a_file_of_our_own_is_believed(tmp_path: Path) -> None:
    written(tmp_path)
    assert DiskCache(tmp_path).state("/lake/t") == KNOWN
