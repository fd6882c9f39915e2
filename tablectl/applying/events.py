"""The events of a run for whoever watches it: one for each step of each table, and the progress of the run."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

PROGRESS = "progress"
"""The step of an event that reports progress."""


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


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a run, in jobs."""

    done: int
    running: int
    waiting: int
    """Started, and waiting without a worker."""
    queued: int
    """Not started."""


Notify = Callable[[RunEvent], None]


def no_progress(_event: RunEvent) -> None:
    """The ``Notify`` of a run without an observer."""


_WAITS: Mapping[str, str] = MappingProxyType(
    {
        "held": "for a lease",
        "draining": "for writers",
        "turn": "for a turn",
        "together": "for tables of their window",
        "again": "for another try",
        "quiet": "for a quiet moment",
    }
)
"""The steps that are waits, and what each waits for."""


class Tally:
    """A ``Notify`` that passes events on and counts what the tables of a run wait for. Thread-safe."""

    def __init__(self, notify: Notify) -> None:
        self._notify = notify
        self._waits: dict[str, str] = {}
        self._progress: Progress | None = None
        self._said = ""
        self._lock = threading.Lock()

    def __call__(self, event: RunEvent) -> None:
        """Pass an event on, followed by a progress event if the progress has changed."""
        self._notify(event)
        with self._lock:
            if event.step in _WAITS:
                self._waits[event.table] = _WAITS[event.step]
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
            words = progress_text(self._progress, Counter(self._waits.values())) if self._progress else ""
            if not words or words == self._said:
                return
            self._said = words
        self._notify(RunEvent("", PROGRESS, words))


def progress_text(progress: Progress, waits: Mapping[str, int]) -> str:
    """``12 of 40 tables done, 4 running, 3 waiting (2 for a lease, 1 for writers)``; empty for a single table."""
    total = progress.done + progress.running + progress.waiting + progress.queued
    if total < 2:
        return ""
    waiting = min(sum(waits.values()), total - progress.done)
    begun = progress.running + progress.waiting
    parts = [f"{progress.done} of {total} tables done"]
    if begun > waiting:
        parts.append(f"{begun - waiting} running")
    if waiting:
        parts.append(f"{waiting} waiting ({', '.join(f'{number} {what}' for what, number in sorted(waits.items()))})")
    return ", ".join(parts)
