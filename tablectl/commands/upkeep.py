"""``tablectl upkeep``: what OPTIMIZE and VACUUM are due by the policies, and with ``--apply`` a run of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from time import time
from typing import Annotated, Any, Literal

import typer

from tablectl.applying.upkeep_records import due_by_records
from tablectl.attributes.predictive_optimization import why_maintained
from tablectl.commands.apply import check_driver, report_run, watched
from tablectl.commands.output import Output
from tablectl.commands.parameters import (
    OF_PAGES,
    WHEN,
    Cache,
    Choice,
    Env,
    Exclude,
    ListFiles,
    PageFormat,
    PageReports,
    Place,
    PolicyPaths,
    Remote,
    Select,
    Tags,
    VarValues,
    Verbose,
    function,
    read_as,
)
from tablectl.commands.project import Project
from tablectl.commands.read_tables import OnRead, ignore_progress, locate_tables, read_tables
from tablectl.commands.report_facts import context_here, plan_context
from tablectl.commands.report_files import ReportFiles, report_of
from tablectl.commands.run_plan import LONGEST_WAIT, Control, RunOptions, read_reason, read_within, run
from tablectl.commands.selection import Selection
from tablectl.commands.shallow_clones import CloneFinder
from tablectl.leases.clock import today
from tablectl.log.reader import Reading
from tablectl.log.recent_commits import read_past_commits
from tablectl.model.calendar import TableWindow, read_minutes
from tablectl.model.commit_contents import UnnamedFiles
from tablectl.model.errors import ExitCode, UsageError
from tablectl.model.expected_loss import hour_of_week
from tablectl.model.plan import Plan, Refusal, TableFailure
from tablectl.model.run_report import RunReport
from tablectl.model.safe_text import natural_key
from tablectl.model.table import LOOK_BACK, Depth, LiveTable
from tablectl.model.upkeep import UpkeepFacts
from tablectl.planning.plan_file import FORMAT
from tablectl.planning.plan_upkeep import (
    FIX_RETENTION,
    VACUUM,
    UpkeepTable,
    upkeep_table,
    why_no_vacuum,
    why_read_by_clones,
)
from tablectl.policies.declared_tables import Specs, TableSpec
from tablectl.policies.repository import Paths
from tablectl.reports.render import ReportFormat
from tablectl.reports.upkeep_document import UPKEEP_STATES, LakeUpkeep, TableUpkeep, document_of_upkeep
from tablectl.storage.log_stores import Stores
from tablectl.version import __version__

MOST_WITH_LOSSES = 100
"""With more tables that have upkeep, the commits of 30 days are not read only to tell what it costs the writers."""
_DAYS = 30
"""The days in whose commits files that failed writes left are looked for."""
_FIX = "leave `upkeep` out of the table's policy (`unmanaged: [upkeep]` cancels an inherited one)"


Wait = Annotated[
    float | None,
    typer.Option(
        "--wait",
        metavar="30m",
        parser=read_as(partial(read_minutes, most=LONGEST_WAIT)),
        min=0,
        max=LONGEST_WAIT,
        help="With --apply: retry tables whose window could not be opened, for so long: 30m, 2h.",
        rich_help_panel=WHEN,
    ),
]
Within = Annotated[
    timedelta | None,
    typer.Option(
        "--within",
        metavar="6h",
        parser=read_as(read_within),
        help="With --apply: how long to wait for a quiet moment: 90m, 6h. Default: not at all.",
        rich_help_panel=WHEN,
    ),
]
Override = Annotated[
    str | None,
    typer.Option(
        "--override",
        metavar="REASON",
        parser=read_as(read_reason),
        help="With --apply: run outside the calendar of tablectl.yaml.",
        rich_help_panel=WHEN,
    ),
]


def upkeep_command(
    ctx: typer.Context,
    paths: PolicyPaths = None,
    *,
    apply: Annotated[bool, typer.Option("--apply", help="Do what is due, in the protected window.")] = False,
    list_files: ListFiles = False,
    select: Select = None,
    exclude: Exclude = None,
    tags: Tags = None,
    wait: Wait = None,
    within: Within = None,
    override: Override = None,
    variables: VarValues = None,
    env: Env = None,
    remote: Remote = None,
    cache: Cache = True,
    form: PageFormat = ReportFormat.TEXT,
    report: PageReports = None,
    verbose: Verbose = False,
) -> ExitCode:
    """Show or do what OPTIMIZE and VACUUM are due by the policies.

    OPTIMIZE runs in slices, so that a guarded writer waits at most `window.upkeep` and never fails. Run it from cron or
    CI as often as you like: what is due is read from the logs.

    Example: tablectl upkeep --apply --select 'lake.sales.*'
    """
    given = {"--override": override, "--wait": wait, "--within": within}
    names = [name for name, value in given.items() if value is not None]
    if names and not apply:
        raise UsageError(
            f"{', '.join(names)}: only with --apply",
            f"`tablectl upkeep --apply {names[0]} …` does what is due; `tablectl upkeep` lists it",
        )
    out: Output = ctx.obj
    reports, choice = ReportFiles.of(form, report, known=OF_PAGES), Choice(paths, select, exclude, tags)
    place = Place(variables=variables, env=env, remote=remote, cache=cache)
    with place.open(out.note) as project:
        reports.check()
        with out.progress() as on_read:
            found = collect_upkeep(project, choice, on_read, list_files=list_files)
        if not apply:
            make = partial(document_of_upkeep, mask=project.mask)
            reports.write(report_of(found.lake, make, context_here(), verbose=verbose), out)
            return found.lake.exit_code
        plan = found.plan(project)
        context = replace(plan_context(plan, project, paths, out, reports), plan=None)
        options = _run_options(override, wait, within)
        done = watched(out, lambda control: do_upkeep(project, found, control, options))
        return report_run(project, plan, done, reports, context, out, verbose=verbose)


@function
def upkeep(
    paths: Paths = None,
    *,
    list_files: ListFiles = False,
    select: Sequence[str] | None = None,
    exclude: Sequence[str] | None = None,
    tags: Sequence[str] | None = None,
    variables: Mapping[str, str] | None = None,
    env: str | None = None,
    remote: Remote = None,
    cache: Cache = True,
    directory: str | Path = ".",
    spark: Any = None,
) -> LakeUpkeep:
    """What OPTIMIZE and VACUUM are due by the policies (``tablectl upkeep``). Changes nothing.

    Options and errors as in ``plan``. A table that cannot be read is an entry with its reason.
    """
    place = Place(variables=variables, env=env, remote=remote, cache=cache, directory=directory, spark=spark)
    choice = Choice(paths, select, exclude, tags)
    with place.open() as project:
        return collect_upkeep(project, choice, list_files=list_files).lake


@function
def run_upkeep(
    paths: Paths = None,
    *,
    list_files: ListFiles = False,
    select: Sequence[str] | None = None,
    exclude: Sequence[str] | None = None,
    tags: Sequence[str] | None = None,
    wait: Wait = None,
    within: Within = None,
    override: Override = None,
    variables: Mapping[str, str] | None = None,
    env: str | None = None,
    remote: Remote = None,
    cache: Cache = True,
    directory: str | Path = ".",
    spark: Any = None,
    driver: str | None = None,
    control: Control | None = None,
) -> RunReport:
    """Does what is due, in the protected window (``tablectl upkeep --apply``).

    ``RunReport.exit_code`` is the result. Options and errors as in ``plan``; ``wait``, ``within``, ``override``,
    ``driver`` and ``control`` as in ``apply``.
    """
    check_driver(driver, spark)
    place = Place(variables=variables, env=env, remote=remote, cache=cache, directory=directory, spark=spark)
    choice = Choice(paths, select, exclude, tags)
    with place.open(driver=driver) as project:
        found = collect_upkeep(project, choice, list_files=list_files)
        return do_upkeep(project, found, control or Control(), _run_options(override, wait, within))


def _run_options(override: str | None, wait: float | None, within: timedelta | None) -> RunOptions:
    when: Literal["quiet"] | None = "quiet" if within else None
    return RunOptions(override=override or "", wait=wait or 0, when=when, within=within)


def do_upkeep(project: Project, found: FoundUpkeep, control: Control, options: RunOptions) -> RunReport:
    """Do what is due. Raises as ``run_plan.run``."""
    return run(project, found.plan(project), control, options)


@dataclass(frozen=True, slots=True)
class FoundUpkeep:
    """What is due, for people and for a run."""

    lake: LakeUpkeep
    tables: tuple[UpkeepTable, ...]
    """The tables on which something is due, or that are refused."""
    specs: Specs

    def plan(self, project: Project) -> Plan:
        """The run's order of work, in the form of a plan. No file holds it."""
        unread = (each for each in self.lake.tables if each.state == "not readable")
        failures = (*self.lake.failures, *(TableFailure(name=each.table, message=each.reason) for each in unread))
        return Plan(
            format=FORMAT,
            tool=__version__,
            dialect=project.dialect,
            policies=self.specs.digest,
            env=project.config.environment,
            tables=self.tables,
            failures=failures,
        )


def collect_upkeep(
    project: Project, choice: Choice, on_read: OnRead = ignore_progress, *, list_files: bool
) -> FoundUpkeep:
    """What is due on the selected tables whose policy declares upkeep. Raises as ``locate``."""
    now, specs, selection = int(time() * 1000), project.policies(choice.paths), choice.selection
    located = locate_tables(project, specs, selection)
    wanted = replace(located, tables=tuple(each for each in located.tables if each[0].upkeep is not None))
    failures = list[TableFailure]()
    losses = len(wanted.tables) <= MOST_WITH_LOSSES
    depths = partial(_depth, project, now=now, losses=losses)
    make = partial(_made, project, now=now, list_files=list_files)
    found = list(read_tables(project, wanted, depths, make, on_read, failures))
    named = {spec.name.text for spec, _ in wanted.tables}
    tables = sorted((table for _, (_, table) in found if table is not None), key=lambda table: table.name)
    vacuums = [each for each in tables if any(one.id == VACUUM for one in each.statements)]
    finder = CloneFinder(project, specs, vacuums)
    tables = [replace(each, clones=partial(finder.of, each.location)) if each in vacuums else each for each in tables]
    rows = [row for _, (row, _) in found]
    if selection == Selection():  # else it would look up all other tables, which only VACUUM needs
        refused = {each.location: why for each in vacuums if (why := why_read_by_clones(finder.of(each.location))[0])}
        rows = [_refused(row, refused.get(row.location, "")) for row in rows]
    rows += [
        TableUpkeep(table=each.name, state="not readable", reason=each.message)
        for each in (*located.failures, *failures)
        if each.name in named or "*" not in each.name
    ]
    lake = LakeUpkeep(
        tuple(sorted(rows, key=lambda row: (UPKEEP_STATES.index(row.state), natural_key(row.table)))),
        project.config.environment,
        now,
        tuple(each for each in located.failures if "*" in each.name and each.name != "*"),
        located.unmatched,
        selection != Selection(),
    )
    return FoundUpkeep(lake, tuple(tables), specs)


def _refused(row: TableUpkeep, why: str) -> TableUpkeep:
    return replace(row, state="refused", reason="; ".join(filter(None, (row.reason, why)))) if why else row


def _depth(project: Project, spec: TableSpec, *, now: int, losses: bool) -> Callable[[LiveTable], Depth]:
    asks = project.catalogs is not None

    def costs(live: LiveTable) -> bool:
        assert spec.upkeep is not None
        tasks = due_by_records(spec.upkeep, live, now, partial(project.records, live.location))
        return any(each.due and each.kind == "optimize" for each in tasks)

    def depth(live: LiveTable) -> Depth:
        if asks and live.entry is None:
            return Depth(entry=True)
        if _locked(spec) or why_maintained(live, spec.policy.predictive_optimization, project.dialect):
            return Depth()
        return Depth(LOOK_BACK, upkeep=spec.upkeep, losses=costs if losses else None)

    return depth


def _made(
    project: Project, spec: TableSpec, reading: Reading, *, now: int, list_files: bool
) -> tuple[TableUpkeep, UpkeepTable | None]:
    live, policy = reading.table, spec.upkeep
    assert policy is not None
    row = TableUpkeep(
        table=spec.name.text,
        location=live.location,
        state="not due",
        policy=f"{spec.declared.file}:{spec.declared.line}",
        owner=spec.owner,
    )
    if lock := _locked(spec):
        return replace(row, reason=lock), None
    why = why_maintained(live, spec.policy.predictive_optimization, project.dialect)
    tasks = () if why else due_by_records(policy, live, now, partial(project.records, live.location))
    due = any(each.due for each in tasks)
    retention = spec.policy.retention or {}
    table = replace(
        upkeep_table(policy, live, tasks, project.dialect, spec.options),
        refusals=(Refusal(change="upkeep", reason=why, fix=_FIX),) if why else (),
        tags=tuple(sorted(spec.tags)),
        owner=spec.owner,
        keeps=retention.get("deleted_files"),
        window=_window(project, spec),
    )
    if why:
        return replace(row, state="refused", reason=why), table
    facts, loss = live.upkeep or UpkeepFacts(), table.loss
    hour, week = hour_of_week(now / 1000), loss.week if loss else ()
    unnamed = _unnamed(project, live.location) if list_files else None
    kept = why_no_vacuum(live, table.keeps) if any(each.due and each.kind == "vacuum" for each in tasks) else ""
    row = replace(
        row,
        state="refused" if kept else "due" if due else "not due",
        reason=f"{kept}: {FIX_RETENTION}" if kept else "",
        tasks=tasks,
        files=facts.files,
        bytes=facts.bytes,
        small_files=facts.small_files,
        small_bytes=facts.small_bytes,
        writers=facts.writers[:5],
        unnamed_files=unnamed.files + unnamed.newer[0] if unnamed else None,
        unnamed_bytes=unnamed.bytes + unnamed.newer[1] if unnamed else None,
        failed_now=round(week[hour].failed, 3) if week else None,
        failed_least=round(min(each.failed for each in week), 3) if week else None,
        quietest=loss.quietest if loss else None,
        unknown=loss.unknown if loss else "",
    )
    return row, table if due else None


def _unnamed(project: Project, location: str) -> UnnamedFiles | None:
    """The files that failed writes left; ``None`` if the log does not tell."""
    with Stores(project.stores) as stores:
        return read_past_commits(stores, location, _DAYS, list_files=True).unnamed


def _locked(spec: TableSpec) -> str:
    """The lock of a table that holds now, for people; empty without one. A locked table takes no upkeep."""
    lock = spec.options.locked
    return lock.text if lock and lock.holds(today()) else ""


def _window(project: Project, spec: TableSpec) -> TableWindow:
    """Writers get half of the time for which others may wait to end."""
    return replace(spec.window or TableWindow(), drain=max(1, int(project.config.window.upkeep / 2)))
