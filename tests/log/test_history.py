"""Commits read side by side: how many requests, and how many at the same time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import obstore
import pytest

from tablectl.delta.names import TableName
from tablectl.log.reader import ReadRequest, read_commits, read_many, read_table
from tablectl.model.errors import LiveError
from tablectl.model.store_options import CONCURRENCY
from tablectl.model.table import Depth, LiveTable
from tablectl.storage.object_stores import StoreOptions
from tests.log.conftest import Requests
from tests.log.log_actions import CLUSTERED, LOCATION, PLAIN, checksum, clustering, crc, info, metadata

Put = Callable[..., None]
Read = Callable[..., LiveTable]


def test_a_table_costs_two_latencies_however_long_its_look_back(put: Put, read: Read, requests: Requests) -> None:
    put(0, [info(), CLUSTERED, metadata(), clustering("a")])
    for version in range(1, 40):
        put(version, [info(f"t{version}")])
    put(crc(39), checksum("t39", metadata(), [clustering("b")]))
    requests.together = (1, 21)  # the listing; twenty commits and the checksum
    table = read(look_back=20)
    assert [commit.version for commit in table.history] == list(range(39, 19, -1))
    assert table.clustering == (("b",),)
    assert len(requests.asked) == 22


def test_a_walk_without_checksums_goes_in_strides(put: Put, read: Read, requests: Requests) -> None:
    put(0, [info(), CLUSTERED, metadata(x="1"), clustering("a")])
    for version in range(1, 100):
        put(version, [info()])
    requests.together = (1, 5, 95)
    table = read(look_back=5)
    assert (table.properties, table.clustering) == ({"x": "1"}, (("a",),))
    assert len(requests.asked) == 101  # the listing, every commit once


def test_requests_of_many_tables_are_bounded(put: Put, options: StoreOptions, requests: Requests) -> None:
    put(0, [info(), PLAIN, metadata()])
    for version in range(1, 30):
        put(version, [info()])
    request = ReadRequest(TableName("", (LOCATION,)), LOCATION, lambda _table: Depth(look_back=20))
    requests.together = (12, CONCURRENCY)
    tables = read_many([request] * 12, options=options)
    assert all(isinstance(table, LiveTable) for table in tables)
    assert requests.most == CONCURRENCY


def test_a_local_disk_is_read_without_obstore(
    put: Put, options: StoreOptions, requests: Requests, tmp_path: Path
) -> None:
    put(0, [info(), PLAIN, metadata()])
    for version in range(1, 4):
        put(version, [info()])
    log = tmp_path / "_delta_log"
    log.mkdir()
    for entry in obstore.list(options.memory, "lake/t/_delta_log").collect():  # type: ignore[arg-type]
        content = bytes(obstore.get(options.memory, entry["path"]).bytes())  # type: ignore[arg-type]
        (log / entry["path"].rsplit("/", 1)[-1]).write_bytes(content)
    requests.asked.clear()
    assert len(read_table(TableName("", (str(tmp_path),)), str(tmp_path)).history) == 4
    assert requests.asked == []


def test_what_was_read_ahead_without_need_is_not_looked_at(put: Put, read: Read) -> None:
    put(0, b"damaged")
    put(1, [info("t1")])
    put(crc(1), checksum("t1", metadata(x="1"), [clustering("b")]))
    for version in range(2, 5):
        put(version, [info()])
    assert read(look_back=3).properties == {"x": "1"}
    with pytest.raises(LiveError, match=r"0{20}\.json:1"):
        read(look_back=5)


def test_the_first_damaged_commit_is_the_one_that_is_named(put: Put, read: Read) -> None:
    put(0, [info(), PLAIN, metadata()])
    for version in range(1, 9):
        put(version, b"damaged" if version in {3, 5} else [info()])
    with pytest.raises(LiveError, match=r"0{19}5\.json:1"):
        read()


def test_a_look_back_in_days_counts_from_the_newest_commit(put: Put, options: StoreOptions) -> None:
    day = 86_400_000
    put(0, [info(timestamp=day), PLAIN, metadata()])
    for version in range(1, 100):
        put(version, [info(timestamp=day * version)])
    put(100, [info()])  # a writer that does not say when

    def versions(**choices: Any) -> list[int]:
        return [each.version for each in read_commits(LOCATION, options=options, **choices)]

    assert versions(within=timedelta(days=3)) == [100, 99, 98, 97, 96]
    assert versions(within=timedelta(days=3), limit=2) == [100, 99]
    assert versions(within=timedelta(days=3), until=50) == [50, 49, 48, 47]
    assert versions(within=timedelta(0)) == [100, 99]
    assert versions(within=timedelta(days=400)) == list(range(100, -1, -1))


def test_in_commit_timestamps_come_before_the_writers_clock(put: Put, options: StoreOptions) -> None:
    put(0, [info(timestamp=1, inCommitTimestamp=1000), PLAIN, metadata()])
    put(1, [info(timestamp=999_999, inCommitTimestamp=2000)])
    assert [each.timestamp for each in read_commits(LOCATION, options=options)] == [2000, 1000]


def test_the_end_of_a_long_log_costs_no_listing_of_all_of_it(
    put: Put, options: StoreOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(0, [info(), PLAIN, metadata()])
    for version in range(1, 40):
        put(version, [info()])
    put(f"{30:020d}.checkpoint.parquet", b"not read")
    offsets: list[str] = []
    original = obstore.list

    def listed(store: Any, path: str, *, offset: str | None = None, **options: Any) -> Any:
        offsets.append((offset or "").rsplit("/", 1)[-1])
        return original(store, path, offset=offset, **options)

    monkeypatch.setattr(obstore, "list", listed)

    def versions(limit: int) -> list[int]:
        return [each.version for each in read_commits(LOCATION, limit=limit, options=options)]

    put("_last_checkpoint", {"version": 30})
    assert versions(4) == [39, 38, 37, 36]
    assert offsets == [f"{27:020d}"]
    for hint in (b"{", {"version": 39}, {"version": 4000}, {"version": 5}, {"version": 41}):
        put("_last_checkpoint", hint)
        assert versions(4) == [39, 38, 37, 36]
        assert versions(35) == list(range(39, 4, -1))
