"""Sets of partitions that a predicate may admit, and the proof that two of them are disjoint.

A set of values is a list of intervals in the order of its column's type, plus whether it contains null. A box has one
set for each of some columns. A region is a union of boxes: a predicate in disjunctive normal form, of bounded size. An
operation whose result would exceed the bound returns a larger region instead. So regions reported as disjoint are
disjoint, and others may be disjoint all the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

Value = Any
"""A value of one column's domain. All values of one column are comparable."""
MOST_BOXES = 128
_MOST_PAIRS = 1024


@dataclass(frozen=True, slots=True)
class Interval:
    """From ``low`` to ``high``; ``None`` is unbounded."""

    low: Value | None = None
    high: Value | None = None
    low_open: bool = False
    high_open: bool = False

    @property
    def empty(self) -> bool:
        """Whether it contains no value."""
        if self.low is None or self.high is None:
            return False
        return bool(self.low > self.high or (self.low == self.high and (self.low_open or self.high_open)))

    def meet(self, other: Interval) -> Interval:
        """The intersection."""
        low, low_open = _higher((self.low, self.low_open), (other.low, other.low_open))
        high, high_open = _lower((self.high, self.high_open), (other.high, other.high_open))
        return Interval(low, high, low_open, high_open)

    def within(self, other: Interval) -> bool:
        """Whether it is contained in the other."""
        return self.meet(other) == self


def _higher(one: tuple[Value, bool], other: tuple[Value, bool]) -> tuple[Value, bool]:
    if one[0] is None or other[0] is None:
        return other if one[0] is None else one
    if one[0] == other[0]:
        return one[0], one[1] or other[1]
    return max(one, other, key=lambda bound: bound[0])


def _lower(one: tuple[Value, bool], other: tuple[Value, bool]) -> tuple[Value, bool]:
    if one[0] is None or other[0] is None:
        return other if one[0] is None else one
    if one[0] == other[0]:
        return one[0], one[1] or other[1]
    return min(one, other, key=lambda bound: bound[0])


@dataclass(frozen=True, slots=True)
class Values:
    """A set of values of one column: sorted, disjoint intervals, and whether null is included."""

    intervals: tuple[Interval, ...] = ()
    null: bool = False

    @property
    def empty(self) -> bool:
        """Whether it contains no value and no null."""
        return not self.intervals and not self.null

    def meet(self, other: Values) -> Values:
        """The intersection."""
        met, mine, theirs = [], 0, 0
        while mine < len(self.intervals) and theirs < len(other.intervals):
            one, two = self.intervals[mine], other.intervals[theirs]
            both = one.meet(two)
            if not both.empty:
                met.append(both)
            if _ends_first(one, two):
                mine += 1
            else:
                theirs += 1
        return Values(tuple(met), self.null and other.null)

    def join(self, other: Values) -> Values:
        """The union."""
        return values_of((*self.intervals, *other.intervals), null=self.null or other.null)

    def within(self, other: Values) -> bool:
        """Whether it is contained in the other."""
        held = all(any(mine.within(theirs) for theirs in other.intervals) for mine in self.intervals)
        return held and (other.null or not self.null)

    def complement(self) -> Values:
        """The values that are not in it. Null is in neither."""
        separate: list[Interval] = []
        low, low_open = None, False
        for each in self.intervals:
            if each.low is not None:
                separate.append(Interval(low, each.low, low_open, not each.low_open))
            if each.high is None:
                return Values(tuple(separate))
            low, low_open = each.high, not each.high_open
        return Values((*separate, Interval(low, None, low_open)))


EVERY_VALUE = Values((Interval(),), null=True)
NOT_NULL = Values((Interval(),))
NULL = Values(null=True)


def values_of(intervals: Iterable[Interval], *, null: bool = False) -> Values:
    """The union of intervals, which may overlap, touch or be empty."""
    merged: list[Interval] = []
    for each in sorted((each for each in intervals if not each.empty), key=_by_low):
        if merged and _touch(merged[-1], each):
            high, high_open = _further((merged[-1].high, merged[-1].high_open), (each.high, each.high_open))
            merged[-1] = Interval(merged[-1].low, high, merged[-1].low_open, high_open)
        else:
            merged.append(each)
    return Values(tuple(merged), null)


def _by_low(each: Interval) -> tuple[bool, Value, bool]:
    return (False, 0, False) if each.low is None else (True, each.low, each.low_open)


def _touch(one: Interval, following: Interval) -> bool:
    if one.high is None or following.low is None or following.low < one.high:
        return True
    return bool(following.low == one.high and not (one.high_open and following.low_open))


def _further(one: tuple[Value, bool], other: tuple[Value, bool]) -> tuple[Value, bool]:
    if one[0] is None or other[0] is None:
        return None, False
    if one[0] == other[0]:
        return one[0], one[1] and other[1]
    return max(one, other, key=lambda bound: bound[0])


def _ends_first(one: Interval, other: Interval) -> bool:
    if one.high is None or other.high is None:
        return one.high is not None
    return bool(one.high < other.high or (one.high == other.high and one.high_open))


Box = tuple[tuple[str, Values], ...]
"""The values of some columns, sorted by folded name. A column that is not listed may have any value."""


@dataclass(frozen=True, slots=True)
class Region:
    """A set of partitions. It contains at least the intended ones, and no others if ``exact``."""

    boxes: tuple[Box, ...]
    exact: bool = True

    @property
    def everywhere(self) -> bool:
        """Whether it restricts no column."""
        return () in self.boxes

    def column(self, name: str) -> Values:
        """The values that a column may have in it."""
        found = Values()
        for box in self.boxes:
            found = found.join(dict(box).get(name, EVERY_VALUE))
        return found


ANYWHERE = Region(((),))
UNKNOWN = Region(((),), exact=False)
NOWHERE = Region(())


def where(column: str, values: Values, *, exact: bool = True) -> Region:
    """The partitions in which one column has one of these values."""
    if values.empty:
        return Region((), exact)
    return Region(((),) if values == EVERY_VALUE else (((column, values),),), exact)


def both(one: Region, other: Region) -> Region:
    """The intersection or, if that needs too many boxes, the region with fewer boxes."""
    exact = one.exact and other.exact
    if one.everywhere or other.everywhere:
        return Region((other if one.everywhere else one).boxes, exact)
    if len(one.boxes) * len(other.boxes) > _MOST_PAIRS:
        return Region(min(one, other, key=lambda region: len(region.boxes)).boxes, exact=False)
    met = [box for mine in one.boxes for theirs in other.boxes if (box := _await_all(mine, theirs)) is not None]
    return _bounded(met, exact=exact)


def either(regions: Sequence[Region]) -> Region:
    """The union or, if that needs too many boxes, everything."""
    return _bounded([box for region in regions for box in region.boxes], exact=all(each.exact for each in regions))


def disjoint(one: Region, other: Region) -> bool:
    """Whether the two certainly have no partition in common."""
    return all(_await_all(mine, theirs) is None for mine in one.boxes for theirs in other.boxes)


def covers(one: Region, other: Region) -> bool:
    """Whether the first certainly contains every partition of the second. Also false if that takes several boxes."""
    return one.exact and all(any(_within(theirs, mine) for mine in one.boxes) for theirs in other.boxes)


def _await_all(one: Box, other: Box) -> Box | None:
    met = dict(one)
    for column, values in other:
        met[column] = met[column].meet(values) if column in met else values
        if met[column].empty:
            return None
    return tuple(sorted(met.items()))


def _within(one: Box, other: Box) -> bool:
    mine = dict(one)
    return all(column in mine and mine[column].within(values) for column, values in other)


def _bounded(boxes: Sequence[Box], *, exact: bool) -> Region:
    """Merge boxes that differ in one column only, so that long lists of alternatives stay small."""
    if () in boxes:
        return Region(((),), exact)
    merged = _merge(list(dict.fromkeys(boxes)))
    return Region(tuple(merged), exact) if len(merged) <= MOST_BOXES else UNKNOWN


def _merge(boxes: list[Box]) -> list[Box]:
    for column in sorted({name for box in boxes for name, _ in box}):
        groups: dict[Box, list[Values]] = {}
        for box in boxes:
            rest = tuple(each for each in box if each[0] != column)
            groups.setdefault(rest, []).append(dict(box).get(column, EVERY_VALUE))
        boxes = [_with(rest, column, values) for rest, values in groups.items()]
    return boxes


def _with(rest: Box, column: str, sets: Sequence[Values]) -> Box:
    intervals = (interval for values in sets for interval in values.intervals)
    joined = values_of(intervals, null=any(values.null for values in sets))
    return rest if joined == EVERY_VALUE else tuple(sorted((*rest, (column, joined)), key=lambda each: each[0]))
