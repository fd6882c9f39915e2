"""What the log of a table shows after its change: files of failed writes, streams that stopped, writers that are late.

Writers and their usual gaps come from the commits before the change (``usual_writers``). Pure, except for ``observe``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from tablectl.applying.context import LiveReader
from tablectl.applying.observed_writers import is_writer, name_of
from tablectl.applying.run_report import CanaryTable
from tablectl.conflicts.past_writers import write_seconds
from tablectl.frozen import frozen
from tablectl.model.errors import LiveError, one_line
from tablectl.model.plan import TablePlan
from tablectl.model.streams import StreamPosition, StreamWriter
from tablectl.model.table import Commit
from tablectl.model.text import minutes_text
from tablectl.model.usual_gap import LATE, usual_gap
from tablectl.storage.table_log import DataFile

LOOK_BACK = 500
"""The commits before the change that show who writes a table, and how often."""
NOTHING = "nothing observed: no write was committed since the change"
_LEAST_YOUNG = 60.0
"""Seconds for which a file without a commit may belong to a write that has not ended yet, however short writes are."""


@frozen
class UsualWriter:
    """A writer before the change."""

    name: str
    last: float
    """Its last commit before the change, in seconds since the epoch."""
    gap: float
    """Seconds between its commits, usually."""
    stream: bool
    """Whether it is a Structured Streaming query, by the transaction ids of its commits."""

    def is_late(self, last: float, now: float) -> bool:
        """Whether it is late at a moment, after its last commit."""
        return now - max(last, self.last) > LATE * self.gap


@frozen
class Baseline:
    """A table directly after its change."""

    table: TablePlan
    first: int
    """The version of the first commit of the change."""
    last: int
    """The version of its last commit."""
    since: float
    """The time of its last commit, in seconds since the epoch, by the clock of its log."""
    files_since: float
    """The same, or the time of the first look by our clock if that is earlier: the clock of the log may be ahead."""
    writers: tuple[UsualWriter, ...]
    longest_write: float
    """Seconds that a write takes at most, by the writes before the change."""


def baseline_of(table: TablePlan, made: Sequence[Commit], before: Sequence[Commit], began: float) -> Baseline:
    """The baseline from the commits of the change and from those before it, each newest first. ``began`` is the time of
    the first look, in seconds since the epoch.
    """
    times = {each.version: each.timestamp / 1000 for each in (*made, *before) if each.timestamp > 0}
    since = times.get(made[0].version, 0.0)
    writes = [each for each in before if is_writer(each) and each.version in times]
    longest = max(write_seconds(writes, times), default=0.0)
    return Baseline(
        table=table,
        first=made[-1].version,
        last=made[0].version,
        since=since,
        files_since=min(since, began),
        writers=usual_writers(writes, since),
        longest_write=max(longest, _LEAST_YOUNG),
    )


def usual_writers(writes: Iterable[Commit], since: float) -> tuple[UsualWriter, ...]:
    """The writers that write regularly and were not late already at a moment."""
    found: dict[str, list[Commit]] = {}
    for commit in writes:
        found.setdefault(name_of(commit), []).append(commit)
    usual = []
    for name, commits in sorted(found.items()):
        times = [each.timestamp / 1000 for each in commits]
        gap = usual_gap(times)
        if gap is None:
            continue
        writer = UsualWriter(name, max(times), gap, bool(commits[0].transactions))
        if not writer.is_late(writer.last, since):
            usual.append(writer)
    return tuple(usual)


def observe(reader: LiveReader, baseline: Baseline, now: float) -> CanaryTable:
    """What is seen of a table at a moment. What cannot be read is unknown, and says why."""
    location, unknown = baseline.table.location, list[str]()
    commits: Sequence[Commit] | None = None
    files: Sequence[DataFile] | None = None
    try:
        commits = [each for each in reader.commits(location, after=baseline.first - 1) if is_writer(each)]
    except LiveError as error:
        unknown.append(f"its log cannot be read: {one_line(error)}")
    try:
        files = reader.unnamed(location, after=baseline.first - 1, since=baseline.files_since)
    except LiveError as error:
        unknown.append(f"its files cannot be listed: {one_line(error)}")
    late = () if commits is None else _late(baseline, commits, now)
    streams = _declared_streams(reader, baseline, now)
    ended = None if files is None else [each for each in files if now - each.modified >= baseline.longest_write]
    return CanaryTable(
        table=baseline.table.name,
        writes=None if commits is None else len(commits),
        orphans=None if ended is None else len(ended),
        silent=tuple(each.name for each in late if not each.stream),
        stopped=(*(each.name for each in late if each.stream), *streams.stopped),
        unknown_streams=len(streams.unknown),
        unknown=(*unknown, *streams.unknown),
        notes=(
            *streams.notes,
            *_notes(baseline, commits, late),
            *_young(baseline, len(files or ()) - len(ended or ())),
        ),
    )


@dataclass(slots=True)
class _DeclaredStreams:
    """What is seen of the declared streams that read a table."""

    stopped: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def _declared_streams(reader: LiveReader, baseline: Baseline, now: float) -> _DeclaredStreams:
    """A stream that reads the table has stopped if rows written since the change have waited for it for twice its usual
    gap.
    """
    table, found = baseline.table, _DeclaredStreams()
    declared = table.basis.options.streams
    for state in reader.streams(declared, table.table_id, table.location) if declared else ():
        if isinstance(state, StreamWriter):
            continue  # its commits are watched as those of every writer
        if not isinstance(state, StreamPosition):
            found.unknown.append(f"the stream {state.name} {state.text}")
            continue
        try:
            waiting = _first_unread(reader, baseline, state)
        except LiveError as error:
            found.unknown.append(f"the stream {state.name}: {one_line(error)}")
            continue
        if waiting is None:
            continue
        if state.gap is None:
            found.notes.append(f"the stream {state.name} has finished too few batches to have a usual gap")
        elif now - waiting > LATE * state.gap:
            found.stopped.append(f"the stream {state.name}")
    return found


def _first_unread(reader: LiveReader, baseline: Baseline, state: StreamPosition) -> float | None:
    """When the first rows were written since the change that a stream has not read; ``None`` if there are none."""
    location, after = baseline.table.location, max(state.read if state.read is not None else -1, baseline.last)
    unread = reader.row_versions(location, after=after)
    if not unread:
        return None
    commits = reader.commits(location, after=after)
    return next((each.timestamp / 1000 for each in commits if each.version == min(unread)), None)


def _late(baseline: Baseline, commits: Sequence[Commit], now: float) -> tuple[UsualWriter, ...]:
    last: dict[str, float] = {}
    for commit in commits:
        last[name_of(commit)] = max(last.get(name_of(commit), 0.0), commit.timestamp / 1000)
    return tuple(each for each in baseline.writers if each.is_late(last.get(each.name, 0.0), now))


def _notes(baseline: Baseline, commits: Sequence[Commit] | None, late: Sequence[UsualWriter]) -> Iterator[str]:
    if commits is None:
        return
    if not commits:
        yield NOTHING
    seen = {name_of(commit) for commit in commits}
    for each in baseline.writers:
        if each.name not in seen and each not in late:
            yield f"{each.name} has not committed yet; it is late {minutes_text(LATE * each.gap)} after its last commit"


def _young(baseline: Baseline, files: int) -> Iterator[str]:
    if files:
        what = "1 data file without a commit is" if files == 1 else f"{files:,} data files without a commit are"
        longest = minutes_text(baseline.longest_write)
        yield f"{what} younger than {longest}, and may be of writes that still run"
