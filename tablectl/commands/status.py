"""``tablectl status``: the state of every table of a lake."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import time
from types import MappingProxyType
from typing import Annotated, Any

import typer

from tablectl.applying.copy_records import copy_text
from tablectl.applying.upkeep_records import due_by_records
from tablectl.attributes.policy import attribute
from tablectl.commands.lint import findings_on, state_of
from tablectl.commands.parameters import (
    OF_PAGES,
    Cache,
    Choice,
    Env,
    Exclude,
    FailOn,
    LookBack,
    PageFormat,
    PageReports,
    Place,
    Remote,
    Select,
    Tags,
    VarValues,
    WholeCatalog,
    function,
    table_names,
    texts,
)
from tablectl.commands.project import Project
from tablectl.commands.read_tables import LocatedTable, OnRead, ignore_progress, locate, locate_tables, read_located
from tablectl.commands.report_facts import context_here
from tablectl.commands.report_files import ReportFiles, report_of
from tablectl.commands.rivals import rivals_of
from tablectl.delta import keys
from tablectl.delta.clients import LockedOut, judge
from tablectl.delta.locations import canonical_location
from tablectl.delta.names import column_text
from tablectl.delta.properties import DEFAULT_FILE_RETENTION, DEFAULT_LOG_RETENTION
from tablectl.delta.protocol import Protocol
from tablectl.lint_rules.stored_texts import breaking_keys
from tablectl.log.blame import BlameQuery, BlameResult, blame
from tablectl.log.reader import Reading, read_commits
from tablectl.model.commit import Commit
from tablectl.model.errors import ExitCode, LiveError, TablectlError, UsageError, one_line
from tablectl.model.plan import Change
from tablectl.model.safe_text import natural_key, time_text, value_text
from tablectl.model.stamp import read_stamp
from tablectl.model.table import LOOK_BACK, Depth, LiveTable
from tablectl.planning.diff import depth_for, diff
from tablectl.planning.drift import TableDrift, questions, table_drift
from tablectl.policies.declared_tables import Specs, TableSpec
from tablectl.policies.repository import Paths, has_policies
from tablectl.reports.drift_document import Provenance, commit_author, provenance, table_provenance
from tablectl.reports.render import ReportFormat
from tablectl.reports.rivals import rival_price, rival_who
from tablectl.reports.status_document import STATES, LakeStatus, TableStatus, document_of_status

_OLDEST = Protocol(1, 1)


_Debt = Annotated[
    bool, typer.Option("--debt", help="Count files and unclustered data from the whole log. Takes longer.")
]


@dataclass(frozen=True)
class StatusOptions(Choice):
    """The tables to look at, and how closely."""

    tables: Sequence[str] = ()
    """Only these tables and patterns, with a policy or without."""
    look_back: int = 1000
    debt: bool = False


def status_command(
    ctx: typer.Context,
    tables: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TABLES",
            help="Only these tables and patterns, with a policy or without.",
            autocompletion=table_names,
        ),
    ] = None,
    *,
    debt: _Debt = False,
    fail_on: FailOn = None,
    select: Select = None,
    exclude: Exclude = None,
    tags: Tags = None,
    everything: WholeCatalog = False,
    look_back: LookBack = 1000,
    variables: VarValues = None,
    env: Env = None,
    remote: Remote = None,
    cache: Cache = True,
    form: PageFormat = ReportFormat.TEXT,
    report: PageReports = None,
) -> ExitCode:
    """Show the state of every table: policy, drift, last apply, protocol, debt, retention.

    Example: tablectl status --report lake.html 'lake.sales.*'
    """
    reports = ReportFiles.of(form, report, known=OF_PAGES)
    asked = StatusOptions(None, select, exclude, tags, tables=tables or (), look_back=look_back, debt=debt)
    place = Place(variables=variables, env=env, remote=remote, cache=cache)
    with place.open(ctx.obj.note) as project, ctx.obj.progress() as on_read:
        reports.check()
        status = collect_status(project, asked, everything=everything, on_read=on_read)
    reports.write(report_of(status, partial(document_of_status, mask=project.mask), context_here()), ctx.obj)
    slipped = (ExitCode.CHANGES,) if fail_on and status.unmanaged else ()
    return ExitCode.worst(status.exit_code, *slipped)


@function
def status(
    paths: Paths = None,
    *,
    tables: Sequence[str] | None = None,
    debt: _Debt = False,
    select: Sequence[str] | None = None,
    exclude: Sequence[str] | None = None,
    tags: Sequence[str] | None = None,
    look_back: LookBack = 1000,
    variables: Mapping[str, str] | None = None,
    env: str | None = None,
    remote: Remote = None,
    cache: Cache = True,
    directory: str | Path = ".",
    spark: Any = None,
) -> LakeStatus:
    """The state of every table of the policies, or of ``tables``, with a policy or without (``tablectl status``).
    Changes nothing.

    Options and errors as in ``drift``. A table that cannot be read is a row with its error.
    """
    named = texts(tables, "tables")
    asked = StatusOptions(paths, select, exclude, tags, tables=named, look_back=look_back, debt=debt)
    place = Place(variables=variables, env=env, remote=remote, cache=cache, directory=directory, spark=spark)
    with place.open() as project:
        return collect_status(project, asked)


@dataclass(frozen=True, slots=True)
class _Found:
    spec: TableSpec
    live: LiveTable
    managed: bool
    changes: tuple[Change, ...]
    blamed: BlameResult | None
    """What made the changes; ``None`` if there are none."""
    debt: bool
    """Whether everything is looked for, whatever it costs."""


def collect_status(
    project: Project, options: StatusOptions, *, everything: bool = False, on_read: OnRead = ignore_progress
) -> LakeStatus:
    """The state of the selected tables of the policies, or of the tables asked for; with ``everything`` of all in the
    catalog, too.

    A table that cannot be read is a row with its error. Raises as ``locate``.
    """
    now = int(time() * 1000)
    others = project.requested(options.tables, everything=everything)
    specs, selection = project.any_policies(options.paths, others), options.selection
    if others is None and not options.paths and not has_policies(project.config, project.directory):
        hint = "name a folder (`tablectl status /data/lake`), or a pattern (`'lake.sales.*'`), or give --all"
        raise UsageError("no table is named, and no policy names one", hint)
    # Without policies, the others alone are asked for.
    managed = locate(project, specs, selection) if others else locate_tables(project, specs, selection)
    more = locate(project, others) if others else None
    further = _besides(managed, more) if more else None
    rows = _slipped(list(_read(project, managed, further, options, on_read)))
    named = {spec.name.text for spec, _ in managed.tables}
    failures = [*managed.failures, *(further.failures if further else ())]
    unmatched = (*managed.unmatched, *(further.unmatched if further else ()))
    if others and more and not everything:
        # All were read, because what was created past the policies follows from the last apply of any table.
        left = _not_asked(managed, others, more)
        rows = [each for each in rows if each.table not in left]
        failures, unmatched = [*more.failures], more.unmatched
    places = {spec.name.text: _place(spec) for spec in specs.tables}
    rows += [
        _unreadable(each.name, each.message, places.get(each.name, ""))
        for each in failures
        if each.name in named or "*" not in each.name
    ]
    return LakeStatus(
        tuple(sorted(rows, key=lambda row: (STATES.index(row.state), natural_key(row.table)))),
        project.config.environment,
        now,
        tuple(each for each in failures if "*" in each.name),
        unmatched,
    )


def _not_asked(managed: LocatedTable, others: Specs, more: LocatedTable) -> set[str]:
    """The tables of the policies besides those asked for. A pattern matches also a table that is gone."""
    places = {canonical_location(where) for _, where in more.tables}
    return {
        spec.name.text
        for spec, where in managed.tables
        if canonical_location(where) not in places and not others.declarations.matching(spec.name)
    }


def _slipped(rows: list[TableStatus]) -> list[TableStatus]:
    """The rows; those of tables younger than the last apply with the command that adopts or changes them."""
    last = max((row.applied_at for row in rows if row.applied_at is not None), default=None)
    return [
        replace(row, slipped=f"tablectl {_ADOPTS[row.state]} {shlex.quote(row.table)}")
        if row.state in _ADOPTS and last is not None and (row.created_at or 0) > last
        else row
        for row in rows
    ]


_ADOPTS: Mapping[str, str] = MappingProxyType({"no policy": "import", "never applied": "plan --select"})
"""The states of tables past which the last apply went, and the command about each."""


def _besides(managed: LocatedTable, others: LocatedTable) -> LocatedTable:
    """The other tables, without those that the policies have under this or another name."""
    places = {canonical_location(where) for _, where in managed.tables}
    names = {spec.name.key for spec, _ in managed.tables}
    kept = tuple(
        (spec, where)
        for spec, where in others.tables
        if canonical_location(where) not in places and spec.name.key not in names
    )
    return replace(others, tables=kept)


def _read(
    project: Project,
    managed: LocatedTable,
    further: LocatedTable | None,
    options: StatusOptions,
    on_read: OnRead,
) -> Iterator[TableStatus]:
    tables = (*managed.tables, *(further.tables if further else ()))
    named = {spec.name for spec, _ in managed.tables}

    def row(spec: TableSpec, reading: Reading) -> TableStatus:
        is_managed, live = spec.name in named, reading.table
        changes = diff(spec.policy, live, project.dialect) if is_managed else ()
        blamed = blame(reading, BlameQuery(live, questions(changes), options.look_back)) if changes else None
        found = _row(project, _Found(spec, live, is_managed, changes, blamed, options.debt))
        rivals = rivals_of(project, live, reading.stores)
        return replace(found, rivals=tuple(f"{rival_who(each)}: {rival_price(each)}" for each in rivals))

    read = read_located(project, tables, lambda spec: partial(_depth, spec, debt=options.debt), row, on_read)
    for spec, where, found in read:
        if isinstance(found, TablectlError):
            yield _unreadable(spec.name.text, one_line(found), _place(spec) if spec.name in named else "", where)
        else:
            yield found


def _depth(spec: TableSpec, live: LiveTable, *, debt: bool) -> Depth:
    """What the policy needs, and the newest commits; with ``debt`` also what costs time in proportion to the files."""
    made = replace(depth_for(spec, LOOK_BACK)(live), look_back=LOOK_BACK)
    if not debt:
        return made
    marks = made.marks or ("incremental" if live.clustering else None)
    return replace(made, counts=True, marks=marks, upkeep=spec.upkeep)


def _unreadable(name: str, error: str, policy: str, location: str = "") -> TableStatus:
    return TableStatus(table=name, location=location, state="not readable", policy=policy, error=error)


def _place(spec: TableSpec) -> str:
    return f"{spec.declared.file}:{spec.declared.line}"


def _row(project: Project, found: _Found) -> TableStatus:
    live, spec, blamed = found.live, found.spec, found.blamed
    commits = blamed.commits if blamed and blamed.commits else live.history
    applied = next((each for each in commits if read_stamp(each.user_metadata)), None)
    row = _facts(live, applied)
    if not found.managed:
        return _with_birth(project, row, live)
    row = replace(
        row,
        state="as declared",
        policy=_place(spec),
        owner=spec.owner,
        locked_out=_locked_out(spec, live),
        findings=_findings(project, found),
        unclustered_bytes=_unclustered(live),
        **_upkeep(project, spec, live),
        copy=_copy(project, found),
    )
    if blamed is None:
        return row
    trouble = one_line(blamed.trouble) if blamed.trouble else ""
    row = _differing(row, table_drift(spec, live, found.changes, blamed.origins, applied=applied, trouble=trouble))
    return _with_birth(project, row, live) if row.state in _ADOPTS else row


def _with_birth(project: Project, row: TableStatus, live: LiveTable) -> TableStatus:
    """The row with the table's first commit, if the log still has it."""
    first = live.history[-1] if live.history else None
    if first is None or first.version:
        try:
            first = next(iter(read_commits(live.location, until=0, limit=1, options=project.stores)), None)
        except LiveError:
            first = None
    return replace(row, created_at=_time(first), created_by=commit_author(first)) if first else row


def _differing(row: TableStatus, drift: TableDrift) -> TableStatus:
    state = table_provenance(drift)
    culprits = [
        each.origin.commit
        for each in drift.differences
        if each.origin.commit and provenance(each, drift) is Provenance.CHANGED
    ]
    newest = max(culprits, key=lambda each: each.version) if culprits else None
    return replace(
        row,
        state=state.value,
        differences=tuple(
            f"{each.change.id}: declared {value_text(each.change.after)}, found {value_text(each.change.before)}"
            for each in drift.differences
        ),
        changed_by=commit_author(newest) if newest else "",
        changed_at=_time(newest),
        error=drift.trouble or row.error,
    )


def _facts(live: LiveTable, applied: Commit | None) -> TableStatus:
    stamp = read_stamp(applied.user_metadata) if applied else None
    level = attribute("isolation").read(live, "")
    unknown = (
        f"unknown reader feature {', '.join(live.unknown)}: files and clustering are not known" if live.unknown else ""
    )
    broken = breaking_keys(live)
    unread = f"Delta Spark cannot read {', '.join(broken)}: `tablectl lint` says which statements fail (L034)" * bool(
        broken
    )
    return TableStatus(
        table=live.name.text,
        location=live.location,
        state="no policy",
        error="; ".join(filter(None, (unknown, unread))),
        version=live.version,
        applied_at=_time(applied),
        applied_run=stamp.run if stamp else "",
        written_at=_time(next((each for each in live.history if not read_stamp(each.user_metadata)), None)),
        reader=live.protocol.reader,
        writer=live.protocol.writer,
        features=tuple(sorted(live.protocol.features)),
        isolation=value_text(level),
        files=live.files,
        bytes=live.bytes,
        file_bytes=live.bytes // live.files if live.bytes is not None and live.files else None,
        vectors=live.vectors,
        unclustered_bytes=_unclustered(live),
        log_retention=live.property(keys.LOG_RETENTION) or _default(DEFAULT_LOG_RETENTION),
        file_retention=live.property(keys.DELETED_FILE_RETENTION) or _default(DEFAULT_FILE_RETENTION),
    )


def _upkeep(project: Project, spec: TableSpec, live: LiveTable) -> dict[str, Any]:
    """What upkeep is due, if it was read."""
    if live.upkeep is None or spec.upkeep is None:
        return {}
    tasks = due_by_records(spec.upkeep, live, int(time() * 1000), partial(project.records, live.location))
    due = (f"{each.kind}{f' since {time_text(each.since)}' if each.since else ''}" for each in tasks if each.due)
    return {
        "upkeep": tuple(due),
        "small_files": live.upkeep.small_files,
        "vacuum_bytes": next((each.bytes for each in tasks if each.kind == "vacuum"), None),
        "log_files": live.upkeep.log,
    }


def _copy(project: Project, found: _Found) -> str:
    """What is left of a copy beside the table. Its records are read if the table needs one, and with ``debt``. A run
    that is killed after the commit of its copy leaves records, too.
    """
    needed = found.spec.options.rewrite == "copy" and any(each.attribute == "partitioning" for each in found.changes)
    if not (needed or found.debt):
        return ""
    try:
        return copy_text(project.records(found.live.location))
    except TablectlError:
        return ""


def _default(interval: str) -> str:
    return f"{interval.removeprefix('interval ')} (default)"


def _time(commit: Commit | None) -> int | None:
    return commit.timestamp if commit and commit.timestamp > 0 else None


def _unclustered(live: LiveTable) -> int | None:
    if live.marks is None or not live.clustering:
        return None
    return live.marks.outside(tuple(map(column_text, live.clustering))).bytes


def _locked_out(spec: TableSpec, live: LiveTable) -> tuple[str, ...]:
    found = (each for name, version in spec.options.clients for each in judge(name, version, _OLDEST, live.protocol))
    return tuple(
        f"{each.client} {each.version} cannot {each.access} it ({each.feature})"
        for each in found
        if isinstance(each, LockedOut)
    )


def _findings(project: Project, found: _Found) -> tuple[str, ...]:
    spec, live = found.spec, found.live
    findings = findings_on(project, spec, state_of(project, spec, live, found.changes))
    return tuple(sorted({each.code for each in findings if each.severity in {"error", "warning"}}))
