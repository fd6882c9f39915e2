"""The findings on one table in the state that its policy declares, as `lint`, `check` and `status` tell them."""

from __future__ import annotations

from dataclasses import replace

from tablectl.commands.project import Project
from tablectl.leases.clock import today
from tablectl.lint_rules.rule import LintedState, table_subject
from tablectl.model.plan import Change, Finding
from tablectl.model.table import LiveTable
from tablectl.planning.lint import lint, with_own_rules
from tablectl.policies.spec import TableSpec


def state_of(project: Project, spec: TableSpec, live: LiveTable, changes: tuple[Change, ...]) -> LintedState:
    """A live table as its policy would leave it, today."""
    known = table_subject(spec.policy, live, changes, project.dialect, options=spec.options, runtime=project.runtime)
    return replace(known, today=today(), upkeep=spec.upkeep)


def findings_on(project: Project, spec: TableSpec, state: LintedState) -> tuple[Finding, ...]:
    """The findings, with the project's severities and own rules."""
    return lint(state, spec.name, "lint", with_own_rules(project.config.severities, project.own_rules, spec))
