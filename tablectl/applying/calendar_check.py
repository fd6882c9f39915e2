"""The calendar, checked before a lease is acquired and before each statement (docs/window.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from tablectl.applying.run_context import RunContext, TableJob
from tablectl.applying.waits import GO, Answer, Awaited, End, Later, Wait
from tablectl.model.calendar import Calendar
from tablectl.model.plan import TablePlan
from tablectl.model.run_report import RunOutcome

_CALENDAR = Awaited("calendar", "for the calendar")
_SOON = 0.001
_LONGEST = 3600.0
"""Seconds between two looks at the calendar."""
_ROUNDS = 100
"""How many openings are compared if several tables have calendars of their own."""


def calendar_of(context: RunContext, plan: TablePlan) -> Calendar:
    """The rules about a table: those of the configuration, and over them those of its policy."""
    calendar = context.config.calendar.of(plan.table, plan.tags)
    return plan.window.over(calendar) if plan.window else calendar


def outside(context: RunContext, plan: TablePlan, begun: datetime | None = None) -> End | None:
    """Why the calendar forbids work on a table now; ``None`` if it permits it or an operator overrides it.

    ``begun`` is the wall-clock time at which work on the table began, if it did.
    """
    calendar = calendar_of(context, plan)
    now = context.clock.utc()
    if context.stamp.override or calendar.permits(now):
        return None
    ended = calendar.closing(begun) if begun is not None and calendar.permits(begun) else None
    said = f"the window ended at {_text(ended)}" if ended else "the calendar does not allow it now"
    opening = calendar.opening(now)
    coming = f"the next one begins at {_text(opening)}" if opening else "there is none within a year"
    hint = "run again then, or with `--wait 30m`; `--override REASON` runs at any time"
    return End(RunOutcome.NO_WINDOW, f"{said}; {coming}", hint)


def opening_of(context: RunContext, plans: Sequence[TablePlan], moment: datetime) -> datetime | None:
    """The first moment from a moment on at which the calendar permits work on all of some tables; ``None`` if there is
    none within a year.
    """
    if context.stamp.override:
        return moment
    calendars = [calendar_of(context, plan) for plan in plans]
    then = moment
    for _ in range(_ROUNDS):
        openings = [calendar.opening(then) for calendar in calendars]
        known = [each for each in openings if each is not None]
        if len(known) < len(openings):
            return None
        if all(each == then for each in known):
            return then
        then = max(known)
    return None


class CalendarWait(Wait):
    """Tables outside the calendar wait until it opens, if ``--wait`` lasts until then."""

    def __init__(self, job: TableJob) -> None:
        self._job = job

    def check(self, now: float) -> Answer:
        """Whether the calendar permits work on all of the tables."""
        context, tables = self._job.context, self._job.tables
        end = next((replace(end, table=each.name) for each in tables if (end := outside(context, each))), None)
        if end is None:
            return GO
        utc, left = context.clock.utc(), self._job.left(now)
        opens = opening_of(context, tables, utc)
        pause = (opens - utc).total_seconds() if opens else left + _LONGEST
        if left < _SOON or pause > left:
            return end
        return Later(now + max(_SOON, min(pause, _LONGEST)), _CALENDAR, end.message, context.wait, otherwise=end)


def _text(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC" if moment else ""
