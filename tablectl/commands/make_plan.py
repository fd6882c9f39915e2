"""The plan: load policies → expand patterns → read tables → diff → actions → lint → order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from tablectl.commands.project import Project
from tablectl.commands.read_tables import OnRead, ignore_progress, locate_tables, read_tables, sorted_failures
from tablectl.commands.selection import LocatedTable, Selection, depth_for
from tablectl.delta.dialects import dialect_of
from tablectl.leases.clock import today
from tablectl.lint_rules.found_elsewhere import RIGHT_NOT_SHOWN
from tablectl.lint_rules.products import CLIENT_STANDS_OUTSIDE
from tablectl.lint_rules.rule import RuleFinding, table_subject
from tablectl.log.reader import Reading
from tablectl.model.catalog_answers import TableRights
from tablectl.model.operations import RIGHTS
from tablectl.model.plan import Plan, ProtocolFact, TablePlan
from tablectl.model.table import LOOK_BACK, Depth, LiveTable
from tablectl.planning.lint import graded, lint, refused_by, with_own_rules
from tablectl.planning.merge_plans import Shard
from tablectl.planning.plan_file import FORMAT
from tablectl.planning.plan_table import fails_writers, plan_table, writers_matter
from tablectl.policies.spec import Specs, TableSpec
from tablectl.version import __version__

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


MOST_WITH_LOSSES = 100
"""If more tables are selected, the commits of 30 days are not read only to tell what a statement costs the writers."""


def make_plan(project: Project, specs: Specs, selection: Selection, on_read: OnRead = ignore_progress) -> Plan:
    """The plan for the selected tables. A table that cannot be read is a failure in the plan, and the others are
    planned.

    Raises ``InputError`` if patterns contradict each other about a live table.
    """
    located = locate_tables(project, specs, selection)
    losses = len(located.tables) <= MOST_WITH_LOSSES
    return plan_located(project, located, selection.shard, losses=losses, on_read=on_read)


def plan_located(
    project: Project,
    located: LocatedTable,
    shard: Shard | None = None,
    *,
    losses: bool,
    on_read: OnRead = ignore_progress,
) -> Plan:
    """The plan of tables whose locations are known. ``losses`` tells what each statement costs the writers, for which
    the commits of 30 days are read.
    """
    failures = list(located.failures)
    tables: list[TablePlan] = []
    unchanged: list[str] = []
    outside: list[str] = []
    depths = partial(_depth, project, tells_losses=losses)
    for spec, table in read_tables(project, located, depths, partial(_planned, project), on_read, failures):
        if isinstance(table, TablePlan):
            tables.append(table)
        else:
            unchanged.append(spec.name.text)
            outside += [f"{spec.name.text}: {each}" for each in table]
    return Plan(
        format=FORMAT,
        tool=__version__,
        dialect=project.dialect,
        policies=located.policies,
        changed_since=located.changed_since,
        env=project.config.environment,
        tables=tuple(sorted(with_rights(project, tables), key=lambda table: table.name)),
        failures=sorted_failures(failures),
        unchanged=tuple(sorted(unchanged)),
        unmatched=located.unmatched,
        outside=tuple(sorted(outside)),
        shard=shard.text if shard else "",
    )


def _planned(project: Project, spec: TableSpec, reading: Reading) -> TablePlan | tuple[str, ...]:
    """The plan of a table; if it needs no change, what keeps clients of its policy away from it."""
    severities = with_own_rules(project.config.severities, project.own_rules, spec)
    options = spec.options.on(today())
    table = plan_table(spec.policy, reading.table, project.dialect, options, severities, project.runtime)
    if table is None:
        state = table_subject(spec.policy, reading.table, (), project.dialect, options=options)
        found = lint(state, spec.name, "plan", project.config.severities) if options.clients else ()
        about = [each for each in found if each.code == CLIENT_STANDS_OUTSIDE.code and each.severity != "ignored"]
        return tuple(each.message for each in about)
    said: dict[str, Any] = {"tags": tuple(sorted(spec.tags)), "owner": spec.owner, "window": spec.window}
    return replace(table, **said)


def _depth(project: Project, spec: TableSpec, *, tells_losses: bool) -> Callable[[LiveTable], Depth]:
    """How deep to read a table to plan it: its write history, too, if the plan depends on who writes it, or if it tells
    what its statements cost the writers.
    """
    depth, dialect = depth_for(spec, LOOK_BACK), project.dialect

    def writers(live: LiveTable) -> bool:
        return writers_matter(spec.policy, live, dialect, spec.options)

    def losses(live: LiveTable) -> bool:
        return fails_writers(spec.policy, live, dialect, spec.options)

    def with_writers(live: LiveTable) -> Depth:
        found = depth(live)
        return replace(found, writers=writers, losses=losses if tells_losses else None) if found.look_back else found

    return with_writers
