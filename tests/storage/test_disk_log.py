"""Logs on a disk: the lines of a file, whatever its size."""

from __future__ import annotations

import io
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablectl.log.recent_commits import newest_row_version
from tablectl.model.errors import LiveError
from tablectl.storage import disk_log, read_budget
from tablectl.storage.disk_log import DiskLog
from tablectl.storage.log_stores import Stores
from tablectl.storage.object_stores import StoreOptions
from tablectl.storage.read_budget import OversizeError
from tablectl.storage.table_log import VanishedError

NAME = f"{0:020d}.json"


def log_with(folder: str | Path, contents: bytes) -> DiskLog:
    log = Path(folder, "_delta_log")
    log.mkdir(exist_ok=True)
    (log / NAME).write_bytes(contents)
    return DiskLog(str(folder))


@given(st.lists(st.sampled_from([b"\n", b"a", b"\r\n", b"{}", b""])).map(b"".join), st.integers(1, 4))
def test_small_and_large_files_have_the_same_lines(contents: bytes, buffer: int) -> None:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        log = log_with(folder, contents)
        small = list(log.lines(NAME))
        patch.setattr(disk_log, "_BUFFER", buffer)
        assert list(log.lines(NAME)) == small == [line.removesuffix(b"\n") for line in io.BytesIO(contents)]


def test_a_file_that_is_gone_says_so_whatever_its_size(tmp_path: Path) -> None:
    log = log_with(tmp_path, b"{}")
    (tmp_path / "_delta_log" / NAME).unlink()
    with pytest.raises(VanishedError, match="gone when it was opened"):
        next(log.lines(NAME))


def test_commits_that_are_too_large_together_fail_before_the_first_of_them_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_budget, "LOG_BYTES", 300_000)
    log = log_with(tmp_path, b"x" * 200_000)
    (tmp_path / "_delta_log" / "other").write_bytes(b"x" * 200_000)
    log.check_sizes([NAME, "other"])
    with pytest.raises(OversizeError, match="400,000 bytes"):
        next(log.lines(NAME))


@pytest.mark.parametrize("name", ["gone", "file", "nul\0l"])
def test_a_location_that_is_not_a_directory_is_named_by_every_reader(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("")
    stores, location = Stores(StoreOptions()), f"{tmp_path}/{name}"
    calls = (lambda: stores.data_files(location, 10), lambda: newest_row_version(stores, location))
    for call in calls:
        with pytest.raises(LiveError, match=r"no such directory|null byte"):
            call()


def test_many_small_commits_count_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_budget, "LOG_BYTES", 150)
    log = log_with(tmp_path, b"x" * 100)
    (tmp_path / "_delta_log" / "other").write_bytes(b"x" * 100)
    assert list(log.lines(NAME)) == [b"x" * 100]
    with pytest.raises(OversizeError, match="200 bytes"):
        next(log.lines("other"))


def test_the_files_in_the_folders_of_partitions_are_listed_and_hidden_ones_are_not(tmp_path: Path) -> None:
    log_with(tmp_path, b"{}")
    listed = {"a.parquet", "day=1/a.parquet", "_day=1/a.parquet", "day=1/hour=2/a.parquet", "x/a.parquet"}
    hidden = {"_change_data/a.parquet", ".x/a.parquet", "day=1/_a.parquet", "day=1/.a.parquet", "day=1/a.crc"}
    for each in listed | hidden:
        (tmp_path / each).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / each).write_bytes(b"x")
    assert {each.path for each in Stores(StoreOptions()).each_data_file(str(tmp_path))} == listed
