"""The upkeep of one table under its lease: OPTIMIZE in slices, then VACUUM (docs/upkeep.md).

A slice is one OPTIMIZE under the gate ``appends-only``. Delta commits it in batches, and it is interrupted before
``window.upkeep`` has passed since the gate shut: what is committed stays, and the next slice takes the rest. Between
two slices the gate is open, and the writers that waited go first.

What is due is decided from the table before each statement, so a run that was killed is continued by the next one. Only
when a kind was done last is remembered outside the log, too (``upkeep_records``).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta

from tablectl.applying.quiet_moment import WaitUntil, decide, forecast_of
from tablectl.applying.remaining_statements import error_text
from tablectl.applying.run_context import StopTableError, check_answers, interrupted
from tablectl.applying.statement import (
    Landed,
    LandedElsewhere,
    Sent,
    UnknownOutcome,
    check_bound,
    check_target,
    send,
    settle_statement,
)
from tablectl.applying.table_session import TableSession
from tablectl.applying.upkeep_records import due_by_records, note_done
from tablectl.applying.waits import Go
from tablectl.conflicts.past_writers import metric_seconds
from tablectl.delta import keys
from tablectl.delta.dialects import dialect_of
from tablectl.leases.clock import milliseconds
from tablectl.leases.guards import HERE, GuardRecord, read_guards
from tablectl.leases.lease_records import Gate
from tablectl.model.commit import Commit
from tablectl.model.errors import EngineError, WindowError, is_conflict
from tablectl.model.plan import Statement
from tablectl.model.run_report import RunOutcome
from tablectl.model.safe_text import listed, minutes_text, size_text
from tablectl.model.stamp import read_stamp
from tablectl.model.stream_progress import StreamPosition, StreamState, UnknownStream
from tablectl.model.table import LOOK_BACK, Depth, LiveTable
from tablectl.model.upkeep import kept_seconds
from tablectl.planning.plan_upkeep import (
    FIX_RETENTION,
    OPTIMIZE,
    VACUUM_RISKS,
    UpkeepTable,
    upkeep_table,
    why_no_vacuum,
    why_read_by_clones,
)

_OF_A_SLICE = 0.85
"""The part of ``window.upkeep`` after which a slice is interrupted: the rest is for its end and for the gate."""
_LEAST = 0.25
"""The part of ``window.upkeep`` that must be left for a slice once writers have ended."""
_TRIES = 3
"""Slices in a row that may fail, find no gap between writers, or end without a commit."""
_BATCH = 512_000_000
"""The bytes of the first batches. Later ones follow from the speed of the first slice."""
_LARGEST_BATCH = 20_000_000_000
_FILES = 1000
"""Small files that become one, on average: one task reads them all, and what it did not finish is lost."""
_BINS = 16
"""Such files in one of the first batches, which are made side by side."""
_SMALLEST = 64_000
_BATCHES = 8
"""A slice has at least so many batches: an interruption loses at most one of them."""
_LOOK_EVERY = 1.0
_TURN = 15.0
"""Seconds that writers have at least to notice that the gate is open."""
_RECENT = 500
"""The commits in which the rewrites of the last hour are looked for."""
_DELTA = "spark.databricks.delta."
_LONGEST_WRITE = 86_400.0
"""Seconds: with a longer retention, a write that is running now cannot have begun before the horizon."""
_BETWEEN = 600.0
"""Seconds for which a slice waits for a moment between two runs, with an open gate."""
_MOST = 5


@dataclass(slots=True)
class _Progress:
    """What the slices of one table have done so far."""

    files: tuple[int, int] = (0, 0)
    """Files removed and added."""
    bytes: int = 0
    slices: int = 0
    tries: int = 0
    batch: int = _BATCH
    most: int = 0
    """The size of merged files that a slice can finish; 0 if no slice failed to."""
    shut: list[float] = field(default_factory=list)
    """Seconds for which the gate was shut, slice by slice."""


def run_upkeep(session: TableSession) -> LiveTable:
    """Run what is due. Returns the table as it was read last. Raises ``StopTableError``, and as ``gate.admit``."""
    plan = _plan(session)
    live, statements = _due(session)
    session.note(live)
    _settings(session, {"vacuum.logging.enabled": "true"})
    for statement in statements:
        if statement.id == OPTIMIZE:
            _optimize(session, statement)
        else:
            _vacuum(session, statement)
        if not session.waiting.keys() & set(statement.serves):
            note_done(session.lease.store, statement.id, live.table_id, milliseconds(session.context.clock.utc()))
        live = session.read()
    for statement in plan.statements:
        if statement.id not in {each.id for each in statements}:
            session.hooks.notes.append(f"{statement.verb} is not due any more")
    return live


def _plan(session: TableSession) -> UpkeepTable:
    assert isinstance(session.plan, UpkeepTable)
    return session.plan


def _due(session: TableSession) -> tuple[LiveTable, tuple[Statement, ...]]:
    """The table, and the planned statements that are still due on it, with the name that statements use."""
    plan, context = _plan(session), session.context
    live = context.reader.read(plan.table, plan.location, Depth(LOOK_BACK, upkeep=plan.upkeep))
    if live.table_id != plan.table_id:
        raise StopTableError(RunOutcome.STALE, "the table was replaced since it was read", "run the same command again")
    tasks = due_by_records(plan.upkeep, live, milliseconds(context.clock.utc()), lambda: session.lease.store)
    named = replace(live, name=context.addressed(plan.table, plan.location))
    found = upkeep_table(plan.upkeep, named, tasks, context.engine.dialect, plan.basis.options).statements
    planned = {each.id for each in plan.statements}
    return live, tuple(each for each in found if each.id in planned)


def _settings(session: TableSession, values: dict[str, str]) -> None:
    """Set what OPTIMIZE and VACUUM of open-source Delta read from the session, which is the run's own."""
    if dialect_of(session.context.engine.dialect).session_settings:
        for key, value in values.items():
            session.context.engine.execute(f"SET {_DELTA}{key} = {value}")


# OPTIMIZE


def _optimize(session: TableSession, statement: Statement) -> None:
    progress = _Progress()
    try:
        while not _optimize_slice(session, statement, progress):
            session.gate.open()
            _let_writers_go(session, progress.shut[-1] if progress.shut else 0.0)
            _, left = _due(session)
            again = next((each for each in left if each.id == OPTIMIZE), None)
            if again is None:
                return
            statement = again
    finally:
        session.gate.open()
        session.gate.give_turn()
        if progress.slices:
            removed, added = progress.files
            longest = f"; the gate was shut for {max(progress.shut):.0f} s at most" if progress.shut else ""
            many = f"{progress.slices} slice{'s' if progress.slices > 1 else ''}"
            session.hooks.notes.append(
                f"OPTIMIZE: {removed:,} files ({size_text(progress.bytes)}) became {added:,}, in {many}{longest}"
            )


def _optimize_slice(session: TableSession, statement: Statement, progress: _Progress) -> bool:
    """One slice. Returns whether nothing is left to do now, because all is done or because the rest has to wait."""
    context, bound = session.context, session.context.config.upkeep
    try:
        _check_may_run(session)
    except StopTableError as stop:  # the calendar closes after the first slices
        if stop.outcome is not RunOutcome.NO_WINDOW or not progress.slices:
            raise
        session.wait_for(statement, stop.message)
        return True
    why = _paced(session, progress) or _why_not_quiet(session, statement)
    if why:
        session.wait_for(statement, why)
        return True
    began = context.clock.monotonic()
    if not _admit(session, statement, progress):
        return False
    live = session.read()
    left = bound * _OF_A_SLICE - (context.clock.monotonic() - began)
    if left < bound * _LEAST:
        return _again(session, statement, progress, f"writers needed {bound - left:.0f} s to end")
    target = _plan(session).target
    size = min(_size(statement, target), progress.most or target)
    _settings(session, _sizes(size, min(progress.batch, _BINS * size) if size < target else progress.batch))
    error, commits = _send_slice(session, statement, live, left)
    session.gate.open()
    progress.shut.append(context.clock.monotonic() - began)
    _count(progress, commits)
    if error is None:
        progress.most = 0  # what is merged now has fewer files to read
        return size == target or not commits
    if commits:
        progress.tries = 0
        return False
    # After a slice without a commit: make the parts smaller, or leave the rest to a later run
    if not (error.ended_by_us or is_conflict(error.error.condition)):
        raise _failed(session, statement, error.error)
    if statement.rewrite and statement.rewrite.clusters:  # smaller files would undo the clustering
        progress.batch = max(progress.batch // 4, _plan(session).target)
    elif error.ended_by_us:
        progress.most = progress.batch = max(size // 8, _SMALLEST)
    words = f"no part of it ends within {progress.shut[-1]:.0f} s" if error.ended_by_us else error_text(error.error)
    return _again(session, statement, progress, words)


def _again(session: TableSession, statement: Statement, progress: _Progress, why: str) -> bool:
    """Count a slice that did nothing. After some of them, the rest is left to a later run."""
    progress.tries += 1
    if progress.tries < _TRIES:
        return False
    session.wait_for(statement, f"{why}; a longer `window.upkeep` makes longer slices")
    return True


def _check_may_run(session: TableSession) -> None:
    context = session.context
    if context.stop.is_set():
        raise interrupted()
    session.check_calendar()
    check_bound(context)
    check_answers(context.engine)


def _admit(session: TableSession, statement: Statement, progress: _Progress) -> bool:
    """Shut the gate and wait for the writers that it blocks; false if they did not end in time."""
    try:
        while not session.gate.admit(statement, statement.phase):
            pass
    except StopTableError as stop:
        progress.tries += 1
        if stop.outcome is not RunOutcome.NO_WINDOW or progress.tries >= _TRIES:
            raise
        return False
    return True


def _size(statement: Statement, target: int) -> int:
    """The size of merged files with which a task reads about ``_FILES`` files: at most the target."""
    cost = statement.rewrite
    files, size = (cost.files_at_most or 0, cost.bytes_at_most) if cost and not cost.clusters else (0, None)
    return target if size is None or files <= _FILES else min(target, max(_FILES * size // files, _SMALLEST))


def _sizes(size: int, batch: int) -> dict[str, str]:
    """The settings of open-source Delta for a slice (``DeltaSQLConf.scala`` of Delta 4.4.0)."""
    return {
        "optimize.maxFileSize": str(size),
        "optimize.minFileSize": str(size // 2),
        "optimize.batchSize": str(batch),
    }


@dataclass(frozen=True, slots=True)
class _SliceError:
    error: EngineError
    ended_by_us: bool


def _send_slice(
    session: TableSession, statement: Statement, live: LiveTable, seconds: float
) -> tuple[_SliceError | None, Sequence[Commit]]:
    """Send the OPTIMIZE and end it after some seconds. Returns its error, and its commits."""
    context = session.context
    session.lease.prove(context.budget)
    check_target(session, statement, live.table_id)
    sent = Sent(context.new_tag(), live.version, rewrites=False, single=False)
    with _ended_after(session, sent.tag, seconds) as ended:
        error = send(session, statement, sent, lambda may: context.engine.execute(statement.sql, sent.tag, may))
    answer = settle_statement(session, sent, error)
    if isinstance(answer, LandedElsewhere):
        message = f"{statement.verb} went to another table: version {answer.version} of {answer.location}"
        raise StopTableError(RunOutcome.UNVERIFIED, message, f"see who moved the name {session.plan.name}")
    if isinstance(answer, UnknownOutcome) or session.lease.running is not None:
        why = answer.why if isinstance(answer, UnknownOutcome) else "it may still run in the engine"
        raise StopTableError(RunOutcome.UNKNOWN, f"what became of the {statement.verb} is unknown: {why}")
    versions = answer.versions if isinstance(answer, Landed) else ()
    made = context.reader.commits(session.plan.location, after=live.version)
    commits = tuple(each for each in made if each.version in versions)
    return (None if error is None else _SliceError(error, ended.is_set())), commits


@contextmanager
def _ended_after(session: TableSession, tag: str, seconds: float) -> Iterator[threading.Event]:
    """Interrupts a statement after some seconds. The event says whether that happened."""
    engine, over, ended = session.context.engine, threading.Event(), threading.Event()

    def watch() -> None:
        if over.wait(seconds):
            return
        ended.set()
        while not over.is_set():
            engine.interrupt(tag)
            over.wait(_LOOK_EVERY)

    thread = threading.Thread(target=watch, name="tablectl-slice", daemon=True)
    thread.start()
    try:
        yield ended
    finally:
        over.set()
        thread.join()


def _failed(session: TableSession, statement: Statement, error: EngineError, step: str = "") -> StopTableError:
    """The end of a table by an error of the engine. A signal can end the statement, too: it may reach the engine."""
    if session.context.stop.is_set():
        message = f"stopped while {statement.verb} ran: {step}{error_text(error)}"
        return StopTableError(RunOutcome.INTERRUPTED, message, "run the same command again")
    return StopTableError(RunOutcome.FAILED, f"{step}{error_text(error)}", error.hint)


def _count(progress: _Progress, commits: Sequence[Commit]) -> None:
    """Add the commits of a slice, and choose the batches of the next one by its speed."""
    progress.slices += 1
    size = sum(each.metric("numRemovedBytes") for each in commits)
    removed = progress.files[0] + sum(each.metric("numRemovedFiles") for each in commits)
    added = progress.files[1] + sum(each.metric("numAddedFiles") for each in commits)
    progress.files, progress.bytes = (removed, added), progress.bytes + size
    if size:
        progress.batch = min(max(size // _BATCHES, 1_000_000), _LARGEST_BATCH)


def _paced(session: TableSession, progress: _Progress) -> str:
    """Why ``window.max_bytes_per_hour`` permits no further slice now; empty if it does. Bounds the next batches."""
    limit = session.context.pace.limit
    if limit is None:
        return ""
    now = milliseconds(session.context.clock.utc())
    recent = session.context.reader.commits(session.plan.location, after=max(session.start - _RECENT, -1))
    spent = sum(
        each.metric("numRemovedBytes")
        for each in recent
        if each.operation == "OPTIMIZE" and read_stamp(each.user_metadata) and each.timestamp > now - 3_600_000
    )
    if spent and spent + progress.batch > limit:
        return (
            f"{size_text(spent)} were rewritten within an hour, and `window.max_bytes_per_hour` is {size_text(limit)}"
        )
    progress.batch = min(progress.batch, max(limit // _BATCHES, 1))
    return ""


def _why_not_quiet(session: TableSession, statement: Statement) -> str:
    """Why writers without a guard forbid the statement now; empty if they do not."""
    if not statement.fails:
        return ""
    context, clock = session.context, session.context.clock
    until = clock.utc() + timedelta(seconds=_BETWEEN if context.within else 0)
    while not context.stop.is_set():
        forecast, now = forecast_of(context, session.plan, session.lease.store), clock.utc()
        answer = decide((forecast,), now, until, 0, context.config.quiet, lambda moment: moment)
        if isinstance(answer, Go):
            return ""
        if not isinstance(answer, WaitUntil) or not forecast.jobs:
            break
        session.tell("quiet", answer.words)
        clock.sleep((answer.moment - now).total_seconds())
    expected = forecast.unknown or "; ".join(each.text for each in forecast.jobs) or forecast.now(now).text()
    return f"writers without a guard may fail now ({expected}): run it at another hour, with `--within`, or guard them"


def _let_writers_go(session: TableSession, most: float) -> None:
    """With an open gate, wait until the writers that waited have written, at most as long as they waited."""
    clock, store = session.context.clock, session.lease.store
    until = clock.monotonic() + max(most, _TURN)
    while clock.monotonic() < until and not session.context.stop.is_set():
        try:
            guards = read_guards(store)
        except WindowError:
            return
        if not any(map(_goes_first, guards)):
            return
        clock.sleep(min(_LOOK_EVERY, max(until - clock.monotonic(), 0.05)))


def _goes_first(guard: GuardRecord) -> bool:
    return guard.waits == HERE or guard.mode.waits(Gate.APPENDS_ONLY)


# VACUUM


def _vacuum(session: TableSession, statement: Statement) -> None:
    """VACUUM behind the gate ``no-schema``: a RESTORE that commits while files are deleted would name some of them.
    Other guarded writes go on. DRY RUN first, with an open gate, which Delta refuses for the same reasons.
    """
    context = session.context
    _check_may_run(session)
    live = session.read()
    if not _may_vacuum(session, statement, live):
        return
    session.tell("note", VACUUM_RISKS)
    session.lease.prove(context.budget)
    check_target(session, statement, live.table_id)
    session.tell("dry run", "VACUUM DRY RUN")
    try:
        files = context.engine.count(f"{statement.sql} DRY RUN")
    except EngineError as wrong:
        raise _failed(session, statement, wrong, "VACUUM DRY RUN: ") from wrong
    session.tell("note", f"VACUUM would delete {files:,} files and directories")
    began = context.clock.monotonic()
    try:
        while not session.gate.admit(statement, statement.phase):
            pass
        _check_may_run(session)
        live = session.read()  # the DRY RUN may have taken hours
        if not _may_vacuum(session, statement, live):
            return
        deleted, size = _send_vacuum(session, statement, live)
    finally:
        session.gate.open()
    told = f", and {deleted:,} files ({size_text(size)}) were deleted" if deleted is not None else ""
    shut = f"; guarded writes of mode `any` waited for {context.clock.monotonic() - began:.0f} s at most"
    session.hooks.notes.append(f"VACUUM: DRY RUN named {files:,} files and directories{told}{shut}")


def _may_vacuum(session: TableSession, statement: Statement, live: LiveTable) -> bool:
    why = check_vacuum(session, _plan(session), live)
    if why:
        session.wait_for(statement, why)
    return not why


def _send_vacuum(session: TableSession, statement: Statement, live: LiveTable) -> tuple[int | None, int]:
    """Send it. Returns the deleted files, ``None`` if no commit tells it, and their bytes."""
    context = session.context
    session.lease.prove(context.budget)
    check_target(session, statement, live.table_id)
    sent = Sent(context.new_tag(), live.version, rewrites=False, single=False)
    error = send(session, statement, sent, lambda may: context.engine.execute(statement.sql, sent.tag, may))
    answer = settle_statement(session, sent, error)
    if isinstance(answer, UnknownOutcome):
        message = f"what became of the VACUUM is unknown: {answer.why}"
        raise StopTableError(RunOutcome.UNKNOWN, message, "run the same command again")
    if error is not None:
        raise _failed(session, statement, error)
    made = context.reader.commits(session.plan.location, after=live.version)
    ours = [each for each in made if isinstance(answer, Landed) and each.version in answer.versions]
    size = sum(each.metric("sizeOfDataToDelete") for each in ours)
    return (sum(each.metric("numDeletedFiles") for each in ours) if ours else None), size


def check_vacuum(session: TableSession, plan: UpkeepTable, live: LiveTable) -> str:
    """Why VACUUM has to wait; empty if it may run. Raises ``StopTableError`` if waiting would not help, and
    ``LiveError``.
    """
    keeps = kept_seconds(live.property(keys.DELETED_FILE_RETENTION))
    if reason := why_no_vacuum(live, plan.keeps):
        raise StopTableError(RunOutcome.REFUSED, reason, FIX_RETENTION)
    reason, hint = why_read_by_clones(plan.clones())
    if reason:
        raise StopTableError(RunOutcome.REFUSED, reason, hint)
    horizon = milliseconds(session.context.clock.utc()) - round(keeps * 1000)
    return _streams(session, plan, horizon) or _writers(session, live, keeps)


def _streams(session: TableSession, plan: UpkeepTable, horizon: int) -> str:
    """The declared streams that have not read all commits from before the horizon."""
    if not plan.basis.options.streams:
        return ""
    reader = session.context.reader
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
