from __future__ import annotations

from collections.abc import Callable, Collection

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablectl.applying.drain_writers import Drain, named
from tablectl.applying.waits import Later
from tablectl.leases.clock import StoppedError
from tablectl.leases.guards import GuardMode, GuardRecord
from tablectl.leases.lease import LeaseLost
from tablectl.leases.lease_records import Gate
from tablectl.model.errors import WindowError
from tests.applying.writers import FakeGuard, drained
from tests.leases.lease_fakes import FakeClock, MemoryRecords


class Scene:
    """One drain, and what others do while it sleeps."""

    def __init__(self) -> None:
        self.store = MemoryRecords()
        self.clock = FakeClock()
        self.pulses: list[float] = []
        """Seconds waited at each sign of life."""
        self.words: list[str] = []
        """What the drain waited for then."""
        self.keep_alive: Callable[[Later, float], None] = self._pulse
        self.at: dict[float, Callable[[], object]] = {}
        self.clock.on_sleep = self._happen

    def __call__(self, gate: Gate = Gate.CLOSED, limit: float = 300, ignored: Collection[str] = ()) -> Drain:
        return drained(self.store, gate, self.clock, limit, self.keep_alive, ignored)

    def after(self, seconds: float, act: Callable[[], object]) -> None:
        self.at[1000 + seconds] = act

    def every(self, seconds: float, act: Callable[[], object]) -> None:
        for number in range(1, 200):
            self.after(number * seconds, act)

    def _pulse(self, later: Later, waited: float) -> None:
        self.pulses.append(waited)
        self.words.append(later.words)

    def _happen(self) -> None:
        for due in sorted(each for each in self.at if each <= self.clock.now):
            self.at.pop(due)()


@pytest.fixture
def run() -> Scene:
    return Scene()


def guard(run: Scene, writer: str = "etl", mode: GuardMode = GuardMode.ANY, ttl: float = 60.0) -> FakeGuard:
    return FakeGuard(run.store, writer, mode, ttl)


def test_without_guards_nothing_is_waited_for(run: Scene) -> None:
    left = run()
    assert (left.over, left.seconds, run.pulses) == (True, 0, [])


def test_a_writer_is_waited_for_until_it_ends(run: Scene) -> None:
    run.after(7, guard(run).end)
    left = run()
    assert left.over
    assert 7 <= left.seconds <= 8
    assert run.words[0] == "closed gate, waiting for etl (any)"


@pytest.mark.parametrize("gate", [Gate.NO_SCHEMA, Gate.APPENDS_ONLY, Gate.CLOSED])
@pytest.mark.parametrize("mode", list(GuardMode))
def test_only_modes_that_wait_at_the_gate_are_waited_for(run: Scene, gate: Gate, mode: GuardMode) -> None:
    guard(run, mode=mode)
    assert run(gate, limit=10).over == (not mode.waits(gate))


def test_a_writer_that_shows_no_life_is_dead_after_its_ttl_and_a_quarter(run: Scene) -> None:
    guard(run, ttl=20)
    left = run()
    assert left.over
    assert 25 <= left.seconds < 27


def test_the_dead_are_deleted_or_the_next_drain_would_wait_for_them_again(run: Scene) -> None:
    guard(run, ttl=20)
    other = guard(run, mode=GuardMode.APPEND)
    assert run(Gate.APPENDS_ONLY).over
    assert list(run.store.kept) == [other.record.name]


def test_one_that_was_only_paused_is_seen_again_when_it_goes_on(run: Scene) -> None:
    paused = guard(run, ttl=20)
    assert run().over
    paused.beat()
    assert not run(limit=10).over


def test_no_one_is_deleted_while_another_is_waited_for(run: Scene) -> None:
    guard(run, ttl=20)
    run.every(15, guard(run, ttl=20).beat)
    assert not run(limit=60).over
    assert len(run.store.names("guards/")) == 2


def test_each_beat_is_a_sign_of_life(run: Scene) -> None:
    run.every(15, guard(run, ttl=20).beat)
    left = run(limit=300)
    assert [each.writer for each in left.guards] == ["etl"]
    assert left.seconds == pytest.approx(300, abs=0.1)


def test_a_dead_writer_that_comes_back_while_others_are_waited_for_is_alive_again(run: Scene) -> None:
    run.every(10, guard(run, "alive").beat)
    paused = guard(run, "paused", ttl=20)
    run.after(60, paused.beat)
    run.every(70, paused.beat)
    left = run(limit=80)
    assert {each.writer for each in left.guards} == {"alive", "paused"}


def test_what_has_not_ended_in_time_is_named(run: Scene) -> None:
    for name in ("nightly load", "", "c", "d", "e", "f", "g"):
        guard(run, name, ttl=600)
    left = run(limit=30)
    assert (left.over, round(left.seconds), len(left.guards)) == (False, 30, 7)
    assert left.text == "nightly load (any), a writer without a name (any), c (any), d (any), e (any) and 2 more"


def test_no_time_is_one_look(run: Scene) -> None:
    guard(run)
    assert run(limit=0).seconds == 0
    run.store.kept.clear()
    assert run(limit=0).over


def test_a_guard_that_comes_after_the_first_look_saw_the_gate(run: Scene) -> None:
    run.after(5, lambda: guard(run, "late"))
    run.after(9, guard(run, "first").end)
    left = run()
    assert left.over
    assert left.seconds < 11


def test_guards_that_were_given_up_are_not_waited_for_again(run: Scene) -> None:
    hung = guard(run, "hung", ttl=600)
    assert run(ignored={hung.record.id}).over


def test_a_renewal_between_the_list_and_the_reading_is_not_an_end(run: Scene) -> None:
    """The record of the listed beat is gone by the time it is read."""
    writer = guard(run, "renewing", GuardMode.REWRITE)
    real, renewals = run.store.read, 0

    def read(name: str) -> bytes | None:
        nonlocal renewals
        renewals += 1
        if renewals < 4:
            writer.beat()
        return real(name)

    run.store.read = read  # type: ignore[method-assign]
    run.after(20, writer.end)
    left = run()
    assert left.over
    assert left.seconds >= 20


def test_a_renewal_while_the_store_lists_hides_no_guard(run: Scene) -> None:
    writer = guard(run, "renewing")
    real, listings = run.store.names, 0

    def names(prefix: str) -> tuple[str, ...]:
        nonlocal listings
        listings += 1
        return () if listings % 2 else real(prefix)

    run.store.names = names  # type: ignore[method-assign]
    run.after(20, writer.end)
    assert run().seconds >= 20


# What cannot be read is not drained


def down(run: Scene, until: float) -> None:
    run.store.down = True
    run.after(until, lambda: setattr(run.store, "down", False))


def test_unreadable_guards_are_not_drained(run: Scene) -> None:
    run.store.down = True
    left = run(limit=40)
    assert (left.over, round(left.seconds)) == (False, 40)
    assert left.text == "guards that cannot be read: the store is down"


def test_a_store_that_comes_back_is_read_then(run: Scene) -> None:
    down(run, 30)
    left = run()
    assert left.over
    assert 30 <= left.seconds <= 32


def test_a_store_that_goes_away_meanwhile_lets_no_one_pass_for_gone(run: Scene) -> None:
    guard(run, ttl=600)
    run.after(5, lambda: setattr(run.store, "down", True))
    left = run(limit=60)
    assert (left.over, len(left.guards), left.problem) == (False, 1, "the store is down")


def test_time_without_a_look_counts_for_a_guards_age(run: Scene) -> None:
    """No one can have renewed in a store that is down for all; whoever could has another beat when it is back."""
    guard(run, ttl=20)
    run.after(5, lambda: down(run, 50))
    left = run()
    assert left.over
    assert 50 <= left.seconds < 53


def test_a_guard_that_cannot_be_understood_is_the_strictest(run: Scene) -> None:
    run.store.create("guards/0123abcd.1.json", b"{")
    left = run(Gate.NO_SCHEMA, limit=5)
    assert [each.writer for each in left.guards] == ["a writer whose guard cannot be read"]


# The lease


def test_the_lease_is_proven_before_each_pause(run: Scene) -> None:
    guard(run, ttl=600)
    run(limit=20)
    assert len(run.pulses) >= 20
    gaps = [after - before for before, after in zip(run.pulses, run.pulses[1:], strict=False)]
    assert max(gaps) <= 1


def test_a_lost_lease_ends_the_drain(run: Scene) -> None:
    guard(run, ttl=600)

    def lost(_later: Later, waited: float) -> None:
        if waited > 10:
            raise LeaseLost("taken")

    run.keep_alive = lost
    with pytest.raises(LeaseLost):
        run()


def test_a_lease_that_cannot_be_proven_for_a_while_does_not(run: Scene) -> None:
    run.after(20, guard(run, ttl=600).end)

    def unproven(_later: Later, _waited: float) -> None:
        raise WindowError("no answer")

    run.keep_alive = unproven
    assert run().over


def test_a_stop_ends_it(run: Scene) -> None:
    guard(run)

    def stop() -> None:
        raise StoppedError("stopped while waiting")

    run.clock.on_sleep = stop
    with pytest.raises(StoppedError):
        run()


# In general


@settings(deadline=None)
@given(
    writers=st.lists(
        st.tuples(
            st.sampled_from(GuardMode),
            st.floats(0, 400),  # when it ends
            st.floats(5, 60),  # its ttl
            st.floats(0, 400),  # when it stops to renew
        ),
        max_size=5,
    ),
    gate=st.sampled_from([Gate.NO_SCHEMA, Gate.APPENDS_ONLY, Gate.CLOSED]),
    limit=st.floats(0, 500),
)
def test_no_one_alive_is_left_when_it_is_over(
    writers: list[tuple[GuardMode, float, float, float]], gate: Gate, limit: float
) -> None:
    run = Scene()
    guards = []
    for mode, end, ttl, last in writers:
        one = guard(run, mode=mode, ttl=ttl)
        guards.append((one, mode, end, ttl, last))
    beats = [0.0] * len(guards)

    def live() -> None:
        now = run.clock.now - 1000
        for index, (one, _, end, ttl, last) in enumerate(guards):
            if one.record.name not in run.store.kept:
                continue
            if now >= end:
                one.end()
            elif beats[index] + ttl / 6 <= now <= last:
                beats[index] = now
                one.beat()

    run.clock.on_sleep = live
    left = run(gate, limit=limit)
    assert left.seconds <= limit + 0.001
    waits = [each for each in guards if each[1].waits(gate)]
    if left.over:
        for _, _, end, ttl, last in waits:
            # Gone, or silent for longer than its ttl: it had stopped to renew.
            assert left.seconds >= min(end, last + ttl) - ttl / 6 - 2
    else:
        assert any(end > limit - 2 or ttl * 1.25 > limit - last - 2 for _, _, end, ttl, last in waits)


def test_a_record_without_a_writer_has_words() -> None:
    assert named(GuardRecord("0123abcd", 1)) == "a writer without a name (any)"
