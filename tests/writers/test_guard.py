"""``tablectl.guard`` on a real directory."""

from __future__ import annotations

import asyncio
import contextvars
import json
import logging
import os
import pickle
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

import tablectl
from tablectl.leases import clock as clock_module
from tablectl.leases.clock import SystemClock
from tablectl.leases.guards import GuardMode, GuardRecord, read_guard, read_guards
from tablectl.leases.lease_records import MOST_RECORDS, Gate, dump_record, record_name, tail
from tablectl.model.errors import WindowError
from tablectl.storage.records import DiskRecords, open_records
from tablectl.writers import guard as guard_module
from tablectl.writers import keepalive as keepalive_module
from tablectl.writers import session_guards
from tablectl.writers.gate_entry import GateEntry, StoredGuard
from tablectl.writers.session_guards import PendingWrite, SessionGuards, run_guarded
from tests.leases.lease_fakes import FakeClock
from tests.unreadable import unreadable
from tests.writers.conftest import Place, lease_of

MODES: tuple[Literal["any", "rewrite", "append"], ...] = ("any", "rewrite", "append")


@pytest.fixture
def other(tmp_path: Path) -> Place:
    """Another table."""
    (tmp_path / "other" / "_delta_log").mkdir(parents=True)
    return Place(tmp_path / "other")


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records if record.levelno >= logging.WARNING]


def test_a_guard_is_in_the_table_while_the_write_runs(place: Place) -> None:
    with tablectl.guard(None, str(place), "append", name="nightly load"):
        (name,) = place.records.names("guards/")
        record = json.loads(place.records.read(name) or b"")
        assert record["mode"] == "append"
        assert record["ttl"] == 60
        assert record["writer"].startswith("nightly load, ")
        assert f"pid {os.getpid()}" in record["writer"] or "://" in record["writer"]
    assert place.guards == {}


def test_what_a_writer_leaves_is_an_empty_directory(place: Place) -> None:
    with tablectl.guard(None, str(place)):
        pass
    assert [path for path in place.path.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("form", ["{}", "{}/", "file:{}", "file://{}", "delta.`{}`"])
def test_every_spelling_of_a_location_is_the_same_table(place: Place, form: str) -> None:
    with tablectl.guard(None, form.format(place)):
        assert len(place.guards) == 1


def test_a_location_may_be_a_path(place: Place) -> None:
    with tablectl.guard(None, place.path):
        assert len(place.guards) == 1


def test_a_name_without_a_session_is_refused() -> None:
    with pytest.raises(ValueError, match=r"sales\.orders.*takes a session"):
        tablectl.guard(None, "sales.orders")


class FakeSession:
    """Answers ``DESCRIBE TABLE EXTENDED``, the only statement a guard may send."""

    def __init__(self, location: str, provider: str = "delta") -> None:
        self.rows = [("Type", "EXTERNAL"), ("Provider", provider), ("Location", location)]
        self.sent: list[str] = []

    def sql(self, text: str) -> FakeSession:
        self.sent.append(text)
        return self

    def collect(self) -> list[tuple[str, str]]:
        return self.rows


def test_a_name_is_looked_up_as_the_sessions_own_statements_would(place: Place) -> None:
    session = FakeSession(f"file:{place}")
    with tablectl.guard(session, "sales.`my orders`", "append"):
        assert len(place.guards) == 1
        with tablectl.guard(None, str(place), "append"):
            assert len(place.guards) == 1
    assert session.sent == ["DESCRIBE TABLE EXTENDED `sales`.`my orders`"]


def test_one_name_in_two_catalogs_is_two_tables(place: Place, other: Place) -> None:
    """As with two sessions, or after ``USE CATALOG``."""
    session = FakeSession(f"file:{place}")
    with tablectl.guard(session, "sales.orders", "append"):
        session.rows[-1] = ("Location", f"file:{other}")
        with tablectl.guard(session, "sales.orders", "append"):
            assert (len(place.guards), len(other.guards)) == (1, 1)
        assert (len(place.guards), len(other.guards)) == (1, 0)


def test_two_names_of_one_table_are_one_guard(place: Place, tmp_path: Path) -> None:
    """Else the inner one waits for an apply that waits for the outer one."""
    link = tmp_path / "link"
    link.symlink_to(str(place))
    with tablectl.guard(FakeSession(str(link)), "a.orders"), tablectl.guard(FakeSession(str(place)), "b.orders"):
        assert len(place.guards) == 1


def test_a_name_that_moves_while_its_writer_waits_leads_to_the_gate_of_its_new_table(
    place: Place, other: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = FakeSession(str(place))
    first, second = place.apply(), other.apply()
    first.gate(Gate.CLOSED)
    second.gate(Gate.CLOSED)
    waited_at: list[tuple[int, int]] = []

    def moves(_clock: object, _seconds: float) -> None:
        waited_at.append((len(place.guards), len(other.guards)))
        (second if len(waited_at) > 1 else first).gate(Gate.OPEN)
        session.rows[-1] = ("Location", str(other))

    monkeypatch.setattr(SystemClock, "sleep", moves)
    with tablectl.guard(session, "sales.orders", "append"):
        assert waited_at == [(1, 0), (0, 1)]
        assert (len(place.guards), len(other.guards)) == (0, 1)
    assert other.guards == {}


def test_a_write_of_a_guarded_session_follows_its_name_and_decides_its_mode_again(
    place: Place, other: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = FakeSession(str(place))
    lease = place.apply()
    lease.gate(Gate.CLOSED)

    def moves(_clock: object, _seconds: float) -> None:
        session.rows[-1] = ("Location", str(other))
        lease.gate(Gate.OPEN)

    monkeypatch.setattr(SystemClock, "sleep", moves)
    monkeypatch.setattr(session_guards, "merges_schemas", lambda _session: False)
    reads = {str(place): GuardMode.APPEND, str(other): GuardMode.REWRITE}
    write = PendingWrite("sales.orders", reads.__getitem__)
    records = run_guarded(SessionGuards(), session, write, lambda: read_guards(other.records))
    assert [each.mode for each in records] == [GuardMode.REWRITE]
    assert place.guards == {}


def test_a_name_that_moves_at_each_wait_is_written_with_a_warning(
    place: Place, other: Place, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    session = FakeSession(str(place))
    leases = {str(place): place.apply(), str(other): other.apply()}
    for lease in leases.values():
        lease.gate(Gate.CLOSED)

    def moves(_clock: object, _seconds: float) -> None:
        at = session.rows[-1][1]
        leases[at].gate(Gate.OPEN)
        there = str(other) if at == str(place) else str(place)
        leases[there].gate(Gate.CLOSED)
        session.rows[-1] = ("Location", there)

    monkeypatch.setattr(SystemClock, "sleep", moves)
    with tablectl.guard(session, "sales.orders", "append"):
        pass
    assert "its name led to another table after each wait" in warnings(caplog)[-1]


def test_what_the_catalog_does_not_know_is_written_without_a_guard(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    with tablectl.guard(FakeSession(str(place), provider="parquet"), "sales.orders"):
        assert place.guards == {}
    (warning,) = warnings(caplog)
    assert warning.startswith("sales.orders: this write goes on without a look at the gate")
    assert "not a Delta table" in warning


def test_where_there_is_no_table_a_warning_says_so_and_nothing_is_made(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Delta creates no table in a directory that holds something. A path with a typing error guards nothing."""
    locations = (tmp_path / "new", tmp_path)
    for location in locations:
        with tablectl.guard(None, location):
            assert list(tmp_path.iterdir()) == []
    said = "there is no Delta table, and so no guard: check the path, unless this write creates the table"
    assert warnings(caplog) == [f"{location}: {said}" for location in locations]


# Gates


@pytest.mark.parametrize("mode", MODES)
def test_a_write_waits_at_a_closed_gate_and_goes_on_when_it_opens(place: Place, mode: Any) -> None:
    lease = place.apply()
    lease.gate(Gate.CLOSED)
    waiting, wrote = threading.Event(), threading.Event()

    def write() -> None:
        waiting.set()
        with tablectl.guard(None, str(place), mode, timeout=60):
            last = tail(place.records)
            assert last is not None
            assert last.gate is Gate.OPEN
            wrote.set()

    with ThreadPoolExecutor() as pool:
        task = pool.submit(write)
        waiting.wait(60)
        assert not wrote.wait(0.2)
        lease.gate(Gate.OPEN)
        task.result(60)
    assert place.guards == {}


def test_an_appender_goes_on_while_data_is_rewritten(place: Place) -> None:
    place.apply().gate(Gate.APPENDS_ONLY)
    with tablectl.guard(None, str(place), "append", timeout=0):
        assert len(place.guards) == 1
    for mode in ("any", "rewrite"):
        with pytest.raises(tablectl.GuardTimeout), tablectl.guard(None, str(place), mode, timeout=0):
            pytest.fail("it went through")


def test_the_timeout_names_who_to_ask(place: Place) -> None:
    place.apply().gate(Gate.CLOSED)
    with pytest.raises(tablectl.GuardTimeout) as caught, tablectl.guard(None, str(place), timeout=0.01):
        pytest.fail("it went through")
    for part in (str(place), "ann on ci-7", "https://ci.example/runs/1", "run-of-ann", "(closed)", "window break"):
        assert part in str(caught.value)
    assert place.guards == {}


def test_a_dead_apply_stops_no_writer(place: Place) -> None:
    place.apply(ttl=0.2).gate(Gate.CLOSED)
    with tablectl.guard(None, str(place), timeout=60):
        assert len(place.guards) == 1


@pytest.mark.parametrize("number", [MOST_RECORDS, 10**18, 10**20 - 1])
def test_a_record_with_an_impossible_number_hides_no_gate_and_costs_no_wait(
    place: Place, number: int, caplog: pytest.LogCaptureFixture
) -> None:
    lease = place.apply()
    (place.path / "_tablectl" / record_name(number)).write_text("x")
    for _ in range(2):
        with tablectl.guard(None, str(place), timeout=0):
            assert len(place.guards) == 1
    assert len(warnings(caplog)) == 2
    for part in (record_name(number), "not a record of tablectl", "obeys the gate without it: remove it"):
        assert part in warnings(caplog)[0]
    lease.gate(Gate.CLOSED)
    with pytest.raises(tablectl.GuardTimeout), tablectl.guard(None, str(place), timeout=0):
        pytest.fail("it went through")


def test_an_epoch_that_no_log_reaches_costs_one_wait(place: Place) -> None:
    """As any record that cannot be read: the first writer takes its holder for dead, and says so in the log."""
    place.apply(ttl=0.2)
    last = tail(place.records)
    assert last is not None
    body = json.loads(dump_record(last)) | {"seq": 2, "epoch": 10**18, "gate": "closed"}
    (place.path / "_tablectl" / record_name(2)).write_text(json.dumps(body))
    waits = GuardRecord("0123abcd", 0, "job", GuardMode.ANY, 60.0)
    clock = FakeClock()
    for seconds in (75, 0):
        before = clock.now
        GateEntry(StoredGuard(place.records, waits), "orders", None, clock, lambda call: call()).enter()
        assert seconds <= clock.now - before < seconds + 3
        waits = replace(waits, id="0123abce")


# Every exit


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt(), SystemExit(3)])
def test_the_guard_goes_and_the_writers_own_exception_stays(place: Place, error: BaseException) -> None:
    with pytest.raises(type(error)) as caught, tablectl.guard(None, str(place)):
        raise error
    assert caught.value is error
    assert place.guards == {}


def test_an_interrupt_while_it_waits_leaves_nothing(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.apply().gate(Gate.CLOSED)

    def interrupt(_clock: object, _seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(clock_module.SystemClock, "sleep", interrupt)
    with pytest.raises(KeyboardInterrupt), tablectl.guard(None, str(place)):
        pytest.fail("it went through")
    assert place.guards == {}


def test_an_interrupt_while_the_name_is_looked_up_again_leaves_nothing(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, lease = FakeSession(str(place)), place.apply()
    lease.gate(Gate.CLOSED)

    def interrupt(_session: object, _name: str) -> str:
        raise KeyboardInterrupt

    def opens(_clock: object, _seconds: float) -> None:
        lease.gate(Gate.OPEN)
        monkeypatch.setattr(guard_module, "locate", interrupt)

    monkeypatch.setattr(SystemClock, "sleep", opens)
    with pytest.raises(KeyboardInterrupt), tablectl.guard(session, "sales.orders"):
        pytest.fail("it went through")
    assert place.guards == {}


def test_a_guard_that_cannot_be_deleted_does_not_hide_what_the_writer_raised(
    place: Place, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_records: object, _name: str) -> None:
        raise WindowError("read-only by now")

    @tablectl.guard(None, str(place))
    def write() -> None:
        monkeypatch.setattr(DiskRecords, "delete", fail)
        raise ValueError("the writer's own")

    with pytest.raises(ValueError, match="the writer's own"):
        write()
    (warning,) = warnings(caplog)
    assert "was not deleted" in warning
    assert "read-only by now" in warning


# Failing open


def _unwritable(place: Place) -> None:
    (place.path / "_tablectl").write_bytes(b"a file where the directory should be")


def test_a_table_that_may_not_be_read_does_not_fail_its_writer(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    with unreadable(place.path), tablectl.guard(None, str(place)):
        pass
    (warning,) = warnings(caplog)
    assert "permission" in warning.lower()


def test_whatever_is_wrong_with_the_records_the_write_goes_on(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    _unwritable(place)
    with tablectl.guard(None, str(place)), tablectl.guard(None, str(place)):
        pass
    (warning,) = warnings(caplog)
    assert warning.startswith(f"{place}: this write goes on without a look at the gate, and an apply may fail it")
    assert list(place.path.rglob("*.0.json")) == []


@pytest.mark.parametrize("call", ["create", "read", "names"])
@pytest.mark.parametrize("error", [WindowError("down"), RuntimeError("a bug"), MemoryError()])
def test_whatever_a_call_of_the_store_raises(
    place: Place, call: str, error: Exception, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    place.apply()

    def fail(*_args: object) -> None:
        raise error

    monkeypatch.setattr(DiskRecords, call, fail)
    wrote = False
    with tablectl.guard(None, str(place)):
        wrote = True
    assert wrote
    assert len(warnings(caplog)) == 1


def test_a_gate_that_cannot_be_read_leaves_the_guard_for_the_apply_to_see(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.apply()

    def fail(*_args: object) -> bytes:
        raise WindowError("down")

    monkeypatch.setattr(DiskRecords, "read", fail)
    with tablectl.guard(None, str(place)):
        assert len(place.guards) == 1
    assert place.guards == {}


def test_a_store_that_hangs_holds_the_write_up_in_bounds(
    place: Place, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for patience in ("ANSWER", "SHORT_ANSWER"):
        monkeypatch.setattr(keepalive_module, patience, 0.05)
    answers = threading.Event()
    names = DiskRecords.names

    def hang(records: DiskRecords, prefix: str) -> tuple[str, ...]:
        answers.wait(60)
        return names(records, prefix)

    monkeypatch.setattr(DiskRecords, "names", hang)
    with tablectl.guard(None, str(place)):
        assert len(list(place.path.rglob("*.0.json"))) == 1
    (warning,) = warnings(caplog)
    assert "did not answer within 0.05 s" in warning
    answers.set()
    while list(place.path.rglob("*.0.json")):  # taken away as soon as the store answers
        threading.Event().wait(0.01)


@pytest.mark.parametrize("location", ["hdfs://nn/orders", "az://container/orders", "dbfs:/orders"])
def test_a_location_out_of_reach_is_a_warning(
    location: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_NAME", raising=False)
    with tablectl.guard(None, location):
        pass
    assert len(warnings(caplog)) == 1


# Guards inside guards


@pytest.mark.parametrize("outer", MODES)
@pytest.mark.parametrize("inner", MODES)
def test_an_inner_guard_passes_straight_through_or_is_refused(place: Place, outer: Any, inner: Any) -> None:
    with tablectl.guard(None, str(place), outer):
        before = place.guards
        if MODES.index(outer) <= MODES.index(inner):
            with tablectl.guard(None, f"file:{place}", inner):
                assert place.guards == before
            assert place.guards == before
        else:
            with (
                pytest.raises(ValueError, match=f"give the outer one mode {inner}"),
                tablectl.guard(None, str(place), inner),
            ):
                pytest.fail("it went through")
    assert place.guards == {}


def test_an_inner_guard_does_not_wait_for_an_apply_that_waits_for_the_outer(place: Place) -> None:
    with tablectl.guard(None, str(place)):
        place.apply().gate(Gate.CLOSED)
        with tablectl.guard(None, str(place), timeout=0):
            pass


def test_inside_a_guard_that_was_taken_for_dead_a_guard_has_a_record_of_its_own(place: Place) -> None:
    """No apply waits for the outer one any more, so it protects nothing, and waiting causes no deadlock."""
    guard = tablectl.guard(None, str(place), "append")
    with guard:
        lease = place.apply()
        lease.gate(Gate.CLOSED)
        lease.note_dead([*place.guards])
        (entry,) = guard._entries[0].entries
        assert entry._thread._renewed()
        with pytest.raises(tablectl.GuardTimeout), tablectl.guard(None, str(place), "append", timeout=0):
            pytest.fail("it went through")
        lease.gate(Gate.OPEN)
        with tablectl.guard(None, str(place), "append"):
            assert len(place.guards) == 2


def test_the_innermost_asks_the_outermost(place: Place) -> None:
    with (
        tablectl.guard(None, str(place), "rewrite"),
        tablectl.guard(None, str(place), "append"),
        tablectl.guard(None, str(place), "rewrite"),
    ):
        assert len(place.guards) == 1


def test_guards_of_two_tables_do_not_know_each_other(place: Place, tmp_path: Path) -> None:
    (tmp_path / "other" / "_delta_log").mkdir(parents=True)
    other = Place(tmp_path / "other")
    with tablectl.guard(None, str(place), "append"), tablectl.guard(None, str(other), "any"):
        assert len(place.guards) == len(other.guards) == 1


def test_one_object_may_be_entered_again_and_again(place: Place) -> None:
    guard = tablectl.guard(None, str(place))
    seen = set()
    for _ in range(3):
        with guard, guard:
            seen |= set(place.guards)
        assert place.guards == {}
    assert len(seen) == 3


def test_threads_take_guards_of_their_own(place: Place) -> None:
    guard = tablectl.guard(None, str(place))
    both = threading.Barrier(3)

    def write() -> None:
        with guard:
            both.wait(60)
            both.wait(60)

    with ThreadPoolExecutor() as pool:
        tasks = [pool.submit(write) for _ in range(2)]
        both.wait(60)
        assert len(place.guards) == 2
        both.wait(60)
        for task in tasks:
            task.result(60)
    assert place.guards == {}


def test_threads_that_were_given_a_copy_of_the_context_share_the_guard(place: Place) -> None:
    """As ``asyncio.to_thread`` does. To wait at the gate would be a deadlock with an apply that waits for the guard
    outside."""

    def write() -> set[str]:
        with tablectl.guard(None, str(place), timeout=0):
            return set(place.guards)

    async def main() -> tuple[set[str], set[str]]:
        with tablectl.guard(None, str(place)):
            place.apply().gate(Gate.CLOSED)
            return set(place.guards), await asyncio.to_thread(write)

    outside, inside = asyncio.run(main())
    assert outside == inside
    assert place.guards == {}


def test_a_task_that_may_do_more_than_the_guard_around_it_has_a_guard_of_its_own(place: Place) -> None:
    async def write() -> int:
        with tablectl.guard(None, str(place), "any"):
            return len(place.guards)

    async def main() -> int:
        with tablectl.guard(None, str(place), "append"):
            return await asyncio.create_task(write())

    assert asyncio.run(main()) == 2


def test_a_thread_that_waits_inside_a_guard_of_its_table_tells_the_apply(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The apply then opens the gate for a moment instead of waiting for a guard that waits for it."""
    told: list[str] = []

    async def main() -> None:
        with tablectl.guard(None, str(place), "append"):
            (outer,) = place.guards
            lease = place.apply()
            lease.gate(Gate.NO_SCHEMA)

            def looks(_clock: object, _seconds: float) -> None:
                found = read_guard(place.records, outer, place.guards[outer])
                told.append("" if found is None else found.waits)
                lease.gate(Gate.OPEN)

            monkeypatch.setattr(SystemClock, "sleep", looks)
            with_any = tablectl.guard(None, str(place), "any")(lambda: len(place.guards))
            assert await asyncio.to_thread(with_any) == 2

    asyncio.run(main())
    assert told == [str(place)]


def test_a_guard_that_is_left_in_an_unknown_context_ends_no_use_of_another_thread(place: Place) -> None:
    """Which use ends is not known, so both records stay until the last use ends."""
    guard = tablectl.guard(None, str(place))
    for _ in range(2):
        contextvars.copy_context().run(guard.__enter__)
    assert len(place.guards) == 2
    guard.__exit__(None, None, None)
    assert len(place.guards) == 2
    guard.__exit__(None, None, None)
    assert place.guards == {}


def test_a_guard_before_the_table_exists_leaves_the_guards_inside_to_themselves(tmp_path: Path) -> None:
    table = Place(tmp_path / "new")
    with tablectl.guard(None, table.path):
        (tmp_path / "new" / "_delta_log").mkdir(parents=True)
        with tablectl.guard(None, table.path):
            assert len(table.guards) == 1


def test_a_guard_that_is_over_covers_nothing(place: Place) -> None:
    with tablectl.guard(None, str(place)):
        context = contextvars.copy_context()

    def write() -> int:
        with tablectl.guard(None, str(place)):
            return len(place.guards)

    assert context.run(write) == 1


def test_it_may_be_left_in_another_context_than_it_was_entered_in(place: Place) -> None:
    guard = tablectl.guard(None, str(place))
    contextvars.copy_context().run(guard.__enter__)
    assert len(place.guards) == 1
    contextvars.copy_context().run(guard.__exit__, None, None, None)
    assert place.guards == {}


# As a decorator


def test_each_call_of_a_function_takes_a_guard_of_its_own(place: Place) -> None:
    seen: list[str] = []

    @tablectl.guard(None, str(place), "append")
    def load(rows: int, *, day: str = "monday") -> str:
        """Loads a day."""
        seen.extend(place.guards)
        return f"{rows} of {day}"

    assert [load(3), load(4, day="tuesday")] == ["3 of monday", "4 of tuesday"]
    assert len(set(seen)) == 2
    assert place.guards == {}
    assert (load.__name__, load.__doc__) == ("load", "Loads a day.")


def test_a_function_may_call_itself(place: Place) -> None:
    @tablectl.guard(None, str(place))
    def down(n: int) -> int:
        return down(n - 1) if n else len(place.guards)

    assert down(3) == 1


def test_functions_that_return_before_they_have_written_are_refused(place: Place) -> None:
    guard = tablectl.guard(None, str(place))

    async def coroutine() -> None: ...

    async def asynchronous() -> AsyncIterator[int]:
        yield 1

    def generator() -> Iterator[int]:
        yield 1

    class Later:
        async def __call__(self) -> None: ...

    for function in (coroutine, asynchronous, generator, Later()):
        with pytest.raises(TypeError, match=r"returns before it has written.*to_thread"):
            guard(function)
    with pytest.raises(TypeError, match="wraps a function, and this is int"):
        guard(5)  # type: ignore[arg-type]


def test_a_guard_without_a_session_can_be_sent_to_another_process(place: Place) -> None:
    guard = tablectl.guard(None, str(place), "append", name="job")
    with guard:
        sent = pickle.loads(pickle.dumps(guard))
        with pytest.raises(ValueError, match="mode any inside one of mode append"), tablectl.guard(None, str(place)):
            pass
    with sent:
        assert len(place.guards) == 1


# Where the records lie


def test_under_state_the_records_lie_where_the_apply_puts_them(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = lease_of(open_records(str(place), str(tmp_path / "state"), str(place)))
    lease.gate(Gate.CLOSED)
    with (
        pytest.raises(tablectl.GuardTimeout),
        tablectl.guard(None, f"file:{place}/", timeout=0, state=str(tmp_path / "state")),
    ):
        pass
    monkeypatch.setenv("TABLECTL_STATE", str(tmp_path / "state"))
    with pytest.raises(tablectl.GuardTimeout), tablectl.guard(None, str(place), timeout=0):
        pass
    with tablectl.guard(None, str(place), timeout=0, state=str(tmp_path / "another")):
        pass
    monkeypatch.setenv("TABLECTL_STATE", "")
    with tablectl.guard(None, str(place), timeout=0):
        assert len(place.guards) == 1


def test_the_apply_uses_the_same_place(place: Place, tmp_path: Path) -> None:
    from tablectl.commands.project import Project
    from tablectl.policies.config import Config

    state = str(tmp_path / "state")
    project = Project(Config(state=state))
    with tablectl.guard(None, str(place), state=state):
        assert len(project.records(f"file:{place}").names("guards/")) == 1


def test_under_state_two_links_to_one_table_are_one(tmp_path: Path, place: Path) -> None:
    link, state = tmp_path / "link", str(tmp_path / "state")
    link.symlink_to(str(place))
    for each in (str(place), str(link)):
        with tablectl.guard(None, each, state=state):
            pass
    assert len(list(Path(state).iterdir())) == 1


def test_hdfs_is_fine_with_state(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with tablectl.guard(None, "hdfs://nn/lake/orders", state=str(tmp_path)):
        assert len(list(tmp_path.rglob("*.0.json"))) == 1
    assert warnings(caplog) == []


# Guards of several tables


def test_a_guard_inside_another_tables_tells_at_which_gate_its_write_waits(place: Place, tmp_path: Path) -> None:
    """Else the apply of the outer table waits for a writer that waits for the apply of the inner one."""
    (tmp_path / "customers" / "_delta_log").mkdir(parents=True)
    inner = Place(tmp_path / "customers")
    lease = inner.apply()
    lease.gate(Gate.CLOSED)
    seen: list[str] = []

    def waits_for() -> str:
        ((guard, beat),) = place.guards.items()
        found = read_guard(place.records, guard, beat)
        return "" if found is None else found.waits

    sleep = SystemClock.sleep

    def looks(clock: SystemClock, seconds: float) -> None:
        """The first thing that a waiting writer does after it has told the outer guard."""
        seen.append(waits_for())
        lease.gate(Gate.OPEN)
        sleep(clock, seconds)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SystemClock, "sleep", looks)
        with tablectl.guard(None, str(place), "append"), tablectl.guard(None, str(inner), "append"):
            seen.append(waits_for())
    assert seen == [str(inner), ""]
