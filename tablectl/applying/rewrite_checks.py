"""The rewrite of a whole table: the checks before it, and the comparison after it, before the gate opens.

No row is ever lost: the previous version stays in the table's history until VACUUM removes it, and the messages name
the statement that restores it.
"""

from __future__ import annotations

import logging

from tablectl.applying.copy_beside import BesideCopy, check_room
from tablectl.applying.copy_records import forget_parts
from tablectl.applying.row_sums import checksums, lost_rows, row_sums, unlike
from tablectl.applying.run_context import StopTableError
from tablectl.applying.table_session import TableSession
from tablectl.delta.schema import differences
from tablectl.leases.lease import LeaseLost
from tablectl.model.commit import Commit
from tablectl.model.errors import EngineError, LiveError, WindowError
from tablectl.model.plan import Statement, TablePlan
from tablectl.model.run_report import RunOutcome
from tablectl.model.stamp import read_stamp
from tablectl.model.table import LiveTable

_log = logging.getLogger(__name__)


def check_rewritable(session: TableSession, statement: Statement, live: LiveTable) -> None:
    """Raise ``StopTableError`` if the disk has no room for a second copy, or the table has rows that a rewrite cannot
    keep. They are counted before the gate shuts, and behind it if the table has changed since; of a copy beside the
    table, each part is compared anyway.
    """
    context, plan = session.context, session.plan
    if statement.repartition is None or session.copying is not None or session.rewritable == live.version:
        return
    check_room(context, plan, live)
    rows = lost_rows(live, statement.repartition)
    if rows:
        session.tell("count", "count the rows that a rewrite cannot keep")
        place = f"{context.target(plan).sql} VERSION AS OF {live.version}"
        found = context.engine.row(f"SELECT {', '.join(each.sql for each in rows)}\nFROM {place}")
        wrong = [f"{int(count or 0):,} {each.label}" for each, count in zip(rows, found, strict=True) if count != "0"]
        if wrong:
            raise StopTableError(RunOutcome.REFUSED, f"the table holds {'; '.join(wrong)}", _OTHER_VALUES)
    session.rewritable = live.version


_OTHER_VALUES = (
    "partition by another column, or give these rows another value; for generated columns, set "
    "`spark.sql.session.timeZone` under `engine.conf` to the zone in which the rows were written"
)


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
    repaired = _check_in_place(session, copying, made) if copying is not None else None
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
    _note_compared(session, max(made, copying.repaired if copying else made))
    if repaired is not None:
        raise repaired


def _check_in_place(session: TableSession, copying: BesideCopy, made: int) -> StopTableError | None:
    """Look whether the files of a copy are still there after its commit: a VACUUM that listed the table before it did
    not know them. What is gone is written again from the replaced version.

    Returns how the run ends if that was done, once the rest is checked; raises ``StopTableError`` if it failed.
    """
    plan = session.plan
    back = f"`RESTORE TABLE {plan.table.sql} TO VERSION AS OF {made - 1}` brings version {made - 1} back"
    try:
        lost = copying.lost()
    except LiveError as error:
        raise _not_compared(plan, made, error.message) from error
    if not lost:
        return None
    files = sum(len(part.adds) for part in lost)
    message = f"a VACUUM has deleted files of version {made} at the moment of its commit"
    session.tell("repair", f"{message}: write {files:,} files again")
    try:
        copying.repair(lost)
        if copying.lost():
            raise EngineError("files were deleted again", "")
    except (EngineError, LiveError) as error:
        message = f"{message}, and they could not be written again: {error.message}"
        hint = f"{back}, as long as its own files are there; stop the VACUUM first"
        raise StopTableError(RunOutcome.UNVERIFIED, message, hint) from error
    message = f"{message}; their rows were written again from version {made - 1}, as version {copying.repaired}"
    hint = f"the table is whole; see who ran VACUUM with a short RETAIN, and whether it still runs: {back}"
    return StopTableError(RunOutcome.UNVERIFIED, message, hint)


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
    return commit.overwrites and stamp is not None and stamp.plan == session.context.stamp.plan


def _copy_in_place(session: TableSession) -> BesideCopy | None:
    """This run's copy beside the table, once committed: exactly the version after the one that it followed. Its parts
    were compared before, and no other commit has to be read behind the gate.
    """
    copying = session.copying
    return copying if copying is not None and session.rewritten == copying.version + 1 else None


def _rewrites_since_plan(session: TableSession) -> list[int]:
    """The versions of this plan's rewrites, those of killed runs included."""
    plan = session.plan
    commits = session.context.reader.commits(plan.location, after=plan.version)
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
    place = session.context.target(session.plan).sql
    sums = [session.context.engine.row(checksums(before, place))]
    try:
        sums.append(session.context.engine.row(checksums(after, place)))
    except EngineError as error:
        if "FILE_NOT_EXIST" not in error.condition:
            raise
        return f"files of it are gone, as after a VACUUM with a short RETAIN: {error.message}"
    held, now = sums
    if held[0] != now[0]:
        return f"it has {now[0]} rows instead of {held[0]}"
    columns = unlike(row_sums(before.schema.text)[2:], (held[2:], now[2:]))
    if columns:
        return f"other {columns}"
    return "the same values in other rows" if held != now else ""
