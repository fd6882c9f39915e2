"""``window.together``: tables that share one window, all of their gates shut before the first statement.

It is not atomic: each table has commits of its own, one after the other. What is promised is that no writer with a
guard sees some of the tables changed and others not, as long as nothing fails.

Each table is worked on by a thread of its own. They meet four times:

* ``SHUT``: every gate is shut, and its writers have ended, before the first statement of any table.
* ``READY``: every table has only closed statements left, before the first gate closes. A REORG of hours keeps no gate
  of the others closed.
* ``CLOSED``: every gate that must close is closed, and its writers have ended, before the first closed statement.
* ``DONE``: every table is as declared, before the first gate opens.

A table that fails lets the others stop before their next statement, and opens its gate. Whoever waits for the others
then stops, too: nobody waits for a table that has failed, so no failure leaves a gate shut.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from enum import IntEnum


class Meeting(IntEnum):
    """What tables that share a window wait for, in this order."""

    BEGUN = 0
    SHUT = 1
    READY = 2
    CLOSED = 3
    DONE = 4
    OPEN = 5
    """The gate is open again, on whatever way out."""


class Together:
    """The tables that share one window. For several threads, one a table."""

    def __init__(self, names: Iterable[str]) -> None:
        """``names`` are those of all tables that meet."""
        self._reached = dict.fromkeys(names, Meeting.BEGUN)
        self._failed = ""
        self.stopped: set[str] = set()
        """The tables that stopped for another's sake."""
        self._hooks_ran = False
        self._hooks = threading.Lock()
        self._changed = threading.Condition()

    @property
    def failed(self) -> str:
        """The table that failed first; empty where none did."""
        return self._failed

    def arrive(self, name: str, where: Meeting, pulse: Callable[[str], None]) -> bool:
        """Waits until all tables have come as far as ``where``; False where one of them failed.

        ``pulse`` is called now and then with a table that is waited for; what it raises ends the wait.
        """
        with self._changed:
            self._reached[name] = max(self._reached[name], where)
            self._changed.notify_all()
        while True:
            with self._changed:
                if self._changed.wait_for(lambda: self._failed or not self._behind(where), _LOOK_EVERY):
                    return self._goes_on(name)
                behind = self._behind(where)
            pulse(behind)

    def may_go_on(self, name: str) -> bool:
        """Whether no other table has failed. Asked before each statement."""
        with self._changed:
            return self._goes_on(name)

    def stop_unless_done(self, name: str) -> None:
        """Stops the others before their next statement, where a table ends before it is done."""
        with self._changed:
            if self._reached[name] < Meeting.DONE and not self._failed:
                self._failed = name
            self._changed.notify_all()

    def leave(self, name: str) -> None:
        """Notes that a table's gate is open for good."""
        self.stop_unless_done(name)
        with self._changed:
            self._reached[name] = Meeting.OPEN
            self._changed.notify_all()

    def wait_until_open(self) -> None:
        """Waits until the gates of all tables are open: on its way out, each comes to that."""
        with self._changed:
            self._changed.wait_for(lambda: not self._behind(Meeting.OPEN))

    def once(self, run: Callable[[], None]) -> None:
        """Runs the hooks of the first table that asks; the others wait for it, and run none."""
        with self._hooks:
            if not self._hooks_ran:
                self._hooks_ran = True
                run()

    def _goes_on(self, name: str) -> bool:
        if self._failed:
            self.stopped.add(name)
        return not self._failed

    def _behind(self, where: Meeting) -> str:
        return next((name for name, reached in self._reached.items() if reached < where), "")


_LOOK_EVERY = 0.5
