"""One apply after another over a fake lake with guarded writers, and a watch over what the README promises.

Nothing here knows how the product keeps a promise. The watch looks at every commit as it lands, at every report, and at
the end of the story.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import count
from typing import Any, Self

from chaos.features import Feature
from tablectl.applying.events import RunEvent
from tablectl.attributes.policy import Policy
from tablectl.delta.databricks_runtimes import parse_runtime
from tablectl.leases.acquire import Blocked, Sighting, acquire_all
from tablectl.leases.clock import StoppedError, milliseconds
from tablectl.leases.guards import GuardMode, GuardRecord
from tablectl.leases.lease import RENEW_EVERY, Lease
from tablectl.leases.lease_records import Gate, RunningStatement, tail
from tablectl.model.calendar import TableWindow
from tablectl.model.errors import ExitCode, WindowError
from tablectl.model.plan import Plan, TablePlan
from tablectl.model.run_report import RunOutcome, RunReport
from tablectl.model.stamp import Stamp, read_stamp
from tablectl.model.table_options import TableOptions
from tablectl.model.upkeep import UpkeepPolicy
from tablectl.planning.plan_table import plan_table
from tablectl.planning.plan_upkeep import UpkeepTable, due_tasks, upkeep_table
from tablectl.writers.gate_entry import GateEntry, StoredGuard
from tests.applying.fake_lake import FakeEngine, FakeTable
from tests.applying.lake_run import Run, plan_of
from tests.leases.lease_fakes import FakeClock, claim, try_acquire

AFTER = ("./resume.sh",)
MOST_RUNS = 8
LONGEST_STORY = 48 * 3600.0
"""Seconds after which a story counts as endless: an apply that waits for itself, for example."""
_STEP = 2.0
"""The clock moves by so much at a time, so that leases are renewed and writers go on meanwhile."""
_SHORT = 600.0
_WRITES_FOR, _PAUSES_FOR = 4.0, 3.0
_GUARD_TTL = 60.0
WRITER = "guarded-writer"


class EndlessError(Exception):
    """The story does not end."""


class SceneClock(FakeClock):
    """Moves in small steps, stops when the run is asked to, and raises an error where a story has no end."""

    def __init__(self, scene: Scene) -> None:
        super().__init__()
        self._scene = scene
        self.ends = self.now + LONGEST_STORY

    def sleep(self, seconds: float) -> None:
        until = self.now + seconds
        while True:
            if self._scene.run.stop.is_set():
                raise StoppedError("stopped while waiting", "run it again")
            step = min(_STEP if self._scene.leases or seconds <= _SHORT else _SHORT, max(until - self.now, 0.0))
            self.now += step
            if self.now > self.ends:
                raise EndlessError(f"still waiting after {LONGEST_STORY:g} s")
            self._scene.tick(patience=1.0)
            if self.now >= until:
                return


class GuardedWriter:
    """A job that writes one table again and again, each time under a guard, by the product's own code for the gate.

    Its thread runs only inside of ``go_on``, up to its next wait: the scene decides every interleaving.
    """

    def __init__(self, scene: Scene, table: FakeTable, number: int) -> None:
        self.table, self.inside, self.done = table, False, 0
        self.began = -1
        """The version that its current write began from."""
        self.waits_since: float | None = None
        self.error: BaseException | None = None
        self._scene, self._number = scene, number
        self._clock: FakeClock = scene.run.clock
        self._wakes, self._over = scene.run.clock.now + number % 100, False
        self._guard: StoredGuard | None = None
        self._renewed = 0.0
        self._go, self._stood = threading.Semaphore(0), threading.Semaphore(0)
        self._thread = threading.Thread(target=self._main, name=WRITER, daemon=True)
        self._thread.start()

    # As a clock of the gate's code

    def monotonic(self) -> float:
        return self._clock.monotonic()

    def utc(self) -> datetime:
        return self._clock.utc()

    def sleep(self, seconds: float) -> None:
        self._wakes = self._scene.run.clock.now + seconds
        self._stood.release()
        self._go.acquire()
        if self._over:
            raise SystemExit

    # As the scene moves it

    def go_on(self) -> None:
        now = self._scene.run.clock.now
        if self.inside and self._guard is not None and now - self._renewed >= _GUARD_TTL / 6:
            self._guard.renew()
            self._renewed = now
        if now >= self._wakes:
            self._go.release()
            self._stood.acquire()
            if self.error is not None:
                raise AssertionError(f"the writer of {self.table.name.text} ended") from self.error

    def close(self) -> None:
        self._over = True
        self._go.release()
        self._thread.join(10)

    def commit(self) -> None:
        """The commit of one write."""
        self.table.commit("WRITE", "etl")

    def _main(self) -> None:
        self._go.acquire()
        try:
            while not self._over:
                self._write()
                self.sleep(_PAUSES_FOR)
        except SystemExit:
            return
        except BaseException as error:  # noqa: BLE001  # the scene raises it
            self.error = error
        self._stood.release()

    def _write(self) -> None:
        store = self._scene.run.stores[self.table.live.location]
        record = GuardRecord(f"{self._number:04x}{next(self._scene.ids):08x}", 0, "etl", GuardMode.ANY, _GUARD_TTL)
        self._guard = StoredGuard(store, record)
        self.waits_since = self._scene.run.clock.now
        GateEntry(self._guard, self.table.name.text, None, self, lambda call: call()).enter()
        self.began, self._renewed = self.table.live.version, self._clock.now
        self.waits_since, self.inside = None, True
        self.sleep(_WRITES_FOR)
        self.commit()
        self.inside = False
        self._guard.withdraw()
        self.done += 1


class StepRenewer:
    """Renews a lease as the product's thread does, on the clock of the scene."""

    def __init__(self, scene: Scene, lease: Lease, may_renew: Callable[[Lease], bool]) -> None:
        self._scene, self.lease, self._may_renew = scene, lease, may_renew
        self._next = scene.run.clock.now + lease.record.ttl * RENEW_EVERY

    def __enter__(self) -> Self:
        self._scene.leases.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        self._scene.leases.remove(self)

    def go_on(self) -> None:
        if self._scene.run.clock.now >= self._next:
            self._next += self.lease.record.ttl * RENEW_EVERY
            try:
                if self._may_renew(self.lease):
                    self.lease.renew()
            except WindowError:
                pass


@dataclass
class Scene:
    """What the features arrange, the story that is played, and what was seen."""

    features: frozenset[Feature]
    moment: str = "sends"
    """When what happens once happens: the run ``waits``, it ``sends`` its first statement, or that has ``landed``."""
    run: Run = field(default_factory=Run)
    policy: dict[str, Any] = field(
        default_factory=lambda: {"isolation": "Serializable", "properties": {"owner.team": "web"}}
    )
    options: TableOptions = field(default_factory=TableOptions)
    dialect: str = "oss"
    runtime: str = ""
    hooks: bool = False
    dead_owes: bool = False
    dead_runs_statement: bool = False
    edits: list[Callable[[Plan], Plan]] = field(default_factory=list)
    """Changes of the plan before it is applied."""
    at_moment: list[Callable[[], object]] = field(default_factory=list)
    """What happens once, when the moment has come in the first run."""
    around_send: list[Callable[[FakeEngine, FakeTable], None]] = field(default_factory=list)
    each_engine: list[Callable[[FakeEngine], object]] = field(default_factory=list)
    """How the engines differ from others."""
    lost: list[Callable[[FakeEngine, FakeTable, str], None]] = field(default_factory=list)
    """What becomes of a statement that is sent, instead of its effect."""
    leases: list[StepRenewer] = field(default_factory=list)
    ids: Iterator[int] = field(default_factory=count)
    broken: list[str] = field(default_factory=list)
    reports: list[RunReport] = field(default_factory=list)
    upkeep: UpkeepPolicy | None = None
    """What is kept up before the apply; ``None`` for nothing."""
    paused: dict[str, bool] = field(default_factory=dict)
    """Whether the hooks have paused the jobs of a table, by its location."""

    def __post_init__(self) -> None:
        self.run.clock = SceneClock(self)
        self.run.parallel = 1
        self._lock = threading.Lock()
        self._seen: dict[str, int] = {}
        self._writers: list[GuardedWriter] = []
        self._calls: list[tuple[float, Callable[[], object]]] = []
        self._come = False
        self.run.tables("ab")
        for table in self.tables:
            table.at = lambda _version: round(self.run.clock.utc().timestamp() * 1000)
            self.run.stores[table.live.location].before_create = self._before_create
        self.store_fails_until = 0.0

    @property
    def tables(self) -> Sequence[FakeTable]:
        return tuple(self.run.lake.tables.values())

    def later(self, seconds: float, act: Callable[[], object]) -> None:
        """Something happens after so many seconds."""
        self._calls.append((self.run.clock.now + seconds, act))

    # The story

    def play(self) -> None:
        """Plan, begin with what a dead run left, run the same command until it has ended well, and look at the end."""
        plan = self.plan()
        self._begin(plan)
        self._writers = [GuardedWriter(self, table, number) for number, table in enumerate(self.tables, start=1)]
        try:
            self.run.clock.sleep(5)
            if self.upkeep is not None:
                self._keep_up(self.upkeep)
                plan = self.plan()
            for _ in range(MOST_RUNS):
                if self._apply(plan):
                    break
                if self.is_stale():
                    plan = self.plan()
                self.run.stop.clear()
                self.run.clock.sleep(330 if Feature.CALENDAR in self.features else 90)
            self._end(plan)
        finally:
            for writer in self._writers:
                writer.close()

    def _keep_up(self, policy: UpkeepPolicy) -> None:
        """Run what upkeep is due until nothing is. Tables never share its window."""
        together, self.run.together = self.run.together, ()
        for engine in self.engines():
            engine.now, engine.unused = self._now, 5
        for _ in range(MOST_RUNS):
            plan = plan_of(*(each for table in self.tables if (each := self._due(policy, table)).applies))
            if not plan.tables:
                break
            for edit in self.edits:
                plan = edit(plan)
            self.run.notify = self._hear
            self.keep_up_once(plan)
            self.tick()
            self.run.stop.clear()
            self.run.clock.sleep(90)
        else:
            seen = [[f"{each.outcome}: {each.message}" for each in report.tables] for report in self.reports]
            self.broken.append(f"upkeep is still due after {len(seen)} runs: {seen}")
        self.run.together = together

    def keep_up_once(self, plan: Plan) -> None:
        """One run of upkeep."""
        self.reports.append(self.run.apply(plan))

    def is_stale(self) -> bool:
        """Whether the last run says that the plan no longer fits."""
        return any(each.outcome is RunOutcome.STALE for each in self.reports[-1].tables)

    def _due(self, policy: UpkeepPolicy, table: FakeTable) -> UpkeepTable:
        tasks = due_tasks(policy, table.live, self._now())
        made = upkeep_table(policy, table.live, tasks, self.dialect, self.options)
        return replace(made, window=TableWindow(drain=60))

    def _now(self) -> int:
        return milliseconds(self.run.clock.utc())

    def plan(self) -> Plan:
        plan = plan_of(*(each for table in self.tables if (each := self._planned(table)) is not None))
        for edit in self.edits:
            plan = edit(plan)
        return plan

    def _planned(self, table: FakeTable) -> TablePlan | None:
        runtime = parse_runtime(self.runtime) if self.runtime else None
        return plan_table(Policy(self.policy), table.live, self.dialect, self.options, runtime=runtime)

    def _begin(self, plan: Plan) -> None:
        if self.hooks:
            self.run.config = replace(self.run.config, before=(("./pause.sh",),), after=(AFTER,))
            self.run.run_hook = self._hook
        for engine in self.engines():
            self._arrange(engine)
        first = next((each for each in plan.tables if each.applies), None)
        if first is not None and (self.dead_owes or self.dead_runs_statement):
            self._die(first)

    def engines(self) -> Sequence[FakeEngine]:
        """The engines of the runs."""
        return (self.run.engine,)

    def _arrange(self, engine: FakeEngine) -> None:
        engine.dialect = self.dialect
        engine.bound, engine.now = 400, self._now
        engine.address = engine.address or "here"
        for act in self.each_engine:
            act(engine)

        def before(table: FakeTable, sql: str) -> None:
            self.step(f"before {sql.split(maxsplit=1)[0]}", table)
            for act in self.around_send:
                act(engine, table)
            self.tick("sends")
            for lose in self.lost:
                lose(engine, table, sql)
            self.run.clock.now += 1.0
            self.tick()

        def landed(table: FakeTable, sql: str) -> None:
            self.tick("landed")
            self.step(f"after {sql.split(maxsplit=1)[0]}", table)

        def midway(table: FakeTable) -> None:
            self.tick()
            self.step("between two commits", table)

        engine.before = before
        engine.inside = engine.after = landed
        engine.midway = midway

    def _die(self, table: TablePlan) -> None:
        """A run of the same plan was killed on the first table, with its gate closed."""
        lease = try_acquire(self.run.stores[table.location], claim("ben"), self.run.clock)
        assert isinstance(lease, Lease)
        if self.dead_owes:
            lease.owe((AFTER[0],))
            self.paused[table.location] = True
        lease.gate(Gate.CLOSED)
        if self.dead_runs_statement:
            tag = "tablectl-run-of-ben-1"
            lease.announce(RunningStatement(self.engines()[0].address or "this process", tag, 400.0))
            self.orphan(self.engines()[0], tag, next(each.sql for each in table.statements if not each.repartition))

    def step(self, name: str, table: FakeTable | None = None) -> None:
        """A step of a run, by its name: each event of the run, each statement before and after its effect, each
        request for a record. Whoever plays a story with strangers hears of it here.
        """

    def _hear(self, event: RunEvent) -> None:
        self.step(event.step, next((each for each in self.tables if each.name.text == event.table), None))
        self.tick("waits" if event.step in _WAITS else "")

    def orphan(self, engine: FakeEngine, tag: str, sql: str, run: str = "r0") -> None:
        """A statement runs on without its client, and commits later than its run counts as dead."""
        engine.running[tag] = True
        self.lands_later(sql, run, lambda: engine.running.update({tag: False}))

    def lands_later(self, sql: str, run: str, then: Callable[[], object] = lambda: None) -> None:
        """A statement commits after two minutes."""

        def commits() -> None:
            then()
            FakeEngine(self.run.lake, Stamp(run, "d1"), self.dialect).execute(sql)

        self.later(120, commits)

    def _apply(self, plan: Plan) -> bool:
        """One run. Returns whether nothing is left to do."""
        self.run.stop.clear()
        self.run.notify = self._hear
        report = self.run.apply(plan)
        self.reports.append(report)
        self.tick()
        self._check_report(report)
        if any(each.owed or each.shut for each in report.tables):
            return False  # as its exit code says: run it again
        return all(each.outcome in _DONE for each in report.tables)

    def _hook(
        self,
        command: Sequence[str],  # the signature of ``RunHook``
        environ: Mapping[str, str],
        said: Callable[[str], None],
        stopped: Callable[[], bool],
    ) -> str:
        locations = [environ["TABLECTL_LOCATION"]]
        if Feature.TOGETHER in self.features:  # the hooks of one table run for all that share its window
            locations = [table.live.location for table in self.tables]
        for location in locations:
            self.paused[location] = environ["TABLECTL_HOOK"] == "before"
        self.tick()
        return ""

    # What goes on meanwhile

    def tick(self, moment: str = "", patience: float = 0.0) -> None:
        """Everything else that happens at this step: first the watch, then what is due, then the writers.

        One thread at a time. Another one may hold a lock of the product, so it waits at most ``patience`` seconds; the
        clock gives each step a turn, because guards are renewed there.
        """
        self._look()
        if not self._lock.acquire(timeout=patience):
            return
        try:
            if moment == self.moment and not self._come:
                self._come = True
                for act in self.at_moment:
                    act()
            due = [each for each in self._calls if each[0] <= self.run.clock.now]
            self._calls = [each for each in self._calls if each not in due]
            for _, act in due:
                act()
                self._look()
            for renewer in tuple(self.leases):
                renewer.go_on()
            for writer in self._writers:
                writer.go_on()
            self._look()
        finally:
            self._lock.release()

    def _before_create(self) -> None:
        """A step between the apply's writes of records; the store may fail for it, not for the writers."""
        self.tick()
        if self.run.clock.now < self.store_fails_until and threading.current_thread().name != WRITER:
            raise WindowError("/lake/_tablectl: access denied")

    # What is promised

    def _look(self) -> None:
        for table in self.tables:
            for commit in table.history[self._seen.get(table.live.location, 1) :]:
                if read_stamp(commit.user_metadata) is not None:
                    self._check_commit(table, commit.version, commit.operation)
            self._seen[table.live.location] = len(table.history)

    def _check_commit(self, table: FakeTable, version: int, operation: str) -> None:
        if operation.startswith("VACUUM"):
            return  # an empty commit, which conflicts with nothing
        what = f"{table.live.location} version {version} ({operation})"
        if any(each.inside and each.table is table and each.began < version for each in self._writers):
            self.broken.append(f"{what} landed in the middle of a guarded write, which fails")
        if self.hooks and not self.paused.get(table.live.location):
            self.broken.append(f"{what} landed while the jobs were not paused")
        before, after = (self._state(table, each) for each in (version - 1, version))
        if before == after:
            self.broken.append(f"{what} changes nothing: a statement was applied twice")

    @staticmethod
    def _state(table: FakeTable, version: int) -> tuple[object, ...]:
        live = next(each for each in table.states if each.version == version)
        return (
            dict(live.properties),
            live.partition_columns,
            live.clustering,
            live.protocol,
            live.vectors,
            live.upkeep,
        )

    def _check_report(self, report: RunReport) -> None:
        if report.failures and report.exit_code is ExitCode.DONE:
            self.broken.append("exit code 0, and something was not looked at")
        for each in report.tables:
            table = next(table for table in self.tables if table.name.text == each.name)
            if each.outcome in _DONE - {RunOutcome.REFUSED} and self._planned(table) is not None:
                self.broken.append(f"{each.name} is reported as {each.outcome}, and a plan still has changes")
            if report.exit_code is ExitCode.DONE and self.shut(table):
                self.broken.append(f"exit code 0, and writers of {each.name} wait")

    def shut(self, table: FakeTable) -> bool:
        """Whether a writer that comes now would wait, by the rule that writers follow."""
        last = tail(self.run.stores[table.live.location])
        guard = StoredGuard(self.run.stores[table.live.location], GuardRecord("ffffffff", 0, "", GuardMode.ANY))
        entry = GateEntry(guard, "", None, self.run.clock, lambda call: call())
        return last is not None and entry._waits_at(last)  # the rule itself, not a copy of it

    def _runs_out(self, table: FakeTable) -> bool:
        """Whether a lease that was not released is free for the next apply after its time. Only a failing store may
        keep one so long: a release is tried for a few seconds.
        """
        if Feature.FAILING_STORE not in self.features:
            return False
        stores = {"": self.run.stores[table.live.location]}
        seen: Mapping[str, Sighting] = {}
        for _ in range(3):
            taken = acquire_all(stores, claim("next"), self.run.clock, seen)
            if not isinstance(taken, Blocked):
                return taken[""].release()
            seen = taken.holders
            self.run.clock.sleep(90)
        return False

    def _end(self, plan: Plan) -> None:
        refused = {each.name for each in plan.tables if each.refusals}
        for table in self.tables:
            name, last = table.name.text, tail(self.run.stores[table.live.location])
            if name not in refused and self._planned(table) is not None:
                seen = [[f"{each.outcome}: {each.message}" for each in report.tables] for report in self.reports]
                self.broken.append(f"{name} is not as declared after {len(seen)} runs: {seen}")
            if last is not None and (last.owed or (last.held and not self._runs_out(table))):
                self.broken.append(f"{name}: the last record is {last.kind}, and owes {last.owed}")
            if self.hooks and self.paused.get(table.live.location):
                self.broken.append(f"{name}: its jobs stay paused")
        self.run.stop.clear()
        done = {writer: writer.done for writer in self._writers}
        self.run.clock.sleep(30)
        for writer, before in done.items():
            if writer.done == before:
                self.broken.append(f"{writer.table.name.text}: after the last run its writers still wait")


_WAITS = frozenset({"held", "drain", "statement left", "interrupting", "quiet", "stream", "paced", "soak"})
_DONE = frozenset({RunOutcome.APPLIED, RunOutcome.ALREADY, RunOutcome.ALREADY, RunOutcome.REFUSED})
