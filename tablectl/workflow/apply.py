"""The apply: take leases → check that the plan is fresh → run phases → verify → release."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import timedelta
from functools import cache, partial
from threading import Event
from typing import Any
from uuid import uuid4

from tablectl.applying.context import Approve, CanaryTerms, QuietTerms, RunContext, WindowSettings, approve_all
from tablectl.applying.drivers import Driver
from tablectl.applying.events import Notify, RunEvent, no_progress
from tablectl.applying.hook_process import hook_runner
from tablectl.applying.owed_hooks import OwedHookTable
from tablectl.applying.pace import Pace
from tablectl.applying.run import Schedule, run_plan
from tablectl.applying.run_report import RunReport
from tablectl.approval import Approval, check_declared, check_engine
from tablectl.delta.dialects import dialect_of
from tablectl.delta.names import TableName, canonical_location, parse_table
from tablectl.engine.port import Engine, MaySend, always
from tablectl.frozen import frozen
from tablectl.leases.acquire import Claim
from tablectl.leases.clock import Clock, SystemClock
from tablectl.leases.owner import current_owner
from tablectl.log.commit_files import newest_row_version, row_versions, unnamed_files
from tablectl.log.reader import read_commits, read_table
from tablectl.log.stream_checkpoint import read_streams
from tablectl.log.table_cache import MemoryCache
from tablectl.model.errors import EngineError, PlanFileError, TablectlError, UsageError
from tablectl.model.managed_table import CatalogEntry
from tablectl.model.plan import Plan
from tablectl.model.stamp import LONGEST_REASON, Stamp
from tablectl.model.stop_condition import LONGEST_SOAK, StopCondition
from tablectl.model.streams import StreamState
from tablectl.model.table import WITH_HISTORY, Commit, Depth, LiveTable
from tablectl.one_table import of_table
from tablectl.planning.plan_file import digest_of
from tablectl.policies.config import WindowConfig
from tablectl.policies.effective_policy import spec_for
from tablectl.policies.fields import duration
from tablectl.policies.spec import Specs, TableSpec
from tablectl.project import Project, RunEngines
from tablectl.reports.groups import plan_groups
from tablectl.storage.disk_log import free_bytes
from tablectl.storage.log_stores import Stores
from tablectl.storage.object_stores import StoreOptions
from tablectl.storage.table_log import DataFile
from tablectl.version import __version__

_ALL_COMMITS = 100_000
"""The maximum number of commits to search for our own, as a bound for extreme logs."""


DEFAULT_WITHIN = "6h"
"""How long ``--when quiet`` waits if ``--within`` does not say it."""


LONGEST_WITHIN = timedelta(days=7)


def _nothing() -> None:
    """Does nothing."""


@frozen
class LogReader:
    """The ``LiveReader`` that reads the Delta log. Commits are read once, and nothing on disk is used instead."""

    stores: StoreOptions = field(default_factory=StoreOptions)
    commits_read: MemoryCache = field(default_factory=MemoryCache)

    def read(
        self, name: TableName, location: str, depth: Depth = WITH_HISTORY, *, version: int | None = None
    ) -> LiveTable:
        """The table at a version, by default the newest."""
        return read_table(name, location, depth, version=version, cache=self.commits_read, options=self.stores)

    def commits(self, location: str, *, after: int) -> tuple[Commit, ...]:
        """The commits after a version, newest first."""
        return read_commits(location, after=after, limit=_ALL_COMMITS, options=self.stores)

    def entry(self, location: str) -> CatalogEntry | None:
        """What the catalog of a table says about it besides its state."""
        return self.stores.access.entry(location) if self.stores.access else None

    def unnamed(self, location: str, *, after: int, since: float) -> Sequence[DataFile]:
        """The data files modified from ``since`` on that no commit after a version names."""
        with Stores(self.stores) as stores:
            return unnamed_files(stores, location, after=after, since=since)

    def row_versions(self, location: str, *, after: int) -> Sequence[int]:
        """The versions after one that add rows, newest first."""
        with Stores(self.stores) as stores:
            return row_versions(stores, location, after=after)

    def newest_row_version(self, location: str) -> int:
        """The newest version that adds rows."""
        with Stores(self.stores) as stores:
            return newest_row_version(stores, location)

    def streams(self, checkpoints: Sequence[tuple[str, str]], table_id: str, location: str) -> Sequence[StreamState]:
        """How far the streaming queries with some names and checkpoints have read or written a table."""
        with Stores(self.stores) as stores:
            return read_streams(stores, checkpoints, table_id, location)

    def free(self, location: str) -> int | None:
        """The free bytes at a table's location, if it is on a disk of this machine; otherwise ``None``."""
        path = canonical_location(location)
        return free_bytes(path) if path.startswith("/") else None


@frozen
class CanaryOptions:
    """What ``--canary N --soak MINUTES --stop-if-failed N --stop-if-silent N`` say; ``None`` where they say nothing."""

    tables: int | None = None
    """How many tables are changed first; 0 to start all alike."""
    soak: float | None = None
    """Minutes."""
    stop_if_failed: int | None = None
    stop_if_silent: int | None = None


NO_CANARY = CanaryOptions()


def canary_options(
    tables: int | None, soak: float | None, stop_if_failed: int | None, stop_if_silent: int | None
) -> CanaryOptions:
    """The options as given. Raises ``UsageError`` for values that make no sense."""
    if tables is not None and tables < 0:
        raise UsageError(f"--canary {tables}: it is the number of tables that are changed first", "0 starts all alike")
    if soak is not None and not 0 <= soak <= LONGEST_SOAK:
        raise UsageError(f"--soak {soak:g}: it is a number of minutes, at most {LONGEST_SOAK:,}")
    for term, limit in (("failed", stop_if_failed), ("silent", stop_if_silent)):
        if limit is not None and limit < 0:
            raise UsageError(f"--stop-if-{term} {limit}: it is a number from 0 on", "0 switches the threshold off")
    return CanaryOptions(tables, soak, stop_if_failed, stop_if_silent)


@frozen
class Control:
    """Lets a caller watch a run and stop it."""

    notify: Notify = no_progress
    stop: Event = field(default_factory=Event)
    clock: Clock = field(default_factory=SystemClock)
    proceed: str = ""
    """The reason to continue although writers do not end in time; empty to leave such tables unchanged."""
    override: str = ""
    """The reason to run outside the calendar; empty to respect it."""
    wait: float = 0
    """Minutes for which to retry tables whose window could not be opened."""
    quiet: float | None = None
    """Seconds within which each table is started at a quiet moment; ``None`` to start at once."""
    canary: CanaryOptions = NO_CANARY
    """The tables to change first. What it leaves open, ``window`` in ``tablectl.yaml`` says."""
    on_engine: Callable[[], None] = _nothing
    """Called once the engine of the run is open: a new Spark context replaces signal handlers."""


def quiet_within(when: str | None, within: str | None) -> float | None:
    """The seconds of ``--when quiet --within 6h``; ``None`` if tables start at once. Raises ``UsageError`` for other
    values.
    """
    if when in {None, ""}:
        if within:
            raise UsageError("--within is for --when quiet", "for example --when quiet --within 6h")
        return None
    if when != "quiet":
        raise UsageError(f"--when {when}: there is only `quiet`", "for example --when quiet --within 6h")
    try:
        length = duration(LONGEST_WITHIN).parse(within or DEFAULT_WITHIN)
    except ValueError as error:
        raise UsageError(f"--within {within} {error}", "for example --within 6h") from None
    assert isinstance(length, timedelta)
    return length.total_seconds()


def run(project: Project, plan: Plan, control: Control, approve: Approve = approve_all) -> RunReport:
    """Applies a plan in one protected window.

    Hooks run in the project's directory. ``approve`` is called for each table under its lease (see ``approval``). A
    plan without work starts no engine. Raises ``PlanFileError`` if the engine's dialect is not the plan's, and
    ``UsageError`` if tables are to be watched and none is changed first.
    """
    canary = _canary(control.canary, project.config.window, plan)
    reasons = (control.proceed[:LONGEST_REASON], control.override[:LONGEST_REASON])
    stamp = Stamp(uuid4().hex[:12], digest_of(plan), *reasons)
    # A run that was killed can have unfinished hooks on tables that now match their policies.
    asked = [parse_table(name) for name in plan.unchanged] if project.config.window.after else []
    needed = any(table.applies for table in plan.tables) or not all(table.is_path for table in asked)
    project.expect(plan)
    opened = project.engines.open_all(stamp.text()) if needed else RunEngines({"": _NoEngine(plan.dialect)})
    try:
        if needed:
            control.on_engine()
        drivers = tuple(Driver(name, engine) for name, engine in opened.engines.items())
        engine = drivers[0].engine
        if engine.dialect != plan.dialect:
            raise PlanFileError(
                f"the plan is for the {plan.dialect} dialect and the engine speaks {engine.dialect}",
                "set engine.dialect in tablectl.yaml and plan again",
            )
        for note in opened.notes:
            control.notify(RunEvent("", "note", note))
        context = replace(_context(project, engine, stamp, control, canary), approve=approve)
        schedule = replace(_schedule(project, stamp), drivers=drivers)
        report = run_plan(context, schedule, plan, tuple(_places(project, asked, context)))
        return replace(report, notes=(*opened.notes, *report.notes))
    finally:
        opened.close()


def approval_of(project: Project, plan: Plan, specs: Specs | None, max_bytes: int | None) -> Approval:
    """The check that ``run`` makes for each table of a plan. ``None`` for ``specs`` trusts the plan.

    Raises ``PlanFileError`` if the plan is for another engine than the configured one, or contains anything that the
    policies do not declare.
    """
    dialect, runtime, config = project.dialect, project.runtime, project.config
    check_engine(plan, dialect, runtime.text if runtime else "")
    tables = check_declared(plan, specs) if specs is not None else None
    return Approval(dialect, runtime, tables, config.severities, project.stores, max_bytes, project.own_rules)


def _places(project: Project, tables: Iterable[TableName], context: RunContext) -> Iterator[OwedHookTable]:
    policies = cache(project.any_policies)
    for table in tables:
        location = table.parts[0] if table.is_path else of_table(table.text, partial(context.where, table))
        if isinstance(location, str):  # these tables were not requested by name
            spec = partial(_spec_of, policies, table)
            yield OwedHookTable(table.text, location, partial(_streams_of, spec), partial(_tags_of, spec))


def _spec_of(policies: Callable[[], Specs], table: TableName) -> TableSpec | None:
    """What the policies of now declare for a table; ``None`` if they cannot be read."""
    try:
        return spec_for(policies(), table)
    except TablectlError:
        return None


def _streams_of(spec: Callable[[], TableSpec | None]) -> tuple[str, ...]:
    found = spec()
    return found.options.stream_names if found else ()


def _tags_of(spec: Callable[[], TableSpec | None]) -> tuple[str, ...]:
    found = spec()
    return found.tags if found else ()


def _context(
    project: Project, engine: Engine, stamp: Stamp, control: Control, canary: CanaryTerms | None
) -> RunContext:
    config = project.config
    terms = WindowSettings(
        drain=float(config.window.drain),
        before=config.window.before,
        after=config.window.after,
        run_hook=hook_runner(project.directory, float(config.window.hook_timeout)),
        calendar=config.window.calendar,
        exclusive_commits=config.engine.exclusive_commits,
        wait=control.wait * 60,
        quiet=None if control.quiet is None else QuietTerms(control.quiet, config.window.quiet),
        canary=canary,
    )
    return RunContext(
        engine=engine,
        reader=LogReader(project.stores),
        clock=control.clock,
        stamp=stamp,
        stop=control.stop,
        notify=control.notify,
        budget=config.window.ttl / 4,
        terms=terms,
        pace=Pace(config.window.max_bytes_per_hour),
        resolve=partial(_resolve, project, engine),
        resolves=partial(_resolves, project, engine),
    )


def _canary(asked: CanaryOptions, configured: WindowConfig, plan: Plan) -> CanaryTerms | None:
    tables = configured.canary if asked.tables is None else asked.tables
    if not tables:
        if (asked.soak, asked.stop_if_failed, asked.stop_if_silent) != (None, None, None):
            raise UsageError("--soak and --stop-if-… are for --canary", "for example --canary 3 --soak 15")
        return None
    stop_if = StopCondition(
        configured.stop_if_failed if asked.stop_if_failed is None else asked.stop_if_failed,
        configured.stop_if_silent if asked.stop_if_silent is None else asked.stop_if_silent,
    )
    if not stop_if.text:
        raise UsageError("nothing would stop the other tables", "give --stop-if-failed or --stop-if-silent above 0")
    return CanaryTerms(
        tables=tables,
        soak=(configured.soak if asked.soak is None else asked.soak) * 60,
        stop_if=stop_if,
        groups=tuple(group.names for group in plan_groups(plan)),
    )


def _resolves(project: Project, engine: Engine, table: TableName) -> bool:
    """Whether the engine need not know a table's catalog: then statements name the table by its location."""
    catalogs = project.catalogs
    return catalogs is not None and catalogs.resolves(table) and dialect_of(engine.dialect).path_names


def _resolve(project: Project, engine: Engine, table: TableName) -> str | None:
    catalogs = project.catalogs
    return catalogs.location(table) if catalogs is not None and _resolves(project, engine, table) else None


def _schedule(project: Project, stamp: Stamp) -> Schedule:
    config = project.config
    owner = current_owner(project.environ, __version__)
    claim = Claim(owner=owner, run=stamp.run, digest=stamp.plan, ttl=float(config.window.ttl))
    return Schedule(
        parallel=config.window.parallel,
        claim=claim,
        records=project.records,
        together=config.window.together,
    )


@frozen
class _NoEngine:
    """Replaces the engine if a plan has nothing to run, so that an empty apply starts no Spark."""

    dialect: str
    shared: bool = True
    stated: bool = True
    address: str = ""
    bound: float | None = 0

    def log_store(self, scheme: str) -> str:
        raise EngineError(f"no engine was started to tell its log store for {scheme}")

    def opens(self, scheme: str) -> bool | None:
        """Always ``None``: there is no engine."""
        return None

    def location(self, table: TableName) -> str:
        raise EngineError(f"no engine was started to look up {table.text}")

    def alive(self) -> bool:
        """Always true: nothing is running."""
        return True

    def interrupt(self, tag: str, address: str = "") -> bool | None:  # as ``Engine.interrupt``
        """Always ``None``: no operation is known."""
        return None

    def execute(self, sql: str, tag: str = "", may_send: MaySend = always) -> None:  # as ``Engine.execute``
        raise EngineError(f"no engine was started to run {sql}")

    def overwrite(
        self,
        table: TableName,
        columns: Sequence[tuple[str, Mapping[str, Any]]],
        partitions: Sequence[str],
        tag: str = "",
        may_send: MaySend = always,
    ) -> None:
        raise EngineError(f"no engine was started to write {table.text}")

    def row(self, sql: str) -> tuple[str | None, ...]:
        raise EngineError(f"no engine was started to run {sql}")

    def close(self) -> None:
        """Does nothing."""
