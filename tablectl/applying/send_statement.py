"""Sends one statement: announced in the lease record, under its tag, and recorded with its time and its error."""

from __future__ import annotations

from collections.abc import Callable

from tablectl.applying.remaining import is_too_young, planned_phase, separate_commits
from tablectl.applying.run_report import StatementRun
from tablectl.applying.statement import Sent, announced, statement_over
from tablectl.applying.table_session import TableSession
from tablectl.engine.port import MaySend
from tablectl.leases.clock import milliseconds
from tablectl.model.errors import EngineError, WindowError
from tablectl.model.plan import Phase, Statement


def send(
    session: TableSession, statement: Statement, sent: Sent, execute: Callable[[MaySend], None]
) -> EngineError | None:
    """Call ``execute`` and return the engine's error, if there is one. Raises ``WindowError`` if nothing was sent."""
    clock, phase = session.window.clock, planned_phase(session.plan, statement)
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
