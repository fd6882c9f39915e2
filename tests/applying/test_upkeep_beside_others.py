"""Upkeep and what can happen to its table at the same moment: another run, an apply, a rewrite, a drop, a kill."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tablectl.applying.lease_wait import LeaseWait
from tablectl.applying.run_report import RunReport
from tablectl.leases.clock import milliseconds
from tablectl.model.plan import Plan
from tablectl.model.stamp import Stamp
from tablectl.model.table import Commit
from tablectl.model.upkeep import OptimizePolicy, UpkeepFacts, UpkeepPolicy, VacuumPolicy
from tablectl.model.table_options import NO_OPTIONS
from tablectl.planning.upkeep import due_tasks, upkeep_table
from tests.applying.fake_lake import FakeEngine, FakeTable
from tests.applying.lake_run import Run, only, outcomes, plan_of
from tests.applying.test_run_upkeep import BOTH, Upkeep, operations
from tests.applying.world import WITH_VECTORS, Kill

SMALL = UpkeepFacts(files=100, bytes=100_000, small_files=100, small_bytes=100_000, cut=True, commits=9)
OPTIMIZE, VACUUM = "OPTIMIZE", "VACUUM START, VACUUM END"


class Lake(Run):
    """A lake of tables of many small files, with runs of upkeep and applies over it."""

    def upkeep(self, policy: UpkeepPolicy = BOTH) -> Plan:
        now = milliseconds(self.clock.utc())
        lives = [table.live for table in self.lake.tables.values()]
        return plan_of(*(upkeep_table(policy, live, due_tasks(policy, live, now), "oss", NO_OPTIONS) for live in lives))

    def other(self, run: str = "r2") -> Lake:
        """Another run over the same lake at the same moment."""
        made = Lake(lake=self.lake, stores=self.stores, clock=self.clock, parallel=1)
        made.engine = FakeEngine(self.lake, Stamp(run, "d2"))
        return made

    def during(self, verb: str, plan: Plan) -> list[RunReport]:
        """Lets another run start while a statement of this one runs. Its report comes later."""
        reports = list[RunReport]()

        def start(_table: FakeTable, sql: str) -> None:
            if sql.startswith(verb) and not reports:
                reports.append(self.other().apply(plan))

        self.engine.before = start
        return reports

    def done(self, name: str = "a") -> list[str]:
        return [each.operation for each in self.lake.tables[f"/lake/{name}"].history[1:]]


@pytest.fixture
def lake() -> Lake:
    made = Lake(parallel=1)
    made.tables("a", upkeep=SMALL, **WITH_VECTORS)
    return made


@pytest.mark.parametrize("verb", ["OPTIMIZE", "VACUUM"])
def test_a_second_upkeep_at_the_same_moment_does_nothing(lake: Lake, verb: str) -> None:
    second = lake.during(verb, lake.upkeep())
    assert outcomes(lake.apply(lake.upkeep())) == {"a": "applied"}
    assert outcomes(second[0]) == {"a": "no window"}
    assert lake.done() == ["OPTIMIZE", "VACUUM START", "VACUUM END"]
    assert outcomes(lake.other("r3").apply(lake.upkeep())) == {}


@pytest.mark.parametrize("policy", [{"isolation": "Serializable"}, {"deletion_vectors": "purged"}])
@pytest.mark.parametrize("verb", ["OPTIMIZE", "VACUUM"])
def test_an_apply_or_a_rewrite_during_upkeep_waits_for_its_lease(lake: Lake, verb: str, policy: dict[str, Any]) -> None:
    plan = lake.plan(**policy)
    second = lake.during(verb, plan)
    assert outcomes(lake.apply(lake.upkeep())) == {"a": "applied"}
    assert outcomes(second[0]) == {"a": "no window"}
    assert outcomes(lake.other("r3").apply(plan)) == {"a": "applied"}


@pytest.mark.parametrize(
    ("policy", "verb"), [({"isolation": "Serializable"}, "ALTER"), ({"deletion_vectors": "purged"}, "REORG")]
)
def test_upkeep_during_an_apply_or_a_rewrite_waits_for_its_lease(lake: Lake, policy: dict[str, Any], verb: str) -> None:
    second = lake.during(verb, lake.upkeep())
    assert outcomes(lake.apply(lake.plan(**policy))) == {"a": "applied"}
    assert outcomes(second[0]) == {"a": "no window"}
    assert "OPTIMIZE" not in lake.done()
    assert outcomes(lake.other("r3").apply(lake.upkeep())) == {"a": "applied"}


@pytest.mark.parametrize("verb", ["OPTIMIZE", "VACUUM"])
def test_a_table_that_is_dropped_in_between_costs_the_others_nothing(lake: Lake, verb: str) -> None:
    lake.tables("b", upkeep=SMALL)

    def drop(table: FakeTable, sql: str) -> None:
        if sql.startswith(verb) and table.name.text == "delta.`/lake/a`":
            table.broken = "its log is gone"

    lake.engine.after = drop
    report = lake.apply(lake.upkeep())
    assert (only(report, "a").outcome, only(report, "b").outcome) != ("applied", "failed")
    assert only(report, "b").outcome == "applied"
    assert "its log is gone" in only(report, "a").message
    assert lake.released()


def test_a_table_that_was_dropped_before_is_not_found(lake: Lake) -> None:
    plan = lake.upkeep()
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
    world = Upkeep()
    world.batches = 3
    world.upkeep()
    return list(range(len(world.events)))


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
    assert operations(world.table).count("OPTIMIZE") == 3, "no file is merged twice"
    assert operations(world.table).count("VACUUM END") == 1
    assert world.gate() == "open"


HOSTILE = ["9" * 5000, "-5", "٣", "1e9", "", "NaN", "0x10", " 7"]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: repr(text[:8]))
def test_metrics_of_a_strange_client_are_no_numbers(text: str) -> None:
    world = Upkeep()

    def forge(table: FakeTable, _sql: str) -> None:
        names = ("numRemovedFiles", "numRemovedBytes", "numAddedFiles", "numDeletedFiles", "sizeOfDataToDelete")
        table.history[-1] = replace(table.history[-1], metrics=dict.fromkeys(names, text))

    world.after = forge
    run = world.upkeep()
    assert run.outcome == "applied"
    assert all(len(note) < 300 for note in run.notes)
