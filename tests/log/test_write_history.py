"""Who writes a table, from the commits of 30 days: how far back, how many requests, and what a cache may say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import obstore
import pytest
from obstore.store import MemoryStore

from tablectl.delta.names import TableName
from tablectl.delta.protocol import Client
from tablectl.log import write_history as write_history_module
from tablectl.log.disk_cache import DiskCache
from tablectl.log.reader import ReadRequest, read_many, read_table
from tablectl.log.state import TableCache
from tablectl.log.write_history import MOST_COMMITS
from tablectl.model.commit import Commit, WriteHistory
from tablectl.model.table import Depth, LiveTable
from tablectl.storage.object_stores import StoreOptions
from tests.log.conftest import Requests
from tests.log.log_actions import LOCATION, PLAIN, info, metadata

Put = Callable[..., None]
HOUR = 3_600_000
DAY = 24 * HOUR
NOW = 1_790_000_000_000
OLD = "Apache-Spark/4.0.0 Delta-Lake/4.0.1"


@pytest.fixture
def written(options: StoreOptions) -> Callable[..., WriteHistory]:
    def read(cache: TableCache | None = None) -> WriteHistory:
        table = read_table(
            TableName("", (LOCATION,)),
            LOCATION,
            Depth(20, writers=lambda _live: True),
            cache=cache or TableCache(),
            options=options,
        )
        assert table.writes is not None
        return table.writes

    return read


def log(put: Put, ages: Mapping[int, int], last: int, every: int = HOUR, **engines: str) -> None:
    """A log with a commit every hour up to version ``last``; ``ages`` give other ages."""
    put(0, [info(timestamp=NOW - last * every, engineInfo=engines.get("v0", "")), PLAIN, metadata()])
    for version in range(1, last + 1):
        age = ages.get(version, (last - version) * every)
        engine = engines.get(f"v{version}")
        put(version, [info(timestamp=NOW - age, **({"engineInfo": engine} if engine else {}))])


def test_a_client_that_wrote_once_before_twenty_stream_commits_is_known(
    put: Put, written: Callable[..., WriteHistory]
) -> None:
    log(put, {}, 30, v5=OLD)
    assert Client("delta-spark", (4, 0, 1)) in {commit.client for commit in written().commits}


def test_commits_older_than_thirty_days_do_not_count(put: Put, written: Callable[..., WriteHistory]) -> None:
    log(put, {}, 100, every=12 * HOUR)
    history = written()
    assert [commit.version for commit in history.commits] == list(range(100, 37, -1))  # the median is a day older
    assert not history.cut


def test_twenty_commits_always_count(put: Put, written: Callable[..., WriteHistory]) -> None:
    log(put, {}, 40, every=20 * DAY)
    assert len(written().commits) == 20


@pytest.mark.parametrize("skewed", [50, 60])
@pytest.mark.parametrize("age", [-70 * 365 * DAY, 10 * 365 * DAY])
def test_one_wrong_clock_hides_no_client(put: Put, written: Callable[..., WriteHistory], skewed: int, age: int) -> None:
    log(put, {skewed: age}, 60, v5=OLD)
    assert Client("delta-spark", (4, 0, 1)) in {commit.client for commit in written().commits}


def test_too_many_commits_leave_a_doubt(
    put: Put, written: Callable[..., WriteHistory], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write_history_module, "MOST_COMMITS", 50)
    log(put, {}, 49)
    assert (len(written().commits), written().cut) == (50, False)
    log(put, {}, 50)
    assert (len(written().commits), written().cut) == (50, True)


def test_a_damaged_old_commit_leaves_a_doubt_and_the_table_is_planned(
    put: Put, written: Callable[..., WriteHistory]
) -> None:
    log(put, {}, 60)
    put(40, [info(timestamp=NOW), metadata()])  # the state is found here
    put(39, [info(timestamp=NOW), PLAIN])
    put(7, b"damaged")
    history = written()
    assert (history.commits[-1].version, history.cut) == (8, True)


def test_the_history_is_read_side_by_side(put: Put, written: Callable[..., WriteHistory], requests: Requests) -> None:
    log(put, {}, 300)
    requests.asked.clear()
    requests.together = (1, 20, 60)  # the listing, the last commits, those before
    assert len(written().commits) == 301
    assert len(requests.asked) == 302  # every commit once


# The cache


@dataclass
class Kept(TableCache):
    """A cache in memory that a test can look into and forge."""

    tables: dict[tuple[str, str], Mapping[int, Commit]] = field(default_factory=dict)

    def load(self, location: str, table_id: str) -> Mapping[int, Commit]:
        return self.tables.get((location, table_id), {})

    def store(self, location: str, table_id: str, commits: Mapping[int, Commit]) -> None:
        self.tables[location, table_id] = commits


@pytest.fixture(params=["memory", "disk"])
def cache(request: pytest.FixtureRequest, tmp_path: Path) -> TableCache:
    return Kept() if request.param == "memory" else DiskCache(tmp_path / "cache")


def test_a_second_plan_reads_only_what_is_new(
    put: Put, written: Callable[..., WriteHistory], requests: Requests, cache: TableCache
) -> None:
    log(put, {}, 300, v5=OLD)
    first = written(cache)
    put(301, [info(timestamp=NOW + HOUR)])
    requests.asked.clear()
    second = written(cache)
    assert len(requests.asked) <= 2 + 21 + 281  # without a checkpoint, the state is looked for in the commits again
    assert second.commits[1:] == first.commits
    assert written(TableCache()) == second


def test_a_second_plan_of_a_table_with_checksums_costs_one_look_back(
    put: Put, written: Callable[..., WriteHistory], requests: Requests, cache: TableCache
) -> None:
    log(put, {}, 300)
    put(300, [info("t300", timestamp=NOW), PLAIN, metadata()])
    written(cache)
    requests.asked.clear()
    written(cache)
    assert len(requests.asked) <= 2 + 20


def test_what_the_log_does_not_list_is_not_believed(
    put: Put, store: MemoryStore, written: Callable[..., WriteHistory], cache: TableCache
) -> None:
    log(put, {}, 60)
    put(60, [info(timestamp=NOW), PLAIN, metadata()])
    written(cache)
    put(f"{60:020d}.checkpoint.parquet", b"not read")
    for version in range(30):
        obstore.delete(store, f"lake/t/_delta_log/{version:020d}.json")
    assert {commit.version for commit in written(cache).commits} == set(range(30, 61))


def test_a_table_that_was_written_again_from_scratch_is_read_again(
    put: Put, written: Callable[..., WriteHistory], cache: TableCache
) -> None:
    log(put, {}, 60)
    written(cache)
    log(put, {}, 60, v5=OLD, v60=OLD)  # the same versions and the same table id
    assert Client("delta-spark", (4, 0, 1)) == written(cache).commits[55].client


def test_a_plan_reads_no_history_that_nothing_depends_on(put: Put, options: StoreOptions, requests: Requests) -> None:
    log(put, {}, 100)
    put(100, [info(timestamp=NOW), PLAIN, metadata()])
    request = ReadRequest(TableName("", (LOCATION,)), LOCATION, lambda _live: Depth(20))
    requests.asked.clear()
    (table,) = read_many([request], options=options)
    assert isinstance(table, LiveTable)
    assert table.writes is None
    assert len(requests.asked) == 21


def test_two_thousand_commits_are_the_limit() -> None:
    assert MOST_COMMITS == 2000


def cleaned(count: int, every: int) -> bool:
    """Whether the commits of a log, whose commits before version 100 were cleaned up, are all of 30 days."""
    commits = [Commit(100 + count - age, NOW - age * every, "WRITE") for age in range(count)]
    return write_history_module._read_recent(iter(commits), {})


@pytest.mark.parametrize(("days", "whole"), [(2, False), (28, False), (31, True)])
def test_a_log_that_was_cleaned_leaves_a_doubt_unless_it_reaches_back(days: int, whole: bool) -> None:
    assert cleaned(2 * days, 12 * HOUR) is whole


def test_a_table_that_is_seldom_written_is_known_although_its_log_was_cleaned() -> None:
    assert cleaned(5, 7 * DAY)  # the commit before the oldest one was probably five weeks ago
