"""The trace of guarded writers: one record for each writer, table and day."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from tablectl.storage.records import open_records
from tablectl.writers.trace import Trace, leave_trace, traces

TODAY, YESTERDAY = date(2026, 11, 22), date(2026, 11, 21)


def test_a_writer_is_recorded_once_a_day(tmp_path: Path) -> None:
    for day in (YESTERDAY, TODAY, TODAY):
        leave_trace(str(tmp_path), None, "nightly, ops on host", "append", day)
    leave_trace(str(tmp_path), None, "hourly, ops on host", "any", TODAY)
    assert len(list((tmp_path / "_tablectl" / "writers").iterdir())) == 3
    store = open_records(str(tmp_path))
    assert set(traces(store, TODAY)) == {
        Trace("2026-11-22", "nightly, ops on host", "append"),
        Trace("2026-11-22", "hourly, ops on host", "any"),
    }
    assert len(traces(store, YESTERDAY)) == 3


def test_records_of_strangers_are_left_out(tmp_path: Path) -> None:
    store = open_records(str(tmp_path))
    store.create("writers/2026-11-22.aaaaaaaaaaaaaaaa.json", b"[")
    store.create("writers/2026-11-22.bbbbbbbbbbbbbbbb.json", b'{"writer": "a\\u001b[31m", "mode": "append"}')
    store.create("writers/other.json", b"{}")
    assert traces(store, TODAY) == [Trace("2026-11-22", "a\\x1b[31m", "append")]


def test_a_store_that_cannot_be_written_costs_nothing_but_the_trace(tmp_path: Path) -> None:
    (tmp_path / "_tablectl").write_text("a file")
    leave_trace(str(tmp_path), None, "w", "append", TODAY)
