"""``tablectl drift``: what differs from the policies and since when; ``--adopt`` writes it into the policies."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from tablectl.commands.notify import send_notification
from tablectl.commands.output import Output
from tablectl.commands.parameters import (
    AnyFormat,
    AnyReports,
    Cache,
    Choice,
    Env,
    Exclude,
    FailOn,
    LookBack,
    Place,
    PolicyPaths,
    Remote,
    Select,
    Tags,
    VarValues,
    Verbose,
    WholeCatalog,
    Yes,
    function,
)
from tablectl.commands.policy_changes import adoption_of, hidden_in, write_adoption
from tablectl.commands.project import Project
from tablectl.commands.read_tables import (
    OnRead,
    ignore_progress,
    locate_tables,
    read_tables,
    sorted_failures,
)
from tablectl.commands.report_facts import Started, context_here
from tablectl.commands.report_files import ReportFiles, report_of
from tablectl.commands.rivals import rivals_of
from tablectl.commands.selection import Selection
from tablectl.commands.status import StatusOptions, collect_status
from tablectl.log.blame import BlameQuery, blame
from tablectl.log.reader import Reading
from tablectl.model.errors import ExitCode, UsageError, one_line
from tablectl.model.stamp import read_stamp
from tablectl.model.table import Depth, LiveTable
from tablectl.planning.diff import depth_for, diff
from tablectl.planning.drift import Drift, SlippedTable, TableDrift, adoptable_values, questions, table_drift
from tablectl.policies.declared_tables import Specs, TableSpec
from tablectl.policies.repository import Paths
from tablectl.reports.notification import drift_notification
from tablectl.reports.render import ReportFormat
from tablectl.reports.result_documents import document_of_drift
from tablectl.reports.status_document import LakeStatus

_ONLY_NAMED = (
    "without --all, only tables that policies name or match are looked at; a folder that no catalog lists: "
    "tablectl status 'delta.`FOLDER/*`' --fail-on unmanaged"
)


def drift_command(
    ctx: typer.Context,
    paths: PolicyPaths = None,
    *,
    adopt: Annotated[
        bool, typer.Option("--adopt", help="Write the live values into the policies, after showing the change.")
    ] = False,
    yes: Yes = False,
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
    form: AnyFormat = ReportFormat.TEXT,
    report: AnyReports = None,
    verbose: Verbose = False,
) -> ExitCode:
    """Show what differs from the policies, and which commit did it. Exits with code 2 if anything differs.

    Example: tablectl drift --select 'lake.sales.*'
    """
    if yes and not adopt:
        raise UsageError("--yes needs --adopt", "add --adopt, or leave --yes out")
    out: Output = ctx.obj
    reports = ReportFiles.of(form, report)
    choice = Choice(paths, select, exclude, tags)
    place = Place(variables=variables, env=env, remote=remote, cache=cache)
    with place.open(out.note) as project, out.progress() as on_read:
        reports.check()
        repository, specs = project.repository(paths)
        started = Started()
        found = find_drift(project, specs, choice.selection, look_back, on_read)
        if everything or fail_on:
            if not everything:
                out.note(_ONLY_NAMED)
            asked = StatusOptions(paths, select, exclude, tags, look_back=look_back)
            status = collect_status(project, asked, everything=everything)
            found = replace(_with_slipped(found, status), fails_on_slipped=bool(fail_on))
        context = started.timed(context_here())
    mask = project.mask
    make = partial(document_of_drift, mask=mask, context=context)
    shown = report_of(found, make, context, verbose=verbose)
    if not adopt:
        try:
            reports.write(shown, out)
        finally:
            send_notification(lambda: drift_notification(mask.drift(found)), project.config, context, out, os.environ)
        return found.exit_code
    adoption = adoption_of(project, repository, adoptable_values(found))
    if reports.form is ReportFormat.TEXT:
        out.result(shown(ReportFormat.TEXT, out.style))
    secret = hidden_in(project, specs)
    written = bool(found.tables) and write_adoption(adoption, repository, secret, out, reports.form, yes=yes)
    found = replace(found, adoption=replace(adoption, written=written))
    shown = report_of(found, make, context, verbose=verbose)
    (reports.keep if reports.form is ReportFormat.TEXT else reports.write)(shown, out)
    if not written or adoption.left:
        return found.exit_code
    return ExitCode.ERROR if found.exit_code is ExitCode.ERROR else ExitCode.DONE


def _with_slipped(found: Drift, status: LakeStatus) -> Drift:
    """The drift with the tables that ``status`` names as created past their policies, and with what could not be looked
    up.
    """
    slipped = tuple(
        SlippedTable(table=each.table, created_at=each.created_at, created_by=each.created_by, command=each.slipped)
        for each in status.tables
        if each.slipped
    )
    return replace(
        found,
        slipped=slipped,
        failures=sorted_failures({*found.failures, *status.failures}),
        unmatched=tuple(dict.fromkeys((*found.unmatched, *status.unmatched))),
    )


@function
def drift(
    paths: Paths = None,
    *,
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
) -> Drift:
    """The differences from the policies, and the commit that caused each. Changes nothing.

    Options and errors as in ``plan``, and ``look_back``: the maximum number of commits to search per table that
    differs.
    """
    place = Place(variables=variables, env=env, remote=remote, cache=cache, directory=directory, spark=spark)
    choice = Choice(paths, select, exclude, tags)
    with place.open() as project:
        return find_drift(project, project.policies(paths), choice.selection, look_back)


def find_drift(
    project: Project,
    specs: Specs,
    selection: Selection,
    look_back: int,
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
    for spec, found in read_tables(project, located, _with_catalog, make, on_read, failures):
        if found is None:
            as_declared.append(spec.name.text)
        else:
            tables.append(found)
    return Drift(
        tables=tuple(sorted(tables, key=lambda table: table.spec.name.text)),
        failures=sorted_failures(failures),
        as_declared=tuple(sorted(as_declared)),
        unmatched=located.unmatched,
        look_back=look_back,
        env=project.config.environment,
    )


def _drifted(project: Project, look_back: int, spec: TableSpec, reading: Reading) -> TableDrift | None:
    live = reading.table
    changes = diff(spec.policy, live, project.dialect)
    if not changes and not (live.catalog and live.catalog.differences):
        return None
    result = blame(reading, BlameQuery(live, questions(changes), look_back))
    applied = next((commit for commit in result.commits if read_stamp(commit.user_metadata)), None)
    trouble = one_line(result.trouble) if result.trouble else ""
    drifted = table_drift(spec, live, changes, result.origins, applied=applied, trouble=trouble)
    return replace(drifted, rivals=rivals_of(project, replace(live, history=result.commits), reading.stores))


def _with_catalog(spec: TableSpec) -> Callable[[LiveTable], Depth]:
    """The depth for drift: no history, but for a catalog-managed table its log, to compare it with the catalog."""
    depth = depth_for(spec, 0)
    return lambda live: replace(depth(live), look_back=1) if live.catalog else depth(live)
