"""The drivers of a run: which one runs each table, and when a table may leave one.

docs/many-tables.md, "Several drivers", says it to users.

A table stays on one driver. It leaves it only if that driver does not answer any more (the heartbeat says so) and none
of its statements there can still commit: the engine says that it does not run, or its bound has passed, as the next
apply after a kill would wait for. The table is then acquired again and continued from its log, as after a kill.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tablectl.applying.run_context import TableJob
from tablectl.applying.waits import GO, Answer, Awaited, End, Later, Wait
from tablectl.engine.interface import Engine
from tablectl.leases.lease_records import PATIENCE, RunningStatement
from tablectl.model.plan import TablePlan
from tablectl.model.run_report import RunOutcome, TableRun

_ALTER = 50_000_000
"""The bytes that a driver rewrites, roughly, in the time that a statement takes which rewrites nothing."""
_DRIVER = Awaited("driver", "for a server that does not answer")
_AGAIN = "run the same command again"
_OF_A_DEAD_DRIVER = frozenset({RunOutcome.FAILED, RunOutcome.UNKNOWN})
"""Outcomes that a driver which does not answer can cause. Such a table continues on another driver."""
_LOOK_EVERY = 5.0
"""Seconds between two checks of a driver that does not answer."""


@dataclass(frozen=True, slots=True)
class Driver:
    """One engine of a run."""

    name: str
    """Its address without credentials; empty if it is the only one."""
    engine: Engine


def paced_bytes(table: TablePlan) -> int | None:
    """The bytes that the statements of a table rewrite at most, each by itself; 0 if none rewrites, ``None`` if that is
    unknown. A limit on a plan counts rewrites of the same files once (``rewritten_bytes`` of ``planning.plan_file``).
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


class DriverWait(Wait):
    """Tables whose driver does not answer wait until nothing of theirs can commit there, and move to another one."""

    def __init__(self, job: TableJob, placement: Placement, key: str) -> None:
        self._job = job
        self._placement = placement
        self._key = key
        self._unsettled: dict[str, float] = {}
        """By the tag of a statement whose end is unknown: the moment from which it cannot commit any more."""
        self._over: frozenset[str] = frozenset()
        """The tags of statements of this run that cannot commit any more."""
        self._moves = 0
        self._notes: tuple[str, ...] = ()
        self._lost_in_attempt = False
        """Whether the driver was lost during an attempt, whose results are known."""

    @property
    def driver(self) -> Driver:
        """The driver on which the tables run now."""
        return self._placement.driver_of(self._key)

    def check(self, now: float) -> Answer:
        """Whether the driver answers; the tables then use its engine."""
        if not self._lost:
            self._use()
            return GO
        left, others = self.driver, self._placement.others(self._key)
        none = End(
            None if self._lost_in_attempt else RunOutcome.FAILED, "no server of `engine.remotes` answers", _AGAIN
        )
        if not any(each.engine.alive() for each in others):
            return none
        for tag, until in list(self._unsettled.items()):
            if now >= until or left.engine.interrupt(tag) is False:
                self._over |= {tag}
                del self._unsettled[tag]
        if self._unsettled:
            longest = max(self._unsettled.values()) - now
            words = f"{left.name} does not answer, and a statement sent to it may still commit for {longest:.0f} s"
            return Later(now + min(_LOOK_EVERY, longest), _DRIVER, words)
        self._moves += 1
        moved = self._placement.leave(self._key) if self._moves <= 2 * (1 + len(others)) else None
        if moved is None:
            return none
        note = f"moved from {left.name}, which does not answer any more, to {moved.name}"
        self._notes = (*self._notes, note)
        return Later(now, _DRIVER, note, driver=moved.name)

    def after(self, outcomes: Collection[RunOutcome], now: float) -> Later | None:
        """The wait for another driver, if this one was lost during an attempt with these outcomes."""
        self._lost_in_attempt = self._lost and not _OF_A_DEAD_DRIVER.isdisjoint(outcomes)
        return Later(now, _DRIVER, f"{self.driver.name} does not answer") if self._lost_in_attempt else None

    def note_running(self, running: Iterable[RunningStatement | None], now: float) -> None:
        """Note what the lease records of the tables named at the end of an attempt on this driver."""
        own = self.driver.engine.address
        self._unsettled = {
            each.tag: now + each.until * PATIENCE for each in running if each is not None and each.engine == own
        }

    def note(self, run: TableRun) -> TableRun:
        """The moves from one driver to another."""
        return replace(run, notes=(*self._notes, *run.notes)) if self._notes else run

    def done(self) -> None:
        """Note the end of the work on the tables."""
        self._placement.done(self._key)

    @property
    def _lost(self) -> bool:
        """Whether the driver does not answer, and the run has others."""
        return self._placement.several and not self.driver.engine.alive()

    def _use(self) -> None:
        """Let the next attempt run on the driver."""
        driver, others = self.driver, self._placement.others(self._key)
        self._job.window = replace(
            self._job.window,
            engine=driver.engine,
            driver=driver.name,
            others=tuple(each.engine for each in others),
            over=self._over,
            resumed=self._job.window.resumed or self._lost_in_attempt,
        )
