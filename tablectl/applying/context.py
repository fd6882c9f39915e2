"""What all tables of a run share, and how a table's part of it ends before its time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event as Flag
from typing import Protocol

from tablectl.applying.clock import Clock
from tablectl.applying.events import Notify
from tablectl.applying.hook_process import RunHook, run_nothing
from tablectl.applying.run_report import RunOutcome
from tablectl.applying.stamp import Stamp
from tablectl.applying.together import Together
from tablectl.applying.turns import Turns
from tablectl.delta.names import TableName
from tablectl.engine.port import Engine
from tablectl.model.calendar import ALWAYS, Calendar
from tablectl.model.plan import TablePlan
from tablectl.model.table import Commit, LiveTable
from tablectl.model.table_options import Optimize


class LiveReader(Protocol):
    """How an apply reads tables; ``live.reader`` in earnest, a fake in tests."""

    def read(
        self,
        name: TableName,
        location: str,
        *,
        version: int | None = None,
        counts: bool = False,
        truncation: bool = False,
        marks: Optimize | None = None,
    ) -> LiveTable:
        """The table at a version, the newest without one. ``counts`` counts vectors where no checksum does,
        ``truncation`` tells how old the history is that is to be given up, ``marks`` what data has to follow the
        clustering columns.
        """
        ...

    def commits(self, location: str, *, after: int) -> tuple[Commit, ...]:
        """The commits above a version, newest first."""
        ...

    def free(self, location: str) -> int | None:
        """Bytes that are free where a table lies; ``None`` where that cannot be told, as in a bucket."""
        ...


@dataclass(frozen=True, slots=True)
class WindowSettings:
    """How a run treats the writers of its tables."""

    drain: float = 300.0
    """Seconds that writers get to end, each time the gate tightens."""
    before: tuple[tuple[str, ...], ...] = ()
    """Commands that run before the first gate that stops more than schema changes."""
    after: tuple[tuple[str, ...], ...] = ()
    """Commands that run when the gate is open again, on every way out."""
    run_hook: RunHook = run_nothing
    calendar: Calendar = ALWAYS
    exclusive_commits: bool = False
    """Whether the configuration states that commits of several drivers exclude each other."""
    wait: float = 0.0
    """Seconds for which tables whose window could not be opened are tried again."""
    watch: float = 0.0
    """Seconds for which writers are waited for to come back, once all is done."""


Approve = Callable[[TablePlan], None]
"""Asks again, under a table's lease, before anything is sent, whether its plan may run. Raises ``StopTableError``."""


def approve_all(_plan: TablePlan) -> None:
    """Approves every plan: for plans that were compared with the policies in another way."""


@dataclass(frozen=True, slots=True)
class RunContext:
    """What every table of a run shares."""

    engine: Engine
    reader: LiveReader
    clock: Clock
    stamp: Stamp
    stop: Flag
    """Set when the run shall end: no further statement starts."""
    notify: Notify
    budget: float
    """Seconds for which a lease must still hold when a statement starts."""
    terms: WindowSettings = WindowSettings()
    turns: Turns = field(default_factory=Turns)
    """Whose closed statements run now."""
    together: Together | None = None
    """The tables that share one window; ``None`` where each has its own."""
    approve: Approve = approve_all


class StopTableError(Exception):
    """Ends a table's part of the run with an outcome."""

    def __init__(self, outcome: RunOutcome, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.outcome = outcome
        self.message = message
        self.hint = hint


def interrupted() -> StopTableError:
    """The end of a table whose run was told to stop."""
    return StopTableError(RunOutcome.INTERRUPTED, "stopped before all statements ran", "run the same command again")
