"""One table of a fake lake, its records, and one run after another over it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event
from typing import Any

from tablectl.applying.events import RunEvent as Told
from tablectl.applying.lease_wait import DeadStatements, LeaseWait
from tablectl.applying.run_context import RunContext, RunHook, TableJob, run_nothing
from tablectl.applying.run_table import run_table
from tablectl.applying.scheduler import Pace
from tablectl.applying.table_session import looked_again
from tablectl.applying.waits import End, wait_here
from tablectl.attributes.policy import Policy
from tablectl.delta.databricks_runtimes import parse_runtime
from tablectl.delta.protocol import READER_FEATURES
from tablectl.leases.clock import milliseconds
from tablectl.leases.lease import Lease
from tablectl.model.plan import TablePlan
from tablectl.model.run_report import TableRun
from tablectl.model.stamp import Stamp
from tablectl.model.table import Depth, LiveTable
from tablectl.model.table_options import NO_OPTIONS, TableOptions
from tablectl.planning.plan_table import plan_table
from tablectl.policies.config import WindowConfig
from tests.applying.fake_lake import FakeEngine, FakeLake, FakeTable, Hook
from tests.builders import VECTORS
from tests.leases.lease_fakes import FakeClock, MemoryRecords, acquire, claim

DIGEST = "d1"
WITH_VECTORS: dict[str, Any] = {
    "protocol": VECTORS,
    "properties": {"delta.enableDeletionVectors": "true"},
    "vectors": 5,
}


class Kill(BaseException):
    """The process is gone: nothing is released, nothing is reported."""


class _Inherited(DeadStatements):
    """What a run before left, under one lease."""

    def __init__(self, job: TableJob, lease: Lease) -> None:
        leases = LeaseWait(job)
        leases.of = lambda place: lease  # type: ignore[method-assign]
        super().__init__(job, leases)


@dataclass
class World:
    """One table, its lease records, and a run at a time."""

    lake: FakeLake = field(default_factory=FakeLake)
    clock: FakeClock = field(default_factory=FakeClock)
    store: MemoryRecords = field(default_factory=MemoryRecords)
    stop: Event = field(default_factory=Event)
    proceed: str = ""
    config: WindowConfig = field(default_factory=WindowConfig)
    run_hook: RunHook = run_nothing
    options: TableOptions = NO_OPTIONS
    dialect: str = "oss"
    runtime: str = ""
    engine: type[FakeEngine] = FakeEngine
    pace: Pace = field(default_factory=lambda: Pace(None))
    loses: int = 0
    """Rows that an overwrite does not write again."""
    empty_texts: int = 0
    violations: int = 0
    """Rows that violate a constraint."""
    asked: list[str] = field(default_factory=list)
    told: list[Told] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    sent: list[str] = field(default_factory=list)
    before: Hook = lambda _table, _sql: None
    after: Hook = lambda _table, _sql: None
    inside: Hook = lambda _table, _operation: None
    tick: Callable[[str], None] = lambda _event: None
    """Told of each step, of each statement before its effect, between its commits, and after it."""

    @property
    def table(self) -> FakeTable:
        (table,) = self.lake.tables.values()
        return table

    def plan(self, **policy: Any) -> TablePlan:
        runtime = parse_runtime(self.runtime) if self.runtime else None
        plan = plan_table(Policy(policy), self.live(), self.dialect, self.options, runtime=runtime)
        assert plan is not None
        assert not plan.refusals
        return plan

    def live(self) -> LiveTable:
        """The table as a plan with these options reads it."""
        truncates = READER_FEATURES | {"checkpointProtection"} if self.options.truncate_history else frozenset[str]()
        marks = self.options.optimize if self.options.optimize != "never" else None
        depth = Depth(counts=True, truncation=truncates, marks=marks)
        return self.lake.read(self.table.name, self.table.live.location, depth)

    def run(self, plan: TablePlan, run: str = "ann", lease: Lease | None = None) -> TableRun:
        lease = lease or self.lease(run)
        stamp = Stamp(run, DIGEST, self.proceed)
        engine = self.engine(self.lake, stamp, self.dialect, before=self._before, after=self._after)
        engine.sent, engine.asked = self.sent, self.asked
        engine.loses, engine.empty_texts = self.loses, self.empty_texts
        engine.violations = self.violations
        engine.midway = lambda _table: self._told("midway")
        engine.inside = self._inside
        engine.now = lambda: milliseconds(self.clock.utc())
        prove = lease.prove

        def proven(budget: float) -> None:
            self.events.append("prove")
            prove(budget)

        lease.prove = proven  # type: ignore[method-assign]
        window = RunContext(
            engine=engine,
            reader=self.lake,
            clock=self.clock,
            stamp=engine.stamp,
            stop=self.stop,
            notify=self._notify,
            claim=claim(run),
            records=lambda _location: self.store,
            config=self.config,
            run_hook=self.run_hook,
            pace=self.pace,
        )
        dead = _Inherited(TableJob(window, (plan,)), lease)
        end = wait_here(dead.check, self.clock, lambda later, waited: self._notify(later.event(plan.name, waited)))
        ended = end.run(plan.name) if isinstance(end, End) else run_table(window, plan, lease)
        return looked_again(window, plan, dead.note(ended))

    def lease(self, run: str = "ann") -> Lease:
        lease = acquire(self.store, claim(run), self.clock)
        assert isinstance(lease, Lease)
        return lease

    def _notify(self, event: Told) -> None:
        assert event.table == self.table.name.text
        self.told.append(event)
        self._told(event.step)

    def _before(self, table: FakeTable, sql: str) -> None:
        self._told("execute")
        self.before(table, sql)

    def _after(self, table: FakeTable, sql: str) -> None:
        self._told("landed")
        self.after(table, sql)

    def _inside(self, table: FakeTable, operation: str) -> None:
        self._told("inside")
        self.inside(table, operation)

    def _told(self, event: str) -> None:
        self.events.append(event)
        self.tick(event)


def settle(**more: Any) -> dict[str, Any]:
    """A policy of two statements: a SET and an UNSET."""
    return {"isolation": "Serializable", "properties": {"owner.team": "web", "debug": None}, **more}
