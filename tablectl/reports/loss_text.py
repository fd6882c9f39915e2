"""The expected loss of statements in words: ``now (Sunday 10:00–11:00 UTC): 3.1 failed writes, 210 s of work; …``."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from tablectl.model.expected_loss import DAYS, LEAST_WRITES, WeekOfLoss, hour_of_week, hour_text, quietest_hour, summed
from tablectl.model.plan import Statement, TablePlan

_NOTHING = 0.05
"""Fewer failed writes are written as 0.0."""
_TOO_FEW = f"fewer than {LEAST_WRITES} writes in {DAYS} days"


def statement_loss(table: TablePlan, statement: Statement, now: datetime | None) -> str:
    """What a statement of a planned table is expected to cost; empty if it fails no write, or if nothing was read."""
    if table.loss is None or not statement.fails:
        return ""
    if table.loss.unknown:
        return f"unknown: {table.loss.unknown}"
    return _week_text(table.loss.week_of_statement(statement.id), now, observed=table.loss.quietest is not None)


def tables_loss(tables: Sequence[TablePlan], now: datetime | None) -> str:
    """What all statements of some tables are expected to cost; empty if none fails a write, or if nothing was read.

    Of tables some of which have too few writes, the known losses are added up, and the number of the others is said.
    """
    losses = [each.loss for each in tables if each.applies and each.loss is not None]
    known = [each for each in losses if not each.unknown]
    if not known:
        reasons = {each.unknown for each in losses}
        return f"unknown: {reasons.pop() if len(reasons) == 1 else _TOO_FEW}" if reasons else ""
    observed = all(each.quietest is not None for each in known)
    text = _week_text(summed(each.week for each in known), now, observed=observed)
    others = len(tables) - len(known)
    return f"{text}; unknown for {others:,} of the {len(tables):,} tables" if others else text


def _week_text(week: WeekOfLoss, now: datetime | None, *, observed: bool) -> str:
    if not week:
        return ""
    if not any(each.failed for each in week):
        return "0.0 failed writes: none of the writers in the log fails"
    hour = None if now is None else hour_of_week(now.timestamp())
    said = [f"now ({hour_text(hour)}): {week[hour].text()}"] if hour is not None else []
    if not observed:
        worst = max(week, key=lambda each: each.failed)
        said = said or [f"up to {worst.text()}"]
        return f"{said[0]}; the quietest hour is unknown, because the commits cover less than a day"
    quiet = quietest_hour(week, hour or 0)
    if hour is not None and week[hour].failed - week[quiet].failed < _NOTHING:
        return f"{said[0]}; no hour is quieter"
    if hour is None:
        busiest = max(range(len(week)), key=lambda each: week[each].failed)
        said = [f"busiest: {hour_text(busiest)}, {week[busiest].text()}"]
    return f"{said[0]}; quietest: {hour_text(quiet)}, {week[quiet].failed:,.1f}"
