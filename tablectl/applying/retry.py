"""When a table whose window could not be opened is tried again: how long a lease is polled, and ``--wait``."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto

from tablectl.applying.acquire import LONGEST_PAUSE, Sighting
from tablectl.applying.calendar_check import opening
from tablectl.applying.context import RunContext
from tablectl.applying.lease_log import PATIENCE
from tablectl.applying.run_report import RunOutcome, TableRun
from tablectl.model.plan import TablePlan

RETRIED = frozenset({RunOutcome.NOT_DRAINED, RunOutcome.OUTSIDE})
"""Outcomes that time alone may change. Leases that others hold are polled instead (``judge``)."""
PAUSES = (60.0, 300.0, 600.0, 1800.0, 3600.0)
"""Seconds between tries; the last one repeats. A window that fails to open makes writers wait, too."""
GRACE = 3.0
"""Seconds for which a lease is asked for again whose holder is at work: it may hold it for milliseconds."""
LONGEST_SILENCE = 75.0
"""Seconds for which a silent holder is watched at least, whatever ttl this run has itself: 60 s × 1.25."""
_FIRST_POLL = 0.1
_SOON = 0.001


def next_try(
    window: RunContext, tables: Sequence[TablePlan], runs: Mapping[str, TableRun], since: float, tries: int
) -> float | None:
    """The moment, on our clock, at which tables that share a window are tried once more; ``None`` for never.

    ``since`` is when the first try ended, and ``tries`` how many there were. Tables outside the calendar are tried when
    that opens, others after a pause, and all at the latest when the time is over that the user gave.
    """
    now = window.clock.monotonic()
    left = window.terms.wait - (now - since)
    if left < _SOON or not any(runs[table.name].outcome in RETRIED for table in tables):
        return None
    closed = [table for table in tables if runs[table.name].outcome is RunOutcome.OUTSIDE]
    if closed:
        pause = max(_until(window, opening(window, table)) for table in closed)
        return None if pause > left else now + max(_SOON, min(pause, PAUSES[-1]))
    return now + max(_SOON, min(PAUSES[min(tries, len(PAUSES)) - 1], left))


def _until(window: RunContext, moment: datetime | None) -> float:
    return float("inf") if moment is None else (moment - window.clock.utc()).total_seconds()


class Patience(Enum):
    """How a run waits for leases that others hold."""

    ASK_AGAIN = auto()
    """Whatever else goes on: it may be free in a moment, or its holder may be dead."""
    WHILE_BUSY = auto()
    """As long as the run has other tables to work on, and once more when it has none."""


@dataclass(frozen=True, slots=True)
class Poll:
    """When leases are asked for again."""

    after: float
    """Seconds."""
    patience: Patience


def longest_watch(ttl: float) -> float:
    """Seconds for which a holder that may be dead is watched, by a run whose own leases have this ttl."""
    return max(ttl * PATIENCE, LONGEST_SILENCE)


def judge(holders: Collection[Sighting], waited: float, polls: int, ttl: float, wait: float) -> Poll:
    """When to ask again for leases that these holders have kept from us for ``waited`` seconds and ``polls`` looks.

    A holder that may be dead is watched until that is known, but for no longer than one with our own ``ttl`` would
    need: whoever may write a table's directory may claim in a lease record to be alive for a day. ``wait`` is for how
    long the user wants to wait for holders that are alive.
    """
    longest = max(longest_watch(ttl), wait)
    unknown = any(not each.alive and each.patience <= longest for each in holders)
    pause = min(LONGEST_PAUSE, _FIRST_POLL * 2**polls, *(each.record.ttl / 12 for each in holders))
    if unknown or waited < max(GRACE, wait) - _SOON:
        return Poll(pause, Patience.ASK_AGAIN)
    return Poll(pause, Patience.WHILE_BUSY)
