"""The two pipelines: plan and apply.

plan :  load specs → expand patterns → inspect live → diff → decide → lint → order → save → show
apply:  load plan → open window → check fresh → run phases → verify → close window → show
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event
from typing import Any
from uuid import uuid4

from tablectl.applying.context import Approve, RunContext, WindowSettings, approve_all
from tablectl.applying.events import Notify, no_progress
from tablectl.applying.hook_process import CommandRunner
from tablectl.applying.owed_hooks import OwedHookTable
from tablectl.applying.run import Schedule, run_plan
from tablectl.applying.run_report import RunReport
from tablectl.applying.stamp import LONGEST_REASON, Stamp, read_stamp
from tablectl.approval import Approval, check_declared
from tablectl.delta.names import NameSyntaxError, TableName, canonical_location, parse_table
from tablectl.delta.protocol import Client
from tablectl.engine.port import Engine
from tablectl.leases.acquire import Claim
from tablectl.leases.clock import Clock, SystemClock
from tablectl.leases.owner import current_owner
from tablectl.log.blame import MOST_COMMITS, BlameQuery, blame_many
from tablectl.log.reader import LOOK_BACK, Depth, ReadRequest, read_commits, read_many, read_table
from tablectl.model.errors import EngineError, ExitCode, LiveError, PlanFileError, one_line
from tablectl.model.lint_rules import DEFAULT_SEVERITIES, Severities
from tablectl.model.plan import Change, Plan, TableFailure, TablePlan
from tablectl.model.table import Commit, LiveTable
from tablectl.model.table_options import Optimize
from tablectl.planning.conflict_report import ConflictReport, conflict_report
from tablectl.planning.diff import diff
from tablectl.planning.drift import Drift, questions, table_drift
from tablectl.planning.import_table import policy_of_table
from tablectl.planning.lint import Linted, LintedTable, lint
from tablectl.planning.lint_rules.linted_state import table_subject
from tablectl.planning.plan_file import FORMAT, digest_of
from tablectl.planning.plan_table import plan_table
from tablectl.policies.config import Config
from tablectl.policies.policy_file import TableEntry, write_policies
from tablectl.policies.spec import Specs, TableSpec
from tablectl.policies.yaml_nodes import SourceFile
from tablectl.reports.mask import Mask
from tablectl.selection import LocatedTable, OpenCatalog, Selection, depth_for, failure_of, locate
from tablectl.storage.disk_log import free_bytes
from tablectl.storage.object_stores import StoreOptions
from tablectl.storage.records import RecordStore, open_records, real_place
from tablectl.version import __version__

_DEFAULT_STORES = StoreOptions()
_ALL_COMMITS = 100_000
"""The maximum number of commits to search for our own, as a bound for extreme logs."""

OnRead = Callable[[int, int], None]
"""Progress callback: the number of tables that were read, and the number of all tables."""


def make_plan(
    specs: Specs,
    selection: Selection,
    dialect: str,
    catalog: OpenCatalog,
    stores: StoreOptions = _DEFAULT_STORES,
    on_read: OnRead = lambda _done, _all: None,
    env: str = "",
    severities: Severities = DEFAULT_SEVERITIES,
) -> Plan:
    """The plan for the selected tables. A table that cannot be read is a failure in the plan, and the others are
    planned.

    ``env`` names the environment of the specs and stores. Raises ``InputError`` if patterns contradict each other about
    a live table.
    """
    placed = locate(specs, selection, catalog, stores)
    failures = list(placed.failures)
    tables: list[TablePlan] = []
    unchanged: list[str] = []
    for spec, found in _read(placed, LOOK_BACK, stores, on_read, failures):
        table = plan_table(spec.policy, found, dialect, spec.options, severities)
        if table:
            tables.append(replace(table, tags=tuple(sorted(spec.tags))))
        else:
            unchanged.append(spec.name.text)
    return Plan(
        format=FORMAT,
        tool=__version__,
        dialect=dialect,
        policies=specs.digest,
        env=env,
        tables=tuple(sorted(tables, key=lambda table: table.name)),
        failures=tuple(sorted(failures, key=lambda failure: (failure.name, failure.message))),
        unchanged=tuple(sorted(unchanged)),
        unmatched=placed.unmatched,
    )


def find_drift(
    specs: Specs,
    selection: Selection,
    catalog: OpenCatalog,
    stores: StoreOptions = _DEFAULT_STORES,
    on_read: OnRead = lambda _done, _all: None,
    look_back: int = MOST_COMMITS,
    env: str = "",
) -> Drift:
    """The selected tables that differ from their policies, and the commit that caused each difference.

    Only the histories of these tables are read, at most ``look_back`` commits each. Failures and errors as in
    ``make_plan``.
    """
    placed = locate(specs, selection, catalog, stores)
    failures = list(placed.failures)
    as_declared: list[str] = []
    differing: list[tuple[TableSpec, LiveTable, tuple[Change, ...]]] = []
    for spec, live in _read(placed, 0, stores, on_read, failures):
        changes = diff(spec.policy, live)
        if changes:
            differing.append((spec, live, changes))
        else:
            as_declared.append(spec.name.text)
    inquiries = (BlameQuery(live, questions(changes), look_back) for _, live, changes in differing)
    tables = (
        table_drift(
            *known,
            trace.origins,
            applied=next((commit for commit in trace.commits if read_stamp(commit.user_metadata)), None),
            trouble=one_line(trace.trouble) if trace.trouble else "",
        )
        for known, trace in zip(differing, blame_many(inquiries, stores), strict=True)
    )
    return Drift(
        tables=tuple(sorted(tables, key=lambda table: table.spec.name.text)),
        failures=tuple(sorted(failures, key=lambda failure: (failure.name, failure.message))),
        as_declared=tuple(sorted(as_declared)),
        unmatched=placed.unmatched,
        look_back=look_back,
        env=env,
    )


def lint_tables(
    specs: Specs,
    selection: Selection,
    dialect: str,
    catalog: OpenCatalog,
    stores: StoreOptions = _DEFAULT_STORES,
    on_read: OnRead = lambda _done, _all: None,
    severities: Severities = DEFAULT_SEVERITIES,
) -> Linted:
    """The lint findings on the selected tables in their planned state, including tables without changes.

    Reads the history of each table, and the layout of partitioned ones. Failures and errors as in ``make_plan``.
    """
    placed = locate(specs, selection, catalog, stores)
    failures = list(placed.failures)
    tables = []
    whole = Depth(LOOK_BACK, layout=True)
    for spec, live in _read_as(placed, lambda _spec: lambda _live: whole, stores, on_read, failures):
        subject = table_subject(spec.policy, live, diff(spec.policy, live), dialect, options=spec.options)
        tables.append(LintedTable(spec.name.text, lint(subject, spec.name, "lint", severities)))
    return Linted(
        tables=tuple(sorted(tables, key=lambda table: table.name)),
        failures=tuple(sorted(failures, key=lambda failure: (failure.name, failure.message))),
        unmatched=placed.unmatched,
    )


@dataclass(frozen=True, slots=True)
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

    @property
    def exit_code(self) -> ExitCode:
        """1 if a table cannot be read, otherwise 0."""
        return ExitCode.ERROR if self.failures else ExitCode.DONE


def import_policies(
    asked: Specs,
    known: Mapping[str, SourceFile],
    config: Config,
    catalog: OpenCatalog,
    on_read: OnRead = lambda _done, _all: None,
) -> Imported:
    """Policies for the tables in ``asked``, except for those in ``known`` (see ``declared_already``).

    Reads no history. Failures as in ``make_plan``.
    """
    stores, engine = store_options(config), config.engine
    placed = locate(asked, Selection(), catalog, stores)
    skipped, fresh = list[tuple[str, SourceFile]](), list[tuple[TableSpec, str]]()
    for spec, where in placed.tables:
        source = known.get(spec.name.key) or known.get(canonical_location(where))
        if source:
            skipped.append((spec.name.text, source))
        else:
            fresh.append((spec, where))
    failures = list(placed.failures)
    entries: list[TableEntry] = []
    for spec, live in _read(replace(placed, tables=tuple(fresh)), 0, stores, on_read, failures):
        try:
            entries.append(_unmasked(policy_of_table(live, engine.dialect, engine.catalog), Mask(config.reports.mask)))
        except NameSyntaxError as error:
            failures.append(TableFailure(name=spec.name.text, message=str(error)))
    return Imported(
        text=write_policies(entries) if entries else "",
        tables=tuple(sorted(entry.key for entry in entries)),
        left_out={entry.key: entry.left_out for entry in entries if entry.left_out},
        skipped=tuple(skipped),
        failures=tuple(sorted(failures, key=lambda failure: (failure.name, failure.message))),
        unmatched=placed.unmatched,
    )


def _unmasked(entry: TableEntry, mask: Mask) -> TableEntry:
    """The entry without the values that reports hide, because a policy is committed to Git."""
    hidden = tuple(each[:2] for each in entry.declared if mask.hides_value(each[0], each[1]))
    return replace(
        entry,
        declared=tuple(each for each in entry.declared if each[:2] not in hidden),
        left_out=(*entry.left_out, *(f"{key or name}: `reports.mask` hides its value" for name, key in hidden)),
    )


def _read(
    placed: LocatedTable, look_back: int, stores: StoreOptions, on_read: OnRead, failures: list[TableFailure]
) -> Iterator[tuple[TableSpec, LiveTable]]:
    """The live tables. Unreadable ones are added to ``failures``. ``look_back`` applies to tables that change."""
    yield from _read_as(placed, lambda spec: depth_for(spec, look_back), stores, on_read, failures)


def _read_as(
    placed: LocatedTable,
    depth_of: Callable[[TableSpec], Callable[[LiveTable], Depth]],
    stores: StoreOptions,
    on_read: OnRead,
    failures: list[TableFailure],
) -> Iterator[tuple[TableSpec, LiveTable]]:
    """The live tables, each read to the depth that ``depth_of`` returns."""
    requests = (ReadRequest(spec.name, location, depth_of(spec)) for spec, location in placed.tables)
    for done, found in enumerate(read_many(requests, options=stores)):
        on_read(done + 1, len(placed.tables))
        spec, _ = placed.tables[done]
        if isinstance(found, LiveError):
            failures.append(failure_of(spec.name.text, found))
        else:
            yield spec, found


def make_outlook(
    name: TableName,
    spec: TableSpec | None,
    dialect: str,
    locate: Callable[[TableName], str],
    stores: StoreOptions = _DEFAULT_STORES,
    clients: Sequence[tuple[Client, bool | None]] = (),
) -> ConflictReport:
    """Conflicts between writers of one table, with or without a policy. ``clients`` as in ``conflict_report``.

    ``locate`` is called only if neither the name nor the policy has the table's location. Raises ``LiveError`` if the
    table cannot be read.
    """
    live = read_live(name, spec, locate, stores)
    if spec is None:
        return conflict_report(live, None, dialect, clients)
    # The table's size was not read: it matters for the rewrite, but not for conflicts.
    return conflict_report(live, spec.policy, dialect, clients, replace(spec.options, max_bytes=None))


def read_live(
    name: TableName,
    spec: TableSpec | None,
    locate: Callable[[TableName], str],
    stores: StoreOptions = _DEFAULT_STORES,
) -> LiveTable:
    """One table with its history, located as in ``make_outlook``."""
    location = name.parts[0] if name.is_path else (spec and spec.location) or locate(name)
    return read_table(name, location, options=stores)


@dataclass(frozen=True, slots=True)
class LogReader:
    """The ``LiveReader`` that reads the Delta log."""

    stores: StoreOptions = field(default_factory=lambda: _DEFAULT_STORES)

    def read(
        self,
        name: TableName,
        location: str,
        *,
        version: int | None = None,
        counts: bool = False,
        truncation: bool = False,
        marks: Optimize | None = None,
    ) -> LiveTable:
        """The table at a version, by default the newest."""
        return read_table(
            name, location, version=version, counts=counts, truncation=truncation, marks=marks, options=self.stores
        )

    def commits(self, location: str, *, after: int) -> tuple[Commit, ...]:
        """The commits after a version, newest first."""
        return read_commits(location, after=after, limit=_ALL_COMMITS, options=self.stores)

    def free(self, location: str) -> int | None:
        """The free bytes at a table's location, if it is on a disk of this machine; otherwise ``None``."""
        path = canonical_location(location)
        return free_bytes(path) if path.startswith("/") else None


@dataclass(frozen=True, slots=True)
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


def run(
    plan: Plan,
    open_engine: Callable[[str], Engine],
    config: Config,
    environ: Mapping[str, str],
    control: Control,
    directory: Path = Path(),
    approve: Approve = approve_all,
) -> RunReport:
    """Applies a plan in one protected window. ``open_engine`` takes the stamp for every commit.

    Hooks run in ``directory``, the user's repository. ``approve`` is called for each table under its lease (see
    ``approval``). A plan without work starts no engine. Raises ``PlanFileError`` if the engine's dialect is not the
    plan's.
    """
    reasons = (control.proceed[:LONGEST_REASON], control.override[:LONGEST_REASON])
    stamp = Stamp(uuid4().hex[:12], digest_of(plan), *reasons)
    # A run that was killed can have unfinished hooks on tables that now match their policies.
    asked = [parse_table(name) for name in plan.unchanged] if config.window.after else []
    needed = any(table.applies for table in plan.tables) or not all(table.is_path for table in asked)
    engine = open_engine(stamp.text()) if needed else _NoEngine(plan.dialect)
    try:
        if engine.dialect != plan.dialect:
            raise PlanFileError(
                f"the plan is for the {plan.dialect} dialect and the engine speaks {engine.dialect}",
                "set engine.dialect in tablectl.yaml and plan again",
            )
        window = replace(_window(engine, stamp, config, control, directory), approve=approve)
        return run_plan(window, _schedule(stamp, config, environ), plan, tuple(_places(asked, engine)))
    finally:
        engine.close()


def approval_of(plan: Plan, specs: Specs | None, config: Config, max_bytes: int | None) -> Approval:
    """The check that ``run`` makes for each table of a plan. ``None`` for ``specs`` trusts the plan.

    Raises ``PlanFileError`` if the plan contains anything that the policies do not declare.
    """
    tables = check_declared(plan, specs, config.engine.dialect) if specs is not None else None
    return Approval(plan.dialect, tables, config.severities, store_options(config), max_bytes)


def _places(tables: Iterable[TableName], engine: Engine) -> Iterator[OwedHookTable]:
    for table in tables:
        with suppress(LiveError, EngineError):  # these tables were not requested by name
            yield OwedHookTable(table.text, table.parts[0] if table.is_path else engine.location(table))


def _window(engine: Engine, stamp: Stamp, config: Config, control: Control, directory: Path) -> RunContext:
    terms = WindowSettings(
        drain=float(config.window.drain),
        before=config.window.before,
        after=config.window.after,
        run_hook=CommandRunner(directory, float(config.window.hook_timeout)),
        calendar=config.window.calendar,
        exclusive_commits=config.engine.exclusive_commits,
        wait=control.wait * 60,
        watch=control.watch * 60,
    )
    return RunContext(
        engine=engine,
        reader=LogReader(store_options(config)),
        clock=control.clock,
        stamp=stamp,
        stop=control.stop,
        notify=control.notify,
        budget=config.window.ttl / 4,
        terms=terms,
    )


def store_options(config: Config) -> StoreOptions:
    """How to reach object stores: the same for the log of a table and for the records next to it."""
    return StoreOptions(families=config.stores.families())


def record_store(location: str, config: Config) -> RecordStore:
    """The lease records of the table at a location."""
    return open_records(location, config.state, real_place(location), store_options(config))


def _schedule(stamp: Stamp, config: Config, environ: Mapping[str, str]) -> Schedule:
    claim = Claim(
        owner=current_owner(environ, __version__), run=stamp.run, digest=stamp.plan, ttl=float(config.window.ttl)
    )
    return Schedule(
        parallel=config.window.parallel,
        claim=claim,
        records=lambda location: record_store(location, config),
        together=config.window.together,
    )


@dataclass(frozen=True, slots=True)
class _NoEngine:
    """Replaces the engine if a plan has nothing to run, so that an empty apply starts no Spark."""

    dialect: str
    shared: bool = True
    stated: bool = True
    address: str = ""
    bound: float | None = 0

    def log_store(self, scheme: str) -> str:
        raise EngineError(f"no engine was started to tell its log store for {scheme}")

    def location(self, table: TableName) -> str:
        raise EngineError(f"no engine was started to look up {table.text}")

    def alive(self) -> bool:
        """Always true: nothing is running."""
        return True

    def interrupt(self, tag: str, address: str = "") -> bool | None:  # as ``Engine.interrupt``
        """Always ``None``: no operation is known."""
        return None

    def execute(self, sql: str, tag: str = "") -> None:  # as ``Engine.execute``
        raise EngineError(f"no engine was started to run {sql}")

    def overwrite(
        self,
        table: TableName,
        columns: Sequence[tuple[str, Mapping[str, Any]]],
        partitions: Sequence[str],
        tag: str = "",
    ) -> None:
        raise EngineError(f"no engine was started to write {table.text}")

    def row(self, sql: str) -> tuple[str | None, ...]:
        raise EngineError(f"no engine was started to run {sql}")

    def close(self) -> None:
        """Does nothing."""
