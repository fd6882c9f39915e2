"""One writer's way past the gate: put the guard, read the gate, wait or write, delete the guard (window.md 6.4).

The order is the proof: the apply puts its gate and then lists the guards, so one of the two sees the other.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from tablectl.model.errors import WindowError
from tablectl.window.clock import Clock
from tablectl.window.guards import GuardRecord, Mode
from tablectl.window.lease_log import ATTEMPTS, PATIENCE, LeaseRecord, tail
from tablectl.window.records import RecordStore

_FIRST_PAUSE, _LONGEST_PAUSE = 0.004, 1.0
"""Seconds between two looks at a gate: a short window shall delay a writer little."""
_FIRST_REMINDER = 60.0

_log = logging.getLogger(__name__)
_Result = TypeVar("_Result")


class GuardTimeout(WindowError):  # noqa: N818  (an event, as people name it)
    """A guard waited at a gate for as long as its ``timeout`` allows. Nothing was written."""


class Ask(Protocol):
    """Who makes the calls to the store; raises ``WindowError`` where one gets no answer in a bounded time."""

    def __call__(self, call: Callable[[], _Result], /) -> _Result:
        """What the call returns; what it raises, raised."""


class StoredGuard:
    """One transaction's guard in the store. Not for two threads at a time; its methods raise ``WindowError``."""

    def __init__(self, store: RecordStore, record: GuardRecord) -> None:
        """``record`` is the first beat that will be put."""
        self._store = store
        self._next = record
        self._names: list[str] = []  # of the beats that may be there, also those whose answer was lost

    @property
    def mode(self) -> Mode:
        """What the write may do."""
        return self._next.mode

    @property
    def ttl(self) -> float:
        """Seconds for which a beat holds."""
        return self._next.ttl

    def put(self) -> None:
        """Puts the next beat. No beat's name is ever used twice, so a watcher sees that the writer is alive."""
        record = self._next
        self._next = replace(record, beat=record.beat + 1)
        self._names.append(record.name)
        self._store.create(record.name, record.to_bytes())

    def knock(self) -> LeaseRecord | None:
        """Puts the guard, **then** reads the gate: the tail of the lease, ``None`` where there never was one."""
        self.put()
        return self.gate()

    def gate(self) -> LeaseRecord | None:
        """Reads the gate."""
        return tail(self._store)

    def renew(self) -> None:
        """Puts the next beat if the guard is there.

        The beat before it stays until the next renewal: a listing that runs while one name comes and another goes may
        hold neither, and the apply would not wait.
        """
        if self._names:
            self.put()
            while len(self._names) > 2:
                self._store.delete(self._names[0])
                del self._names[0]

    def withdraw(self) -> None:
        """Deletes all beats, the others too if one fails."""
        failures: list[WindowError] = []
        for name in tuple(self._names):
            try:
                self._store.delete(name)
                self._names.remove(name)
            except WindowError as error:
                failures.append(error)
        if failures:
            raise failures[0]


@dataclass(frozen=True, slots=True)
class Passage:
    """How one write comes to pass the gate of its table."""

    guard: StoredGuard
    table: str
    """The table, for people."""
    timeout: float | None
    """Seconds to wait at a gate; ``None``: as long as it is alive."""
    clock: Clock
    ask: Ask

    def enter(self) -> LeaseRecord | None:
        """Returns when the write may begin: the guard is in the store, and the gate read after it lets it through.

        Gives the tail of the lease as it was then. A gate whose holder gave no sign of life for its ttl × 1.25 on our
        clock is no gate. Raises ``GuardTimeout``, the guard withdrawn, and ``WindowError`` where the store fails, the
        guard as it may be.
        """
        arrived = self.clock.monotonic()
        dead: set[str] = set()
        for _ in range(ATTEMPTS):
            sent = self.clock.monotonic()
            seen = self.ask(self.guard.knock)
            while seen is not None and self._waits_at(seen, dead):
                self.ask(self.guard.withdraw)
                dead.add(self._wait(seen, arrived))
                sent = self.clock.monotonic()
                seen = self.ask(self.guard.knock)
            if self.clock.monotonic() - sent < self.guard.ttl:
                return seen
            # By now an apply may have taken our guard for dead, so the gate must be read again.
            self.ask(self.guard.withdraw)
        raise WindowError(f"its records take longer than the guard's ttl of {self.guard.ttl:g} s")

    def _waits_at(self, record: LeaseRecord, dead: set[str]) -> bool:
        return record.held and record.id not in dead and self.guard.mode.waits(record.gate)

    def _wait(self, first: LeaseRecord, arrived: float) -> str:
        """Waits until the gate is looser or its lease over; or dead: then the id of its last record, else empty."""
        seen, since = first, self.clock.monotonic()  # after the read: what we saw is at least as old as this
        began, reminder, pause = since, 0.0, _FIRST_PAUSE
        while True:
            now = self.clock.monotonic()
            if self.timeout is not None and now - arrived >= self.timeout:
                raise self._timed_out(seen, now - arrived)
            if now - began >= reminder:
                _log.info("%s: a write waits at the gate (%s): %s", self.table, seen.gate, seen)
                reminder = max(_FIRST_REMINDER, 2 * reminder)
            left = pause if self.timeout is None else self.timeout - (now - arrived)
            self.clock.sleep(min(left, pause * random.uniform(0.5, 1)))  # noqa: S311  # jitter, no secret
            pause = min(_LONGEST_PAUSE, 2 * pause)
            now = self.clock.monotonic()  # before the read
            last = self._look(seen)
            if last is None or not self._waits_at(last, set()):
                _log.info("%s: the gate lets the write through after %.1f s", self.table, now - began)
                return ""
            if last.id != seen.id:
                seen, since = last, self.clock.monotonic()
            elif now - since >= seen.ttl * PATIENCE:
                _log.info("%s: the gate is dead, and the write goes on: %s gave no sign of life", self.table, seen)
                return seen.id

    def _look(self, seen: LeaseRecord) -> LeaseRecord | None:
        """The tail, or what was seen last: that the store fails now does not open a gate known to be closed."""
        try:
            return self.ask(self.guard.gate)
        except WindowError as error:
            _log.debug("%s: no news of the gate: %s", self.table, error.message)
            return seen

    def _timed_out(self, seen: LeaseRecord, waited: float) -> GuardTimeout:
        return GuardTimeout(
            f"{self.table}: this write waited {waited:.3g} s at the gate ({seen.gate}) of an apply: {seen}",
            "run it again when that apply is done; `tablectl window show` tells who holds the table, "
            "`tablectl window break` frees it by force",
        )
