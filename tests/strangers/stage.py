"""The scene of `tests/pairs`, with a stranger who acts once, at one step of a run.

A first play without a stranger lists the steps; each of them is a cell of its own. So a new event of an apply, or a
new feature of `chaos.features`, joins by itself.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from chaos.strangers import Stranger
from tablectl.applying.run import run_plan
from tablectl.model.plan import Plan
from tablectl.model.run_report import RunReport
from tests.applying.fake_lake import FakeEngine, FakeTable
from tests.applying.world import Kill
from tests.leases.lease_fakes import claim
from tests.pairs.scene import WRITER, GuardedWriter, Scene
from tests.strangers.actions import ACT, restore

MOST_OF_ONE_STEP = 2
"""A step that comes again and again, such as the renewal of a wait, is tried the first times alone."""

INSIDE = ("before ", "after ", "between ")
"""Steps inside of a statement. The fake lake carries out one statement at a time, so no second apply can run there."""


class Guest(GuardedWriter):
    """A guarded job that a stranger starts: a RESTORE once, then writes like any other."""

    operation = "MERGE"

    def commit(self) -> None:
        """The commit of one write."""
        if self.operation == "RESTORE" and not self.done:
            restore(self.table, max(self.table.live.version - 1, 0))
        else:
            self.table.commit("MERGE", "etl")


@dataclass
class Stage(Scene):
    """One story with a stranger: who acts, before which step, and what came of it."""

    stranger: Stranger | None = None
    at: tuple[str, int] = ("", 0)
    """The step before which the stranger acts: its name, and which time it comes."""
    steps: Counter[str] = field(default_factory=Counter)
    acted: bool = False
    dead: bool = False
    """Whether the process of the run is gone: it writes no record any more."""
    _inside: bool = False

    def step(self, name: str, table: FakeTable | None = None) -> None:
        """Count the step, and let the stranger act if it is theirs."""
        if self._inside:
            return
        self.steps[name] += 1
        if self.stranger is None or self.acted or (name, self.steps[name]) != self.at:
            return
        self.acted, self._inside = True, True
        try:
            ACT[self.stranger](self, table or self.tables[0])
        finally:
            self._inside = False

    def cells(self, stranger: Stranger) -> list[tuple[str, int]]:
        """The steps of a story without a stranger at which this one can act."""
        names = [each for each in self.steps if stranger is not Stranger.SECOND_APPLY or not each.startswith(INSIDE)]
        return [(each, time) for each in names for time in range(1, min(self.steps[each], MOST_OF_ONE_STEP) + 1)]

    # What strangers need

    def forget(self, table: FakeTable) -> None:
        """The table begins again at version 0."""
        self._seen[table.live.location] = 1

    def vacuum(self, table: FakeTable, keeps: float) -> None:
        """VACUUM by another client: unnamed files that are older than so many seconds are deleted."""
        files, oldest = table.copies, self._now() / 1000 - keeps
        for path, at in files.unnamed().items():
            if at < oldest:
                del files.written[path]

    def guest(self, table: FakeTable, operation: str) -> None:
        """A guarded job begins to write."""
        guest = Guest(self, table, 100 * len(self._writers))
        guest.operation = operation
        self._writers.append(guest)

    def apply_elsewhere(self) -> RunReport:
        """Another process applies the same plan."""
        context = self.run.context()
        engine = FakeEngine(
            self.run.lake, replace(context.stamp, run="r2"), self.dialect, address="elsewhere", now=self._now
        )
        for act in self.each_engine:
            act(engine)
        return run_plan(replace(context, engine=engine, stamp=engine.stamp, claim=claim("ben")), self.planned)

    # The story

    def plan(self) -> Plan:
        self.planned = super().plan()
        return self.planned

    def _apply(self, plan: Plan) -> bool:
        done = False
        with self._until_killed():
            done = super()._apply(plan)
        return done  # noqa: RET504  # a kill leaves it as it was

    def keep_up_once(self, plan: Plan) -> None:
        with self._until_killed():
            super().keep_up_once(plan)

    @contextmanager
    def _until_killed(self) -> Iterator[None]:
        try:
            yield
        except Kill:
            self.dead = False
            self.leases.clear()

    def _end(self, plan: Plan) -> None:
        super()._end(self.plan())  # what is refused now need not be as declared
        for table in self.tables:
            if table.copies.missing():
                self.broken.append(f"{table.name.text}: live files are gone: {table.copies.missing()}")

    def is_stale(self) -> bool:
        """Whether the last run says so. One that was killed says nothing: its command is given again as it was."""
        return bool(self.reports) and super().is_stale()

    def _before_create(self) -> None:
        if self.dead and threading.current_thread().name != WRITER:
            raise Kill
        super()._before_create()
