"""The apply: take leases → check that the plan is fresh → run phases → verify → release."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cache, partial
from threading import Event
from typing import Annotated, Any, Literal
from uuid import uuid4

import typer

from tablectl.applying.approval import Approval, check_declared, check_engine
from tablectl.applying.events import Notify, no_progress
from tablectl.applying.hooks import HookFacts, OwedHookTable
from tablectl.applying.run import run_plan
from tablectl.applying.run_context import Approve, RunContext, approve_all, hook_runner
from tablectl.applying.scheduler import Pace
from tablectl.commands.parameters import WHEN, read_as
from tablectl.commands.project import Project
from tablectl.delta.dialects import dialect_of
from tablectl.delta.locations import canonical_location
from tablectl.delta.names import TableName, parse_table
from tablectl.engine.interface import Engine, KnowsStatements, MaySend, always
from tablectl.leases.acquire import Claim
from tablectl.leases.clock import Clock, SystemClock
from tablectl.leases.owner import current_owner
from tablectl.log.reader import read_commits, read_table
from tablectl.log.recent_commits import newest_row_version, row_versions, unnamed_files
from tablectl.log.state import MemoryCache
from tablectl.log.stream_checkpoint import read_streams
from tablectl.model.calendar import parse_duration, read_minutes
from tablectl.model.catalog_answers import CatalogEntry
from tablectl.model.commit import STATEMENT_ID, Commit
from tablectl.model.errors import EngineError, PlanFileError, TablectlError, UsageError, of_table
from tablectl.model.plan import Plan
from tablectl.model.run_report import RunReport
from tablectl.model.stamp import LONGEST_REASON, Stamp
from tablectl.model.stream_progress import StreamState
from tablectl.model.table import WITH_HISTORY, Depth, LiveTable
from tablectl.planning.plan_file import digest_of
from tablectl.planning.plan_upkeep import UpkeepTable
from tablectl.policies.config import WindowConfig
from tablectl.policies.declared_tables import Specs, TableSpec
from tablectl.policies.effective_policy import spec_finder
from tablectl.reports.table_groups import plan_groups
from tablectl.storage.disk_log import free_bytes
from tablectl.storage.log_stores import Stores
from tablectl.storage.object_stores import StoreOptions
from tablectl.storage.table_log import DataFile
from tablectl.version import __version__

_ALL_COMMITS = 100_000
"""The maximum number of commits to search for our own, as a bound for extreme logs."""


_DEFAULT_WITHIN = timedelta(hours=6)
_LONGEST_WITHIN = timedelta(days=7)
LONGEST_WAIT = 1_000_000
"""Minutes for which an apply may be asked to retry tables."""


def _nothing() -> None:
    """Does nothing."""


@dataclass(frozen=True, slots=True)
class LogReader:
    """The ``LiveReader`` that reads the Delta log. Commits are read once, and nothing on disk is used instead."""

    stores: StoreOptions = field(default_factory=StoreOptions)
    commits_read: MemoryCache = field(default_factory=MemoryCache)
    engine: object = None
    """Asked about commits without a stamp, if it knows its statements."""

    def read(
        self, name: TableName, location: str, depth: Depth = WITH_HISTORY, *, version: int | None = None
    ) -> LiveTable:
        """The table at a version, by default the newest."""
        return read_table(name, location, depth, version=version, cache=self.commits_read, options=self.stores)

    def commits(self, location: str, *, after: int) -> tuple[Commit, ...]:
        """The commits after a version, newest first."""
        found = read_commits(location, after=after, limit=_ALL_COMMITS, options=self.stores)
        return stamped(found, self.engine)

    def entry(self, location: str) -> CatalogEntry | None:
        """What the catalog of a table says about it besides its state."""
        return self.stores.access.entry(location) if self.stores.access else None

    def unnamed(self, location: str, *, after: int, since: float) -> Sequence[DataFile]:
        """The data files modified from ``since`` on that no commit after a version names."""
        with Stores(self.stores) as stores:
            return unnamed_files(stores, location, after=after, since=since)

    def modified(self, location: str, paths: Collection[str]) -> Mapping[str, float]:
        """When some data files were last written; those that are gone are left out."""
        with Stores(self.stores) as stores:
            return {each.path: each.modified for each in stores.each_data_file(location) if each.path in paths}

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


def stamped(commits: tuple[Commit, ...], engine: object) -> tuple[Commit, ...]:
    """Commits with the stamps that an endpoint kept out of them. Raises as ``KnowsStatements.stamp_of``."""
    if not isinstance(engine, KnowsStatements):
        return commits

    def with_stamp(commit: Commit) -> Commit:
        statement = commit.job.get(STATEMENT_ID, "")
        stamp = engine.stamp_of(statement) if statement and not commit.user_metadata else ""
        return replace(commit, user_metadata=stamp) if stamp else commit

    return tuple(map(with_stamp, commits))


def read_within(given: str) -> timedelta:
    """How long to wait for a moment. Raises ``ValueError``."""
    return parse_duration(given, most=_LONGEST_WITHIN)


def read_reason(given: str) -> str:
    """The reason for which an operator overrides something. Every commit of the run records it."""
    text = " ".join(given.split())
    if not text or not text.isprintable():
        raise ValueError("needs a reason, which is recorded in every commit of the run and in its report")
    return text[:LONGEST_REASON]


Proceed = Annotated[
    str | None,
    typer.Option(
        "--proceed",
        metavar="REASON",
        parser=read_as(read_reason),
        help="Continue even if writers have not finished in time; they may fail.",
        rich_help_panel=WHEN,
    ),
]
Override = Annotated[
    str | None,
    typer.Option(
        "--override",
        metavar="REASON",
        parser=read_as(read_reason),
        help="Run outside the calendar of tablectl.yaml.",
        rich_help_panel=WHEN,
    ),
]
Wait = Annotated[
    float,
    typer.Option(
        "--wait",
        metavar="30m",
        parser=read_as(partial(read_minutes, most=LONGEST_WAIT)),
        min=0,
        max=LONGEST_WAIT,
        help="Retry tables whose window could not be opened, for so long: 30m, 2h; a number counts minutes.",
        rich_help_panel=WHEN,
    ),
]
When = Annotated[
    Literal["quiet"] | None,
    typer.Option(
        "--when",
        metavar="quiet",
        help="Start each table at a moment when few writes are expected to fail (`window.quiet`).",
        rich_help_panel=WHEN,
    ),
]
Within = Annotated[
    timedelta | None,
    typer.Option(
        "--within",
        metavar="6h",
        parser=read_as(read_within),
        help="How long to wait for that moment: 90m, 6h, 2d. Default: 6h.",
        rich_help_panel=WHEN,
    ),
]


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """What a caller says about a run, besides what to apply."""

    proceed: str = ""
    """Why it continues even if writers have not finished in time."""
    override: str = ""
    """Why it runs outside the calendar."""
    wait: float = 0
    """Minutes."""
    when: Literal["quiet"] | None = None
    within: timedelta | None = None

    @property
    def quiet(self) -> float | None:
        """The seconds within which each table is started at a quiet moment; ``None`` to start at once. Raises
        ``UsageError``.
        """
        if self.within and not self.when:
            raise UsageError("--within is for --when quiet", "for example --when quiet --within 6h")
        return (self.within or _DEFAULT_WITHIN).total_seconds() if self.when else None


_OPTIONS = RunOptions()


@dataclass(frozen=True, slots=True)
class Control:
    """Lets a caller watch a run and stop it."""

    notify: Notify = no_progress
    stop: Event = field(default_factory=Event)
    clock: Clock = field(default_factory=SystemClock)
    on_engine: Callable[[], None] = _nothing
    """Called once the engine of the run is open: a new Spark context replaces signal handlers."""


def run(
    project: Project, plan: Plan, control: Control, options: RunOptions = _OPTIONS, approve: Approve = approve_all
) -> RunReport:
    """Applies a plan in one protected window.

    Hooks run in the project's directory. ``approve`` is called for each table under its lease (see ``approval``). A
    plan without work starts no engine. Raises ``PlanFileError`` if the engine's dialect is not the plan's, and
    ``UsageError`` if nothing that is seen of the first tables would stop the others.
    """
    groups = _canary_groups(project.config.window, plan)
    by = str(current_owner(project.environ, __version__))
    stamp = Stamp(uuid4().hex[:12], digest_of(plan), options.proceed, options.override, by)
    # A run that was killed can have unfinished hooks on tables that now match their policies.
    asked = [parse_table(name) for name in plan.unchanged] if project.config.window.after else []
    needed = any(table.applies for table in plan.tables) or not all(table.is_path for table in asked)
    project.expect(plan)
    engine: Engine = project.engines.open(stamp.text()) if needed else _NoEngine(plan.dialect)
    try:
        if needed:
            control.on_engine()
        if engine.dialect != plan.dialect:
            raise PlanFileError(
                f"the plan is for the {plan.dialect} dialect and the engine speaks {engine.dialect}",
                "set engine.dialect in tablectl.yaml and plan again",
            )
        context = replace(_context(project, engine, stamp, control, options), table_groups=groups, approve=approve)
        if any(isinstance(table, UpkeepTable) for table in plan.tables):
            # Sizes of files are settings of the session, which all tables share.
            context = replace(context, config=replace(context.config, parallel=1, together=()))
        return run_plan(context, plan, tuple(_places(project, asked, context)))
    finally:
        engine.close()


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
    finder = cache(lambda: spec_finder(project.any_policies()))
    for table in tables:
        location = table.parts[0] if table.is_path else of_table(table.text, partial(context.where, table))
        if isinstance(location, str):  # these tables were not requested by name
            yield OwedHookTable(table.text, location, partial(_facts, finder, table))


def _facts(finder: Callable[[], Callable[[TableName], TableSpec | None]], table: TableName) -> HookFacts:
    """What the policies of now declare for a table; nothing if they cannot be read."""
    try:
        spec = finder()(table)
    except TablectlError:
        return HookFacts()
    return HookFacts(spec.options.stream_names, spec.tags) if spec else HookFacts()


def _context(project: Project, engine: Engine, stamp: Stamp, control: Control, options: RunOptions) -> RunContext:
    window = project.config.window
    owner = current_owner(project.environ, __version__)
    return RunContext(
        engine=engine,
        reader=LogReader(project.stores, engine=engine),
        clock=control.clock,
        stamp=stamp,
        stop=control.stop,
        notify=control.notify,
        claim=Claim(owner=owner, run=stamp.run, digest=stamp.plan, ttl=float(window.ttl)),
        records=project.records,
        config=window,
        run_hook=hook_runner(project.directory, float(window.hook_timeout)),
        exclusive_commits=project.config.engine.exclusive_commits,
        wait=options.wait * 60,
        within=options.quiet,
        pace=Pace(window.max_bytes_per_hour),
        resolve=partial(_resolve, project, engine),
        resolves=partial(_resolves, project, engine),
    )


def _canary_groups(window: WindowConfig, plan: Plan) -> tuple[tuple[str, ...], ...]:
    """The tables from which ``--canary`` chooses, in groups of equal changes; none without it."""
    if not window.canary:
        return ()
    if not window.stop_if_failed and not window.stop_if_silent:
        raise UsageError("nothing would stop the other tables", "give --stop-if-failed or --stop-if-silent above 0")
    return tuple(group.names for group in plan_groups(plan))


def _resolves(project: Project, engine: Engine, table: TableName) -> bool:
    """Whether the engine need not know a table's catalog: then statements name the table by its location."""
    catalogs = project.catalogs
    return catalogs is not None and catalogs.resolves(table) and dialect_of(engine.dialect).path_names


def _resolve(project: Project, engine: Engine, table: TableName) -> str | None:
    catalogs = project.catalogs
    return catalogs.location(table) if catalogs is not None and _resolves(project, engine, table) else None


@dataclass(frozen=True, slots=True)
class _NoEngine:
    """Replaces the engine if a plan has nothing to run, so that an empty apply starts no Spark."""

    dialect: str
    shared: bool = True
    stated: bool = True
    address: str = ""
    bound: float | None = 0
    commit_bound: float | None = None
    rewrites: bool = True

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

    def execute(
        self, sql: str, tag: str = "", may_send: MaySend = always, *, quick: bool = False
    ) -> None:  # as ``Engine.execute``
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

    def count(self, sql: str) -> int:
        raise EngineError(f"no engine was started to run {sql}")

    def close(self) -> None:
        """Does nothing."""
