"""``tablectl runs`` and ``tablectl undo``: earlier applies, and the way back from one."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from tablectl.commands.output import Output
from tablectl.commands.parameters import (
    LIMITS,
    OF_PAGES,
    REPORTS,
    WHICH,
    Choice,
    Env,
    Exclude,
    LookBack,
    PageFormat,
    PageReports,
    Place,
    PolicyPaths,
    Remote,
    Select,
    Tags,
    VarValues,
    Yes,
    table_names,
)
from tablectl.commands.plan import make_plan
from tablectl.commands.policy_changes import adoption_of, hidden_in, write_adoption
from tablectl.commands.project import Project
from tablectl.commands.read_tables import LocatedTable, failure_of, in_threads, locate, sorted_failures
from tablectl.commands.report_files import ReportFiles, report_of
from tablectl.commands.selection import Selection
from tablectl.commands.user_files import new_plan, write_file
from tablectl.delta.names import TableName
from tablectl.documents.document import Document
from tablectl.leases.clock import SystemClock
from tablectl.log.reader import read_commits, read_table
from tablectl.model.commit import Commit
from tablectl.model.errors import BrokenTableError, ExitCode, TablectlError, UsageError, one_line
from tablectl.model.patterns import escape_glob
from tablectl.model.plan import Plan, TableFailure
from tablectl.model.table import Depth
from tablectl.planning.plan_file import dump_plan
from tablectl.planning.undo import (
    PastRuns,
    RunUndo,
    TableUndo,
    changes_between,
    combined,
    past_runs,
    stamped,
    table_undo,
)
from tablectl.policies.declared_tables import Specs, TableSpec
from tablectl.reports.document_text import document_text
from tablectl.reports.plan_report import document_of_plan
from tablectl.reports.render import ReportFormat, render
from tablectl.reports.report_context import Context
from tablectl.reports.runs_document import document_of_adoption, document_of_runs, document_of_undo

_STATE = Depth(0)


def runs_command(
    ctx: typer.Context,
    paths: PolicyPaths = None,
    *,
    select: Select = None,
    exclude: Exclude = None,
    tags: Tags = None,
    days: Annotated[
        int | None,
        typer.Option(
            "--days",
            metavar="DAYS",
            min=1,
            max=1_000_000,
            help="Only the commits of the last DAYS of a table.",
            rich_help_panel=LIMITS,
        ),
    ] = None,
    look_back: LookBack = 1000,
    variables: VarValues = None,
    env: Env = None,
    remote: Remote = None,
    form: PageFormat = ReportFormat.TEXT,
    report: PageReports = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show all tables of each run.", rich_help_panel=REPORTS)
    ] = False,
) -> ExitCode:
    """List earlier applies from the tables' logs: time, user, plan and commits.

    Example: tablectl runs --select 'lake.sales.*' --days 30
    """
    within = timedelta(days=days) if days else None
    reports, choice = ReportFiles.of(form, report, known=OF_PAGES), Choice(paths, select, exclude, tags)
    with Place(variables=variables, env=env, remote=remote).open(ctx.obj.note) as project:
        reports.check()
        found = _runs(project, project.policies(paths), choice.selection, look_back, within)
        reports.show(document_of_runs(found, project.mask), ctx.obj, verbose=verbose)
    return ExitCode.ERROR if found.failures else ExitCode.DONE


def undo_command(
    ctx: typer.Context,
    run: Annotated[str, typer.Argument(metavar="RUN", help="The id of a run, or its beginning (`tablectl runs`).")],
    paths: PolicyPaths = None,
    *,
    write: Annotated[bool, typer.Option("--write", help="Write the policies, after showing the change.")] = False,
    yes: Yes = False,
    file: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Save the plan of the undo.")] = None,
    select: Annotated[
        list[str] | None,
        typer.Option(
            "--select",
            metavar="GLOB",
            help="Undo the run only on these tables.",
            autocompletion=table_names,
            rich_help_panel=WHICH,
        ),
    ] = None,
    exclude: Exclude = None,
    look_back: LookBack = 1000,
    variables: VarValues = None,
    env: Env = None,
    remote: Remote = None,
    form: PageFormat = ReportFormat.TEXT,
    report: PageReports = None,
) -> ExitCode:
    """Undo a run: put the values from before it into the policies, and plan them. Changes no table.

    Values that were changed after the run are not undone. Review the policies and the plan, and apply them like any
    other.

    Example: tablectl undo 3f2a9c41d7e0 --write --out plans/undo.json
    """
    out: Output = ctx.obj
    if (yes or file) and not write:
        raise UsageError(f"{'--yes' if yes else '--out'} needs --write", "add --write, or leave it out")
    save = new_plan(file) if file else None
    reports, choice = ReportFiles.of(form, report, save, OF_PAGES), Choice(paths, select, exclude)
    with Place(variables=variables, env=env, remote=remote).open(out.note) as project:
        reports.check()
        repository, specs = project.repository(paths)
        found = _undo_of(project, specs, run, choice.selection, look_back)
        mask = project.mask
        reports.write(report_of(found, lambda part: document_of_undo(part, mask), Context()), out)
        for failure in found.failures:
            out.note(f"warning: {failure.name} cannot be read: {failure.message}")
        values = [each for table in found.tables for each in table.adoptable_values]
        adoption, secret = adoption_of(project, repository, values), hidden_in(project, specs)
        if not adoption.texts and not adoption.left and not values:
            out.note("there is nothing to undo")
            return _code(found)
        if not write:
            _show(document_of_adoption(adoption, repository.texts(), secret), out, form)
            _tell_refusals(project, repository.read({**repository.texts(), **adoption.texts}), found, out)
            out.note("to write these policies and plan the undo, add --write")
        elif write_adoption(adoption, repository, secret, out, form, yes=yes) or not adoption.texts:
            edited = repository.read({**repository.texts(), **adoption.texts})
            _plan(project, edited, found, out, save, form)
        return _code(found)


def _show(document: Document, out: Output, form: ReportFormat) -> None:
    if form is not ReportFormat.TEXT:
        out.note(document_text(document, out.style))
    elif document.tail:
        out.result(document_text(document, out.style))


def _tell_refusals(project: Project, edited: Specs, found: RunUndo, out: Output) -> None:
    """Says what the plan of the undo will refuse, and which consent it needs: the way back can rewrite a table where
    the way there did not.
    """
    for table in _planned(project, edited, found).tables:
        for refusal in table.refusals:
            out.note(f"{table.name}: {refusal.change}: the plan will refuse it: {refusal.reason}; {refusal.fix}")


def _planned(project: Project, edited: Specs, found: RunUndo) -> Plan:
    names = tuple(escape_glob(table.spec.name.text) for table in found.tables if table.adoptable_values)
    return make_plan(project, edited, Selection(names))


def _plan(project: Project, edited: Specs, found: RunUndo, out: Output, save: Path | None, form: ReportFormat) -> None:
    """The plan of the edited policies for the tables of the run, shown, and saved with ``--out``."""
    plan = _planned(project, edited, found)
    if save:
        write_file(save, dump_plan(plan), private=project.mask.plan(plan) != plan)
    if form is ReportFormat.TEXT:
        context = Context(now=SystemClock().utc())
        document = document_of_plan(plan, project.mask, context)
        out.result("\n" + render(document, ReportFormat.TEXT, out.style, context))
    if save:
        out.note(f"saved to {save}; commit the policies, then run `tablectl apply {shlex.quote(str(save))}`")


def _code(found: RunUndo) -> ExitCode:
    codes = [ExitCode.ERROR] if found.failures else []
    return ExitCode.worst(*codes, *(ExitCode.REFUSED for table in found.tables if table.outcome == "refused"))


def _runs(project: Project, specs: Specs, selection: Selection, look_back: int, within: timedelta | None) -> PastRuns:
    """The runs in the logs of the selected tables: at most ``look_back`` commits of each table, and none that is older
    than its newest by more than ``within``. A table that cannot be read is a failure, and the others are read.
    """
    located = locate(project, specs, selection)
    found, failures = _histories(project, located, look_back, within)
    return PastRuns(
        runs=past_runs({spec.name.text: commits for spec, _, commits in found}),
        failures=failures,
        unmatched=located.unmatched,
    )


def _undo_of(project: Project, specs: Specs, run: str, selection: Selection, look_back: int) -> RunUndo:
    """What a run changed on the selected tables. Raises ``UsageError`` if no commit among the newest ``look_back`` of
    any table is the run's, and if several runs begin with its id.
    """
    located = locate(project, specs, selection)
    found, failures = _histories(project, located, look_back, None)
    runs = past_runs({spec.name.text: commits for spec, _, commits in found})
    meant = [each for each in runs if each.stamp.run.startswith(run)] if run else []
    exact = [each for each in meant if each.stamp.run == run]
    if not meant:
        raise UsageError(
            f"the run {run} made no commit on the selected tables",
            "`tablectl runs` lists the runs; --look-back searches more commits",
        )
    if len(exact or meant) > 1:
        ids = ", ".join(each.stamp.run for each in meant)
        raise UsageError(f"several runs begin with {run}: {ids}", "give the whole id")
    (chosen,) = exact or meant
    by_run = {spec.name: stamped(commits) for spec, _, commits in found}
    of_run = {name: each[chosen.stamp.run][1] for name, each in by_run.items() if chosen.stamp.run in each}
    touched = [(spec, location) for spec, location, _ in found if spec.name in of_run]
    tables, broken = list[TableUndo](), list[TableFailure]()
    for spec, _, made in in_threads(project, touched, partial(_undo, project, of_run)):
        if isinstance(made, BrokenTableError):
            broken.append(failure_of(spec.name.text, made))
        elif isinstance(made, TablectlError):
            commits, trouble = of_run[spec.name], one_line(made)
            tables.append(TableUndo(spec=spec, commits=commits, values=(), outcome="refused", trouble=trouble))
        else:
            tables.append(made)
    tables.sort(key=lambda each: each.spec.name.text)
    return RunUndo(run=chosen, tables=tuple(tables), failures=(*failures, *broken))


def _histories(
    project: Project, located: LocatedTable, look_back: int, within: timedelta | None
) -> tuple[list[tuple[TableSpec, str, tuple[Commit, ...]]], tuple[TableFailure, ...]]:
    """The newest commits of each table, and the tables that cannot be read."""
    found, failures = list[tuple[TableSpec, str, tuple[Commit, ...]]](), [*located.failures]
    read = partial(read_commits, limit=look_back, within=within, options=project.stores)
    for spec, location, commits in in_threads(project, located.tables, lambda _spec, where: read(where)):
        if isinstance(commits, TablectlError):
            failures.append(failure_of(spec.name.text, commits))
        else:
            found.append((spec, location, commits))
    return found, sorted_failures(failures)


def _undo(project: Project, of_run: Mapping[TableName, Sequence[Commit]], spec: TableSpec, location: str) -> TableUndo:
    """The undo of a run's commits on one table, from the states before and after each of them."""
    commits = of_run[spec.name]
    changed = [commit for commit in commits if commit.changes_metadata or commit.overwrites]
    now = read_table(spec.name, location, _STATE, options=project.stores)
    if not changed:
        return table_undo(spec, commits, (), now, now)
    states = {
        version: read_table(spec.name, location, _STATE, version=version, options=project.stores)
        for commit in changed
        for version in (commit.version - 1, commit.version)
        if version >= 0
    }
    steps = [
        changes_between(states[commit.version - 1], states[commit.version], project.dialect, spec.policy)
        for commit in changed
        if commit.version > 0
    ]
    return table_undo(spec, commits, combined(steps), states[changed[0].version - 1], now)
