"""Each step of an upkeep, and what a stranger does there.

The steps are the events that an undisturbed run tells, so a new step joins by itself. After each cell: no gate stays
shut, no commit of the stranger is lost, no setting changed, the outcome is true, and VACUUM was sent only while no
known clone, guarded RESTORE or longer retention needed a file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from tablectl.leases.guards import HERE, GuardMode, read_guards
from tablectl.leases.lease import Lease
from tablectl.leases.lease_records import Gate, tail
from tablectl.model.run_report import RunOutcome, TableRun
from tablectl.planning.plan_upkeep import ShallowClones
from tests.applying.fake_lake import FakeTable
from tests.applying.test_run_upkeep import Upkeep, operations
from tests.applying.world import Kill
from tests.applying.writers import FakeGuard
from tests.leases.lease_fakes import claim, try_acquire

RETENTION = "delta.deletedFileRetentionDuration"


@dataclass
class Cell:
    """One upkeep in which a stranger acts once."""

    world: Upkeep = field(default_factory=Upkeep)
    clones: list[str] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    """The same, numbered by kind: ``execute 2``."""
    wrong: list[str] = field(default_factory=list)
    """Who needed a file when VACUUM was sent."""

    def run(self, step: str = "", act: Callable[[Cell], None] | None = None, run: str = "ann") -> TableRun:
        plan = self.world.due(keeps="interval 7 days", clones=lambda: ShallowClones(tuple(self.clones)))
        acted = list[str]()

        def tick(told: str) -> None:
            event = f"{told} {self.steps.count(told) + 1}"
            self.steps.append(told)
            self.labels.append(event)
            if event == step and not acted and act is not None:
                acted.append(event)
                act(self)

        self.world.tick, self.world.before = tick, self._sent
        return self.world.run(plan, run, self.world.lease(run))

    def _sent(self, table: FakeTable, sql: str) -> None:
        if not sql.startswith("VACUUM"):
            return
        guards = [each for each in read_guards(self.world.store) if each.mode is GuardMode.ANY and each.waits != HERE]
        self.wrong += [f"clone {each}" for each in self.clones] + [f"guard of {each.writer}" for each in guards]
        self.wrong += (
            ["a shorter retention"] if table.live.properties.get(RETENTION, "interval 7 days")[9] != "7" else []
        )
        self.wrong += ["another table"] if table.live.table_id != f"id of {table.live.location}" else []


def restores(cell: Cell) -> None:
    """A guarded RESTORE begins, and takes 30 seconds if it gets past the gate."""
    last = tail(cell.world.store)
    if last is not None and GuardMode.ANY.waits(last.shut):
        return  # it waits at the gate
    guard = FakeGuard(cell.world.store, "restore", GuardMode.ANY).lives(cell.world.clock)

    def ends() -> None:
        cell.world.table.commit("RESTORE", "eve")
        guard.end()

    cell.world.clock.later(30, ends)


def killed_writer(cell: Cell) -> None:
    FakeGuard(cell.world.store, "merge", GuardMode.REWRITE)


def kills(_cell: Cell) -> None:
    raise Kill


def second_upkeep(cell: Cell) -> None:
    """Another one comes to the lease, and finds it held."""
    taken = try_acquire(cell.world.store, claim("ben"), cell.world.clock)
    cell.wrong += ["two upkeeps at once"] if isinstance(taken, Lease) else []


STRANGERS: dict[str, Callable[[Cell], None]] = {
    "append": lambda cell: cell.world.table.commit("WRITE", "eve"),
    "DELETE": lambda cell: cell.world.table.commit("DELETE", "eve"),
    "RESTORE with a guard": restores,
    "RESTORE without a guard": lambda cell: cell.world.table.commit("RESTORE", "eve"),
    "REPLACE": lambda cell: cell.world.table.commit("CREATE OR REPLACE TABLE", "eve", table_id="another"),
    "shorter retention": lambda cell: cell.world.table.set_property(RETENTION, "interval 1 hour", "eve"),
    "another setting": lambda cell: cell.world.table.set_property("owner.team", "web", "eve"),
    "shallow clone": lambda cell: cell.clones.append("lake.dev.orders"),
    "killed writer": killed_writer,
    "a week": lambda cell: setattr(cell.world.clock, "wall", cell.world.clock.wall.replace(year=2027)),
    "second upkeep": second_upkeep,
    "kill": kills,
}


def steps() -> tuple[str, ...]:
    cell = Cell()
    assert cell.run().outcome == "applied"
    return tuple(cell.labels)


STEPS = steps()
AFTER_THE_LAST_LOOK = frozenset({"before upkeep.vacuum 1", "execute 2"})
"""Between the last look and the deletion, docs/upkeep.md names who could still lose what: a new clone of an old
version, and a RESTORE without a guard."""


def test_the_steps_are_those_that_the_table_is_about() -> None:
    assert {"gate appends-only 1", "gate no-schema 1", "dry run 1", "gate open 2", "verify 1"} <= set(STEPS)
    assert set(STEPS) >= AFTER_THE_LAST_LOOK


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("stranger", STRANGERS)
def test_whatever_a_stranger_does_at_a_step_nothing_is_lost(stranger: str, step: str) -> None:
    cell = Cell()
    try:
        outcome = str(cell.run(step, STRANGERS[stranger]).outcome)
    except Kill:
        cell.world.clock.now += 3600  # the next hour
        cell.world.tick = lambda _event: None
        outcome = str(cell.run(run="ben").outcome) if operations(cell.world.table)[-1:] != ["VACUUM END"] else "applied"
        assert outcome in {"applied", "already"}
    theirs = [each.operation for each in cell.world.table.history if each.user == "eve"]
    assert len(theirs) <= 1
    if step not in AFTER_THE_LAST_LOOK:
        assert cell.wrong == []
    last = tail(cell.world.store)
    assert last is not None
    assert last.shut is Gate.OPEN
    assert set(cell.world.table.live.properties) <= {RETENTION, "owner.team"}
    done = operations(cell.world.table)
    if outcome == RunOutcome.APPLIED:
        assert ("OPTIMIZE" in done, "VACUUM END" in done) == (True, True)
    else:
        assert outcome in {"already", "waiting", "refused", "stale", "no window", "unverified"}
