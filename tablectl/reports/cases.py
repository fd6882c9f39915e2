"""What JUnit holds of each result: a test case for each table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from tablectl.applying.run_report import RunOutcome, RunReport, TableRun
from tablectl.model.errors import ExitCode
from tablectl.model.plan import Plan, TableFailure, TablePlan
from tablectl.model.text import value_text
from tablectl.planning.drift import Drift, TableDrift
from tablectl.reports.context import Context
from tablectl.reports.document import Case
from tablectl.reports.drift_document import catalog_text, table_drift_card
from tablectl.reports.plan_document import table_plan_card
from tablectl.reports.run_document import table_run_card
from tablectl.reports.wording import outcome_text

_ERRORS = {RunOutcome.FAILED, RunOutcome.UNVERIFIED, RunOutcome.UNKNOWN, RunOutcome.INTERRUPTED}


def plan_cases(plan: Plan, context: Context) -> Iterator[Case]:
    """A refused table is a failure, one that cannot be read an error, and a pattern without tables is skipped.

    A table with changes passes with its changes as output, unless pending changes are failures
    (``Context.pending_fails``).
    """
    yield from (_planned(each, pending_fails=context.pending_fails) for each in plan.tables)
    if context.refused:
        yield Case("the plan as a whole", "failure", "refused", context.refused, (context.refused,))
    yield from map(_unreadable, plan.failures)
    yield from map(_unmatched, plan.unmatched)
    yield from map(Case, plan.unchanged)


def run_cases(report: RunReport) -> Iterator[Case]:
    """A table as declared passes; a failed, interrupted or unverified one is an error, any other a failure."""
    yield from map(_ran, report.tables)
    yield from map(_unreadable, report.failures)


def drift_cases(drift: Drift) -> Iterator[Case]:
    """A table that differs is a failure, one that cannot be read an error, and a pattern without tables is skipped."""
    yield from map(_differs, drift.tables)
    yield from map(_unreadable, drift.failures)
    yield from map(_unmatched, drift.unmatched)
    yield from map(Case, drift.as_declared)


def _unreadable(failure: TableFailure) -> Case:
    body = tuple(filter(None, (failure.message, failure.hint)))
    return Case(failure.name, "error", "not readable", failure.message, body)


def _unmatched(pattern: str) -> Case:
    return Case(pattern, "skipped", message="the pattern matches no table")


def _differs(table: TableDrift) -> Case:
    changes = [each.change for each in table.differences]
    said = [f"{each.id}: declared {value_text(each.after)}, found {value_text(each.before)}" for each in changes]
    message, name = "; ".join([*said, *map(catalog_text, table.catalog)]), table.spec.name.text
    return Case(name, "failure", "drift", message, card=table_drift_card(table), source=table.spec.declared)


def _planned(table: TablePlan, *, pending_fails: bool) -> Case:
    card = table_plan_card(table)
    if table.refusals:
        message = "; ".join(f"{each.change}: {each.reason}" for each in table.refusals)
        return Case(table.name, "failure", "refused", message, card=card)
    if not pending_fails:
        return Case(table.name, card=card)
    changes = (f"{each.id}: {value_text(each.before)} → {value_text(each.after)}" for each in table.changes)
    return Case(table.name, "failure", "pending", "; ".join(changes), card=card)


def _ran(table: TableRun) -> Case:
    card, seconds = table_run_card(table), table.took_ms / 1000
    if table.code is ExitCode.DONE:
        return Case(table.name, card=card, seconds=seconds)
    result: Literal["error", "failure"] = "error" if table.outcome in _ERRORS else "failure"
    said = table.message or table.shut or outcome_text(table)
    return Case(table.name, result, str(table.outcome), said, card=card, seconds=seconds)
