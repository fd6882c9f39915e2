"""The expected loss of a planned table, as a plan stores it: for each hour of the week, without a clock."""

from __future__ import annotations

import math
from collections.abc import Iterable

from tablectl.frozen import frozen
from tablectl.model.expected_loss import HOURS, ExpectedLoss, WeekOfLoss


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
