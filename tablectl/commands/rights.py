"""The rights that a plan needs and that the login does not show (docs/databricks.md, section Rights to apply)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tablectl.commands.project import Project
from tablectl.delta.dialects import dialect_of
from tablectl.lint_rules.found_elsewhere import RIGHT_NOT_SHOWN
from tablectl.lint_rules.rule import RuleFinding
from tablectl.model.operations import RIGHTS
from tablectl.model.plan import ProtocolFact, TablePlan
from tablectl.model.rights import TableRights
from tablectl.planning.lint import graded, refused_by

MOST_TABLES = 500
"""Two requests for each table: of a larger plan the first ones are looked at."""


def with_rights(project: Project, tables: Sequence[TablePlan]) -> list[TablePlan]:
    """The plans with what the login lacks, where the tables' catalog tells of rights."""
    if dialect_of(project.dialect).runtime is None or project.catalogs is None:
        return [*tables]
    asked = [each.table for each in tables if each.statements][:MOST_TABLES]
    found = project.catalogs.rights(asked)
    return [_checked(project, each, found[each.table]) if each.table in found else each for each in tables]


def _checked(project: Project, table: TablePlan, rights: TableRights) -> TablePlan:
    lacking = [*rights.lacking((each.verb, RIGHTS[each.verb]) for each in table.statements)]
    if not lacking:
        return table
    message = f"the catalog does not show that {rights.principal} has {'; '.join(lacking)}"
    findings = graded([RuleFinding(RIGHT_NOT_SHOWN.code, message)], table.table, project.config.severities)
    told = replace(table, findings=(*table.findings, *findings))
    refusals = refused_by(findings, table.changes)
    if not refusals:
        return told
    before = ProtocolFact.of(table.basis.protocol.protocol())
    return replace(told, refusals=refusals, statements=(), undo=(), features=(), protocol_after=before, loss=None)
