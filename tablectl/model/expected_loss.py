"""What an apply is expected to cost the writers of a table, by the hour of the week in UTC (docs/forecast.md).

Pure arithmetic on the writes of the past. A write that began before a commit that it conflicts with, and ends after it,
fails at its end, so it loses its whole duration. The expected number of failed writes is therefore the mean number of
writes in flight, plus those that begin between the first such commit and the last one.

A writer is a series of runs. It counts from its first write, and fades when it is silent for longer than it ever was
before. The times of its runs to the second are in ``rhythm``.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from statistics import median

HOUR = 3600.0
HOURS = 168
"""The hours of a week. Hour 0 is Monday, 00:00 to 01:00 UTC."""
DAYS = 30
"""The days before the newest commit whose writes count."""
LONGEST_WRITE = 86_400.0
"""The longest duration of a write, in seconds. Longer ones are wrong clocks."""
_EPOCH = 72
"""The hour of the week at which the epoch began: 1970-01-01 was a Thursday."""
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_LONG = 2 * HOUR
_DAY_HOURS = 24
_DAY = 24 * HOUR
_WEEK = 7 * _DAY
_RUNS = 3
"""So many runs show how long a writer usually takes."""
_COARSER = 0.25
"""The weight of the coarser mean, in hours that were observed."""
_NEIGHBOURS = 3
_SAME = 0.0005
"""Expected numbers of failed writes that differ by less are equal."""


@dataclass(frozen=True, slots=True)
class PastWrite:
    """A write of the past that committed."""

    end: float
    """The time of its commit, in seconds since the epoch."""
    seconds: float
    """Its duration: at least 0, at most ``LONGEST_WRITE``. An estimate if ``at_most`` is set."""
    at_most: float | None = None
    """The longest duration that the log permits, for a write whose commit records none."""


@dataclass(frozen=True, slots=True)
class Period:
    """The time in which all writes of a table are known, in seconds since the epoch."""

    start: float
    end: float

    @property
    def seconds(self) -> float:
        """Its length."""
        return max(self.end - self.start, 0.0)


@dataclass(frozen=True, slots=True)
class ExpectedLoss:
    """What one moment costs."""

    failed: float = 0.0
    """The expected number of writes that fail."""
    seconds: float = 0.0
    """The expected seconds of work of these writes."""

    def __add__(self, other: ExpectedLoss) -> ExpectedLoss:
        return ExpectedLoss(self.failed + other.failed, self.seconds + other.seconds)

    def text(self, writes: int = 0) -> str:
        """``3.1 failed writes, 210 s of work``. ``writes`` as in ``failed_text``."""
        work = f"{self.seconds:,.0f} s" if self.seconds < _LONG else f"{self.seconds / HOUR:,.1f} h"
        work = work if self.seconds >= 1 else "less than 1 s"
        return f"{failed_text(self.failed, writes)} failed writes, {work} of work"


def failed_text(failed: float, writes: int = 0) -> str:
    """An expected number of failed writes for people: ``3.1``, or with the number of writes that it is computed from
    the range of two standard errors, ``2.8 to 3.5``. It is never 0.0: a writer that conflicts may fail.
    """
    spread = failed * 2 / math.sqrt(writes) if writes else 0.0
    low, high = (f"{each:,.1f}" for each in (max(failed - spread, 0.0), failed + spread))
    if high == "0.0":
        return "less than 0.1"
    return high if low == high else f"up to {high}" if low == "0.0" else f"{low} to {high}"


@dataclass(frozen=True, slots=True)
class CommitWindow:
    """The commits of an apply that fail a writer."""

    commits: int = 1
    spacing: float = 1.0
    """Seconds between two of them."""


WeekOfLoss = tuple[ExpectedLoss, ...]
"""One loss for each hour of the week."""
Shares = tuple[float, ...]
"""One number for each hour of the week."""


def hour_of_week(seconds: float) -> int:
    """The hour of the week of a time in seconds since the epoch."""
    return (math.floor(seconds / HOUR) + _EPOCH) % HOURS


def hour_text(hour: int) -> str:
    """``Sunday 04:00–05:00 UTC``."""
    day, start = divmod(hour % HOURS, _DAY_HOURS)
    return f"{WEEKDAYS[day]} {start:02}:00–{(start + 1) % _DAY_HOURS:02}:00 UTC"


def hours_between(start: float, end: float) -> Iterable[tuple[int, float]]:
    """The hours of the week between two times, and how many seconds of each are between them."""
    while start < end:
        upto = min((math.floor(start / HOUR) + 1) * HOUR, end)
        yield hour_of_week(start), upto - start
        start = upto


def summed(weeks: Iterable[WeekOfLoss]) -> WeekOfLoss:
    """The losses of several tables or writers together."""
    total = (ExpectedLoss(),) * HOURS
    for week in weeks:
        total = tuple(one + other for one, other in zip(total, week, strict=True))
    return total


def quietest_hour(week: Sequence[ExpectedLoss], start: int = 0) -> int:
    """The hour of the week with the least loss.

    Of several such hours, it is one that is far from busy hours, and of those the first one from ``start`` on.
    """
    least = min(each.failed for each in week)
    hours = [hour for hour in range(HOURS) if week[hour].failed <= least + _SAME]

    def rank(hour: int) -> tuple[float, int]:
        near = sum(week[(hour + away) % HOURS].failed for away in range(-_NEIGHBOURS, _NEIGHBOURS + 1))
        return round(near, 3), (hour - start) % HOURS

    return min(hours, key=rank)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementLoss:
    """The expected loss of one statement for writers without a guard, by the hour of the week in UTC."""

    statement: str
    """The id of the statement."""
    failed: tuple[float, ...]
    """The expected number of failed writes, for 168 hours from Monday 00:00 UTC."""
    seconds: tuple[float, ...]
    """The expected seconds of work of these writes, for the same hours."""

    def __post_init__(self) -> None:
        _check(self.failed, self.seconds, {HOURS})


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLoss:
    """The expected loss of all blocking and rewriting statements of a table in one window."""

    writes: int
    """The number of writes that it is computed from."""
    since: int = 0
    """The start of the time in which they were made, in milliseconds since the epoch; 0 if unknown."""
    unknown: str = ""
    """Why the loss is unknown; empty if it is known."""
    quietest: int | None = None
    """The hour of the week with the least loss, from 0 for Monday 00:00 UTC; ``null`` if the writes were observed for
    less than a day.
    """
    failed: tuple[float, ...] = ()
    """The expected number of failed writes, for 168 hours from Monday 00:00 UTC; empty if unknown."""
    seconds: tuple[float, ...] = ()
    """The expected seconds of work of these writes, for the same hours."""
    jobs: tuple[str, ...] = ()
    """The writers with usual times of the day, and these times in UTC."""
    statements: tuple[StatementLoss, ...] = ()
    """The loss of each such statement alone. One write that two statements fail counts once in the table's loss."""

    def __post_init__(self) -> None:
        _check(self.failed, self.seconds, {0, HOURS})
        if bool(self.unknown) == bool(self.failed):
            raise ValueError("a loss is either known or not")
        if self.quietest is not None and not 0 <= self.quietest < HOURS:
            raise ValueError("no hour of a week")

    @property
    def week(self) -> WeekOfLoss:
        """The loss of each hour of the week; empty if unknown."""
        return week_of(self.failed, self.seconds)

    def week_of_statement(self, statement: str) -> WeekOfLoss:
        """The loss of one statement alone; empty if it has none."""
        found = next((each for each in self.statements if each.statement == statement), None)
        return week_of(found.failed, found.seconds) if found else ()


def week_of(failed: Iterable[float], seconds: Iterable[float]) -> WeekOfLoss:
    """The losses of these numbers."""
    return tuple(ExpectedLoss(*each) for each in zip(failed, seconds, strict=True))


def failed_writes(week: WeekOfLoss) -> tuple[float, ...]:
    """The expected numbers of failed writes, rounded for a plan. Zero is a week in which no writer conflicts."""
    return tuple(max(round(each.failed, 3), 0.001) if each.failed else 0.0 for each in week)


def lost_seconds(week: WeekOfLoss) -> tuple[float, ...]:
    """The expected seconds of work, rounded for a plan."""
    return tuple(round(each.seconds, 1) for each in week)


def _check(failed: tuple[float, ...], seconds: tuple[float, ...], lengths: set[int]) -> None:
    if len(failed) not in lengths or len(seconds) != len(failed):
        raise ValueError(f"a loss has {HOURS} hours")
    if not all(math.isfinite(each) and each >= 0 for each in (*failed, *seconds)):
        raise ValueError("a loss is a number of at least 0")


def week_of_loss(writes: Iterable[PastWrite], period: Period, window: CommitWindow) -> WeekOfLoss:
    """The expected loss of one writer for a window that opens at a random moment of each hour of the week."""
    runs = inside(writes, period)
    if not runs or window.commits <= 0:
        return (ExpectedLoss(),) * HOURS
    shares, work = _flight(runs, _observed(runs, period), window)
    total = sum(shares.values())
    cost = sum(work.values()) / total if total else 0.0
    share = alive(runs, period.end)
    rates = _rates(shares, _observed(runs, period), period.end)
    return tuple(ExpectedLoss(each * share, each * share * cost) for each in rates)


def in_flight(writes: Iterable[PastWrite], period: Period, window: CommitWindow) -> ExpectedLoss:
    """The loss of a window at a random moment of a short time, by the writes that were in flight then."""
    shares, work = _flight(tuple(writes), period, window)
    hours = period.seconds / HOUR or 1.0
    return ExpectedLoss(sum(shares.values()) / hours, sum(work.values()) / hours)


def inside(writes: Iterable[PastWrite], period: Period) -> list[PastWrite]:
    """The writes that committed in a time, in order."""
    return sorted((each for each in writes if period.start <= each.end <= period.end), key=lambda each: each.end)


def _longest_gap(runs: Sequence[PastWrite]) -> float:
    """The longest time between two writes. A writer that wrote once may be a weekly one."""
    ends = [each.end for each in runs]
    return max((after - before for before, after in pairwise(ends)), default=_WEEK)


def alive(runs: Sequence[PastWrite], now: float) -> float:
    """1 for a writer that goes on; less for one that is silent for longer than it ever was."""
    gap = max(_longest_gap(runs), 60.0)
    late = max(now - runs[-1].end - gap, 0.0) / gap
    return float(0.5 ** min(late, 60.0))


def _observed(runs: Sequence[PastWrite], period: Period) -> Period:
    """The time in which every write of the writer is known.

    It begins with the writer's first write, if nothing was written for long before that. A write in flight is not known
    yet, so it ends before a write of the usual duration that has not ended.
    """
    first = runs[0].end - runs[0].seconds
    begun = period.start if first - _longest_gap(runs) < period.start and len(runs) > 1 else first
    if len(runs) == 1:
        begun = min(begun, period.end - _DAY)
    usual = median(each.seconds for each in runs)
    open_end = usual if len(runs) >= _RUNS and period.end - begun > 4 * usual else 0.0
    return Period(min(begun, first), period.end - open_end)


def _flight(
    runs: Iterable[PastWrite], period: Period, window: CommitWindow
) -> tuple[Mapping[int, float], Mapping[int, float]]:
    """The mean number of failing writes in each hour since the epoch, and the seconds of their work."""
    shares: defaultdict[int, float] = defaultdict(float)
    work: defaultdict[int, float] = defaultdict(float)

    def add(hour: int, seconds: float, run: PastWrite) -> None:
        shares[hour] += seconds / HOUR
        work[hour] += seconds / HOUR * run.seconds

    for run in runs:
        start, end = max(run.end - run.seconds, period.start), min(run.end, period.end)
        while start < end:
            upto = min((math.floor(start / HOUR) + 1) * HOUR, end)
            add(math.floor(start / HOUR), upto - start, run)
            start = upto
        if run.end <= period.end and window.commits > 1:
            add(math.floor(run.end / HOUR), (window.commits - 1) * min(run.seconds, max(window.spacing, 0.0)), run)
    return shares, work


def _rates(flight: Mapping[int, float], period: Period, now: float) -> Shares:
    """The mean number of writes in flight in each hour of the week.

    Some writers follow the hour of the week, others the hour of the day, others none. The one is right that tells each
    observed hour best from the others of its kind (leave-one-out). Recent weeks count more: half for each week of age.
    """
    hours, weighted = _exposure(math.floor(period.start / HOUR), math.ceil(period.end / HOUR), math.floor(now / HOUR))
    sums, squares, recent = [0.0] * HOURS, [0.0] * HOURS, [0.0] * HOURS
    for hour, share in flight.items():
        at = hour_of_week(hour * HOUR)
        sums[at] += share
        squares[at] += share * share
        recent[at] += share * _weight(math.floor(now / HOUR) - hour)
    whole = sum(recent) / max(sum(weighted), 1e-9)
    plain = sum(sums) / max(sum(hours), 1e-9)

    def error(count: int) -> float:
        found = 0.0
        for group in _groups(count):
            length, total, square = (sum(each[index] for index in group) for each in (hours, sums, squares))
            # The squared error if each hour of a kind is predicted from the others of its kind
            others = max(length - 1, 0.0) + _COARSER
            known = total + _COARSER * plain
            found += (
                (others + 1) ** 2 * square - 2 * (others + 1) * known * total + length * known * known
            ) / others**2
        return found

    def means(count: int, coarser: Shares) -> Shares:
        found = [0.0] * HOURS
        for group in _groups(count):
            total, length = sum(recent[index] for index in group), sum(weighted[index] for index in group)
            for index in group:
                found[index] = (total + _COARSER * coarser[index]) / (length + _COARSER)
        return tuple(found)

    flat = (whole,) * HOURS
    best = min((HOURS, _DAY_HOURS, 1), key=error)
    if best == 1:
        return flat
    daily = means(_DAY_HOURS, flat)
    return daily if best == _DAY_HOURS else means(HOURS, daily)


def _groups(count: int) -> Iterator[range]:
    """The hours of the week that are alike, if there are so many kinds of hours."""
    return (range(first, HOURS, count) for first in range(count))


@lru_cache(maxsize=256)
def _exposure(first: int, last: int, now: int) -> tuple[Shares, Shares]:
    """How often each hour of the week was observed, and the same with the weights of its age."""
    hours, weighted = [0.0] * HOURS, [0.0] * HOURS
    for hour in range(max(first, last - (DAYS + 2) * _DAY_HOURS), last):
        at = hour_of_week(hour * HOUR)
        hours[at] += 1
        weighted[at] += _weight(now - hour)
    return tuple(hours), tuple(weighted)


def _weight(age: int) -> float:
    """Of an observed hour, by its age in hours."""
    return float(0.5 ** (max(age, 0) / HOURS))
