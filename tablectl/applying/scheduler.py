"""A queue of jobs and its workers: which job runs when, and when a run is over.

A job is a table, or several tables that share one window. A worker takes one step of a job at a time. A step ends with
the job's result, or with ``Later``: then the job waits without a worker, and its worker is free for another job. So a
job that waits, for a lease held by another run for example, delays no other job, even with a single worker.

The scheduler knows neither leases nor gates. It cannot deadlock by itself: a job that holds leases between two steps
waits for no worker (``Later.holds``), every other one holds nothing but its place in the queue, and a running step
waits for another job of the queue only through a turn (see ``statement_turns``), which is released without any further
wait.

Jobs that rewrite data take minutes or hours, others a second. So jobs without a rewrite start first, and while any of
them is left, rewrites leave one worker free. ``Pace`` says when the next rewrite may start.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from math import inf
from threading import Event as Flag
from typing import Generic, TypeVar

from tablectl.applying.events import Progress
from tablectl.applying.waits import GO, Awaited, Go, Later
from tablectl.leases.clock import Clock, StoppedError

HOUR = 3600.0
LIMIT = "`window.max_bytes_per_hour`"
PACED = Awaited("paced", f"for {LIMIT}")


class Pace:
    """The bytes that the jobs of a run rewrite, by the hour: when the next rewrite may start. Belongs to one thread.

    The bytes of a job count in full from its start until an hour after its end, so no hour contains more of them than
    the limit. A job that is tried again counts once for each attempt. A job that is larger than the limit starts once
    nothing counts any more, and runs alone.
    """

    def __init__(self, limit: int | None) -> None:
        """``limit`` is in bytes per hour; ``None`` for no limit."""
        self.limit = limit
        self._running: dict[str, int] = {}
        """The bytes of the running steps, by job."""
        self._rewritten: list[tuple[int, float]] = []
        """The bytes of each step that ended, and the moment until which they count."""

    def check(self, size: int, now: float) -> Go | Later:
        """Whether a job of ``size`` bytes may start now."""
        at = self.admits_at(size, now)
        return Later(at, PACED, f"waiting for {LIMIT}") if at > now else GO

    def admits_at(self, size: int, now: float) -> float:
        """The moment from which a job of ``size`` bytes may start: ``now`` at the earliest, and infinity if that
        depends on the end of a running job.
        """
        if self.limit is None or not size:
            return now
        self._rewritten = [each for each in self._rewritten if each[1] > now]  # in order of time
        left = [*self._rewritten, *((bytes_, inf) for bytes_ in self._running.values())]
        total, moment = sum(bytes_ for bytes_, _ in left), now
        for bytes_, until in left:
            if total + size <= self.limit:
                break
            total, moment = total - bytes_, until
        return moment

    def start(self, key: str, size: int) -> None:
        """Count a step of a job that starts now."""
        if self.limit is not None and size:
            self._running[key] = size

    def end(self, key: str, now: float, *, rewrote: bool) -> None:
        """Note the end of a step of a job. A step that rewrote nothing, such as a poll, does not count any more."""
        size = self._running.pop(key, 0)
        if size and rewrote:
            self._rewritten.append((size, now + HOUR))


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
    """Unique in its run. Jobs start in the order of their keys."""
    size: int = 0
    """The bytes that it rewrites; 0 for a job that rewrites nothing."""


@dataclass(frozen=True, slots=True)
class Rules(Generic[T]):
    """The callbacks of a scheduler."""

    left_out: Callable[[QueuedJob, Later | None, str], T]
    """The result of a job that ends before its next step, given what it waits for and the reason. It waits for nothing
    if it was not started, or is next when a worker is free."""
    on_wait: Callable[[QueuedJob, Later, float], None] = lambda _job, _later, _since: None
    """Called repeatedly for a waiting job, with the moment at which it began to wait, on the clock's ``monotonic``."""
    on_progress: Callable[[Progress], None] = lambda _progress: None
    """Called whenever the numbers have changed."""
    rewrote: Callable[[QueuedJob], bool] = lambda job: job.size > 0
    """Whether the last step of a job rewrote data."""


_NEVER = float("-inf")
STOPPED = "stopped before its turn"


@dataclass(frozen=True, slots=True)
class _Waiting:
    job: QueuedJob
    at: float = 0.0
    """When its next step is due, on the clock's ``monotonic``."""
    later: Later | None = None
    """The answer of its last step; ``None`` before the first one."""
    since: float = 0.0
    """When its current wait began."""
    told: float = _NEVER
    """When ``on_wait`` was last called for it."""
    alone: bool = False
    """Whether no other job was worth waiting for when the last step was taken."""
    paced: Later | None = None
    """Set while only the pace of rewrites holds it back."""

    @property
    def awaits(self) -> Later | None:
        """What it waits for; ``None`` if it was not started."""
        return self.paced or self.later

    @property
    def idles(self) -> bool:
        """Whether the run does not have to wait for it."""
        return self.later is not None and self.later.ends_when_idle

    @property
    def holds(self) -> bool:
        """Whether it holds leases."""
        return self.later is not None and self.later.holds


@dataclass(slots=True)
class _Load:
    """What the workers do."""

    busy: int
    """Running steps."""
    rewriting: int
    """Running steps of jobs that rewrite data."""
    short: int
    """Unfinished jobs that rewrite nothing."""

    def free_for(self, job: QueuedJob, workers: int) -> bool:
        """Whether a worker is free for a job."""
        if self.busy >= workers:
            return False
        kept_free = 1 if workers > 1 and self.short else 0
        return not job.size or self.rewriting < workers - kept_free


class Scheduler(Generic[T]):
    """Runs jobs to their results. All methods belong to the thread that calls ``run``; steps run in workers."""

    def __init__(self, clock: Clock, workers: int, stop: Flag, rules: Rules[T], pace: Pace | None = None) -> None:
        """``workers`` is the number of concurrent steps. ``stop`` ends the run: no further step starts,
        and running steps are waited for. ``pace`` holds back jobs that rewrite data; by default nothing does.
        """
        self._clock = clock
        self._workers = workers
        self._stop = stop
        self._rules = rules
        self._pace = pace or Pace(None)
        self._waiting: dict[str, _Waiting] = {}
        self._running: dict[Future[T | Later], _Waiting] = {}
        self._results: dict[str, T] = {}
        self._paced: defaultdict[str, float] = defaultdict(float)
        self._told: Progress | None = None

    def run(self, jobs: Iterable[QueuedJob], step: Callable[[QueuedJob], T | Later]) -> Mapping[str, T]:
        """The result of every job by key. ``step`` is called in a worker, never concurrently for the same job.

        Whatever ``step`` or a callback raises ends the run and is raised, as is what a signal handler raises: ``stop``
        is set, and the running steps finish first.
        """
        self._waiting = {job.key: _Waiting(job) for job in jobs}
        # Threads are made when they are needed: one for each worker, and more only for jobs that hold leases.
        threads = self._workers + len(self._waiting)
        with ThreadPoolExecutor(threads, thread_name_prefix="tablectl-table") as pool:
            try:
                while self._waiting or self._running:
                    if self._stop.is_set():
                        # End all jobs that have no running step. No step starts any more; running steps finish.
                        for key, each in self._waiting.items():
                            self._results[key] = self._rules.left_out(each.job, each.awaits, STOPPED)
                        self._waiting.clear()
                    else:
                        self._end_idle()
                        self._start(pool, step)
                    self._tell()
                    if self._running:
                        self._collect()
                    elif self._waiting:
                        # Nothing runs and nothing is due. Only here does the main thread sleep on the clock.
                        self._tell_waits()
                        try:
                            self._clock.sleep(self._until_next(TICK))
                        except StoppedError:
                            self._stop.set()
                self._tell()
            except BaseException:
                self._stop.set()
                raise
        return self._results

    def paced_for(self, key: str) -> float:
        """Seconds for which only the pace of rewrites held back a job that then went on."""
        return self._paced[key]

    def _end_idle(self) -> None:
        """End the jobs that need not be waited for, if only such jobs were left when their last step was taken."""
        if self._running or not all(each.idles and each.alone for each in self._waiting.values()):
            return
        for key, each in self._waiting.items():
            self._results[key] = self._rules.left_out(each.job, each.later, "")
        self._waiting.clear()

    def _start(self, pool: ThreadPoolExecutor, step: Callable[[QueuedJob], T | Later]) -> None:
        # A job that ends when all others have ended is polled once more at that point, whenever its next step is due.
        alone = all(each.idles for each in (*self._waiting.values(), *self._running.values()))
        load, now, paced = self._load(), self._clock.monotonic(), None
        for each in sorted(self._waiting.values(), key=_order):
            due = each.at - now < _NOW or (alone and not each.alone)
            if not due or not (each.holds or load.free_for(each.job, self._workers)):
                continue
            if each.job.size and not each.holds:
                # No rewrite overtakes the one that is next: else a large one could wait for all smaller ones.
                answer = self._pace.check(each.job.size, now)
                paced = paced if isinstance(answer, Go) or (paced and paced.at > answer.at) else answer
                if paced is not None:
                    begins = (
                        each if each.paced is not None else replace(each, since=self._clock.monotonic(), told=_NEVER)
                    )
                    self._waiting[each.job.key] = replace(begins, paced=paced)
                    continue
            if not each.holds:
                load.busy += 1
                load.rewriting += each.job.size > 0
            if each.paced is not None:
                self._paced[each.job.key] += now - each.since
            del self._waiting[each.job.key]
            self._pace.start(each.job.key, each.job.size)
            self._running[pool.submit(step, each.job)] = replace(each, alone=alone, paced=None)

    def _load(self) -> _Load:
        running = [each.job for each in self._running.values() if not each.holds]
        jobs = [*running, *(each.job for each in self._waiting.values())]
        return _Load(
            busy=len(running),
            rewriting=sum(job.size > 0 for job in running),
            short=sum(not job.size for job in jobs),
        )

    def _collect(self) -> None:
        done, _ = wait(self._running, timeout=self._until_next(_LONGEST_WAIT), return_when=FIRST_COMPLETED)
        for future in done:
            each = self._running.pop(future)
            result = future.result()
            self._pace.end(each.job.key, self._clock.monotonic(), rewrote=self._rules.rewrote(each.job))
            if isinstance(result, Later):
                if each.later is not None and each.later.words == result.words:
                    self._waiting[each.job.key] = replace(each, at=result.at, later=result)
                else:
                    self._waiting[each.job.key] = replace(
                        each, at=result.at, later=result, since=self._clock.monotonic(), told=_NEVER, paced=None
                    )
            else:
                self._results[each.job.key] = result
        self._tell()
        self._tell_waits()

    def _until_next(self, most: float) -> float:
        """Seconds until a job with a free worker is due, at most ``most``."""
        now, load = self._clock.monotonic(), self._load()
        coming = (
            max(each.at, each.paced.at if each.paced else 0.0) - now
            for each in self._waiting.values()
            if each.holds or load.free_for(each.job, self._workers)
        )
        return max(_NOW, min(most, *coming, most))

    def _tell(self) -> None:
        begun = sum(each.awaits is not None for each in self._waiting.values())
        told = Progress(len(self._results), len(self._running), begun, len(self._waiting) - begun)
        if told != self._told:
            self._told = told
            self._rules.on_progress(told)

    def _tell_waits(self) -> None:
        now = self._clock.monotonic()
        for key, each in self._waiting.items():
            if each.awaits is not None and now - each.told > TICK - _NOW:
                self._waiting[key] = replace(each, told=now)
                self._rules.on_wait(each.job, each.awaits, each.since)


def _order(each: _Waiting) -> tuple[bool, float, int, str]:
    """Jobs that rewrite nothing first, of the others the largest."""
    return each.job.size > 0, each.at, -each.job.size, each.job.key
