"""Declared streaming queries around a table's window: the wait for those that its statements stop, and the proof that
they continued (docs/many-tables.md, "Streaming queries").
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tablectl.applying.run_context import RunContext, TableJob
from tablectl.applying.waits import GO, Answer, Awaited, End, Later, Wait
from tablectl.model.errors import LiveError, TablectlError, of_table, one_line
from tablectl.model.plan import TablePlan
from tablectl.model.run_report import RunOutcome, StreamRun, TableRun
from tablectl.model.safe_text import minutes_text
from tablectl.model.stream_progress import StreamPosition, StreamState, StreamWriter, UnknownStream
from tablectl.planning.derive_statements import stopped_streams

_STREAM = Awaited("stream", "for a stream")
_POLL = 5.0
"""Seconds between two looks at a checkpoint."""

Positions = Mapping[str, StreamState]
"""How far the declared streams of a table are, by name."""


@dataclass(frozen=True, slots=True)
class StreamTarget:
    """A stream that the statements of a table stop, and the version that it must have read before them."""

    table: TablePlan
    name: str
    checkpoint: str
    version: int | None = None
    """The newest version with rows when the table could first be read; -1 if there is none; ``None`` before."""
    unknown: str = ""
    """Why that is not known; empty if it is."""

    def looked_at(self, context: RunContext) -> StreamTarget:
        """The target with its version. A table that cannot be read is looked at again the next time."""
        if self.version is not None:
            return self
        try:
            return replace(self, version=context.reader.newest_row_version(self.table.location), unknown="")
        except LiveError as error:
            return replace(self, unknown=one_line(error))

    def behind(self, context: RunContext) -> str:
        """What it has not read yet; empty if it has."""
        if self.version is None:
            return f"the stream {self.name} cannot be compared with the table: {self.unknown}"
        (state,) = context.reader.streams([(self.name, self.checkpoint)], self.table.table_id, self.table.location)
        if isinstance(state, StreamWriter):
            return ""
        if isinstance(state, StreamPosition) and (self.version < 0 or state.passed(self.version)):
            return ""
        return f"the stream {self.name} {state.text}, and must read version {self.version}: the statements stop it"


class StreamWait(Wait):
    """Streams that the statements stop must first have read what the tables hold. No lease is held meanwhile."""

    def __init__(self, job: TableJob) -> None:
        self._job = job
        self._targets: tuple[StreamTarget, ...] | None = None
        """``None`` before the first look."""
        self._since = 0.0

    def check(self, now: float) -> Answer:
        """Whether every stream has read up to the version that its table had at the first look."""
        context, tables = self._job.context, self._job.tables
        if context.stamp.proceed:
            return GO
        if self._targets is None:
            self._targets, self._since = tuple(targets_of(context, tables)), now
        self._targets = tuple(target.looked_at(context) for target in self._targets)
        behind = next((words for target in self._targets if (words := target.behind(context))), "")
        if not behind:
            return GO
        limit = max(context.wait, *map(context.drain_of, tables))
        left = self._since + limit - now
        if left <= 0:
            hint = "start the stream, wait longer (`--wait`), or go on without it (`--proceed REASON`)"
            return End(RunOutcome.NO_WINDOW, f"after {minutes_text(limit)}, {behind}", hint)
        return Later(now + min(_POLL, left), _STREAM, behind, limit)


def targets_of(context: RunContext, tables: Sequence[TablePlan]) -> Iterator[StreamTarget]:
    """The streams that the statements of some tables stop."""
    for table in tables:
        stopped = stopped_streams(table, context.engine.dialect)
        for name, checkpoint in table.basis.options.streams if stopped else ():
            yield StreamTarget(table, name, checkpoint)


def positions_of(context: RunContext, table: TablePlan) -> Positions:
    """How far the declared streams of a table are now."""
    return {each.name: each for each in _now(context, table)} if table.basis.options.streams else {}


def continued_streams(
    context: RunContext, tables: Sequence[TablePlan], runs: Mapping[str, TableRun], before: Mapping[str, Positions]
) -> dict[str, TableRun]:
    """The runs of the tables with commits and declared streams, with what became of these.

    It does not wait for them.
    """
    return {
        table.name: replace(runs[table.name], streams=_looked(context, table, runs[table.name], before[table.name]))
        for table in tables
        if before[table.name] and runs[table.name].commits
    }


def _looked(context: RunContext, table: TablePlan, run: TableRun, before: Positions) -> tuple[StreamRun, ...]:
    found = of_table(table.name, lambda: _look(context, table, run, before))
    if isinstance(found, TablectlError):
        stopped, note = stopped_streams(table, context.engine.dialect), f"the table cannot be read: {one_line(found)}"
        return tuple(StreamRun(name=name, stopped=name in stopped, note=note) for name in before)
    return found


def _look(context: RunContext, table: TablePlan, run: TableRun, before: Positions) -> tuple[StreamRun, ...]:
    stopped, last = stopped_streams(table, context.engine.dialect), run.commits[-1].version
    after = context.reader.row_versions(table.location, after=last)
    since = _Since(last, min(after, default=None))
    return tuple(
        _run(state, before[state.name], since, stopped=state.name in stopped) for state in _now(context, table)
    )


def _now(context: RunContext, table: TablePlan) -> Sequence[StreamState]:
    return context.reader.streams(table.basis.options.streams, table.table_id, table.location)


@dataclass(frozen=True, slots=True)
class _Since:
    """The end of a run on a table, and what came after it."""

    last: int
    """The version of the run's last commit."""
    data: int | None
    """The first version after it with rows; ``None`` if there is none."""


def _run(now: StreamState, before: StreamState, since: _Since, *, stopped: bool) -> StreamRun:
    was = None if isinstance(before, UnknownStream) else before.batch
    match now:
        case UnknownStream():
            return StreamRun(name=now.name, stopped=stopped, before=was, note=now.text)
        case StreamWriter():
            # Whether a query that writes the table has continued, and the words for it. A Delta sink commits each batch
            # of a query once, so a later batch in a later commit is the proof.
            if not isinstance(before, UnknownStream) and now.query != before.query:
                continued, note = (
                    False,
                    f"began again with a new checkpoint: it {now.text}, and may write rows that it wrote before",
                )
            elif now.version <= since.last:
                continued, note = None, f"has not written since, and may have had nothing to write: it {now.text}"
            elif not isinstance(before, UnknownStream) and now.batch <= before.batch:
                continued, note = False, f"began again: it {now.text}, and had written batch {before.batch} before"
            else:
                continued, note = True, f"continued: it {now.text}"
            return StreamRun(name=now.name, stopped=False, before=was, after=now.batch, continued=continued, note=note)
        case StreamPosition():
            # Whether a query that reads the table has continued, and the words for it
            if since.data is None:
                continued, note = None, "nothing was written since, so whether it continued is unknown"
            elif now.passed(since.data):
                continued, note = True, f"continued: it {now.text}"
            else:
                continued, note = False, f"has not continued yet: it {now.text}, and version {since.data} has data"
            return StreamRun(
                name=now.name,
                stopped=stopped,
                before=was,
                after=now.batch,
                read=now.read,
                continued=continued,
                note=note,
            )
