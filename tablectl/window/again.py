"""``--wait``: tables whose window could not be opened are tried again, with growing pauses (DESIGN 5)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, repeat

from tablectl.model.plan import TablePlan
from tablectl.window.clock import StoppedError
from tablectl.window.events import Event
from tablectl.window.hours import opening
from tablectl.window.report import Outcome, TableRun
from tablectl.window.setting import Window

RETRIED = frozenset({Outcome.HELD, Outcome.NOT_DRAINED, Outcome.OUTSIDE})
"""Outcomes that time alone may change."""
PAUSES = (60.0, 300.0, 600.0, 1800.0, 3600.0)
"""Seconds between tries; the last one repeats. A window that fails to open makes writers wait, too."""
_TICK = 1.0
_SOON = 0.001


def tries(window: Window, tables: Sequence[TablePlan], runs: Mapping[str, TableRun]) -> Iterator[Sequence[TablePlan]]:
    """After each pause, the tables to try again; ends when none is left, the time is over, or the run is stopped.

    ``runs`` is looked at anew each time, so whoever iterates keeps it up to date.
    """
    clock, started = window.clock, window.clock.monotonic()
    for pause in chain(PAUSES, repeat(PAUSES[-1])):
        again = [table for table in tables if runs[table.name].outcome in RETRIED]
        left = window.terms.wait - (clock.monotonic() - started)
        if not again or left < _SOON or window.stop.is_set():
            return
        seconds = _until(window, again, runs, min(pause, left), left)
        if seconds is None:
            return
        try:
            _sleep(window, again, runs, seconds)
        except StoppedError:
            return
        yield again


def _until(
    window: Window, again: Sequence[TablePlan], runs: Mapping[str, TableRun], pause: float, left: float
) -> float | None:
    """How long to pause: no longer than until the calendar opens. ``None`` where it opens for none of them in time."""
    openings = []
    for table in again:
        if runs[table.name].outcome is not Outcome.OUTSIDE:
            openings.append(pause)
            continue
        then = opening(window, table)
        if then is not None:
            openings.append(max(0.0, (then - window.clock.utc()).total_seconds()))
    soonest = min(openings, default=left + 1)
    return None if soonest > left else max(_SOON, min(soonest, pause))


def _sleep(window: Window, again: Sequence[TablePlan], runs: Mapping[str, TableRun], seconds: float) -> None:
    clock, started = window.clock, window.clock.monotonic()
    while (waited := clock.monotonic() - started) < seconds - _SOON:
        if window.stop.is_set():
            raise StoppedError("stopped while waiting")
        for table in again:
            words = f"{runs[table.name].outcome}: trying again in {_minutes(seconds)}"
            window.notify(Event(table.name, "again", words, waited))
        clock.sleep(min(_TICK, seconds - waited))


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 60 else f"{seconds:.0f} s"
