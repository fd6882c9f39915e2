"""Upkeep and what can happen to its table at the same moment: another run, an apply, a rewrite, a drop, a kill."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tablectl.leases.clock import milliseconds
from tablectl.model.plan import Plan, TablePlan
from tablectl.model.run_report import RunReport, TableRun
from tablectl.model.stamp import Stamp
from tablectl.model.table_options import NO_OPTIONS
from tablectl.model.upkeep import UpkeepFacts
from tablectl.planning.plan_upkeep import due_tasks, upkeep_table
from tests.applying.fake_lake import FakeEngine, FakeTable
from tests.applying.lake_run import Run, only, plan_of
from tests.applying.test_run_upkeep import BOTH, Upkeep, operations
from tests.applying.world import WITH_VECTORS, Kill

SMALL = UpkeepFacts(files=100, bytes=100_000, small_files=100, small_bytes=100_000, cut=True, commits=9)


def due(lake: Run) -> Plan:
    """What is due on all tables of a lake."""
    now = milliseconds(lake.clock.utc())
    lives = [table.live for table in lake.lake.tables.values()]
    return plan_of(*(upkeep_table(BOTH, live, due_tasks(BOTH, live, now), "oss", NO_OPTIONS) for live in lives))


class Beside(Upkeep):
    """A table of many small files, one run over it, and another one that starts during one of its statements."""

    def begin(self, plan: TablePlan, statement: str, other: TablePlan) -> TableRun:
        """The other run starts right before a statement of the first one, whose lease stays alive."""
        lease, self.reports = self.lease(), list[RunReport]()
        self.clock.on_sleep = lease.renew

        def start(event: str) -> None:
            if event.startswith(f"before {statement}") and not self.reports:
                self.reports.append(self.second().apply(plan_of(other)))

        self.tick = start
        first = self.run(plan, lease=lease)
        lease.release()
        self.clock.on_sleep = lambda: None
        return first

    def second(self) -> Run:
        made = Run(lake=self.lake, stores={self.table.live.location: self.store}, clock=self.clock, parallel=1)
        made.engine = FakeEngine(self.lake, Stamp("second", "d2"), now=lambda: milliseconds(self.clock.utc()))
        return made

    def again(self, plan: TablePlan) -> str:
        return str(self.second().apply(plan_of(plan)).tables[0].outcome)

    @property
    def refused(self) -> list[str]:
        return [str(table.outcome) for report in self.reports for table in report.tables]


CHANGES = [{"isolation": "Serializable"}, {"deletion_vectors": "purged"}]
UPKEEPS = ["upkeep.optimize", "upkeep.vacuum"]


@pytest.fixture
def world() -> Beside:
    made = Beside()
    made.lake.add(upkeep=made.facts, **WITH_VECTORS)
    return made


@pytest.mark.parametrize("statement", UPKEEPS)
def test_a_second_upkeep_at_the_same_moment_does_nothing(world: Beside, statement: str) -> None:
    plan = world.due()
    assert world.begin(plan, statement, plan).outcome == "applied"
    assert world.refused == ["no window"]
    assert operations(world.table) == ["OPTIMIZE", "VACUUM START", "VACUUM END"]
    assert world.again(plan) == "already"


@pytest.mark.parametrize("policy", CHANGES)
@pytest.mark.parametrize("statement", UPKEEPS)
def test_an_apply_or_a_rewrite_during_upkeep_finds_its_lease(
    world: Beside, statement: str, policy: dict[str, Any]
) -> None:
    change = world.plan(**policy)
    assert world.begin(world.due(), statement, change).outcome == "applied"
    assert world.refused == ["no window"]
    assert world.again(change) == "applied"


@pytest.mark.parametrize("policy", CHANGES)
def test_upkeep_during_an_apply_or_a_rewrite_finds_its_lease(world: Beside, policy: dict[str, Any]) -> None:
    plan = world.due()
    assert world.begin(world.plan(**policy), "", plan).outcome == "applied"
    assert world.refused == ["no window"]
    assert "OPTIMIZE" not in operations(world.table)
    assert world.again(plan) == "applied"


@pytest.mark.parametrize("verb", ["OPTIMIZE", "VACUUM"])
def test_a_table_that_is_dropped_in_between_costs_the_others_nothing(verb: str) -> None:
    lake = Run(parallel=1).tables("ab", upkeep=SMALL)

    def drop(table: FakeTable, sql: str) -> None:
        if sql.startswith(verb) and table.name.text == "delta.`/lake/a`":
            table.broken = "its log is gone"

    lake.engine.after = drop
    report = lake.apply(due(lake))
    assert only(report, "b").outcome == "applied"
    assert only(report, "a").outcome != "applied"
    assert "its log is gone" in only(report, "a").message
    assert lake.released()


def test_a_table_that_was_dropped_before_is_not_found() -> None:
    lake = Run(parallel=1).tables("a", upkeep=SMALL)
    plan = due(lake)
    lake.lake.tables["/lake/a"].broken = "there is no table"
    report = lake.apply(plan)
    assert only(report, "a").outcome == "failed"
    assert "there is no table" in only(report, "a").message
    assert not lake.engine.sent


def test_a_retention_that_shrinks_while_optimize_runs_is_seen_by_vacuum() -> None:
    world = Upkeep()
    plan = world.due(BOTH, keeps="interval 30 days")
    world.table.set_property("delta.deletedFileRetentionDuration", "interval 30 days")

    def shrink(table: FakeTable, sql: str) -> None:
        if sql.startswith("OPTIMIZE"):
            table.set_property("delta.deletedFileRetentionDuration", "interval 1 day")

    world.after = shrink
    run = world.run(plan)
    assert (run.outcome, [sql.split()[0] for sql in world.sent]) == ("refused", ["OPTIMIZE"])
    assert "VACUUM would keep files for interval 1 day" in run.message
    assert world.gate() == "open"


def steps() -> list[int]:
    """Every event of a whole run."""
    world, seen = Upkeep(), list[str]()
    world.batches, world.tick = 3, seen.append
    world.upkeep()
    return list(range(len(seen)))


@pytest.mark.parametrize("number", steps())
def test_a_run_killed_at_each_of_its_steps_is_continued(number: int) -> None:
    world, left = Upkeep(), [number]
    world.batches = 3

    def kill(_event: str) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise Kill

    world.tick = kill
    with pytest.raises(Kill):
        world.upkeep()
    world.tick = lambda _event: None
    world.store = type(world.store)()  # its lease has expired
    run = world.run(world.due(), "ben")
    assert run.outcome in {"applied", "already"}, run
    facts = world.table.live.upkeep
    assert facts is not None
    assert (facts.small_files in {0, 1}, facts.vacuumed_at > 0) == (True, True)
    merged = [commit.metric("numRemovedFiles") for commit in world.table.history if commit.operation == "OPTIMIZE"]
    assert sum(merged) == 100, "no file is merged twice"
    assert operations(world.table).count("VACUUM END") == 1
    assert world.gate() == "open"


HOSTILE = ["9" * 5000, "-5", "٣", "1e9", "", "NaN", "0x10", " 7"]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: repr(text[:8]))
def test_metrics_of_a_strange_client_count_as_zero(text: str) -> None:
    world = Upkeep()

    def forge(table: FakeTable, _sql: str) -> None:
        names = ("numRemovedFiles", "numRemovedBytes", "numAddedFiles", "numDeletedFiles", "sizeOfDataToDelete")
        table.history[-1] = replace(table.history[-1], metrics=dict.fromkeys(names, text))

    world.after = forge
    run = world.upkeep()
    assert run.outcome == "applied"
    assert all(len(note) < 300 for note in run.notes)
