"""The drivers of a run: which one runs each table, and when a table may leave one (docs/window.md, "Several drivers").

A table stays on one driver. It leaves it only if that driver does not answer any more (the heartbeat says so) and none
of its statements there can still commit: the engine says that it does not run, or its bound has passed, as the next
apply after a kill would wait for. The table is then acquired again and continued from its log, as after a kill.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tablectl.engine.port import Engine
from tablectl.frozen import frozen
from tablectl.leases.lease_records import PATIENCE, RunningStatement
from tablectl.model.plan import TablePlan

_ALTER = 50_000_000
"""The bytes that a driver rewrites, roughly, in the time that a statement takes which rewrites nothing."""
_LOOK_EVERY = 5.0
"""Seconds between two checks of a driver that does not answer."""


@frozen
class Driver:
    """One engine of a run."""

    name: str
    """Its address without credentials; empty if it is the only one."""
    engine: Engine


def paced_bytes(table: TablePlan) -> int | None:
    """The bytes that the statements of a table rewrite at most, each by itself; 0 if none rewrites, ``None`` if that is
    unknown. A limit on a plan counts rewrites of the same files once (``planning.plan_limits``).
    """
    rewrites = [each.rewrite for each in table.statements if each.rewrite is not None]
    sizes = [each.bytes_at_most for each in rewrites if each.bytes_at_most is not None]
    return sum(sizes) if len(sizes) == len(rewrites) else None


def expected_work(tables: Iterable[TablePlan]) -> int:
    """The work on some tables, in bytes: those that are rewritten, and an equivalent for each statement."""
    return sum((paced_bytes(table) or 0) + _ALTER * max(1, len(table.statements)) for table in tables)


class Placement:
    """Which driver runs each job of a run. Thread-safe."""

    def __init__(self, drivers: Sequence[Driver], work: Mapping[str, int]) -> None:
        """``work`` is the expected work of each job by key. The largest jobs are placed first, each on the driver with
        the least work.
        """
        self._drivers = {each.name: each for each in drivers}
        self._work = dict(work)
        self._load: Counter[str] = Counter(dict.fromkeys(self._drivers, 0))
        self._of: dict[str, str] = {}
        self._lock = threading.Lock()
        for key in sorted(work, key=lambda key: (-work[key], key)):
            self._put(key, self._drivers)

    @property
    def several(self) -> bool:
        """Whether the run has more than one driver."""
        return len(self._drivers) > 1

    def driver_of(self, key: str) -> Driver:
        """The driver of a job."""
        with self._lock:
            return self._drivers[self._of[key]]

    def others(self, key: str) -> tuple[Driver, ...]:
        """All drivers except that of a job."""
        own = self.driver_of(key).name
        return tuple(each for name, each in self._drivers.items() if name != own)

    def leave(self, key: str) -> Driver | None:
        """Move a job to the driver with the least work that answers; ``None`` if no other one does."""
        living = [each.name for each in self.others(key) if each.engine.alive()]
        with self._lock:
            if not living:
                return None
            self._load[self._of[key]] -= self._work[key]
            return self._drivers[self._put(key, living)]

    def done(self, key: str) -> None:
        """Note the end of a job."""
        with self._lock:
            self._load[self._of[key]] -= self._work[key]

    def _put(self, key: str, names: Iterable[str]) -> str:
        name = min(names, key=lambda name: (self._load[name], name))
        self._of[key] = name
        self._load[name] += self._work[key]
        return name


@frozen
class Stay:
    """The driver answers, or is the only one."""


@frozen
class WaitForEnd:
    """The driver does not answer, and a statement that was sent to it may still commit."""

    at: float
    """The moment of the next check, on the clock's ``monotonic``."""
    words: str


@frozen
class MoveTo:
    """The driver is dead, and nothing of the job runs there."""

    driver: Driver


@frozen
class NoDriver:
    """The driver does not answer, and no other one does."""


@dataclass(slots=True)
class JobDriver:
    """The driver of one job, and what may still run on it. One step of the job at a time uses it."""

    placement: Placement
    key: str
    over: frozenset[str] = frozenset()
    """The tags of statements of this run that cannot commit any more."""
    _unsettled: dict[str, float] = field(default_factory=dict)
    """By the tag of a statement whose end is unknown: the moment from which it cannot commit any more."""
    _moves: int = 0

    @property
    def driver(self) -> Driver:
        """The driver on which the job runs now."""
        return self.placement.driver_of(self.key)

    @property
    def lost(self) -> bool:
        """Whether the driver does not answer, and the run has others."""
        return self.placement.several and not self.driver.engine.alive()

    def note_running(self, running: Iterable[RunningStatement | None], now: float) -> None:
        """Note what the lease records of the job named at the end of a session on this driver."""
        own = self.driver.engine.address
        self._unsettled = {
            each.tag: now + each.until * PATIENCE for each in running if each is not None and each.engine == own
        }

    def decide(self, now: float) -> Stay | WaitForEnd | MoveTo | NoDriver:
        """What to do before the next step."""
        if not self.lost:
            return Stay()
        left = self.driver
        if not any(each.engine.alive() for each in self.placement.others(self.key)):
            return NoDriver()
        for tag, until in list(self._unsettled.items()):
            if now >= until or left.engine.interrupt(tag) is False:
                self.over |= {tag}
                del self._unsettled[tag]
        if self._unsettled:
            longest = max(self._unsettled.values()) - now
            words = f"{left.name} does not answer, and a statement sent to it may still commit for {longest:.0f} s"
            return WaitForEnd(now + min(_LOOK_EVERY, longest), words)
        self._moves += 1
        moved = (
            self.placement.leave(self.key) if self._moves <= 2 * (1 + len(self.placement.others(self.key))) else None
        )
        return MoveTo(moved) if moved else NoDriver()
