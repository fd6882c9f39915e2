"""``window.together``: tables that share one window, all of their gates shut before the first statement.

It is not atomic: each table has its own commits, one after the other. The promise is that, unless something fails, no
writer with a guard sees some of the tables changed and others not.

Each table has a thread of its own. The threads meet four times:

* ``SHUT``: every gate is shut and its writers have ended, before the first statement of any table.
* ``READY``: every table has only closed statements left, before the first gate closes. So a REORG of hours keeps no
  gate of the other tables closed.
* ``CLOSED``: every gate that must close is closed and its writers have ended, before the first closed statement.
* ``DONE``: every table is as declared, before the first gate opens.

A job may hold a guard of one table and, inside of it, ask for one of another. The first table waits for the job, and
the gates of both open only together. So each gate shuts twice. Before ``SHUT`` and ``CLOSED`` it lets in the writers
that the window waits for at another of its tables. When all writers have ended, it lets in none, and the guards are
listed once more: what came in between is waited for, too. While a table waits at ``READY`` or ``DONE`` with its gate
shut, it lets those writers in again.

If a table fails, it opens its gate and the others stop before their next statement. Tables that wait for the others
stop at once: no table waits for one that has failed, so no failure leaves a gate shut.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum

from tablectl.applying.waits import GO, Awaited, Go, Later, wait_here
from tablectl.delta.names import TableName, matches
from tablectl.leases.clock import Clock
from tablectl.leases.lease import Lease, random_id
from tablectl.model.plan import TablePlan

_LOOK_EVERY = 0.5
_TOGETHER = Awaited("together", "for tables of their window")


class WindowStep(IntEnum):
    """The points at which tables that share a window wait for each other, in this order."""

    BEGUN = 0
    SHUT = 1
    READY = 2
    CLOSED = 3
    DONE = 4
    OPEN = 5
    """The gate is open again, on any exit path."""


def shares_window(table: TableName, tags: Iterable[str], together: Sequence[str]) -> bool:
    """Whether ``window.together`` names a table, or one of its tags."""
    return any(each in tags or matches(table, each) for each in together)


class SharedWindow:
    """The tables that share one window. Thread-safe; one thread per table."""

    def __init__(self, tables: Sequence[TablePlan], leases: Sequence[Lease] = ()) -> None:
        self.id = random_id()
        """In the records of gates that let in writers which the window waits for."""
        self.tables = tuple(tables)
        """The plans of all these tables. The hooks of one of them run for all."""
        self.leases = tuple(leases)
        self._reached = dict.fromkeys((table.name for table in tables), WindowStep.BEGUN)
        self._failed = ""
        self.stopped: set[str] = set()
        """The tables that stopped because another one failed."""
        self._hooks_ran = False
        self._hooks = threading.Lock()
        self._changed = threading.Condition()

    @property
    def failed(self) -> str:
        """The table that failed first; empty if none did."""
        return self._failed

    def arrive(self, name: str, where: WindowStep, clock: Clock, keep_alive: Callable[[Later, float], None]) -> bool:
        """Wait until all tables have arrived at ``where``. Returns False if one of them failed.

        ``keep_alive`` is called periodically with what it waits for and the seconds waited; what it raises ends the
        wait.
        """
        with self._changed:
            self._reached[name] = max(self._reached[name], where)
            self._changed.notify_all()

        def check(now: float) -> Go | Later:
            with self._changed:
                behind = "" if self._failed else self._behind(where)
                words = f"waiting for {behind}, which shares its window"
                return Later(now + _LOOK_EVERY, _TOGETHER, words) if behind else GO

        def pause(seconds: float) -> None:
            with self._changed:
                self._changed.wait_for(lambda: self._failed or not self._behind(where), seconds)

        wait_here(check, clock, keep_alive, pause)
        return self.may_go_on(name)

    def may_go_on(self, name: str) -> bool:
        """Whether no other table has failed. Checked before each statement."""
        with self._changed:
            if self._failed:
                self.stopped.add(name)
            return not self._failed

    def stop_unless_done(self, name: str) -> None:
        """Stop the others before their next statement, if a table ends before it is done."""
        with self._changed:
            if self._reached[name] < WindowStep.DONE and not self._failed:
                self._failed = name
            self._changed.notify_all()

    def leave(self, name: str) -> None:
        """Record that a table's gate is open for good."""
        self.stop_unless_done(name)
        with self._changed:
            self._reached[name] = WindowStep.OPEN
            self._changed.notify_all()

    def wait_until_open(self) -> None:
        """Wait until the gates of all tables are open. Every exit path of a table opens its gate, so this ends."""
        with self._changed:
            self._changed.wait_for(lambda: not self._behind(WindowStep.OPEN))

    def once(self, run: Callable[[], None]) -> None:
        """Run the hooks of the first table that asks. The others wait for it and run none."""
        with self._hooks:
            if not self._hooks_ran:
                self._hooks_ran = True
                run()

    def _behind(self, where: WindowStep) -> str:
        return next((name for name, reached in self._reached.items() if reached < where), "")
