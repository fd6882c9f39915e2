"""Data that follows new clustering columns, on the fake lake: in the window, after a kill, and never forever."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tablectl.attributes.policy import Policy
from tablectl.leases.lease_records import Gate, tail
from tablectl.model.errors import EngineError
from tablectl.model.file_layout import ClusteringState, FileGroup
from tablectl.model.plan import Phase, TablePlan
from tablectl.model.run_report import RunOutcome
from tablectl.model.stamp import Stamp
from tablectl.model.table_options import Optimize, TableOptions
from tablectl.planning.diff import diff
from tests.applying.fake_lake import FakeEngine, FakeTable, at, fails
from tests.applying.world import DIGEST, Kill, World

LOOSE = FileGroup(files=3, bytes=3000)
BY_DAY = FileGroup(columns=("day",), files=9, bytes=9000)
MIXED = ClusteringState(parts=(LOOSE, BY_DAY))
POLICY: dict[str, Any] = {"clustering": ("id",)}
MODES: tuple[Optimize, ...] = ("incremental", "full")


def world(optimize: Optimize, **facts: Any) -> World:
    made = World(options=TableOptions(optimize=optimize, rewrite="allowed"))
    made.lake.add(**{"clustering": (("day",),), "marks": MIXED, **facts})
    return made


def operations(made: World) -> list[str]:
    return [commit.operation for commit in made.table.stamped]


def left(made: World) -> list[str]:
    return [change.id for change in diff(Policy(POLICY), made.live())]


def write(table: FakeTable, files: int = 1) -> None:
    """New data, which no one clusters on its way in."""
    marks = table.live.marks or ClusteringState()
    unclustered = marks.unclustered()
    more = FileGroup(files=unclustered.files + files, bytes=unclustered.bytes + 1000 * files)
    parts = (*(part for part in marks.parts if part.columns is not None), more)
    table.commit("WRITE", "stream", marks=replace(marks, parts=parts))


@pytest.mark.parametrize(("optimize", "kept"), [("incremental", ("day",)), ("full", None)])
def test_data_follows_in_the_rewrite_phase(optimize: Optimize, kept: tuple[str, ...] | None) -> None:
    made = world(optimize)
    plan = made.plan(**POLICY)
    assert [(each.verb, each.phase) for each in plan.statements] == [
        ("CLUSTER BY", Phase.FREE),
        ("OPTIMIZE", Phase.REWRITE),
    ]
    run = made.run(plan)
    assert (run.outcome, run.changed) == (RunOutcome.APPLIED, ("clustering", "clustering.data"))
    assert operations(made) == ["CLUSTER BY", "OPTIMIZE"]
    marks = made.live().marks
    assert marks is not None
    assert kept in {part.columns for part in marks.parts} or kept is None
    assert left(made) == []


def test_no_one_who_does_not_ask_gets_an_optimize() -> None:
    made = world("never")
    assert made.run(made.plan(**POLICY)).outcome is RunOutcome.APPLIED
    assert operations(made) == ["CLUSTER BY"]


@pytest.mark.parametrize("optimize", MODES)
def test_new_data_asks_for_none(optimize: Optimize) -> None:
    made = world(optimize)
    made.run(made.plan(**POLICY))
    write(made.table, 50)
    assert left(made) == []


@pytest.mark.parametrize("optimize", MODES)
def test_a_new_plan_goes_on_where_a_run_stopped_between_the_two(optimize: Optimize) -> None:
    made = world(optimize)
    made.before = fails(2)
    assert made.run(made.plan(**POLICY)).outcome is RunOutcome.FAILED
    made.before = lambda _table, _sql: None
    write(made.table)
    assert left(made) == ["clustering.data"]
    run = made.run(made.plan(**POLICY))
    assert (run.outcome, run.changed) == (RunOutcome.APPLIED, ("clustering.data",))
    assert left(made) == []


@pytest.mark.parametrize("optimize", MODES)
def test_there_and_back_again_optimizes_what_was_clustered_by_the_others(optimize: Optimize) -> None:
    made = world(optimize)
    made.run(made.plan(**POLICY))
    made.run(made.plan(clustering=("day",)))
    assert diff(Policy({"clustering": ("day",)}), made.live()) == ()
    made.run(made.plan(**POLICY))
    assert left(made) == []


def test_an_empty_table_has_nothing_to_optimize() -> None:
    made = world("full", marks=ClusteringState())
    assert [each.verb for each in made.plan(**POLICY).statements] == ["CLUSTER BY"]


def test_columns_that_someone_sets_in_between_are_not_optimized_by() -> None:
    made = world("full")
    made.run(made.plan(**POLICY))
    made.table.commit("CLUSTER BY", clustering=(("id",),), marks=MIXED)
    plan = made.plan(**POLICY)
    made.table.commit("CLUSTER BY", clustering=(("place", "city"),), marks=MIXED)
    sent = len(made.sent)
    run = made.run(plan)
    assert (run.outcome, len(made.sent)) == (RunOutcome.REFUSED, sent)
    assert run.message == "clustering.data: the table is clustered by other columns now: place.city"


def test_appends_go_on_while_data_is_clustered() -> None:
    made = world("incremental")
    made.before = at(2, write)
    assert made.run(made.plan(**POLICY)).outcome is RunOutcome.APPLIED


def _ticks(optimize: Optimize) -> int:
    made = world(optimize)
    ticks: list[str] = []
    made.tick = ticks.append
    made.run(made.plan(**POLICY))
    return len(ticks)


@pytest.mark.parametrize("again", ["the same plan", "a new plan"])
@pytest.mark.parametrize(("optimize", "number"), [(mode, number) for mode in MODES for number in range(_ticks(mode))])
def test_killed_anywhere_it_goes_on_from_there(optimize: Optimize, number: int, again: str) -> None:
    made = world(optimize)
    plan = made.plan(**POLICY)
    count = number

    def kill(_event: str) -> None:
        nonlocal count
        count -= 1
        if count == -1:
            raise Kill

    made.tick = kill
    with pytest.raises(Kill):
        made.run(plan)
    made.tick = lambda _event: None
    rest: TablePlan | None = plan if again == "the same plan" or left(made) == [] else made.plan(**POLICY)
    assert rest is not None
    assert made.run(rest).outcome in {RunOutcome.APPLIED, RunOutcome.ALREADY}
    assert operations(made) == ["CLUSTER BY", "OPTIMIZE"]
    assert left(made) == []


def test_one_commit_of_an_optimize_does_not_end_the_wait_for_its_end() -> None:
    """It may make more, so the engine is asked until it says that nothing runs. Then the gate opens."""
    made, lost_at = world("incremental"), list[float]()

    class Ends(FakeEngine):
        def interrupt(self, tag: str, address: str = "") -> bool | None:
            return made.clock.now < lost_at[0] + 3

    def lose(table: FakeTable, sql: str) -> None:
        if sql.startswith("OPTIMIZE"):
            lost_at.append(made.clock.now)
            table.commit("OPTIMIZE", "ann", Stamp("ann", DIGEST).text())
            raise EngineError("the connection was reset", unanswered=True)

    made.engine, made.before = Ends, lose
    run = made.run(made.plan(**POLICY))
    assert (run.outcome, made.clock.now - lost_at[0]) == (RunOutcome.FAILED, 3)
    last = tail(made.store)
    assert last is not None
    assert (last.running, last.shut) == (None, Gate.OPEN)
