"""The trace of guarded writers: one record for each writer, table and day, left while the write runs."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from threading import Event
from typing import Any
from unittest.mock import MagicMock

import pytest

import tablectl
from tablectl.leases.guards import GuardMode
from tablectl.model.errors import WindowError
from tablectl.storage.records import open_records
from tablectl.writers import guard as guard_module
from tablectl.writers.guard_traces import Trace, leave_trace, traces
from tablectl.writers.session_guards import PendingWrite, SessionGuards, fixed_mode, run_guarded
from tests.leases.lease_fakes import MemoryRecords
from tests.writers.conftest import Place

TODAY, YESTERDAY = date(2026, 11, 22), date(2026, 11, 21)


def test_a_writer_is_recorded_once_a_day(tmp_path: Path) -> None:
    store = open_records(str(tmp_path))
    for day in (YESTERDAY, TODAY, TODAY):
        leave_trace(store, "nightly, ops on host", "append", day)
    leave_trace(store, "hourly, ops on host", "any", TODAY)
    assert len(store.names("writers/")) == 3
    assert set(traces(store, TODAY)) == {
        Trace("2026-11-22", "nightly, ops on host", "append"),
        Trace("2026-11-22", "hourly, ops on host", "any"),
    }
    assert len(traces(store, YESTERDAY)) == 3


def test_a_writer_deletes_traces_that_are_older_than_30_days(tmp_path: Path) -> None:
    """Else each run of a pod, whose host has a new name, left a file that nothing deletes."""
    store = open_records(str(tmp_path))
    days = {age: (TODAY - timedelta(days=age)).isoformat() for age in (0, 29, 30, 31, 400)}
    for day in days.values():
        store.create(f"writers/{day}.aaaaaaaaaaaaaaaa.json", b"{}")
    store.create("writers/2020-notes.json", b"{}")
    leave_trace(store, "nightly, ops on pod-7", "append", TODAY)
    left = {name.removeprefix("writers/")[:10] for name in store.names("writers/")}
    assert left == {days[0], days[29], days[30], "2020-notes"}


def test_a_write_waits_for_the_deletion_of_few_old_traces(tmp_path: Path) -> None:
    store = open_records(str(tmp_path))
    for number in range(50):
        store.create(f"writers/2024-01-01.{number:016x}.json", b"{}")
    leave_trace(store, "hourly, ops on pod-7", "append", TODAY)
    assert len(store.names("writers/")) == 50 - 20 + 1


class KeepsAll(MemoryRecords):
    """A writer that may put traces, and not delete any."""

    def delete(self, name: str) -> None:
        raise WindowError(f"no right to delete {name}")


def test_a_writer_that_may_not_delete_leaves_its_trace(caplog: pytest.LogCaptureFixture) -> None:
    store = KeepsAll()
    store.create("writers/2024-01-01.aaaaaaaaaaaaaaaa.json", b"{}")
    leave_trace(store, "weekly, ops on pod-7", "append", TODAY)
    assert len(store.names("writers/")) == 2
    assert caplog.messages == []


def test_records_of_strangers_are_left_out(tmp_path: Path) -> None:
    store = open_records(str(tmp_path))
    store.create("writers/2026-11-22.aaaaaaaaaaaaaaaa.json", b"[")
    store.create("writers/2026-11-22.bbbbbbbbbbbbbbbb.json", b'{"writer": "a\\u001b[31m", "mode": "append"}')
    store.create("writers/other.json", b"{}")
    assert traces(store, TODAY) == [Trace("2026-11-22", "a\\x1b[31m", "append")]


def test_a_store_that_cannot_be_written_costs_nothing_but_the_trace(tmp_path: Path) -> None:
    (tmp_path / "_tablectl").write_text("a file")
    leave_trace(open_records(str(tmp_path)), "w", "append", TODAY)


def write(place: Path, call: Any, name: str = "nightly") -> None:
    """A write of a guarded session to the table at a path."""
    session = MagicMock()
    session.conf.get.side_effect = lambda _key, default: default
    run_guarded(SessionGuards(name), session, PendingWrite(str(place), fixed_mode(GuardMode.ANY)), call)


def test_a_place_is_empty_when_a_guarded_session_creates_its_table(tmp_path: Path) -> None:
    """Delta creates no table in a folder that holds something."""
    found: list[bool] = []
    write(tmp_path / "new", lambda: found.append((tmp_path / "new").exists()))
    assert found == [False]


class SlowTraces(MemoryRecords):
    """Takes a trace only once ``answers`` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.answers = Event()

    def create(self, name: str, data: bytes) -> bool:
        assert not name.startswith("writers/") or self.answers.wait(60)
        return super().create(name, data)


def test_a_write_does_not_wait_for_its_trace(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    store = SlowTraces()
    monkeypatch.setattr(guard_module, "open_records", lambda *_: store)
    write(place.path, store.answers.set, "slow")
    assert len(store.names("writers/")) == 1


class SilentGate(MemoryRecords):
    """Takes guards, and does not tell the gate."""

    def listed(self, prefix: str) -> Any:
        raise WindowError(f"{prefix} cannot be listed")


def test_a_write_without_a_guard_in_the_store_leaves_no_trace(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    store = SilentGate()
    monkeypatch.setattr(guard_module, "open_records", lambda *_: store)
    write(place.path, lambda: None, "unguarded")
    with tablectl.guard(None, str(place)):
        write(place.path, lambda: None, "inner")
    assert store.kept == {}


def test_a_trace_of_a_day_to_come_is_left_out() -> None:
    store = MemoryRecords()
    for day in (date(9999, 12, 31), TODAY):
        leave_trace(store, f"writer of {day.year}", "append", day)
    assert [each.writer for each in traces(store, TODAY)] == ["writer of 2026"]
