"""How each feature is arranged on the fake lake. Every one of `chaos.features` has its function here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from types import MappingProxyType

from chaos.features import Feature
from tablectl.delta.names import TableName
from tablectl.leases.clock import milliseconds
from tablectl.leases.guards import GuardRecord
from tablectl.model.calendar import Rule
from tablectl.model.commit import Commit
from tablectl.model.errors import EngineError, WindowError
from tablectl.model.plan import Plan, TableFailure, TablePlan
from tablectl.model.stream_progress import StreamPosition
from tablectl.model.table import CatalogFacts
from tablectl.model.upkeep import OptimizePolicy, UpkeepFacts, UpkeepPolicy, VacuumPolicy
from tablectl.writers.gate_entry import GateEntry, StoredGuard
from tests.applying.fake_lake import SPARK, FakeEngine, FakeTable
from tests.pairs.scene import Scene

HOUR = 3600.0


def _guarded_process(scene: Scene) -> None:
    """Each statement is sent through a guard of the same process, as in a job under ``tablectl-guard run``."""

    def guarded(_engine: FakeEngine, table: FakeTable) -> None:
        began = scene.run.clock.now
        guard = StoredGuard(scene.run.stores[table.live.location], GuardRecord("eeeeeeee", 0, "this job"))
        try:
            GateEntry(guard, table.name.text, None, scene.run.clock, lambda call: call()).enter()
        except WindowError:
            guard.withdraw()
        if scene.run.clock.now - began > 1:
            scene.broken.append(f"{table.name.text}: a guard waited for the gate of its own process")

    scene.around_send.append(guarded)


def _owed_hooks(scene: Scene) -> None:
    scene.hooks = scene.dead_owes = True


def _orphan(scene: Scene) -> None:
    scene.dead_runs_statement = True


def _signal(scene: Scene) -> None:
    scene.at_moment.append(scene.run.stop.set)


def _failing_store(scene: Scene) -> None:
    def fail() -> None:
        scene.store_fails_until = scene.run.clock.now + 20

    scene.at_moment.append(fail)


def _together(scene: Scene) -> None:
    scene.run.together = ("delta.`/lake/*`",)


def _canary(scene: Scene) -> None:
    scene.run.config = replace(scene.run.config, canary=1, soak=2)
    scene.run.table_groups = (tuple(table.name.text for table in scene.tables),)


def _quiet(scene: Scene) -> None:
    """Each table has a MERGE of half an hour at each full hour but for three hours from noon on."""
    scene.run.within = 12 * HOUR
    now = scene.run.clock.utc()
    first = now.replace(minute=0, second=0) - timedelta(days=20)
    took = MappingProxyType({"executionTimeMs": str(30 * 60_000)})
    for table in scene.tables:
        for hour in range(20 * 24):
            begin = first + timedelta(hours=hour)
            if begin.hour not in {12, 13, 14} and begin + timedelta(minutes=30) <= now:
                version = table.live.version + 1
                at = round((begin + timedelta(minutes=30)).timestamp() * 1000)
                table.states.append(replace(table.live, version=version))
                made = Commit(version, at, "MERGE", "etl", SPARK, changes_data=True)
                table.history.append(replace(made, metrics=took))
                table.rows.append(table.rows[-1])


def _calendar(scene: Scene) -> None:
    """Five minutes in ten. What began behind the gate is completed."""
    scene.run.config = replace(scene.run.config, allow=(Rule(cron="*/10 * * * *", duration=timedelta(minutes=5)),))
    calendar = scene.run.config.calendar

    def sent(_engine: FakeEngine, table: FakeTable) -> None:
        if not calendar.permits(scene.run.clock.utc()) and not scene.shut(table):
            scene.broken.append(f"{table.name.text}: a statement is sent outside of the calendar")

    scene.around_send.append(sent)


def _streams(scene: Scene) -> None:
    scene.run.lake.positions["fraud"] = _position(-1)
    scene.later(60, lambda: scene.run.lake.positions.update(fraud=_position(100_000)))

    def declare(plan: Plan) -> Plan:
        return replace(plan, tables=tuple(map(_with_stream, plan.tables)))

    scene.edits.append(declare)


def _position(version: int) -> Callable[[str], StreamPosition]:
    return lambda checkpoint: StreamPosition("fraud", checkpoint, "q", max(version, 0), 0, version)


def _with_stream(table: TablePlan) -> TablePlan:
    options = replace(table.basis.options, streams=(("fraud", "/checkpoints/fraud"),))
    return replace(table, basis=replace(table.basis, options=options))


def _pace(scene: Scene) -> None:
    scene.run.max_bytes_per_hour = 3000


def _rewrite(scene: Scene) -> None:
    scene.policy["partitioning"] = ("day",)
    scene.options = replace(scene.options, rewrite="allowed")


def _copy(scene: Scene) -> None:
    """Each part of the copy takes a while, in which writers write. Behind the gate follow only the files that they
    wrote last.
    """
    scene.policy["partitioning"] = ("day",)
    scene.options = replace(scene.options, rewrite="copy")

    def copies(engine: FakeEngine) -> None:
        engine.copies, engine.now = True, lambda: milliseconds(scene.run.clock.utc())
        engine.on_copy = copied
        engine.overwrite = rewritten  # type: ignore[method-assign, assignment]

    def copied(table: FakeTable, files: Sequence[str]) -> None:
        if "v0" in files and scene.shut(table):
            scene.broken.append(f"{table.name.text}: writers wait while the table is copied")
        scene.run.clock.sleep(20)

    def rewritten(table: TableName, *_args: object) -> None:
        scene.broken.append(f"{table.text}: rewritten as a whole, while its writers wait")

    scene.each_engine.append(copies)


def _undo(scene: Scene) -> None:
    for table in scene.tables:
        properties = {"delta.isolationLevel": "Serializable", "owner.team": "web"}
        table.commit("SET TBLPROPERTIES", "apply", properties=properties)
    scene.policy.update({"isolation": "default", "properties": {"owner.team": None}})


def _managed(scene: Scene) -> None:
    for table in scene.tables:
        _through_catalog(table)


def _through_catalog(table: FakeTable) -> None:
    commit = table.commit

    def commit_through_catalog(operation: str, user: str = "ben", stamp: str = "", **facts: object) -> None:
        commit(operation, user, stamp, **facts)
        if facts:
            table.states[-1] = replace(table.live, catalog=CatalogFacts(table.live.version))

    table.states[-1] = replace(table.live, catalog=CatalogFacts(table.live.version))
    table.commit = commit_through_catalog  # type: ignore[method-assign]


def _runtime(scene: Scene) -> None:
    scene.dialect, scene.runtime = "databricks", "18.1"


def _constraint(scene: Scene) -> None:
    scene.policy["constraints"] = {"positive": "id > 0"}


def _dropped(scene: Scene) -> None:
    for table in scene.tables:
        protocol = table.live.protocol.raised(frozenset({"inCommitTimestamp"}))
        on = {**table.live.properties, "delta.enableInCommitTimestamps": "true"}
        table.commit("SET TBLPROPERTIES", "ben", protocol=protocol, properties=on)
    scene.policy["features"] = {"inCommitTimestamp": "dropped"}


def _upkeep(scene: Scene) -> None:
    scene.upkeep = UpkeepPolicy(optimize=OptimizePolicy(small_files="30%"), vacuum=VacuumPolicy(every="7 days"))
    facts = UpkeepFacts(files=100, bytes=100_000, small_files=100, small_bytes=100_000, cut=True, commits=9)
    for table in scene.tables:
        table.states[-1] = replace(table.live, upkeep=facts)


def _empty_pattern(scene: Scene) -> None:
    failure = TableFailure(name="lake.sales.*", message="no table matches the pattern")
    scene.edits.append(lambda plan: replace(plan, failures=(failure,)))


def _endpoint(scene: Scene) -> None:
    """A Thrift server. The first statement loses its answer, commits later, and the engine does not say whether it
    runs, nor anything of a dead run's. Rewrites are those of Spark: an endpoint refuses them.
    """
    left = [1]

    def forget(engine: FakeEngine) -> None:
        own, known = engine.interrupt, engine.tags
        engine.address = ""

        def interrupt(tag: str, address: str = "") -> bool | None:
            return None if address else tag in known and own(tag)

        engine.interrupt = interrupt  # type: ignore[method-assign]

    def lose(engine: FakeEngine, _table: FakeTable, sql: str) -> None:
        if left and engine in scene.engines() and not sql.startswith(("OVERWRITE", "VACUUM", "OPTIMIZE")):
            left.clear()
            engine.running[engine.tags[-1]] = None
            scene.lands_later(sql, run=engine.stamp.run)
            raise EngineError("the connection broke", "", unanswered=True)

    scene.each_engine.append(forget)
    scene.lost.append(lose)


ARRANGE: Mapping[Feature, Callable[[Scene], None]] = MappingProxyType(
    {
        Feature.GUARDED_PROCESS: _guarded_process,
        Feature.OWED_HOOKS: _owed_hooks,
        Feature.ORPHAN: _orphan,
        Feature.SIGNAL: _signal,
        Feature.FAILING_STORE: _failing_store,
        Feature.TOGETHER: _together,
        Feature.CANARY: _canary,
        Feature.QUIET: _quiet,
        Feature.CALENDAR: _calendar,
        Feature.STREAMS: _streams,
        Feature.PACE: _pace,
        Feature.REWRITE: _rewrite,
        Feature.COPY: _copy,
        Feature.UNDO: _undo,
        Feature.MANAGED: _managed,
        Feature.RUNTIME: _runtime,
        Feature.CONSTRAINT: _constraint,
        Feature.DROPPED: _dropped,
        Feature.UPKEEP: _upkeep,
        Feature.EMPTY_PATTERN: _empty_pattern,
        Feature.ENDPOINT: _endpoint,
    }
)
