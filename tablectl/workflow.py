"""The two pipelines: plan and apply.

plan :  load specs → expand patterns → inspect live → diff → decide → lint → order → save → show
apply:  load plan → open window → check fresh → run phases → verify → close window → show
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import field, replace
from datetime import timedelta
from functools import partial
from threading import Event
from typing import Any, TypeVar
from uuid import uuid4

from tablectl.applying.context import Approve, CanaryTerms, QuietTerms, RunContext, WindowSettings, approve_all
from tablectl.applying.drivers import Driver
from tablectl.applying.events import Notify, RunEvent, no_progress
from tablectl.applying.hook_process import CommandRunner
from tablectl.applying.owed_hooks import OwedHookTable
from tablectl.applying.pace import Pace
from tablectl.applying.run import Schedule, run_plan
from tablectl.applying.run_report import RunReport
from tablectl.applying.stamp import LONGEST_REASON, Stamp, read_stamp
from tablectl.approval import Approval, check_declared
from tablectl.conflicts.context import NO_ASSUMPTION, Assumption
from tablectl.delta.dialects import dialect_of
from tablectl.delta.names import NameSyntaxError, TableName, canonical_location, parse_table
from tablectl.engine.port import Engine, MaySend, always
from tablectl.frozen import frozen
from tablectl.leases.acquire import Claim
from tablectl.leases.clock import Clock, SystemClock
from tablectl.leases.owner import current_owner
from tablectl.log.blame import MOST_COMMITS, BlameQuery, Origin, blame
from tablectl.log.commit_files import row_versions, unnamed_files
from tablectl.log.reader import Reading, ReadRequest, read_commits, read_each, read_table
from tablectl.log.stream_checkpoint import read_streams
from tablectl.log.table_cache import MemoryCache
from tablectl.model.errors import EngineError, ExitCode, LiveError, PlanFileError, UsageError, one_line
from tablectl.model.managed_table import CatalogEntry
from tablectl.model.plan import Change, Finding, Plan, TableFailure, TablePlan
from tablectl.model.stop_condition import LONGEST_SOAK, StopCondition, parse_stop_condition
from tablectl.model.streams import StreamState
from tablectl.model.table import LOOK_BACK, WITH_HISTORY, Commit, Depth, LiveTable
from tablectl.model.text import cut
from tablectl.planning.conflict_report import ConflictReport, conflict_report
from tablectl.planning.dbt import dbt_findings
from tablectl.planning.diff import diff
from tablectl.planning.drift import Drift, TableDrift, questions, table_drift
from tablectl.planning.import_table import policy_of_table
from tablectl.planning.lint import Linted, LintedTable, graded, lint
from tablectl.planning.lint_rules.linted_state import table_subject
from tablectl.planning.merge_plans import Shard
from tablectl.planning.own_rules import with_own_rules
from tablectl.planning.plan_file import FORMAT, digest_of
from tablectl.planning.plan_table import plan_table
from tablectl.planning.table_loss import fails_writers
from tablectl.planning.writer_dependence import writers_matter
from tablectl.policies.config import WindowConfig
from tablectl.policies.dbt_manifest import DbtTable
from tablectl.policies.fields import duration
from tablectl.policies.new_policy_file import TableEntry, write_policies
from tablectl.policies.spec import Specs, TableSpec
from tablectl.policies.yaml_nodes import SourceFile
from tablectl.project import Project, RunEngines
from tablectl.reports.groups import plan_groups
from tablectl.reports.mask import Mask
from tablectl.selection import LocatedTable, Selection, depth_for, failure_of, locate
from tablectl.storage.data_files import DataFile
from tablectl.storage.disk_log import free_bytes
from tablectl.storage.log_stores import Stores
from tablectl.storage.object_stores import StoreOptions
from tablectl.version import __version__

_Made = TypeVar("_Made")
_ALL_COMMITS = 100_000
"""The maximum number of commits to search for our own, as a bound for extreme logs."""

DEFAULT_WITHIN = "6h"
"""How long ``--when quiet`` waits if ``--within`` does not say it."""
LONGEST_WITHIN = timedelta(days=7)
MOST_WITH_LOSSES = 100
"""If more tables are selected, the commits of 30 days are not read only to tell what a statement costs the writers."""

OnRead = Callable[[int, int], None]
"""Progress callback: the number of tables that were read, and the number of all tables."""


def ignore_progress(_done: int, _all: int) -> None:
    """Does nothing."""


def _nothing() -> None:
    """Does nothing."""


def make_plan(project: Project, specs: Specs, selection: Selection, on_read: OnRead = ignore_progress) -> Plan:
    """The plan for the selected tables. A table that cannot be read is a failure in the plan, and the others are
    planned.

    Raises ``InputError`` if patterns contradict each other about a live table.
    """
    located = locate_tables(project, specs, selection)
    losses = len(located.tables) <= MOST_WITH_LOSSES
    return plan_located(project, specs, located, selection.shard, losses=losses, on_read=on_read)


def plan_located(
    project: Project,
    specs: Specs,
    located: LocatedTable,
    shard: Shard | None = None,
    *,
    losses: bool,
    on_read: OnRead = ignore_progress,
) -> Plan:
    """The plan of tables whose locations are known. ``losses`` tells what each statement costs the writers, for which
    the commits of 30 days are read.
    """
    failures = list(located.failures)
    tables: list[TablePlan] = []
    unchanged: list[str] = []
    depths = partial(_depth, project, tells_losses=losses)
    for spec, table in _each_read(project, located, depths, partial(_planned, project), on_read, failures):
        if table:
            tables.append(table)
        else:
            unchanged.append(spec.name.text)
    return Plan(
        format=FORMAT,
        tool=__version__,
        dialect=project.dialect,
        policies=specs.digest,
        env=project.config.environment,
        tables=tuple(sorted(tables, key=lambda table: table.name)),
        failures=sorted_failures(failures),
        unchanged=tuple(sorted(unchanged)),
        unmatched=located.unmatched,
        shard=shard.text if shard else "",
    )


def _planned(project: Project, spec: TableSpec, reading: Reading) -> TablePlan | None:
    severities = with_own_rules(project.config.severities, project.own_rules, spec)
    table = plan_table(spec.policy, reading.table, project.dialect, spec.options, severities, project.runtime)
    if table is None:
        return None
    said: dict[str, Any] = {"tags": tuple(sorted(spec.tags)), "owner": spec.owner, "window": spec.window}
    return replace(table, **said)


def find_drift(
    project: Project,
    specs: Specs,
    selection: Selection,
    look_back: int = MOST_COMMITS,
    on_read: OnRead = ignore_progress,
) -> Drift:
    """The selected tables that differ from their policies, and the commit that caused each difference.

    Only the histories of these tables are read, at most ``look_back`` commits each. Failures and errors as in
    ``make_plan``.
    """
    located = locate_tables(project, specs, selection)
    failures = list(located.failures)
    as_declared: list[str] = []
    tables: list[TableDrift] = []
    make = partial(_drifted, project, look_back)
    for spec, found in _each_read(project, located, _with_catalog, make, on_read, failures):
        if found is None:
            as_declared.append(spec.name.text)
        else:
            tables.append(
                table_drift(
                    spec, found.live, found.changes, found.origins, applied=found.applied, trouble=found.trouble
                )
            )
    return Drift(
        tables=tuple(sorted(tables, key=lambda table: table.spec.name.text)),
        failures=sorted_failures(failures),
        as_declared=tuple(sorted(as_declared)),
        unmatched=located.unmatched,
        look_back=look_back,
        env=project.config.environment,
    )


@frozen
class _Drifted:
    """A table that differs. What its spec says is known to the caller."""

    live: LiveTable
    changes: tuple[Change, ...]
    origins: tuple[Origin, ...]
    applied: Commit | None
    trouble: str


def _drifted(project: Project, look_back: int, spec: TableSpec, reading: Reading) -> _Drifted | None:
    live = reading.table
    changes = diff(spec.policy, live, project.dialect)
    if not changes and not (live.catalog and live.catalog.differences):
        return None
    result = blame(reading, BlameQuery(live, questions(changes), look_back))
    applied = next((commit for commit in result.commits if read_stamp(commit.user_metadata)), None)
    return _Drifted(live, changes, result.origins, applied, one_line(result.trouble) if result.trouble else "")


def lint_tables(
    project: Project,
    specs: Specs,
    selection: Selection,
    on_read: OnRead = ignore_progress,
    dbt: Sequence[DbtTable] = (),
) -> Linted:
    """The lint findings on the selected tables in their planned state, including tables without changes. ``dbt`` are
    the tables of a dbt project.

    Reads the history of each table, and the layout of partitioned ones. Failures and errors as in ``make_plan``.
    """
    located = locate_tables(project, specs, selection)
    failures = list(located.failures)
    whole = Depth(LOOK_BACK, layout=True)
    make = partial(_linted, project, dbt)
    read = _each_read(project, located, lambda _spec: lambda _live: whole, make, on_read, failures)
    tables = [LintedTable(spec.name.text, found) for spec, found in read]
    return Linted(
        tables=tuple(sorted(tables, key=lambda table: table.name)),
        failures=sorted_failures(failures),
        unmatched=located.unmatched,
    )


def _linted(project: Project, dbt: Sequence[DbtTable], spec: TableSpec, reading: Reading) -> tuple[Finding, ...]:
    live = reading.table
    changes = diff(spec.policy, live, project.dialect)
    subject = table_subject(spec.policy, live, changes, project.dialect, options=spec.options, runtime=project.runtime)
    severities = with_own_rules(project.config.severities, project.own_rules, spec)
    theirs = [each for each in dbt if each.name.key == spec.name.key]
    shared = dbt_findings(spec, theirs, live.known_commits, project.catalog, project.dialect)
    return (*lint(subject, spec.name, "lint", severities), *graded(shared, spec.name, severities))


@frozen
class Imported:
    """The policies written from live tables."""

    text: str
    """The text of a policy file; empty if there is no table to write."""
    tables: tuple[str, ...]
    left_out: Mapping[str, tuple[str, ...]]
    """Facts that no policy can declare, by table."""
    skipped: tuple[tuple[str, SourceFile], ...]
    """Tables that already have an entry, with its position."""
    failures: tuple[TableFailure, ...]
    unmatched: tuple[str, ...]
    others: tuple[str, ...] = ()
    """Why something that a pattern matches is no Delta table."""

    @property
    def exit_code(self) -> ExitCode:
        """1 if a table cannot be read, otherwise 0."""
        return ExitCode.ERROR if self.failures else ExitCode.DONE


def import_policies(
    project: Project, asked: Specs, known: Mapping[str, SourceFile], on_read: OnRead = ignore_progress
) -> Imported:
    """Policies for the tables in ``asked``, except for those in ``known`` (see ``declared_already``).

    Reads no history. Failures as in ``make_plan``.
    """
    located = locate_tables(project, asked, Selection())
    skipped, fresh = list[tuple[str, SourceFile]](), list[tuple[TableSpec, str]]()
    for spec, where in located.tables:
        source = known.get(spec.name.key) or known.get(canonical_location(where))
        if source:
            skipped.append((spec.name.text, source))
        else:
            fresh.append((spec, where))
    failures = list(located.failures)
    entries: list[TableEntry] = []
    make = partial(_imported, project)
    tables = replace(located, tables=tuple(fresh))
    for _, made in _each_read(project, tables, lambda spec: depth_for(spec, 0), make, on_read, failures):
        if isinstance(made, TableFailure):
            failures.append(made)
        else:
            entries.append(made)
    return Imported(
        text=write_policies(entries) if entries else "",
        tables=tuple(sorted(entry.key for entry in entries)),
        left_out={entry.key: entry.left_out for entry in entries if entry.left_out},
        skipped=tuple(skipped),
        failures=sorted_failures(failures),
        unmatched=located.unmatched,
        others=located.others,
    )


def _imported(project: Project, spec: TableSpec, reading: Reading) -> TableEntry | TableFailure:
    try:
        directed = project.catalogs is not None and project.catalogs.directs(spec.name)
        entry = policy_of_table(reading.table, project.dialect, project.catalog, located=not directed)
    except NameSyntaxError as error:
        return TableFailure(name=spec.name.text, message=str(error))
    return _unmasked(entry, project.mask)


def _unmasked(entry: TableEntry, mask: Mask) -> TableEntry:
    """The entry without the values that reports hide, because a policy is committed to Git."""
    hidden = tuple(each[:2] for each in entry.declared if mask.hides_value(each[0], each[1]))
    return replace(
        entry,
        declared=tuple(each for each in entry.declared if each[:2] not in hidden),
        left_out=(*entry.left_out, *(f"{key or name}: `reports.mask` hides its value" for name, key in hidden)),
    )


def _depth(project: Project, spec: TableSpec, *, tells_losses: bool) -> Callable[[LiveTable], Depth]:
    """How deep to read a table to plan it: its write history, too, if the plan depends on who writes it, or if it tells
    what its statements cost the writers.
    """
    depth, dialect = depth_for(spec, LOOK_BACK), project.dialect

    def writers(live: LiveTable) -> bool:
        return writers_matter(spec.policy, live, dialect, spec.options)

    def losses(live: LiveTable) -> bool:
        return fails_writers(spec.policy, live, dialect, spec.options)

    def with_writers(live: LiveTable) -> Depth:
        found = depth(live)
        return replace(found, writers=writers, losses=losses if tells_losses else None) if found.look_back else found

    return with_writers


def locate_tables(project: Project, specs: Specs, selection: Selection) -> LocatedTable:
    """The selected tables with their locations. Raises as ``locate``."""
    return locate(specs, selection, project.open_catalog, project.stores)


def sorted_failures(failures: Iterable[TableFailure]) -> tuple[TableFailure, ...]:
    """The failures in the order of plans: by table and message."""
    return tuple(sorted(failures, key=lambda failure: (failure.name, failure.message)))


def _with_catalog(spec: TableSpec) -> Callable[[LiveTable], Depth]:
    """The depth for drift: no history, but for a catalog-managed table its log, to compare it with the catalog."""
    depth = depth_for(spec, 0)
    return lambda live: replace(depth(live), look_back=1) if live.catalog else depth(live)


def _each_read(
    project: Project,
    located: LocatedTable,
    depth_of: Callable[[TableSpec], Callable[[LiveTable], Depth]],
    make: Callable[[TableSpec, Reading], _Made],
    on_read: OnRead,
    failures: list[TableFailure],
) -> Iterator[tuple[TableSpec, _Made]]:
    """What ``make`` makes of each live table, read to the depth that ``depth_of`` returns. Unreadable ones are added to
    ``failures``. ``make`` runs where the table was read (``read_each``).
    """
    tables = located.tables
    requests = (ReadRequest(spec.name, location, depth_of(spec)) for spec, location in tables)
    found = read_each(
        requests,
        lambda reading: make(tables[reading.position][0], reading),
        cache=project.cache,
        options=project.stores,
    )
    with closing(found):
        for done, ((spec, _), made) in enumerate(zip(tables, found, strict=True), 1):
            on_read(done, len(tables))
            if isinstance(made, LiveError):
                failures.append(failure_of(spec.name.text, made))
            else:
                yield spec, made


def read_conflicts(
    project: Project, name: TableName, spec: TableSpec | None, assumption: Assumption = NO_ASSUMPTION
) -> ConflictReport:
    """Conflicts between writers of one table, with or without a policy.

    Raises ``LiveError`` if the table cannot be read.
    """
    live = project.read(name, spec)
    if spec is None:
        return conflict_report(live, None, project.dialect, assumption)
    # The table's size was not read: it matters for the rewrite, but not for conflicts.
    return conflict_report(live, spec.policy, project.dialect, assumption, replace(spec.options, max_bytes=None))


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

    def streams(self, checkpoints: Sequence[tuple[str, str]], table_id: str) -> Sequence[StreamState]:
        """How far the streaming queries with some names and checkpoints have read a table."""
        with Stores(self.stores) as stores:
            return read_streams(stores, checkpoints, table_id)

    def free(self, location: str) -> int | None:
        """The free bytes at a table's location, if it is on a disk of this machine; otherwise ``None``."""
        path = canonical_location(location)
        return free_bytes(path) if path.startswith("/") else None


@frozen
class CanaryOptions:
    """What ``--canary N --soak MINUTES --stop-if CONDITION`` say; ``None`` where they say nothing."""

    tables: int | None = None
    """How many tables are changed first; 0 to start all alike."""
    soak: float | None = None
    """Minutes."""
    stop_if: StopCondition | None = None


NO_CANARY = CanaryOptions()


def canary_options(tables: int | None, soak: float | None, stop_if: str | None) -> CanaryOptions:
    """The options as given. Raises ``UsageError`` for values that make no sense."""
    if tables is not None and tables < 0:
        raise UsageError(f"--canary {tables}: it is the number of tables that are changed first", "0 starts all alike")
    if soak is not None and not 0 <= soak <= LONGEST_SOAK:
        raise UsageError(f"--soak {soak:g}: it is a number of minutes, at most {LONGEST_SOAK:,}")
    if not stop_if:
        return CanaryOptions(tables, soak)
    try:
        return CanaryOptions(tables, soak, parse_stop_condition(stop_if))
    except ValueError as error:
        raise UsageError(f"--stop-if {cut(stop_if)!r} is not a condition", str(error)) from None


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
    watch: float = 0
    """Minutes for which to wait for writers to come back after the run."""
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
        report = run_plan(context, schedule, plan, tuple(_places(asked, context)))
        return replace(report, notes=(*opened.notes, *report.notes))
    finally:
        opened.close()


def approval_of(project: Project, plan: Plan, specs: Specs | None, max_bytes: int | None) -> Approval:
    """The check that ``run`` makes for each table of a plan. ``None`` for ``specs`` trusts the plan.

    Raises ``PlanFileError`` if the plan contains anything that the policies do not declare.
    """
    tables = check_declared(plan, specs, project.dialect) if specs is not None else None
    return Approval(plan.dialect, tables, project.config.severities, project.stores, max_bytes, project.own_rules)


def _places(tables: Iterable[TableName], context: RunContext) -> Iterator[OwedHookTable]:
    for table in tables:
        with suppress(LiveError, EngineError):  # these tables were not requested by name
            yield OwedHookTable(table.text, table.parts[0] if table.is_path else context.where(table))


def _context(
    project: Project, engine: Engine, stamp: Stamp, control: Control, canary: CanaryTerms | None
) -> RunContext:
    config = project.config
    terms = WindowSettings(
        drain=float(config.window.drain),
        before=config.window.before,
        after=config.window.after,
        run_hook=CommandRunner(project.directory, float(config.window.hook_timeout)),
        calendar=config.window.calendar,
        exclusive_commits=config.engine.exclusive_commits,
        wait=control.wait * 60,
        quiet=None if control.quiet is None else QuietTerms(control.quiet, config.window.quiet),
        watch=control.watch * 60,
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
        if asked.soak is not None or asked.stop_if is not None:
            raise UsageError("--soak and --stop-if are for --canary", "for example --canary 3 --soak 15")
        return None
    return CanaryTerms(
        tables=tables,
        soak=(configured.soak if asked.soak is None else asked.soak) * 60,
        stop_if=asked.stop_if or configured.stop_if,
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
