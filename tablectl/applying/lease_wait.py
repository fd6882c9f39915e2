"""The leases of a job: taken together, polled while others hold them, and kept until what a dead apply left has ended.

A job holds its leases for one attempt, on a worker. Only while a statement of a dead apply may still run does it hold
them without one: its record must be renewed, so that the gate stays shut for that statement.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Protocol

from tablectl.applying.events import most_text
from tablectl.applying.run_context import TAG, TableJob
from tablectl.applying.waits import GO, Answer, Awaited, End, Go, Later, Wait
from tablectl.delta.locations import canonical_location
from tablectl.engine.interface import Engine
from tablectl.leases.acquire import LONGEST_PAUSE, Blocked, Sighting, acquire_all
from tablectl.leases.clock import StoppedError
from tablectl.leases.lease import Lease, Renewer
from tablectl.leases.lease_records import PATIENCE, Gate, RunningStatement
from tablectl.model.errors import WindowError
from tablectl.model.run_report import RunOutcome, TableRun

GRACE = 3.0
"""Seconds for which a lease with a live holder is polled: it may be held for milliseconds only."""
LONGEST_SILENCE = 75.0
"""Seconds for which a silent holder is observed at least, whatever the ttl of this run: 60 s × 1.25."""
_LEASE = Awaited("held", "for a lease")
STATEMENT_LEFT = Awaited("statement left", "for the statement of a dead apply")
_FIRST_POLL = 0.1
_LOOK_EVERY = 1.0
_SOON = 0.001


class LeasedTable(Protocol):
    """A table by name and location."""

    @property
    def name(self) -> str: ...

    @property
    def location(self) -> str:
        """Where it lies, as planned."""


class LeaseWait(Wait):
    """The leases of all tables of a job, or none."""

    def __init__(self, job: TableJob, *, from_dead: bool = False) -> None:
        """``from_dead``: only dead holders are waited for, also without an engine: hooks need none."""
        self._job = job
        self.places: Sequence[LeasedTable] = job.tables
        self._from_dead = from_dead
        self._stack = ExitStack()
        self._seen: Mapping[str, Sighting] = {}
        """The holders at the last poll."""
        self._blocked_since = 0.0
        self._polls = 0
        self._taken: Mapping[str, Lease] = {}
        """Those of this attempt, or of the last one."""
        self.held = False

    def check(self, now: float) -> Answer:
        """Take the leases, unless others hold some of them."""
        if self.held:
            return GO
        job, self._taken = self._job, {}
        try:
            stores = {_key(place): job.context.records(place.location) for place in self.places}
            taken = acquire_all(stores, job.context.claim, job.context.clock, self._seen)
        except StoppedError:
            return End(RunOutcome.INTERRUPTED, "stopped before its turn", "run the same command again")
        except WindowError as error:
            return End(RunOutcome.FAILED, error.message, error.hint)
        if isinstance(taken, Blocked):
            return self._wait_for(taken.holders, now)
        self._seen, self._polls, self._taken, self.held = {}, 0, taken, True
        for lease in taken.values():
            self._stack.callback(lease.release)
        for lease in taken.values():
            self._stack.enter_context(Renewer(lease, may_renew=may_renew(job.context.engine)))
        return GO

    def of(self, place: LeasedTable) -> Lease:
        """The lease of one of the tables."""
        return self._taken[_key(place)]

    def all(self) -> Collection[Lease]:
        """The leases of this attempt."""
        return self._taken.values()

    def close(self) -> None:
        """Release the leases."""
        self.held = False
        self._stack.close()

    def note(self, run: TableRun) -> TableRun:
        """The state of the gate after the release."""
        lease = next((self.of(each) for each in self.places if self._taken and each.name == run.name), None)
        if lease is None:
            return run
        if not run.epoch:  # it ended before its work began
            run = replace(run, epoch=lease.record.epoch, owed=lease.record.owed)
        return _with_gate(run, lease)

    def _wait_for(self, holders: Mapping[str, Sighting], now: float) -> Answer:
        """The run continues with other tables and polls again later."""
        context = self._job.context
        if not self._polls:
            self._blocked_since = now
        waited = now - self._blocked_since
        pause, while_busy = next_poll(holders.values(), waited, self._polls, context.claim.ttl, context.wait)
        self._seen = {**self._seen, **holders}
        self._polls += 1
        place = next(each for each in self.places if _key(each) in holders)
        holder = holders[_key(place)]
        end = _held(place, holder)
        if self._from_dead:
            left_to_it = holder.alive or holder.patience > longest_watch(context.claim.ttl)
        else:
            left_to_it = not context.engine.alive()  # waiting does not help then
        if left_to_it:
            return end
        words = f"held by {holder.record}; taken over if silent for {round(holder.patience)} s"
        most = 0.0 if holder.alive else holder.patience
        return Later(now + pause, _LEASE, words, most, otherwise=end, ends_when_idle=while_busy)


def may_renew(engine: Engine) -> Callable[[Lease], bool]:
    """Whether a lease may be renewed. A gate that is not open may be renewed only while the engine that it is shut for
    is alive.
    """
    return lambda lease: lease.record.gate is Gate.OPEN or engine.alive()


def _with_gate(run: TableRun, lease: Lease) -> TableRun:
    """The run with the state of its gate, once its lease was released."""
    if not lease.shut_for:
        return run
    why = "a statement may still run in the engine" if lease.running else "the record that opens it was not written"
    brk = f"`tablectl window break {shlex.quote(run.name)} --epoch {lease.record.epoch} --reason …`"
    words = f"writers may wait at its gate for {lease.shut_for:.0f} s at most: {why}; {brk} opens it at once"
    return replace(run, shut_ms=round(lease.shut_for * 1000), shut=words)


def _key(place: LeasedTable) -> str:
    return canonical_location(place.location)


def _held(place: LeasedTable, holder: Sighting) -> End:
    message, show = f"held by {holder.record}", f"`tablectl window show {shlex.quote(place.name)}`"
    if holder.alive:
        return End(RunOutcome.NO_WINDOW, message, f"run again later, or see {show}", place.name)
    message += f"; it gave no sign of life, and counts as dead once it was silent for {holder.patience:.0f} s"
    hint = f"see {show}; if it does not run any more, `tablectl window break` frees the table"
    return End(RunOutcome.NO_WINDOW, message, hint, place.name)


def longest_watch(ttl: float) -> float:
    """The longest time, in seconds, for which a run observes a holder that may be dead. ``ttl`` is that of its own
    leases.
    """
    return max(ttl * PATIENCE, LONGEST_SILENCE)


def next_poll(holders: Collection[Sighting], waited: float, polls: int, ttl: float, wait: float) -> tuple[float, bool]:
    """The seconds until the next poll of leases that these holders have kept for ``waited`` seconds and ``polls``
    polls, and whether the run polls only while it works on other tables, and once more when it has none left.

    A holder that may be dead is observed until that is known, but no longer than a holder with our own ``ttl`` would
    need: whoever can write to a table's directory can write a lease record with a ttl of a day. ``wait`` is the time,
    in seconds, for which the user wants to wait for live holders.
    """
    longest = max(longest_watch(ttl), wait)
    unknown = any(not each.alive and each.patience <= longest for each in holders)
    pause = min(LONGEST_PAUSE, _FIRST_POLL * 2**polls, *(each.record.ttl / 12 for each in holders))
    return pause, not unknown and waited >= max(GRACE, wait) - _SOON


class DeadStatements(Wait):
    """The statements that an earlier run left running on the tables end before anything is read or done.

    Only an operation with a tag of ours is interrupted, and only in the engine of this run: a lease record has no
    authority beyond that. If it cannot interrupt it, or does not know of it, its commit or its bound is waited for.
    """

    def __init__(self, job: TableJob, leases: LeaseWait) -> None:
        self._job = job
        self._leases = leases
        self._left: dict[str, tuple[RunningStatement, float]] = {}
        """By table: the statement, and the moment from which it cannot commit any more."""
        self.waited = False
        """Whether any statement was waited for since the leases were taken."""
        self.notes: dict[str, str] = {}
        """For people, by table: statements that were not waited for."""

    def check(self, now: float) -> Answer:
        """Whether none of the statements runs."""
        answers = (self._check(place, self._leases.of(place), now) for place in self._leases.places)
        return next((answer for answer in answers if not isinstance(answer, Go)), GO)

    def note(self, run: TableRun) -> TableRun:
        """The statements that were not waited for."""
        return replace(run, notes=(self.notes[run.name], *run.notes)) if run.name in self.notes else run

    def _check(self, place: LeasedTable, lease: Lease, now: float) -> Answer:
        context, running = self._job.context, lease.running
        if running is not None:
            self._left.setdefault(place.name, (running, now + running.until * PATIENCE))
        if place.name not in self._left:
            return GO
        running, over = self._left[place.name]
        bound = running.until * PATIENCE
        going = context.engine.interrupt(running.tag, running.engine) if running.tag.startswith(TAG) else None
        if going is None and context.stamp.proceed:
            self.notes[place.name] = f"a statement of an earlier run was not waited for: {context.stamp.proceed}"
            going = False
        if going is None and (now >= over or context.has_committed(place.location, running.run, running.version)):
            going = False
        if going is False:
            del self._left[place.name]
            lease.statement_ended()
            return GO
        if now >= over:
            message = f"a statement of an earlier run ({running.tag}) still runs in the engine, interrupted as it is"
            hint = "end it in the engine, and run the same command again"
            return End(RunOutcome.FAILED, message, hint, place.name)
        if not context.engine.alive():
            message = "a dead apply left a statement that may still run, and the engine of this run does not answer"
            return End(RunOutcome.NO_WINDOW, message, "run the same command again when it does", place.name)
        lease.prove(context.budget)
        self.waited = True
        words = (
            f"a dead apply left a statement that may still run: ending it, or waiting for at most {most_text(bound)}"
        )
        return Later(now + min(_LOOK_EVERY, over - now), STATEMENT_LEFT, words, bound, holds=True)
