"""One table under its lease: check fresh, run what is missing, verify.

Each statement is decided from the live table just before it is sent (window.md 6.5, step 10). That makes the first
run, a resumed one and one whose answer was lost the same code: what reads as declared is done, what reads as before
is run, anything else is somebody else's and the table is left alone.
"""

from __future__ import annotations

import logging
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Event
from typing import Protocol

from tablectl.attributes.policy import needs_vectors
from tablectl.engine.port import Engine
from tablectl.model.errors import EngineError, TablectlError, is_conflict
from tablectl.model.live import Commit, LiveTable
from tablectl.model.names import TableName, canonical_location
from tablectl.model.plan import Basis, Change, Phase, Statement, TablePlan, strictest
from tablectl.model.text import value_text
from tablectl.planning.decide import refusals_for
from tablectl.planning.freshness import Standing, current, found_value, standing, why_stale
from tablectl.planning.table import derive
from tablectl.window.clock import Clock, StoppedError
from tablectl.window.lease import Lease
from tablectl.window.report import CommitRun, Outcome, StatementRun, TableRun
from tablectl.window.stamp import Stamp, read_stamp

_TRIES = 5
"""How often one statement is sent when others commit at the same moment each time (window.md 6.5, step 10)."""

_log = logging.getLogger(__name__)


class LiveReader(Protocol):
    """How an apply reads tables; ``live.reader`` in earnest, a fake in tests."""

    def read(self, name: TableName, location: str, *, version: int | None = None, counts: bool = False) -> LiveTable:
        """The table at a version, the newest without one. ``counts`` counts vectors where no checksum does."""
        ...

    def commits(self, location: str, *, after: int) -> tuple[Commit, ...]:
        """The commits above a version, newest first."""
        ...


Notify = Callable[[str, str, str], None]
"""Told of each step: the table's name, the step (``leased``, ``fresh``, ``before <id>``, ``after <id>``, ``verify``,
``released``), and words for people. It is where a test stops a run."""


@dataclass(frozen=True, slots=True)
class Window:
    """What every table of a run shares."""

    engine: Engine
    reader: LiveReader
    clock: Clock
    stamp: Stamp
    stop: Event
    """Set when the run shall end: no further statement starts."""
    notify: Notify
    budget: float
    """Seconds for which a lease must still hold when a statement starts."""


class _EndError(Exception):
    """Ends a table's part of the run with an outcome."""

    def __init__(self, outcome: Outcome, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.outcome = outcome
        self.message = message
        self.hint = hint


@dataclass(slots=True)
class _Progress:
    """What happened so far; becomes a ``TableRun``."""

    start: int = -1
    already: tuple[str, ...] = ()
    sent: list[StatementRun] = field(default_factory=list)


def run_table(window: Window, plan: TablePlan, lease: Lease) -> TableRun:
    """Bring one table to its plan. Never raises an ``Exception``: whatever goes wrong is the table's outcome, or the
    commits already made would go unreported.
    """
    progress = _Progress()
    try:
        _check_name(window, plan)
        reached = _run_statements(window, plan, lease, progress)
        return _verified(window, plan, lease, progress, reached)
    except _EndError as end:
        return _ended(window, plan, lease, progress, end)
    except StoppedError:
        return _ended(window, plan, lease, progress, _interrupted())
    except TablectlError as error:
        return _ended(window, plan, lease, progress, _EndError(Outcome.FAILED, error.message, error.hint))
    except Exception as error:  # noqa: BLE001  # see above
        return _ended(window, plan, lease, progress, _EndError(Outcome.FAILED, *unexpected(plan.name, error)))


def unexpected(table: str, error: Exception) -> tuple[str, str]:
    """Message and hint for an error that nobody foresaw; the log has its traceback."""
    _log.error("%s: unexpected error", table, exc_info=error)
    hint = "please report this; the same command goes on from the tables as they are then"
    return f"unexpected error: {type(error).__name__}: {error}", hint


def _interrupted() -> _EndError:
    return _EndError(Outcome.INTERRUPTED, "stopped before all statements ran", "run the same command again")


def preflight(window: Window, plan: TablePlan) -> TableRun | None:
    """Why a table cannot be taken at all, before a lease record is written beside it; ``None`` where it can.

    A record in the place of a table that was dropped would keep Delta from creating it again.
    """
    try:
        _check_name(window, plan)
        window.reader.commits(plan.location, after=plan.version)
    except _EndError as end:
        return TableRun(name=plan.name, outcome=end.outcome, message=end.message, hint=end.hint)
    except TablectlError as error:
        return TableRun(name=plan.name, outcome=Outcome.FAILED, message=error.message, hint=error.hint)
    return None


def _check_name(window: Window, plan: TablePlan) -> None:
    """Statements use the name, so it must still lead where the plan looked."""
    found = plan.table.parts[0] if plan.table.is_path else window.engine.location(plan.table)
    if canonical_location(found) != canonical_location(plan.location):
        raise _EndError(
            Outcome.STALE,
            f"the name now leads to {found}; the plan was made for {plan.location}",
            "correct `location:` in the policy if it has one, and plan again",
        )


def _run_statements(window: Window, plan: TablePlan, lease: Lease, progress: _Progress) -> LiveTable | None:
    """Run what is missing. The table as it was when nothing was missing any more; ``None`` where that was so at our
    last commit, and others have changed it since.
    """
    attempted: set[str] = set()
    tries: Counter[str] = Counter()
    failed: tuple[Statement, EngineError] | None = None
    while True:
        live = _read_again(window, plan, failed[1]) if failed else _read(window, plan)
        if progress.start < 0:
            progress.start = live.version
            progress.already = tuple(change.id for change in plan.changes if standing(change, live) is Standing.DONE)
            window.notify(plan.name, "fresh", "")
        try:
            missing = _missing(plan, live, window.engine.dialect)
        except _EndError:
            if _reached(window, plan, progress):
                return None
            raise
        if failed:
            _check_landed(*failed, missing)
            attempted.add(failed[0].id)
            failed = None
        statement = next((each for each in missing if each.id not in attempted), None)
        if statement is None:
            return live
        _check_allowed(plan, statement)
        if window.stop.is_set():
            raise _interrupted()
        lease.prove(window.budget)
        error = _send(window, plan, statement, progress)
        tries[statement.id] += 1
        if error is None:
            attempted.add(statement.id)
        elif is_conflict(error.condition) and tries[statement.id] < _TRIES:
            # Somebody committed at the same moment: read again, and decide again from what is there now.
            window.clock.sleep(0.1 * tries[statement.id] * random.uniform(0.5, 1.5))  # noqa: S311  # jitter, no secret
        else:
            failed = statement, error


def _missing(plan: TablePlan, live: LiveTable, dialect: str) -> list[Statement]:
    """The statements still missing in the live table. Raises where the table went stale or turned refused."""
    pending = _pending(plan, live)
    refusals = refusals_for(pending, live, dialect)
    if refusals:
        first = refusals[0]
        raise _EndError(Outcome.REFUSED, f"{first.change}: {first.reason}", first.way_out)
    changes = [current(change, live) for change in pending]
    derived = derive(changes, Basis.of(live), plan.table, dialect)
    return [statement for statement in derived if not (statement.only_if and live.vectors == 0)]


def _check_landed(statement: Statement, error: EngineError, missing: Sequence[Statement]) -> None:
    """A statement that gave an error may have taken effect all the same, its answer lost: then it is not missing."""
    served = set(statement.serves)
    if any(each.verb == statement.verb and served & set(each.serves) for each in missing):
        raise _EndError(Outcome.FAILED, _error_text(error), error.hint)


def _error_text(error: EngineError) -> str:
    shown = error.condition and error.condition not in error.message
    return f"[{error.condition}] {error.message}" if shown else error.message


def _reached(window: Window, plan: TablePlan, progress: _Progress) -> bool:
    """Whether the table was as declared at our last commit: what others did after it is not held against the run."""
    if not progress.sent:
        return False
    ours, _ = _since(window, plan, progress)
    return bool(ours) and not _wrong(plan, _read(window, plan, version=ours[-1].version))


def _wrong(plan: TablePlan, live: LiveTable) -> list[str]:
    """What does not read as declared."""
    if live.table_id != plan.table_id:
        return ["the table was replaced by another one"]
    return [
        f"{change.id} shall be {value_text(change.after)} and is {value_text(found_value(change, live))}"
        for change in plan.changes
        if standing(change, live) is not Standing.DONE
    ]


def _pending(plan: TablePlan, live: LiveTable) -> list[Change]:
    if live.table_id != plan.table_id:
        raise _EndError(Outcome.STALE, "the table was replaced since the plan: it has a new table id", "plan again")
    standings = [(change, standing(change, live)) for change in plan.changes]
    stale = [why_stale(change, live) for change, where in standings if where is Standing.STALE]
    if stale:
        raise _EndError(Outcome.STALE, "; ".join(stale), "plan again, and see who changed it below")
    return [change for change, where in standings if where is Standing.PENDING]


def _check_allowed(plan: TablePlan, statement: Statement) -> None:
    """Nothing runs that the reviewed plan did not hold, and nothing that has come to harm more writers."""
    for change in statement.serves:
        phases = [each.phase for each in plan.statements if each.verb == statement.verb and change in each.serves]
        if not phases:
            raise _EndError(
                Outcome.REFUSED, f"{change} needs a {statement.verb} that the plan does not hold", "plan again"
            )
        latest = strictest(*phases)
        if statement.phase.rank > latest.rank:
            raise _EndError(
                Outcome.REFUSED,
                f"{change} was planned for the {latest} phase and now needs {statement.phase}: {statement.reason}",
                "plan again, so that the new casualties are reviewed",
            )


def _planned_phase(plan: TablePlan, statement: Statement) -> Phase:
    """The phase that was reviewed: what a statement needs may be done by now, which must not loosen its own."""
    reviewed = [
        each.phase
        for each in plan.statements
        if each.verb == statement.verb and set(each.serves) & set(statement.serves)
    ]
    return strictest(statement.phase, *reviewed)


def _send(window: Window, plan: TablePlan, statement: Statement, progress: _Progress) -> EngineError | None:
    phase = _planned_phase(plan, statement)
    window.notify(plan.name, f"before {statement.id}", f"{phase}: {statement.verb}")
    started = window.clock.monotonic()
    error: EngineError | None = None
    try:
        window.engine.execute(statement.sql)
    except EngineError as raised:
        error = raised
    spent = round((window.clock.monotonic() - started) * 1000)
    progress.sent.append(
        StatementRun(
            id=statement.id,
            sql=statement.sql,
            phase=phase,
            milliseconds=spent,
            error=error.message if error else "",
            condition=error.condition if error else "",
        )
    )
    window.notify(plan.name, f"after {statement.id}", "")
    return error


def _verified(
    window: Window, plan: TablePlan, lease: Lease, progress: _Progress, reached: LiveTable | None
) -> TableRun:
    """Every change must read as declared at the version of our last commit; what others did later is only reported."""
    window.notify(plan.name, "verify", "verify")
    ours, others = _since(window, plan, progress)
    live = _read(window, plan, version=ours[-1].version) if ours or reached is None else reached
    wrong = _wrong(plan, live)
    if wrong:
        raise _EndError(
            Outcome.UNVERIFIED,
            f"not as declared after the last statement: {'; '.join(wrong)}",
            "see whose commits came in between below, and plan again",
        )
    return TableRun(
        name=plan.name,
        outcome=Outcome.APPLIED if ours else Outcome.ALREADY,
        epoch=lease.record.epoch,
        changed=tuple(change.id for change in plan.changes if change.id not in progress.already),
        already=progress.already,
        statements=tuple(progress.sent),
        commits=ours,
        foreign=others,
        later=_undone(window, plan) if ours else (),
    )


def _undone(window: Window, plan: TablePlan) -> tuple[str, ...]:
    """The changes that do not read as declared any more. Nothing that is found here is held against the run."""
    try:
        head = _read(window, plan)
    except TablectlError:
        return ()
    return tuple(change.id for change in plan.changes if standing(change, head) is not Standing.DONE)


def _ended(window: Window, plan: TablePlan, lease: Lease, progress: _Progress, end: _EndError) -> TableRun:
    """The outcome of a table that was not brought through, with the commits that say why."""
    try:
        ours, others = _since(window, plan, progress, stale=end.outcome is Outcome.STALE)
    except Exception:  # noqa: BLE001  # the outcome stands, whatever keeps the log from being read
        ours, others = (), ()
    return TableRun(
        name=plan.name,
        outcome=end.outcome,
        message=end.message,
        hint=end.hint,
        epoch=lease.record.epoch,
        already=progress.already,
        statements=tuple(progress.sent),
        commits=ours,
        foreign=others,
    )


def _since(
    window: Window, plan: TablePlan, progress: _Progress, *, stale: bool = False
) -> tuple[tuple[CommitRun, ...], tuple[CommitRun, ...]]:
    """Commits since the run began, or since the plan where that went stale, oldest first: this run's, and others'.

    Earlier runs of the same plan are neither, unless they commit after this one began: then an owner that was paused
    past its lease has come back, which is to be reported (window.md 7).
    """
    ours: list[CommitRun] = []
    others: list[CommitRun] = []
    start = progress.start if progress.start >= 0 else plan.version
    for commit in reversed(window.reader.commits(plan.location, after=plan.version if stale else start)):
        stamp = read_stamp(commit.user_metadata)
        fact = CommitRun(
            version=commit.version,
            operation=commit.operation,
            user=_who(commit),
            at=commit.timestamp,
            metadata=commit.changes_metadata,
        )
        if stamp == window.stamp:
            ours.append(fact)
        elif stamp is None or stamp.plan != window.stamp.plan or commit.version > start:
            others.append(fact)
    return tuple(ours), tuple(others)


def _who(commit: Commit) -> str:
    return commit.user or commit.client.text()


def _read(window: Window, plan: TablePlan, version: int | None = None) -> LiveTable:
    counts = any(needs_vectors(change.attribute, change.key, change.after) for change in plan.changes)
    return window.reader.read(plan.table, plan.location, version=version, counts=counts)


def _read_again(window: Window, plan: TablePlan, error: EngineError) -> LiveTable:
    """The table after a statement that gave an error, which comes first if the table cannot be read either."""
    try:
        return _read(window, plan)
    except TablectlError as unreadable:
        message = f"{_error_text(error)}; whether it took effect is unknown: {unreadable.message}"
        raise _EndError(Outcome.FAILED, message, error.hint or unreadable.hint) from unreadable
