from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from tablectl.leases.acquire import Held, break_lease
from tablectl.leases.clock import StoppedError, SystemClock
from tablectl.leases.lease import Lease, LeaseLost, Renewer, keep_renewed
from tablectl.leases.lease_records import (
    KEEP,
    Gate,
    LeaseRecord,
    RunningStatement,
    died,
    prune,
    put,
    record_at,
    record_name,
    tail,
)
from tablectl.model.errors import WindowError
from tablectl.support.typed_json import read_record
from tests.leases.lease_fakes import FakeClock, Fault, MemoryRecords, acquire, claim, numbered, try_acquire


@pytest.fixture
def store() -> MemoryRecords:
    return MemoryRecords()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def lease(store: MemoryRecords, clock: FakeClock) -> Lease:
    """Ann's, of 60 s, acquired as record 1 at the clock's time 1000."""
    return take(store, clock, "ann")


def take(store: MemoryRecords, clock: FakeClock, who: str) -> Lease:
    got = try_acquire(store, claim(who), clock, numbered(who))
    assert isinstance(got, Lease)
    return got


def take_over(store: MemoryRecords, clock: FakeClock) -> Lease:
    """Ben's, whatever Ann thinks of it."""
    last = tail(store)
    assert last is not None
    break_lease(store, last.epoch, "Ann is on holiday", claim("ben").owner, clock)
    return take(store, clock, "ben")


def watch_die(store: MemoryRecords, clock: FakeClock, who: str) -> Lease:
    """The lease of who comes after a holder that gave no sign of life."""
    got = acquire(store, claim(who), clock, numbered(who))
    assert isinstance(got, Lease)
    return got


def written(store: MemoryRecords) -> list[str]:
    """The log in short: epoch, kind and gate of each record."""
    records = [read_record(LeaseRecord, data) for _, data in sorted(store.kept.items())]
    return [f"{record.epoch} {record.kind} {record.gate}" for record in records]


def test_a_life_in_records(store: MemoryRecords, lease: Lease) -> None:
    lease.gate(Gate.NO_SCHEMA)
    lease.renew()
    lease.gate(Gate.CLOSED)
    lease.gate(Gate.OPEN)
    assert lease.release()
    assert written(store) == [
        "1 acquire open",
        "1 gate no-schema",
        "1 renew no-schema",
        "1 gate closed",
        "1 gate open",
        "1 release open",
    ]


def test_each_record_has_its_own_id(store: MemoryRecords, lease: Lease) -> None:
    """An observer sees by the id that the holder is alive."""
    lease.renew()
    assert [record_at(store, seq).id for seq in (1, 2)] == ["ann-1", "ann-2"]  # type: ignore[union-attr]


# Proof


def test_a_fresh_lease_is_proven_without_a_record(store: MemoryRecords, lease: Lease) -> None:
    lease.prove(budget=30)
    assert len(store.kept) == 1


@pytest.mark.parametrize(("elapsed", "renewed"), [(0, False), (24, False), (25, True), (59, True)])
def test_a_statement_starts_only_with_its_budget_and_a_margin_left(
    store: MemoryRecords, lease: Lease, clock: FakeClock, elapsed: float, renewed: bool
) -> None:
    clock.now += elapsed
    lease.prove(budget=30)  # and the margin of 5 s
    assert (len(store.kept) == 2) is renewed


def test_a_budget_beyond_the_ttl_is_left_to_the_renewer(store: MemoryRecords, lease: Lease) -> None:
    lease.prove(budget=3600)
    assert written(store) == ["1 acquire open", "1 renew open"]


def test_the_deadline_counts_from_before_the_request(store: MemoryRecords, lease: Lease, clock: FakeClock) -> None:
    def slow() -> None:
        clock.now += 20

    store.before_create = slow
    lease.renew()  # sent at 1000, answered at 1020
    clock.now = 1060
    with pytest.raises(LeaseLost):
        lease.prove(budget=0)


def test_wall_clocks_are_never_looked_at(store: MemoryRecords, lease: Lease, clock: FakeClock) -> None:
    clock.wall = clock.wall.replace(year=1970)
    lease.prove(budget=1)
    clock.wall = clock.wall.replace(year=2100)
    lease.renew()
    lease.prove(budget=1)


def test_a_store_out_of_reach_stops_the_next_statement_but_loses_nothing(store: MemoryRecords, lease: Lease) -> None:
    store.down = True
    with pytest.raises(WindowError, match="the store is down") as caught:
        lease.prove(budget=1)
    assert not isinstance(caught.value, LeaseLost)
    store.down = False
    lease.prove(budget=1)


# Loss


def test_a_lease_that_ran_out_is_lost_even_if_no_one_took_it(
    store: MemoryRecords, lease: Lease, clock: FakeClock
) -> None:
    """Writers may have taken its gate for dead by now, and gone on."""
    lease.gate(Gate.CLOSED)
    clock.now += 60
    with pytest.raises(LeaseLost, match="for 60 s it could not be renewed"):
        lease.prove(budget=1)
    assert written(store) == ["1 acquire open", "1 gate closed"]


def test_a_renewal_answered_too_late_does_not_count(store: MemoryRecords, lease: Lease, clock: FakeClock) -> None:
    clock.now += 59

    def slow() -> None:
        clock.now += 2

    store.before_create = slow
    with pytest.raises(LeaseLost, match="could not be renewed"):
        lease.renew()


def test_it_is_given_back_all_the_same(store: MemoryRecords, lease: Lease, clock: FakeClock) -> None:
    lease.gate(Gate.CLOSED)
    clock.now += 1000
    assert lease.release()
    assert written(store)[-1] == "1 release open"


def test_an_older_holder_learns_who_owns_the_table_now(store: MemoryRecords, lease: Lease, clock: FakeClock) -> None:
    take_over(store, clock)
    with pytest.raises(LeaseLost) as caught:
        lease.prove(budget=1)
    assert caught.value.message == (
        "the lease in /lake/orders/_tablectl was lost by epoch 1: it is held by ben on ben-laptop (pid 7), "
        "run run-of-ben, epoch 2, since 2026-08-22 10:16:40 UTC"
    )
    assert "run the same apply again" in caught.value.hint


def test_and_why_it_was_broken(store: MemoryRecords, lease: Lease, clock: FakeClock) -> None:
    break_lease(store, 1, "stuck since Monday", claim("ben").owner, clock)
    with pytest.raises(LeaseLost, match=r"was broken by ben on ben-laptop \(pid 7\): stuck since Monday"):
        lease.renew()


@pytest.mark.parametrize("call", ["renew", "prove", "gate", "owe"])
def test_what_is_lost_stays_lost(store: MemoryRecords, lease: Lease, clock: FakeClock, call: str) -> None:
    ben = take_over(store, clock)
    calls: dict[str, Callable[[], None]] = {
        "renew": lease.renew,
        "prove": lambda: lease.prove(1),
        "gate": lambda: lease.gate(Gate.OPEN),
        "owe": lambda: lease.owe(("x",)),
    }
    for _ in range(2):
        with pytest.raises(LeaseLost, match="held by ben"):
            calls[call]()
    assert not lease.release()
    with pytest.raises(LeaseLost):
        calls[call]()
    ben.prove(1)
    assert len(store.kept) == 3  # ann's, the break, ben's


def test_a_deleted_log_ends_every_lease_in_it(store: MemoryRecords, lease: Lease, clock: FakeClock) -> None:
    store.kept.clear()
    with pytest.raises(LeaseLost, match="is gone: its records were deleted"):
        lease.renew()
    assert store.kept == {}


def test_and_numbers_start_again(store: MemoryRecords, lease: Lease, clock: FakeClock) -> None:
    lease.renew()
    store.kept.clear()
    ben = take(store, clock, "ben")
    assert (ben.record.seq, ben.record.epoch) == (1, 1)
    with pytest.raises(LeaseLost, match="held by ben"):
        lease.prove(1)
    ben.renew()  # now there is a record of ann's number, but not hers
    assert not lease.release()
    ben.prove(1)


def test_a_loss_is_final_even_where_the_new_owner_cannot_be_named(
    store: MemoryRecords, lease: Lease, clock: FakeClock
) -> None:
    take_over(store, clock)
    store.kept[record_name(4)] = b"of a newer version"
    with pytest.raises(LeaseLost, match="held by unknown"):
        lease.prove(1)
    with pytest.raises(LeaseLost):
        lease.renew()


# Lost answers


@pytest.mark.parametrize("fault", [Fault.LOST_ANSWER, Fault.RETRIED])
@pytest.mark.parametrize("call", ["renew", "gate", "release"])
def test_a_put_whose_answer_was_lost_counts(store: MemoryRecords, lease: Lease, fault: Fault, call: str) -> None:
    store.faults.append(fault)
    if call == "release":
        assert lease.release()
    else:
        lease.renew() if call == "renew" else lease.gate(Gate.CLOSED)
        lease.prove(1)
    assert len(store.kept) == 2


def test_a_renewal_that_lands_late_is_ours(store: MemoryRecords, lease: Lease) -> None:
    store.faults.append(Fault.LATE)
    with pytest.raises(WindowError, match="no answer"):
        lease.gate(Gate.CLOSED)
    store.deliver()
    lease.prove(1)
    assert lease.record.gate is Gate.CLOSED
    lease.gate(Gate.OPEN)
    assert written(store) == ["1 acquire open", "1 gate closed", "1 gate open"]


def test_even_between_the_look_and_the_put(store: MemoryRecords, lease: Lease) -> None:
    store.faults.append(Fault.LATE)
    with pytest.raises(WindowError, match="no answer"):
        lease.gate(Gate.CLOSED)
    store.before_create = store.deliver
    lease.gate(Gate.OPEN)
    assert written(store) == ["1 acquire open", "1 gate closed", "1 gate open"]


def test_a_late_record_cannot_land_on_a_number_that_is_taken(store: MemoryRecords, lease: Lease) -> None:
    store.faults.append(Fault.LATE)
    with pytest.raises(WindowError, match="no answer"):
        lease.gate(Gate.CLOSED)
    lease.renew()
    store.deliver()
    lease.prove(1)
    assert written(store) == ["1 acquire open", "1 renew open"]


# Gate, what is owed, release


def test_a_gate_only_tightens_until_it_opens(store: MemoryRecords, lease: Lease) -> None:
    lease.gate(Gate.APPENDS_ONLY)
    with pytest.raises(ValueError, match="appends-only → no-schema"):
        lease.gate(Gate.NO_SCHEMA)
    lease.gate(Gate.OPEN)
    lease.gate(Gate.NO_SCHEMA)
    assert lease.record.gate is Gate.NO_SCHEMA


def test_what_is_owed_is_handed_on_until_it_is_done(store: MemoryRecords, lease: Lease, clock: FakeClock) -> None:
    lease.owe(("resume orders_job",))
    lease.gate(Gate.CLOSED)
    ben = take_over(store, clock)
    assert ben.record.owed == ("resume orders_job",)
    ben.owe(())
    ben.release()
    assert take(store, clock, "cleo").record.owed == ()


def test_releasing_twice_is_one_record(store: MemoryRecords, lease: Lease) -> None:
    assert lease.release()
    assert lease.release()
    assert written(store) == ["1 acquire open", "1 release open"]


def test_after_release_nothing_runs(lease: Lease) -> None:
    lease.release()
    with pytest.raises(LeaseLost, match="was released by its own run"):
        lease.prove(1)


def test_a_release_that_failed_may_be_tried_again(
    store: MemoryRecords, lease: Lease, caplog: pytest.LogCaptureFixture
) -> None:
    store.down = True
    assert not lease.release()
    assert "was not released: the store is down" in caplog.text
    store.down = False
    assert lease.release()


def test_or_may_have_landed_by_then(store: MemoryRecords, lease: Lease) -> None:
    store.faults.extend([Fault.LATE, *[Fault.REFUSED] * 4])
    assert not lease.release()
    store.deliver()
    assert lease.release()
    assert written(store) == ["1 acquire open", "1 release open"]


@pytest.mark.parametrize("faults", [[], [Fault.RETRIED], [Fault.LOST_ANSWER]])
def test_a_signal_handler_may_release_in_the_midst_of_a_renewal(
    store: MemoryRecords, lease: Lease, faults: list[Fault]
) -> None:
    def handler() -> None:
        store.before_create = lambda: None
        assert lease.release()

    store.before_create = handler
    store.faults.extend(faults)
    with pytest.raises(LeaseLost, match="was released by its own run"):
        lease.renew()
    assert written(store) == ["1 acquire open", "1 release open"]


def test_a_long_hold_leaves_a_short_log(store: MemoryRecords, lease: Lease) -> None:
    for _ in range(200):
        lease.renew()
    assert len(store.kept) < 2 * KEEP
    assert record_name(201) in store.kept


# The renewal thread


def test_the_renewer_renews_six_times_per_ttl(store: MemoryRecords, lease: Lease, clock: FakeClock) -> None:
    asked: list[float] = []

    def wait(seconds: float) -> bool:
        asked.append(seconds)
        clock.now += seconds
        return len(asked) == 20

    keep_renewed(lease, wait)
    assert asked == [10] * 20
    lease.prove(1)
    assert len(store.kept) == 1 + 19


def test_it_tries_again_until_the_lease_has_run_out(
    store: MemoryRecords, lease: Lease, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    store.down = True

    def wait(seconds: float) -> bool:
        clock.now += seconds
        return False

    keep_renewed(lease, wait)  # returns by itself
    assert clock.now == 1060
    assert "could not be renewed" in caplog.text
    store.down = False
    with pytest.raises(LeaseLost):
        lease.prove(1)


def test_a_failure_that_passes_is_retried(store: MemoryRecords, lease: Lease, clock: FakeClock) -> None:
    asked: list[float] = []

    def wait(seconds: float) -> bool:
        asked.append(seconds)
        clock.now += seconds
        store.down = len(asked) in {2, 3}
        return len(asked) == 6

    keep_renewed(lease, wait)
    assert asked == [10, 10, 2.5, 2.5, 10, 10]
    lease.prove(1)


def test_it_ends_when_the_lease_is_taken(store: MemoryRecords, lease: Lease, clock: FakeClock) -> None:
    take_over(store, clock)
    keep_renewed(lease, lambda _: False)
    with pytest.raises(LeaseLost, match="held by ben"):
        lease.prove(1)


def test_it_runs_next_to_the_statements(store: MemoryRecords, lease: Lease) -> None:
    turns: queue.Queue[bool] = queue.Queue()
    waiting = threading.Semaphore(0)

    def wait(_: float) -> bool:
        waiting.release()
        return turns.get()

    with Renewer(lease, wait):
        waiting.acquire()
        turns.put(False)
        waiting.acquire()  # one renewal is done
        lease.prove(1)
        assert written(store) == ["1 acquire open", "1 renew open"]
        turns.put(True)


def test_it_stops_at_once_when_its_work_is_done(store: MemoryRecords, lease: Lease) -> None:
    others = set(threading.enumerate())
    with Renewer(lease):
        pass
    assert set(threading.enumerate()) <= others
    assert len(store.kept) == 1


def test_many_threads_share_one_lease(store: MemoryRecords, lease: Lease) -> None:
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(20):
                lease.renew()
                lease.prove(1)
        except WindowError as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert lease.record.seq == 81


# The real clock


def test_a_stop_ends_every_sleep() -> None:
    clock = SystemClock()
    clock.sleep(0)
    clock.interrupt()
    with pytest.raises(StoppedError):
        clock.sleep(3600)


def test_the_real_clock_goes_on() -> None:
    clock = SystemClock()
    assert clock.monotonic() <= clock.monotonic()
    assert clock.utc().utcoffset() is not None


# A release that fails, and a gate that is to open


def test_a_release_is_tried_again_for_a_few_seconds(store: MemoryRecords, lease: Lease, clock: FakeClock) -> None:
    store.faults.extend([Fault.REFUSED] * 3)
    assert lease.release()
    assert written(store) == ["1 acquire open", "1 release open"]
    assert clock.now <= 1002


def test_a_release_that_is_asked_to_stop_is_tried_again_all_the_same(
    store: MemoryRecords, lease: Lease, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C ends every sleep of the run; the release comes after it."""

    def stopped(_: float) -> None:
        raise StoppedError("stopped while waiting")

    monkeypatch.setattr(clock, "sleep", stopped)
    store.faults.append(Fault.REFUSED)
    assert lease.release()


def test_a_gate_that_could_not_be_opened_is_opened_by_the_next_renewal(store: MemoryRecords, lease: Lease) -> None:
    lease.gate(Gate.CLOSED)
    store.faults.append(Fault.REFUSED)
    with pytest.raises(WindowError, match="refused"):
        lease.gate(Gate.OPEN)
    lease.renew()
    assert written(store) == ["1 acquire open", "1 gate closed", "1 renew open"]


@pytest.mark.parametrize("fault", [Fault.LATE, Fault.REFUSED])
def test_a_gate_that_could_not_be_closed_is_not_renewed_as_closed(
    store: MemoryRecords, lease: Lease, fault: Fault
) -> None:
    store.faults.append(fault)
    with pytest.raises(WindowError):
        lease.gate(Gate.CLOSED)
    store.deliver()
    lease.renew()
    assert lease.record.gate is Gate.OPEN
    assert written(store)[-1] == "1 renew open"


@pytest.mark.parametrize("error", [RuntimeError("x"), KeyboardInterrupt(), OSError("x")])
def test_the_renewer_goes_on_after_any_exception(
    store: MemoryRecords, lease: Lease, clock: FakeClock, error: BaseException
) -> None:
    turns: list[float] = []

    def wait(seconds: float) -> bool:
        turns.append(seconds)
        clock.now += seconds
        return len(turns) == 4

    def fails() -> None:
        store.before_create = lambda: None
        raise error

    store.before_create = fails
    keep_renewed(lease, wait)
    assert turns == [10, 2.5, 10, 10]
    lease.prove(1)


def test_a_closed_gate_is_not_renewed_while_its_engine_does_not_answer(
    store: MemoryRecords, lease: Lease, clock: FakeClock
) -> None:
    lease.gate(Gate.CLOSED)

    def wait(seconds: float) -> bool:
        clock.now += seconds
        return clock.now > 1100

    keep_renewed(lease, wait, lambda held: held.record.gate is Gate.OPEN)
    assert written(store) == ["1 acquire open", "1 gate closed"]


# The statement in flight

STATEMENT = RunningStatement("spark-1", "tablectl-ann-1", 100)


def test_a_statement_is_in_every_record_until_it_has_ended(store: MemoryRecords, lease: Lease) -> None:
    lease.gate(Gate.CLOSED)
    lease.announce(STATEMENT)
    lease.renew()
    assert lease.record.running == STATEMENT
    lease.statement_ended()
    assert written(store)[-3:] == ["1 statement closed", "1 renew closed", "1 statement closed"]


def test_no_record_of_a_statement_lets_in_the_writers_of_a_shared_window(lease: Lease) -> None:
    lease.gate(Gate.CLOSED, "w1")
    lease.renew()
    lease.note("x")
    assert lease.record.waited_for("w1")
    lease.announce(STATEMENT)
    lease.statement_ended()
    assert (lease.record.window, lease.record.gate) == ("", Gate.CLOSED)
    lease.gate(Gate.CLOSED, "w1")
    lease.gate(Gate.CLOSED)
    assert lease.record.window == ""


def test_a_renewal_takes_less_off_the_bound_than_the_clock_says(lease: Lease, clock: FakeClock) -> None:
    """The holder's clock may be a quarter too fast: 50 s by it are at least 40 s."""
    lease.announce(STATEMENT)
    clock.now += 50
    lease.renew()
    assert lease.record.running is not None
    assert lease.record.running.until == 60
    clock.now += 50
    lease.renew()
    assert lease.record.running.until == 20
    clock.now += 50
    lease.renew()
    assert lease.record.running.until == 0


def test_a_holder_whose_clock_stood_still_takes_nothing_off(lease: Lease) -> None:
    lease.announce(STATEMENT)
    lease.renew()
    assert lease.record.running == STATEMENT


def test_the_next_holder_knows_the_statement_and_keeps_the_gate_until_it_has_ended(
    store: MemoryRecords, lease: Lease, clock: FakeClock
) -> None:
    lease.gate(Gate.CLOSED)
    lease.announce(STATEMENT)
    ben = watch_die(store, clock, "ben")
    assert (ben.record.gate, ben.record.running) == (Gate.CLOSED, STATEMENT)
    ben.statement_ended()
    assert (ben.record.gate, ben.record.running) == (Gate.OPEN, None)


def test_so_does_the_one_after_it(store: MemoryRecords, lease: Lease, clock: FakeClock) -> None:
    lease.gate(Gate.CLOSED)
    lease.announce(STATEMENT)
    watch_die(store, clock, "ben")
    got = watch_die(store, clock, "cleo")
    assert (got.record.gate, got.record.running) == (Gate.CLOSED, STATEMENT)


def test_a_statement_is_not_announced_over_another(store: MemoryRecords, lease: Lease, clock: FakeClock) -> None:
    lease.announce(STATEMENT)
    ben = take_over(store, clock)
    with pytest.raises(ValueError, match="tablectl-ann-1 may still be running"):
        ben.announce(RunningStatement("spark-2", "tablectl-ben-1", 5))


def test_a_statement_that_could_not_be_announced_is_not_in_the_log(store: MemoryRecords, lease: Lease) -> None:
    store.faults.append(Fault.REFUSED)
    with pytest.raises(WindowError):
        lease.announce(STATEMENT)
    lease.renew()
    assert lease.record.running is None


@pytest.mark.parametrize("gate", [Gate.NO_SCHEMA, Gate.APPENDS_ONLY, Gate.CLOSED])
def test_a_release_leaves_the_statement_and_its_gate_to_the_next_holder(
    store: MemoryRecords, lease: Lease, clock: FakeClock, gate: Gate
) -> None:
    lease.gate(gate)
    lease.announce(STATEMENT)
    assert lease.release()
    assert (lease.record.kind, lease.record.shut, lease.shut_for) == ("release", gate, 125)
    ben = take(store, clock, "ben")  # at once: the lease is free
    assert (ben.record.gate, ben.record.running) == (gate, STATEMENT)
    ben.statement_ended()
    assert (ben.record.gate, ben.record.running, ben.shut_for) == (Gate.OPEN, None, 0)


def test_no_record_that_names_a_statement_opens_the_gate(store: MemoryRecords, lease: Lease, clock: FakeClock) -> None:
    lease.gate(Gate.CLOSED)
    lease.announce(STATEMENT)
    lease.gate(Gate.OPEN)
    lease.renew()
    lease.owe(("./resume.sh",))
    lease.note("x")
    lease.release()
    take(store, clock, "ben").release()
    assert {line.split()[-1] for line in written(store)[1:]} == {"closed"}


def test_a_release_opens_the_gate_if_the_statement_cannot_run_any_more(lease: Lease, clock: FakeClock) -> None:
    lease.gate(Gate.CLOSED)
    lease.announce(replace(STATEMENT, until=10))
    clock.now += 12.5
    assert lease.running is None
    assert lease.release()
    assert (lease.record.shut, lease.shut_for) == (Gate.OPEN, 0)


def test_a_gate_that_a_release_left_shut_is_opened_by_an_operator(
    store: MemoryRecords, lease: Lease, clock: FakeClock
) -> None:
    lease.gate(Gate.CLOSED)
    lease.announce(STATEMENT)
    lease.release()
    record = break_lease(store, 1, "the server is gone", claim("ben").owner, clock)
    assert record.shut is Gate.OPEN
    assert take(store, clock, "cleo").record.running == STATEMENT


def test_the_end_of_a_statement_is_in_the_next_record_if_its_own_could_not_be_written(
    store: MemoryRecords, lease: Lease
) -> None:
    lease.gate(Gate.CLOSED)
    lease.announce(STATEMENT)
    store.faults.append(Fault.REFUSED)
    with pytest.raises(WindowError):
        lease.statement_ended()
    assert lease.running is None
    lease.release()
    assert (lease.record.gate, lease.record.running) == (Gate.OPEN, None)


def test_a_lease_knows_for_how_long_writers_wait_if_nothing_more_can_be_written(
    store: MemoryRecords, lease: Lease, clock: FakeClock
) -> None:
    lease.gate(Gate.CLOSED)
    lease.announce(STATEMENT)
    store.faults.extend([Fault.REFUSED] * 10)
    assert not lease.release()
    assert lease.shut_for == (60 + 100) * 1.25


def test_a_gate_whose_put_gave_no_answer_counts_as_shut(store: MemoryRecords, lease: Lease) -> None:
    store.faults.append(Fault.LATE)
    with pytest.raises(WindowError):
        lease.gate(Gate.CLOSED)
    store.down = True
    assert not lease.release()
    assert lease.shut_for == 75


def test_the_gate_of_the_next_holder_is_not_ours(store: MemoryRecords, lease: Lease, clock: FakeClock) -> None:
    lease.gate(Gate.CLOSED)
    take_over(store, clock)
    assert not lease.release()
    assert lease.shut_for == 0


# Decisions about others


def test_a_holder_that_was_taken_for_dead_learns_it_from_the_log(
    store: MemoryRecords, lease: Lease, clock: FakeClock
) -> None:
    """Its own clock stood still: by that, the lease is as fresh as ever."""
    last = tail(store)
    assert last is not None
    record = died(last, claim("etl").owner, "no sign of life for 75 s", "w-1", clock.utc())
    assert put(store, record, last)
    with pytest.raises(LeaseLost, match=r"was taken for dead by etl on etl-laptop .* no sign of life for 75 s"):
        lease.prove(1)
    assert take(store, clock, "ben").record.epoch == 2


def test_what_was_compared_is_known_to_the_next_holder(store: MemoryRecords, lease: Lease, clock: FakeClock) -> None:
    lease.note_compared(7)
    lease.note_compared(3)
    assert lease.record.compared == 7
    assert take_over(store, clock).record.compared == 7


def test_guards_that_are_taken_for_dead_are_named_in_the_records_to_come(
    store: MemoryRecords, lease: Lease, clock: FakeClock
) -> None:
    lease.note_dead(["0123abcd", "4567abcd"])
    lease.note_dead(["0123abcd"])
    assert take_over(store, clock).record.dead_guards == ("0123abcd", "4567abcd")
    assert written(store)[:2] == ["1 acquire open", "1 note open"]


def test_a_decision_to_go_on_is_a_record(store: MemoryRecords, lease: Lease) -> None:
    lease.note("proceed: the load is stuck")
    assert lease.record.reason == "proceed: the load is stuck"
    lease.renew()
    assert lease.record.reason == ""


def test_who_slept_between_reading_and_taking_does_not_take_a_pruned_number(
    store: MemoryRecords, clock: FakeClock
) -> None:
    """Ann read an empty log. While she slept, Ben wrote forty records and pruned the first."""

    def others() -> None:
        store.before_create = lambda: None
        ben = take(store, clock, "ben")
        for _ in range(40):
            ben.renew()

    store.before_create = others
    got = try_acquire(store, claim("ann"), clock, numbered("ann"))
    assert isinstance(got, Held)
    assert got.record.run == "run-of-ben"


@pytest.mark.parametrize("deleted", range(1, 12))
def test_a_number_is_not_taken_again_however_far_a_prune_came(
    store: MemoryRecords, lease: Lease, clock: FakeClock, deleted: int
) -> None:
    """The holder was killed, or its store failed, after some deletions. Who slept before any of these numbers now puts
    its record there. The record before it must be gone, since that is how the put finds out."""
    for _ in range(KEEP + 11):
        lease.renew()
    stale = {seq: record_at(store, seq) for seq in range(1, KEEP + 12)}
    left, delete = deleted, store.delete

    def dies(name: str) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise WindowError("the store is down")
        delete(name)

    store.delete = dies  # type: ignore[method-assign]
    prune(store, lease.record.seq)
    gone = [seq for seq in stale if record_at(store, seq) is None]
    assert len(gone) == deleted
    for seq in gone:
        late = stale[seq]
        assert late is not None
        assert not put(store, replace(late, id=f"late-{seq}"), stale.get(seq - 1))


@pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="a clock of Linux")
def test_the_clock_counts_the_machines_sleep() -> None:
    before = time.clock_gettime(time.CLOCK_BOOTTIME)
    assert before <= SystemClock().monotonic() <= time.clock_gettime(time.CLOCK_BOOTTIME)
