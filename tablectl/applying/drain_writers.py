"""The drain: wait until every guard that the gate blocks is deleted or dead.

docs/guards.md, "How writers and applies wait".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from tablectl.applying.waits import GO, Answer, Awaited, End, Later, wait_here
from tablectl.leases.clock import Clock
from tablectl.leases.guards import HERE, GuardRecord, delete_dead_guard, listed_twice, read_guard
from tablectl.leases.lease import LeaseLost
from tablectl.leases.lease_records import PATIENCE, Gate
from tablectl.model.errors import WindowError
from tablectl.model.run_report import RunOutcome
from tablectl.model.safe_text import listed
from tablectl.storage.records import RecordStore
from tablectl.support.frozen import frozen

_WRITERS = Awaited("draining", "for writers")
_SHORTEST_PAUSE = 0.05
_LONGEST_PAUSE = 1.0
_UNREAD = -1


@frozen
class DrainWait:
    """What a drain still waits for, or why it does not know."""

    guards: tuple[GuardRecord, ...]
    problem: str
    """Why the guards or the lease could not be read; empty if they were read."""
    seconds: float
    """Seconds waited so far."""
    guarded: bool = False
    """Whether any guard was seen, including guards that the gate does not block."""
    waits_for: str = ""
    """The location of another table whose gate blocks one of these writers in the middle of its write."""
    dead: tuple[GuardRecord, ...] = ()
    """Guards that were taken for dead. The writer of one that was only silent is alive."""
    at_gate: tuple[tuple[str, int], ...] = ()
    """Ids and beats of the guards whose writers wait at this gate and have not begun to write."""
    later: Later | None = None
    """The wait for them."""

    @property
    def over(self) -> bool:
        """Whether the drain is complete. Guards that cannot be read count as not drained."""
        return not self.guards and not self.problem

    @property
    def text(self) -> str:
        """The writers that the drain waits for, for people: ``nightly load (any), etl (append)``."""
        return listed([*map(named, self.guards)], MOST_NAMED) or f"guards that cannot be read: {self.problem}"


MOST_NAMED = 5
"""How many writers a message names."""


def named(guard: GuardRecord) -> str:
    """The writer of a guard, for people."""
    return f"{guard.writer or 'a writer without a name'} ({guard.mode})"


def _never(_waiting: DrainWait) -> bool:
    """Always false."""
    return False


def _forget(_guards: Sequence[str]) -> None:
    """Records nothing."""


@frozen
class DrainOptions:
    """The writers that a drain waits for, and how it ends."""

    ignored: Collection[str] = ()
    """The ids of guards to skip."""
    note_dead: Callable[[Sequence[str]], None] = _forget
    """Records the dead guards before the drain ends; then they are deleted."""
    is_stuck: Callable[[DrainWait], bool] = _never
    """The drain ends as soon as this returns true."""


def drain(
    store: RecordStore,
    gate: Gate,
    clock: Clock,
    limit: float,
    keep_alive: Callable[[DrainWait], None],
    options: DrainOptions = DrainOptions(),
) -> DrainWait:
    """Wait at most ``limit`` seconds until the guards that ``gate`` blocks are deleted or dead. Returns what is left.

    The record of the gate must be in the log before the call. A guard that appears after the first listing was written
    after the gate's record, so its writer saw the gate and waits by itself: the drain does not wait for it.

    A guard is dead if its beat has not changed for ttl × 1.25 on our clock. ``keep_alive`` is called before each pause
    and keeps the lease proven. What it raises ends the drain, except transient failures of the store.
    """
    wait = _DrainCheck(_Guards(store, gate, clock, options.ignored), gate, clock.monotonic(), limit, options)

    def tell(_later: Later, _waited: float) -> None:
        try:
            keep_alive(wait.left)
        except LeaseLost:
            raise
        except WindowError as error:
            wait.left = replace(wait.left, problem=error.message)

    wait_here(wait.check, clock, tell)
    return wait.left


class _DrainCheck:
    """Whether the writers that a gate blocks have ended."""

    def __init__(self, guards: _Guards, gate: Gate, began: float, limit: float, options: DrainOptions) -> None:
        self._guards = guards
        self._gate = gate
        self._began = began
        self._limit = limit
        self._options = options
        self._pause = _SHORTEST_PAUSE
        self._last = False
        """Whether the time is over, or the drain is stuck."""
        self.left = DrainWait((), "", 0.0)

    def check(self, now: float) -> Answer:
        """Look at the guards. A store that fails is asked again."""
        if self._last:
            return End(RunOutcome.NO_WINDOW, self.left.text)
        guards, problem = self._guards, ""
        try:
            guards.look()
        except WindowError as error:
            problem = error.message
        self.left = DrainWait(
            guards.alive,
            problem,
            now - self._began,
            guards.any_seen,
            _elsewhere(guards.alive),
            guards.dead,
            tuple(guards.at_gate.items()),
        )
        if self.left.over:
            try:
                self._options.note_dead([each.id for each in guards.dead])
                guards.delete_dead_guards()
            except LeaseLost:
                raise
            except WindowError as error:
                self.left = replace(self.left, problem=error.message)
            else:
                return GO
        left = self._limit - self.left.seconds
        self._last = left < _SHORTEST_PAUSE or self._options.is_stuck(self.left)
        pause, self._pause = min(self._pause, left), min(self._pause * 2, _LONGEST_PAUSE)
        later = Later(
            now + (0.0 if self._last else pause), _WRITERS, f"{self._gate} gate, waiting for {self.left.text}"
        )
        self.left = replace(self.left, later=later)
        return later


def _elsewhere(guards: Iterable[GuardRecord]) -> str:
    return next((guard.waits for guard in guards if guard.waits), "")


@frozen
class _Seen:
    record: GuardRecord
    beat: int
    """The beat whose record was read. ``_UNREAD`` if the record was gone by then, as after a renewal."""
    since: float
    """When that beat was first seen, in seconds on our clock."""
    dead: bool = False


class _Guards:
    """The guards that a drain waits for, from one listing to the next."""

    def __init__(self, store: RecordStore, gate: Gate, clock: Clock, ignored: Collection[str]) -> None:
        self._store = store
        self._gate = gate
        self._clock = clock
        self._ignored = ignored
        self._seen: Mapping[str, _Seen] | None = None
        self.any_seen = False
        self.at_gate: dict[str, int] = {}
        """Guards whose writers wait at the gate, by id, with the beat that says so."""

    @property
    def alive(self) -> tuple[GuardRecord, ...]:
        """Guards not known to be dead."""
        return tuple(each.record for each in (self._seen or {}).values() if not each.dead)

    @property
    def dead(self) -> tuple[GuardRecord, ...]:
        """The dead guards."""
        return tuple(each.record for each in (self._seen or {}).values() if each.dead)

    def delete_dead_guards(self) -> None:
        """Delete the dead guards."""
        for guard, each in (self._seen or {}).items():
            if each.dead:
                delete_dead_guard(self._store, guard, each.beat)

    def look(self) -> None:
        """List the guards. The first call takes all of them, later calls only those already known.

        If it raises ``WindowError``, the state is unchanged.
        """
        now = self._clock.monotonic()  # before the reads: what they return is at least as old as this
        beats = listed_twice(self._store)
        self.any_seen |= bool(beats)
        looked_at = {}
        for guard, beat in beats.items():
            known = None if self._seen is None else self._seen.get(guard)
            is_late = self._seen is not None and known is None
            if guard not in self._ignored and not is_late:
                looked_at[guard] = (
                    self._aged(known, now) if known and known.beat == beat else self._read(guard, beat, known)
                )
        self._seen = {guard: each for guard, each in looked_at.items() if self._is_waited_for(each.record)}
        self.at_gate |= {guard: each.beat for guard, each in looked_at.items() if each.record.waits == HERE}

    def _is_waited_for(self, record: GuardRecord) -> bool:
        # A writer that says that it waits at this table reads the gate again after its next beat.
        return record.mode.waits(self._gate) and record.waits != HERE

    def _read(self, guard: str, beat: int, known: _Seen | None) -> _Seen:
        found = read_guard(self._store, guard, beat)
        record = found or GuardRecord(guard, beat, known.record.writer if known else "")
        return _Seen(record, beat if found else _UNREAD, self._clock.monotonic())

    def _aged(self, known: _Seen, now: float) -> _Seen:
        return replace(known, dead=now - known.since >= known.record.ttl * PATIENCE)
