"""Who could still need the files that a VACUUM deletes, as far as logs, checkpoints and guards tell.

VACUUM deletes files that left the table, or were never committed, before its horizon: now minus the table's retention.
It breaks a stream that has not read a commit from before it, a shallow clone, and a write that began before it.
"""

from __future__ import annotations

from tablectl.applying.context import StopTableError
from tablectl.applying.run_report import RunOutcome
from tablectl.applying.table_session import TableSession
from tablectl.conflicts.past_writers import metric_seconds
from tablectl.delta import keys
from tablectl.leases.clock import milliseconds
from tablectl.leases.guards import HERE, read_guards
from tablectl.model.streams import StreamPosition, StreamState, UnknownStream
from tablectl.model.table import Commit, LiveTable
from tablectl.model.text import listed, minutes_text
from tablectl.model.upkeep import kept_seconds
from tablectl.planning.upkeep import FIX_RETENTION, UpkeepTable, why_no_vacuum

_LONGEST_WRITE = 86_400.0
"""Seconds: with a longer retention, a write that is running now cannot have begun before the horizon."""
_MOST = 5


def check_vacuum(session: TableSession, plan: UpkeepTable, live: LiveTable) -> str:
    """Why VACUUM has to wait; empty if it may run. Raises ``StopTableError`` if waiting would not help, and
    ``LiveError``.
    """
    keeps = kept_seconds(live.property(keys.DELETED_FILE_RETENTION))
    if reason := why_no_vacuum(live, plan.keeps):
        raise StopTableError(RunOutcome.REFUSED, reason, FIX_RETENTION)
    if plan.clones:
        reason = f"shallow clones read files of this table: {listed(plan.clones, _MOST)}"
        hint = "make them tables of their own (CREATE OR REPLACE TABLE … AS SELECT), or leave `vacuum` out"
        raise StopTableError(RunOutcome.REFUSED, reason, hint)
    horizon = milliseconds(session.window.clock.utc()) - round(keeps * 1000)
    return _streams(session, plan, horizon) or _writers(session, live, keeps)


def _streams(session: TableSession, plan: UpkeepTable, horizon: int) -> str:
    """The declared streams that have not read all commits from before the horizon."""
    if not plan.basis.options.streams:
        return ""
    reader = session.window.reader
    states = reader.streams(plan.basis.options.streams, plan.table_id, plan.location)
    commits = reader.commits(plan.location, after=min(map(_read_until, states), default=-1))
    late = [f"{each.name}: {each.text}" for each in states if _is_late(each, commits, horizon)]
    return f"a stream may still need files that VACUUM deletes: {listed(late, _MOST)}" if late else ""


def _read_until(state: StreamState) -> int:
    return state.read if isinstance(state, StreamPosition) and state.read is not None else -1


def _is_late(state: StreamState, commits: tuple[Commit, ...], horizon: int) -> bool:
    if isinstance(state, UnknownStream):
        return True
    if not isinstance(state, StreamPosition):
        return False  # it only writes
    unread = (each for each in commits if not state.passed(each.version) and each.changes_data)
    return any(not each.timestamp or each.timestamp <= horizon for each in unread)


def _writers(session: TableSession, live: LiveTable, keeps: float) -> str:
    """Writes that may have begun before the horizon: only with a retention that a write can exceed."""
    if keeps >= _LONGEST_WRITE:
        return ""
    guards = read_guards(session.lease.store)
    running = [each.writer or "a writer without a name" for each in guards if each.waits != HERE]
    if running:
        return f"files are kept for {minutes_text(keeps)}, and writes are running: {listed(running, _MOST)}"
    longest = max((metric_seconds(each, "executionTimeMs") or 0.0 for each in live.history), default=0.0)
    if longest >= keeps:
        return f"files are kept for {minutes_text(keeps)}, and a write of this table took {minutes_text(longest)}"
    return ""
