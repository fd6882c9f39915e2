"""Whether rows of the table violate a constraint that a statement adds: they are counted before it is sent."""

from __future__ import annotations

from collections.abc import Sequence

from tablectl.applying.run_context import StopTableError
from tablectl.applying.table_session import TableSession
from tablectl.attributes.constraints import violated_by
from tablectl.model.plan import Statement
from tablectl.model.run_report import RunOutcome
from tablectl.model.table import LiveTable


def check_violations(session: TableSession, missing: Sequence[Statement], live: LiveTable) -> None:
    """Raise ``StopTableError`` if rows of this version violate a constraint that a statement adds. Each is counted once
    in a run.
    """
    context, plan = session.context, session.plan
    scanning = [each for each in missing if each.effect.scans and each.id not in session.counted]
    ids = {change for statement in scanning for change in statement.serves}
    rows = [(change, violated_by(change)) for change in plan.changes if change.id in ids]
    session.counted |= {each.id for each in scanning}
    if not rows:
        return
    session.tell("count", f"count the rows in the way of {', '.join(change.id for change, _ in rows)}")
    place = f"{context.target(plan).sql} VERSION AS OF {live.version}"
    found = context.engine.row(f"SELECT {', '.join(f'count_if({condition})' for _, condition in rows)}\nFROM {place}")
    wrong = [
        (each, condition, int(count or 0)) for (each, condition), count in zip(rows, found, strict=True) if count != "0"
    ]
    if wrong:
        told = "; ".join(f"{count:,} rows violate {each.id} ({each.after})" for each, _, count in wrong)
        condition = wrong[0][1]
        raise StopTableError(
            RunOutcome.REFUSED,
            f"in version {live.version}, {told}",
            f"find and correct them in {plan.table.sql}, where {condition}; or change the constraint, and plan again",
        )
