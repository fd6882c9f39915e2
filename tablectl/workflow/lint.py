"""The lint findings on tables in their planned state."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from tablectl.lint_rules.rule import table_subject
from tablectl.log.reader import Reading
from tablectl.model.plan import Finding
from tablectl.model.table import LOOK_BACK, Depth
from tablectl.planning.dbt import dbt_findings
from tablectl.planning.diff import diff
from tablectl.planning.lint import Linted, LintedTable, graded, lint, with_own_rules
from tablectl.policies.dbt_manifest import DbtTable
from tablectl.policies.spec import Specs, TableSpec
from tablectl.project import Project
from tablectl.selection import Selection
from tablectl.workflow.tables import OnRead, ignore_progress, locate_tables, read_tables, sorted_failures


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
    read = read_tables(project, located, lambda _spec: lambda _live: whole, make, on_read, failures)
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
    shared = dbt_findings(spec, theirs, live.known_commits, project.dialect)
    return (*lint(subject, spec.name, "lint", severities), *graded(shared, spec.name, severities))
