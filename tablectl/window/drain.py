"""The drain: waiting until every guard that a gate stops is gone or dead (DESIGN 5, window.md 6.4)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from tablectl.model.errors import WindowError
from tablectl.window.clock import Clock
from tablectl.window.guards import GuardRecord, newest_beats, read_guard
from tablectl.window.lease import LeaseLost
from tablectl.window.lease_log import PATIENCE, Gate
from tablectl.window.records import RecordStore

_SHORTEST_PAUSE = 0.05
_LONGEST_PAUSE = 1.0
_UNREAD = -1


@dataclass(frozen=True, slots=True)
class Waiting:
    """What a drain still waits for, or why it cannot tell."""

    guards: tuple[GuardRecord, ...]
    problem: str
    """Why the guards or the lease could not be read; empty where they were."""
    seconds: float
    """Waited so far."""

    @property
    def over(self) -> bool:
        """Whether nothing is left to wait for. What cannot be read is not drained."""
        return not self.guards and not self.problem

    @property
    def text(self) -> str:
        """Who is waited for, for people: ``nightly load (any), etl (append)``."""
        named = [f"{guard.writer or 'a writer without a name'} ({guard.mode})" for guard in self.guards]
        more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
        return ", ".join(named[:_NAMED]) + more or f"guards that cannot be read: {self.problem}"


_NAMED = 5


def drain(
    store: RecordStore,
    gate: Gate,
    clock: Clock,
    limit: float,
    pulse: Callable[[Waiting], None],
    ignored: Collection[str] = (),
) -> Waiting:
    """Waits until the guards that wait at ``gate`` are gone or dead, at most ``limit`` seconds; says what is left.

    The gate's record must be in the log before: a guard that comes later than the first listing saw the gate and waits
    by itself, and so is not waited for. A guard is dead when its beat has not changed for its ttl × 1.25 on our clock.
    ``pulse`` is called before each pause: it keeps the lease proven, and what it raises ends the drain, except a
    store's failure that may pass. ``ignored`` are ids of guards that nobody waits for any more.
    """
    started = clock.monotonic()
    seen: Mapping[str, _Seen] | None = None
    pause = _SHORTEST_PAUSE
    while True:
        problem = ""
        try:
            seen = _look(store, gate, clock, seen, ignored)
        except WindowError as error:
            problem = error.message
        now = clock.monotonic()
        alive = () if seen is None else tuple(each.record for each in seen.values() if not each.dead)
        waiting = Waiting(alive, problem, now - started)
        if waiting.over:
            return waiting
        try:
            pulse(waiting)
        except LeaseLost:
            raise
        except WindowError as error:
            waiting = Waiting(alive, error.message, waiting.seconds)
        left = limit - waiting.seconds
        if left < _SHORTEST_PAUSE:
            return waiting
        clock.sleep(min(pause, left))
        pause = min(pause * 2, _LONGEST_PAUSE)


@dataclass(frozen=True, slots=True)
class _Seen:
    record: GuardRecord
    beat: int
    """The beat whose record was read; ``_UNREAD`` where it was gone by then, as it is when it was just renewed."""
    since: float
    """When that beat was seen first, on our clock."""
    dead: bool = False


def _look(
    store: RecordStore, gate: Gate, clock: Clock, before: Mapping[str, _Seen] | None, ignored: Collection[str]
) -> Mapping[str, _Seen]:
    """One look at the guards that matter: at first all that are there, afterwards those that still are."""
    now = clock.monotonic()  # before the reads: what we saw then is at least as old by now
    beats = _listed(store)
    after: dict[str, _Seen] = {}
    for guard, beat in beats.items():
        known = None if before is None else before.get(guard)
        if guard in ignored or (before is not None and known is None):
            continue
        if known is None or known.beat != beat:
            found = read_guard(store, guard, beat)
            record = found or GuardRecord(guard, beat, known.record.writer if known else "")
            if record.mode.waits(gate):
                after[guard] = _Seen(record, beat if found else _UNREAD, clock.monotonic())
        else:
            dead = now - known.since >= known.record.ttl * PATIENCE
            after[guard] = _Seen(known.record, beat, known.since, dead)
    return after


def _listed(store: RecordStore) -> dict[str, int]:
    """The guards of two listings in a row: one that is renewed while the store lists may be missing from one of them,
    its old beat gone already and its new one not yet listed.
    """
    first, second = newest_beats(store), newest_beats(store)
    return {guard: max(first.get(guard, 0), second.get(guard, 0)) for guard in {**first, **second}}
