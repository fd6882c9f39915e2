"""One table under its lease: check fresh, run what is missing, verify.

Each statement is decided from the live table just before it is sent, and after the writers in its way were waited for
(window.md 6.5, step 10). That makes the first run, a resumed one and one whose answer was lost the same code: what
reads as declared is done, what reads as before is run, anything else is somebody else's and the table is left alone.
"""

from __future__ import annotations

import logging
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from tablectl.model.columns import own_metadata
from tablectl.model.errors import EngineError, TablectlError, is_conflict
from tablectl.model.live import LiveTable
from tablectl.model.names import canonical_location
from tablectl.model.plan import Phase, Statement, TablePlan
from tablectl.window.clock import StoppedError, milliseconds
from tablectl.window.hours import outside
from tablectl.window.lease import Lease
from tablectl.window.missing import (
    check_allowed,
    check_landed,
    error_text,
    is_too_young,
    missing_statements,
    planned_phase,
    separate_commits,
    why_waiting,
)
from tablectl.window.report import Outcome, StatementRun, TableRun
from tablectl.window.rewrite import check_rewritable, check_rewrites
from tablectl.window.setting import EndError, Window, interrupted
from tablectl.window.visit import Visit, ended, verified, was_reached

_TRIES = 5
"""How often one statement is sent when others commit at the same moment each time (window.md 6.5, step 10)."""

_log = logging.getLogger(__name__)


def run_table(window: Window, plan: TablePlan, lease: Lease) -> TableRun:
    """Bring one table to its plan, its gate open and its after-hooks run at the end. Never raises an ``Exception``:
    whatever goes wrong is the table's outcome, or the commits already made would go unreported.
    """
    visit = Visit.begin(window, plan, lease)
    run = _run_visit(visit)
    try:
        visit.hooks.after(run.outcome)
    except Exception as error:  # noqa: BLE001  # see above
        visit.hooks.notes.append(unexpected(plan.name, error)[0])
    return replace(run, owed=visit.hooks.owed, notes=tuple(visit.hooks.notes))


def _run_visit(visit: Visit) -> TableRun:
    try:
        try:
            visit.hooks.settle()
            _check_name(visit.window, visit.plan)
            visit.window.approve(visit.plan)
            reached = _run_statements(visit)
        except Exception:
            visit.gate.open()
            raise
        visit.gate.open()
        return verified(visit, reached)
    except EndError as end:
        return ended(visit, end)
    except StoppedError:
        return ended(visit, interrupted())
    except TablectlError as error:
        return ended(visit, EndError(Outcome.FAILED, error.message, error.hint))
    except Exception as error:  # noqa: BLE001  # see ``run_table``
        return ended(visit, EndError(Outcome.FAILED, *unexpected(visit.plan.name, error)))


def unexpected(table: str, error: Exception) -> tuple[str, str]:
    """Message and hint for an error that nobody foresaw; the log has its traceback."""
    _log.error("%s: unexpected error", table, exc_info=error)
    hint = "please report this; the same command goes on from the tables as they are then"
    return f"unexpected error: {type(error).__name__}: {error}", hint


def preflight(window: Window, plan: TablePlan) -> TableRun | None:
    """Why a table cannot be taken at all, before a lease record is written beside it; ``None`` where it can.

    A record in the place of a table that was dropped would keep Delta from creating it again.
    """
    try:
        end = outside(window, plan)
        if end is not None:
            raise end
        _check_name(window, plan)
        window.reader.commits(plan.location, after=plan.version)
    except EndError as end:
        return TableRun(name=plan.name, outcome=end.outcome, message=end.message, hint=end.hint)
    except TablectlError as error:
        return TableRun(name=plan.name, outcome=Outcome.FAILED, message=error.message, hint=error.hint)
    return None


def _check_name(window: Window, plan: TablePlan) -> None:
    """Statements use the name, so it must still lead where the plan looked."""
    found = plan.table.parts[0] if plan.table.is_path else window.engine.location(plan.table)
    if canonical_location(found) != canonical_location(plan.location):
        raise EndError(
            Outcome.STALE,
            f"the name now leads to {found}; the plan was made for {plan.location}",
            "correct `location:` in the policy if it has one, and plan again",
        )


def _run_statements(visit: Visit) -> LiveTable | None:
    """Run what is missing. The table as it was when nothing was missing any more; ``None`` where that was so at our
    last commit, and others have changed it since.
    """
    window, plan = visit.window, visit.plan
    attempted: set[str] = set()
    tries: Counter[str] = Counter()
    failed: tuple[Statement, EngineError] | None = None
    while True:
        live = _read_again(visit, failed[1]) if failed else visit.read()
        visit.note(live)
        try:
            missing = missing_statements(plan, live, window.engine.dialect)
        except EndError:
            if was_reached(visit):
                return None
            raise
        if failed:
            check_landed(*failed, missing)
            attempted.add(failed[0].id)
            failed = None
        statement = _next(visit, missing, attempted)
        if statement is None:
            check_rewrites(visit)
            return live
        check_allowed(plan, statement)
        if window.stop.is_set():
            raise interrupted()
        visit.check_calendar()
        phase = planned_phase(plan, statement)
        if not visit.gate.admit(statement, phase):
            continue
        check_rewritable(visit, statement, live)
        visit.lease.prove(window.budget)
        error = _send(visit, statement, phase, live)
        tries[statement.id] += 1
        if error is None:
            attempted.add(statement.id)
            check_rewrites(visit)  # now, whatever becomes of the statements after it
        elif is_conflict(error.condition) and tries[statement.id] < _most_tries(statement):
            # Somebody committed at the same moment: read again, and decide again from what is there now.
            window.clock.sleep(0.1 * tries[statement.id] * random.uniform(0.5, 1.5))  # noqa: S311  # jitter, no secret
        else:
            failed = statement, error


def _next(visit: Visit, missing: Sequence[Statement], attempted: set[str]) -> Statement | None:
    """The first statement that was not sent yet and need not wait for history to age."""
    now = milliseconds(visit.window.clock.utc())
    for statement in missing:
        why = why_waiting(statement, now)
        if why:
            visit.wait_for(statement, why)
        elif statement.id not in attempted:
            return statement
    return None


def _most_tries(statement: Statement) -> int:
    """A rewrite of the whole table is too dear to be tried again against a writer that heeds no gate."""
    return _TRIES if statement.repartition is None else 1


def _send(visit: Visit, statement: Statement, phase: Phase, live: LiveTable) -> EngineError | None:
    clock = visit.window.clock
    visit.tell(f"before {statement.id}", f"{phase}: {statement.verb}")
    started, at = clock.monotonic(), milliseconds(clock.utc())
    error: EngineError | None = None
    try:
        if statement.repartition is None:
            visit.window.engine.execute(statement.sql)
        else:
            columns = own_metadata(live.schema.text)
            visit.window.engine.overwrite(visit.plan.table, columns, statement.repartition)
    except EngineError as raised:
        error = raised
    if error and is_too_young(statement, error.condition):
        visit.wait_for(statement, "history is not old enough yet to be given up")
        error = None
    visit.sent.append(
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
        visit.exposed.append(clock.monotonic())
    visit.tell(f"after {statement.id}")
    return error


def _read_again(visit: Visit, error: EngineError) -> LiveTable:
    """The table after a statement that gave an error, which comes first if the table cannot be read either."""
    try:
        return visit.read()
    except TablectlError as unreadable:
        message = f"{error_text(error)}; whether it took effect is unknown: {unreadable.message}"
        raise EndError(Outcome.FAILED, message, error.hint or unreadable.hint) from unreadable
