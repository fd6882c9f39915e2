"""The free time between the runs of a writer, to the second (docs/forecast.md).

A writer keeps a rhythm if its past runs tell when the next one comes, in one of two ways: by the time since its last
commit (a stream, a job in a loop), or by the clock (a job each hour, or each night). Each way is tried on the newest
runs, which must lie inside the times that the older ones leave for them. A writer without a rhythm has only its mean
number of writes in flight (``expected_loss``).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from statistics import median, quantiles

from tablectl.model.expected_loss import HOUR, PastWrite, Period, alive, inside

Span = tuple[float, float]
"""Seconds from and to. Spans of time are since the epoch."""
_DAY = 24 * HOUR
_MONDAY = 4 * _DAY
"""The first Monday after the epoch."""
_MINUTES = (1, 2, 3, 5, 10, 15, 20, 30, 60, 120, 180, 240, 360, 480, 720, 1440, 7 * 1440)
"""The periods of timetables."""
_RUNS = 3
"""So many runs, or rounds of a timetable, are evidence."""
_MOST_RUNS = 500
_MOST_TURNS = 50
_ODD = 50
"""One run of so many may come earlier than the others, once by hand for example."""
_FEW = 6
"""Margins of three runs are three times as wide as those of many."""
_SHARE, _OF_PERIOD = 0.02, 0.01
_LEAST, _MOST = 1.0, 900.0
"""Seconds of a margin."""
_LATE = 2 * HOUR
_SOON = 600.0
_FADED = 0.1
_OFTEN = 0.4
"""The share of the rounds of a timetable in which each of its turns must have runs."""
_LONGER = 0.9
"""A longer period must make so much less of the time busy."""
_LEAST_FREE = 0.02
"""The share of the time that must be free."""
_SAME = 0.001
_ROUNDS = 1000
"""The number of runs that are expected ahead."""
_WINDOWS = 4000


@dataclass(frozen=True, slots=True)
class DueTime:
    """A time of the clock at which a writer runs, in seconds since the start of a period of the clock."""

    start: float
    """Of the earliest run."""
    end: float
    """Of the latest run; it may be in the next period."""
    writes: int
    """The largest number of commits. When so many came, and not more, the rest of the turn is free."""
    usual: float
    """The usual end."""


@dataclass(frozen=True, slots=True)
class Rhythm:
    """When a writer is expected to be in flight."""

    ends: tuple[float, ...]
    """Its commits, in order of time."""
    seconds: float
    """The usual duration of a run."""
    cycle: float
    """The usual time from commit to commit."""
    since: tuple[Span, ...] = ()
    """When a run may be in flight, in seconds since the last commit; empty if that does not tell it."""
    turns: tuple[DueTime, ...] = ()
    """The same by the clock; empty if that does not tell it."""
    period: float = 0.0
    """The period of the clock in seconds."""
    margin: float = 0.0
    """The seconds before and after each turn that are not free."""
    days: int = 0
    """The number of days with runs."""

    @property
    def text(self) -> str:
        """``runs on 3 days, each between 01:00 and 05:00 UTC``, ``40 runs, 4 min each, every 15 min``."""
        spans = dict.fromkeys(f"{_clock(each.start)} and {_clock(each.end)}" for each in self.turns)
        if self.period >= _DAY and len(spans) <= _RUNS:
            return f"runs on {self.days} days, each between {' or '.join(spans)} UTC"
        return f"{len(self.ends)} runs, {seconds_text(self.seconds)} each, every {seconds_text(self.cycle)}"

    def windows(self, now: float, until: float) -> list[Span]:
        """The times in which no run is expected, from ``now`` on. The first begins at ``now`` if none is in flight now.

        What is said of later times follows from the usual run, and is said again when one has committed.
        """
        found = [*self._since_last(now, until), *self._by_clock(now, until)]
        return _merged((max(start, now), min(end, until)) for start, end in found if end > now and start < until)

    @property
    def _late(self) -> float:
        """For how long a run is waited for that has not committed as usual."""
        return min(max(self.seconds, _LEAST), _LATE)

    def _soon(self, now: float) -> float:
        """When to look again for a commit that is due."""
        return now + min(max(self.cycle / 40, _LEAST / 2), 60.0)

    def _since_last(self, now: float, until: float) -> Iterator[Span]:
        last = self.ends[-1]
        gaps = [(0.0, self.since[0][0])] if self.since else []
        if not self.turns:  # the clock tells more of a run that did not come
            gaps += [(end + self._late, start) for (_, end), (start, _) in pairwise(self.since)]
        free = [each for each in gaps if each[0] < each[1]]
        yield from ((last + start, last + end) for start, end in free)
        coming = max(last + self.cycle, self._soon(now))
        for _ in range(_ROUNDS if free else 0):
            if coming > until:
                return
            yield coming + free[0][0], coming + free[0][1]
            coming += self.cycle

    def _by_clock(self, now: float, until: float) -> Iterator[Span]:
        if not self.turns:
            return
        at, done = now, bisect_right(self.ends, now)
        first = math.floor((now - _MONDAY - self.turns[-1].end - self.margin - self._late) / self.period)
        for number in range(first, first + _ROUNDS):
            zero = _MONDAY + number * self.period
            for turn in self.turns:
                start, over = zero + turn.start - self.margin, zero + turn.end + self.margin
                committed = done - bisect_right(self.ends, start)
                if start > now:  # it will end as usual
                    over = min(over, zero + turn.usual + self.margin)
                elif committed == turn.writes:
                    over = now
                elif committed > turn.writes and now < over:
                    over = max(over, self._soon(now))  # not as usual
                elif now < over + (0.0 if committed else self._late):
                    over = max(zero + turn.usual, self._soon(now))
                if start > at:
                    yield at, start
                at = max(at, over)
            if at > until:
                return


def seconds_text(seconds: float) -> str:
    """``12 s``, ``4 min``, ``2.5 h``."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 100 * 60 else f"{seconds / HOUR:.1f} h".replace(".0 ", " ")


def rhythm_of(writes: Iterable[PastWrite], period: Period) -> Rhythm | None:
    """The rhythm of a writer; ``None`` if it has none, leaves no time free, or stopped."""
    runs = inside(writes, period)
    if len(runs) < _RUNS or alive(runs, period.end) < _FADED:
        return None
    recent = runs[-_MOST_RUNS:]
    cycles = _cycles(recent)
    since = _since(cycles)
    cycle = median(end for _, end in cycles)
    # What comes every few minutes is known by its last commit alone; what else it could be takes long to try.
    period_of_clock, margin, turns = (0.0, 0.0, ()) if since and cycle < _SOON else _timetable(runs, period, cycle)
    if not since and not turns:
        return None
    return Rhythm(
        tuple(each.end for each in runs),
        median(each.seconds for each in recent),
        cycle,
        since,
        turns,
        period_of_clock,
        margin,
        len({(each.end - each.seconds) // _DAY for each in runs}),
    )


def _cycles(runs: Sequence[PastWrite]) -> list[Span]:
    """For each commit: when the next write began, and when it committed, in seconds since. Of writes that overlap, the
    first beginning counts.
    """
    begins = list(accumulate((each.end - each.seconds for each in reversed(runs)), min))[::-1]
    return [
        (min(max(begin - before.end, 0.0), after.end - before.end), after.end - before.end)
        for before, after, begin in zip(runs, runs[1:], begins[1:], strict=False)
    ]


def _since(cycles: Sequence[Span]) -> tuple[Span, ...]:
    usual = median(end for _, end in cycles)

    def busy(some: Sequence[Span]) -> list[Span]:
        margin = max(_margin([start for start, _ in some], 0, len(some)), _SHARE * usual)
        if margin > usual / 4:
            return [(0.0, math.inf)]  # gaps so different tell nothing
        usual_ones = sorted(some)[len(some) // _ODD :]
        return _merged((max(start - margin, 0.0), end + margin) for start, end in usual_ones)

    if not _foretold(cycles, busy):
        return ()
    found = busy(cycles)
    whole = sum(end for _, end in cycles)
    free = sum(max(min(end, start) - before, 0.0) for _, end in cycles for before, start in _gaps(found, 0.0))
    return tuple(found) if free >= _LEAST_FREE * whole else ()


def _timetable(runs: Sequence[PastWrite], observed: Period, cycle: float) -> tuple[float, float, tuple[DueTime, ...]]:
    """The period of the clock, the margin and the turns that leave the most time free."""
    best: tuple[float, float, float, tuple[DueTime, ...]] = 1 - _LEAST_FREE, 0.0, 0.0, ()
    whole = observed.end - max(runs[0].end - runs[0].seconds, observed.start)
    for period in (minutes * 60.0 for minutes in _MINUTES):
        recent = runs if period >= _DAY else runs[-_MOST_RUNS:]
        if whole < (_RUNS - 1) * period or any(each.seconds >= period for each in recent):
            continue
        spans = [((each.end - each.seconds - _MONDAY) % period, each.seconds) for each in recent]
        margin = _margin([each.seconds for each in recent], min(period, 2 * cycle), len(recent))

        def busy_by(some: Sequence[Span], period: float = period, margin: float = margin) -> list[Span]:
            return [(start - margin, end + margin) for start, end in _around(some, period)]

        if not _foretold(spans, busy_by, lengths=True):
            continue
        around = [each for each in _around(spans, period) if 0 <= each[0] < period]
        if not 0 < len(around) <= _MOST_TURNS:
            continue
        found = [_rounds(each, recent, period) for each in around]
        often = max(_RUNS, _OFTEN * (recent[-1].end - recent[0].end) / period)
        chance = [lasts for rounds in found if len(rounds) < often for each in rounds.values() for lasts in each]
        if len(chance) > len(recent) / 25 or recent[-1] in chance:
            continue
        turns = tuple(_due_time(*each, rounds, period) for each, rounds in zip(around, found, strict=True))
        starts = [each.start - margin for each in turns]
        free = sum(
            max(after - turn.usual, 0.0) for turn, after in zip(turns, [*starts[1:], starts[0] + period], strict=True)
        )
        busy = 1 - free / period
        if busy < (_LONGER if best[1] else 1) * best[0]:
            best = busy, period, margin, turns
    return best[1:]


def _around(spans: Sequence[Span], period: float) -> list[Span]:
    """What starts with durations cover, of this period, the one before and the next one."""
    return _merged(
        (start + turn, start + seconds + turn) for start, seconds in spans for turn in (-period, 0.0, period)
    )


def _rounds(span: Span, runs: Sequence[PastWrite], period: float) -> Mapping[int, list[PastWrite]]:
    """The runs in a span of the clock, by the number of the period."""
    rounds: dict[int, list[PastWrite]] = {}
    for run in runs:
        number, within = divmod(run.end - run.seconds - _MONDAY - span[0] + _SAME, period)
        if within <= span[1] - span[0] + _SAME:
            rounds.setdefault(int(number), []).append(run)
    return rounds


def _due_time(start: float, end: float, rounds: Mapping[int, list[PastWrite]], period: float) -> DueTime:
    counts = [len(each) for each in rounds.values()]
    ends = [(each[-1].end - _MONDAY - start) - number * period + start for number, each in rounds.items()]
    return DueTime(start, end, max(counts[:-1] or counts), median(ends))  # the newest round may go on


def _foretold(spans: Sequence[Span], busy: Callable[[Sequence[Span]], list[Span]], *, lengths: bool = False) -> bool:
    """Whether the older spans cover the newest quarter: all but one of 25, and the last two in any case."""
    newest = max(len(spans) // 4, 1)
    older, newer = spans[:-newest], spans[-newest:]
    if not older:
        return False
    known = busy(older)

    def covered(span: Span) -> bool:
        start, end = (span[0], sum(span)) if lengths else span
        return any(first <= start and end <= last for first, last in known)

    missed = [each for each in newer if not covered(each)]
    return len(missed) <= newest // 25 and not set(missed) & set(newer[-2:])


def _margin(values: Sequence[float], period: float, count: int) -> float:
    """A quarter of the distance between the quartiles, or a part of the period, wider for few runs."""
    spread = 0.0
    if len(values) > 1:
        low, _, high = quantiles(values, n=4, method="inclusive")
        spread = (high - low) / 4
    wide = 1 + _FEW / count
    return max(_LEAST, min(_OF_PERIOD * period, _MOST) * wide, spread * wide)


def _gaps(spans: Sequence[Span], start: float, end: float | None = None) -> Iterator[Span]:
    """The spans between some, which are in order; after the last one only up to an ``end``."""
    for first, last in spans:
        if first > start:
            yield start, first
        start = max(start, last)
    if end is not None and start < end:
        yield start, end


def _merged(spans: Iterable[Span]) -> list[Span]:
    """The spans in order, those that touch as one."""
    merged: list[list[float]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    return [(start, end) for start, end in merged]


def common(series: Sequence[Sequence[Span]]) -> list[Span]:
    """The spans that lie inside a span of each of some series."""
    found = list(series[0]) if series else []
    for other in series[1:]:
        shared: list[Span] = []
        mine, theirs = 0, 0
        while mine < len(found) and theirs < len(other) and len(shared) < _WINDOWS:
            start, end = max(found[mine][0], other[theirs][0]), min(found[mine][1], other[theirs][1])
            if start < end:
                shared.append((start, end))
            if found[mine][1] <= other[theirs][1]:
                mine += 1
            else:
                theirs += 1
        found = shared
    return found


def _clock(seconds: float) -> str:
    minutes = round(seconds / 60) % (24 * 60)
    return f"{minutes // 60:02}:{minutes % 60:02}"
