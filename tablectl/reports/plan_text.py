"""A plan as text: groups of equal changes and what they do to others; with ``verbose``, each table with its SQL."""

from __future__ import annotations

from datetime import datetime

from tablectl.model.plan import Plan, TableFailure, TablePlan
from tablectl.model.text import printable
from tablectl.reports.context import Context
from tablectl.reports.document_text import card_lines, document_text
from tablectl.reports.plan_document import plan_document
from tablectl.reports.style import Style


def plan_text(plan: Plan, style: Style, *, verbose: bool = False, now: datetime | None = None) -> str:
    """The whole plan, followed by the summary. A plan of one table is always shown in full."""
    full = verbose or len(plan.tables) + len(plan.failures) == 1
    return document_text(plan_document(plan, Context(now=now), each_table=full), style, verbose=full)


def table_plan_text(table: TablePlan, style: Style) -> str:
    """The plan of one table, in full."""
    alone = Plan(format=1, tool="", dialect="", policies="", tables=(table,))
    card, *_ = plan_document(alone, Context()).cards
    return "\n".join(card_lines(card, style, verbose=True)) + "\n"


def failure_lines(failure: TableFailure, style: Style) -> list[str]:
    """A table that cannot be read, or a pattern that cannot be resolved."""
    lines = [f"{style.paint('x', 'red', 'bold')} {style.paint(printable(failure.name), 'bold')}"]
    lines += style.prose("error", failure.message, 4)
    return lines + (style.prose("hint", failure.hint, 4) if failure.hint else [])
