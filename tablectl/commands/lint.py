"""``tablectl lint``: the findings on live tables in their planned state. ``check`` and ``status`` tell them, too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from tablectl.commands.parameters import (
    EVERY_FORMAT,
    Cache,
    Changed,
    Choice,
    Env,
    Exclude,
    Place,
    PolicyPaths,
    Remote,
    Select,
    Tags,
    VarValues,
    function,
    output_format,
    report_files,
)
from tablectl.commands.project import Project
from tablectl.commands.read_tables import (
    OnRead,
    chosen_tables,
    ignore_progress,
    locate_tables,
    read_tables,
    sorted_failures,
)
from tablectl.commands.report_facts import context_here
from tablectl.commands.report_files import ReportFiles, report_of
from tablectl.leases.clock import today
from tablectl.lint_rules.rule import LintedState, table_subject
from tablectl.log.reader import Reading
from tablectl.model.errors import ExitCode
from tablectl.model.plan import Change, Finding, LintedTable
from tablectl.model.table import LOOK_BACK, Depth, LiveTable
from tablectl.planning.dbt_findings import dbt_findings
from tablectl.planning.diff import diff
from tablectl.planning.lint import Linted, graded, with_own_rules
from tablectl.planning.lint import lint as lint_state
from tablectl.policies.dbt_manifest import DbtTable, read_manifest
from tablectl.policies.declared_tables import Specs, TableSpec
from tablectl.policies.effective_policy import policy_lines_of
from tablectl.policies.repository import Paths
from tablectl.reports.render import ReportFormat
from tablectl.reports.result_documents import document_of_lint

_FORMATS = tuple(each for each in EVERY_FORMAT if each is not ReportFormat.JUNIT)


def lint_command(
    ctx: typer.Context,
    paths: PolicyPaths = None,
    *,
    dbt: Annotated[
        Path | None,
        typer.Option("--dbt", metavar="MANIFEST", help="manifest.json of a dbt project: report what both set."),
    ] = None,
    select: Select = None,
    exclude: Exclude = None,
    tags: Tags = None,
    changed_since: Changed = "",
    variables: VarValues = None,
    env: Env = None,
    remote: Remote = None,
    cache: Cache = True,
    form: Annotated[ReportFormat, output_format(_FORMATS)] = ReportFormat.TEXT,
    report: Annotated[list[Path] | None, report_files(_FORMATS)] = None,
) -> ExitCode:
    """Check tables for risky settings. Every table is checked, changed or not.

    Example: tablectl lint --select 'lake.sales.*'
    """
    reports = ReportFiles.of(form, report, known=_FORMATS)
    place = Place(variables=variables, env=env, remote=remote, cache=cache)
    choice = Choice(paths, select, exclude, tags, changed_since)
    with place.open(ctx.obj.note) as project, ctx.obj.progress() as on_read:
        reports.check()
        linted, specs = lint_tables(project, choice, dbt, on_read)
    sources = policy_lines_of(specs, [table.name for table in linted.tables])
    context = replace(context_here(), sources=sources)
    make = partial(document_of_lint, mask=project.mask, context=context)
    reports.write(report_of(linted, make, context), ctx.obj)
    return linted.exit_code


@function
def lint(
    paths: Paths = None,
    *,
    select: Sequence[str] | None = None,
    exclude: Sequence[str] | None = None,
    tags: Sequence[str] | None = None,
    changed_since: str = "",
    dbt: str | Path | None = None,
    variables: Mapping[str, str] | None = None,
    env: str | None = None,
    remote: Remote = None,
    cache: Cache = True,
    directory: str | Path = ".",
    spark: Any = None,
) -> Linted:
    """The lint findings on live tables in their planned state (``tablectl lint``). Changes nothing.

    Options and errors as in ``plan``. ``lint:`` in ``tablectl.yaml`` sets the severity of each finding.
    """
    place = Place(variables=variables, env=env, remote=remote, cache=cache, directory=directory, spark=spark)
    with place.open() as project:
        return lint_tables(project, Choice(paths, select, exclude, tags, changed_since), dbt)[0]


def lint_tables(
    project: Project, choice: Choice, dbt: str | Path | None = None, on_read: OnRead = ignore_progress
) -> tuple[Linted, Specs]:
    """The lint findings on the selected tables in their planned state, including tables without changes; and the
    policies.

    Reads the history of each table, and the layout of partitioned ones. Failures and errors as in ``make_plan``.
    """
    specs, selection = chosen_tables(project, choice)
    models = () if dbt is None else read_manifest(Path(dbt), project.catalog)
    located = locate_tables(project, specs, selection)
    failures = list(located.failures)
    whole = Depth(LOOK_BACK, layout=True)
    make = partial(_linted, project, models)
    read = read_tables(project, located, lambda _spec: lambda _live: whole, make, on_read, failures)
    tables = [LintedTable(spec.name.text, found) for spec, found in read]
    linted = Linted(
        tables=tuple(sorted(tables, key=lambda table: table.name)),
        failures=sorted_failures(failures),
        unmatched=located.unmatched,
    )
    return linted, specs


def _linted(project: Project, dbt: Sequence[DbtTable], spec: TableSpec, reading: Reading) -> tuple[Finding, ...]:
    live = reading.table
    state = state_of(project, spec, live, diff(spec.policy, live, project.dialect))
    theirs = [each for each in dbt if each.name.key == spec.name.key]
    shared = dbt_findings(spec, theirs, live.known_commits, project.dialect)
    return (*findings_on(project, spec, state), *graded(shared, spec.name, project.config.severities))


def state_of(project: Project, spec: TableSpec, live: LiveTable, changes: tuple[Change, ...]) -> LintedState:
    """A live table as its policy would leave it, today."""
    known = table_subject(spec.policy, live, changes, project.dialect, options=spec.options, runtime=project.runtime)
    return replace(known, today=today(), upkeep=spec.upkeep)


def findings_on(project: Project, spec: TableSpec, state: LintedState) -> tuple[Finding, ...]:
    """The findings, with the project's severities and own rules."""
    return lint_state(state, spec.name, "lint", with_own_rules(project.config.severities, project.own_rules, spec))
