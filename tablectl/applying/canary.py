"""``--canary``: some tables first, the others only if the logs of these show no failure (docs/many-tables.md).

Their logs show files of failed writes, streams that stopped and writers that are late. Writers and their usual gaps
come from the commits before the change (``usual_writers``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import chain, zip_longest

from tablectl.applying.observed_writers import is_writer, name_of
from tablectl.applying.run_context import LiveReader, RunContext
from tablectl.applying.waits import GO, Answer, Awaited, End, Later, wait_here
from tablectl.conflicts.past_writers import write_seconds
from tablectl.leases.clock import StoppedError
from tablectl.model.commit import Commit
from tablectl.model.errors import ExitCode, LiveError, TablectlError, of_table, one_line
from tablectl.model.plan import TablePlan
from tablectl.model.run_report import CanaryRun, CanaryTable, RunOutcome, TableRun
from tablectl.model.safe_text import minutes_text
from tablectl.model.stamp import read_stamp
from tablectl.model.stream_progress import LATE, StreamPosition, StreamWriter, usual_gap
from tablectl.policies.config import RunSettings
from tablectl.storage.table_log import DataFile

STOPPED_HINT = (
    "find out what failed on the tables that were changed first. The same command looks at them again and goes on if "
    "the threshold is not reached any more; without `--canary` it goes on in any case; `tablectl undo` reverts them"
)
_SOAK = Awaited("soak", "for the first tables")
_LOOKS = 20
_SHORTEST_LOOK, _LONGEST_LOOK = 5.0, 60.0
_NOW = 0.001
_MOST_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Chosen:
    """The tables that are changed first."""

    names: frozenset[str]
    notes: tuple[str, ...] = ()


def choose(
    tables: Sequence[TablePlan], asked: int, groups: Iterable[Sequence[str]], together: AbstractSet[str]
) -> Chosen:
    """As many tables as asked for: one or more of each group of equal changes, tables with known writers before others.

    The tables in ``together`` share one window, so all of them are chosen or none; none if their groups have others.
    """
    applies = {table.name: table for table in tables}

    def rank(name: str) -> tuple[bool, bool]:
        return name in together, not applies[name].basis.client_list()

    ranked = [sorted(filter(applies.__contains__, group), key=rank) for group in groups]
    ranked = [group for group in ranked if group]
    wanted = max(asked, len(ranked))
    # The first table of each group, then the second of each, and so on.
    order = [name for name in chain.from_iterable(zip_longest(*ranked)) if name is not None]
    names = frozenset(order[:wanted])
    if names & together:
        names |= together
    return Chosen(names, tuple(_notes_of_choice(asked, len(ranked), len(names), len(tables))))


def _notes_of_choice(asked: int, groups: int, chosen: int, tables: int) -> list[str]:
    notes = []
    if groups > asked:
        notes.append(f"{groups} tables are changed first instead of {asked}: one of each group of equal changes")
    elif chosen > asked:
        notes.append(f"{chosen} tables are changed first instead of {asked}: some share a window (`window.together`)")
    if chosen == tables:
        every = f"all {tables} tables are" if tables > 1 else "the only table is"
        notes.append(f"{every} changed first, so no table is left to stop: nothing was watched")
    return notes


def soak(
    context: RunContext,
    tables: Sequence[TablePlan],
    runs: Mapping[str, TableRun],
    rest: Sequence[TablePlan],
) -> CanaryRun:
    """Watches tables that were changed, until a threshold is reached or the time is over.

    If an earlier run of the same plan changed a table, its time counts from that change. Without other tables that
    could be stopped, nothing is watched. A run that is stopped ends it.
    """
    clock, began = context.clock, context.clock.monotonic()
    wait, reason = _SoakWait(context, tables, runs), ""

    def tell(later: Later, waited: float) -> None:
        for table in tables:
            context.notify(later.event(table.name, waited))

    def pause(seconds: float) -> None:
        try:
            clock.sleep(seconds)
        except StoppedError:
            context.stop.set()

    if rest:
        answer = wait_here(wait.check, clock, tell, pause)
        reason = answer.message if isinstance(answer, End) else ""
    return CanaryRun(
        tables=tuple(wait.seen),
        soak_ms=round(wait.seconds * 1000),
        watched_ms=round((clock.monotonic() - began) * 1000),
        stop_if=_stop_if(context.config),
        reason=reason,
        not_started=tuple(table.name for table in rest) if reason else (),
    )


class _SoakWait:
    """Whether the other tables may start, by what is seen of those that were changed first."""

    def __init__(self, context: RunContext, tables: Sequence[TablePlan], runs: Mapping[str, TableRun]) -> None:
        self._context = context
        self._tables = tables
        self._runs = runs
        self.seconds = context.config.soak * 60
        """Seconds for which a table is watched after its change."""
        self._began, self._at = context.clock.monotonic(), context.clock.utc().timestamp()
        self._watched: Sequence[Baseline | CanaryTable] = ()
        self.seen = [CanaryTable(table=table.name) for table in tables]

    def check(self, now: float) -> Answer:
        """Look at the logs of the tables."""
        if self._context.stop.is_set():
            return GO  # no table starts in a run that is stopped
        waited = now - self._began
        found = self._watched or [CanaryTable(table=table.name, unknown=("not read yet",)) for table in self._tables]
        self._watched = [
            _find_baseline(self._context, table, self._at) if _is_unread(each) else each
            for table, each in zip(self._tables, found, strict=True)
        ]
        self.seen = [_look(self._context, each, waited) for each in self._watched]
        times = (
            _time_of(self._runs[table.name], each, self.seconds, self._at)
            for table, each in zip(self._tables, self._watched, strict=True)
        )
        most = max(times)
        left = most - waited
        reason = _why_rest_stays(self._context.config, self.seen, self._runs, over=left < _NOW)
        if reason:
            return End(RunOutcome.NO_WINDOW, reason, STOPPED_HINT)
        if left < _NOW:
            return GO
        words = f"done, watching its log for {minutes_text(left)} before other tables start"
        pause = min(left, max(_SHORTEST_LOOK, min(_LONGEST_LOOK, self.seconds / _LOOKS)))
        return Later(now + pause, _SOAK, words, most)


def _look(context: RunContext, watched: Baseline | CanaryTable, waited: float) -> CanaryTable:
    """What is seen of a table after some seconds. The clock of its log may be ahead of ours."""
    if isinstance(watched, CanaryTable):
        return watched
    name, now = watched.table.name, max(context.clock.utc().timestamp(), watched.since + waited)
    seen = of_table(name, lambda: observe(context.reader, watched, now))
    return CanaryTable(table=name, unknown=(one_line(seen),)) if isinstance(seen, TablectlError) else seen


def _find_baseline(context: RunContext, table: TablePlan, began: float) -> Baseline | CanaryTable:
    """What to compare a table with; or why it is not watched. Each of its commits for this plan counts, also those of
    an earlier run that was stopped.
    """
    found = of_table(table.name, lambda: _baseline(context, table, began))
    if isinstance(found, TablectlError):
        return CanaryTable(table=table.name, unknown=(f"its log cannot be read: {one_line(found)}",))
    return found


def _baseline(context: RunContext, table: TablePlan, began: float) -> Baseline | CanaryTable:
    commits = context.reader.commits(table.location, after=table.version)
    made = [each for each in commits if _is_ours(each, context.stamp.plan)]
    if not made:
        note = "not watched: it has no commit of this plan"
        return CanaryTable(table=table.name, writes=0, orphans=0, notes=(note,))
    first = made[-1].version
    every = context.reader.commits(table.location, after=max(first - LOOK_BACK, 0) - 1)
    return baseline_of(table, made, [each for each in every if each.version < first], began)


def _is_ours(commit: Commit, plan: str) -> bool:
    stamp = read_stamp(commit.user_metadata)
    return stamp is not None and stamp.plan == plan


def _is_unread(watched: Baseline | CanaryTable) -> bool:
    return isinstance(watched, CanaryTable) and bool(watched.unknown)


def _time_of(run: TableRun, watched: Baseline | CanaryTable, soak: float, began: float) -> float:
    """Seconds for which a table is watched. Only of a change that an earlier run made is the age known by the clock of
    the log alone.
    """
    if run.commits or _is_unread(watched):
        return soak
    if isinstance(watched, CanaryTable):
        return 0.0
    return max(0.0, min(soak, watched.since + soak - began))


def _failed(seen: CanaryTable, runs: Mapping[str, TableRun]) -> bool:
    """Whether a table was not changed as planned, or something failed on it since."""
    return seen.suspicious or runs[seen.table].code is not ExitCode.DONE


def _stop_if(config: RunSettings) -> str:
    """``failed 1 or silent 3``."""
    limits = {"failed": config.stop_if_failed, "silent": config.stop_if_silent}
    return " or ".join(f"{name} {limit}" for name, limit in limits.items() if limit)


@dataclass(frozen=True, slots=True)
class _Threshold:
    """A threshold of ``--canary``, and what was observed of it."""

    name: str
    limit: int
    number: int
    unknown: bool
    """Whether the number may be higher, because something could not be observed."""

    @property
    def option(self) -> str:
        """As it is given."""
        return f"`--stop-if-{self.name} {self.limit}`"


def _why_rest_stays(
    config: RunSettings, seen: Sequence[CanaryTable], runs: Mapping[str, TableRun], *, over: bool
) -> str:
    """Why no other table starts; empty if they may. What is unknown may become known, so it counts at the end only."""
    # The thresholds that are not switched off
    failed = [_failed(each, runs) for each in seen]
    unclear = any(each.unknown and not bad for each, bad in zip(seen, failed, strict=True))
    silent = sum(len(each.silent) + len(each.stopped) for each in seen)
    blind = any(each.writes is None or each.unknown_streams for each in seen)
    every = (
        _Threshold("failed", config.stop_if_failed, sum(failed), unclear),
        _Threshold("silent", config.stop_if_silent, silent, blind),
    )
    thresholds = [each for each in every if each.limit]
    reached = [each for each in thresholds if each.number >= each.limit]
    if reached:
        why = "; ".join(f"{each.option} is reached, by {each.number}" for each in reached)
        return f"{why}: {_few([_trouble(each, runs) for each in seen if _failed(each, runs)])}"
    unknown = [each.option for each in thresholds if each.unknown]
    if not over or not unknown:
        return ""
    causes = _few([f"{each.table}: {each.unknown[0]}" for each in seen if each.unknown])
    return f"whether {' or '.join(unknown)} is reached is unknown: {causes}"


def _trouble(seen: CanaryTable, runs: Mapping[str, TableRun]) -> str:
    run, parts = runs[seen.table], list[str]()
    if run.code is not ExitCode.DONE:
        parts.append(f"{run.outcome}{f', {run.message}' if run.message else ''}")
    if seen.orphans:
        parts.append(f"{seen.orphans:,} data file{'s' * (seen.orphans != 1)} that no commit names")
    parts += [f"{each} is silent" for each in seen.silent]
    parts += [f"{each} has stopped" for each in seen.stopped]
    return f"{seen.table}: {', '.join(parts)}"


def _few(texts: Sequence[str]) -> str:
    more = f"; and {len(texts) - _MOST_SHOWN} more" if len(texts) > _MOST_SHOWN else ""
    return "; ".join(texts[:_MOST_SHOWN]) + more


LOOK_BACK = 500
"""The commits before the change that show who writes a table, and how often."""
NOTHING = "nothing observed: no write was committed since the change"
_LEAST_YOUNG = 60.0
"""Seconds for which a file without a commit may belong to a write that has not ended yet, however short writes are."""


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
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
