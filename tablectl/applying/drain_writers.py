"""The drain: wait until every guard that the gate blocks is deleted or dead.

docs/guards.md, "How writers and applies wait".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil

from tablectl.applying.waits import GO, Answer, Awaited, End, Later, Wait, wait_here
from tablectl.leases.clock import Clock
from tablectl.leases.guards import HERE, GuardRecord, delete_dead_guard, listed_twice, read_guard
from tablectl.leases.lease import RENEW_EVERY, LeaseLost
from tablectl.leases.lease_records import PATIENCE, Gate, SilentGuard
from tablectl.model.errors import WindowError
from tablectl.model.run_report import RunOutcome
from tablectl.model.safe_text import listed
from tablectl.storage.failures import ForeignRecordError
from tablectl.storage.records import RecordStore

_WRITERS = Awaited("draining", "for writers")
_SHORTEST_PAUSE = 0.05
_LONGEST_PAUSE = 1.0
_UNREAD = -1
STUCK = 2.0
"""Seconds after which a drain gives up on a writer that is blocked at the gate of another table."""
MOST_NAMED = 5
"""How many writers a message names."""


def named(guard: GuardRecord) -> str:
    """The writer of a guard, for people."""
    return f"{guard.writer or 'a writer without a name'} ({guard.mode})"


class Sightings:
    """When each beat of the guards of one table was first seen. Lives as long as the run: a drain that begins later
    counts on, and so does the next run, from the lease record (``SilentGuard``).

    A moment is on our monotonic clock. One of an earlier holder is as many seconds ago as that holder has watched.
    """

    def __init__(self) -> None:
        self._first: dict[str, tuple[int, float]] = {}

    def recall(self, silent: Iterable[SilentGuard], now: float) -> None:
        """Take over what earlier holders of the lease saw. ``now`` is a moment at which the record was there."""
        for each in silent:
            if each.guard not in self._first:
                self._first[each.guard] = each.beat, now - each.seconds

    def since(self, guard: str, beat: int, at: float) -> float:
        """When a beat was first seen, if it was seen again at a moment."""
        known = self._first.get(guard)
        if known is None or known[0] != beat:
            known = self._first[guard] = beat, at
        return known[1]

    def silent(self, guards: Iterable[GuardRecord], now: float) -> tuple[SilentGuard, ...]:
        """For how long guards have shown no sign of life, as it is recorded."""
        known = ((each, self._first.get(each.id)) for each in guards)
        return tuple(
            SilentGuard(each.id, each.beat, max(0.0, now - first[1]))
            for each, first in known
            if first is not None and first[0] == each.beat
        )


def is_silent(guard: GuardRecord, seen: SilentGuard) -> bool:
    """Whether a writer has missed three renewals, and so is probably dead."""
    return seen.seconds >= 3 * RENEW_EVERY * guard.ttl


def why_silent(guards: Sequence[GuardRecord], silent: Sequence[SilentGuard]) -> str:
    """What helps against guards without a sign of life, for people. The time between two runs does not count."""
    left = max(each.ttl * PATIENCE - seen.seconds for each, seen in zip(guards, silent, strict=True))
    seconds = max(each.seconds for each in silent)
    writers = listed([*map(named, guards)], MOST_NAMED)
    return (
        f"no sign of life of {writers} for {seconds:.0f} s: they count as dead after {max(left, 1):.0f} s more. Run "
        f"again, which watches them with an open gate and counts on; `--wait {ceil(left / 60)}` watches for as long"
    )


@dataclass(frozen=True, slots=True)
class _Seen:
    record: GuardRecord
    beat: int
    """The beat whose record was read. ``_UNREAD`` if the record was gone by then, as after a renewal."""
    since: float
    """When that beat was first seen, in seconds on our clock."""
    dead: bool = False


class Drain(Wait):
    """The wait until the guards that a gate blocks are deleted or dead, and what is left of them.

    The record of the gate must be in the log before. A guard that appears after the first listing was written after
    the gate's record, so its writer saw the gate and waits by itself: the drain does not wait for it.

    A guard is dead if its beat has not changed for ttl × 1.25, as far as this run and earlier holders have seen.
    """

    def __init__(  # noqa: PLR0913  # one more than most: what drains share
        self,
        store: RecordStore,
        gate: Gate,
        clock: Clock,
        limit: float,
        ignored: Collection[str],
        note_dead: Callable[[Sequence[str]], None],
        sightings: Sightings | None = None,
    ) -> None:
        """``limit`` is in seconds. ``ignored`` are the ids of guards to skip. ``note_dead`` records the dead guards
        before the drain ends; then they are deleted. ``sightings`` are those of the drains before this one.
        """
        self._sightings = sightings or Sightings()
        self._store = store
        self._gate = gate
        self._clock = clock
        self._limit = limit
        self._ignored = ignored
        self._note_dead = note_dead
        self._began = clock.monotonic()
        self._pause = _SHORTEST_PAUSE
        self._last = False
        """Whether the time is over, or the drain is stuck."""
        self._seen: Mapping[str, _Seen] | None = None
        self.seconds = 0.0
        """Seconds waited so far. The gate counts the drains before this one, too."""
        self.problem = ""
        """Why the guards or the lease could not be read; empty if they were read."""
        self.guarded = False
        """Whether any guard was seen, including guards that the gate does not block."""
        self.at_gate: dict[str, int] = {}
        """Ids and beats of the guards whose writers wait at this gate and have not begun to write."""

    @property
    def guards(self) -> tuple[GuardRecord, ...]:
        """The guards that are waited for, which are not known to be dead."""
        return tuple(each.record for each in (self._seen or {}).values() if not each.dead)

    @property
    def dead(self) -> tuple[GuardRecord, ...]:
        """Guards that were taken for dead. The writer of one that was only silent is alive."""
        return tuple(each.record for each in (self._seen or {}).values() if each.dead)

    @property
    def over(self) -> bool:
        """Whether the drain is complete. Guards that cannot be read count as not drained."""
        return not self.guards and not self.problem

    @property
    def waits_for(self) -> str:
        """The location of another table whose gate blocks one of these writers in the middle of its write."""
        return next((guard.waits for guard in self.guards if guard.waits), "")

    @property
    def text(self) -> str:
        """The writers that the drain waits for, for people: ``nightly load (any), etl (append)``."""
        return listed([*map(named, self.guards)], MOST_NAMED) or f"guards that cannot be read: {self.problem}"

    def wait(self, keep_alive: Callable[[Later, float], None]) -> None:
        """Wait until the drain is complete, stuck, or out of time.

        ``keep_alive`` is called before each pause, with the seconds waited, and keeps the lease proven. What it raises
        ends the drain, except transient failures of the store.
        """

        def tell(later: Later, _waited: float) -> None:
            self._try(lambda: keep_alive(later, self.seconds))

        wait_here(self.check, self._clock, tell)

    def check(self, now: float) -> Answer:
        """Look at the guards. A store that fails is asked again."""
        if self._last:
            return End(RunOutcome.NO_WINDOW, self.text)
        self.problem, self.seconds = "", now - self._began
        self._try(self._look)
        if self.over:
            self._try(self._delete_dead)  # a failure is a problem, so the drain is not over
        if self.over:
            return GO
        left = self._limit - self.seconds
        is_stuck = bool(self.waits_for) and self.seconds >= STUCK
        self._last = left < _SHORTEST_PAUSE or is_stuck
        pause, self._pause = min(self._pause, left), min(self._pause * 2, _LONGEST_PAUSE)
        at = now + (0.0 if self._last else pause)
        return Later(at, _WRITERS, f"{self._gate} gate, waiting for {self.text}")

    def _try(self, step: Callable[[], None]) -> None:
        """Take a step. A transient failure of the store becomes the problem."""
        try:
            step()
        except (LeaseLost, ForeignRecordError):  # waiting helps with neither
            raise
        except WindowError as error:
            self.problem = error.message or type(error).__name__  # an empty problem would end the drain

    def _delete_dead(self) -> None:
        self._note_dead([each.id for each in self.dead])
        for guard, each in (self._seen or {}).items():
            if each.dead:
                delete_dead_guard(self._store, guard, each.beat)

    def _look(self) -> None:
        """List the guards. The first call takes all of them, later calls only those already known.

        If it raises ``WindowError``, the state is unchanged.
        """
        now = self._clock.monotonic()  # before the reads: what they return is at least as old as this
        beats = listed_twice(self._store)
        self.guarded |= bool(beats)
        looked_at = {}
        for guard, beat in beats.items():
            known = None if self._seen is None else self._seen.get(guard)
            is_late = self._seen is not None and known is None
            if guard not in self._ignored and not is_late:
                looked_at[guard] = known if known and known.beat == beat else self._read(guard, beat, known)
        self._seen = {
            guard: self._aged(each, now) for guard, each in looked_at.items() if self._is_waited_for(each.record)
        }
        self.at_gate |= {guard: each.beat for guard, each in looked_at.items() if each.record.waits == HERE}

    def _is_waited_for(self, record: GuardRecord) -> bool:
        # A writer that says that it waits at this table reads the gate again after its next beat.
        return record.mode.waits(self._gate) and record.waits != HERE

    def _read(self, guard: str, beat: int, known: _Seen | None) -> _Seen:
        found = read_guard(self._store, guard, beat)
        record = found or GuardRecord(guard, beat, known.record.writer if known else "")
        at = self._clock.monotonic()
        return _Seen(record, beat, self._sightings.since(guard, beat, at)) if found else _Seen(record, _UNREAD, at)

    def _aged(self, known: _Seen, now: float) -> _Seen:
        return replace(known, dead=now - known.since >= known.record.ttl * PATIENCE)
