"""The scheduler alone: jobs without leases, gates or tables."""

from __future__ import annotations

import concurrent.futures
import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablectl.applying import scheduler as scheduler_module
from tablectl.applying.events import Progress
from tablectl.applying.scheduler import QueuedJob, Rules, Scheduler
from tablectl.applying.waits import Awaited, Later
from tablectl.leases.clock import StoppedError
from tests.leases.lease_fakes import FakeClock

WAITS = Awaited("asleep", "for the morning")


@dataclass
class Bench:
    """A scheduler, its clock, and what its caller learns."""

    workers: int = 1
    clock: FakeClock = field(default_factory=lambda: FakeClock(start=0))
    stop: threading.Event = field(default_factory=threading.Event)
    told: list[Progress] = field(default_factory=list)
    waits: list[tuple[str, str, float]] = field(default_factory=list)

    def run(self, jobs: list[QueuedJob], step: object) -> dict[str, str]:
        rules: Rules[str] = Rules(
            left_out=lambda _job, later, reason: later.words if later else f"left out: {reason}",
            on_wait=lambda job, later, since: self.waits.append((job.key, later.words, since)),
            on_progress=self.told.append,
        )
        return dict(Scheduler(self.clock, self.workers, self.stop, rules).run(jobs, step))  # type: ignore[arg-type]


def jobs(keys: str) -> list[QueuedJob]:
    return [QueuedJob(key) for key in keys]


# Order


def test_one_worker_runs_jobs_in_the_order_of_their_keys() -> None:
    ran: list[str] = []

    def step(job: QueuedJob) -> str:
        ran.append(job.key)
        return job.key.upper()

    assert Bench().run(jobs("cab"), step) == {"a": "A", "b": "B", "c": "C"}
    assert ran == ["a", "b", "c"]


def test_a_job_goes_on_at_its_own_moment_and_holds_up_no_other() -> None:
    bench, due = Bench(), {"a": 3600.0, "b": 0.0, "c": 60.5}
    went_on: dict[str, float] = {}

    def step(job: QueuedJob) -> str | Later:
        if bench.clock.now < due[job.key]:
            return Later(due[job.key], WAITS)
        went_on[job.key] = bench.clock.now
        return "done"

    bench.run(jobs("abc"), step)
    assert went_on == {"b": 0.0, "c": 60.5, "a": 3600.0}


# Waiting


def test_a_job_that_waits_leaves_its_worker_to_the_others() -> None:
    bench = Bench(workers=1)
    ran: list[tuple[str, float]] = []

    def step(job: QueuedJob) -> str | Later:
        ran.append((job.key, bench.clock.now))
        if job.key == "a" and bench.clock.now < 30:
            return Later(bench.clock.now + 30, WAITS, "asleep")
        return "done"

    assert bench.run(jobs("abc"), step) == dict.fromkeys("abc", "done")
    assert ran == [("a", 0), ("b", 0), ("c", 0), ("a", 30)]
    assert (bench.waits[0], len(bench.waits)) == (("a", "asleep", 0.0), 30)


def test_a_job_that_no_one_has_to_wait_for_is_asked_once_more_at_the_end() -> None:
    bench = Bench(workers=1)
    asked: list[float] = []

    def step(job: QueuedJob) -> str | Later:
        if job.key == "b":
            bench.clock.now += 100
            return "done"
        asked.append(bench.clock.now)
        return Later(bench.clock.now + 5000, WAITS, "held", ends_when_idle=True)

    assert bench.run(jobs("ab"), step) == {"a": "held", "b": "done"}
    assert asked == [0, 100]


def test_and_it_goes_on_where_that_changed_something() -> None:
    free = [False]

    def step(job: QueuedJob) -> str | Later:
        if job.key == "b":
            free[0] = True
            return "done"
        return "done" if free[0] else Later(1e9, WAITS, "held", ends_when_idle=True)

    assert Bench().run(jobs("ab"), step) == {"a": "done", "b": "done"}


# Ends


def test_a_stop_leaves_out_what_was_not_begun_and_keeps_what_waits_as_it_is() -> None:
    bench = Bench(workers=1)

    def step(job: QueuedJob) -> str | Later:
        if job.key == "a":
            return Later(99.0, WAITS, "held")
        bench.stop.set()
        return "done"

    assert bench.run(jobs("abc"), step) == {"a": "held", "b": "done", "c": "left out: stopped before its turn"}


def test_an_interrupted_clock_is_a_stop() -> None:
    bench = Bench()

    def stop() -> None:
        raise StoppedError("stopped")

    bench.clock.on_sleep = stop
    assert bench.run(jobs("a"), lambda _job: Later(5.0, WAITS, "held")) == {"a": "held"}
    assert bench.stop.is_set()


def test_what_a_step_raises_waits_for_the_others_and_is_raised() -> None:
    bench, ended = Bench(workers=2), threading.Event()

    def step(job: QueuedJob) -> str:
        if job.key == "a":
            raise ZeroDivisionError
        assert bench.stop.wait(30)
        ended.set()
        return "done"

    with pytest.raises(ZeroDivisionError):
        bench.run(jobs("ab"), step)
    assert ended.is_set()


def test_the_numbers_are_told_whenever_they_change() -> None:
    bench = Bench(workers=1)
    bench.run(jobs("ab"), lambda _job: "done")
    assert bench.told[0] == Progress(done=0, running=1, waiting=0, queued=1)
    assert Progress(done=1, running=0, waiting=0, queued=1) in bench.told
    assert bench.told[-1] == Progress(done=2, running=0, waiting=0, queued=0)


def test_workers_that_are_all_busy_do_not_make_the_main_thread_spin(monkeypatch: pytest.MonkeyPatch) -> None:
    bench, looks = Bench(workers=1), [0]
    real = concurrent.futures.wait

    def counted(*args: Any, **more: Any) -> Any:
        looks[0] += 1
        return real(*args, **more)

    monkeypatch.setattr(scheduler_module, "wait", counted)
    slow = threading.Event()
    threading.Timer(0.3, slow.set).start()
    bench.run(jobs("abc"), lambda _job: "done" if slow.wait(30) else "")
    assert looks[0] < 20


# Any schedule

PAUSES = st.lists(st.sampled_from([0.0, 0.1, 1.0, 7.0, 400.0]), max_size=4)


@settings(max_examples=150, deadline=None)
@given(
    waits=st.lists(PAUSES, min_size=1, max_size=8),
    polite=st.sets(st.integers(0, 7)),
    workers=st.integers(1, 3),
)
def test_whatever_jobs_wait_for_each_ends_once_and_never_runs_twice_at_a_time(
    waits: list[list[float]], polite: set[int], workers: int
) -> None:
    bench, lock = Bench(workers=workers), threading.Lock()
    under_way: set[str] = set()
    steps: Counter[str] = Counter()
    due: dict[int, float] = {}
    wrong: list[str] = []

    def step(job: QueuedJob) -> str | Later:
        number = int(job.key)
        with lock:
            under_way.add(job.key)
            if len(under_way) > workers:
                wrong.append(f"{len(under_way)} steps at a time")
            if number not in polite and bench.clock.now < due.get(number, 0.0) - 0.01:
                wrong.append(f"{number} went on too early")
        taken = steps[job.key]
        steps[job.key] += 1
        with lock:
            under_way.remove(job.key)
        if taken >= len(waits[number]):
            return "done"
        due[number] = bench.clock.now + waits[number][taken]
        return Later(due[number], WAITS, "gave up", ends_when_idle=number in polite)

    known = [QueuedJob(str(number)) for number in range(len(waits))]
    results = bench.run(known, step)
    assert wrong == []
    assert set(results) == {job.key for job in known}
    for number, pauses in enumerate(waits):
        if number not in polite:
            assert (results[str(number)], steps[str(number)]) == ("done", len(pauses) + 1)
    assert bench.clock.now <= sum(map(sum, waits)) + 1
