from __future__ import annotations

import logging
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tablectl.leases.guards import GuardRecord, newest_beats
from tablectl.leases.lease import Lease
from tablectl.model.errors import WindowError
from tablectl.storage.records import ListedRecord
from tablectl.writers import keepalive as keepalive_module
from tablectl.writers.gate_entry import StoredGuard
from tablectl.writers.keepalive import GuardThread
from tests.leases.lease_fakes import FakeClock, Fault, MemoryRecords, acquire, claim

ID = "0123abcd"


class Watched(MemoryRecords):
    """Tells of every put, also of one that fails."""

    def __init__(self) -> None:
        super().__init__()
        self.puts = threading.Semaphore(0)

    def create(self, name: str, data: bytes) -> bool:
        try:
            return super().create(name, data)
        finally:
            self.puts.release()


def stored(store: MemoryRecords, ttl: float = 60.0) -> StoredGuard:
    return StoredGuard(store, GuardRecord(ID, 0, "job", ttl=ttl))


def test_calls_are_answered_in_their_order() -> None:
    attendant = GuardThread("t", 60)
    assert [attendant.ask(lambda n=n: n) for n in range(3)] == [0, 1, 2]  # type: ignore[misc]
    attendant.dismiss()


@pytest.mark.parametrize("error", [WindowError("down"), ValueError("no"), TimeoutError("the store's own")])
def test_what_a_call_raises_is_the_askers(error: Exception) -> None:
    attendant = GuardThread("t", 60)

    def fail() -> None:
        raise error

    with pytest.raises(type(error), match=str(error)):
        attendant.ask(fail)
    assert attendant.ask(lambda: 1) == 1
    attendant.dismiss()


class PanicException(BaseException):
    """As Rust's libraries raise it."""


def test_a_panic_of_a_library_ends_neither_the_thread_nor_the_write() -> None:
    attendant = GuardThread("t", 60)

    def panic() -> None:
        raise PanicException("poisoned")

    with pytest.raises(WindowError, match="poisoned"):
        attendant.ask(panic)
    assert attendant.ask(lambda: 1) == 1
    attendant.dismiss()


def test_a_store_that_hangs_is_waited_for_in_bounds_and_cleaned_up_when_it_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(keepalive_module, "ANSWER", 0.05)
    store = MemoryRecords()
    guard = stored(store)
    answers = threading.Event()

    def hang() -> None:
        answers.wait(60)

    store.before_create = hang
    attendant = GuardThread("t", guard.ttl)
    attendant.keep(guard)
    with pytest.raises(WindowError, match=r"did not answer within 0.05 s"):
        attendant.ask(guard.read_gate)
    attendant.fail("it hangs")
    monkeypatch.setattr(keepalive_module, "SHORT_ANSWER", 0.01)
    with pytest.raises(WindowError, match=r"did not answer within 0.01 s"):
        attendant.ask(guard.withdraw)
    answers.set()
    monkeypatch.setattr(keepalive_module, "SHORT_ANSWER", 60.0)
    assert attendant.ask(lambda: store.kept) == {}
    attendant.dismiss()


def test_a_long_write_is_renewed() -> None:
    store = Watched()
    guard = stored(store, ttl=0.06)
    attendant = GuardThread("t", guard.ttl)
    attendant.keep(guard)
    attendant.ask(guard.read_gate)
    for _ in range(5):
        assert store.puts.acquire(timeout=60)
    attendant.ask(guard.withdraw)
    attendant.dismiss()
    assert store.kept == {}


def test_a_renewal_that_fails_is_reported_once_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    store = Watched()
    guard = stored(store, ttl=0.06)
    attendant = GuardThread("sales.orders", guard.ttl)
    attendant.keep(guard)
    attendant.ask(guard.read_gate)
    store.faults.extend([Fault.REFUSED] * 3)
    for _ in range(6):
        assert store.puts.acquire(timeout=60)
    beat = attendant.ask(lambda: newest_beats(store)[ID])
    attendant.dismiss()
    assert beat >= 4
    warnings = [record.message for record in caplog.records if record.levelno >= logging.WARNING]
    assert warnings == [
        "sales.orders: the guard of this write is not renewed, and an apply may take it for dead: refused"
    ]


def lease_of(store: MemoryRecords) -> Lease:
    lease = acquire(store, claim("ann"), FakeClock())
    assert isinstance(lease, Lease)
    return lease


def warned(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records if record.levelno >= logging.WARNING]


def test_a_writer_that_was_taken_for_dead_warns_at_its_next_renewal(caplog: pytest.LogCaptureFixture) -> None:
    store = Watched()
    guard = stored(store, ttl=0.06)
    attendant = GuardThread("sales.orders", guard.ttl)
    attendant.keep(guard)
    attendant.ask(guard.read_gate)
    attendant.ask(lambda: lease_of(store).note_dead([ID]))
    for _ in range(8):
        assert store.puts.acquire(timeout=60)
    attendant.withdraw(guard)
    attendant.dismiss()
    (told,) = warned(caplog)
    assert told.startswith(
        "sales.orders: an apply took this write for dead, because its guard was not renewed for 0.075"
    )


@pytest.mark.parametrize("seconds", [59, 75])
@pytest.mark.parametrize("dead", [True, False])
def test_a_writer_that_was_silent_for_its_ttl_warns_at_its_end(
    caplog: pytest.LogCaptureFixture, seconds: float, dead: bool
) -> None:
    """Code that holds the interpreter's lock leaves its thread no time for a renewal in between. A write that ends in
    time asks the store nothing more.
    """
    store, clock = MemoryRecords(), FakeClock()
    guard = stored(store)
    attendant = GuardThread("sales.orders", guard.ttl)
    attendant._clock, attendant._began = clock, clock.now
    attendant.keep(guard)
    attendant.ask(guard.read_gate)
    if dead:
        lease_of(store).note_dead([ID])
    clock.now += seconds
    attendant.withdraw(guard)
    attendant.dismiss()
    assert len(warned(caplog)) == (dead and seconds == 75)
    assert store.names("guards/") == ()


def test_a_store_that_fails_at_the_look_back_does_not_keep_the_guard(caplog: pytest.LogCaptureFixture) -> None:
    class NoGate(MemoryRecords):
        def listed(self, prefix: str) -> tuple[ListedRecord, ...]:
            raise WindowError(f"{prefix} cannot be listed")

    store, clock = NoGate(), FakeClock()
    guard = stored(store)
    attendant = GuardThread("sales.orders", guard.ttl)
    attendant._clock, attendant._began = clock, clock.now
    attendant.ask(guard.put_active)
    clock.now += 75
    attendant.withdraw(guard)
    attendant.dismiss()
    assert store.kept == {}
    assert warned(caplog) == []


def test_the_thread_ends_with_its_guard() -> None:
    before = set(threading.enumerate())
    attendant = GuardThread("t", 60)
    (thread,) = set(threading.enumerate()) - before
    assert thread.daemon
    attendant.dismiss()
    thread.join(60)
    assert not thread.is_alive()


_HANGS = """
import time
import tablectl.writers.keepalive
from tablectl.writers.keepalive import GuardThread
from tablectl.model.errors import WindowError
from tablectl.storage.records import ListedRecord
tablectl.writers.keepalive.ANSWER = 0.01
attendant = GuardThread("t", 60)
try:
    attendant.ask(lambda: time.sleep(3600))
except WindowError:
    print("open", flush=True)
"""


def test_the_end_of_the_interpreter_waits_for_no_store() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _HANGS],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
        cwd=Path(__file__).parents[2],
    )
    assert (done.returncode, done.stdout) == (0, "open\n")
