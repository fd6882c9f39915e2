"""A writer's way past the gate, on a store in memory and a clock that is turned by hand."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from itertools import pairwise
from typing import TypeVar

import pytest

from tablectl.leases.acquire import Held, break_lease
from tablectl.leases.guards import GuardMode, GuardRecord, newest_beats, read_guard
from tablectl.leases.lease import Lease, LeaseLost
from tablectl.leases.lease_records import (
    MOST_DEAD_GUARDS,
    Gate,
    RunningStatement,
    dump_record,
    record_name,
    tail,
)
from tablectl.model.errors import WindowError
from tablectl.writers.gate_entry import GateEntry, GuardTimeout, StoredGuard
from tests.applying.writers import drained
from tests.leases.lease_fakes import FakeClock, Fault, MemoryRecords, claim, try_acquire

T = TypeVar("T")
ID = "0123abcd"


def ask(call: Callable[[], T], /) -> T:
    return call()


STATEMENT = RunningStatement("spark", "tablectl-r1-1", 570, "r1", 7)


def answered(*, said: bool) -> Future[bool]:
    answer: Future[bool] = Future()
    answer.set_result(said)
    return answer


class Table:
    """A table with an apply that holds it, and one writer."""

    def __init__(
        self, mode: GuardMode = GuardMode.ANY, timeout: float | None = None, store: MemoryRecords | None = None
    ) -> None:
        self.store = store or MemoryRecords()
        self.clock = FakeClock()
        self.clock.on_sleep = self._on_sleep
        self.agenda: list[tuple[float, Callable[[], object]]] = []
        self.guard = StoredGuard(self.store, GuardRecord(ID, 0, "job", mode, 60.0), claim("etl").owner)
        self.looks: list[tuple[float, RunningStatement]] = []
        self.log: Callable[[RunningStatement], Future[bool]] = lambda _running: answered(said=False)
        self.passage = GateEntry(self.guard, "sales.orders", timeout, self.clock, ask, look=self._look)

    def apply(self, who: str = "ann") -> Lease:
        lease = try_acquire(self.store, claim(who), self.clock)
        assert not isinstance(lease, Held)
        return lease

    def _look(self, running: RunningStatement) -> Future[bool]:
        self.looks.append((self.clock.now, running))
        return self.log(running)

    def leaves_a_statement(self) -> Lease:
        """An apply dies while its statement runs."""
        lease = self.apply()
        lease.gate(Gate.CLOSED)
        lease.announce(STATEMENT)
        return lease

    def after(self, seconds: float, act: Callable[[], object]) -> None:
        """Lets something happen while the writer sleeps."""
        self.agenda.append((self.clock.now + seconds, act))

    def _on_sleep(self) -> None:
        due = [item for item in self.agenda if item[0] <= self.clock.now]
        for item in sorted(due, key=lambda item: item[0]):
            self.agenda.remove(item)
            item[1]()

    @property
    def guards(self) -> dict[str, int]:
        return newest_beats(self.store)

    @property
    def drained(self) -> bool:
        """Whether an apply that shuts the gate now waits for no one."""
        return drained(self.store, Gate.CLOSED, FakeClock(), 0).over


def test_an_open_table_is_entered_at_once() -> None:
    table = Table()
    table.passage.enter()
    assert table.guards == {ID: 0}
    assert table.clock.now == 1000
    table.guard.withdraw()
    assert table.guards == {}


def test_the_guard_is_put_before_the_gate_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    table = Table()
    guards_when_read: list[dict[str, int]] = []
    names = table.store.names

    def spy(prefix: str) -> tuple[str, ...]:
        if prefix == "lease/":
            guards_when_read.append(table.guards)
        return names(prefix)

    monkeypatch.setattr(table.store, "names", spy)
    table.passage.enter()
    assert guards_when_read == [{ID: 0}]


@pytest.mark.parametrize("mode", list(GuardMode))
@pytest.mark.parametrize("gate", list(Gate))
def test_a_write_waits_where_its_mode_says_so(mode: GuardMode, gate: Gate) -> None:
    table = Table(mode, timeout=0)
    table.apply().gate(gate)
    if mode.waits(gate):
        with pytest.raises(GuardTimeout):
            table.passage.enter()
        assert table.guards == {}
    else:
        table.passage.enter()
        assert table.guards == {ID: 0}


@pytest.mark.parametrize("opening", ["open", "release", "break"])
def test_it_goes_on_soon_after_the_gate_opens(opening: str) -> None:
    table = Table(GuardMode.APPEND)
    lease = table.apply()
    lease.gate(Gate.CLOSED)
    opened: list[float] = []

    def act() -> None:
        assert table.drained  # an apply must not wait for a writer that only waits
        opened.append(table.clock.now)
        if opening == "open":
            lease.gate(Gate.OPEN)
        elif opening == "release":
            assert lease.release()
        else:
            break_lease(table.store, 1, "stuck", claim("ben").owner, table.clock)

    table.after(0.3, act)
    table.passage.enter()
    assert not table.drained
    assert table.clock.now - opened[0] <= 1.0


def test_short_windows_delay_a_writer_little() -> None:
    table = Table()
    lease = table.apply()
    lease.gate(Gate.NO_SCHEMA)
    table.after(0.02, lambda: lease.gate(Gate.OPEN))
    table.passage.enter()
    assert table.clock.now - 1000 < 0.06


def test_a_looser_gate_is_enough() -> None:
    table = Table(GuardMode.APPEND)
    lease = table.apply()
    lease.gate(Gate.CLOSED)
    table.after(1, lambda: lease.gate(Gate.OPEN))
    table.after(1, lambda: lease.gate(Gate.APPENDS_ONLY))
    table.passage.enter()
    assert lease.record.gate is Gate.APPENDS_ONLY


def test_a_gate_that_closes_again_between_is_waited_for_again() -> None:
    table = Table()
    lease = table.apply()
    lease.gate(Gate.CLOSED)

    def closes_again() -> None:
        table.store.before_create = lambda: None
        lease.gate(Gate.CLOSED)
        table.after(5, lambda: lease.gate(Gate.OPEN))

    def opens() -> None:
        lease.gate(Gate.OPEN)
        table.store.before_create = closes_again

    table.after(1, opens)
    table.passage.enter()
    assert lease.record.gate is Gate.OPEN
    assert table.clock.now >= 1006


def test_a_record_without_a_run_is_not_taken_for_the_writers_own_apply() -> None:
    """Else a damaged record made every guarded job fail."""
    table = Table(timeout=7)
    lease = table.apply()
    lease.gate(Gate.CLOSED)
    last = replace(lease.record, seq=lease.record.seq + 1, id="other", run="")
    table.store.land(record_name(last.seq), dump_record(last))
    with pytest.raises(GuardTimeout, match="waited 7 s"):
        table.passage.enter()


def test_a_live_gate_is_waited_for_as_long_as_it_lives() -> None:
    table = Table()
    lease = table.apply()
    lease.gate(Gate.CLOSED)
    for minute in range(1, 72):
        table.after(50 * minute, lease.renew)
    table.after(3600, lease.release)
    table.passage.enter()
    assert 4600 <= table.clock.now < 4602


def test_a_dead_gate_is_recorded_before_the_write_goes_on() -> None:
    table = Table()
    lease = table.apply()
    lease.gate(Gate.CLOSED)
    table.passage.enter()
    assert 1075 <= table.clock.now < 1077
    assert not table.drained
    last = tail(table.store)
    assert last is not None
    assert (last.kind, last.gate, last.owner.who, last.run) == ("dead", Gate.OPEN, "etl", "run-of-ann")
    assert last.reason.startswith("no sign of life for 7")


def test_and_its_holder_whose_clock_stood_still_learns_it() -> None:
    table = Table(timeout=600)
    lease = table.apply()
    lease.gate(Gate.CLOSED)
    lease._clock = FakeClock()  # a laptop whose lid was closed: not a second has passed
    table.passage.enter()
    with pytest.raises(LeaseLost, match="taken for dead by etl"):
        lease.prove(1)


def test_others_who_wait_go_on_at_the_record() -> None:
    """Not each of them counts the 75 s by itself."""
    table = Table()
    table.apply().gate(Gate.CLOSED)
    table.passage.enter()
    late = GateEntry(StoredGuard(table.store, GuardRecord("89abcdef", 0)), "sales.orders", 0, table.clock, ask)
    late.enter()


def test_a_holder_that_renews_at_the_last_moment_is_alive() -> None:
    table = Table(timeout=100)
    lease = table.apply()
    lease.gate(Gate.CLOSED)

    def renews() -> None:
        table.store.before_create = lambda: None
        lease._deadline += 100  # its clock is slow
        lease.renew()

    table.after(70, lambda: setattr(table.store, "before_create", renews))
    with pytest.raises(GuardTimeout):
        table.passage.enter()
    assert lease.record.kind == "renew"


def test_a_dead_gate_stays_closed_for_as_long_as_its_statement_may_run() -> None:
    table = Table(timeout=600)
    lease = table.apply()
    lease.gate(Gate.CLOSED)
    lease.announce(RunningStatement("spark", "tablectl-1", 100))
    table.passage.enter()
    assert 1200 <= table.clock.now < 1202  # (60 + 100) × 1.25
    assert lease.record.running is not None


# The statement that a dead apply left, in the log of the table


@pytest.mark.parametrize("commits_after", [33, 74, 300])
def test_the_commit_of_a_dead_applys_statement_ends_the_wait(commits_after: float) -> None:
    table = Table()
    table.leaves_a_statement()
    table.log = lambda _running: answered(said=table.clock.now >= 1000 + commits_after)
    table.passage.enter()
    assert max(75, commits_after) <= table.clock.now - 1000 <= max(77, commits_after + 11)
    last = tail(table.store)
    assert last is not None
    assert (last.kind, last.shut) == ("dead", Gate.OPEN)
    assert last.reason.endswith("and the commit of its statement is in the log")


def test_the_log_is_looked_at_rarely_and_only_once_the_apply_is_silent() -> None:
    table = Table()
    table.leaves_a_statement()
    table.passage.enter()
    times = [at - 1000 for at, _ in table.looks]
    assert times[0] >= 75
    assert all(later - earlier >= 10 for earlier, later in pairwise(times))
    assert table.clock.now - 1000 >= (60 + 570) * 1.25


def test_a_commit_says_nothing_while_the_apply_gives_signs_of_life() -> None:
    table = Table(timeout=600)
    lease = table.leaves_a_statement()
    table.log = lambda _running: answered(said=True)
    for times in range(1, 20):
        table.after(50 * times, lease.renew)
    with pytest.raises(GuardTimeout):
        table.passage.enter()
    assert table.looks == []


def test_a_gate_that_a_release_left_shut_opens_at_the_commit() -> None:
    table = Table()
    lease = table.leaves_a_statement()
    lease.release()
    table.log = lambda _running: answered(said=table.clock.now >= 1005)
    table.passage.enter()
    assert 5 <= table.clock.now - 1000 <= 12


def test_without_a_commit_it_opens_when_the_bound_has_passed() -> None:
    table = Table()
    table.leaves_a_statement().release()
    table.passage.enter()
    assert 570 * 1.25 <= table.clock.now - 1000 < 570 * 1.25 + 2


def test_short_applies_that_inherit_the_statement_do_not_make_the_writer_wait_for_its_bound_again() -> None:
    table = Table()
    table.leaves_a_statement().release()
    for number in range(1, 12):
        table.after(100 * number, lambda: table.apply("ben").release())
    table.passage.enter()
    assert 570 * 1.25 <= table.clock.now - 1000 < 570 * 1.25 + 2


def test_an_apply_that_inherits_the_statement_and_stays_alive_keeps_the_gate_after_its_bound() -> None:
    table = Table()
    table.leaves_a_statement().release()

    def lives() -> None:
        lease = table.apply("ben")
        for number in range(15):
            table.after(10 * number, lease.renew)

    table.after(700, lives)
    table.passage.enter()
    assert table.clock.now - 1000 >= 840 + 75


def test_a_log_that_hangs_is_not_waited_for_and_not_asked_again() -> None:
    table = Table()
    table.leaves_a_statement()
    table.log = lambda _running: Future()
    table.passage.enter()
    assert len(table.looks) == 1
    assert (60 + 570) * 1.25 <= table.clock.now - 1000 < (60 + 570) * 1.25 + 2


def test_a_log_that_cannot_be_read_opens_nothing() -> None:
    table = Table()
    table.leaves_a_statement()

    def fails(_running: RunningStatement) -> Future[bool]:
        answer: Future[bool] = Future()
        answer.set_exception(WindowError("access denied"))
        return answer

    table.log = fails
    table.passage.enter()
    assert table.clock.now - 1000 >= (60 + 570) * 1.25


def test_a_look_that_was_begun_for_one_statement_says_nothing_of_the_next() -> None:
    """The apply was suspended. It goes on and sends another statement while the look is on its way."""
    table = Table(timeout=400)
    lease = table.leaves_a_statement()
    begun: list[Future[bool]] = []

    def hangs(_running: RunningStatement) -> Future[bool]:
        begun.append(Future())
        return begun[-1]

    def goes_on() -> None:
        lease._deadline = table.clock.now + 60  # its clock stood still
        lease.statement_ended()
        lease.announce(RunningStatement("spark", "tablectl-r1-2", 570, "r1", 8))
        begun[0].set_result(True)

    table.log = hangs
    table.after(80, goes_on)
    with pytest.raises(GuardTimeout):
        table.passage.enter()
    assert [running.version for _, running in table.looks] == [7, 8]
    assert lease.record.kind == "statement"


# Guards that were taken for dead


class Suspended(StoredGuard):
    """A guard that is in the store, of a writer that was suspended before it read the gate."""

    asleep = False

    def put_active(self) -> None:
        if not self.asleep:
            super().put_active()
        self.asleep = False


@pytest.mark.parametrize("dead", [1, MOST_DEAD_GUARDS, 300])
def test_every_guard_that_was_taken_for_dead_finds_out_however_many_there_are(dead: int) -> None:
    """Each writer was suspended between its put and its look at the gate, and its clock stood still."""
    store, clock = MemoryRecords(), FakeClock()
    guards = [Suspended(store, GuardRecord(f"{number:08x}", 0, "job")) for number in range(dead)]
    for guard in guards:
        guard.put_active()
        guard.asleep = True
    lease = try_acquire(store, claim("ann"), clock)
    assert isinstance(lease, Lease)
    lease.gate(Gate.CLOSED)
    assert drained(store, Gate.CLOSED, clock, 300, lambda *_: lease.renew(), note_dead=lease.note_dead).over
    assert lease.release()
    ids = [guard.id for guard in guards]
    for guard in guards:
        GateEntry(guard, "orders", None, clock, ask).enter()
    assert {guard.id for guard in guards}.isdisjoint(ids)
    assert len(newest_beats(store)) == dead


def test_a_guard_that_is_still_stored_goes_on_although_the_list_of_dead_ones_is_full() -> None:
    table = Table()
    lease = table.apply()
    lease.note_dead([f"{number:08x}" for number in range(MOST_DEAD_GUARDS)])
    lease.release()
    table.passage.enter()
    assert table.guards == {ID: 0}


def test_a_guard_that_was_taken_for_dead_is_put_again_under_another_id() -> None:
    """The log says so; the writer's clock stood still and says nothing."""
    table = Table()
    lease = table.apply()

    def taken() -> None:
        table.store.before_create = lambda: None
        lease.note_dead([ID])

    table.store.before_create = taken
    table.passage.enter()
    (guard,) = table.guards
    assert guard != ID


# Rights, and stores that fail


class NoDelete(MemoryRecords):
    """The store as a writer without the right to delete sees it."""

    def delete(self, name: str) -> None:
        if name.startswith("guards/"):
            raise WindowError(f"cannot delete {name}: access denied")
        super().delete(name)


def test_a_writer_that_may_not_delete_waits_all_the_same(caplog: pytest.LogCaptureFixture) -> None:
    table = Table(GuardMode.APPEND, store=NoDelete())
    lease = table.apply()
    lease.gate(Gate.CLOSED)
    drained: list[bool] = []
    table.after(0.001, lambda: drained.append(table.drained))
    table.after(30, lambda: lease.gate(Gate.OPEN))
    table.passage.enter()
    assert table.clock.now >= 1030
    assert drained == [True]  # its guard says that it waits, so that the apply need not
    assert caplog.records == []
    found = read_guard(table.store, ID, table.guards[ID])
    assert found is not None
    assert found.waits == ""


def test_what_it_left_behind_is_not_renewed_while_it_waits() -> None:
    table = Table(GuardMode.APPEND, store=NoDelete())
    lease = table.apply()
    lease.gate(Gate.CLOSED)
    beats: list[dict[str, int]] = []

    def renew() -> None:
        table.guard.renew()
        beats.append(table.guards)

    table.after(10, renew)
    table.after(20, renew)
    table.after(30, lambda: lease.gate(Gate.OPEN))
    table.passage.enter()
    assert beats[0] == beats[1]


class NoWait(MemoryRecords):
    """A store that does not take the record of a writer that waits, nor deletes its guard."""

    def create(self, name: str, data: bytes) -> bool:
        if b'"waits": "here"' in data:
            raise WindowError("too many requests")
        return super().create(name, data)

    def delete(self, name: str) -> None:
        if name.startswith("guards/"):
            raise WindowError(f"cannot delete {name}: access denied")
        super().delete(name)


def test_a_writer_that_can_neither_say_that_it_waits_nor_delete_its_guard_warns_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    table = Table(GuardMode.APPEND, store=NoWait())
    lease = table.apply()
    lease.gate(Gate.CLOSED)
    table.after(30, lambda: lease.gate(Gate.OPEN))
    table.passage.enter()
    assert table.clock.now >= 1030
    (warning,) = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert "the guard of this write was not deleted" in warning


def test_a_writer_that_waits_leaves_one_record_that_says_so() -> None:
    """By it, the apply sees that the writers of the table have guards."""
    table = Table(GuardMode.APPEND)
    lease = table.apply()
    lease.gate(Gate.CLOSED)
    names: list[tuple[str, ...]] = []
    table.after(10, lambda: names.append(table.store.names("guards/")))
    table.after(20, lambda: lease.gate(Gate.OPEN))
    table.passage.enter()
    assert names == [(f"guards/{ID}.1.json",)]
    found = read_guard(table.store, ID, 1)
    assert found is not None
    assert found.waits == "here"
    table.guard.withdraw()
    assert table.guards == {}


def test_a_second_put_that_fails_does_not_let_the_write_through() -> None:
    table = Table()
    lease = table.apply()
    lease.gate(Gate.CLOSED)

    def opens_and_closes() -> None:
        lease.gate(Gate.OPEN)
        table.store.faults.append(Fault.REFUSED)
        table.after(0.1, lambda: lease.gate(Gate.CLOSED))

    table.after(5, opens_and_closes)
    table.after(50, lambda: lease.gate(Gate.OPEN))
    table.passage.enter()
    assert table.clock.now >= 1005


def test_a_writer_cut_off_from_the_store_goes_on_and_tells_the_holder_later(caplog: pytest.LogCaptureFixture) -> None:
    table = Table()
    lease = table.apply()
    lease.gate(Gate.CLOSED)
    table.after(5, lambda: setattr(table.store, "down", True))
    table.passage.enter()
    assert 1079 <= table.clock.now < 1084
    assert "the write goes on past a gate (closed)" in caplog.text
    table.store.down = False
    table.guard.renew()
    assert not table.drained
    lease._clock = FakeClock()
    with pytest.raises(LeaseLost, match="could not use the records"):
        lease.prove(1)


def test_nor_does_it_go_on_sooner_past_a_gate_that_a_release_left_shut() -> None:
    """The next apply may have shut it meanwhile."""
    table = Table()
    lease = table.apply()
    lease.gate(Gate.CLOSED)
    lease.announce(replace(STATEMENT, until=4.0))
    lease.release()
    table.after(2, lambda: setattr(table.store, "down", True))
    table.passage.enter()
    assert 1076 <= table.clock.now < 1081


def test_one_failure_does_not_let_a_writer_past_a_released_gate_without_a_guard() -> None:
    table = Table()
    lease = table.leaves_a_statement()
    lease.release()
    table.after(570 * 1.25 - 5, lambda: setattr(table.store, "down", True))
    table.after(570 * 1.25 + 5, lambda: setattr(table.store, "down", False))
    table.passage.enter()
    assert table.guards
    assert not table.drained
    last = tail(table.store)
    assert last is not None
    assert last.kind == "dead"


def test_a_writer_that_may_not_put_into_the_lease_is_not_shut_out_forever() -> None:
    class NoLease(MemoryRecords):
        def create(self, name: str, data: bytes) -> bool:
            if name.startswith("lease/") and b'"dead"' in data:
                raise WindowError("access denied")
            return super().create(name, data)

    table = Table(store=NoLease())
    table.apply().gate(Gate.CLOSED)
    table.passage.enter()
    assert 1150 <= table.clock.now < 1154


def test_a_sign_of_life_starts_the_watch_again() -> None:
    table = Table()
    lease = table.apply()
    lease.gate(Gate.CLOSED)
    table.after(55, lease.renew)
    table.passage.enter()
    assert table.clock.now >= 1055 + 75


def test_a_gate_of_the_next_apply_is_not_dead_with_the_one_before() -> None:
    table = Table(timeout=200)
    table.apply().gate(Gate.CLOSED)

    def next_apply() -> None:
        table.store.before_create = lambda: None
        lease = table.apply("ben")
        lease.gate(Gate.CLOSED)
        table.after(40, lease.renew)
        table.after(80, lease.renew)
        table.after(100, lease.release)

    def ann_breaks() -> None:
        break_lease(table.store, 1, "dead", claim("ben").owner, table.clock)
        table.store.before_create = next_apply

    table.after(75, ann_breaks)
    table.passage.enter()
    assert table.clock.now >= 1175


def test_the_wall_clock_means_nothing() -> None:
    table = Table()
    table.apply().gate(Gate.CLOSED)
    table.clock.wall = table.clock.wall.replace(year=1999)
    table.passage.enter()
    assert table.clock.now >= 1075


def test_the_timeout_names_who_is_waited_for_and_what_to_do() -> None:
    table = Table(GuardMode.APPEND, timeout=30)
    lease = table.apply()
    lease.gate(Gate.CLOSED)
    with pytest.raises(GuardTimeout) as caught:
        table.passage.enter()
    message = str(caught.value)
    for part in ("sales.orders", "30 s", "closed", "ann on ann-laptop", "run-of-ann", "epoch 1", "window break"):
        assert part in message
    assert table.clock.now == pytest.approx(1030)
    assert table.guards == {}


def test_whoever_is_waited_for_is_reported_once_and_then_rarely(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    table = Table()
    lease = table.apply()
    lease.gate(Gate.CLOSED)
    for minute in range(1, 20):
        table.after(50 * minute, lease.renew)
    table.after(1000, lease.release)
    table.passage.enter()
    waits = [record for record in caplog.records if "waits at the gate (closed): ann on" in record.message]
    assert [record.levelname for record in waits] == ["INFO"] * 6  # after 0, 1, 2, 4, 8, 16 minutes
    assert "lets the write through after 100" in caplog.records[-1].message


def test_news_that_fail_to_come_do_not_open_a_gate_known_to_be_closed() -> None:
    table = Table()
    lease = table.apply()
    lease.gate(Gate.CLOSED)
    table.after(5, lambda: setattr(table.store, "down", True))
    table.after(40, lambda: setattr(table.store, "down", False))
    table.after(41, lambda: lease.gate(Gate.OPEN))
    table.passage.enter()
    assert 1041 <= table.clock.now < 1043


def test_but_they_bound_the_wait() -> None:
    table = Table()
    table.apply().gate(Gate.CLOSED)
    table.after(5, lambda: setattr(table.store, "down", True))
    table.passage.enter()
    assert table.clock.now < 1084


@pytest.mark.parametrize("fault", [Fault.REFUSED, Fault.LOST_ANSWER])
def test_a_put_that_fails_is_the_callers_to_judge(fault: Fault) -> None:
    table = Table()
    table.store.faults.append(fault)
    with pytest.raises(WindowError):
        table.passage.enter()
    table.guard.withdraw()
    assert table.guards == {}


def test_a_put_that_the_library_sent_twice_is_ours() -> None:
    table = Table()
    table.store.faults.append(Fault.RETRIED)
    table.passage.enter()
    assert table.guards == {ID: 0}


@pytest.mark.parametrize("data", [b"{}", b""])
def test_a_gate_that_cannot_be_understood_is_closed_and_dies(data: bytes) -> None:
    """A power cut left an empty record: no one has to remove it by hand."""
    table = Table()
    table.store.kept[record_name(1)] = data
    table.passage.enter()
    assert 1075 <= table.clock.now < 1077
    assert table.apply().record.seq == 3


def test_a_guard_that_was_long_on_its_way_is_put_again() -> None:
    """An apply may have taken it for dead between its put and the look at the gate."""
    table = Table()
    slow = iter([61.0, 0.0])

    def pause() -> None:
        table.clock.now += next(slow)

    table.store.before_create = pause
    table.passage.enter()
    assert len(table.guards) == 1
    assert ID not in table.guards  # a new one, which no apply takes for dead


def test_one_that_is_always_too_slow_is_the_callers_to_judge() -> None:
    table = Table()
    table.store.before_create = lambda: table.clock.sleep(61)
    with pytest.raises(WindowError, match="longer than the guard's ttl of 60 s"):
        table.passage.enter()


def test_renewals_leave_the_beat_before_until_the_next() -> None:
    """A listing that runs through a renewal sees the one or the other."""
    table = Table()
    table.passage.enter()
    beats = []
    for _ in range(3):
        table.guard.renew()
        beats.append(sorted(name for name in table.store.kept if name.startswith("guards/")))
    assert beats == [[f"guards/{ID}.{beat}.json" for beat in pair] for pair in ((0, 1), (1, 2), (2, 3))]
    assert table.guards == {ID: 3}
    table.guard.withdraw()
    assert table.guards == {}


def test_no_listing_misses_a_guard_that_is_renewed_meanwhile() -> None:
    """On a disk a listing may hold what was deleted while it ran, and not hold what came."""
    table = Table()
    table.passage.enter()
    table.guard.renew()
    before = set(table.store.kept)
    table.guard.renew()
    after = set(table.store.kept)
    assert any(name.startswith(f"guards/{ID}") for name in before & after)


def test_there_is_nothing_to_renew_before_the_guard_is_put_and_after_it_is_gone() -> None:
    table = Table()
    table.guard.renew()
    assert table.guards == {}
    table.passage.enter()
    table.guard.withdraw()
    table.guard.renew()
    assert table.guards == {}


def test_a_renewal_whose_answer_was_lost_is_taken_away_too() -> None:
    table = Table()
    table.passage.enter()
    table.store.faults.append(Fault.LOST_ANSWER)
    with pytest.raises(WindowError):
        table.guard.renew()
    assert table.guards == {ID: 1}
    table.guard.withdraw()
    assert table.guards == {}


def test_all_beats_are_taken_away_though_one_fails() -> None:
    table = Table()
    table.passage.enter()
    table.guard.renew()
    delete = table.store.delete
    failing = {f"guards/{ID}.0.json"}

    def fail_once(name: str) -> None:
        if name in failing:
            failing.remove(name)
            raise WindowError("no answer")
        delete(name)

    table.store.delete = fail_once  # type: ignore[method-assign]
    with pytest.raises(WindowError):
        table.guard.withdraw()
    assert table.guards == {ID: 0}
    table.guard.withdraw()
    assert table.guards == {}
