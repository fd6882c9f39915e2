"""When a table whose window could not be opened is retried: how long a lease is polled, and ``--wait``."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from enum import Enum, auto

from tablectl.applying.calendar_check import opening
from tablectl.applying.context import RunContext
from tablectl.applying.run_report import RunOutcome, TableRun
from tablectl.frozen import frozen
from tablectl.leases.acquire import LONGEST_PAUSE, Sighting
from tablectl.leases.lease_records import PATIENCE
from tablectl.model.plan import TablePlan

RETRIED = frozenset({RunOutcome.NOT_DRAINED, RunOutcome.OUTSIDE})
"""Outcomes that may change with time alone. Leases held by others are polled instead (``judge``)."""
PAUSES = (60.0, 300.0, 600.0, 1800.0, 3600.0)
"""Seconds between retries; the last one repeats. A window that fails to open also makes writers wait."""
GRACE = 3.0
"""Seconds for which a lease with a live holder is polled: it may be held for milliseconds only."""
LONGEST_SILENCE = 75.0
"""Seconds for which a silent holder is observed at least, whatever the ttl of this run: 60 s × 1.25."""
_FIRST_POLL = 0.1
_SOON = 0.001


def next_try(
    window: RunContext, tables: Sequence[TablePlan], runs: Mapping[str, TableRun], since: float, tries: int
) -> float | None:
    """The next retry of tables that share a window, in seconds on our clock; ``None`` for never.

    ``since`` is when the first attempt ended, ``tries`` the number of attempts so far. Tables outside the calendar are
    retried when it opens, others after a pause, and all of them at the latest when the user's time limit is reached.
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


class LeaseWait(Enum):
    """How a run waits for leases that others hold."""

    ASK_AGAIN = auto()
    """Keep polling, whatever else the run does: the lease may become free soon, or its holder may be dead."""
    WHILE_BUSY = auto()
    """Poll while the run works on other tables, and once more when it has none left."""


@frozen
class Poll:
    """When to poll leases again."""

    after: float
    """Seconds until the next poll."""
    patience: LeaseWait


def longest_watch(ttl: float) -> float:
    """The longest time, in seconds, for which a run observes a holder that may be dead. ``ttl`` is that of its own
    leases.
    """
    return max(ttl * PATIENCE, LONGEST_SILENCE)


def wait_text(holder: Sighting) -> str:
    """Whose lease a run waits for, and when it takes the lease over."""
    return f"held by {holder.record}; taken over if silent for {round(holder.patience)} s"


def judge(holders: Collection[Sighting], waited: float, polls: int, ttl: float, wait: float) -> Poll:
    """When to poll again for leases that these holders have kept for ``waited`` seconds and ``polls`` polls.

    A holder that may be dead is observed until that is known, but no longer than a holder with our own ``ttl`` would
    need: anyone who can write to a table's directory can write a lease record with a ``ttl`` of a day. ``wait`` is the
    time, in seconds, for which the user wants to wait for live holders.
    """
    longest = max(longest_watch(ttl), wait)
    unknown = any(not each.alive and each.patience <= longest for each in holders)
    pause = min(LONGEST_PAUSE, _FIRST_POLL * 2**polls, *(each.record.ttl / 12 for each in holders))
    if unknown or waited < max(GRACE, wait) - _SOON:
        return Poll(pause, LeaseWait.ASK_AGAIN)
    return Poll(pause, LeaseWait.WHILE_BUSY)
