"""Sixty tables with writers of known timetables, as the commits that Delta records of them. No Spark, no files.

Each kind of table is made three times, with other times, durations and random numbers.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from _forecast_writers import DAY, HOUR

from tablectl.delta.protocol import Client
from tablectl.model.commit import AppTransaction, Commit

SPARK = Client("delta-spark", (4, 4, 0))
MINUTE = 60.0
KNOWN = 29 * DAY
"""The time before the first forecast: four weeks and a day, so that the present is not the start of a week."""
Starts = Callable[[random.Random, float, float], Iterator[float]]
"""The starts of transactions between two times."""
_CORES = 8


@dataclass(frozen=True)
class Job:
    """One writer of a table."""

    name: str
    operation: str
    starts: Starts
    lasts: Callable[[random.Random, float], float]
    """The duration of the transaction that starts at a time."""
    files: int = 64
    begins: float = float("-inf")
    stops: float = float("inf")


@dataclass(frozen=True)
class Write:
    """One transaction."""

    job: Job
    start: float
    end: float
    first_file: float


@dataclass(frozen=True)
class Table:
    """A kind of table, with a seed."""

    kind: str
    seed: int
    now: float
    jobs: tuple[Job, ...]
    gap: float = 0.0
    """Seconds between two runs of a strict timetable; 0 for other tables."""

    def writes(self, start: float, end: float, seed: int) -> list[Write]:
        """The transactions that begin between two times."""
        found = [write for number, job in enumerate(self.jobs) for write in _run(job, start, end, seed * 100 + number)]
        return sorted(found, key=lambda each: each.end)


def _run(job: Job, start: float, end: float, seed: int) -> Iterator[Write]:
    chosen, last = random.Random(seed), float("-inf")
    for begin in job.starts(chosen, max(start, job.begins), min(end, job.stops)):
        at = max(begin, last)
        seconds = max(job.lasts(chosen, at), 0.5)
        last = at + seconds
        first = min(_CORES / job.files, 1.0) * chosen.uniform(0.7, 1.0)
        yield Write(job, at, last, at + seconds * first)


def commits(writes: Sequence[Write]) -> list[Commit]:
    """What Delta 4.4.0 records: no duration of appends and of streams. Oldest first."""
    ends, found = [each.end for each in writes], []
    for number, each in enumerate(writes):
        append = each.job.operation in {"WRITE", "STREAMING UPDATE"}
        stream = (AppTransaction(each.job.name, number),) if each.job.operation == "STREAMING UPDATE" else ()
        metrics = {} if append else {"executionTimeMs": str(round((each.end - each.start) * 1000))}
        found.append(
            Commit(
                number + 1,
                round(each.end * 1000),
                each.job.operation,
                each.job.name,
                SPARK,
                changes_data=True,
                metrics=MappingProxyType(metrics),
                parameters=MappingProxyType({"mode": "Append"} if append else {}),
                read_version=bisect_right(ends, each.start),
                blind_append=append,
                transactions=stream,
                first_file=round(each.first_file * 1000),
            )
        )
    return found


# Timetables


def at_hours(hours: Sequence[float], jitter: float = 5 * MINUTE, days: Sequence[int] = range(7)) -> Starts:
    """At some hours of some weekdays, from 0 for Monday."""

    def starts(chosen: random.Random, start: float, end: float) -> Iterator[float]:
        day = start // DAY * DAY - DAY
        while day < end:
            for hour in hours:
                at = day + hour * HOUR + chosen.uniform(0, jitter)
                if int(day // DAY + 3) % 7 in days and start <= at < end:
                    yield at
            day += DAY

    return starts


def by_the_clock(period: float, late: float = 2.0, phase: float = 0.0, data: float = 1.0) -> Starts:
    """Once in each period, a few seconds late; with ``data`` below 1, some triggers of a stream find nothing to do."""

    def starts(chosen: random.Random, start: float, end: float) -> Iterator[float]:
        at = start // period * period + phase
        while at < end:
            moment = at + chosen.uniform(0, late)
            if moment >= start and chosen.random() < data:
                yield moment
            at += period

    return starts


def every(pause: float, hours: Sequence[int] = range(24), days: Sequence[int] = range(7)) -> Starts:
    """At random moments with a mean pause, in some hours of some days."""

    def starts(chosen: random.Random, start: float, end: float) -> Iterator[float]:
        at = start
        while (at := at + chosen.expovariate(1 / pause)) < end:
            if int(at % DAY // HOUR) in hours and int(at // DAY + 3) % 7 in days:
                yield at

    return starts


def bursts(pause: float, count: int, apart: float) -> Starts:
    """Many transactions one after the other, at random moments."""

    def starts(chosen: random.Random, start: float, end: float) -> Iterator[float]:
        at = start
        while (at := at + chosen.expovariate(1 / pause)) < end:
            yield from (at + number * apart for number in range(count) if at + number * apart < end)
            at += count * apart

    return starts


def about(seconds: float, spread: float = 0.3) -> Callable[[random.Random, float], float]:
    """A duration around a mean."""
    return lambda chosen, _at: seconds * chosen.uniform(1 - spread, 1 + spread)


def strict(now: float, seeds: Sequence[int] = range(3)) -> Iterator[Table]:
    """Tables whose jobs leave minutes or seconds free between two runs."""
    for kind, (gap, jobs) in _STRICT.items():
        for seed in seeds:
            yield Table(kind, seed, now, jobs, gap)


def tables(now: float, seeds: Sequence[int] = range(3)) -> Iterator[Table]:
    """All tables. ``now`` is the first moment that is not known, a midnight."""
    for kind, make in _KINDS.items():
        for seed in seeds:
            chosen = random.Random(f"{kind} {seed}")
            yield Table(kind, seed, now, tuple(make(chosen, now)))


def _hourly(chosen: random.Random) -> Job:
    return Job("hourly", "UPDATE", at_hours([hour + chosen.random() for hour in range(24)]), about(MINUTE))


def _night(chosen: random.Random) -> float:
    return chosen.uniform(0, 4)


def _nightly(chosen: random.Random, _now: float) -> list[Job]:
    return [Job("nightly", "MERGE", at_hours([_night(chosen)]), about(chosen.uniform(1, 4) * HOUR, 0.1))]


def _weekdays(chosen: random.Random, _now: float) -> list[Job]:
    days = at_hours([_night(chosen)], days=range(5))
    return [Job("weekdays", "MERGE", days, about(chosen.uniform(1, 4) * HOUR, 0.1))]


def _new_job(chosen: random.Random, now: float) -> list[Job]:
    job = Job("new", "MERGE", at_hours([_night(chosen)]), about(4 * HOUR, 0.1), begins=now - 3 * DAY)
    return [job, _hourly(chosen)]


def _few_random(chosen: random.Random, _now: float) -> list[Job]:
    return [Job("random", "UPDATE", every(HOUR / 2), about(chosen.uniform(30, 120)))]


def _many_random(chosen: random.Random, _now: float) -> list[Job]:
    return [Job("random", "UPDATE", every(HOUR / chosen.randint(2, 3)), about(chosen.uniform(2, 10) * MINUTE))]


def _bursts(chosen: random.Random, _now: float) -> list[Job]:
    return [Job("backfill", "MERGE", bursts(3 * DAY, 40, chosen.uniform(60, 120)), about(50)), _hourly(chosen)]


def _business(chosen: random.Random, _now: float) -> list[Job]:
    hours = range(8, chosen.randint(16, 19))
    return [Job("desk", "UPDATE", every(HOUR / chosen.randint(2, 6), hours, range(5)), about(4 * MINUTE))]


def _four_a_day(chosen: random.Random, _now: float) -> list[Job]:
    first = chosen.uniform(0, 5)
    return [Job("quarter", "MERGE", at_hours([first + 6 * each for each in range(4)]), about(25 * MINUTE))]


def _weekly(chosen: random.Random, _now: float) -> list[Job]:
    weekly = at_hours([_night(chosen)], days=[chosen.randrange(7)])
    return [Job("weekly", "MERGE", weekly, about(6 * HOUR, 0.1)), _hourly(chosen)]


def _time_zones(chosen: random.Random, _now: float) -> list[Job]:
    east, west = range(1, 10), range(14, 23)
    return [
        Job("east", "UPDATE", every(HOUR / 3, east, range(5)), about(4 * MINUTE)),
        Job("west", "WRITE", every(HOUR / 3, west, range(5)), about(chosen.uniform(2, 5) * MINUTE), files=16),
    ]


def _stream(chosen: random.Random, _now: float) -> list[Job]:
    stream = Job("stream", "STREAMING UPDATE", at_hours([each * 1.0 for each in range(24)], HOUR), about(20), files=16)
    return [stream, Job("nightly", "MERGE", at_hours([_night(chosen)]), about(HOUR, 0.1))]


def _hourly_append(chosen: random.Random, _now: float) -> list[Job]:
    minute = chosen.random()
    return [Job("hourly", "WRITE", at_hours([hour + minute for hour in range(24)]), about(7 * MINUTE))]


def _append_and_merge(chosen: random.Random, _now: float) -> list[Job]:
    night = _night(chosen)
    return [
        Job("load", "WRITE", at_hours([night]), about(10 * MINUTE)),
        Job("merge", "MERGE", at_hours([night + 1]), about(30 * MINUTE)),
    ]


def _stopped(chosen: random.Random, now: float) -> list[Job]:
    return [Job("stopped", "UPDATE", every(HOUR / 4), about(5 * MINUTE), stops=now - DAY), _hourly(chosen)]


def _began(chosen: random.Random, now: float) -> list[Job]:
    return [Job("began", "UPDATE", every(HOUR / 4), about(12 * MINUTE), begins=now - DAY), _hourly(chosen)]


def _six_hourly_append(chosen: random.Random, _now: float) -> list[Job]:
    first = chosen.uniform(0, 5)
    times = at_hours([first + 6 * each for each in range(4)])
    return [Job("load", "WRITE", times, about(chosen.uniform(5, 20) * MINUTE), files=chosen.choice([1, 16, 200]))]


def _grows(chosen: random.Random, now: float) -> list[Job]:
    start = now - KNOWN

    def lasts(random: random.Random, at: float) -> float:
        return (10 + 80 * (at - start) / KNOWN) * MINUTE * random.uniform(0.9, 1.1)

    return [Job("grows", "MERGE", at_hours([_night(chosen)]), lasts)]


def _late(chosen: random.Random, _now: float) -> list[Job]:
    return [Job("late", "MERGE", at_hours([_night(chosen)], 2 * HOUR), about(40 * MINUTE))]


def _steps(chosen: random.Random, _now: float) -> list[Job]:
    night = _night(chosen)
    steps = at_hours([night + 0.2 * step for step in range(10)], 2 * MINUTE)
    return [Job("steps", "MERGE", steps, about(8 * MINUTE))]


def _one_file(chosen: random.Random, _now: float) -> list[Job]:
    return [Job("load", "WRITE", at_hours([_night(chosen)]), about(chosen.uniform(2, 10) * MINUTE), files=1)]


_STRICT: dict[str, tuple[float, tuple[Job, ...]]] = {
    "20 min of each hour": (HOUR, (Job("a", "MERGE", by_the_clock(HOUR), about(20 * MINUTE, 0.1)),)),
    "10 min of each half": (HOUR / 2, (Job("a", "MERGE", by_the_clock(HOUR / 2), about(10 * MINUTE, 0.1)),)),
    "4 min of each quarter": (HOUR / 4, (Job("a", "MERGE", by_the_clock(HOUR / 4), about(4 * MINUTE, 0.1)),)),
    "50 min of each hour": (HOUR, (Job("a", "MERGE", by_the_clock(HOUR), about(50 * MINUTE, 0.05)),)),
    "stream, idle triggers": (
        5 * MINUTE,
        (Job("q", "STREAMING UPDATE", by_the_clock(5 * MINUTE, data=0.8), about(40, 0.2), files=64),),
    ),
    "two that look alike": (
        HOUR,
        (
            Job("a", "MERGE", by_the_clock(HOUR / 4), about(4 * MINUTE, 0.1)),
            Job("a", "MERGE", by_the_clock(HOUR, phase=5 * MINUTE), about(18 * MINUTE, 0.1)),
        ),
    ),
}
_KINDS: dict[str, Callable[[random.Random, float], list[Job]]] = {
    "nightly MERGE": _nightly,
    "weekdays only": _weekdays,
    "new job, 3 runs": _new_job,
    "random, 2 an hour": _few_random,
    "random, long": _many_random,
    "bursts": _bursts,
    "business hours": _business,
    "4 a day": _four_a_day,
    "weekly and hourly": _weekly,
    "two time zones": _time_zones,
    "stream and MERGE": _stream,
    "hourly append": _hourly_append,
    "append and MERGE": _append_and_merge,
    "stopped yesterday": _stopped,
    "began yesterday": _began,
    "append, 4 a day": _six_hourly_append,
    "a job that grows": _grows,
    "starts in 2 hours": _late,
    "ten steps a night": _steps,
    "append, one file": _one_file,
}
