"""How many requests a store gets for each kind of table: an exact number, which does not depend on the machine."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import md5
from typing import Any

import obstore
import pytest
from obstore.store import MemoryStore

from tablectl.delta.names import TableName
from tablectl.log import state
from tablectl.log.blame import BlameQuery, BlameQuestion, blame
from tablectl.log.disk_cache import DiskCache
from tablectl.log.reader import ReadRequest, read_each, read_many
from tablectl.log.state import TableCache
from tablectl.model.errors import LiveError
from tablectl.model.table import LOOK_BACK, Depth, LiveTable
from tablectl.storage import object_log
from tablectl.storage.object_stores import StoreOptions
from tablectl.storage.table_log import AHEAD
from tests.log.checkpoint_files import METADATA, PROTOCOL, adds, parquet
from tests.log.log_actions import LOCATION, PLAIN, add, checksum, crc, info, metadata

Put = Callable[..., None]
SHALLOW, NO_CACHE = Depth(partly=True), TableCache()  # as a plan reads a table without changes
TEAM = BlameQuestion(lambda live: live.property("team"), lambda one, other: one == other)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The requests since it was cleared."""
    requests: list[str] = []
    for call in ("get", "list", "head", "get_range"):
        original = getattr(obstore, call)

        def counted(store: Any, path: str = "", *args: Any, original: Any = original, **options: Any) -> Any:
            requests.append(path.rpartition("/")[2])
            return original(store, path, *args, **options)

        monkeypatch.setattr(obstore, call, counted)
    return requests


def with_checksums(put: Put) -> None:
    """Five commits by Delta Spark, each with a checksum."""
    put(0, [info("t0"), PLAIN, metadata(team="web")])
    for version in range(1, 5):
        put(version, [info(f"t{version}"), add(f"f{version}", 1)])
        put(crc(version), {**checksum(f"t{version}", metadata(team="web"), []), **PLAIN})


def changed_with_checksums(put: Put) -> None:
    """The same, of which one commit sets a property."""
    with_checksums(put)
    team = metadata(team="pay")
    put(3, [info("t3"), team, add("f3", 1)])
    for version in (3, 4):
        put(crc(version), {**checksum(f"t{version}", team, []), **PLAIN})


def without_checksums(put: Put) -> None:
    """Five commits by delta-rs."""
    put(0, [info(), PLAIN, metadata(team="web")])
    for version in range(1, 5):
        put(version, [info(), add(f"f{version}", 1)])


def after_a_checkpoint(put: Put, commits: int = 20) -> None:
    """A checkpoint by delta-rs and commits after it."""
    put(10, [info(), add("f10", 1)])
    put(f"{10:020d}.checkpoint.parquet", parquet([PROTOCOL, METADATA, *adds(3)]))
    put("_last_checkpoint", {"version": 10, "size": 5})
    for version in range(11, 11 + commits):
        put(version, [info(), add(f"f{version}", 1)])


def checkpoints_and_checksums(put: Put) -> None:
    """Thirty commits by Delta Spark with a checkpoint and checksums, of which one sets a property."""
    with_checksums(put)
    for version in range(5, 31):
        team = metadata(team="pay" if version >= 28 else "web")
        put(version, [info(f"t{version}"), *([team] if version == 28 else []), add(f"f{version}", 1)])
        put(crc(version), {**checksum(f"t{version}", team, []), **PLAIN})
    put(f"{30:020d}.checkpoint.parquet", parquet([PROTOCOL, METADATA, *adds(3)]))
    put("_last_checkpoint", {"version": 30, "size": 5})


@pytest.mark.parametrize(("commits", "early"), [(AHEAD, 0), (AHEAD + 1, 1)])
def test_the_reader_of_checkpoints_is_loaded_while_many_commits_are_read(
    put: Put, options: StoreOptions, monkeypatch: pytest.MonkeyPatch, commits: int, early: int
) -> None:
    after_a_checkpoint(put, commits)
    loads: list[str] = []
    monkeypatch.setattr(state, "load_checkpoint_reader", lambda: loads.append("begun"))
    assert read(options).version == 10 + commits
    assert len(loads) == early


def read(options: StoreOptions, depth: Depth = SHALLOW, cache: TableCache = NO_CACHE) -> LiveTable:
    request = ReadRequest(TableName("", (LOCATION,)), LOCATION, lambda _live: depth)
    (table,) = read_many([request], cache=cache, options=options)
    assert isinstance(table, LiveTable)
    return table


def read_and_blame(options: StoreOptions) -> None:
    request = ReadRequest(TableName("", (LOCATION,)), LOCATION, lambda _live: Depth())
    (found,) = read_each([request], lambda reading: blame(reading, BlameQuery(reading.table, (TEAM,))), options=options)
    assert not isinstance(found, LiveError)


@pytest.mark.parametrize(
    ("table", "as_declared", "changing", "drift"),
    [
        (with_checksums, 3, 7, 7),  # a listing, the newest commit, its checksum; or all commits
        (changed_with_checksums, 3, 7, 7),  # what was before the property is in the commits that were read anyway
        (without_checksums, 6, 6, 6),  # any of the five commits can hold the metadata
        (after_a_checkpoint, 22, 22, 23),  # the same for twenty commits, and one read of the checkpoint; drift goes on
        (checkpoints_and_checksums, 3, 22, 23),  # and the checksum before the commit that set the property
    ],
)
def test_a_table_costs_these_requests(
    put: Put,
    options: StoreOptions,
    asked: list[str],
    table: Callable[[Put], None],
    as_declared: int,
    changing: int,
    drift: int,
) -> None:
    table(put)
    asked.clear()
    read(options)
    assert len(asked) == as_declared
    asked.clear()
    read(options, Depth(LOOK_BACK))
    assert len(asked) == changing
    asked.clear()
    read_and_blame(options)
    assert len(asked) == drift <= 1.2 * changing


@pytest.mark.parametrize("table", [with_checksums, without_checksums, after_a_checkpoint, checkpoints_and_checksums])
def test_an_unchanged_table_in_the_cache_costs_one_request(
    put: Put, options: StoreOptions, asked: list[str], tmp_path: Any, table: Callable[[Put], None]
) -> None:
    table(put)
    first = read(options, cache=DiskCache(tmp_path))
    asked.clear()
    second = read(options, cache=DiskCache(tmp_path))
    assert len(asked) == 1
    assert second == first


@pytest.mark.parametrize("table", [without_checksums, after_a_checkpoint])
def test_of_a_changed_table_in_the_cache_the_new_commits_are_read(
    put: Put, options: StoreOptions, asked: list[str], tmp_path: Any, table: Callable[[Put], None]
) -> None:
    table(put)
    version = read(options, cache=DiskCache(tmp_path)).version
    put(version + 1, [info(), metadata(team="pay")])
    put(version + 2, [info(), add("new", 1)])
    asked.clear()
    found = read(options, cache=DiskCache(tmp_path))
    assert len(asked) == 3
    assert (found.version, found.property("team")) == (version + 2, "pay")
    assert found == read(options)
    asked.clear()
    assert read(options, cache=DiskCache(tmp_path)) == found
    assert len(asked) == 1


def test_a_table_made_again_with_the_same_versions_is_not_taken_for_the_old_one(
    put: Put, options: StoreOptions, store: MemoryStore, tmp_path: Any
) -> None:
    without_checksums(put)
    read(options, cache=DiskCache(tmp_path))
    for version in range(5):
        obstore.delete(store, f"lake/t/_delta_log/{version:020d}.json")
    put(0, [info(), PLAIN, metadata("two", team="pay")])
    for version in range(1, 5):
        put(version, [info(), add(f"f{version}", 1)])
    found = read(options, cache=DiskCache(tmp_path))
    assert (found.table_id, found.property("team")) == ("two", "pay")


@pytest.mark.parametrize("change", ["older", "gap", "gone", "restored"])
def test_a_log_that_does_not_continue_the_kept_state_is_read_itself(
    put: Put, options: StoreOptions, store: MemoryStore, tmp_path: Any, change: str
) -> None:
    without_checksums(put)
    read(options, cache=DiskCache(tmp_path))
    match change:
        case "older":
            obstore.delete(store, f"lake/t/_delta_log/{4:020d}.json")
        case "gap":
            put(6, [info()])
        case "gone":
            for version in range(5):
                obstore.delete(store, f"lake/t/_delta_log/{version:020d}.json")
        case _:
            put(4, [info(), metadata(team="other")])
    results = []
    for cache in (DiskCache(tmp_path), TableCache()):
        request = ReadRequest(TableName("", (LOCATION,)), LOCATION, lambda _live: Depth())
        (found,) = read_many([request], cache=cache, options=options)
        results.append(str(found) if isinstance(found, LiveError) else found)
    assert results[0] == results[1]


def test_the_history_of_a_table_in_the_cache_is_read_from_its_log(
    put: Put, options: StoreOptions, tmp_path: Any
) -> None:
    after_a_checkpoint(put)
    read(options, cache=DiskCache(tmp_path))
    deep = Depth(LOOK_BACK, counts=True)
    assert read(options, deep, DiskCache(tmp_path)) == read(options, deep)


def test_a_long_log_costs_each_commit_once(put: Put, options: StoreOptions, asked: list[str]) -> None:
    after_a_checkpoint(put, 300)
    asked.clear()
    assert read(options).version == 310
    assert len(asked) == 302


def test_a_log_of_several_pages_is_listed_once(
    put: Put, options: StoreOptions, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    after_a_checkpoint(put)
    whole = read(options)
    monkeypatch.setattr(object_log, "PAGE", 10)
    listed = listings(monkeypatch)
    asked.clear()
    assert read(options) == whole
    assert asked.count("_last_checkpoint") == 1
    assert listed == [None, f"{18:020d}.json"]


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("table", [without_checksums, after_a_checkpoint, checkpoints_and_checksums])
def test_the_length_of_a_page_changes_nothing(
    put: Put, options: StoreOptions, monkeypatch: pytest.MonkeyPatch, table: Callable[[Put], None], ordered: bool
) -> None:
    table(put)
    expected = [read(options, Depth(look_back)) for look_back in (0, LOOK_BACK)]
    if not ordered:
        unordered(monkeypatch)
    for length in (*range(1 if ordered else 8, 12), 21, 22, 23, 50):
        monkeypatch.setattr(object_log, "PAGE", length)
        assert [read(options, Depth(look_back)) for look_back in (0, LOOK_BACK)] == expected


def test_large_commits_are_not_read_without_need(put: Put, options: StoreOptions, asked: list[str]) -> None:
    for version in range(25):
        put(version, [info(), PLAIN, metadata(comment="é" * 600_000)])
    asked.clear()
    assert read(options).version == 24
    assert len(asked) == 2


def listings(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """The file after which each listing begins."""
    found: list[str | None] = []
    original = obstore.list

    def listed(store: Any, prefix: str, *, offset: str | None = None, **options: Any) -> Any:
        found.append(offset and offset.rpartition("/")[2])
        return original(store, prefix, offset=offset, **options)

    monkeypatch.setattr(obstore, "list", listed)
    return found


def unordered(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that lists in no order, as directory buckets of S3 do."""
    original = obstore.list

    def listed(store: Any, prefix: str, *, offset: str | None = None, chunk_size: int = 50) -> Any:
        found = [each for page in original(store, prefix, offset=offset) for each in page]
        found.sort(key=lambda each: md5(each["path"].encode()).digest())
        return iter([found[at : at + chunk_size] for at in range(0, len(found), chunk_size)])

    monkeypatch.setattr(obstore, "list", listed)
