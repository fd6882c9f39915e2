"""What an apply is expected to cost the writers of a table, by the hour of the week in UTC (docs/forecast.md).

Pure arithmetic on the writes of the past. A write that began before a commit that it conflicts with, and ends after it,
fails at its end, so it loses its whole duration. The expected number of failed writes is therefore the mean number of
writes in flight, plus those that begin between the first such commit and the last one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from tablectl.support.frozen import frozen

HOUR = 3600.0
HOURS = 168
"""The hours of a week. Hour 0 is Monday, 00:00 to 01:00 UTC."""
DAYS = 30
"""The days before the newest commit whose writes count."""
LONGEST_WRITE = 86_400.0
"""The longest duration of a write, in seconds. Longer ones are wrong clocks."""
_MONDAY = 72
"""1970-01-01 was a Thursday."""
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_LONG = 2 * HOUR
_DAY = 24
_NEIGHBOURS = 3
_SAME = 0.0005
"""Expected numbers of failed writes that differ by less are equal."""


@frozen
class PastWrite:
    """A write of the past that committed."""

    end: float
    """The time of its commit, in seconds since the epoch."""
    seconds: float
    """Its duration: at least 0, at most ``LONGEST_WRITE``. An estimate if ``at_most`` is set."""
    at_most: float | None = None
    """The longest duration that the log permits, for a write whose commit records none."""


@frozen
class Period:
    """The time in which all writes of a table are known, in seconds since the epoch."""

    start: float
    end: float

    @property
    def seconds(self) -> float:
        """Its length."""
        return max(self.end - self.start, 0.0)


@frozen
class ExpectedLoss:
    """What one moment costs."""

    failed: float = 0.0
    """The expected number of writes that fail."""
    seconds: float = 0.0
    """The expected seconds of work of these writes."""

    def __add__(self, other: ExpectedLoss) -> ExpectedLoss:
        return ExpectedLoss(self.failed + other.failed, self.seconds + other.seconds)

    def text(self) -> str:
        """``3.1 failed writes, 210 s of work``."""
        work = f"{self.seconds:,.0f} s" if self.seconds < _LONG else f"{self.seconds / HOUR:,.1f} h"
        failed = f"{self.failed:,.1f}" if self.failed >= 0.05 or not self.failed else "less than 0.1"
        return f"{failed} failed writes, {work} of work"


@frozen
class CommitWindow:
    """The commits of an apply that fail a writer."""

    commits: int = 1
    spacing: float = 1.0
    """Seconds between two of them."""


WeekOfLoss = tuple[ExpectedLoss, ...]
"""One loss for each hour of the week."""


def hour_of_week(seconds: float) -> int:
    """The hour of the week of a time in seconds since the epoch."""
    return (math.floor(seconds / HOUR) + _MONDAY) % HOURS


def hour_text(hour: int) -> str:
    """``Sunday 04:00–05:00 UTC``."""
    day, start = divmod(hour % HOURS, _DAY)
    return f"{_DAYS[day]} {start:02}:00–{(start + 1) % _DAY:02}:00 UTC"


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


@frozen(kw_only=True)
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


@frozen(kw_only=True)
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
    """The expected numbers of failed writes, rounded for a plan."""
    return tuple(round(each.failed, 3) for each in week)


def lost_seconds(week: WeekOfLoss) -> tuple[float, ...]:
    """The expected seconds of work, rounded for a plan."""
    return tuple(round(each.seconds, 1) for each in week)


def _check(failed: tuple[float, ...], seconds: tuple[float, ...], lengths: set[int]) -> None:
    if len(failed) not in lengths or len(seconds) != len(failed):
        raise ValueError(f"a loss has {HOURS} hours")
    if not all(math.isfinite(each) and each >= 0 for each in (*failed, *seconds)):
        raise ValueError("a loss is a number of at least 0")
