"""What the jobs of a table cost each other, as it is and as it could be.

A job fails if another one commits while it runs and the conflict rules say so. Which pairs fail follows from replaying
past writes against each other; how often, from arrival rates by the hour and durations. With another layout or another
setting of the table, the same computation tells what would be left.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import accumulate

from tablectl.conflicts.databricks_rules import row_level
from tablectl.conflicts.past_writers import metric_seconds
from tablectl.conflicts.rules import decide
from tablectl.conflicts.transactions import (
    NOTHING,
    Conflict,
    ConflictOutcome,
    ConflictResult,
    CurrentTransaction,
    Reads,
)
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
_WEEK = 7 * _DAY * HOUR
_APPENDS = frozenset({Kind.APPEND, Kind.STREAMING_APPEND})
Decide = Callable[[CommittedTransaction, CurrentTransaction], ConflictOutcome]
_BY_FILE = frozenset({Conflict.DELETE_READ, Conflict.DELETE_DELETE, Conflict.WRITE})
"""Conflicts that need a common file. Added files need none: on a partition, Delta counts each as read (delta-3)."""
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
    files: int = 0
    """The files of the table; 0 if unknown."""
    moving: bool = False
    """Whether an UPDATE or MERGE is taken to move its rows to any partition: the log does not say what it sets."""

    @staticmethod
    def of(live: LiveTable, jobs: Jobs) -> Layout:
        """The real layout of a table."""
        physical = live.schema.physical_names(live.partition_columns)
        layout = Layout(tuple(live.partition_columns), physical, files=live.files or 0)
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
    most: Mapping[str, float] = field(default_factory=dict)
    """The seconds a week that each job has for writes that fail."""

    @property
    def failed(self) -> float:
        """Failed writes a week."""
        return sum(each.failed for each in self.pairs)

    @property
    def seconds(self) -> float:
        """Seconds of work a week."""
        return sum(each.seconds for each in self.pairs)

    def times(self, factor: float) -> ConflictLoss:
        """The loss, corrected by a measured number of failures. A job loses at most the time that it has."""
        lost: defaultdict[str, float] = defaultdict(float)
        for each in self.pairs:
            lost[each.failing] += each.seconds * factor
        part = {name: factor * min(1.0, self.most.get(name, lost[name]) / lost[name]) for name in lost if lost[name]}
        pairs = (
            replace(each, failed=each.failed * part[each.failing], seconds=each.seconds * part[each.failing])
            for each in self.pairs
            if part.get(each.failing)
        )
        return replace(self, pairs=tuple(pairs))


def conflict_loss(jobs: Jobs, layout: Layout, context: ConflictContext) -> ConflictLoss:
    """The expected loss of a week.

    ``context`` gives the settings of the table. Each write follows the rules of its own client.
    """
    chosen = jobs.jobs[:_MOST_JOBS]
    hours = _Hours.of(jobs.period)
    rates = [hours.rates([write.end for write in job.writes]) for job in chosen]
    # Many writes are equal as transactions, so most pairs are decided once.
    decided = cache(decide)
    shares = [[_share(one, other, layout, context, decided) for other in chosen] for one in chosen]
    pairs = [
        pair
        for index, job in enumerate(chosen)
        for pair in _pairs(job, shares[index], rates, [each.name for each in chosen], hours, jobs.weeks)
    ]
    pairs.sort(key=lambda pair: (-pair.seconds, pair.failing, pair.committing))
    most = {job.name: _time_left(job, jobs.weeks) for job in chosen}
    return ConflictLoss(tuple(pairs), any(share for row in shares for share in row), most).times(1.0)


def _time_left(job: Job, weeks: float) -> float:
    """The seconds a week in which a job can have failed: those of as many runs as there are at once, less what its
    writes took. A duration that is not recorded is an upper bound, and does not count.
    """
    took = [(write.end, metric_seconds(write.commit, "executionTimeMs") or 0.0) for write in job.writes]
    steps = sorted(
        [(end, -1) for end, seconds in took if seconds] + [(end - seconds, 1) for end, seconds in took if seconds]
    )
    at_once = max(accumulate(step for _, step in steps), default=1)
    return max(_WEEK * max(at_once, 1) - sum(seconds for _, seconds in took) / weeks, 0.0) if weeks > 0 else 0.0


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
    """The share of the committing job's writes that fail a write of the other."""
    if failing is committing and not failing.overlaps_itself:
        return 0.0
    named = failing.name in layout.explicit
    all_current = [(each, current_of(each, layout, context, named=named)) for each in failing.writes[:_SAMPLE]]
    all_committed = [(each, committed_of(each, layout)) for each in committing.writes[:_SAMPLE]]
    found = [
        _chance(write, current, other, decided(committed, current), layout)
        for write, current in all_current
        for other, committed in all_committed
    ]
    return sum(found) / len(found)


def _chance(write: Write, current: CurrentTransaction, other: Write, outcome: ConflictOutcome, layout: Layout) -> float:
    """The chance that a write fails after another one, as each partition stands for one file of it.

    What depends on common files (D58) is certain then, but for the share of the partition's files that both touch. With
    row-level concurrency it depends on common rows: none, if both restrict a column to different values (D26).
    """
    depends = outcome.result is ConflictResult.MAY_FAIL and current.client.family.row_level
    if outcome.result is ConflictResult.COMMITS:
        return 0.0
    if depends and row_level(current)[0]:
        columns = {each.column for each in write.conditions if each.shape == "equals"}
        ours = [(write.values(each), other.values(each)) for each in columns]
        apart = any(mine and theirs and not mine & theirs for mine, theirs in ours)
        same = bool(ours) and all(mine == theirs for mine, theirs in ours)
        return 0.0 if apart else 1.0 if same else _HALF
    if not (depends or outcome.result is ConflictResult.FAILS):
        return _HALF
    files = layout.files / len(layout.known)
    if outcome.conflict not in _BY_FILE or files <= 1 or current.kind in _WHOLE:
        return 1.0
    return 1 - (1 - min(other.files.removed_files / files, 1.0)) ** max(write.files.removed_files, 1)


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
