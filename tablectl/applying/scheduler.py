"""A queue of jobs and the workers that take them: which job runs when, and when a run is over.

A job is a table, or tables that share one window. A worker takes one step of a job at a time. A step ends with the
job's result, or with ``Later``: then the job waits outside the workers, and its worker is free for another one. So what
one job waits for (a lease that somebody else holds, say) delays no other job, even with a single worker.

The scheduler knows neither leases nor gates. It cannot deadlock by itself: the only thing that a job holds between two
steps is its place in the queue, and a step that is under way waits for no other job of the queue but through a turn
(see ``turns``), which is given back without any further wait.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from threading import Event as Flag
from typing import Generic, TypeVar

from tablectl.applying.clock import Clock, StoppedError
from tablectl.applying.events import Progress

TICK = 1.0
"""Seconds after which a scheduler that waits tells again what it waits for."""
_LONGEST_WAIT = 0.5
"""Seconds for which running steps are waited for at a time: bounded, so that the main thread gets its signals."""
_NOW = 0.001
"""Seconds that count as none: sums of floating-point numbers miss a moment by less."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Job:
    """What is known of a job before it begins."""

    key: str
    """Unique in its run; jobs that may begin at the same moment begin in the order of their keys."""
    start: float = 0.0
    """The moment before which it does not begin, on the clock's ``monotonic``."""
    driver: str = ""
    """The driver that runs its statements. Each driver has workers of its own."""


@dataclass(frozen=True, slots=True)
class Later(Generic[T]):
    """The end of a step that is not the end of its job."""

    at: float
    """The moment of the next step, on the clock's ``monotonic``."""
    result: T
    """What comes of the job if the run is stopped before."""
    ends_when_idle: bool = False
    """Whether it ends with ``result`` as soon as no other job can still be waited for."""
    words: str = ""
    """What it waits for, for people."""
    driver: str | None = None
    """The driver that it moves to; ``None`` to stay. The step that says so has proof that the old one is dead."""


@dataclass(frozen=True, slots=True)
class Rules(Generic[T]):
    """What a scheduler asks its caller."""

    left_out: Callable[[Job, str], T]
    """The result of a job that was not begun, and why not."""
    halts: Callable[[Job, T], str] = lambda _job, _result: ""
    """Asked of each result: a reason for which no further job begins, or an empty text."""
    on_wait: Callable[[Job, Later[T], float], None] = lambda _job, _later, _since: None
    """Told again and again of a job that waits, and since when it does, on the clock's ``monotonic``."""
    on_progress: Callable[[Progress], None] = lambda _progress: None
    """Told whenever the numbers have changed."""


_NEVER = float("-inf")
STOPPED = "stopped before its turn"


@dataclass(frozen=True, slots=True)
class _Waiting(Generic[T]):
    job: Job
    at: float
    later: Later[T] | None = None
    """``None`` before the first step."""
    since: float = 0.0
    """When it began to wait for what it waits for now."""
    told: float = _NEVER
    """When ``on_wait`` was told of it last."""
    alone: bool = False
    """Whether the last step was taken when no other job could be waited for."""

    @property
    def idles(self) -> bool:
        """Whether nobody has to wait for it."""
        return self.later is not None and self.later.ends_when_idle


class Scheduler(Generic[T]):
    """Runs jobs to their results. All its methods belong to the thread that calls ``run``; steps run in workers."""

    def __init__(self, clock: Clock, workers: int, stop: Flag, rules: Rules[T]) -> None:
        """``workers`` is the number of steps at a time on each driver. ``stop`` ends the run: no further step starts,
        and those under way are waited for.
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

    def run(self, jobs: Iterable[Job], step: Callable[[Job], T | Later[T]]) -> Mapping[str, T]:
        """The result of every job, by its key. ``step`` is called in a worker, never twice at a time for one job.

        What ``step`` or a rule raises ends the run and is raised, as is what a signal raises: ``stop`` is set, and the
        steps under way come to their ends first.
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

    def _advance(self, pool: ThreadPoolExecutor, step: Callable[[Job], T | Later[T]]) -> None:
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
        """No step starts any more; those under way come to their ends."""
        for key, each in list(self._waiting.items()):
            if each.later is None:
                self._results[key] = self._rules.left_out(each.job, self._reason or STOPPED)
            else:
                self._results[key] = each.later.result
            del self._waiting[key]

    def _end_idle(self) -> None:
        """Ends the jobs that nobody has to wait for, if their last step was taken when only such ones were left."""
        if self._running or not all(each.idles and each.alone for each in self._waiting.values()):
            return
        for key, each in self._waiting.items():
            assert each.later is not None
            self._results[key] = each.later.result
        self._waiting.clear()

    def _start(self, pool: ThreadPoolExecutor, step: Callable[[Job], T | Later[T]]) -> None:
        busy = Counter(each.job.driver for each in self._running.values())
        # A job that ends when all others have ended is asked once more then, whenever its next step is due.
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
        """Seconds until a job is due that has a free worker, at most so many."""
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
