"""A killed writer leaves its guard: it never blocks a table for longer than ttl × 1.25 after the first look."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tablectl.applying.drain_writers import Sightings
from tablectl.applying.events import RunEvent
from tablectl.leases.guards import HERE, GuardMode, GuardRecord, read_guards
from tablectl.leases.lease_records import SilentGuard, record_at, tail
from tablectl.model.calendar import TableWindow
from tablectl.model.run_report import RunOutcome
from tablectl.policies.config import WindowConfig
from tests.applying.lake_run import Run, only
from tests.applying.test_run_upkeep import OPTIMIZE, Upkeep
from tests.applying.world import World
from tests.applying.writers import FakeGuard
from tests.leases.lease_fakes import FakeClock

SHORT = TableWindow(drain=60)
"""What `upkeep` gives writers by default: half of two minutes. A guard of the default ttl is dead after 75 s."""


def killed(run: Run, ttl: float, mode: GuardMode = GuardMode.REWRITE) -> FakeGuard:
    """The guard of a writer that was killed."""
    return FakeGuard(run.stores["/lake/a"], "merge", mode, ttl)


def gates(run: Run) -> list[str]:
    """The gates that the run has shut, from the events that it told."""
    return [step for _, step in run.steps if step.startswith("gate ")]


def reshaped(**more: object) -> Run:
    """A table whose plan has a closed statement, so that writers of every mode are waited for."""
    return Run(**more).tables("a")  # type: ignore[arg-type]


# Upkeep: three tries of 60 seconds in a run, each with a drain of its own


def test_an_hourly_upkeep_gets_past_a_killed_merge_in_its_first_run() -> None:
    world = Upkeep()
    FakeGuard(world.store, "merge", GuardMode.REWRITE)
    began = world.clock.now
    run = world.upkeep(OPTIMIZE, window=SHORT)
    assert run.outcome == "applied"
    assert world.clock.now - began < 2 * 75
    assert any("no sign of life, and so taken for dead: merge (rewrite)" in note for note in run.notes)


def test_the_next_hour_counts_on_from_what_this_one_saw() -> None:
    world, outcomes = Upkeep(), list[str]()
    FakeGuard(world.store, "merge", GuardMode.REWRITE, ttl=500)  # dead after 625 s; a run looks for about 220 s
    for hour in range(3):
        lease = world.lease(f"r{hour}")
        outcomes.append(world.run(world.due(OPTIMIZE, window=SHORT), f"r{hour}", lease).outcome)
        lease.release()
        world.clock.now += 3600
    assert outcomes == ["no window", "no window", "applied"]


def test_an_hour_between_two_runs_does_not_count_because_no_two_clocks_are_compared() -> None:
    """The writer may have been alive all the time, if the clock of the second run is wrong."""
    world = Upkeep()
    FakeGuard(world.store, "merge", GuardMode.REWRITE, ttl=1200)
    lease = world.lease("r0")
    world.run(world.due(OPTIMIZE, window=SHORT), "r0", lease)
    lease.release()
    last = tail(world.store)
    assert last is not None
    assert [round(each.seconds) for each in last.silent] == pytest.approx([215], abs=40)
    world.clock.now += 100_000
    assert world.upkeep(OPTIMIZE, window=SHORT).outcome == "no window"


def test_a_writer_that_gives_a_sign_of_life_between_two_runs_is_alive() -> None:
    world = Upkeep()
    guard = FakeGuard(world.store, "merge", GuardMode.REWRITE, ttl=240)
    for run in ("r0", "r1", "r2", "r3"):
        lease = world.lease(run)
        assert world.run(world.due(OPTIMIZE, window=SHORT), run, lease).outcome == "no window"
        lease.release()
        guard.beat()
    assert len(read_guards(world.store)) == 1


# An apply: silent guards are watched before the gate shuts


def test_an_apply_gets_past_a_killed_job_with_a_long_ttl_within_one_of_its_patience() -> None:
    run = reshaped()
    killed(run, 1800, GuardMode.ANY)
    began = run.clock.now
    report = run.apply()
    assert (only(report, "a").outcome, int(report.exit_code)) == ("applied", 0)
    assert 2250 <= run.clock.now - began <= 2250 + 20
    (taken, note) = only(report, "a").notes
    assert "`window.drain` is 300 s, and a guard of merge (any) counts as dead only after 2250 s" in note
    assert "no sign of life, and so taken for dead: merge (any)" in taken


def test_the_gate_is_open_while_a_silent_guard_is_watched() -> None:
    run, seen = reshaped(), list[str]()
    killed(run, 1800, GuardMode.ANY)
    run.notify = lambda event: seen.append(run.gate("a")) if event.step == "silent writers" else None
    run.apply()
    assert set(seen) == {"open"}


def test_a_live_writer_with_a_long_ttl_is_watched_only_until_its_next_sign_of_life() -> None:
    run = reshaped()
    guard = killed(run, 1800, GuardMode.ANY)
    began, beats = run.clock.now, list[float]()

    def renew() -> None:
        if not beats and run.clock.now - began >= 300:  # a sixth of the ttl
            guard.beat()
            beats.append(run.clock.now)
        if beats and run.clock.now - beats[0] > 30:
            guard.end()

    run.clock.on_sleep = renew
    assert only(run.apply(), "a").outcome == "applied"
    assert run.clock.now - began < 400


def test_a_drain_long_enough_to_find_out_is_not_preceded_by_a_watch() -> None:
    run = reshaped()
    killed(run, 60, GuardMode.ANY)
    assert only(run.apply(), "a").outcome == "applied"
    assert not any(event.step == "silent writers" for event in run.told)


def test_wait_shuts_the_gate_once_and_not_sixteen_times() -> None:
    run = reshaped(wait=4 * 3600.0)
    killed(run, 7200, GuardMode.ANY)
    report = run.apply()
    assert only(report, "a").outcome == "applied"
    assert len(gates(run)) == len(set(gates(run)))


def test_a_run_that_is_stopped_while_it_watches_leaves_what_it_saw_to_the_next() -> None:
    run = reshaped()
    guard = killed(run, 1800, GuardMode.ANY)
    began = run.clock.now
    run.clock.on_sleep = lambda: run.stop.set() if run.clock.now - began > 1000 else None
    assert only(run.apply(), "a").outcome == "interrupted"
    last = tail(run.stores["/lake/a"])
    assert last is not None
    assert [each.guard for each in last.silent] == [guard.record.id]
    assert last.silent[0].seconds >= 900
    again = Run(clock=FakeClock(), lake=run.lake, stores=run.stores)
    began = again.clock.now
    assert only(again.apply(run.plan()), "a").outcome == "applied"
    assert again.clock.now - began <= 1400


def test_a_guard_with_a_ttl_of_a_day_does_not_hold_a_run_for_a_day() -> None:
    run = reshaped()
    killed(run, 86_400, GuardMode.ANY)
    report = run.apply()
    assert (only(report, "a").outcome, int(report.exit_code)) == ("no window", 4)
    assert run.clock.now - 1000 < 3700
    assert "no sign of life of merge (any) for 36" in only(report, "a").hint
    assert "they count as dead after 104398 s more" in only(report, "a").hint
    assert "`--wait 1740` watches for as long" in only(report, "a").hint
    assert gates(run) == []


def test_new_writers_that_come_all_the_time_do_not_prolong_the_watch() -> None:
    run = reshaped()
    current = [killed(run, 1800, GuardMode.ANY)]

    def next_writer() -> None:
        current[-1].end()
        if len(current) < 100:
            current.append(killed(run, 1800, GuardMode.ANY))

    run.clock.on_sleep = next_writer
    assert only(run.apply(), "a").outcome == "applied"


def test_a_writer_that_waits_at_this_gate_is_not_watched() -> None:
    run = reshaped()
    waiting = GuardRecord("0123abcd", 1, "merge", GuardMode.ANY, 1800, HERE)
    run.stores["/lake/a"].create(waiting.name, waiting.to_bytes())
    assert only(run.apply(), "a").outcome == "applied"
    assert not any(event.step == "silent writers" for event in run.told)


def test_a_table_that_is_as_planned_already_does_not_wait_for_anyone() -> None:
    run = reshaped()
    plan = run.plan()
    run.apply(plan)
    killed(run, 1800, GuardMode.ANY)
    began = run.clock.now
    assert only(run.apply(plan), "a").outcome == "already"
    assert run.clock.now - began < 60


def test_another_table_does_not_wait_for_the_one_that_is_watched() -> None:
    run = Run(parallel=1).tables("ab")
    killed(run, 1800, GuardMode.ANY)
    done = dict[str, float]()

    def note(event: RunEvent) -> None:
        if event.step == "done":
            done[event.table] = run.clock.now

    run.notify = note
    run.apply()
    assert done["delta.`/lake/b`"] - 1000 < 60
    assert done["delta.`/lake/a`"] - 1000 >= 2250


def test_proceed_goes_on_over_a_silent_writer_without_watching_it() -> None:
    run = reshaped(proceed="it is dead, says its owner", config=WindowConfig(drain=5))
    killed(run, 1800, GuardMode.ANY)
    began = run.clock.now
    assert only(run.apply(), "a").outcome == "applied"
    assert run.clock.now - began < 60


# What helps


def test_the_hint_says_when_a_silent_writer_counts_as_dead() -> None:
    world = World(config=WindowConfig(drain=100))
    world.lake.add()
    FakeGuard(world.store, "merge", ttl=1800)
    run = world.run(world.plan(isolation="Serializable"))
    assert run.outcome is RunOutcome.NO_WINDOW
    assert "no sign of life of merge (any) for" not in run.hint  # it may have been renewed 100 s ago
    again = world.run(replace(world.plan(isolation="Serializable"), window=TableWindow(drain=900)), "ben")
    assert "no sign of life of merge (any) for 1000 s: they count as dead after 1250 s more" in again.hint
    assert "`--wait 21` watches for as long" in again.hint


# What one run has seen


@pytest.mark.parametrize(
    ("seen", "since"),
    [
        (SilentGuard("0123abcd", 4, 50.0), 950.0),  # the same beat: it counts on
        (SilentGuard("0123abcd", 3, 50.0), 1000.0),  # a later beat: a sign of life
        (SilentGuard("4567abcd", 4, 50.0), 1000.0),
    ],
)
def test_only_the_same_beat_of_the_same_guard_counts_on(seen: SilentGuard, since: float) -> None:
    sightings = Sightings()
    sightings.recall([seen], 1000.0)
    assert sightings.since("0123abcd", 4, 1000.0) == since


def test_what_an_earlier_holder_saw_is_not_counted_twice() -> None:
    sightings = Sightings()
    sightings.recall([SilentGuard("0123abcd", 4, 50.0)], 1000.0)
    sightings.recall([SilentGuard("0123abcd", 4, 50.0)], 1100.0)
    assert sightings.since("0123abcd", 4, 1100.0) == 950.0


def test_the_record_x_names_the_guard_and_its_beat() -> None:
    world = World(config=WindowConfig(drain=100))
    world.lake.add()
    guard = FakeGuard(world.store, "merge", ttl=1800)
    world.run(world.plan(isolation="Serializable"))
    records = [record_at(world.store, seq) for seq in range(1, 20)]
    kept: Callable[[SilentGuard], tuple[str, int]] = lambda each: (each.guard, each.beat)  # noqa: E731
    assert [kept(each) for each in next(one.silent for one in records if one and one.silent)] == [
        (guard.record.id, guard.record.beat)
    ]
