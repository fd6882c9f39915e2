"""``tablectl advise``: what to declare, from the logs of tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from tablectl.commands.output import Output
from tablectl.commands.parameters import (
    LIMITS,
    OF_PAGES,
    Cache,
    Choice,
    Env,
    Exclude,
    ListFiles,
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
from tablectl.commands.read_tables import LocatedTable, OnRead, ignore_progress, locate, read_located
from tablectl.commands.report_facts import context_here
from tablectl.commands.report_files import ReportFiles, report_of
from tablectl.commands.user_files import check_writable, write_file
from tablectl.delta.names import TableName, parse_table
from tablectl.insight.advice.advice_records import Advice, Declared, LakeAdvice, TableAdvice, TableFacts
from tablectl.insight.advice.advise import advise as advise_table
from tablectl.insight.advice.advise import document_of_advice
from tablectl.insight.advice.jobs import find_jobs
from tablectl.log.column_values import column_values
from tablectl.log.reader import Reading
from tablectl.log.recent_commits import read_past_commits
from tablectl.log.stream_checkpoint import read_streams
from tablectl.model.commit import WriteHistory
from tablectl.model.errors import ExitCode, TablectlError, UsageError, one_line
from tablectl.model.safe_text import natural_key
from tablectl.model.table import LOOK_BACK, Depth, LiveTable
from tablectl.policies.declared_tables import Specs, TableSpec
from tablectl.policies.effective_policy import spec_finder
from tablectl.policies.repository import Paths
from tablectl.policies.write_yaml import TableEntry, table_key, write_entry, write_policies
from tablectl.reports.render import ReportFormat

_ADVISED = "Written by `tablectl advise`: what it recommends. What no line names is not managed."


_Made = TypeVar("_Made")


Days = Annotated[
    int,
    typer.Option(
        "--days", metavar="DAYS", min=1, max=365, help="How many days of commits to read.", rich_help_panel=LIMITS
    ),
]


@dataclass(frozen=True, slots=True)
class Past:
    """How much of the logs of tables to read."""

    days: int = 30
    """The days before a table's newest commit."""
    list_files: bool = False


def advise_command(
    ctx: typer.Context,
    tables: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TABLES",
            help="Tables and patterns; they need no policy. Default: all tables of the policies.",
            autocompletion=table_names,
        ),
    ] = None,
    *,
    file: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write a new policy file that declares the advice.")
    ] = None,
    list_files: ListFiles = False,
    select: Select = None,
    exclude: Exclude = None,
    tags: Tags = None,
    everything: WholeCatalog = False,
    days: Days = 30,
    variables: VarValues = None,
    env: Env = None,
    remote: Remote = None,
    cache: Cache = True,
    form: PageFormat = ReportFormat.TEXT,
    report: PageReports = None,
) -> ExitCode:
    """Say which settings would save failed writes, bytes and files, and why, from the logs of tables.

    Example: tablectl advise 'lake.sales.*' --list-files
    """
    out: Output = ctx.obj
    reports = ReportFiles.of(form, report, known=OF_PAGES)
    place = Place(variables=variables, env=env, remote=remote, cache=cache)
    with place.open(out.note) as project, out.progress() as on_read:
        reports.check()
        check_new(file)
        others = project.requested(tables or (), everything=everything)
        policies = project.any_policies(asked=others)
        if others is None and not policies.tables and not policies.patterns:
            raise UsageError(
                "no tables are named, and no policy names any",
                "name tables or patterns, such as `tablectl advise 'lake.sales.*'`; `--all` takes the whole catalog",
            )
        choice, past = Choice(None, select, exclude, tags), Past(days, list_files)
        found = _collect(project, policies, others, choice, past, on_read)
    reports.write(report_of(found, document_of_advice, context_here()), out)
    entries = [_entry(project, parse_table(each.table), each.advice) for each in found.tables if each.yaml]
    write_declared(file, entries, _ADVISED, "tablectl plan", out)
    return found.exit_code


@function
def advise(
    paths: Paths = None,
    *,
    tables: Sequence[str] | None = None,
    everything: bool = False,
    select: Sequence[str] | None = None,
    exclude: Sequence[str] | None = None,
    tags: Sequence[str] | None = None,
    days: Days = 30,
    list_files: ListFiles = False,
    variables: Mapping[str, str] | None = None,
    env: str | None = None,
    remote: Remote = None,
    cache: Cache = True,
    directory: str | Path = ".",
    spark: Any = None,
) -> LakeAdvice:
    """What to declare, from the logs of the tables of the policies, or of ``tables`` (``tablectl advise``). Changes
    nothing.

    Options and errors as in ``plan``. A table that cannot be read is an entry with its error.
    """
    place = Place(variables=variables, env=env, remote=remote, cache=cache, directory=directory, spark=spark)
    choice = Choice(paths, select, exclude, tags)
    with place.open() as project:
        others = project.requested(texts(tables, "tables"), everything=everything)
        return _collect(project, project.any_policies(paths, others), others, choice, Past(days, list_files))


def check_new(file: Path | None) -> None:
    """Raises ``TablectlError`` if a file of policies exists or cannot be written."""
    if file is None:
        return
    if file.exists():
        raise UsageError(f"{file} exists", "name a new file, and move what you want into your policies")
    check_writable(file)


def write_declared(file: Path | None, entries: Sequence[TableEntry], title: str, following: str, out: Output) -> None:
    """Writes policies, if a file is asked for, and says what to run next."""
    if file is None:
        return
    if not entries:
        out.note("there is nothing to declare: no file was written")
        return
    write_file(file, write_policies(entries, title).encode())
    out.note(f"wrote {file}: review it, then run `{following}`")


def _collect(
    project: Project,
    specs: Specs,
    others: Specs | None,
    choice: Choice,
    past: Past,
    on_read: OnRead = ignore_progress,
) -> LakeAdvice:
    """The advice for ``others``, which need no policy, or without any for the selected tables of the policies.

    A table that cannot be read is an entry with its error. Raises as ``locate``.
    """
    found = locate(project, others) if others else locate(project, specs, choice.selection)
    tables = [
        TableAdvice(table=spec.name.text, location=where, commits=0, error=one_line(made))
        if isinstance(made, TablectlError)
        else made
        for spec, where, made in each_table(project, specs, found, past, partial(_advised, project), on_read)
    ]
    return LakeAdvice(
        tuple(sorted(tables, key=lambda each: natural_key(each.table))),
        found.failures,
        found.unmatched,
    )


def each_table(
    project: Project,
    specs: Specs,
    found: LocatedTable,
    depth: Past,
    make: Callable[[TableSpec, str, TableFacts], _Made],
    on_read: OnRead = ignore_progress,
) -> Iterator[tuple[TableSpec, str, _Made | TablectlError]]:
    """What ``make`` makes of each table with its past, under the policy that ``specs`` has for it; or why it cannot be
    read.
    """
    find = spec_finder(specs)
    tables = [(find(spec.name) or spec, where) for spec, where in found.tables]

    def made(spec: TableSpec, reading: Reading) -> _Made:
        _, where = tables[reading.position]
        return make(spec, where, _facts(project, spec, where, reading, depth))

    return read_located(project, tables, lambda _spec: _depth, made, on_read)


def _facts(project: Project, spec: TableSpec, location: str, reading: Reading, depth: Past) -> TableFacts:
    live, stores = reading.table, reading.stores
    past = read_past_commits(stores, location, depth.days, list_files=depth.list_files)
    commits = tuple(each.commit for each in past.commits)
    return TableFacts(
        live=replace(live, past=WriteHistory(commits, past.cut)),
        past=past,
        jobs=find_jobs(past.commits),
        dialect=project.dialect,
        policy=spec.policy,
        options=spec.options,
        streams=read_streams(stores, spec.options.streams, live.table_id, location),
        values=partial(column_values, stores, location, live.version),
    )


def _advised(project: Project, spec: TableSpec, location: str, facts: TableFacts) -> TableAdvice:
    commits = facts.past.commits
    found, untold = advise_table(facts, project.mask.table_plan)
    return TableAdvice(
        table=spec.name.text,
        location=location,
        commits=len(commits),
        since=min((each.commit.timestamp for each in commits if each.commit.timestamp > 0), default=0),
        advice=found,
        untold=untold,
        yaml=write_entry(_entry(project, spec.name, found)) if any(each.declare for each in found) else "",
    )


def _depth(live: LiveTable) -> Depth:
    return Depth(LOOK_BACK, counts=True, layout=True, marks="incremental" if live.clustering else None)


def _entry(project: Project, name: TableName, found: Sequence[Advice]) -> TableEntry:
    return entry_of(project, name, [declared for each in found for declared in each.declare])


def entry_of(project: Project, name: TableName, declared: Iterable[Declared]) -> TableEntry:
    """The entry with some declarations: each value once, as it comes first."""
    values: dict[tuple[str, str], str | tuple[str, ...]] = {}
    for attribute, key, value in declared:
        if value is not None:
            values.setdefault((attribute, key), value)
    return TableEntry(
        key=table_key(name, project.catalog),
        declared=tuple((attribute, key, value) for (attribute, key), value in values.items()),
    )
