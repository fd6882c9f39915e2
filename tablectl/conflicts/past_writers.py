"""The writers of a table's history as transactions, and what commits are expected to cost them.

Which of them fail follows from the conflict rules, as for a phase (``statement_phases``); when and how long they write
follows from their commits.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median, median_low
from types import MappingProxyType

from tablectl.conflicts.expected_writers import ExpectedWriters, expected_writers
from tablectl.conflicts.rules import decide, decide_all
from tablectl.conflicts.transactions import CurrentTransaction
from tablectl.delta.client_families import UNKNOWN
from tablectl.model.commit import Commit
from tablectl.model.commit_contents import CommittedTransaction, Kind
from tablectl.model.expected_loss import (
    DAYS,
    LONGEST_WRITE,
    CommitWindow,
    ExpectedLoss,
    PastWrite,
    Period,
    WeekOfLoss,
    in_flight,
    summed,
    week_of_loss,
)
from tablectl.model.plan import Basis
from tablectl.model.rhythm import Rhythm, rhythm_of
from tablectl.model.writers_in_history import STAMP

_DAY = 86_400.0
_NEWEST = 5
_UNKNOWN_SECONDS = 60.0
"""The duration of the writes of a writer of which the log tells nothing."""
_AHEAD = 3600.0
"""Seconds by which the clocks of writers may be ahead of the newest commits."""
_KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        "STREAMING UPDATE": Kind.STREAMING_APPEND,
        "UPDATE": Kind.UPDATE,
        "DELETE": Kind.DELETE,
        "MERGE": Kind.MERGE,
        "OPTIMIZE": Kind.OPTIMIZE,
        "REORG": Kind.OPTIMIZE,
    }
)
_APPENDS = frozenset({"WRITE", "COPY INTO", "INSERT"})
_NO_WRITES = frozenset({"ROW TRACKING BACKFILL", "VACUUM START", "VACUUM END", "CREATE TABLE", "CLONE"})

_SOURCES = ("jobName", "jobId", "notebookId")
"""What Databricks records of the source of a commit, and is the same for each of its runs."""

WriterKey = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PastWriter:
    """Writes of the past by one writer: one operation of one client, job, stream or user."""

    names: frozenset[str]
    """The names that its commits have: job, notebook, user, stream."""
    current: CurrentTransaction
    """What it is for the conflict rules."""
    writes: tuple[PastWrite, ...]

    @property
    def name(self) -> str:
        """``MERGE by etl``."""
        by = f" by {' and '.join(sorted(self.names)[:2])}" if self.names else ""
        return f"{self.current.kind}{by}"


@dataclass(frozen=True, slots=True)
class PastWriters:
    """The writers of a table, and the time in which all their writes are known."""

    writers: tuple[PastWriter, ...]
    period: Period

    @property
    def writes(self) -> int:
        return sum(len(each.writes) for each in self.writers)

    def without(self, names: Collection[str]) -> PastWriters:
        """The writers that have none of some names, such as those that use guards."""
        return replace(self, writers=tuple(each for each in self.writers if not each.names & set(names)))

    def named(self) -> PastWriters:
        """The writers whose commits have a name."""
        return replace(self, writers=tuple(each for each in self.writers if each.names))


def past_writers(commits: Sequence[Commit], basis: Basis, dialect: str, now: float | None = None) -> PastWriters | None:
    """The writers of some commits, newest first; ``None`` if no commit has a usable time.

    Commits by tablectl do not count, nor do commits whose time is after ``now`` (in seconds since the epoch; by default
    the newest commit) or more than 30 days before it.
    """
    period = known_period(commits, now)
    if period is None:
        return None
    times = {each.version: each.timestamp / 1000 for each in commits if _inside(each, period)}
    found: dict[WriterKey, list[Commit]] = {}
    for commit in commits:
        if commit.version in times and is_write(commit):
            client = (commit.client.engine, *map(str, commit.client.version))
            facts = (str(commit.blind_append), str(commit.overwrites), str(commit.schema_writer))
            found.setdefault((commit.operation, *facts, *sorted(names_of(commit)), *client), []).append(commit)
    return PastWriters(tuple(_writer(group, times, basis, dialect) for group in found.values()), period)


def is_write(commit: Commit) -> bool:
    """Whether a commit was made by a writer of data, and not by an apply or by the creation of the table."""
    ours = commit.user_metadata.startswith(STAMP)
    return commit.changes_data and commit.version > 0 and not ours and commit.operation not in _NO_WRITES


def loss_of(past: PastWriters, statements: Iterable[Sequence[CommittedTransaction]]) -> WeekOfLoss:
    """The expected loss of statements with these commits in one window, for each hour of the week."""
    every = tuple(statements)
    windows = [(each, CommitWindow(_failing(every, each.current))) for each in past.writers]
    return summed(week_of_loss(each.writes, past.period, window) for each, window in windows if window.commits)


def loss_within(
    past: PastWriters, statements: Iterable[Sequence[CommittedTransaction]], period: Period
) -> ExpectedLoss:
    """What a window at a random moment of a short time would have cost."""
    every = tuple(statements)
    windows = ((each, CommitWindow(_failing(every, each.current))) for each in past.writers)
    return sum((in_flight(each.writes, period, window) for each, window in windows if window.commits), ExpectedLoss())


@dataclass(frozen=True, slots=True)
class KnownJob:
    """A writer with a rhythm, which the statements would fail."""

    name: str
    rhythm: Rhythm
    writer: PastWriter

    @property
    def text(self) -> str:
        """``MERGE by etl: runs on 3 days, each between 01:00 and 05:00 UTC``."""
        limits = [each.at_most for each in self.writer.writes if each.at_most is not None]
        return f"{self.name}: {self.rhythm.text}" + (
            f", at most {median(limits) / 60:,.0f} min each" if limits and self.rhythm.period >= _DAY else ""
        )


def known_jobs(past: PastWriters, statements: Iterable[Sequence[CommittedTransaction]]) -> tuple[KnownJob, ...]:
    """The writers with a rhythm that some statements would fail."""
    every = tuple(statements)
    failing = (each for each in past.writers if _failing(every, each.current))
    found = ((each, rhythm_of(each.writes, past.period)) for each in failing)
    return tuple(KnownJob(each.name, rhythm, each) for each, rhythm in found if rhythm)


def _failing(statements: Sequence[Sequence[CommittedTransaction]], current: CurrentTransaction) -> int:
    """How many commits fail a writer that is in flight. An outcome that is not certain counts."""
    return sum(
        max(sum(not decide(each, current).succeeds for each in made), 1)
        for made in statements
        if not decide_all(made, current).succeeds
    )


def known_period(commits: Sequence[Commit], now: float | None) -> Period | None:
    """The time in which the commits are known. Clocks of writers may be wrong: a time far after the times of newer
    commits does not count.
    """
    newest = sorted(each.timestamp / 1000 for each in commits[:_NEWEST] if each.timestamp > 0)
    if not newest:
        return None
    latest = newest[len(newest) // 2] + DAYS * _DAY
    times: list[float] = []
    for time in (each.timestamp / 1000 for each in commits if each.timestamp > 0):
        if time <= latest:
            times.append(time)
            latest = min(latest, time + _AHEAD)
    end = max(times, default=latest) if now is None else now
    known = [each for each in times if each <= end]
    return Period(max(min(known, default=end), end - DAYS * _DAY), end)


def _inside(commit: Commit, period: Period) -> bool:
    return commit.timestamp > 0 and period.start <= commit.timestamp / 1000 <= period.end


def names_of(commit: Commit) -> frozenset[str]:
    """The names that a commit has: job, notebook, user, stream."""
    sources = (*(commit.job.get(key, "") for key in _SOURCES), commit.user)
    return frozenset(filter(None, (*sources, *(each.app_id for each in commit.transactions))))


def _writer(commits: Sequence[Commit], times: Mapping[int, float], basis: Basis, dialect: str) -> PastWriter:
    commit = commits[0]
    alone = replace(ExpectedWriters.of(basis, dialect), clients=(commit.client,), schema_writers=False, overwrites=True)
    kind = kind_of(commit)
    found = next(each.current for each in expected_writers(alone) if each.name == kind)
    return PastWriter(
        names_of(commits[0]), replace(found, metadata=found.metadata or commit.schema_writer), _writes(commits, times)
    )


def write_seconds(commits: Sequence[Commit], times: Mapping[int, float]) -> list[float]:
    """The durations of the writes of one writer, in seconds. ``times`` are those of all commits, by version."""
    return [each.seconds for each in _writes(commits, times)]


def _writes(commits: Sequence[Commit], times: Mapping[int, float]) -> tuple[PastWrite, ...]:
    """The writes of one writer, with their durations.

    A commit without a record took at least the time since its first file, and at most the time since the version that
    it read. Between these limits, it is like the recorded ones of its writer, otherwise like the usual estimate.
    """
    bounds = [(_least(each, times), _bound(each, times)) for each in commits]
    known = [each for each in map(_measured, commits) if each is not None]
    known = known or [_estimate(*each) for each in bounds if each != (0.0, None)]
    usual = median_low(known) if known else _UNKNOWN_SECONDS
    return tuple(
        PastWrite(times[each.version], measured)
        if (measured := _measured(each)) is not None
        else PastWrite(times[each.version], min(max(usual, least), most or LONGEST_WRITE), most)
        for each, (least, most) in zip(commits, bounds, strict=True)
    )


def _estimate(least: float, most: float | None) -> float:
    """The duration between two limits.

    With Spark 4.2, the time since the first of 16 files was 84 % of the duration, of 4 files 40 %. A single file tells
    nothing: then it is the geometric mean of a second and the longest possible time.
    """
    middle = math.sqrt(most) if most is not None and most > 1 else 0.0
    return min(max(1.5 * least, middle), LONGEST_WRITE if most is None else max(most, least))


def _least(commit: Commit, times: Mapping[int, float]) -> float:
    """The time since the first file of a commit. A restored or cloned file is older than the write."""
    taken = times[commit.version] - commit.first_file / 1000 if commit.first_file else 0.0
    most = _bound(commit, times)
    return taken if 0 < taken <= (LONGEST_WRITE if most is None else most) else 0.0


def _measured(commit: Commit) -> float | None:
    """The duration that a commit records, in seconds; ``None`` if it records none that is possible."""
    return metric_seconds(commit, "executionTimeMs") or metric_seconds(commit, "execution_time_ms")


def metric_seconds(commit: Commit, name: str) -> float | None:
    """A metric of a commit in milliseconds, in seconds; ``None`` if it is not a possible duration above zero."""
    seconds = commit.metric(name) / 1000
    return seconds if 0 < seconds <= LONGEST_WRITE else None


def _bound(commit: Commit, times: Mapping[int, float]) -> float | None:
    """The time since the version that a commit read: it took no longer than that, in seconds."""
    if commit.read_version is None or not commit.read_version < commit.version:
        return None
    before = times.get(commit.read_version)
    taken = times[commit.version] - before if before is not None else -1.0
    return taken if 0 <= taken <= LONGEST_WRITE else None


def kind_of(commit: Commit) -> Kind:
    """The kind of transaction. Unknown operations count as a MERGE: they read and change everything."""
    if commit.overwrites:
        return Kind.OVERWRITE
    if commit.operation in _APPENDS and commit.parameters.get("mode", "Append").lower() != "overwrite":
        family = commit.client.family
        reads = commit.blind_append is False and (family.records_blind_appends or family is UNKNOWN)
        return Kind.READING_INSERT if reads else Kind.APPEND
    return _KINDS.get(commit.operation, Kind.MERGE)
