"""Turns: the closed statements of a run are sent one after the other, and a gate closes only in its table's turn.

A driver that runs eight ALTERs at once takes as long for all of them as one by one, and each takes many times longer.
If all eight gates are shut meanwhile, each is shut for as long as all eight take. So a table takes the turn before it
shuts its gate, then shuts the gate, and gives the turn to the next table when its last closed statement has ended.

A table cannot delay others for long:

* A turn is not held during a long drain. A table whose writers have not ended after ``SHORT_DRAIN`` seconds gives up
  the turn, waits without it, and then takes it again ahead of tables whose gates are not shut yet.
* A table whose gate is shut waits for the turn at most ``LONGEST_WITH_SHUT_GATE`` seconds. Then it runs concurrently
  with the statement of the holder: its writers must not wait for another table's.
* Statements that rewrite data take minutes or hours. They have a lane of their own, so that an ALTER of a second never
  waits for one. REORG and OPTIMIZE are not closed statements and take no turn at all.

There is no deadlock: the holder of a turn waits only for the engine and the store of its own lease, and both are
bounded. It never waits for a lease, another turn, a worker or, beyond ``SHORT_DRAIN``, a writer.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from enum import IntEnum

from tablectl.applying.waits import GO, Awaited, Go, Later, wait_here
from tablectl.leases.clock import Clock
from tablectl.model.plan import Statement

SHORT_DRAIN = 2.0
"""Seconds for which writers are waited for during a turn."""
LONGEST_WITH_SHUT_GATE = 5.0
"""Seconds for which a table whose gate is shut waits for its turn."""
_LOOK_EVERY = 0.5
_TURN = Awaited("turn", "for a turn")

_DATA_VERBS = frozenset(
    {"OVERWRITE", "DROP FEATURE", "REORG", "OPTIMIZE", "REMOVE COLUMN MAPPING", "UPGRADE UNIFORM"}
    | {"ADD CONSTRAINT", "SET NOT NULL"}  # they read all rows
)
_QUICK_VERBS = frozenset({"SET TBLPROPERTIES", "UNSET TBLPROPERTIES", "CLUSTER BY", "DROP CONSTRAINT", "DROP NOT NULL"})


class Lane(IntEnum):
    """The two queues."""

    METADATA = 0
    DATA = 1


def lane_of(statement: Statement) -> Lane:
    """The lane of a statement: ``DATA`` if it may rewrite or move data, or the log entry of every file."""
    if statement.rewrite is not None and statement.rewrite.copies:
        return Lane.METADATA  # its rows were copied before
    rewrites = statement.rewrite is not None or statement.backfill is not None or statement.repartition is not None
    return Lane.DATA if rewrites or statement.effect.moves or statement.verb in _DATA_VERBS else Lane.METADATA


def is_quick(statement: Statement) -> bool:
    """Whether a statement only commits metadata: it reads and writes no rows, so that it takes seconds."""
    return lane_of(statement) is Lane.METADATA and statement.verb in _QUICK_VERBS and len(statement.commits) <= 1


@dataclass(slots=True)
class _Line:
    """The turns in one lane. Accessed only under the lock of ``Turns``."""

    holders: list[Turn] = field(default_factory=list)
    """Usually one; more if a table with a shut gate ran concurrently."""
    first: list[Turn] = field(default_factory=list)
    """Tables whose gates are shut, in order of arrival."""
    queue: list[Turn] = field(default_factory=list)

    def next(self) -> Turn | None:
        return next(iter((*self.first, *self.queue)), None)


class Turns:
    """The turns of a run."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._lines: dict[Lane, _Line] = {}

    def of(self, name: str, clock: Clock) -> Turn:
        """A new turn for one table, not taken yet. Waiting tables see ``name``."""
        return Turn(name, clock, self._changed, self._lines)


class Turn:
    """One table's turn. Belongs to the thread that works on the table."""

    def __init__(self, name: str, clock: Clock, changed: threading.Condition, lines: dict[Lane, _Line]) -> None:
        """``lines`` are those of the run, used only under the lock of ``changed``."""
        self.name = name
        self._clock = clock
        self._changed = changed
        self._lines = lines
        self._lane: Lane | None = None

    @property
    def held(self) -> bool:
        """Whether the turn is taken."""
        return self._lane is not None

    def take(self, lane: Lane, keep_alive: Callable[[Later, float], None], *, shut: bool) -> None:
        """Take the turn in a lane. Does nothing if it is already held in that lane.

        ``shut`` says that the table's gate is shut. Such a table comes before tables whose gates are not, and gets the
        turn at the latest after ``LONGEST_WITH_SHUT_GATE`` seconds. ``keep_alive`` is called periodically with what it
        waits for and the seconds waited. What it raises ends the wait, and the turn is not taken.
        """
        if self._lane is lane:
            return
        self.give()
        started = self._clock.monotonic()
        with self._changed:
            line = self._lines.setdefault(lane, _Line())
            waiting = line.first if shut else line.queue
            waiting.append(self)
        try:
            wait_here(
                lambda now: self._check(line, lane, now, started if shut else None),
                self._clock,
                keep_alive,
                lambda seconds: self._pause(line, seconds),
            )
        finally:
            with self._changed:
                with suppress(ValueError):
                    waiting.remove(self)
                self._changed.notify_all()

    def give(self) -> None:
        """Give the turn to the next table. Does nothing if it is not held. Never raises."""
        if self._lane is not None:
            with self._changed:
                self._lines[self._lane].holders.remove(self)
                self._lane = None
                self._changed.notify_all()

    def _check(self, line: _Line, lane: Lane, now: float, shut_since: float | None) -> Go | Later:
        """Take the turn if it is this table's, or if its gate is shut for too long."""
        with self._changed:
            late = shut_since is not None and now - shut_since >= LONGEST_WITH_SHUT_GATE
            if late or self._is_next(line):
                line.holders.append(self)
                self._lane = lane
                return GO
            ahead = next((each.name for each in line.holders), "another table")
            most = 0.0 if shut_since is None else LONGEST_WITH_SHUT_GATE
            return Later(now + _LOOK_EVERY, _TURN, f"waiting for its turn, after {ahead}", most)

    def _pause(self, line: _Line, seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._is_next(line), seconds)

    def _is_next(self, line: _Line) -> bool:
        return not line.holders and line.next() is self
