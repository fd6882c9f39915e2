"""One writer's way past the gate: put the guard, read the gate, wait or write, delete the guard (docs/guards.md).

The order is the proof: the apply puts its gate and then lists the guards, so one of the two sees the other.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol, TypeVar

from tablectl.applying.clock import Clock
from tablectl.applying.guards import HERE, GuardMode, GuardRecord
from tablectl.applying.lease import random_id
from tablectl.applying.lease_log import ATTEMPTS, LeaseRecord, died, put, tail
from tablectl.applying.owner import UNKNOWN_OWNER, Owner
from tablectl.model.errors import WindowError
from tablectl.storage.records import RecordStore

_FIRST_PAUSE, _LONGEST_PAUSE = 0.004, 1.0
"""Seconds between two looks at a gate: a short window shall delay a writer little."""
_FIRST_REMINDER = 60.0

UNDELETED = "the guard of this write was not deleted, and an apply may wait for it to age"

_log = logging.getLogger(__name__)
_Result = TypeVar("_Result")


class GuardTimeout(WindowError):  # noqa: N818  (an event, as people name it)
    """A guard waited at a gate for as long as its ``timeout`` allows. Nothing was written."""


class StoreCall(Protocol):
    """Who makes the calls to the store; raises ``WindowError`` where one gets no answer in a bounded time."""

    def __call__(self, call: Callable[[], _Result], /) -> _Result:
        """What the call returns; what it raises, raised."""


class StoredGuard:
    """One transaction's guard in the store. Not for two threads at a time; its methods raise ``WindowError``."""

    def __init__(self, store: RecordStore, record: GuardRecord, owner: Owner = UNKNOWN_OWNER) -> None:
        """``record`` is the first beat that will be put; ``owner`` is who writes."""
        self._store = store
        self._next = record
        self._owner = owner
        self._names: list[str] = []  # of the beats that may be there, also those whose answer was lost
        self._active = False
        self._unrecorded: tuple[LeaseRecord, str] | None = None
        self.told_undeleted = False
        """Whether the user was told that it cannot be deleted."""

    @property
    def id(self) -> str:
        """Its id in the store."""
        return self._next.id

    @property
    def mode(self) -> GuardMode:
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
        self._active = record.waits != HERE
        self._store.create(record.name, record.to_bytes())

    def knock(self) -> LeaseRecord | None:
        """Puts the guard, **then** reads the gate: the tail of the lease, ``None`` where there never was one."""
        self._next = replace(self._next, waits="")
        self.put()
        return self.gate()

    def gate(self) -> LeaseRecord | None:
        """Reads the gate."""
        return tail(self._store)

    def renew(self) -> None:
        """Puts the next beat if the guard is there, and writes down late what could not be written in time.

        The beat before it stays until the next renewal: a listing that runs while one name comes and another goes may
        hold neither, and the apply would not wait.
        """
        if self._active and self._names:
            self.put()
            while len(self._names) > 2:
                self._store.delete(self._names[0])
                del self._names[0]
            self._record_late()

    def withdraw(self) -> None:
        """Deletes all beats, the others too if one fails. What is left is not renewed and ages."""
        self._active = False
        failures: list[WindowError] = []
        for name in tuple(self._names):
            try:
                self._store.delete(name)
                self._names.remove(name)
            except WindowError as error:
                failures.append(error)
        if failures:
            raise failures[0]

    def wait_here(self) -> None:
        """Puts a beat that says that the write has not begun: for a writer that may not delete its guard."""
        self._next = replace(self._next, waits=HERE)
        self.put()

    def wait_elsewhere(self, place: str) -> None:
        """Says in the next beat that the write waits at the gate of another table; empty: that it goes on."""
        self._next = replace(self._next, waits=place)
        self.renew()

    def start_again(self, new_id: str) -> None:
        """Takes a new id: the old one was taken for dead, and no apply waits for it."""
        self._next = replace(self._next, id=new_id, beat=0)

    def take_for_dead(self, last: LeaseRecord, reason: str, at: datetime) -> bool:
        """Puts behind the tail ``last`` that its holder is dead; False where another record is there already."""
        return put(self._store, died(last, self._owner, reason, random_id(), at), last)

    def record_later(self, seen: LeaseRecord, reason: str) -> None:
        """The write goes on past the gate of ``seen`` since the store cannot be reached: the holder must learn it."""
        self._unrecorded = (seen, reason)

    def _record_late(self) -> None:
        if self._unrecorded is None:
            return
        seen, reason = self._unrecorded
        last = self.gate()
        still = last is not None and last.held and last.epoch == seen.epoch and self.mode.waits(last.gate)
        if last is None or not still or self.take_for_dead(last, reason, last.at):
            self._unrecorded = None  # else the holder has just renewed: our next renewal tries again


@dataclass(slots=True)
class _Watch:
    """What a waiting writer knows of the gate, by its own clock."""

    seen: LeaseRecord
    since: float
    """When ``seen`` was seen first."""
    heard: float
    """When the store answered last."""
    problem: str = ""
    """Why the store does not answer, or does not take the record that the gate is dead."""

    def sees(self, record: LeaseRecord, now: float) -> None:
        self.heard = now
        if record.id != self.seen.id:
            self.seen, self.since = record, now


@dataclass(frozen=True, slots=True)
class GateEntry:
    """How one write comes to pass the gate of its table."""

    guard: StoredGuard
    table: str
    """The table, for people."""
    timeout: float | None
    """Seconds to wait at a gate; ``None``: as long as it is alive."""
    clock: Clock
    ask: StoreCall
    waiting: Callable[[bool], None] = lambda _waits: None
    """Told that the write waits, and that it goes on."""

    def enter(self) -> LeaseRecord | None:
        """Returns when the write may begin: the guard is in the store, and the gate read after it lets it through.

        Gives the tail of the lease as it was then. Once a gate was seen that stops the write, it goes on only after a
        record that lets it through, or after the store could not be reached for as long as a gate takes to die. A gate
        without a sign of life for that time is recorded as dead by whoever waits, and then lets all through. Raises
        ``GuardTimeout``, the guard withdrawn, and ``WindowError`` where the store fails at the first look, the guard as
        it may be.
        """
        arrived = self.clock.monotonic()
        for _ in range(ATTEMPTS):
            sent = self.clock.monotonic()
            seen = self.ask(self.guard.knock)
            if seen is not None and self._waits_at(seen):
                self.waiting(True)  # noqa: FBT003
                try:
                    sent, seen = self._wait(seen, arrived)
                finally:
                    self.waiting(False)  # noqa: FBT003
            taken_for_dead = seen is not None and self.guard.id in seen.dead_guards
            if self.clock.monotonic() - sent < self.guard.ttl and not taken_for_dead:
                return seen
            # By now an apply may have taken our guard for dead, so the gate must be read again. That it was is in the
            # log; our own clock may have stood still meanwhile.
            self.ask(self.guard.withdraw)
            self.guard.start_again(random_id())
        raise WindowError(f"its records take longer than the guard's ttl of {self.guard.ttl:g} s")

    def _waits_at(self, record: LeaseRecord) -> bool:
        return record.held and self.guard.mode.waits(record.gate)

    def _wait(self, first: LeaseRecord, arrived: float) -> tuple[float, LeaseRecord | None]:
        """Waits until the gate lets the write through, the guard put again before it is read: when that was begun, and
        the tail then.
        """
        began = self.clock.monotonic()
        watch = _Watch(first, began, began)
        reminder, pause = 0.0, _FIRST_PAUSE
        self._withdraw(watch)
        while True:
            now = self.clock.monotonic()
            if self.timeout is not None and now - arrived >= self.timeout:
                raise self._timed_out(watch.seen, now - arrived)
            if now - began >= reminder:
                _log.info("%s: a write waits at the gate (%s): %s", self.table, watch.seen.gate, watch.seen)
                reminder = max(_FIRST_REMINDER, 2 * reminder)
            left = pause if self.timeout is None else self.timeout - (now - arrived)
            self.clock.sleep(min(left, pause * random.uniform(0.5, 1)))  # noqa: S311  # jitter, no secret
            pause = min(_LONGEST_PAUSE, 2 * pause)
            sent = self.clock.monotonic()  # before the reads
            if self._is_free(watch, sent):
                passed, last = self._knock(watch)
                if passed:
                    _log.info("%s: the gate lets the write through after %.1f s", self.table, sent - began)
                    return sent, last
            if self._is_cut_off(watch, sent):
                return sent, watch.seen

    def _is_free(self, watch: _Watch, now: float) -> bool:
        """Whether the gate lets the write through, or does once it is recorded as dead."""
        try:
            last = self.ask(self.guard.gate)
            if last is None or not self._waits_at(last):
                return True
            watch.sees(last, self.clock.monotonic())
            if now - watch.since < watch.seen.statement_silence:
                watch.problem = ""
                return False
            reason = f"no sign of life for {now - watch.since:.0f} s"
            at = self.clock.utc()
            return self.ask(lambda: self.guard.take_for_dead(watch.seen, reason, at))
        except WindowError as error:
            _log.debug("%s: no news of the gate: %s", self.table, error.message)
            watch.problem = error.message
            return False

    def _knock(self, watch: _Watch) -> tuple[bool, LeaseRecord | None]:
        try:
            last = self.ask(self.guard.knock)
        except WindowError as error:
            watch.problem = error.message
            self._withdraw(watch)
            return False, None
        if last is None or not self._waits_at(last):
            return True, last
        watch.sees(last, self.clock.monotonic())
        self._withdraw(watch)
        return False, None

    def _is_cut_off(self, watch: _Watch, now: float) -> bool:
        """Whether the store did not answer, or did not take what must be recorded, for as long as a gate takes to die.
        Then the write goes on, and the holder learns it from the record that is put as soon as the store takes it.
        """
        silence = watch.seen.statement_silence
        dead_for = now - watch.since - silence
        if not watch.problem or (now - watch.heard < silence and dead_for < watch.seen.silence):
            return False
        reason = f"a writer could not use the records for {max(now - watch.heard, dead_for):.0f} s: {watch.problem}"
        _log.warning("%s: the write goes on past a gate (%s): %s", self.table, watch.seen.gate, reason)
        self.guard.record_later(watch.seen, reason)
        with suppress(WindowError):
            self.ask(self.guard.put)  # also puts it among those that are renewed
        return True

    def _withdraw(self, watch: _Watch) -> None:
        """Takes the guard back. Where that fails, a beat says that the write has not begun: no reason to go on."""
        try:
            self.ask(self.guard.withdraw)
        except WindowError as error:
            if not self.guard.told_undeleted:
                _log.warning("%s: %s: %s", self.table, UNDELETED, error.message)
            self.guard.told_undeleted = True
            with suppress(WindowError):
                self.ask(self.guard.wait_here)

    def _timed_out(self, seen: LeaseRecord, waited: float) -> GuardTimeout:
        return GuardTimeout(
            f"{self.table}: this write waited {waited:.3g} s at the gate ({seen.gate}) of an apply: {seen}",
            "run it again when that apply is done; `tablectl window show` tells who holds the table, "
            "`tablectl window break` frees it by force",
        )
