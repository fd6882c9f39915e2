"""The calendar: before a table is taken, before each statement, and when the time runs out on the way."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from tablectl.leases.lease_records import Gate, tail
from tablectl.model.calendar import Rule, TableWindow
from tablectl.model.errors import EngineError
from tablectl.model.run_report import RunOutcome
from tablectl.model.stamp import read_stamp
from tablectl.policies.config import WindowConfig
from tests.applying.fake_lake import FakeTable, at
from tests.applying.lake_run import Run, only, outcomes, plan_of
from tests.applying.world import WITH_VECTORS, World

# The clock of the tests starts on 22 August 2026, a Saturday, at 10:16:40 UTC.
NIGHTS = Rule(cron="0 22 * * *", duration=timedelta(hours=8))
MORNING = Rule(cron="0 10 * * *", duration=timedelta(hours=1))
FREEZE = Rule(cron="0 0 22 8 *", duration=timedelta(days=3))


def rules(*allow: Rule, deny: tuple[Rule, ...] = ()) -> WindowConfig:
    return WindowConfig(allow=allow, deny=deny)


def test_outside_nothing_is_taken_and_the_next_window_named() -> None:
    run = Run(config=rules(NIGHTS)).tables("a")
    report = run.apply()
    assert (outcomes(report), report.exit_code, run.kinds("a")) == ({"a": "no window"}, 4, [])
    assert only(report, "a").message == (
        "the calendar does not allow it now; the next one begins at 2026-08-22 22:00 UTC"
    )
    assert "--override REASON" in only(report, "a").hint


def test_inside_it_runs() -> None:
    run = Run(config=rules(MORNING)).tables("a")
    assert outcomes(run.apply()) == {"a": "applied"}


def test_tables_that_are_as_planned_already_need_no_window() -> None:
    run = Run(config=rules(NIGHTS)).tables("ab")
    plan = run.plan()
    run.lake.tables["/lake/a"].set_property("delta.isolationLevel", "Serializable")
    assert outcomes(run.apply(plan)) == {"a": "already", "b": "no window"}
    assert run.engine.sent == []


def test_a_table_that_no_longer_fits_its_plan_is_not_looked_at_outside_the_calendar() -> None:
    run = Run(config=rules(NIGHTS)).tables("a")
    plan = run.plan()
    run.lake.tables["/lake/a"].set_property("delta.isolationLevel", "SnapshotIsolation")
    assert outcomes(run.apply(plan)) == {"a": "no window"}


def test_tables_that_share_a_window_wait_for_it_until_all_are_as_planned() -> None:
    run = Run(config=rules(NIGHTS), together=("/lake/*",)).tables("ab")
    plan = run.plan()
    run.lake.tables["/lake/a"].set_property("delta.isolationLevel", "Serializable")
    assert outcomes(run.apply(plan)) == {"a": "no window", "b": "no window"}
    run.lake.tables["/lake/b"].set_property("delta.isolationLevel", "Serializable")
    assert outcomes(run.apply(plan)) == {"a": "already", "b": "already"}


def test_deny_wins() -> None:
    run = Run(config=rules(MORNING, deny=(FREEZE,))).tables("a")
    report = run.apply()
    assert outcomes(report) == {"a": "no window"}
    assert only(report, "a").message.endswith("the next one begins at 2026-08-25 10:00 UTC")


def test_a_calendar_that_never_opens_says_so() -> None:
    run = Run(config=rules(deny=(Rule(cron="* * * * *", duration=timedelta(hours=1)),))).tables("a")
    assert only(run.apply(), "a").message == "the calendar does not allow it now; there is none within a year"


def test_a_table_has_hours_of_its_own_and_no_way_around_a_freeze() -> None:
    own = TableWindow(allow=(MORNING.text,))
    run = Run(config=rules(NIGHTS)).tables("ab")
    first, second = run.plan().tables
    report = run.apply(plan_of(replace(first, window=own), second))
    assert outcomes(report) == {"a": "applied", "b": "no window"}
    frozen = Run(config=rules(NIGHTS, deny=(FREEZE,))).tables("a")
    (table,) = frozen.plan().tables
    assert outcomes(frozen.apply(plan_of(replace(table, window=own)))) == {"a": "no window"}


def test_rules_are_about_tables_and_tags() -> None:
    deny = (
        Rule(cron="0 0 22 8 *", duration=timedelta(days=1), tags=("ledger",)),
        Rule(cron="0 0 22 8 *", duration=timedelta(days=1), tables=("/lake/c",)),
    )
    run = Run(config=rules(deny=deny), tags={"b": ("ledger",)}).tables("abc")
    report = run.apply()
    assert outcomes(report) == {"a": "applied", "b": "no window", "c": "no window"}
    assert report.exit_code == 5


def test_an_operator_overrides_it_and_every_commit_says_why() -> None:
    run = Run(config=rules(NIGHTS), override="the year is closing").tables("a")
    report = run.apply()
    assert (outcomes(report), report.override) == ({"a": "applied"}, "the year is closing")
    stamps = {read_stamp(commit.user_metadata) for commit in run.lake.tables["/lake/a"].stamped}
    assert {stamp.override for stamp in stamps if stamp} == {"the year is closing"}


# The time runs out


@pytest.fixture
def world() -> World:
    made = World(config=rules(MORNING))
    made.lake.add(**{**WITH_VECTORS, "clustering": (("id",),), "properties": {**WITH_VECTORS["properties"], "x": "1"}})
    return made


ALL = {"clustering": ("day",), "deletion_vectors": "purged", "isolation": "Serializable", "properties": {"x": None}}


@pytest.mark.parametrize("number", [1, 2])
def test_no_statement_starts_when_the_time_ran_out_before_the_closed_part(world: World, number: int) -> None:
    plan = world.plan(**ALL)
    assert [each.phase for each in plan.statements[:3]] == ["free", "rewrite", "closed"]
    lease = world.lease()
    world.before = at(number, lambda _table: setattr(world.clock, "wall", world.clock.wall + timedelta(hours=1)))
    run = world.run(plan, lease=lease)
    assert (run.outcome, len(world.sent), len(run.commits)) == (RunOutcome.NO_WINDOW, number, number)
    assert run.message == ("the window ended at 2026-08-22 11:00 UTC; the next one begins at 2026-08-23 10:00 UTC")
    last = tail(world.store)
    assert last is not None
    assert last.gate is Gate.OPEN


def test_a_closed_part_that_has_begun_is_brought_to_its_end(world: World) -> None:
    plan = world.plan(**ALL)
    world.before = at(3, lambda _table: setattr(world.clock, "wall", world.clock.wall + timedelta(hours=1)))
    run = world.run(plan)
    assert (run.outcome, len(run.commits)) == (RunOutcome.APPLIED, 4)


def test_a_closed_statement_that_failed_has_begun_nothing(world: World) -> None:
    plan = world.plan(isolation="Serializable")

    def clash(_table: FakeTable, _sql: str) -> None:
        world.clock.wall += timedelta(hours=1)
        raise EngineError("clash", "", "DELTA_METADATA_CHANGED")

    world.before = clash
    run = world.run(plan)
    assert (run.outcome, len(world.sent)) == (RunOutcome.NO_WINDOW, 1)


def test_time_that_runs_out_while_writers_are_waited_for_starts_nothing(world: World) -> None:
    plan = world.plan(isolation="Serializable")
    lease = world.lease()

    def hour(event: str) -> None:
        if event == "drained":
            world.clock.wall += timedelta(hours=1)

    world.tick = hour
    run = world.run(plan, lease=lease)
    assert (run.outcome, world.sent) == (RunOutcome.NO_WINDOW, [])


def test_a_clock_on_the_wall_that_jumps_decides_nothing_else(world: World) -> None:
    """Expiry and drains go by the monotonic clock alone."""
    world.config = WindowConfig()
    plan = world.plan(isolation="Serializable")
    world.tick = lambda _event: setattr(world.clock, "wall", world.clock.wall - timedelta(days=365))
    assert world.run(plan).outcome is RunOutcome.APPLIED
