"""Apply one table's plan under its lease: check that it is fresh, run what is missing, verify.

Each statement is decided from the live table just before it is sent, after the drain of the writers that it conflicts
with. So a first run, a resumed run and a run whose answer was lost use the same code: a change that reads as declared
is done, a change that reads as before is run, and any other value is someone else's, so the table is left unchanged.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tablectl.applying.constraint_violations import check_violations
from tablectl.applying.copy_beside import (
    OutdatedCopyError,
    begin_copy,
    catch_up,
    copies_beside,
    cut_over,
    decided_again,
)
from tablectl.applying.quiet_moment import between_runs, guarded_names
from tablectl.applying.remaining_statements import (
    check_allowed,
    error_text,
    is_missing,
    planned_phase,
    remaining_statements,
    why_waiting,
)
from tablectl.applying.rewrite_checks import check_rewritable, check_rewrites
from tablectl.applying.run_context import RunContext, StopTableError, check_answers, interrupted
from tablectl.applying.run_upkeep import run_upkeep
from tablectl.applying.statement import (
    Landed,
    LandedElsewhere,
    NotLanded,
    Sent,
    UnknownOutcome,
    check_bound,
    check_name,
    check_target,
    check_took_effect,
    ends_with_commit,
    send,
    settle_statement,
    statement_over,
)
from tablectl.applying.statement_turns import Lane, is_quick, lane_of
from tablectl.applying.table_session import TableSession, ended, lease_lost, verified, was_reached
from tablectl.delta.locations import canonical_location
from tablectl.delta.schema import Schema, own_metadata
from tablectl.engine.interface import MaySend
from tablectl.leases.clock import StoppedError, milliseconds
from tablectl.leases.guards import APPLYING
from tablectl.leases.lease import Lease, LeaseLost
from tablectl.model.commit import Commit
from tablectl.model.errors import EngineError, TablectlError, error_of, is_conflict, no_panic
from tablectl.model.plan import Phase, Statement, TablePlan
from tablectl.model.run_report import RunOutcome, TableRun
from tablectl.model.stamp import read_stamp
from tablectl.model.table import LiveTable
from tablectl.planning.diff import ChangeState, change_state, why_stale
from tablectl.planning.plan_upkeep import UpkeepTable

_TRIES = 5
"""Attempts to send one statement if others commit at the same moment each time."""


def run_table(context: RunContext, plan: TablePlan, lease: Lease) -> TableRun:
    """Apply one table's plan, then open its gate and run its after-hooks.

    Never raises an ``Exception``: every error becomes the table's outcome. Otherwise the commits already made would go
    unreported.
    """
    session = TableSession.begin(context, plan, lease)
    before = APPLYING.set(lease.record.run)
    try:
        try:
            run = _run_session(session)
        finally:
            session.gate.leave()
        try:
            with no_panic(plan.name):
                session.hooks.after(run.outcome)
        except Exception as error:  # noqa: BLE001  # see the docstring
            session.hooks.notes.append(unexpected(plan.name, error)[0])
    finally:
        APPLYING.reset(before)
    return replace(run, owed=session.hooks.owed, notes=tuple(session.hooks.notes))


def _run_session(session: TableSession) -> TableRun:
    context, plan = session.context, session.plan
    try:
        try:
            with no_panic(plan.name):
                if session.lease.lost:  # raises
                    session.lease.prove(0)
                session.hooks.settle()
                check_name(context, plan)
                context.approve(plan)
                reached = run_upkeep(session) if isinstance(plan, UpkeepTable) else _run_statements(session)
                session.gate.finish()
        except Exception:
            session.gate.open()
            raise
        session.gate.open()
        return verified(session, reached)
    except LeaseLost as lost:
        return lease_lost(session, lost)
    except StopTableError as end:
        return ended(session, end)
    except StoppedError:
        return ended(session, interrupted())
    except Exception as error:  # noqa: BLE001  # see ``run_table``
        return ended(session, StopTableError(RunOutcome.FAILED, *unexpected(plan.name, error)))


def unexpected(table: str, error: Exception) -> tuple[str, str]:
    """Message and hint for an error of one table; the debug log has the traceback of an unexpected one."""
    found = error_of(table, error)
    again = "the same command goes on from the tables as they are then"
    return found.message, found.hint if found is error else f"{found.hint}; {again}"


def _run_statements(session: TableSession) -> LiveTable | None:
    """Run the missing statements. Returns the table as it was when nothing was missing any more.

    Returns ``None`` if that was the case at our last commit, and others have changed the table since.
    """
    context, plan = session.context, session.plan
    attempts = _Attempts()
    while True:
        try:
            live = session.read()
        except TablectlError as unreadable:
            if attempts.failed is None:
                raise
            # The error of the statement comes first: whether it took effect is not known.
            error = attempts.failed.error
            message = f"{error_text(error)}; whether it took effect is unknown: {unreadable.message}"
            raise StopTableError(RunOutcome.UNKNOWN, message, error.hint or unreadable.hint) from unreadable
        session.note(live)
        try:
            _check_metadata(session, live)
            missing = remaining_statements(
                plan, live, context.engine.dialect, context.addressed(plan.table, plan.location)
            )
        except StopTableError:
            if was_reached(session):
                return None
            raise
        attempts.check_failed(missing)
        if session.unseen is not None and is_missing(session.unseen, missing):
            raise _went_unseen(session, session.unseen, RunOutcome.UNVERIFIED)
        statement = _next(session, missing, attempts.done)
        if statement is None:
            check_rewrites(session)
            return live
        check_violations(session, missing, live)
        if not _may_run(session, statement, live):
            continue  # its gate was shut just now, and writers that it waited for may have changed the table
        after = (each for each in missing if each is not statement and each.id not in attempts.done)
        last = not any(planned_phase(plan, each) is Phase.CLOSED for each in after)
        try:
            failed = _run_statement(session, statement, live, last=last)
        except OutdatedCopyError:
            attempts.again(statement)
            session.gate.reopen()
        else:
            attempts.note(statement, failed, context)


def _check_metadata(session: TableSession, live: LiveTable) -> None:
    """Raise ``StopTableError`` if the catalog names a newer change of metadata than the plan saw, and it is not one of
    this plan. The catalog's number moves only with metadata, so new data does not make a plan stale.
    """
    planned, now = session.plan.basis.metadata_version, live.catalog.metadata_version if live.catalog else None
    if planned is None or now is None or now <= planned:
        return
    made = next((each for each in session.context.reader.commits(session.plan.location, after=now - 1)[-1:]), None)
    stamp = read_stamp(made.user_metadata) if made else None
    if stamp is not None and stamp.plan == session.context.stamp.plan:
        return
    who = f", {made.operation} by {made.user or made.client.text()}" if made else ""
    raise StopTableError(
        RunOutcome.STALE,
        f"the metadata changed since the plan: its catalog names version {now}{who}, and the plan saw {planned}",
        "plan again",
    )


@dataclass(frozen=True, slots=True)
class _Failed:
    """A statement that returned an error."""

    statement: Statement
    error: EngineError
    unknown: str = ""
    """Why the result is unknown; empty if the statement made no commit and is not running."""
    runs: bool = False
    """Whether it may still commit."""


class _Attempts:
    """Which statements were sent, and with what result."""

    def __init__(self) -> None:
        self.done: set[str] = set()
        """Ids of statements that are not sent again."""
        self.failed: _Failed | None = None
        """The last statement, if it returned an error."""
        self._tries: Counter[str] = Counter()

    def check_failed(self, missing: Sequence[Statement]) -> None:
        """Raise ``StopTableError`` if the last statement returned an error and its effect is missing."""
        if self.failed is not None:
            failed = self.failed
            check_took_effect(failed.statement, failed.error, missing, failed.unknown, runs=failed.runs)
            self.done.add(self.failed.statement.id)
            self.failed = None

    def again(self, statement: Statement) -> None:
        """Record that a statement was not sent, because the table is not the one that was decided on. Raises
        ``StopTableError`` after a few times.
        """
        self._tries[statement.id] += 1
        decided_again(self._tries[statement.id])

    def note(self, statement: Statement, failed: _Failed | None, context: RunContext) -> None:
        """Record the result of a statement. Waits briefly if it lost against a concurrent commit and may be retried."""
        self._tries[statement.id] += 1
        # A rewrite of the whole table is too expensive to be retried against a writer without a guard.
        whole = statement.repartition is not None or (statement.rewrite is not None and statement.rewrite.everything)
        if failed is None:
            self.done.add(statement.id)
        elif is_conflict(failed.error.condition) and self._tries[statement.id] < (1 if whole else _TRIES):
            # A concurrent commit won: read the table again and decide again from its new state.
            pause = 0.1 * self._tries[statement.id] * random.uniform(0.5, 1.5)  # noqa: S311  # jitter, not a secret
            context.clock.sleep(pause)
        else:
            self.failed = failed


def _may_run(session: TableSession, statement: Statement, live: LiveTable) -> bool:
    """Whether a statement may be sent now. False if its gate was shut just now: then it is decided again.

    Raises ``StopTableError`` if it may not be sent at all.
    """
    context = session.context
    check_allowed(session.plan, statement)
    if context.stop.is_set():
        raise interrupted()
    session.check_calendar()
    lock = session.plan.basis.options.locked
    if lock is not None and lock.holds(session.context.clock.utc().date()):
        raise StopTableError(RunOutcome.REFUSED, f"the table is {lock.text}", f"ask {lock.owner}")
    check_bound(context)
    check_answers(context.engine)
    if not (session.sent or session.gate.closed):
        check_rewrites(session)  # that of a killed run: it reads the whole table, so before writers wait
    if not session.gate.closed:
        check_rewritable(session, statement, live)
    if copies_beside(statement) and not (session.copying and session.gate.closed):
        session.copying = session.copying or begin_copy(context, session.plan, session.lease, statement, live)
        session.gate.reopen()  # an earlier statement may have shut it
        if not catch_up(session.copying):
            return False
        session.check_calendar(reopened=True)  # the copy may have taken hours
    if context.within is not None:
        session.guarded |= guarded_names(session.lease.store)
    if not session.gate.admit(statement, planned_phase(session.plan, statement)):
        return False
    check_rewritable(session, statement, live)
    return planned_phase(session.plan, statement) is not Phase.CLOSED or between_runs(session)


def _run_statement(session: TableSession, statement: Statement, live: LiveTable, *, last: bool) -> _Failed | None:
    """Send one statement and determine its result. If it is the ``last`` closed one, the next table of the driver goes
    on meanwhile. Raises ``StopTableError`` if it changed another table or overwrote someone else's change.
    """
    session.lease.prove(session.context.budget)
    check_target(session, statement, live.table_id)
    tag, rewrites = session.context.new_tag(), statement.repartition is not None
    sent = Sent(tag, live.version, rewrites, ends_with_commit(statement), is_quick(statement))
    error = _send(session, statement, sent, live)
    ends = last and error is None
    if ends:
        session.gate.give_turn()
    opens = ends and session.gate.closed and session.gate.opens_early and lane_of(statement) is Lane.METADATA
    if statement.effect.moves and error is None:
        statement_over(session)
        raise _moved(session, statement)
    answer = settle_statement(session, sent, error, opens=opens)
    match answer:
        case Landed(versions, between):
            if sent.rewrites and versions:
                session.rewritten = versions[-1]
            check_rewrites(session)  # now, whatever happens to the statements after it
            _check_between(session, statement, versions, between)
            makes_one = statement.commits and lane_of(statement) is Lane.METADATA
            session.unseen = statement if makes_one and not (versions or between) else None
        case LandedElsewhere(location, version):
            name, planned = session.plan.name, session.plan.location
            same = canonical_location(location) == canonical_location(planned)
            why = (
                "which was made again since the plan"
                if same
                else f"to which the name {name} led at that moment, and not in"
            )
            message = f"{statement.verb} went to ANOTHER TABLE: it is version {version} of {location}, {why}"
            message += "" if same else f" {planned}, for which the plan was made"
            hint = f"undo it there by hand, see who moved the name {name}, and plan again"
            raise StopTableError(RunOutcome.UNVERIFIED, message, hint)
        case NotLanded() if error is None:
            raise _went_unseen(session, statement, RunOutcome.UNKNOWN)
        case _:
            pass
    if error is None:
        return None
    unknown = answer.why if isinstance(answer, UnknownOutcome) else ""
    return _Failed(statement, error, unknown, runs=session.lease.running is not None)


def _check_between(
    session: TableSession, statement: Statement, versions: Sequence[int], between: Sequence[Commit]
) -> None:
    """Raise ``StopTableError`` if others made the same change after the statement was decided and before it landed."""
    if not (versions and between):
        return
    earlier = session.read(versions[0] - 1)
    wrong = [
        why_stale(change, earlier)
        for change in session.plan.changes
        if change.id in statement.serves and change_state(change, earlier) is ChangeState.STALE
    ]
    if wrong:
        theirs = ", ".join(f"version {each.version} ({each.operation})" for each in between)
        message = f"version {versions[-1]} overwrote a change of another writer: {'; '.join(wrong)}, by {theirs}"
        raise StopTableError(RunOutcome.UNVERIFIED, message, "see whose change it was below, and plan again")
    if statement.repartition is None:
        return
    try:  # Delta decides only what it needs itself, and rewrites what was changed after our last look
        remaining_statements(session.plan, earlier, session.context.engine.dialect)
    except StopTableError as refused:
        message = f"version {versions[-1]} rewrote a table that others had changed just before: {refused.message}"
        back = f"`RESTORE TABLE {session.plan.table.sql} TO VERSION AS OF {versions[0] - 1}` brings it back"
        raise StopTableError(RunOutcome.UNVERIFIED, message, f"see whose change it was below; {back}") from refused


def _went_unseen(session: TableSession, statement: Statement, outcome: RunOutcome) -> StopTableError:
    plan, run = session.plan, session.context.stamp.run
    message = (
        f"{statement.verb} succeeded somewhere else than in {plan.location}: the engine reports success, and no commit "
        f"of it is in the table's log, nor in that of the table to which {plan.name} leads now"
    )
    hint = f"look for run {run} in the history of tables that had this name or location, undo it there, and plan again"
    return StopTableError(outcome, message, hint)


def _moved(session: TableSession, statement: Statement) -> StopTableError:
    """The end of a table that its last statement moved. Its log is at another location now, so only the catalog can
    confirm the change.
    """
    wanted = [each for each in session.plan.changes if each.id in statement.serves]
    entry = session.context.reader.entry(session.plan.location)
    found = LiveTable(
        name=session.plan.table,
        location=session.plan.location,
        version=session.plan.version,
        table_id=session.plan.table_id,
        protocol=session.plan.protocol_after.protocol(),
        schema=Schema(()),
        entry=entry,
    )
    if entry is None or any(change_state(each, found) is not ChangeState.DONE for each in wanted):
        message = f"the engine reports that {statement.verb} succeeded, and the catalog does not confirm it"
        return StopTableError(RunOutcome.UNKNOWN, message, "look at the table in its catalog, and plan again")
    message = f"{statement.verb}: the catalog confirms it; the table is at another location now, and was not read there"
    return StopTableError(RunOutcome.APPLIED, message, "plan again to see the table as it is now")


def _next(session: TableSession, missing: Sequence[Statement], attempted: set[str]) -> Statement | None:
    """The first statement that was not sent yet and does not have to wait for history to age.

    Once the gate is shut for a copy, the copy comes first: a REORG of what was deleted meanwhile would write files
    again, which the copy would have to follow behind the gate.
    """
    now = milliseconds(session.context.clock.utc())
    if session.copying is not None and session.gate.closed:
        missing = sorted(missing, key=lambda each: not copies_beside(each))
    for statement in missing:
        why = why_waiting(statement, now)
        if why:
            session.wait_for(statement, why)
        elif statement.id not in attempted:
            return statement
    return None


def _send(session: TableSession, statement: Statement, sent: Sent, live: LiveTable) -> EngineError | None:
    engine, partitions = session.context.engine, statement.repartition
    if partitions is None:
        return send(
            session,
            statement,
            sent,
            lambda may_send: engine.execute(statement.sql, sent.tag, may_send, quick=sent.quick),
        )
    if copies_beside(statement):
        copying = session.copying
        if copying is None:  # never an overwrite instead: it would shut the gate for hours
            message = "no copy beside the table was made, so the table is not rewritten"
            raise StopTableError(RunOutcome.FAILED, message, "run the same command again")

        def commit(may_send: MaySend) -> None:
            session.rewritten = cut_over(copying, may_send)

        try:
            return send(session, statement, sent, commit)
        except (StopTableError, OutdatedCopyError):  # before the commit
            statement_over(session)
            raise
    place, columns = session.context.target(session.plan), own_metadata(live.schema.text)
    return send(
        session,
        statement,
        sent,
        lambda may_send: engine.overwrite(place, columns, partitions, sent.tag, may_send),
    )
