"""``tablectl lint``: the findings on live tables in their planned state. ``check`` and ``status`` tell them, too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from tablectl.commands.command import command, function
from tablectl.commands.options import EVERY_FORMAT, ChangedTables, Reported, output_format, report_files
from tablectl.commands.output import Output
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
from tablectl.commands.report_files import report_of
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
from tablectl.policies.declare_setting import setting
from tablectl.policies.declared_tables import Specs, TableSpec
from tablectl.policies.effective_policy import policy_lines_of
from tablectl.policies.field_types import Text
from tablectl.reports.render import ReportFormat
from tablectl.reports.result_documents import document_of_lint


@dataclass(frozen=True, kw_only=True)
class LintOptions(ChangedTables):
    """The tables to check."""

    dbt: str | Path | None = setting(
        None,
        Text(parse=Path, description="manifest.json of a dbt project: report what both set."),
        "--dbt",
        metavar="MANIFEST",
    )


_FORMATS = tuple(each for each in EVERY_FORMAT if each is not ReportFormat.JUNIT)


@dataclass(frozen=True, kw_only=True)
class LintCommandOptions(LintOptions, Reported):
    """The options of ``lint``."""

    format: ReportFormat = output_format(_FORMATS)
    report: Sequence[Path] = report_files(_FORMATS)


@command(LintCommandOptions)
def lint_command(options: LintCommandOptions, out: Output) -> ExitCode:
    """Check tables for risky settings. Every table is checked, changed or not.

    Example: tablectl lint --select 'lake.sales.*'
    """
    reports = options.reports()
    with options.open(out.note) as project, out.progress() as on_read:
        reports.check()
        linted, specs = lint_tables(project, options, on_read)
    sources = policy_lines_of(specs, [table.name for table in linted.tables])
    context = replace(context_here(), sources=sources)
    make = partial(document_of_lint, mask=project.mask, context=context)
    reports.write(report_of(linted, make, context), out)
    return linted.exit_code


@function(LintOptions)
def lint(options: LintOptions) -> Linted:
    """The lint findings on live tables in their planned state (``tablectl lint``). Changes nothing.

    Options and errors as in ``plan``. ``lint:`` in ``tablectl.yaml`` sets the severity of each finding.
    """
    with options.open() as project:
        return lint_tables(project, options)[0]


def lint_tables(project: Project, options: LintOptions, on_read: OnRead = ignore_progress) -> tuple[Linted, Specs]:
    """The lint findings on the selected tables in their planned state, including tables without changes; and the
    policies.

    Reads the history of each table, and the layout of partitioned ones. Failures and errors as in ``make_plan``.
    """
    specs, selection = chosen_tables(project, options)
    dbt = () if options.dbt is None else read_manifest(Path(options.dbt), project.catalog)
    located = locate_tables(project, specs, selection)
    failures = list(located.failures)
    whole = Depth(LOOK_BACK, layout=True)
    make = partial(_linted, project, dbt)
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
