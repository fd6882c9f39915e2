"""What the jobs of a table cost each other, as it is and as it could be.

A job fails if another one commits while it runs and the conflict rules say so. Which pairs fail follows from replaying
past writes against each other; how often, from arrival rates by the hour and durations. With another layout or another
setting of the table, the same computation tells what would be left.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from tablectl.conflicts.rules import decide
from tablectl.conflicts.transactions import NOTHING, ConflictResult, CurrentTransaction, Reads
from tablectl.insight.advice.jobs import Job, Jobs, Write
from tablectl.insight.conflict_context import ConflictContext
from tablectl.model.commit_contents import CommittedTransaction, File, Kind, Partition, PartitionValues
from tablectl.model.expected_loss import HOUR, HOURS, Period, hour_of_week, hours_between
from tablectl.model.table import LiveTable

_SAMPLE = 8
"""The number of writes of a job that are replayed: the newest ones."""
_MOST_JOBS = 16
_MOST_PARTITIONS = 200
_CERTAIN = 0.95
"""The highest chance of a failure that is computed with: beyond it a job would never end."""
_HALF = 0.5
_DAYS_FOR_HOURS, _DAYS_FOR_WEEKS = 3, 14
_DAY = 24
_APPENDS = frozenset({Kind.APPEND, Kind.STREAMING_APPEND})
Decide = Callable[[CommittedTransaction, CurrentTransaction], ConflictResult]
_WHOLE = frozenset({Kind.OVERWRITE, Kind.READING_INSERT})
_MOVES = frozenset({Kind.UPDATE, Kind.MERGE})


@dataclass(frozen=True, slots=True)
class Layout:
    """The partitions of a table, real or assumed."""

    columns: tuple[str, ...] = ()
    """Empty for a table without partitions."""
    physical: tuple[str, ...] = ()
    """The names of the columns in the log."""
    assumed: bool = False
    """Whether the table does not have them yet: then the literals of a write tell its partition."""
    known: tuple[Partition, ...] = ((),)
    """The partitions that past writes touched. A value that the log does not tell is ``None``, like no value."""
    explicit: frozenset[str] = frozenset()
    """Jobs whose conditions are taken to name the partitions that they touch."""
    moving: bool = False
    """Whether an UPDATE or MERGE is taken to move its rows to any partition: the log does not say what it sets."""

    @staticmethod
    def of(live: LiveTable, jobs: Jobs) -> Layout:
        """The real layout of a table."""
        layout = Layout(tuple(live.partition_columns), live.schema.physical_names(live.partition_columns))
        writes = [write.files for job in jobs.jobs for write in job.writes]
        touched = {layout._partition(each) for files in writes for each in files.added | files.removed}
        return replace(layout, known=tuple(sorted(touched, key=str)[:_MOST_PARTITIONS]) or ((),))

    @staticmethod
    def assumed_by(column: str, jobs: Jobs) -> Layout:
        """The layout with one partition for each literal to which past writes restricted the column."""
        values = sorted({each for job in jobs.jobs for write in job.writes for each in write.values(column)})
        return Layout((column,), assumed=True, known=tuple((each,) for each in values[:_MOST_PARTITIONS]) or ((None,),))

    def touched(self, write: Write, files: frozenset[PartitionValues]) -> tuple[Partition, ...]:
        """The partitions in which a write added or removed these files."""
        if not self.columns or not files:
            return ((),) if files else ()
        if self.assumed:
            return self.admitted(write) or self.known
        return tuple(sorted(map(self._partition, files), key=str))

    def added(self, write: Write) -> tuple[Partition, ...]:
        """The partitions in which a write added files."""
        moves = self.moving and write.kind in _MOVES and bool(write.files.added)
        return self.known if moves else self.touched(write, write.files.added)

    def admitted(self, write: Write) -> tuple[Partition, ...] | None:
        """The partitions that its conditions leave; ``None`` for all."""
        if not self.columns:
            return None
        restricted = {place: values for place, each in enumerate(self.columns) if (values := write.values(each))}
        if not restricted:
            return None
        return tuple(
            each
            for each in self.known
            if all(each[place] is None or each[place] in values for place, values in restricted.items())
        )

    def _partition(self, values: PartitionValues) -> Partition:
        """The partition of a file, in the order of the columns. A log need not tell it, and an earlier layout had other
        columns.
        """
        told = dict(values)
        return tuple(told.get(name) for name in self.physical)


@dataclass(frozen=True, slots=True)
class PairLoss:
    """What one job costs another."""

    failing: str
    """The name of the job that fails."""
    committing: str
    """The name of the job because of which it fails."""
    failed: float
    """The expected number of failed writes a week."""
    seconds: float
    """The seconds of work of these writes."""


@dataclass(frozen=True, slots=True)
class ConflictLoss:
    """What all jobs of a table cost each other."""

    pairs: tuple[PairLoss, ...] = ()
    """The largest loss first."""
    conflicting: bool = False
    """Whether two jobs conflict if they run at the same time, however seldom that is."""

    @property
    def failed(self) -> float:
        """Failed writes a week."""
        return sum(each.failed for each in self.pairs)

    @property
    def seconds(self) -> float:
        """Seconds of work a week."""
        return sum(each.seconds for each in self.pairs)

    def times(self, factor: float) -> ConflictLoss:
        """The loss, corrected by a measured number of failures."""
        pairs = (
            PairLoss(each.failing, each.committing, each.failed * factor, each.seconds * factor) for each in self.pairs
        )
        return ConflictLoss(tuple(pairs), self.conflicting)


def conflict_loss(jobs: Jobs, layout: Layout, context: ConflictContext) -> ConflictLoss:
    """The expected loss of a week.

    ``context`` gives the settings of the table. Each write follows the rules of its own client.
    """
    chosen = jobs.jobs[:_MOST_JOBS]
    hours = _Hours.of(jobs.period)
    rates = [hours.rates([write.end for write in job.writes]) for job in chosen]
    # Many writes are equal as transactions, so most pairs are decided once.
    decided = cache(lambda committed, current: decide(committed, current).result)
    shares = [[_share(one, other, layout, context, decided) for other in chosen] for one in chosen]
    pairs = [
        pair
        for index, job in enumerate(chosen)
        for pair in _pairs(job, shares[index], rates, [each.name for each in chosen], hours, jobs.weeks)
    ]
    pairs.sort(key=lambda pair: (-pair.seconds, pair.failing, pair.committing))
    return ConflictLoss(tuple(pairs), any(share for row in shares for share in row))


def _pairs(
    job: Job,
    shares: Sequence[float],
    rates: Sequence[Sequence[float]],
    names: Sequence[str],
    hours: _Hours,
    weeks: float,
) -> list[PairLoss]:
    """The loss of one job by each other one."""
    failed, seconds = [0.0] * len(names), [0.0] * len(names)
    for write in job.writes:
        hour = hours.bucket(write.end)
        expected = [rate[hour] * share * write.seconds for rate, share in zip(rates, shares, strict=True)]
        total = sum(expected)
        if total <= 0 or weeks <= 0:
            continue
        chance = min(1 - math.exp(-total), _CERTAIN)
        lost = chance / (1 - chance) / weeks
        for index, each in enumerate(expected):
            failed[index] += lost * each / total
            seconds[index] += lost * each / total * write.seconds
    return [PairLoss(job.name, name, *each) for name, *each in zip(names, failed, seconds, strict=True) if each[0] > 0]


@dataclass(frozen=True, slots=True)
class _Hours:
    """The hours by which arrivals are counted: of the week, of the day, or one for all, as the time allows."""

    buckets: int
    exposed: tuple[float, ...]

    @staticmethod
    def of(period: Period) -> _Hours:
        days = period.seconds / (_DAY * HOUR)
        buckets = HOURS if days >= _DAYS_FOR_WEEKS else _DAY if days >= _DAYS_FOR_HOURS else 1
        exposed = [0.0] * buckets
        for hour, length in hours_between(period.start, period.end):
            exposed[hour % buckets] += length
        return _Hours(buckets, tuple(exposed))

    def bucket(self, time: float) -> int:
        return hour_of_week(time) % self.buckets

    def rates(self, times: Sequence[float]) -> tuple[float, ...]:
        """The arrivals per second in each bucket."""
        counts = [0] * self.buckets
        for time in times:
            counts[self.bucket(time)] += 1
        return tuple(
            count / max(length, 1.0) if count else 0.0 for count, length in zip(counts, self.exposed, strict=True)
        )


def _share(failing: Job, committing: Job, layout: Layout, context: ConflictContext, decided: Decide) -> float:
    """The share of the committing job's writes that fail a write of the other; an uncertain outcome counts half."""
    if failing is committing and not failing.overlaps_itself:
        return 0.0
    outcomes: Mapping[ConflictResult, float] = {ConflictResult.COMMITS: 0.0, ConflictResult.FAILS: 1.0}
    named = failing.name in layout.explicit
    all_current = [current_of(each, layout, context, named=named) for each in failing.writes[:_SAMPLE]]
    all_committed = [committed_of(each, layout) for each in committing.writes[:_SAMPLE]]
    found = [outcomes.get(decided(one, other), _HALF) for other in all_current for one in all_committed]
    return sum(found) / len(found)


def committed_of(write: Write, layout: Layout) -> CommittedTransaction:
    """A past write as the committed transaction. Each partition stands for one file of it: files change, and which of
    them two writes share does not follow from the log.
    """
    return CommittedTransaction(
        kind=write.kind,
        added=tuple(File(f"new {each}", each) for each in layout.added(write)),
        removed=tuple(File(f"{each}", each) for each in layout.touched(write, write.files.removed)),
        blind=write.commit.blind_append is True,
        data_change=write.kind not in {Kind.OPTIMIZE, Kind.REORG},
    )


def current_of(write: Write, layout: Layout, context: ConflictContext, *, named: bool = False) -> CurrentTransaction:
    """A past write as the current transaction, with the rules of its own client. With ``named``, its condition names
    the partitions that it touched.
    """
    return CurrentTransaction(
        kind=write.kind,
        client=write.commit.client,
        level=context.level,
        partitioned=bool(layout.columns),
        reads=_reads(write, layout, named=named),
        removes=tuple(f"{each}" for each in layout.touched(write, write.files.removed)),
        data_change=write.kind not in {Kind.OPTIMIZE, Kind.REORG},
        platform=context.platform,
    )


def _reads(write: Write, layout: Layout, *, named: bool) -> Reads:
    if write.kind in _APPENDS:
        return NOTHING
    if write.kind in _WHOLE:
        return Reads(partitions=None, files=tuple(f"{each}" for each in layout.known))
    touched = layout.touched(write, write.files.removed)
    admitted = touched if named or write.kind is Kind.OPTIMIZE else layout.admitted(write)
    return Reads(partitions=admitted if layout.columns else None, files=tuple(f"{each}" for each in touched))
