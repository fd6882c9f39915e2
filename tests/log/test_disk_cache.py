"""States and commits in the cache directory: the same after a round trip, and absent when anything is wrong."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import threading
import time
from pathlib import Path
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablectl.delta.protocol import Client, Protocol
from tablectl.log import disk_cache
from tablectl.log.disk_cache import FILE, DiskCache, cache_directory
from tablectl.log.parse_action import CLUSTERING, DomainMetadata, Metadata
from tablectl.log.state import KnownState, State
from tablectl.model.commit import AppTransaction, Commit

ONE = Commit(
    7,
    1_790_000_000_000,
    "MERGE",
    user="ann",
    client=Client("delta-spark", (4, 4, 0)),
    changes_data=True,
    schema_writer=True,
    parameters=MappingProxyType({"mode": "Append"}),
    metrics=MappingProxyType({"executionTimeMs": "12"}),
    read_version=6,
    blind_append=False,
    transactions=(AppTransaction("stream", 3),),
    job=MappingProxyType({"jobName": "nightly"}),
)


PROTOCOL = Protocol(3, 7, frozenset({"deletionVectors"}), frozenset({"deletionVectors", "clustering"}))
METADATA = Metadata("id", '{"type":"struct","fields":[]}', ("day",), MappingProxyType({"owner.team": "ü"}))
DOMAIN = DomainMetadata(CLUSTERING, '{"clusteringColumns":[["a"]]}', removed=False)
KNOWN = KnownState(7, "etag/12/2026", State(PROTOCOL, METADATA, DOMAIN, 4, 40, None))


def written(directory: Path) -> Path:
    """The file of a cache with one state and one commit."""
    cache = DiskCache(directory)
    cache.store("/lake/t", "id", {7: ONE})
    cache.keep("/lake/t", KNOWN)
    cache.flush()
    return directory / FILE


def test_what_is_kept_comes_back_in_another_process(tmp_path: Path) -> None:
    file = written(tmp_path / "new" / "tablectl")
    cache = DiskCache(file.parent)
    assert cache.load("/lake/t", "id") == {7: ONE}
    assert cache.state("/lake/t") == KNOWN
    assert cache.load("/lake/t", "other") == {}
    assert cache.state("/lake/u") is None
    assert file.stat().st_mode & 0o077 == 0


@pytest.mark.skipif(sys.platform != "linux", reason="looks at the open files of Linux")
def test_after_a_flush_no_connection_is_left_for_a_forked_process(tmp_path: Path) -> None:
    file = written(tmp_path)
    cache = DiskCache(tmp_path)
    assert cache.state("/lake/t") == KNOWN
    assert open_files(file) == 1
    cache.flush()
    assert open_files(file) == 0
    assert cache.state("/lake/t") == KNOWN


def open_files(file: Path) -> int:
    """How often this process has a file open."""
    return [each.resolve() for each in Path("/proc/self/fd").iterdir()].count(file)


def test_what_is_not_written_yet_is_known_in_this_process(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path)
    cache.keep("/lake/t", KNOWN)
    assert cache.state("/lake/t") == KNOWN
    assert list(tmp_path.iterdir()) == []


@given(text=st.text(max_size=20), number=st.integers(0, 2**63 - 1))
def test_any_text_of_a_log_comes_back(tmp_path_factory: pytest.TempPathFactory, text: str, number: int) -> None:
    cache = DiskCache(tmp_path_factory.mktemp("cache"))
    commit = Commit(1, number, text, user=text, parameters=MappingProxyType({"mode": text}))
    known = KnownState(number, text, State(PROTOCOL, Metadata(text, text, (text,), {text: text}), None))
    cache.store(text, text, {1: commit})
    cache.keep(text, known)
    cache.flush()
    again = DiskCache(cache.directory)
    assert again.load(text, text) == {1: commit}
    assert again.state(text) == known


@pytest.mark.parametrize("damage", ["empty", "text", "torn", "zeros", "another table", "another format"])
def test_a_damaged_file_counts_as_absent_and_is_replaced(tmp_path: Path, damage: str) -> None:
    file = written(tmp_path)
    content = file.read_bytes()
    match damage:
        case "empty":
            file.write_bytes(b"")
        case "text":
            file.write_bytes(b"not a database, and long enough to have a header of one hundred bytes" * 4)
        case "torn":
            file.write_bytes(content[:5000])
        case "zeros":
            file.write_bytes(content[:100] + bytes(len(content) - 100))
        case "another table":
            file.unlink()
            with sqlite3.connect(file) as other:
                other.execute("CREATE TABLE entries (kind TEXT)")
                other.execute("PRAGMA user_version = 2")
            file.chmod(0o600)
        case _:
            with sqlite3.connect(file) as other:
                other.execute("PRAGMA user_version = 99")
    cache = DiskCache(tmp_path)
    assert cache.load("/lake/t", "id") == {}
    assert cache.state("/lake/t") is None
    cache.keep("/lake/t", KNOWN)
    cache.flush()
    written(tmp_path)  # another process, which finds the file as this one left it
    assert DiskCache(tmp_path).state("/lake/t") == KNOWN


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b"\xff", b"[" * 100_000, b"[7,1]", "text", None, 5])
def test_an_entry_of_another_form_counts_as_absent(tmp_path: Path, body: object) -> None:
    file = written(tmp_path)
    with sqlite3.connect(file) as other:
        other.execute("UPDATE entries SET body = ?", (body,))
    cache = DiskCache(tmp_path)
    assert cache.load("/lake/t", "id") == {}
    assert cache.state("/lake/t") is None


@pytest.mark.parametrize(("kind", "length"), [(1, 6), (2, 13)])
def test_a_value_of_another_type_counts_as_absent(tmp_path: Path, kind: int, length: int) -> None:
    for index in range(length):
        file = written(tmp_path)
        with sqlite3.connect(file) as other:
            (body,) = other.execute("SELECT body FROM entries WHERE kind = ?", (kind,)).fetchone()
            row = json.loads(body)
            (row if kind == 1 else row[0])[index] = 1.5
            other.execute("UPDATE entries SET body = ? WHERE kind = ?", (json.dumps(row).encode(), kind))
        cache = DiskCache(tmp_path)
        assert (cache.state("/lake/t") if kind == 1 else cache.load("/lake/t", "id") or None) is None


def test_a_fifo_in_the_place_of_the_file_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / FILE)
    assert written(tmp_path).is_fifo()
    assert DiskCache(tmp_path).state("/lake/t") is None


def test_a_directory_that_cannot_be_written_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    written(tmp_path / "file" / "below")
    assert DiskCache(tmp_path / "file" / "below").state("/lake/t") is None


def test_an_entry_that_is_too_large_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_cache, "_MOST_BYTES", 100)
    written(tmp_path)
    assert DiskCache(tmp_path).state("/lake/t") is None


def test_the_file_stays_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_cache, "_MOST_ENTRIES", 20)
    now = 1_790_000_000
    for number in range(60):
        monkeypatch.setattr(time, "time", lambda number=number: now + number)
        cache = DiskCache(tmp_path)
        cache.keep(f"/lake/{number}", KNOWN)
        cache.flush()
    cache = DiskCache(tmp_path)
    kept = [number for number in range(60) if cache.state(f"/lake/{number}")]
    assert len(kept) <= 20
    assert kept[-1] == 59
    assert 0 not in kept


def test_a_full_file_loses_its_oldest_entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_cache, "_MOST_PAGES", 30)
    large = KnownState(1, "i", State(PROTOCOL, Metadata("id", "x" * 20_000, (), {}), None))
    for number in range(40):
        cache = DiskCache(tmp_path)
        cache.keep(f"/lake/{number}", large)
        cache.flush()
    assert (tmp_path / FILE).stat().st_size <= 30 * 4096


def test_a_file_that_another_process_holds_counts_as_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_cache, "_PATIENCE", 0.01)
    file = written(tmp_path)
    with sqlite3.connect(file, isolation_level=None) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert DiskCache(tmp_path).state("/lake/t") is None
        written(tmp_path)
    assert DiskCache(tmp_path).state("/lake/t") == KNOWN


def test_others_may_write_at_the_same_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_cache, "_PATIENCE", 60)
    caches = [DiskCache(tmp_path) for _ in range(4)]
    wrong: list[object] = []

    def work(cache: DiskCache) -> None:
        for _ in range(10):
            cache.keep("/lake/t", KNOWN)
            cache.flush()
            found = cache.state("/lake/t")
            if found != KNOWN:
                wrong.append(found)

    threads = [threading.Thread(target=work, args=(cache,)) for cache in caches]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert [file.name for file in tmp_path.iterdir()] == [FILE]


def test_the_directory_is_that_of_the_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ann")
    assert cache_directory({"XDG_CACHE_HOME": "/var/cache/ann"}, "linux") == Path("/var/cache/ann/tablectl")
    assert cache_directory({"XDG_CACHE_HOME": "relative"}, "linux") is None
    assert cache_directory({}, "linux") == Path("/home/ann/.cache/tablectl")
    assert cache_directory({}, "darwin") == Path("/home/ann/Library/Caches/tablectl")
    assert cache_directory({}, "win32") is None
