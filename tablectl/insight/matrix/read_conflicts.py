"""Conflicts between the writers of one table."""

from __future__ import annotations

from dataclasses import replace

from tablectl.delta.names import TableName
from tablectl.insight.matrix.conflict_report import ConflictReport, conflict_report
from tablectl.insight.matrix.context import NO_ASSUMPTION, Assumption
from tablectl.policies.spec import TableSpec
from tablectl.project import Project


def read_conflicts(
    project: Project, name: TableName, spec: TableSpec | None, assumption: Assumption = NO_ASSUMPTION
) -> ConflictReport:
    """Conflicts between writers of one table, with or without a policy.

    Raises ``LiveError`` if the table cannot be read.
    """
    live = project.read(name, spec)
    if spec is None:
        return conflict_report(live, None, project.dialect, assumption)
    # The table's size was not read: it matters for the rewrite, but not for conflicts.
    return conflict_report(live, spec.policy, project.dialect, assumption, replace(spec.options, max_bytes=None))
