"""What pyarrow is given of a Parquet file: the checked bytes, and no others."""

from __future__ import annotations

import gc
import io
import weakref
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tablectl.log import checked_parquet
from tablectl.log.checked_parquet import Spent, open_checked
from tablectl.log.parquet_pages import Chunk, read_footer


def parquet(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, write_statistics=False, **options)
    return sink.getvalue()


FILE = parquet(pa.table({"a": list(range(5_000)), "b": [f"text {number}" for number in range(5_000)]}))


def values(data: bytes, *paths: str) -> tuple[dict[str, list[Any]], Spent]:
    spent = Spent()
    with open_checked(io.BytesIO(data), spent) as file:
        batches = [batch for group in range(file.groups) for batch in file.state(group, list(paths), 1_000)]
    return pa.Table.from_batches(batches).to_pydict(), spent


def places(monkeypatch: pytest.MonkeyPatch, change: Any) -> None:
    """The footer places the columns elsewhere for the checks than for pyarrow."""

    def read(footer: bytes, most: int) -> tuple[tuple[Chunk, ...], ...]:
        return tuple(tuple(change(each) for each in group) for group in read_footer(footer, most))

    monkeypatch.setattr(checked_parquet, "read_footer", read)


def test_what_is_checked_is_what_is_read() -> None:
    found, spent = values(FILE, "a", "b")
    assert found == pq.read_table(io.BytesIO(FILE)).to_pydict()
    assert spent.entries == 10_000
    assert spent.decoded > 5_000 * 8


def test_a_column_that_the_footer_places_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    places(monkeypatch, lambda chunk: replace(chunk, start=chunk.start + 1_000_000))
    with pytest.raises(ValueError, match="a column is elsewhere than the footer says"):
        values(FILE, "a")


@pytest.mark.parametrize("change", [{"length": 10}, {"start": -3}, {"start": 3}])
def test_columns_that_overlap(monkeypatch: pytest.MonkeyPatch, change: dict[str, int]) -> None:
    places(
        monkeypatch,
        lambda chunk: replace(
            chunk, start=chunk.start + change.get("start", 0), length=chunk.length + change.get("length", 0)
        ),
    )
    with pytest.raises(ValueError, match="columns overlap"):
        values(FILE, "a")


def test_of_several_columns_at_one_place_each_is_checked() -> None:
    """A footer may give many columns the place of one chunk: each reads it as values of its own type."""
    seen: list[str] = []
    checks: checked_parquet._Checks = [
        (100, 5, lambda _data: seen.append("first")),
        (100, 5, lambda _data: seen.append("second")),
    ]
    checked_parquet._check(b"12345", 100, 5, checks)
    assert seen == ["first", "second"]


def test_a_chunk_that_is_read_twice_costs_once() -> None:
    spent = Spent()
    with open_checked(io.BytesIO(FILE), spent) as file:
        for _ in range(3):
            list(file.state(0, ["a"], 1_000))
        assert spent.entries == 5_000


def test_a_type_whose_nulls_would_take_much_memory() -> None:
    wide = pa.table({"a": pa.array([None], pa.binary(2_000))})
    with pytest.raises(ValueError, match="a column has values of 2,000 bytes each"):
        values(parquet(wide, use_dictionary=False), "a")


def test_more_row_groups_than_any_checkpoint_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checked_parquet, "_GROUPS", 4)
    many = parquet(pa.table({"a": list(range(5))}), row_group_size=1)
    with pytest.raises(ValueError, match="5 row groups, more than any checkpoint has"):
        values(many, "a")


@pytest.mark.parametrize("cut", [0, 4, 11, 100, len(FILE) - 1])
def test_a_file_that_is_cut_off(cut: int) -> None:
    with pytest.raises((ValueError, pa.ArrowException)):
        values(FILE[:cut], "a")


@pytest.mark.parametrize(("limit", "said"), [("STATE_VALUES", "has 5,000 values"), ("STATE_BYTES", "unpacks to more")])
def test_the_budget_of_the_state(monkeypatch: pytest.MonkeyPatch, limit: str, said: str) -> None:
    monkeypatch.setattr(checked_parquet, limit, 4_999)
    with pytest.raises(ValueError, match=said):
        values(FILE, "a")


def test_a_file_that_was_read_is_freed() -> None:
    """pyarrow's part in C++ refers to the source, so a reference back would keep both forever."""
    sources = []
    for _ in range(3):
        with open_checked(io.BytesIO(FILE), Spent()) as file:
            list(file.state(0, ["a"], 1_000))
            sources.append(weakref.ref(file._source))
        del file
    gc.collect()
    assert [source() for source in sources] == [None, None, None]
