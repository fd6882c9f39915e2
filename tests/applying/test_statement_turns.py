"""Turns: who sends closed statements when."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tablectl.applying import statement_turns as turns_module
from tablectl.applying.statement_turns import LONGEST_WITH_SHUT_GATE, SHORT_DRAIN, Lane, Turn, Turns, lane_of
from tablectl.applying.waits import Later
from tablectl.engine.interface import MaySend, always
from tablectl.leases.guards import GuardMode
from tablectl.model.commit import Commit
from tablectl.model.plan import Statement
from tablectl.model.run_report import RunOutcome
from tablectl.policies.config import WindowConfig
from tests.applying.fake_lake import FakeEngine, FakeTable
from tests.applying.lake_run import Run, only, outcomes
from tests.applying.writers import FakeGuard
from tests.leases.lease_fakes import FakeClock


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns_module, "_LOOK_EVERY", 0.01)


def waits(_later: Later, _waited: float) -> None:
    """A pulse that only waits."""


class Taker:
    """A table in a thread of its own that asks for its turn."""

    def __init__(self, turn: Turn, lane: Lane = Lane.METADATA, *, shut: bool = False) -> None:
        self.turn = turn
        self.asked, self.has = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self._take, args=(lane, shut), daemon=True)
        self.thread.start()
        assert self.asked.wait(30) or self.has.wait(30)

    def _take(self, lane: Lane, shut: bool) -> None:
        def asked(_later: Later, _waited: float) -> None:
            self.asked.set()

        self.turn.take(lane, asked, shut=shut)
        self.has.set()
        self.asked.set()

    def got_it(self) -> bool:
        return self.has.wait(30)


def test_one_after_the_other_and_those_with_a_shut_gate_first() -> None:
    turns, clock = Turns(), FakeClock()
    first = turns.of("first", clock)
    first.take(Lane.METADATA, waits, shut=False)
    second = Taker(turns.of("second", clock))
    shut = Taker(turns.of("shut", clock), shut=True)
    assert not second.has.is_set()
    assert not shut.has.is_set()
    first.give()
    assert shut.got_it()
    assert not second.has.is_set()
    shut.turn.give()
    assert second.got_it()


def test_a_waiting_run_names_its_holder() -> None:
    turns, clock = Turns(), FakeClock()
    first = turns.of("orders", clock)
    first.take(Lane.METADATA, waits, shut=False)
    told: list[str] = []

    def keep_alive(later: Later, _waited: float) -> None:
        told.append(later.words)
        first.give()

    turns.of("returns", clock).take(Lane.METADATA, keep_alive, shut=False)
    assert told == ["waiting for its turn, after orders"]


def test_the_end_of_a_wait_leaves_the_queue_to_the_others() -> None:
    turns, clock = Turns(), FakeClock()
    first = turns.of("first", clock)
    first.take(Lane.METADATA, waits, shut=False)

    def gives_up(_later: Later, _waited: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        turns.of("second", clock).take(Lane.METADATA, gives_up, shut=False)
    third = Taker(turns.of("third", clock))
    first.give()
    assert third.got_it()


def test_a_shut_gate_is_not_kept_shut_by_the_statement_of_another_table() -> None:
    turns, clock = Turns(), FakeClock()
    first = turns.of("first", clock)
    first.take(Lane.METADATA, waits, shut=False)

    def time_passes(_later: Later, waited: float) -> None:
        assert waited <= LONGEST_WITH_SHUT_GATE
        clock.now += 1

    shut = turns.of("shut", clock)
    shut.take(Lane.METADATA, time_passes, shut=True)
    assert (shut.held, first.held, clock.now) == (True, True, 1000 + LONGEST_WITH_SHUT_GATE)


def test_lanes_do_not_wait_for_each_other() -> None:
    turns, clock = Turns(), FakeClock()
    for lane in (Lane.METADATA, Lane.DATA):
        turns.of("t", clock).take(lane, waits, shut=False)


def test_a_turn_in_the_other_lane_is_given_back_first() -> None:
    turns, clock = Turns(), FakeClock()
    turn = turns.of("t", clock)
    turn.take(Lane.METADATA, waits, shut=False)
    turn.take(Lane.DATA, waits, shut=False)
    turn.take(Lane.DATA, waits, shut=False)
    turns.of("other", clock).take(Lane.METADATA, waits, shut=False)
    turn.give()
    turn.give()
    assert not turn.held


def test_what_rewrites_data_has_a_lane_of_its_own() -> None:
    run = Run().tables("a")
    (setting,) = run.plan().tables[0].statements
    assert lane_of(setting) is Lane.METADATA
    verbs: tuple[Callable[[Statement], Statement], ...] = (
        lambda one: replace(one, verb="DROP FEATURE"),
        lambda one: replace(one, verb="OVERWRITE", repartition=("day",)),
        lambda one: replace(one, verb="REMOVE COLUMN MAPPING"),
    )
    assert {lane_of(make(setting)) for make in verbs} == {Lane.DATA}


# In a run


class SlowEngine(FakeEngine):
    """Statements that take their time, side by side; how many closed ones there are at a time; and which gates are
    closed meanwhile, for statements that have not ended.
    """

    def __init__(self, run: Run, during: Callable[[str], object] = lambda _sql: time.sleep(0.005)) -> None:
        super().__init__(run.lake, run.engine.stamp)
        self.run, self.during, self.guard = run, during, threading.Lock()
        self.closed_now = self.most_closed = 0
        self.shut_beside: list[str] = []
        self.ended: set[str] = set()
        run.engine = self

    def execute(self, sql: str, tag: str = "", may_send: MaySend = always, *, quick: bool = False) -> None:
        closed = not sql.startswith("REORG")
        with self.guard:
            self.closed_now += closed
            self.most_closed = max(self.most_closed, self.closed_now)
        self.during(sql)
        own = next((name for name in self.run.stores if f"`{name}`" in sql), "")
        others = [name for name in self.run.stores if name not in {own, *self.ended}]
        self.shut_beside += [name for name in others if self.run.gate(name[-1]) == "closed"]
        super().execute(sql, tag, may_send, quick=quick)
        with self.guard:
            self.closed_now -= closed
            self.ended.add(own)


@pytest.mark.parametrize("parallel", [2, 8])
def test_closed_statements_run_one_at_a_time_and_no_gate_is_shut_before_its_turn(parallel: int) -> None:
    run = Run(parallel=parallel).tables("abcdefgh")
    engine = SlowEngine(run)
    assert run.apply().exit_code == 0
    assert (engine.most_closed, engine.shut_beside) == (1, [])


def test_the_next_table_goes_on_while_the_first_one_is_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(parallel=2).tables("ab")
    second_runs = threading.Event()
    engine = SlowEngine(run, lambda _sql: second_runs.set() if engine.ended else None)
    read = run.lake.commits

    def commits(location: str, **more: Any) -> tuple[Commit, ...]:
        if location in engine.ended:
            assert second_runs.wait(30), "the second table waits for the verification of the first one"
        return read(location, **more)

    monkeypatch.setattr(run.lake, "commits", commits)
    assert outcomes(run.apply()) == {"a": "applied", "b": "applied"}


def test_without_turns_many_gates_are_shut_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the test above rests on."""
    monkeypatch.setattr(Turn, "take", lambda *_args, **_more: None)
    run = Run(parallel=8).tables("abcdefgh")
    all_inside = threading.Barrier(8, timeout=30)
    engine = SlowEngine(run, lambda _sql: all_inside.wait())
    assert run.apply().exit_code == 0
    assert engine.most_closed == 8
    assert engine.shut_beside


def test_statements_that_rewrite_run_side_by_side() -> None:
    vectors = {"properties": {"delta.enableDeletionVectors": "true"}, "vectors": 5}
    run = Run(parallel=2).tables("ab", **vectors)
    plan = run.plan(deletion_vectors="purged")
    both = threading.Barrier(2, timeout=30)
    SlowEngine(run, lambda sql: both.wait() if sql.startswith("REORG") else None)
    assert set(outcomes(run.apply(plan)).values()) == {"applied"}


@pytest.mark.parametrize("parallel", [2, 3])
def test_a_writer_that_does_not_end_delays_only_its_own_table(parallel: int) -> None:
    """Also with its gate shut first: the turn goes on to the others while it is waited for."""
    run = Run(parallel=parallel, config=WindowConfig(drain=300)).tables("abcdef")
    FakeGuard(run.stores["/lake/a"], mode=GuardMode.APPEND, ttl=80_000, writer="endless")
    others = threading.Semaphore(0)
    slept = [False]

    def released(event: object) -> None:
        if getattr(event, "step", "") == "released" and "/a" not in getattr(event, "table", ""):
            others.release()

    def sleep() -> None:
        if not slept[0] and run.clock.now > 1000 + SHORT_DRAIN + 2:
            slept[0] = True
            assert all(others.acquire(timeout=30) for _ in "bcdef"), "the other tables wait for the turn"

    run.notify = released
    run.clock.on_sleep = sleep
    report = run.apply()
    assert only(report, "a").outcome is RunOutcome.NO_WINDOW
    assert [outcomes(report)[name] for name in "bcdef"] == ["applied"] * 5
    assert run.gate("a") == "open"


def test_a_table_whose_statement_fails_gives_its_turn_on() -> None:
    run = Run(parallel=2).tables("abc")

    def fail(table: FakeTable, _sql: str) -> None:
        if table.live.location == "/lake/a":
            raise RuntimeError("a fault of the engine that no one foresaw")

    run.engine.before = fail
    assert outcomes(run.apply()) == {"a": "failed", "b": "applied", "c": "applied"}
