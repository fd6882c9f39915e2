from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from tablectl.leases.acquire import Blocked, Held, Sighting, acquire_all, break_lease
from tablectl.leases.clock import StoppedError
from tablectl.leases.lease import Lease, LeaseLost
from tablectl.leases.lease_records import Gate, dump_record, record_name, tail
from tablectl.model.errors import WindowError
from tablectl.storage.records import RecordStore, open_records
from tests.leases.lease_fakes import FakeClock, Fault, MemoryRecords, acquire, claim, numbered, try_acquire

BEN = claim("ben").owner


def take(store: RecordStore, clock: FakeClock, who: str, ttl: float = 60) -> Lease:
    got = try_acquire(store, claim(who, ttl), clock, numbered(who))
    assert isinstance(got, Lease)
    return got


# Taking what is free


def test_the_first_lease_is_epoch_one() -> None:
    record = take(MemoryRecords(), FakeClock(), "ann").record
    assert (record.seq, record.epoch, record.kind, record.gate, record.run) == (1, 1, "acquire", "open", "run-of-ann")


def test_a_released_lease_is_taken_at_once() -> None:
    store, clock = MemoryRecords(), FakeClock()
    take(store, clock, "ann").release()
    ben = acquire(store, claim("ben"), clock)
    assert isinstance(ben, Lease)
    assert (ben.record.seq, ben.record.epoch) == (3, 2)
    assert clock.now == 1000


def test_a_held_lease_is_not_taken_without_watching() -> None:
    store, clock = MemoryRecords(), FakeClock()
    ann = take(store, clock, "ann")
    clock.now += 1_000_000  # no one knows for how long we have looked away
    got = try_acquire(store, claim("ben"), clock)
    assert got == Held(ann.record)
    assert str(got) == "held by ann on ann-laptop (pid 7), run run-of-ann, epoch 1, since 2026-08-22 10:16:40 UTC"


def test_of_two_at_once_one_wins() -> None:
    store, clock = MemoryRecords(), FakeClock()
    all_committed: list[Lease] = []

    def ben_is_faster() -> None:
        store.before_create = lambda: None
        all_committed.append(take(store, clock, "ben"))

    store.before_create = ben_is_faster
    got = try_acquire(store, claim("ann"), clock)
    assert got == Held(all_committed[0].record)


@pytest.mark.parametrize("fault", [Fault.LOST_ANSWER, Fault.RETRIED])
def test_a_lost_answer_does_not_lock_us_out_of_our_own_lease(fault: Fault) -> None:
    store = MemoryRecords()
    store.faults.append(fault)
    take(store, FakeClock(), "ann").prove(1)


def test_a_place_that_cannot_be_written_fails_before_the_window() -> None:
    store = MemoryRecords()
    store.faults.append(Fault.REFUSED)
    with pytest.raises(WindowError, match="refused"):
        try_acquire(store, claim("ann"), FakeClock())


def test_the_holder_prunes_what_earlier_ones_left() -> None:
    store, clock = MemoryRecords(), FakeClock()
    for _ in range(30):
        take(store, clock, "ann").release()
    assert len(store.kept) <= 21


def test_it_works_on_a_real_store() -> None:
    store, clock = open_records("memory://acquire"), FakeClock()
    take(store, clock, "ann").release()
    assert take(store, clock, "ben").record.epoch == 2


# Taking over


def test_a_holder_that_shows_no_sign_for_its_ttl_and_a_quarter_is_dead() -> None:
    store, clock = MemoryRecords(), FakeClock()
    ann = take(store, clock, "ann", ttl=60)
    ann.gate(Gate.CLOSED)
    ben = acquire(store, claim("ben", ttl=10), clock)
    assert isinstance(ben, Lease)
    assert clock.now == 1000 + 75
    assert (ben.record.epoch, ben.record.gate) == (2, "open")
    with pytest.raises(LeaseLost, match="held by ben"):
        ann.prove(1)


def test_one_that_renews_is_alive() -> None:
    store, clock = MemoryRecords(), FakeClock()
    ann = take(store, clock, "ann")

    def renew_once() -> None:
        clock.on_sleep = lambda: None
        ann.renew()

    clock.on_sleep = renew_once
    assert acquire(store, claim("ben"), clock) == Held(ann.record)
    assert clock.now == 1005


def test_even_at_the_last_moment() -> None:
    """The tail is read again before the take-over, and its number can be taken only once."""
    store, clock = MemoryRecords(), FakeClock()
    ann = take(store, FakeClock(), "ann")  # on a clock that stands still

    def renew_first() -> None:
        store.before_create = lambda: None
        ann.renew()

    store.before_create = renew_first
    assert acquire(store, claim("ben"), clock) == Held(ann.record)
    assert clock.now == 1075


def test_one_that_releases_meanwhile_is_followed_at_once() -> None:
    store, clock = MemoryRecords(), FakeClock()
    ann = take(store, clock, "ann")

    def release() -> None:
        ann.release()

    clock.on_sleep = release
    assert isinstance(acquire(store, claim("ben"), clock), Lease)
    assert clock.now == 1005


def beside(clock: FakeClock, rate: float) -> FakeClock:
    """The clock of another process, which runs at its own rate and has its own idea of the date."""
    other = FakeClock(start=-5e6, wall="1999-01-01T00:00:00")

    def time_passes() -> None:
        other.now = -5e6 + (clock.now - 1000) * rate

    clock.on_sleep = time_passes
    return other


@pytest.mark.parametrize("rate", [0.8, 1, 1.25, 2])
def test_the_dead_know_it_by_their_own_clock_before_they_are_taken_over(rate: float) -> None:
    """Up to a quarter: so nothing depends on a late look at the tail."""
    store, clock = MemoryRecords(), FakeClock()
    hers = beside(clock, rate)
    ann = take(store, hers, "ann")
    assert isinstance(acquire(store, claim("ben"), clock), Lease)
    assert ann._left() <= 0


def test_with_a_clock_too_slow_for_that_the_tail_tells() -> None:
    store, clock = MemoryRecords(), FakeClock()
    ann = take(store, beside(clock, rate=0.5), "ann")
    assert isinstance(acquire(store, claim("ben"), clock), Lease)
    assert ann._left() > 0
    with pytest.raises(LeaseLost, match="held by ben"):
        ann.prove(1)


@pytest.mark.parametrize("rate", [0.5, 1, 2])
def test_the_living_are_never_taken_over(rate: float) -> None:
    store, clock = MemoryRecords(), FakeClock()
    hers = beside(clock, rate)
    ann = take(store, hers, "ann")
    tick = clock.on_sleep

    def renew_in_time() -> None:
        tick()
        if ann._left() <= 50:
            ann.renew()

    clock.on_sleep = renew_in_time
    assert acquire(store, claim("ben"), clock) == Held(ann.record)


def test_a_broken_lease_is_taken_at_once() -> None:
    store, clock = MemoryRecords(), FakeClock()
    take(store, clock, "ann")
    break_lease(store, 1, "stuck", BEN, clock)
    assert take(store, clock, "cleo").record.epoch == 2


def test_waiting_ends_when_the_run_is_asked_to_stop() -> None:
    store, clock = MemoryRecords(), FakeClock()
    take(store, clock, "ann")

    def stop() -> None:
        raise StoppedError("stopped")

    clock.on_sleep = stop
    with pytest.raises(StoppedError):
        acquire(store, claim("ben"), clock)
    assert len(store.kept) == 1


# Several leases, all or none


def all_of(
    stores: Mapping[str, RecordStore], clock: FakeClock, seen: Mapping[str, Sighting] | None = None, who: str = "ben"
) -> dict[str, Lease] | Mapping[str, Sighting]:
    got = acquire_all(stores, claim(who), clock, seen or {})
    return got.holders if isinstance(got, Blocked) else got


def test_they_are_taken_in_the_order_of_their_keys() -> None:
    order: list[str] = []
    stores = {key: MemoryRecords() for key in ("c", "a", "b")}
    for key, store in stores.items():
        store.before_create = lambda key=key: order.append(key)  # type: ignore[misc]
    assert (list(all_of(stores, FakeClock())), order) == (["a", "b", "c"], ["a", "b", "c"])


def test_all_or_none() -> None:
    stores, clock = {key: MemoryRecords() for key in "abc"}, FakeClock()
    bens: list[Lease] = []
    stores["b"].before_create = lambda: bens.append(take(stores["c"], clock, "ben")) if not bens else None
    got = all_of(stores, clock, who="ann")
    assert got == {"c": Sighting(bens[0].record, 1000, alive=True)}
    assert [last.kind for key in "ab" if (last := tail(stores[key]))] == ["release", "release"]
    bens[0].prove(1)


def test_an_error_on_the_way_gives_back_what_was_taken() -> None:
    stores = {key: MemoryRecords() for key in "abc"}
    stores["c"].faults.append(Fault.REFUSED)
    with pytest.raises(WindowError, match="refused"):
        all_of(stores, FakeClock())
    assert [last.kind for key in "ab" if (last := tail(stores[key]))] == ["release", "release"]


def test_what_was_seen_before_counts_so_that_no_one_has_to_look_all_the_time() -> None:
    stores, clock = {key: MemoryRecords() for key in "abc"}, FakeClock()
    held = {key: take(stores[key], clock, "ann").record for key in "ab"}
    seen = all_of(stores, clock)
    assert seen == {key: Sighting(record, 1000) for key, record in held.items()}
    clock.now += 74.9
    assert all_of(stores, clock, seen) == seen  # type: ignore[arg-type]
    clock.now += 0.1
    got = all_of(stores, clock, seen)  # type: ignore[arg-type]
    assert [lease.record.epoch for lease in got.values() if isinstance(lease, Lease)] == [2, 2, 1]


def test_a_tail_that_moved_begins_to_age_again() -> None:
    store, clock = MemoryRecords(), FakeClock()
    ann = take(store, clock, "ann")
    first = all_of({"a": store}, clock)
    clock.now += 50
    ann.renew()
    second = all_of({"a": store}, clock, first)  # type: ignore[arg-type]
    assert second == {"a": Sighting(ann.record, 1050, alive=True)}
    clock.now += 74
    assert all_of({"a": store}, clock, second) == second  # type: ignore[arg-type]
    clock.now += 1
    assert isinstance(all_of({"a": store}, clock, second)["a"], Lease)  # type: ignore[arg-type]


def test_nothing_is_taken_while_another_is_held_and_all_holders_are_named() -> None:
    stores, clock = {key: MemoryRecords() for key in "abc"}, FakeClock()
    for key in "bc":
        take(stores[key], clock, "ann")
    assert list(all_of(stores, clock)) == ["b", "c"]
    assert tail(stores["a"]) is None


def test_of_nothing_all_are_taken() -> None:
    assert all_of({}, FakeClock()) == {}


# Breaking


def test_a_break_is_a_record_that_says_why() -> None:
    store, clock = MemoryRecords(), FakeClock()
    take(store, clock, "ann").gate(Gate.CLOSED)
    record = break_lease(store, 1, "  ann is on holiday ", BEN, clock)
    assert record == tail(store)
    assert (record.kind, record.reason, record.owner, record.gate) == ("break", "ann is on holiday", BEN, "open")
    assert (record.run, record.epoch) == ("run-of-ann", 1)


def test_a_break_wants_a_reason() -> None:
    store, clock = MemoryRecords(), FakeClock()
    ann = take(store, clock, "ann")
    with pytest.raises(WindowError, match="wants a reason"):
        break_lease(store, 1, " ", BEN, clock)
    ann.prove(1)


def test_a_break_is_of_the_epoch_that_was_shown() -> None:
    store, clock = MemoryRecords(), FakeClock()
    take(store, clock, "ann").release()
    take(store, clock, "cleo")
    with pytest.raises(WindowError, match=r"changed hands since epoch 1: it is held by cleo on cleo-laptop") as caught:
        break_lease(store, 1, "stuck", BEN, clock)
    assert caught.value.hint == "to break that one, give epoch 2"


@pytest.mark.parametrize("history", ["nothing", "released", "broken"])
def test_what_no_one_holds_cannot_be_broken(history: str) -> None:
    store, clock = MemoryRecords(), FakeClock()
    if history != "nothing":
        ann = take(store, clock, "ann")
        ann.release() if history == "released" else break_lease(store, 1, "stuck", BEN, clock)
    with pytest.raises(WindowError, match="the lease in"):
        break_lease(store, 1, "stuck", BEN, clock)


def test_a_renewal_at_the_same_moment_does_not_save_the_holder() -> None:
    store, clock = MemoryRecords(), FakeClock()
    ann = take(store, clock, "ann")

    def renew_first() -> None:
        store.before_create = lambda: None
        ann.renew()

    store.before_create = renew_first
    assert break_lease(store, 1, "stuck", BEN, clock).seq == 3
    with pytest.raises(LeaseLost, match="broken by ben"):
        ann.prove(1)


def test_a_log_that_never_stands_still_is_given_up() -> None:
    store, clock = MemoryRecords(), FakeClock()
    ann = take(store, clock, "ann")

    def always_faster() -> None:
        last = tail(store)
        assert last is not None
        record = replace(last, seq=last.seq + 1, id=f"fast-{last.seq}")
        store.kept[record_name(record.seq)] = dump_record(record)

    store.before_create = always_faster
    with pytest.raises(WindowError, match="changes hands faster than it can be read"):
        break_lease(store, ann.record.epoch, "stuck", BEN, clock)
