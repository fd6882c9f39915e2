"""A lake of several tables, their records, and one apply over it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from threading import Event
from typing import Any

from tablectl.applying.events import Notify, no_progress
from tablectl.applying.events import RunEvent as Told
from tablectl.applying.hooks import OwedHookTable
from tablectl.applying.run import run_plan
from tablectl.applying.run_context import RunContext, RunHook, run_nothing
from tablectl.applying.scheduler import Pace
from tablectl.attributes.policy import Policy
from tablectl.leases.lease import Lease
from tablectl.leases.lease_records import tail
from tablectl.model.plan import Plan, TableFailure, TablePlan
from tablectl.model.run_report import RunReport, TableRun
from tablectl.model.stamp import Stamp
from tablectl.planning.plan_table import plan_table
from tablectl.policies.config import WindowConfig
from tablectl.storage.records import RecordStore
from tests.applying.fake_lake import FakeEngine, FakeLake, FakeTable
from tests.leases.lease_fakes import FakeClock, MemoryRecords, claim, try_acquire


@dataclass
class Run:
    """A lake of several tables and one apply over it."""

    lake: FakeLake = field(default_factory=FakeLake)
    stores: dict[str, MemoryRecords] = field(default_factory=dict)
    clock: Any = field(default_factory=FakeClock)
    stop: Event = field(default_factory=Event)
    parallel: int = 4
    together: tuple[str, ...] = ()
    notify: Notify = no_progress
    steps: list[tuple[str, str]] = field(default_factory=list)
    engine: FakeEngine = field(init=False)
    failures: tuple[TableFailure, ...] = ()
    config: WindowConfig = field(default_factory=WindowConfig)
    """Without ``parallel`` and ``together``."""
    run_hook: RunHook = run_nothing
    exclusive_commits: bool = False
    wait: float = 0
    within: float | None = None
    table_groups: tuple[tuple[str, ...], ...] = ()
    proceed: str = ""
    override: str = ""
    told: list[Told] = field(default_factory=list)
    tags: dict[str, tuple[str, ...]] = field(default_factory=dict)
    max_bytes_per_hour: int | None = None

    def __post_init__(self) -> None:
        self.engine = FakeEngine(self.lake, Stamp("r1", "d1", self.proceed, self.override))

    def tables(self, names: str, **facts: Any) -> Run:
        for name in names:
            self.lake.add(f"delta.`/lake/{name}`", **facts)
            self.stores[f"/lake/{name}"] = MemoryRecords()
        return self

    def plan(self, **policy: Any) -> Plan:
        tables = [self._table(table, policy or {"isolation": "Serializable"}) for table in self.lake.tables.values()]
        return plan_of(*tables, failures=self.failures)

    def _table(self, table: FakeTable, policy: dict[str, Any]) -> TablePlan:
        planned = plan_table(Policy(policy), table.live, "oss")
        assert planned is not None
        return replace(planned, tags=self.tags.get(planned.name[-2], ()))

    def context(self) -> RunContext:
        return RunContext(
            engine=self.engine,
            reader=self.lake,
            clock=self.clock,
            stamp=self.engine.stamp,
            stop=self.stop,
            notify=self._told,
            claim=claim("ann"),
            records=self._records,
            config=replace(self.config, parallel=self.parallel, together=self.together),
            run_hook=self.run_hook,
            exclusive_commits=self.exclusive_commits,
            wait=self.wait,
            within=self.within,
            table_groups=self.table_groups,
            pace=Pace(self.max_bytes_per_hour),
        )

    def apply(self, plan: Plan | None = None, unchanged: tuple[OwedHookTable, ...] = ()) -> RunReport:
        return run_plan(self.context(), plan or self.plan(), unchanged)

    def _records(self, location: str) -> RecordStore:
        return self.stores[location]

    def _told(self, event: Told) -> None:
        self.told.append(event)
        self.steps.append((event.table[-2:-1], event.step))
        self.notify(event)

    def hold(self, name: str, who: str = "ben") -> Lease:
        """Someone else's lease, renewed whenever our clock moves."""
        lease = try_acquire(self.stores[f"/lake/{name}"], claim(who), self.clock)
        assert isinstance(lease, Lease)
        before = self.clock.on_sleep

        def renew() -> None:
            before()
            lease.renew()

        self.clock.on_sleep = renew
        return lease

    def kinds(self, name: str) -> list[str]:
        """The last record of a table's lease, and whether all was released."""
        last = tail(self.stores[f"/lake/{name}"])
        return [last.kind, last.owner.who] if last else []

    def gate(self, name: str) -> str:
        """What writers of a table read now."""
        last = tail(self.stores[f"/lake/{name}"])
        return str(last.gate) if last else "open"

    def released(self) -> bool:
        return all(not self.kinds(key[-1]) or self.kinds(key[-1])[0] == "release" for key in self.stores)


def plan_of(*tables: TablePlan, failures: tuple[TableFailure, ...] = ()) -> Plan:
    return Plan(format=1, tool="0", dialect="oss", policies="p", tables=tables, failures=failures)


def outcomes(report: RunReport) -> dict[str, str]:
    return {table.name[-2]: str(table.outcome) for table in report.tables}


def only(report: RunReport, name: str) -> TableRun:
    return next(table for table in report.tables if table.name[-2] == name)
