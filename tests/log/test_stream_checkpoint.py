"""Checkpoints of streaming queries: what is read of them, and what others may have put there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from obstore.store import MemoryStore

from tablectl.log.stream_checkpoint import read_streams
from tablectl.model.stream_progress import StreamPosition, StreamState, StreamWriter, UnknownStream
from tablectl.storage.log_stores import Stores
from tablectl.storage.object_stores import StoreOptions
from tests.commands.log_lake import append, create

TABLE = "7f4a1c5e-0000-4000-8000-000000000001"


def offset(version: int, index: int = -1, *, starting: bool = False, table: str = TABLE) -> str:
    found = {"sourceVersion": 1, "reservoirId": table, "reservoirVersion": version, "index": index}
    return json.dumps({**found, "isStartingVersion": starting})


def checkpoint(place: Path, *batches: list[str], finished: int | None = None) -> Path:
    """The files that Spark writes, for batches with these sources."""
    for folder in ("offsets", "commits"):
        (place / folder).mkdir(parents=True)
    (place / "metadata").write_text('{"id":"query-1"}')
    for number, sources in enumerate(batches):
        lines = [
            "v1",
            json.dumps({"batchWatermarkMs": 0, "batchTimestampMs": 1_790_000_000_000 + 60_000 * number}),
            *sources,
        ]
        (place / "offsets" / str(number)).write_text("\n".join(lines))
        (place / "offsets" / f".{number}.crc").write_bytes(b"crc")
        if number < (len(batches) if finished is None else finished):
            (place / "commits" / str(number)).write_text('v1\n{"nextBatchWatermarkMs":0}')
    return place


def read(place: Path, table: str = TABLE) -> StreamState:
    """The state of a query by its checkpoint, for the table next to it."""
    with Stores(StoreOptions()) as stores:
        (state,) = read_streams(stores, [("fraud", str(place))], table, str(place.parent / "table"))
    return state


def position(place: Path) -> tuple[int, int | None]:
    state = read(place)
    assert isinstance(state, StreamPosition), state.text
    return state.batch, state.read


def test_the_last_finished_batch_says_which_version_was_read(tmp_path: Path) -> None:
    place = checkpoint(tmp_path / "c", [offset(3)], [offset(5)])
    assert read(place) == StreamPosition("fraud", str(place), "query-1", 1, 1_790_000_060_000, 4)


def test_the_newest_batches_say_how_often_it_runs(tmp_path: Path) -> None:
    state = read(checkpoint(tmp_path / "c", *([offset(version)] for version in range(1, 30))))
    assert isinstance(state, StreamPosition)
    assert (state.batch, state.gap) == (28, 60.0)


def test_a_batch_that_still_runs_does_not_count(tmp_path: Path) -> None:
    assert position(checkpoint(tmp_path / "c", [offset(3)], [offset(5)], finished=1)) == (0, 2)


@pytest.mark.parametrize(
    ("source", "version"),
    [
        (offset(5, 2), 4),  # in the middle of version 5
        (offset(5, -100), 4),
        (offset(5, 2**63 - 101), 5),  # after the last file of version 5
        (offset(5, 2, starting=True), None),  # the rows that the table had at the start
    ],
)
def test_an_offset_counts_versions_that_were_read_completely(tmp_path: Path, source: str, version: int | None) -> None:
    assert position(checkpoint(tmp_path / "c", [source])) == (0, version)


def test_a_query_that_reads_the_table_twice_has_read_what_both_sources_have(tmp_path: Path) -> None:
    sources = [offset(9), offset(4), offset(2, table="another table"), "-"]
    assert position(checkpoint(tmp_path / "c", sources)) == (0, 3)


@pytest.mark.parametrize("other", ["5", "[1, 2]", '"a"', '{"logOffset": 3}'])
def test_the_offset_of_another_source_may_be_any_json(tmp_path: Path, other: str) -> None:
    assert position(checkpoint(tmp_path / "c", [other, offset(9)])) == (0, 8)


def test_a_query_without_a_finished_batch_has_read_nothing(tmp_path: Path) -> None:
    assert position(checkpoint(tmp_path / "c")) == (-1, None)


def _write(place: Path, name: str, text: str) -> None:
    (place / name).write_text(text)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda place: _write(place, "metadata", "{"), "metadata: is not JSON"),
        (lambda place: _write(place, "metadata", "[" * 60_000), "metadata: is not JSON"),
        (lambda place: _write(place, "metadata", "x" * 70_000), "cannot be read: "),
        (lambda place: (place / "metadata").unlink(), "it has no file `metadata`"),
        (lambda place: _write(place, "offsets/0", "v2\n{}\n{}"), "its format is 'v2', and only v1 is known"),
        (lambda place: _write(place, "offsets/0", "v1\n[1]\n{}"), "is not a JSON object"),
        (lambda place: _write(place, "offsets/0", "v1\n{}\n{"), "is not JSON"),
        (lambda place: _write(place, "offsets/0", "v1\n{}" + "\n-" * 2000), "has more than 1,000 sources"),
        (lambda place: _write(place, "offsets/0", "v1\n{}\n" + " " * (2 << 20)), "cannot be read: "),
        (
            lambda place: _write(place, "offsets/0", "v1\n{}\n" + offset(3).replace("-1,", '"a",')),
            "an offset has no valid index",
        ),
        (lambda place: _write(place, "offsets/0", ""), "its format is ''"),
    ],
)
def test_what_others_put_there_is_an_answer_and_no_error(tmp_path: Path, change: Any, why: str) -> None:
    place = checkpoint(tmp_path / "c", [offset(3)])
    change(place)
    state = read(place)
    assert isinstance(state, UnknownStream)
    assert why in state.why


def test_a_folder_that_does_not_exist_is_unknown(tmp_path: Path) -> None:
    assert isinstance(read(tmp_path / "none"), UnknownStream)


def test_names_that_are_not_batches_are_ignored(tmp_path: Path) -> None:
    place = checkpoint(tmp_path / "c", [offset(3)])
    for name in ("9" * 40, "²", "1.tmp", "-1"):
        _write(place, f"offsets/{name}", "x")
        _write(place, f"commits/{name}", "x")
    assert position(place) == (0, 2)


def test_a_checkpoint_in_an_object_store_is_read_the_same_way(tmp_path: Path) -> None:
    place, store = checkpoint(tmp_path / "c", [offset(3)], [offset(5)]), MemoryStore()
    for file in place.rglob("*"):
        if file.is_file():
            store.put(f"lake/c/{file.relative_to(place)}", file.read_bytes())
    with Stores(StoreOptions(memory=store)) as stores:
        found, missing = read_streams(
            stores, [("fraud", "memory://x/lake/c"), ("none", "memory://x/lake/d")], TABLE, "/t"
        )
    assert isinstance(found, StreamPosition), found.text
    assert (found.batch, found.read) == (1, 4)
    assert isinstance(missing, UnknownStream)
    assert "it has no file `metadata`" in missing.why


# Queries that write the table


def writes(place: Path, query: str, batch: int) -> int:
    """A batch of a query in the log of the table next to its checkpoint."""
    txn = {"appId": query, "version": batch, "lastUpdated": 1_790_000_000_000}
    return append(place.parent / "table", "STREAMING UPDATE", [{"txn": txn}])


@pytest.fixture
def sink(tmp_path: Path) -> Path:
    """The checkpoint of a query that reads another table, next to a table with other writers."""
    create(tmp_path / "table")
    return checkpoint(tmp_path / "c", [offset(3, table="another table")])


def test_a_query_that_does_not_read_the_table_has_written_what_the_tables_log_says(sink: Path) -> None:
    writes(sink, "query-1", 6)
    version = writes(sink, "query-1", 7)
    writes(sink, "query-2", 99)  # another query
    state = read(sink)
    assert isinstance(state, StreamWriter), state.text
    assert (state.query, state.batch, state.version) == ("query-1", 7, version)


@pytest.mark.parametrize("query", ["query-2", "QUERY-1", "", "query-11"])
def test_a_batch_of_another_query_is_not_its_own(sink: Path, query: str) -> None:
    writes(sink, query, 7)
    state = read(sink)
    assert isinstance(state, UnknownStream)
    assert "none of its sources has the table's id" in state.why
    assert "none of the newest 500 commits is a batch of it" in state.why


def test_a_checkpoint_without_a_query_id_matches_no_commit(sink: Path) -> None:
    _write(sink, "metadata", "{}")
    writes(sink, "", 7)
    assert isinstance(read(sink), UnknownStream)


def test_a_query_that_reads_and_writes_the_table_counts_as_a_reader(sink: Path) -> None:
    writes(sink, "query-1", 7)
    assert isinstance(read(sink, "another table"), StreamPosition)


def test_a_table_that_cannot_be_read_leaves_its_writer_unknown(tmp_path: Path) -> None:
    state = read(checkpoint(tmp_path / "c", [offset(3, table="another table")]))
    assert isinstance(state, UnknownStream)
