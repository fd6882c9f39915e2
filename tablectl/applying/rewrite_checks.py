"""The rewrite of a whole table: the checks before it, and the comparison after it, before the gate opens.

No row is ever lost: the previous version stays in the table's history until VACUUM removes it, and the messages name
the statement that restores it.
"""

from __future__ import annotations

import logging

from tablectl.applying.copy_beside import BesideCopy, check_room
from tablectl.applying.copy_records import forget_parts
from tablectl.applying.row_sums import TEXTS, checksums
from tablectl.applying.run_context import StopTableError
from tablectl.applying.table_session import TableSession
from tablectl.delta.names import column_sql
from tablectl.delta.schema import columns_of, differences
from tablectl.leases.lease import LeaseLost
from tablectl.model.commit import Commit
from tablectl.model.errors import EngineError, LiveError, WindowError
from tablectl.model.plan import Statement, TablePlan
from tablectl.model.run_report import RunOutcome
from tablectl.model.stamp import read_stamp
from tablectl.model.table import LiveTable

_log = logging.getLogger(__name__)


def check_rewritable(session: TableSession, statement: Statement, live: LiveTable) -> None:
    """Raise ``StopTableError`` if the disk has no room for a second copy, or a partition would turn empty strings into
    NULL.
    """
    if statement.repartition is None or session.copying is not None:
        return  # a copy beside the table has checked both, without the gate
    window, plan = session.window, session.plan
    check_room(window, plan, live)
    texts = [name for name in statement.repartition if _is_text(live, name)]
    if not texts:
        return
    counts = ", ".join(f"count_if({column_sql((name,))} = '')" for name in texts)
    found = window.engine.row(f"SELECT {counts}\nFROM {window.target(plan).sql} VERSION AS OF {live.version}")
    for name, count in zip(texts, found, strict=True):
        if count != "0":
            message = f"column {name} holds {count} empty texts, and Delta stores those as NULL in a partition column"
            raise StopTableError(
                RunOutcome.REFUSED, message, "partition by another column, or give these rows another value"
            )


def _is_text(live: LiveTable, name: str) -> bool:
    found = live.schema.find((name,))
    return found is not None and found[1].type.startswith(TEXTS)


def check_rewrites(session: TableSession) -> None:
    """Compare the newest rewrite of this plan with the version that it replaced.

    Compares columns, properties, number of rows, and checksums of every column and of whole rows. Raises
    ``StopTableError`` if anything differs, and if the two versions could not be compared.

    If a run is killed between its rewrite and this check, the next run makes the comparison: only an entry in the lease
    record counts as proof that a version was compared.
    """
    if not any(statement.repartition is not None for statement in session.plan.statements):
        return
    plan = session.plan
    copying = _copy_in_place(session)
    made = session.rewritten if copying else max([session.rewritten, *_rewrites_since_plan(session)])
    noted = session.lease.record.compared
    if made < 0 or made == session.compared or (noted is not None and noted >= made):
        return
    try:
        wrong = _compared(session, made) if copying is None else copying.prove()
    except (EngineError, LiveError) as error:
        raise _not_compared(plan, made, error.message) from error
    except ValueError as error:
        raise _not_compared(plan, made, str(error)) from error
    if wrong:
        back = f"RESTORE TABLE {plan.table.sql} TO VERSION AS OF {made - 1}"
        message = f"version {made} is not what version {made - 1} was: {wrong}"
        hint = f"`{back}` brings version {made - 1} back, and takes back every commit after {made}, if there are any"
        raise StopTableError(RunOutcome.UNVERIFIED, message, hint)
    forget_parts(session.lease.store)  # a copy that is in place is not gone on with
    _note_compared(session, made)


def _note_compared(session: TableSession, made: int) -> None:
    session.compared = made
    try:
        session.lease.note_compared(made)
    except LeaseLost:
        raise
    except WindowError as error:  # the next run compares once more
        _log.warning(
            "that version %s of %s was compared could not be noted: %s", made, session.plan.name, error.message
        )


def _not_compared(plan: TablePlan, made: int, why: str) -> StopTableError:
    """The third outcome: no difference is known, so there is nothing to restore."""
    message = f"version {made} was not compared with version {made - 1}: {why}"
    hint = (
        f"nothing is known to be wrong with {plan.name}, and the rewrite stands; the same command compares again, as "
        f"long as VACUUM has left the files of version {made - 1}"
    )
    return StopTableError(RunOutcome.UNVERIFIED, message, hint)


def _ours(session: TableSession, commit: Commit) -> bool:
    stamp = read_stamp(commit.user_metadata)
    return commit.overwrites and stamp is not None and stamp.plan == session.window.stamp.plan


def _copy_in_place(session: TableSession) -> BesideCopy | None:
    """This run's copy beside the table, once committed: exactly the version after the one that it followed. Its parts
    were compared before, and no other commit has to be read behind the gate.
    """
    copying = session.copying
    return copying if copying is not None and session.rewritten == copying.version + 1 else None


def _rewrites_since_plan(session: TableSession) -> list[int]:
    """The versions of this plan's rewrites, those of killed runs included."""
    plan = session.plan
    commits = session.window.reader.commits(plan.location, after=plan.version)
    return [commit.version for commit in commits if _ours(session, commit)]


def _compared(session: TableSession, version: int) -> str:
    """The differences between a version and the one before it; empty if there are none.

    Raises ``EngineError``, ``LiveError`` or ``ValueError`` if they could not be compared.
    """
    session.tell("compare", f"compare versions {version - 1} and {version}")
    before, after = session.read(version - 1), session.read(version)
    wrong = list(differences(before.schema.text, after.schema.text))
    one, other = before.properties, after.properties
    wrong += sorted(key for key in one.keys() | other.keys() if one.get(key) != other.get(key))
    if wrong:
        return ", ".join(wrong)
    names = [column_sql(column.path) for column in columns_of(before.schema.text) if len(column.path) == 1]
    place = session.window.target(session.plan).sql
    sums = [session.window.engine.row(checksums(each, place)) for each in (before, after)]
    pairs = list(zip(*sums, strict=True))
    if pairs[0][0] != pairs[0][1]:
        return f"it has {pairs[0][1]} rows instead of {pairs[0][0]}"
    different = [index for index, (one, other) in enumerate(pairs) if one != other]
    columns = dict.fromkeys(names[index // 2 - 1] for index in different if index > 1)
    if columns:
        return f"other values in {', '.join(columns)}"
    return "the same values in other rows" if different else ""
