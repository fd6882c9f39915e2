"""A queue of jobs and its workers: which job runs when, and when a run is over.

A job is a table, or several tables that share one window. A worker takes one step of a job at a time. A step ends with
the job's result, or with ``Later``: then the job waits without a worker, and its worker is free for another job. So a
job that waits, for a lease held by another run for example, delays no other job, even with a single worker.

The scheduler knows neither leases nor gates. It cannot deadlock by itself: between two steps a job holds nothing but
its place in the queue, and a running step waits for another job of the queue only through a turn (see ``turns``), which
is released without any further wait.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from threading import Event as Flag
from typing import Generic, TypeVar

from tablectl.applying.events import Progress
from tablectl.leases.clock import Clock, StoppedError

TICK = 1.0
"""Seconds after which a scheduler that waits reports its waits again."""
_LONGEST_WAIT = 0.5
"""Seconds to wait for running steps at a time. Bounded, so that the main thread gets its signals."""
_NOW = 0.001
"""Seconds that count as zero: sums of floating-point numbers miss a moment by less."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class QueuedJob:
    """A job before it starts."""

    key: str
    """Unique in its run. Jobs that may start at the same moment start in the order of their keys."""
    start: float = 0.0
    """The earliest moment at which it starts, on the clock's ``monotonic``."""
    driver: str = ""
    """The driver that runs its statements. Each driver has its own workers."""


@dataclass(frozen=True, slots=True)
class Later(Generic[T]):
    """The end of a step that does not end its job."""

    at: float
    """The moment of the next step, on the clock's ``monotonic``."""
    result: T
    """The result of the job if the run is stopped before the next step."""
    ends_when_idle: bool = False
    """Whether the job ends with ``result`` once no other job is worth waiting for."""
    words: str = ""
    """What it waits for, for people."""
    driver: str | None = None
    """The driver that the job moves to; ``None`` to stay. The step that requests a move has proof that the old driver
    is dead."""


@dataclass(frozen=True, slots=True)
class Rules(Generic[T]):
    """The callbacks of a scheduler."""

    left_out: Callable[[QueuedJob, str], T]
    """The result of a job that was not started, given the reason."""
    halts: Callable[[QueuedJob, T], str] = lambda _job, _result: ""
    """Called with each result: returns a reason for which no further job starts, or an empty string."""
    on_wait: Callable[[QueuedJob, Later[T], float], None] = lambda _job, _later, _since: None
    """Called repeatedly for a waiting job, with the moment at which it began to wait, on the clock's ``monotonic``."""
    on_progress: Callable[[Progress], None] = lambda _progress: None
    """Called whenever the numbers have changed."""


_NEVER = float("-inf")
STOPPED = "stopped before its turn"


@dataclass(frozen=True, slots=True)
class _Waiting(Generic[T]):
    job: QueuedJob
    at: float
    later: Later[T] | None = None
    """``None`` before the first step."""
    since: float = 0.0
    """When its current wait began."""
    told: float = _NEVER
    """When ``on_wait`` was last called for it."""
    alone: bool = False
    """Whether no other job was worth waiting for when the last step was taken."""

    @property
    def idles(self) -> bool:
        """Whether the run does not have to wait for it."""
        return self.later is not None and self.later.ends_when_idle


class Scheduler(Generic[T]):
    """Runs jobs to their results. All methods belong to the thread that calls ``run``; steps run in workers."""

    def __init__(self, clock: Clock, workers: int, stop: Flag, rules: Rules[T]) -> None:
        """``workers`` is the number of concurrent steps on each driver. ``stop`` ends the run: no further step starts,
        and running steps are waited for.
        """
        self._clock = clock
        self._workers = workers
        self._stop = stop
        self._rules = rules
        self._waiting: dict[str, _Waiting[T]] = {}
        self._running: dict[Future[T | Later[T]], _Waiting[T]] = {}
        self._results: dict[str, T] = {}
        self._reason = ""
        self._told: Progress | None = None

    def run(self, jobs: Iterable[QueuedJob], step: Callable[[QueuedJob], T | Later[T]]) -> Mapping[str, T]:
        """The result of every job by key. ``step`` is called in a worker, never concurrently for the same job.

        Whatever ``step`` or a callback raises ends the run and is raised, as is what a signal handler raises: ``stop``
        is set, and the running steps finish first.
        """
        self._waiting = {job.key: _Waiting(job, job.start) for job in jobs}
        drivers = len({each.job.driver for each in self._waiting.values()}) or 1
        with ThreadPoolExecutor(self._workers * drivers, thread_name_prefix="tablectl-table") as pool:
            try:
                while self._waiting or self._running:
                    self._advance(pool, step)
                self._tell()
            except BaseException:
                self._stop.set()
                raise
        return self._results

    def _advance(self, pool: ThreadPoolExecutor, step: Callable[[QueuedJob], T | Later[T]]) -> None:
        if self._stop.is_set() or self._reason:
            self._leave_out()
        else:
            self._end_idle()
            self._start(pool, step)
        self._tell()
        if self._running:
            self._collect()
        elif self._waiting:
            self._pause()

    def _leave_out(self) -> None:
        """End all jobs that have no running step. No step starts any more; running steps finish."""
        for key, each in list(self._waiting.items()):
            if each.later is None:
                self._results[key] = self._rules.left_out(each.job, self._reason or STOPPED)
            else:
                self._results[key] = each.later.result
            del self._waiting[key]

    def _end_idle(self) -> None:
        """End the jobs that need not be waited for, if only such jobs were left when their last step was taken."""
        if self._running or not all(each.idles and each.alone for each in self._waiting.values()):
            return
        for key, each in self._waiting.items():
            assert each.later is not None
            self._results[key] = each.later.result
        self._waiting.clear()

    def _start(self, pool: ThreadPoolExecutor, step: Callable[[QueuedJob], T | Later[T]]) -> None:
        busy = Counter(each.job.driver for each in self._running.values())
        # A job that ends when all others have ended is polled once more at that point, whenever its next step is due.
        alone = all(each.idles for each in (*self._waiting.values(), *self._running.values()))
        now = self._clock.monotonic()
        for each in sorted(self._waiting.values(), key=lambda each: (each.at, each.job.key)):
            due = each.at - now < _NOW or (alone and not each.alone)
            if due and busy[each.job.driver] < self._workers:
                busy[each.job.driver] += 1
                del self._waiting[each.job.key]
                self._running[pool.submit(step, each.job)] = replace(each, alone=alone)

    def _collect(self) -> None:
        done, _ = wait(self._running, timeout=self._until_next(_LONGEST_WAIT), return_when=FIRST_COMPLETED)
        for future in done:
            each = self._running.pop(future)
            result = future.result()
            if isinstance(result, Later):
                self._waiting[each.job.key] = self._resumed(each, result)
            else:
                self._results[each.job.key] = result
                self._reason = self._reason or self._rules.halts(each.job, result)
        self._tell()
        self._tell_waits()

    def _resumed(self, each: _Waiting[T], later: Later[T]) -> _Waiting[T]:
        same = each.later is not None and each.later.words == later.words
        job = each.job if later.driver is None else replace(each.job, driver=later.driver)
        if same:
            return replace(each, job=job, at=later.at, later=later)
        return replace(each, job=job, at=later.at, later=later, since=self._clock.monotonic(), told=_NEVER)

    def _pause(self) -> None:
        """Nothing runs and nothing is due. Only here does the main thread sleep on the clock."""
        self._tell_waits()
        try:
            self._clock.sleep(self._until_next(TICK))
        except StoppedError:
            self._stop.set()

    def _until_next(self, most: float) -> float:
        """Seconds until a job with a free worker is due, at most ``most``."""
        now, busy = self._clock.monotonic(), Counter(each.job.driver for each in self._running.values())
        coming = (each.at - now for each in self._waiting.values() if busy[each.job.driver] < self._workers)
        return max(_NOW, min(most, *coming, most))

    def _tell(self) -> None:
        begun = sum(each.later is not None for each in self._waiting.values())
        told = Progress(len(self._results), len(self._running), begun, len(self._waiting) - begun)
        if told != self._told:
            self._told = told
            self._rules.on_progress(told)

    def _tell_waits(self) -> None:
        now = self._clock.monotonic()
        for key, each in self._waiting.items():
            if each.later is not None and now - each.told > TICK - _NOW:
                self._waiting[key] = replace(each, told=now)
                self._rules.on_wait(each.job, each.later, each.since)
