"""``window.max_bytes_per_hour``, and rewrites next to short statements, on a clock that the test moves."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tablectl.applying.events import Progress
from tablectl.applying.scheduler import HOUR, PACED, Pace, QueuedJob, Rules, Scheduler
from tablectl.applying.waits import Later
from tablectl.delta.protocol import Protocol
from tests.applying.lake_run import Run, outcomes, plan_of
from tests.leases.lease_fakes import FakeClock


@dataclass
class Bench:
    """A scheduler with a pace; each rewrite takes ten minutes."""

    limit: int | None
    workers: int = 1
    clock: FakeClock = field(default_factory=lambda: FakeClock(start=0))
    began: dict[str, float] = field(default_factory=dict)
    held: list[tuple[str, float]] = field(default_factory=list)
    told: list[Progress] = field(default_factory=list)
    rewrites: bool = True

    def run(self, **sizes: int) -> dict[str, float]:
        rules: Rules[str] = Rules(
            left_out=lambda _job, _later, reason: reason,
            on_wait=lambda job, _later, since: self.held.append((job.key, since)),
            on_progress=self.told.append,
            rewrote=lambda _job: self.rewrites,
        )
        scheduler = Scheduler(self.clock, self.workers, threading.Event(), rules, Pace(self.limit))
        scheduler.run([QueuedJob(key, size=size) for key, size in sizes.items()], self.step)
        return self.began

    def step(self, job: QueuedJob) -> str:
        self.began[job.key] = self.clock.now
        self.clock.now += 600 if job.size else 0
        return "done"


def test_the_next_rewrite_starts_when_the_last_hour_leaves_room_for_it() -> None:
    assert Bench(limit=100).run(a=60, b=50, c=40) == {"a": 0, "b": 600 + HOUR, "c": 1200 + HOUR}


def test_a_rewrite_larger_than_the_limit_starts_alone() -> None:
    began = Bench(limit=100, workers=4).run(large=900, small=1)
    assert began == {"large": 0, "small": 600 + HOUR}


def test_without_a_limit_nothing_waits() -> None:
    assert Bench(limit=None).run(a=10**15, b=10**15) == {"a": 0, "b": 600}


def test_statements_that_rewrite_nothing_are_not_held_back() -> None:
    began = Bench(limit=1).run(a=0, b=5, c=7, d=0)
    assert (began["a"], began["d"]) == (0, 0)
    assert began["b"] - began["c"] == 600 + HOUR


def test_a_table_that_rewrote_nothing_after_all_leaves_its_share_to_the_next() -> None:
    assert Bench(limit=100, rewrites=False).run(a=100, b=90) == {"a": 0, "b": 600}


def test_no_smaller_rewrite_overtakes_the_next_one() -> None:
    began = Bench(limit=100).run(a=100, b=99, c=1)
    assert began["b"] <= began["c"]


def test_progress_counts_what_waits_for_the_pace_and_events_say_since_when() -> None:
    bench = Bench(limit=100)
    bench.run(a=80, b=70)
    assert Progress(done=1, running=0, waiting=1, queued=0) in bench.told
    assert bench.held[0] == ("b", 600.0)


@given(st.lists(st.tuples(st.integers(1, 150), st.integers(0, 9000), st.integers(0, 3000)), min_size=1, max_size=8))
def test_no_hour_contains_more_than_the_limit_unless_a_single_rewrite_does(jobs: list[tuple[int, int, int]]) -> None:
    """Each job: its bytes, how long it takes, and the pause before it is asked for."""
    pace, now, spans = Pace(100), 0.0, list[tuple[int, float, float]]()
    for number, (size, takes, pause) in enumerate(jobs):
        now = pace.admits_at(size, now + pause)
        pace.start(str(number), size)
        spans.append((size, now, now + takes))
        now += takes
        pace.end(str(number), now, rewrote=True)
    for _, begin, _ in spans:
        within = [size for size, start, end in spans if start <= begin < end + HOUR]
        assert sum(within) <= 100 or len(within) == 1


def test_a_poll_after_a_rewrite_adds_nothing_to_it_and_does_not_forget_it() -> None:
    pace = Pace(100)
    pace.start("a", 60)
    pace.end("a", now=10, rewrote=True)
    pace.start("a", 60)
    pace.end("a", now=500, rewrote=False)
    assert pace.admits_at(40, now=600) == 600
    assert pace.admits_at(41, now=600) == 10 + HOUR


# Long and short jobs


def test_short_jobs_start_before_rewrites_and_large_rewrites_before_small_ones() -> None:
    order = list(Bench(limit=None).run(a=5, b=0, c=900, d=0))
    assert order == ["b", "d", "c", "a"]


def test_a_short_job_that_waited_finds_a_worker_that_no_rewrite_took() -> None:
    """Three rewrites that last until the short job is done, and two workers."""
    clock, done, asked = FakeClock(start=0), threading.Event(), threading.Event()

    def step(job: QueuedJob) -> str | Later:
        if job.size:
            assert done.wait(timeout=30)
        elif not asked.is_set():
            asked.set()
            return Later(0.0, PACED)
        else:
            done.set()
        return "done"

    rules: Rules[str] = Rules(left_out=lambda _job, _later, reason: reason)
    jobs = [QueuedJob("short"), *(QueuedJob(f"r{number}", size=1) for number in range(3))]
    assert set(Scheduler(clock, 2, threading.Event(), rules).run(jobs, step).values()) == {"done"}


def test_rewrites_use_all_workers_when_no_short_job_is_left() -> None:
    both = threading.Barrier(2, timeout=30)

    def step(_job: QueuedJob) -> str:
        both.wait()
        return "done"

    rules: Rules[str] = Rules(left_out=lambda _job, _later, reason: reason)
    jobs = [QueuedJob("a", size=1), QueuedJob("b", size=1)]
    assert len(Scheduler(FakeClock(start=0), 2, threading.Event(), rules).run(jobs, step)) == 2


# A whole apply

VECTORS: Mapping[str, Any] = MappingProxyType(
    {
        "properties": {"delta.enableDeletionVectors": "true"},
        "protocol": Protocol(3, 7, frozenset({"deletionVectors"}), frozenset({"deletionVectors"})),
        "vectors": 3,
        "bytes": 80,
    }
)


def test_an_apply_paces_the_tables_that_rewrite_and_reports_how_long_they_waited() -> None:
    run = Run(max_bytes_per_hour=100).tables("bc", **VECTORS)
    rewriting = run.plan(deletion_vectors="purged").tables
    altered = [table for table in run.tables("a").plan().tables if "/lake/a" in table.name]
    report = run.apply(plan_of(*rewriting, *altered))
    waited = {table.name[-2]: table.paced_ms // 1000 for table in report.tables}
    assert outcomes(report) == dict.fromkeys("abc", "applied")
    assert sorted(waited.values()) == [0, 0, round(HOUR)]
    assert waited["a"] == 0
    assert any("1 for `window.max_bytes_per_hour`" in event.words for event in run.told)


def test_an_apply_that_is_stopped_says_which_tables_waited_for_the_pace() -> None:
    run = Run(max_bytes_per_hour=100).tables("bc", **VECTORS)
    run.notify = lambda event: run.stop.set() if event.step == "paced" else None
    report = run.apply(run.plan(deletion_vectors="purged"))
    assert sorted(table.message for table in report.tables) == [
        "",
        "stopped while it waited for `window.max_bytes_per_hour`",
    ]
