"""The commits in the user's cache directory: the same after a round trip, and absent when anything is wrong."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablectl.delta.protocol import Client
from tablectl.log import commit_cache
from tablectl.log.commit_cache import DiskCache, cache_directory
from tablectl.model.table import AppTransaction, Commit

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


def file_of(cache: DiskCache) -> Path:
    (file,) = cache.directory.glob("*.json")
    return file


def test_a_commit_comes_back_as_it_was(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path / "new" / "tablectl")
    cache.store("/lake/t", "id", {7: ONE, 3: Commit(3, 0, "WRITE")})
    assert cache.load("/lake/t", "id") == {7: ONE, 3: Commit(3, 0, "WRITE")}
    assert cache.load("/lake/t", "other") == {}
    assert cache.load("/lake/u", "id") == {}


@given(text=st.text(max_size=20), number=st.integers(0, 2**63 - 1))
def test_any_text_of_a_log_comes_back(tmp_path_factory: pytest.TempPathFactory, text: str, number: int) -> None:
    cache = DiskCache(tmp_path_factory.mktemp("cache"))
    commit = Commit(1, number, text, user=text, parameters=MappingProxyType({"mode": text}))
    cache.store(text, text, {1: commit})
    assert cache.load(text, text) == {1: commit}


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b'{"format":2,"location":"/lake/t","table":"id","commits":[]}',
        b'{"format":1,"location":"/lake/u","table":"id","commits":[]}',
        b'{"format":1,"location":"/lake/t","table":"id","commits":[[1]]}',
        b'{"format":1,"location":"/lake/t","table":"id","commits":{"7":[]}}',
        b'{"format":1,"location":"/lake/t","table":"id","commits":' + b"[" * 100_000,
    ],
)
def test_a_damaged_file_counts_as_absent(tmp_path: Path, damage: bytes) -> None:
    cache = DiskCache(tmp_path)
    cache.store("/lake/t", "id", {7: ONE})
    file_of(cache).write_bytes(damage)
    assert cache.load("/lake/t", "id") == {}
    cache.store("/lake/t", "id", {7: ONE})
    assert cache.load("/lake/t", "id") == {7: ONE}


@pytest.mark.parametrize("index", range(13))
def test_a_value_of_another_type_counts_as_absent(tmp_path: Path, index: int) -> None:
    cache = DiskCache(tmp_path)
    cache.store("/lake/t", "id", {7: ONE})
    body = json.loads(file_of(cache).read_bytes())
    body["commits"][0][index] = 1.5
    file_of(cache).write_text(json.dumps(body))
    assert cache.load("/lake/t", "id") == {}


def test_a_fifo_in_the_place_of_a_file_does_not_block(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path)
    cache.store("/lake/t", "id", {7: ONE})
    file = file_of(cache)
    file.unlink()
    os.mkfifo(file)
    assert cache.load("/lake/t", "id") == {}


def test_a_directory_that_cannot_be_written_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = DiskCache(tmp_path / "file" / "below")
    cache.store("/lake/t", "id", {7: ONE})
    assert cache.load("/lake/t", "id") == {}


def test_the_directory_stays_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit_cache, "_MOST_FILES", 20)
    cache = DiskCache(tmp_path)
    for number in range(60):
        cache.store(f"/lake/{number}", "id", {7: ONE})
        os.utime(cache._file(f"/lake/{number}", "id"), (number, number))
    assert len(list(tmp_path.iterdir())) <= 21
    assert cache.load("/lake/59", "id") == {7: ONE}
    assert cache.load("/lake/0", "id") == {}


def test_others_may_write_at_the_same_time(tmp_path: Path) -> None:
    caches = [DiskCache(tmp_path) for _ in range(4)]
    wrong: list[object] = []

    def work(cache: DiskCache) -> None:
        for _ in range(30):
            cache.store("/lake/t", "id", {7: ONE})
            found = cache.load("/lake/t", "id")
            if found != {7: ONE}:
                wrong.append(found)

    threads = [threading.Thread(target=work, args=(cache,)) for cache in caches]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert [file.suffix for file in tmp_path.iterdir()] == [".json"]


def test_the_directory_is_that_of_the_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ann")
    assert cache_directory({"XDG_CACHE_HOME": "/var/cache/ann"}, "linux") == Path("/var/cache/ann/tablectl")
    assert cache_directory({"XDG_CACHE_HOME": "relative"}, "linux") is None
    assert cache_directory({}, "linux") == Path("/home/ann/.cache/tablectl")
    assert cache_directory({}, "darwin") == Path("/home/ann/Library/Caches/tablectl")
    assert cache_directory({}, "win32") is None
