"""The events of a run for whoever watches it: one for each step of each table, and the progress of the run."""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

PROGRESS = "progress"
"""The step of an event that reports progress."""
DONE = "done"
"""The step of the last event of a table; its words are the outcome."""
RELEASED = "released"
"""The step of an event that ends an attempt at a table."""


_ENOUGH = 3
"""Tables that must be done before the time left is estimated."""
_SOON = 5.0
"""Seconds before the time left is estimated."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How far a run is."""

    done: int
    total: int
    running: int
    waiting: int
    waits: tuple[tuple[str, int], ...]
    """What is waited for and for how long at most, ``for a lease up to 75 s``, and by how many tables."""


@dataclass(frozen=True, slots=True)
class RunEvent:
    """A step of a run on one table. Tests also use events to stop a run at a step."""

    table: str
    """The table's name; empty for an event of the whole run."""
    step: str
    """For machines: ``leased``, ``fresh``, ``gate closed``, ``before <id>``, ``after <id>``, ``verify``, …"""
    words: str = ""
    """For people; empty if there is nothing to show."""
    waited: float | None = None
    """Seconds waited so far. Events of a wait repeat while the wait lasts."""
    most: float = 0.0
    """Of a wait: the seconds after which it ends at the latest; 0 if unknown."""
    awaited: str = ""
    """Of a wait: what it waits for, ``for a lease``."""
    standing: Standing | None = None
    """Of a progress event: the numbers."""
    left: float | None = None
    """Of a progress event: about how many seconds are left, if there is something to tell it from."""


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a run, in jobs."""

    done: int
    running: int
    waiting: int
    """Waiting without a worker: started, or held back by the pace of rewrites."""
    queued: int
    """Not started, and next when a worker is free."""


Notify = Callable[[RunEvent], None]


def no_progress(_event: RunEvent) -> None:
    """The ``Notify`` of a run without an observer."""


class Tally:
    """A ``Notify`` that passes events on and counts what the tables of a run wait for. Thread-safe.

    ``now`` is the clock's ``monotonic``.
    """

    def __init__(self, notify: Notify, now: Callable[[], float]) -> None:
        self._notify = notify
        self._now = now
        self._began = now()
        self._waits: dict[str, str] = {}
        self._progress: Progress | None = None
        self._said: Standing | None = None
        self._lock = threading.Lock()

    def __call__(self, event: RunEvent) -> None:
        """Pass an event on, followed by a progress event if the progress has changed."""
        self._notify(event)
        with self._lock:
            if event.awaited:
                most = f" up to {most_text(event.most)}" if event.most else ""
                self._waits[event.table] = event.awaited + most
            else:
                self._waits.pop(event.table, None)
        self._say()

    def tell(self, progress: Progress) -> None:
        """Record the scheduler's progress, and emit an event if it has changed."""
        with self._lock:
            self._progress = progress
        self._say()

    def _say(self) -> None:
        with self._lock:
            standing = standing_of(self._progress, Counter(self._waits.values())) if self._progress else None
            if standing is None or standing == self._said:
                return
            self._said = standing
            left = seconds_left(standing, self._now() - self._began)
        self._notify(RunEvent("", PROGRESS, progress_text(standing, left), standing=standing, left=left))


def standing_of(progress: Progress, waits: Mapping[str, int]) -> Standing | None:
    """How far a run is; ``None`` for a single table."""
    total = progress.done + progress.running + progress.waiting + progress.queued
    if total < 2:
        return None
    waiting = min(sum(waits.values()), total - progress.done)
    begun = progress.running + progress.waiting
    return Standing(progress.done, total, max(begun - waiting, 0), waiting, tuple(sorted(waits.items())))


def seconds_left(standing: Standing, elapsed: float) -> float | None:
    """The time left if the other tables take as long as those that are done; ``None`` if too few are done to tell, or
    if every table that has begun waits.
    """
    stuck = standing.waiting and not standing.running
    if stuck or standing.done < _ENOUGH or elapsed < _SOON or standing.done == standing.total:
        return None
    return elapsed / standing.done * (standing.total - standing.done)


def progress_text(standing: Standing, left: float | None) -> str:
    """``12 of 40 tables done, 4 running, 3 waiting (2 for a lease, 1 for writers), about 5 min left``."""
    parts = [f"{standing.done:,} of {standing.total:,} tables done"]
    if standing.running:
        parts.append(f"{standing.running} running")
    if standing.waiting:
        parts.append(f"{standing.waiting} waiting ({', '.join(f'{number} {what}' for what, number in standing.waits)})")
    return ", ".join([*parts, *([left_text(left)] if left is not None else [])])


def most_text(seconds: float) -> str:
    """A duration that nothing exceeds: ``75 s``, ``8 min``."""
    return f"{math.ceil(seconds / 60)} min" if seconds > 120 else f"{math.ceil(seconds)} s"


def left_text(seconds: float) -> str:
    """``about 5 min left``."""
    minutes = math.ceil(seconds / 60)
    if minutes <= 1:
        return "less than a minute left"
    return f"about {minutes} min left" if minutes < 120 else f"about {minutes / 60:.0f} h left"
