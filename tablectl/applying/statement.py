"""One statement, from its announcement to its end, and the one decision about its result.

A statement is decided at a version of the log at a location, but sent with a name. So the name is resolved directly
before the statement, and the log of that location is read afterwards. The result is one of four: the statement landed
there, it landed elsewhere, it did not land and nothing of it runs any more, or the result is unknown.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from tablectl.applying.remaining_statements import error_text, is_missing, is_too_young, planned_phase, separate_commits
from tablectl.applying.run_context import RunContext, StopTableError, check_table_id
from tablectl.applying.table_session import TableSession
from tablectl.delta.locations import canonical_location
from tablectl.engine.interface import Engine, MaySend
from tablectl.leases.clock import StoppedError, milliseconds
from tablectl.leases.lease import Lease
from tablectl.leases.lease_records import RunningStatement
from tablectl.model.commit import Commit
from tablectl.model.commit_contents import Kind
from tablectl.model.errors import EngineError, LiveError, TablectlError, WindowError, is_conflict
from tablectl.model.plan import Phase, Statement, TablePlan
from tablectl.model.run_report import RunOutcome, StatementRun
from tablectl.model.stamp import read_stamp

_LOOK_EVERY = 1.0
_OF_OTHERS = 50
"""How many commits of another table to search for a statement of ours."""

UNGUARDED = (
    "commits of writers without a guard won against each try, and another run may end the same way: guard these "
    "writers (docs/guards.md), pause them with hooks, or start at a quiet moment (`--when quiet`)"
)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Sent:
    """A statement that was sent, and the state that it was decided from."""

    tag: str
    version: int
    """The table version that it was decided from."""
    rewrites: bool
    """Whether it rewrites the whole table, which always makes a commit."""
    single: bool
    """Whether one commit ends it."""
    quick: bool = False
    """Whether it only commits metadata, so that it takes seconds."""

    @property
    def ends_above(self) -> int | None:
        """One commit above this version ends it; ``None`` if it may make several."""
        return self.version if self.single else None


_IN_PARTS = frozenset({Kind.OPTIMIZE, Kind.REORG})
"""Delta may commit the files of these in several parts (``spark.databricks.delta.optimize.batchSize``)."""


def ends_with_commit(statement: Statement) -> bool:
    """Whether a statement makes one commit and nothing after it."""
    return len(statement.commits) == 1 and _IN_PARTS.isdisjoint(statement.commits)


@dataclass(frozen=True, slots=True)
class Landed:
    """It is in the log of the planned table."""

    versions: tuple[int, ...]
    """Its commits, oldest first; empty if it had nothing to do, or its commits carry no stamp."""
    between: tuple[Commit, ...] = ()
    """Metadata commits of others between the version that it was decided from and its last commit, if any, or now."""


@dataclass(frozen=True, slots=True)
class LandedElsewhere:
    """It is in the log of another table, to which the name resolved when the engine looked it up."""

    location: str
    version: int


@dataclass(frozen=True, slots=True)
class NotLanded:
    """It made no commit and is not running."""


@dataclass(frozen=True, slots=True)
class UnknownOutcome:
    """It may have landed or may still run."""

    why: str


StatementResult = Landed | LandedElsewhere | NotLanded | UnknownOutcome


def check_name(context: RunContext, plan: TablePlan) -> None:
    """Raise ``StopTableError`` if the table's name does not resolve to the planned location."""
    found = _where(context, plan)
    if canonical_location(found) != canonical_location(plan.location):
        raise StopTableError(
            RunOutcome.STALE,
            f"the name now leads to {found}; the plan was made for {plan.location}",
            "correct `location:` in the policy if it has one, and plan again",
        )


def check_target(session: TableSession, statement: Statement, tables_id: str) -> None:
    """Check directly before a statement that the name resolves to the planned location and the table there is the
    planned one.

    ``tables_id`` is the table id that was read last. It is read again if queries have run since; a copy of the table
    checks it by itself. Raises ``StopTableError``.
    """
    check_name(session.context, session.plan)
    again = statement.repartition is not None and session.copying is None
    check_table_id(session.plan, session.read().table_id if again else tables_id)


def check_bound(context: RunContext) -> None:
    """Raise ``StopTableError`` if the engine would let a statement run without limit after this process has ended."""
    if context.engine.bound is None and not context.stamp.proceed:
        raise StopTableError(
            RunOutcome.REFUSED,
            "this engine goes on without the process that asked it, and no time limit of its statements is known: if "
            "this run were killed, the end of its statement would be unknown",
            "set `engine.statement_bound` to the seconds after which the engine ends a statement whose client is gone; "
            "`--proceed REASON` does without it",
        )


class SendCheck:
    """Asked directly before the request of a statement is sent: the lease must be ours still (``MaySend``)."""

    def __init__(self, lease: Lease, running: RunningStatement) -> None:
        self._lease = lease
        self._running = running
        self._sent = False

    def __call__(self) -> None:
        """Raise ``WindowError`` if the statement may not be sent, or an unanswered ``EngineError`` if it may not be
        sent again.
        """
        try:
            self._lease.announce_again(self._running)
        except WindowError as error:
            if not self._sent:
                raise
            message = f"the engine did not know the statement, which was not sent again: {error.message}"
            raise EngineError(message, error.hint, unanswered=True) from error
        self._sent = True


@contextmanager
def announced(session: TableSession, sent: Sent) -> Iterator[SendCheck]:
    """While a statement runs, the lease record names it, its engine, and how long it may run without this process.

    Only ``statement_over`` removes the announcement, once it is known that nothing of the statement runs.
    """
    context = session.context
    running = RunningStatement(
        context.engine.address or "this process",
        sent.tag,
        _bound(sent, context.engine),
        context.stamp.run,
        sent.ends_above,
    )
    session.lease.announce(running)
    with session.lease.awaiting():
        yield SendCheck(session.lease, running)


def _bound(sent: Sent, engine: Engine) -> float:
    """Seconds for which a statement may still run once its client is gone. An engine that ends statements by itself
    ends one that only commits metadata after seconds, and not after the hour that a rewrite may take.
    """
    bound = engine.bound or 0.0
    return min(bound, engine.commit_bound) if sent.quick and engine.commit_bound is not None else bound


def statement_over(session: TableSession) -> None:
    """Record that our statement is not running any more. Never raises: if it fails, the next record says so."""
    try:
        session.lease.statement_ended()
    except WindowError as error:
        _log.warning("the end of a statement of %s was not written down: %s", session.plan.name, error.message)


def settle_statement(
    session: TableSession, sent: Sent, error: EngineError | None, *, opens: bool = False
) -> StatementResult:
    """Determine the result of a statement: the same code after a success, an error and a lost answer.

    Interrupts by its tag whatever may still run, and waits for its end, at most for the lease's ttl. Removes the
    announcement if nothing of it runs. ``opens``, only after a success, opens the gate as well.
    """
    over = error is None or not error.unanswered or _wait_for_end(session, sent)
    if over and not opens:
        statement_over(session)
    try:
        commits = session.context.reader.commits(session.plan.location, after=sent.version)
        session.note_closed(max((each.version for each in commits), default=sent.version))
    except TablectlError as unreadable:
        return UnknownOutcome(unreadable.message)
    finally:
        if opens:
            session.gate.end_statement()
    found: Landed | LandedElsewhere | None = _landed(session, sent, commits, claimed=error is None)
    if found is None and (error is None or error.unanswered):
        found = _elsewhere(session, sent)
    if found is not None and not over and sent.single:
        statement_over(session)  # nothing follows its commit
    if isinstance(found, LandedElsewhere) or (found is not None and session.lease.running is None):
        return found
    if not over:
        return UnknownOutcome("it may still run in the engine")
    if error is None and not sent.rewrites:
        return Landed((), tuple(each for each in reversed(commits) if each.changes_metadata))
    return NotLanded()


def check_took_effect(
    statement: Statement, error: EngineError, missing: Sequence[Statement], unknown: str = "", *, runs: bool = False
) -> None:
    """Check whether a statement that returned an error took effect. If the table has the effect, only the answer was
    lost.

    Raises ``StopTableError`` if its effect is missing, or if it ``runs``: it may make further commits. ``unknown`` says
    why it may still take effect later.
    """
    if not (runs or is_missing(statement, missing)):
        return
    if not unknown:
        hint = UNGUARDED if is_conflict(error.condition) else error.hint
        raise StopTableError(RunOutcome.FAILED, error_text(error), hint)
    hint = "run the same command again: it interrupts the statement, or waits until it has ended"
    raise StopTableError(
        RunOutcome.UNKNOWN, f"{error_text(error)}; what became of the statement is unknown: {unknown}", hint
    )


def _landed(session: TableSession, sent: Sent, commits: Sequence[Commit], *, claimed: bool) -> Landed | None:
    """Find our commits by stamp. If commits carry no stamp, a rewrite that the engine reports as done is found by its
    effect.
    """
    ours = [each for each in commits if read_stamp(each.user_metadata) == session.context.stamp]
    if not ours and sent.rewrites and claimed:
        ours = [each for each in commits if each.overwrites and each.changes_metadata and not each.user_metadata][:1]
    if not ours:
        return None
    versions = tuple(sorted(each.version for each in ours))
    between = tuple(
        each
        for each in reversed(commits)
        if each.changes_metadata and each.version < versions[-1] and each.version not in versions
    )
    return Landed(versions, between)


def _elsewhere(session: TableSession, sent: Sent) -> LandedElsewhere | None:
    """Our commit in the log of another table: of the one to which the name resolves now, or of one that was made again
    at the planned location. ``None`` if there is none.
    """
    plan, context = session.plan, session.context
    try:
        found = plan.location if sent.rewrites and context.by_location(plan) else _where(context, plan)
        live = context.reader.read(plan.table, found)
        if live.table_id == plan.table_id:
            return None
        commits = context.reader.commits(found, after=max(live.version - _OF_OTHERS, -1))
    except (EngineError, LiveError):
        return None
    ours = [each.version for each in commits if read_stamp(each.user_metadata) == context.stamp]
    return LandedElsewhere(found, max(ours)) if ours else None


def _where(context: RunContext, plan: TablePlan) -> str:
    return plan.table.parts[0] if plan.table.is_path else context.where(plan.table)


def _wait_for_end(session: TableSession, sent: Sent) -> bool:
    """Interrupt a statement and wait until the engine says that nothing of it runs, at most for the lease's ttl.

    A statement has ended if its engine says so or its process is gone (``engine/liveness.py``), or if its only commit
    is in the log. A later commit of metadata by another client does not end it: Delta refuses only transactions that
    began before that commit (``checkNoMetadataUpdates`` in ``ConflictChecker.scala`` of Delta 4.4.0), and one that
    waits in the server for its turn has not begun.
    """
    context = session.context
    started = context.clock.monotonic()
    session.tell("interrupting", "no answer came: ending the statement in the engine")
    while True:
        if context.engine.interrupt(sent.tag) is False:
            return True
        left = started + session.lease.record.ttl - context.clock.monotonic()
        if left <= 0 or context.has_committed(session.plan.location, context.stamp.run, sent.ends_above):
            return False
        try:
            context.clock.sleep(min(_LOOK_EVERY, left))
        except StoppedError:
            return False


def send(
    session: TableSession, statement: Statement, sent: Sent, execute: Callable[[MaySend], None]
) -> EngineError | None:
    """Call ``execute`` and return the engine's error, if there is one. Raises ``WindowError`` if nothing was sent."""
    clock, phase = session.context.clock, planned_phase(session.plan, statement)
    session.tell(f"before {statement.id}", f"{phase}: {statement.verb}")
    started, at = clock.monotonic(), milliseconds(clock.utc())
    error: EngineError | None = None
    with announced(session, sent) as may_send:
        try:
            execute(may_send)
        except EngineError as raised:
            error = raised
        except WindowError:  # by ``may_send``: nothing was sent
            statement_over(session)
            raise
    if error and is_too_young(statement, error.condition):
        session.wait_for(statement, "history is not old enough yet to be given up")
        error = None
    session.sent.append(
        StatementRun(
            id=statement.id,
            sql=statement.sql,
            phase=phase,
            milliseconds=round((clock.monotonic() - started) * 1000),
            at=at,
            error=error.message if error else "",
            condition=error.condition if error else "",
            fails=statement.fails,
            separate=separate_commits(statement),
        )
    )
    if phase is Phase.CLOSED and statement.fails and error is None:
        session.exposed.append(clock.monotonic())
    session.tell(f"after {statement.id}")
    return error
