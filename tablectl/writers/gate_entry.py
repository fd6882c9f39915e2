"""How a writer passes the gate: put the guard, read the gate, wait or write, delete the guard (docs/guards.md).

The proof is in the order: the writer puts its guard and then reads the gate, the apply puts its gate and then lists the
guards. So one of the two sees the other.

A writer that waits leaves a record that says so. No apply waits for it, but each sees that the writer has a guard.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol, TypeVar

from tablectl.leases.clock import Clock
from tablectl.leases.guards import APPLYING, HERE, GuardMode, GuardRecord
from tablectl.leases.lease import random_id
from tablectl.leases.lease_records import (
    ATTEMPTS,
    MOST_DEAD_GUARDS,
    PATIENCE,
    LeaseRecord,
    RunningStatement,
    died,
    put,
    tail,
)
from tablectl.leases.owner import UNKNOWN_OWNER, Owner
from tablectl.model.errors import WindowError
from tablectl.storage.records import RecordStore

_FIRST_PAUSE, _LONGEST_PAUSE = 0.004, 1.0
"""Seconds between two reads of a gate. They start short, so that a short window delays a writer only a little."""
_FIRST_REMINDER = 60.0
_LOOK_EVERY = 10.0
"""Seconds between two looks at the table's log."""

UNDELETED = "the guard of this write was not deleted, and an apply may wait for it to age"

_log = logging.getLogger(__name__)
_Result = TypeVar("_Result")


class GuardTimeout(WindowError):  # noqa: N818  (an event, as people name it)
    """A guard was blocked at a gate for longer than its ``timeout``, or at the gate of the apply that it is a part of.
    Nothing was written.
    """


class StoreCall(Protocol):
    """Makes the calls to the store. Raises ``WindowError`` if a call gets no answer within a bounded time."""

    def __call__(self, call: Callable[[], _Result], /) -> _Result:
        """Return what the call returns; raise what it raises."""


class StoredGuard:
    """One transaction's guard in the store. Not thread-safe; its methods raise ``WindowError``."""

    def __init__(self, store: RecordStore, record: GuardRecord, owner: Owner = UNKNOWN_OWNER) -> None:
        """``record`` is the first beat to put; ``owner`` is the writer."""
        self._store = store
        self._next = record
        self._owner = owner
        self._names: list[str] = []  # of the beats that may exist, including those whose answer was lost
        self._active = False
        self._unrecorded: tuple[LeaseRecord, str] | None = None
        self._told_stray = False
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
        """Seconds for which a beat is valid."""
        return self._next.ttl

    def put(self) -> None:
        """Put the next beat. The name of a beat is never reused, so an observer sees that the writer is alive."""
        record = self._next
        self._next = replace(record, beat=record.beat + 1)
        self._names.append(record.name)
        self._active = record.waits != HERE
        self._store.create(record.name, record.to_bytes())

    def is_taken_for_dead(self) -> bool:
        """Whether an apply recorded that it takes this guard for dead."""
        last = self.gate()
        return last is not None and self.id in last.dead_guards

    def read_gate(self) -> LeaseRecord | None:
        """Put the guard, **then** read the gate: the tail of the lease, ``None`` if there never was one."""
        self.put_active()
        return self.gate()

    def put_active(self) -> None:
        """Put a beat that an apply waits for."""
        self._next = replace(self._next, waits="")
        self.put()

    def gate(self) -> LeaseRecord | None:
        """Read the gate: the tail of the lease, ``None`` if there never was one."""
        return tail(self._store, self._on_stray)

    def _on_stray(self, error: WindowError) -> None:
        if not self._told_stray:
            _log.warning("%s; this write obeys the gate without it: %s", error.message, error.hint)
        self._told_stray = True

    def renew(self) -> None:
        """Put the next beat if the guard is in the store, and record late what could not be recorded in time.

        The previous beat stays until the next renewal: a listing that runs while one name appears and another
        disappears may contain neither, and then the apply would not wait.
        """
        if self._active and self._names:
            self.put()
            while len(self._names) > 2:
                self._store.delete(self._names[0])
                del self._names[0]
            self._record_late()

    def withdraw(self) -> None:
        """Delete all beats, even if deleting one fails. Beats that remain are not renewed and expire."""
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
        """Put a beat that says that the write has not begun, and delete the beats before it if that is possible."""
        self._next = replace(self._next, waits=HERE)
        self.put()
        for name in self._names[:-1]:
            with suppress(WindowError):
                self._store.delete(name)
                self._names.remove(name)

    def wait_elsewhere(self, place: str) -> None:
        """State in the next beat that the write is blocked at the gate of another table; with an empty text, that it
        continues.
        """
        self._next = replace(self._next, waits=place)
        self.renew()

    def start_again(self, new_id: str) -> None:
        """Take a new id: the old one was taken for dead, so no apply waits for it."""
        self._next = replace(self._next, id=new_id, beat=0)

    def is_stored(self) -> bool:
        """Whether its newest beat is in the store."""
        return bool(self._names) and self._store.read(self._names[-1]) is not None

    def take_for_dead(self, last: LeaseRecord, reason: str, at: datetime) -> bool:
        """Record behind the tail ``last`` that its holder is dead. Returns False if another record is already there."""
        return put(self._store, died(last, self._owner, reason, random_id(), at), last)

    def record_later(self, seen: LeaseRecord, reason: str) -> None:
        """The store cannot be reached and the write continues past the gate of ``seen``: record that later, for the
        holder.
        """
        self._unrecorded = (seen, reason)

    def _record_late(self) -> None:
        if self._unrecorded is None:
            return
        seen, reason = self._unrecorded
        last = self.gate()
        still = last is not None and last.epoch == seen.epoch and self.mode.waits(last.shut)
        if last is None or not still or self.take_for_dead(last, reason, last.at):
            self._unrecorded = None  # else the holder has just renewed: our next renewal retries


@dataclass
class _Watch:
    """What a waiting writer knows about the gate, on its own clock."""

    seen: LeaseRecord
    since: float
    """When ``seen`` was first seen."""
    last_contact: float
    """When the store last answered."""
    problem: str = ""
    """Why the store does not answer, or does not accept the record that the gate is dead."""
    look: Future[bool] | None = None
    """The look at the log that was begun for ``seen``."""
    next_look: float = 0.0
    released: tuple[str, float] = ("", 0.0)
    """The tag of a statement that a released record named, and the moment from which it cannot run any more."""

    def __post_init__(self) -> None:
        self._note_released()

    def note_record(self, record: LeaseRecord, now: float) -> None:
        self.last_contact = now
        if record.id != self.seen.id:
            self.seen, self.since, self.look = record, now, None
            self._note_released()

    def _note_released(self) -> None:
        """Keep the first deadline of a released statement: no run sends it again, so the records of later applies that
        inherit it, and are released in turn, do not prolong it.
        """
        running = self.seen.running
        if running is not None and not self.seen.held and running.tag != self.released[0]:
            self.released = running.tag, self.since + self.seen.statement_silence

    def is_dead(self, now: float) -> bool:
        """Whether the holder has been silent long enough, and the statement that its record names cannot run."""
        silent, running = now - self.since, self.seen.running
        if running is not None and running.tag == self.released[0] and now >= self.released[1]:
            return silent >= self.seen.silence
        return silent >= self.seen.statement_silence


@dataclass(frozen=True)
class GateEntry:
    """How one write passes the gate of its table."""

    guard: StoredGuard
    table: str
    """The table's name, for people."""
    timeout: float | None
    """Seconds to wait at a gate; ``None`` waits as long as the gate is alive."""
    clock: Clock
    ask: StoreCall
    waiting: Callable[[bool], None] = lambda _waits: None
    """Called with True when the write starts to wait, and with False when it continues."""
    look: Callable[[RunningStatement], Future[bool]] | None = None
    """Begins a look at the table's log: whether it has the one commit that ends a statement."""
    is_waited_for: Callable[[str], bool] = lambda _window: False
    """Whether a shared window waits for this writer at another of its tables: then its gates let the writer in."""

    def enter(self) -> LeaseRecord | None:
        """Return when the write may begin: the guard is in the store, and the gate read after it does not block the
        write.

        Returns the tail of the lease at that time. Once a gate that blocks the write was seen, the write continues only
        after a record that does not block it, or after the store could not be reached for as long as a gate takes to
        die. A gate that is silent for that time is recorded as dead by the waiting writer, and then blocks no write.
        Raises ``GuardTimeout`` with the guard withdrawn, and ``WindowError`` if the store fails at the first read; then
        the guard may or may not exist.
        """
        arrived = self.clock.monotonic()
        for _ in range(ATTEMPTS):
            sent = self.clock.monotonic()
            seen = self.ask(self.guard.read_gate)
            if seen is not None and self._waits_at(seen):
                if seen.run == APPLYING.get():
                    raise GuardTimeout(
                        f"{self.table}: this write is a part of the apply that holds the gate ({seen.gate}), and would "
                        f"wait for itself: {seen}",
                        "write after the apply, or in a thread or process of its own",
                    )
                self.waiting(True)  # noqa: FBT003
                try:
                    sent, seen = self._wait(seen, arrived)
                finally:
                    self.waiting(False)  # noqa: FBT003
            taken_for_dead = seen is not None and self._was_taken_for_dead(seen)
            if self.clock.monotonic() - sent < self.guard.ttl and not taken_for_dead:
                return seen
            # By now an apply may have taken our guard for dead, so the gate must be read again. The log says whether it
            # did; our own clock may have stood still meanwhile.
            self.ask(self.guard.withdraw)
            self.guard.start_again(random_id())
        raise WindowError(f"its records take longer than the guard's ttl of {self.guard.ttl:g} s")

    def _was_taken_for_dead(self, last: LeaseRecord) -> bool:
        """Whether an apply has taken our guard for dead, by the tail of the lease.

        The tail names the newest dead guards only. If it may have dropped some, the guard itself tells: an apply
        deletes those that it takes for dead, and one that shuts the gate from now on sees those that are left.
        """
        if self.guard.id in last.dead_guards:
            return True
        return len(last.dead_guards) >= MOST_DEAD_GUARDS and not self.ask(self.guard.is_stored)

    def _waits_at(self, record: LeaseRecord) -> bool:
        if not self.guard.mode.waits(record.shut):
            return False
        return not (record.waited_for(record.window) and self.is_waited_for(record.window))

    def _wait(self, first: LeaseRecord, arrived: float) -> tuple[float, LeaseRecord | None]:
        """Wait until the gate does not block the write; the guard is put again before the gate is read. Returns when
        that last attempt began, and the tail at that time.
        """
        began = self.clock.monotonic()
        watch = _Watch(first, began, began)
        reminder, pause = 0.0, _FIRST_PAUSE
        self._wait_here(watch)
        while True:
            now = self.clock.monotonic()
            if self.timeout is not None and now - arrived >= self.timeout:
                with suppress(WindowError):
                    self.ask(self.guard.withdraw)
                raise self._timed_out(watch.seen, now - arrived)
            if now - began >= reminder:
                _log.info("%s: a write waits at the gate (%s): %s", self.table, watch.seen.shut, watch.seen)
                reminder = max(_FIRST_REMINDER, 2 * reminder)
            left = pause if self.timeout is None else self.timeout - (now - arrived)
            self.clock.sleep(min(left, pause * random.uniform(0.5, 1)))  # noqa: S311  # jitter, not a secret
            pause = min(_LONGEST_PAUSE, 2 * pause)
            sent = self.clock.monotonic()  # before the reads
            if self._is_free(watch, sent):
                passed, last = self._read_gate(watch)
                if passed:
                    _log.info("%s: the gate lets the write through after %.1f s", self.table, sent - began)
                    return sent, last
            if self._is_cut_off(watch, sent):
                return sent, watch.seen

    def _is_free(self, watch: _Watch, now: float) -> bool:
        """Whether the gate does not block the write, or will not once it is recorded as dead."""
        try:
            last = self.ask(self.guard.gate)
            if last is None or not self._waits_at(last):
                return True
            watch.note_record(last, self.clock.monotonic())
            committed = self._has_committed(watch, now)
            if not (committed or watch.is_dead(now)):
                watch.problem = ""
                return False
            reason = f"no sign of life for {now - watch.since:.0f} s"
            reason += ", and the commit of its statement is in the log" if committed else ""
            at = self.clock.utc()
            return self.ask(lambda: self.guard.take_for_dead(watch.seen, reason, at))
        except WindowError as error:
            _log.debug("%s: no news of the gate: %s", self.table, error.message)
            watch.problem = error.message
            return False

    def _has_committed(self, watch: _Watch, now: float) -> bool:
        """Whether a silent holder has left a statement that has made its one commit, so that nothing of it runs. The
        log is looked at rarely, by one look at a time, which the writer does not wait for.
        """
        running = watch.seen.running
        if self.look is None or running is None or now - watch.since < watch.seen.silence:
            return False
        if watch.look is None and now >= watch.next_look:
            watch.look, watch.next_look = self.look(running), now + _LOOK_EVERY
        if watch.look is None or not watch.look.done():
            return False
        look, watch.look = watch.look, None
        return look.exception() is None and look.result()

    def _read_gate(self, watch: _Watch) -> tuple[bool, LeaseRecord | None]:
        try:
            last = self.ask(self.guard.read_gate)
        except WindowError as error:
            watch.problem = error.message
            self._wait_here(watch)
            return False, None
        if last is None or not self._waits_at(last):
            return True, last
        watch.note_record(last, self.clock.monotonic())
        self._wait_here(watch)
        return False, None

    def _is_cut_off(self, watch: _Watch, now: float) -> bool:
        """Whether the store has not answered, or has not accepted a required record, for as long as a gate takes to
        die.

        Then the write continues. The holder learns about it from the record that is put as soon as the store accepts
        it.
        """
        silence, patience = watch.seen.statement_silence, watch.seen.ttl * PATIENCE
        dead_for = now - watch.since - silence
        # A released gate may be near its end. But the next apply may have shut it, at a time that is unknown.
        if not watch.problem or (now - watch.last_contact < max(silence, patience) and dead_for < patience):
            return False
        reason = (
            f"a writer could not use the records for {max(now - watch.last_contact, dead_for):.0f} s: {watch.problem}"
        )
        _log.warning("%s: the write goes on past a gate (%s): %s", self.table, watch.seen.shut, reason)
        self.guard.record_later(watch.seen, reason)
        with suppress(WindowError):
            self.ask(self.guard.put_active)  # also adds it to the renewed guards
        return True

    def _wait_here(self, watch: _Watch) -> None:
        """Say in the store that the write has not begun; if that fails, withdraw the guard. A failure of both does not
        let the write continue.
        """
        try:
            self.ask(self.guard.wait_here)
        except WindowError:
            try:
                self.ask(self.guard.withdraw)
            except WindowError as error:
                if not self.guard.told_undeleted:
                    _log.warning("%s: %s: %s", self.table, UNDELETED, error.message)
                self.guard.told_undeleted = True

    def _timed_out(self, seen: LeaseRecord, waited: float) -> GuardTimeout:
        return GuardTimeout(
            f"{self.table}: this write waited {waited:.3g} s at the gate ({seen.shut}) of an apply: {seen}",
            "run it again when that apply is done; `tablectl window show` tells who holds the table, "
            "`tablectl window break` frees it by force",
        )
