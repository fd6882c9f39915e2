"""The state of one table during a run, and its result: verified, or ended early."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from tablectl.applying.calendar_check import outside
from tablectl.applying.copy_beside import BesideCopy
from tablectl.applying.events import RunEvent
from tablectl.applying.gate import GateKeeper
from tablectl.applying.hooks import HookStreams, TableHooks, distinct
from tablectl.applying.observed_writers import name_of, possible_failures, writers_seen
from tablectl.applying.remaining_statements import read_planned
from tablectl.applying.run_context import RunContext, StopTableError
from tablectl.delta.locations import canonical_location
from tablectl.leases.clock import milliseconds
from tablectl.leases.lease import Lease, LeaseLost
from tablectl.model.commit import Commit
from tablectl.model.errors import LiveError, TablectlError, WindowError
from tablectl.model.plan import Phase, Statement, TablePlan
from tablectl.model.run_report import CommitRun, RunOutcome, StatementRun, TableRun
from tablectl.model.safe_text import listed, value_text
from tablectl.model.stamp import read_stamp
from tablectl.model.table import LOOK_BACK, LiveTable
from tablectl.planning.derive_statements import stopped_streams
from tablectl.planning.diff import ChangeState, change_state, unlike
from tablectl.planning.plan_upkeep import UpkeepTable

_AS_DECLARED = frozenset({RunOutcome.APPLIED, RunOutcome.ALREADY, RunOutcome.WAITING})

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class TableSession:
    """What has happened so far under a table's lease; it becomes a ``TableRun``."""

    context: RunContext
    plan: TablePlan
    lease: Lease
    hooks: TableHooks
    gate: GateKeeper
    begun: datetime
    """By the wall clock."""
    start: int = -1
    """The version at the start of the run; -1 before the first read."""
    already: tuple[str, ...] = ()
    """Ids of the changes that were already made before the run."""
    sent: list[StatementRun] = field(default_factory=list)
    exposed: list[float] = field(default_factory=list)
    """When statements landed that fail every writer, in seconds on our clock."""
    waiting: dict[str, str] = field(default_factory=dict)
    """Change id → why the change cannot be made yet: history must age first."""
    counted: frozenset[str] = frozenset()
    """The statements whose rows in the way were counted."""
    rewritten: int = -1
    """The version in which this run rewrote the whole table; -1 if it did not."""
    rewritable: int = -1
    """The version whose rows were counted that a rewrite cannot keep, and which has none."""
    compared: int = -1
    """The version of a rewrite that was compared with the version before it and found equal."""
    copying: BesideCopy | None = None
    """The copy beside the table, once it has begun."""
    unseen: Statement | None = None
    """The last statement, if it is said to have succeeded, changes metadata, and no commit can be its."""
    guarded: frozenset[str] = frozenset()
    """The names of writers that had a guard before the gate shut. With ``--when quiet`` alone."""
    shut_since: float | None = None
    """Since when the gate is shut for a moment between two runs, in seconds since the epoch."""
    closed: dict[int, tuple[int, int]] = field(default_factory=dict)
    """For each closing of the gate, counted from 1, the first and the last version that were read meanwhile."""

    @classmethod
    def begin(cls, context: RunContext, plan: TablePlan, lease: Lease) -> TableSession:
        """Start the session of a table whose lease is held."""
        tables = context.together.tables if context.together else (plan,)
        streams = HookStreams(
            declared=distinct(each.basis.options.stream_names for each in tables),
            stopped=distinct(stopped_streams(each, context.engine.dialect) for each in tables),
        )
        hooks = TableHooks(context, plan.name, plan.location, lease, streams)
        return cls(context, plan, lease, hooks, GateKeeper(context, plan, lease, hooks), context.clock.utc())

    def note(self, live: LiveTable) -> None:
        """Record a read of the newest version."""
        if self.start < 0:
            self.start = live.version
            self.already = _done(self.plan, live)
            self.tell("fresh")
        self.note_closed(live.version)

    def note_closed(self, version: int) -> None:
        """Record a version that was read, if the gate is closed."""
        if self.gate.closed:
            first, _ = self.closed.get(self.gate.closings, (version, version))
            self.closed[self.gate.closings] = first, version

    def wait_for(self, statement: Statement, why: str) -> None:
        """Leave a statement, and the changes that it serves, to a later apply."""
        self.waiting |= dict.fromkeys(statement.serves, why)

    def check_calendar(self, *, reopened: bool = False) -> None:
        """Raise ``StopTableError`` if the time in the calendar is over, unless the closed part has begun: that is
        completed. ``reopened``: the gate was open for hours since, so the next closed part is another one.
        """
        if reopened or not any(each.phase is Phase.CLOSED and not each.error for each in self.sent):
            end = outside(self.context, self.plan, self.begun)
            if end is not None:
                raise StopTableError.of(end)

    def tell(self, step: str, words: str = "") -> None:
        """Emit an event of this table."""
        self.context.notify(RunEvent(self.plan.name, step, words))

    def read(self, version: int | None = None) -> LiveTable:
        """The live table, with the details that the changes need."""
        return read_planned(self.context, self.plan, version)


def _done(plan: TablePlan, live: LiveTable) -> tuple[str, ...]:
    """The changes that are already made. A change to how data is clustered waits for the change of the clustering
    columns.
    """
    done = [change for change in plan.changes if change_state(change, live) is ChangeState.DONE]
    left = {change.attribute for change in plan.changes if not change.key and change not in done}
    return tuple(change.id for change in done if change.attribute not in left)


def verified(session: TableSession, reached: LiveTable | None) -> TableRun:
    """Verify that every change reads as declared at the version of our last commit. ``looked_again`` finds out what
    others did after it.

    ``reached`` is the table when nothing was missing any more, ``None`` if others have changed it since. Raises
    ``LeaseLost`` if the lease is not ours any more: the work under it may not have been protected.
    """
    session.tell("verify", "verify")
    if session.sent:
        # A short failure of the store does not lose a lease
        try:
            session.lease.prove(0)
        except LeaseLost:
            raise
        except WindowError as error:
            _log.warning("the lease of %s could not be looked at once more: %s", session.plan.name, error.message)
    ours, others = since(session)
    live = session.read(ours[-1].version) if ours or reached is None else reached
    wrong = _wrong(session.plan, live, frozenset(session.waiting))
    if wrong:
        raise StopTableError(
            RunOutcome.UNVERIFIED,
            f"not as declared after the last statement: {'; '.join(wrong)}",
            "see whose commits came in between below, and plan again" if others else "plan again",
        )
    # A statement that succeeded is never "already": it may have had nothing to do, or its commit may have no stamp.
    outcome = RunOutcome.APPLIED if ours or any(not each.error for each in session.sent) else RunOutcome.ALREADY
    return replace(
        _run_so_far(session, others),
        outcome=RunOutcome.WAITING if session.waiting else outcome,
        message="; ".join(f"{change}: {why}" for change, why in session.waiting.items()),
        hint="apply again then" if session.waiting else "",
        changed=tuple(
            change.id
            for change in session.plan.changes
            if change.id not in session.already and change.id not in session.waiting
        ),
        commits=ours,
    )


def lease_lost(session: TableSession, lost: LeaseLost) -> TableRun:
    """The outcome of a run that lost its lease: who took it over, and whether the table is as declared anyway.

    The outcome is ``ALREADY`` only if the successor ran the same plan: the work of other plans is not compared with
    ours.
    """
    try:
        successor = session.lease.successor()
        same = successor is not None and successor.digest == session.context.stamp.plan
        done = same and not _wrong(session.plan, session.read(), frozenset(session.waiting))
    except (WindowError, LiveError):
        successor, done = None, False
    if done and successor is not None and not successor.held:
        message = f"the lease was taken over by {successor}, which ran the same plan: the table is as declared"
        return ended(session, StopTableError(RunOutcome.ALREADY, message), lost=True)
    return ended(session, StopTableError(RunOutcome.FAILED, lost.message, lost.hint), lost=True)


def ended(session: TableSession, end: StopTableError, *, lost: bool = False) -> TableRun:
    """The outcome of a table that was not completed, with the commits that explain it. ``lost``: the lease was."""
    try:
        ours, others = since(session, stale=end.outcome is RunOutcome.STALE)
    except Exception:  # noqa: BLE001  # the outcome is unchanged if the log cannot be read
        ours, others = (), ()
    if lost:
        # Its gate was dead, or its successor's, for an unknown part of the time.
        others = tuple(replace(each, inside=False, late=False) for each in others)
    run = _run_so_far(session, others)
    return replace(run, outcome=end.outcome, message=end.message, hint=end.hint, commits=ours)


def _run_so_far(session: TableSession, others: Sequence[CommitRun] = ()) -> TableRun:
    sent, gate = session.sent, session.gate
    rewrites = [each.milliseconds for each in sent if each.phase is Phase.REWRITE]
    commits = _looked_back(session)
    writers = writers_seen(each for each in commits if each.version <= session.start)
    now = milliseconds(session.context.clock.utc())
    failures = possible_failures(sent, others, None if gate.guarded else commits, writers, now)
    return TableRun(
        name=session.plan.name,
        outcome=RunOutcome.FAILED,
        epoch=session.lease.record.epoch,
        already=session.already,
        statements=tuple(sent),
        foreign=tuple(others),
        window_ms=gate.closed_ms,
        drain_ms=round(gate.drained_for * 1000),
        rewrite_ms=sum(rewrites),
        exposed_ms=round((session.exposed[-1] - session.exposed[0]) * 1000) if session.exposed else 0,
        gates=tuple(gate.spans),
        possible_failures=(*gate.possible_failures, *failures),
        writers=writers,
    )


def _looked_back(session: TableSession) -> tuple[Commit, ...]:
    """The commits shortly before the run and since. Best effort: they are only reported, so an unreadable log is
    ignored.
    """
    if not session.sent:
        return ()
    try:
        return session.context.reader.commits(session.plan.location, after=max(session.start - LOOK_BACK, -1))
    except TablectlError:
        return ()


def was_reached(session: TableSession) -> bool:
    """Whether the table was as declared at our last commit. What others changed after it is not a failure of the
    run.
    """
    if not session.sent:
        return False
    ours, _ = since(session)
    return bool(ours) and not _wrong(session.plan, session.read(ours[-1].version), frozenset(session.waiting))


def since(session: TableSession, *, stale: bool = False) -> tuple[tuple[CommitRun, ...], tuple[CommitRun, ...]]:
    """Commits since the run began, or since the plan if it is stale, oldest first: this run's, and others'.

    Commits of earlier runs of the same plan are in neither list, unless they were made after this run began: then a
    holder that was paused past its lease has continued, which must be reported. Commits of an earlier attempt of this
    run are this run's.
    """
    ours: list[CommitRun] = []
    others: list[CommitRun] = []
    planned = session.plan.version
    start = session.start if session.start >= 0 else planned
    stamp, first = session.context.stamp, planned if stale else start
    for commit in reversed(session.context.reader.commits(session.plan.location, after=first)):
        found = read_stamp(commit.user_metadata)
        if found == stamp:
            ours.append(_commit_run(commit))
        elif commit.version <= start and not stale:
            continue
        elif found is None or found.plan != stamp.plan or commit.version > start:
            inside = any(first < commit.version <= last for first, last in session.closed.values())
            theirs = _commit_run(commit, found.run if found else "", inside=inside)
            # While our lease holds, no other apply has one.
            ours_since = 0 <= session.start < commit.version and not session.lease.lost
            others.append(replace(theirs, late=found is not None and ours_since))
    return tuple(ours), tuple(others)


def _commit_run(commit: Commit, run: str = "", *, inside: bool = False) -> CommitRun:
    return CommitRun(
        version=commit.version,
        operation=commit.operation,
        user=commit.user or commit.client.text(),
        at=commit.timestamp,
        metadata=commit.changes_metadata,
        run=run,
        inside=inside,
        writer=name_of(commit),
    )


def _wrong(plan: TablePlan, live: LiveTable, waiting: frozenset[str]) -> list[str]:
    """What does not read as declared. A waiting change must only be pending."""
    if live.table_id != plan.table_id:
        return ["the table was replaced by another one"]
    return [
        f"{change.id} is {value_text(found)}, not {value_text(change.after)}"
        for change, found in unlike(plan.changes, live)
        if change.id not in waiting or change_state(change, live) is ChangeState.STALE
    ]


def looked_again(context: RunContext, plan: TablePlan, run: TableRun) -> TableRun:
    """The run of a table that is as declared, by a last look at the end of the whole run.

    After our last commit others can RESTORE, REPLACE, ALTER or DROP the table, or move its name, while hooks run, other
    tables are changed, or the first ones are watched. Then the table is not as declared, and the outcome says so. The
    outcome of a table that cannot be looked at is the same: exit code 0 means that we looked.
    """
    ids = {*run.changed, *run.already}
    moved = any(each.effect.moves for each in plan.statements)
    if run.outcome not in _AS_DECLARED or isinstance(plan, UpkeepTable) or not ids or moved:
        return run
    try:
        last = max((each.version for each in run.commits), default=plan.version)
        known = context.reader.commits(plan.location, after=last - 1)
        theirs = [each for each in reversed(known) if each.version > last and each.stamp != context.stamp]
        # A table that was dropped and created again counts its versions from 0: only a commit of ours proves that it
        # is the same one.
        there = any(each.version == last and each.stamp == context.stamp for each in known)
        head = read_planned(context, plan) if theirs or not there else None
        by_name = run.commits and not plan.table.is_path and context.engine.alive()
        where = context.where(plan.table) if by_name else plan.location
    except TablectlError as error:
        message = f"it was as declared, and could not be looked at again at the end of the run: {error.message}"
        return replace(run, outcome=RunOutcome.UNVERIFIED, message=message, hint=error.hint or "run the command again")
    if canonical_location(where) != canonical_location(plan.location):
        message = f"{plan.location} is as declared, and the name {plan.name} was moved to {where} since"
        return replace(run, outcome=RunOutcome.UNVERIFIED, message=message, hint="see who moved it, and plan again")
    undone = [each for each, _ in unlike(plan.changes, head) if each.id in ids] if head else []
    if not undone:
        return run
    by = [each for each in theirs if each.changes_metadata] or theirs
    told = listed([f"version {each.version} ({each.operation} by {each.user or each.client.text()})" for each in by], 3)
    if not there and head and head.table_id != plan.table_id:
        told = "the table was dropped and created again"
    message = f"{', '.join(each.id for each in undone)}: applied and verified, then changed by others: {told}"
    hint = "see whose change it was, and plan again"
    later = tuple(each.id for each in undone)
    return replace(run, outcome=RunOutcome.UNVERIFIED, message=message, hint=hint, later=later)
