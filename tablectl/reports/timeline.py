"""The timeline of one table during a run: its gate, the statements, and every commit that was seen."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

from tablectl.frozen import frozen
from tablectl.model.text import time_text
from tablectl.reports.wording import late_text, span_text

if TYPE_CHECKING:  # only runs load it
    from tablectl.applying.run_report import CommitRun, GateRun, StatementRun, TableRun

_MARGIN = 0.05
"""The share of the picture that stays empty on either side."""
_NEAR = 5.0
"""Percent of the width below which the labels of two marks would overlap."""


@frozen
class Bar:
    """An interval. Positions and widths are percentages of the picture."""

    left: float
    width: float
    kind: str
    title: str


@frozen
class Mark:
    """A commit."""

    left: float
    ours: bool
    label: str
    """Its version; empty if it would overlap another label."""
    title: str


@frozen
class TimelineEvent:
    """A row of the table with the same events."""

    at: int
    """Milliseconds since the epoch; 0 if unknown."""
    when: str
    kind: Literal["gate", "statement", "commit of this run", "commit of others"]
    text: str


@frozen
class Timeline:
    """A picture and the same events as a table."""

    start: str
    end: str
    length: str
    gates: tuple[Bar, ...]
    statements: tuple[Bar, ...]
    marks: tuple[Mark, ...]
    events: tuple[TimelineEvent, ...]

    @property
    def drawn(self) -> bool:
        """Whether the picture shows more than the table."""
        return bool(self.gates or self.statements) or len(self.marks) > 1


@frozen
class _Scale:
    start: int
    end: int

    def place(self, at: int) -> float:
        """The position in percent; moments outside of the range are placed at the edge."""
        length = max(self.end - self.start, 1)
        share = _MARGIN + (1 - 2 * _MARGIN) * (min(max(at, self.start), self.end) - self.start) / length
        return round(100 * share, 3)


def timeline(run: TableRun) -> Timeline:
    """The known events of a table's run. Other writers' clocks may be wrong: invalid times appear only in the table."""
    commits = sorted(((each, True) for each in run.commits), key=_version)
    commits += sorted(((each, False) for each in run.foreign), key=_version)
    dated = [(each, ours) for each, ours in commits if time_text(each.at)]
    scale = _scale(run, dated)
    return Timeline(
        start=_clock(scale.start),
        end=_clock(scale.end),
        length=span_text(scale.end - scale.start),
        gates=tuple(_gate(each, scale) for each in run.gates),
        statements=tuple(_statement(each, scale) for each in run.statements if time_text(each.at)),
        marks=_marks(dated, scale),
        events=_events(run, commits),
    )


def _version(entry: tuple[CommitRun, bool]) -> int:
    return entry[0].version


def _scale(run: TableRun, dated: list[tuple[CommitRun, bool]]) -> _Scale:
    """From the first to the last event of this run; if there are none, of all commits."""
    own = [moment for gate in run.gates for moment in (gate.since, gate.until)]
    own += [
        moment for each in run.statements if time_text(each.at) for moment in (each.at, each.at + each.milliseconds)
    ]
    own += [commit.at for commit, ours in dated if ours]
    times = own or [commit.at for commit, _ in dated] or [0]
    return _Scale(min(times), max(times))


def _gate(gate: GateRun, scale: _Scale) -> Bar:
    left, right = scale.place(gate.since), scale.place(gate.until)
    return Bar(left, round(right - left, 3), gate.gate, f"{gate.gate} for {span_text(gate.until - gate.since)}")


def _statement(statement: StatementRun, scale: _Scale) -> Bar:
    left, right = scale.place(statement.at), scale.place(statement.at + statement.milliseconds)
    kind = "failed" if statement.error else str(statement.phase)
    return Bar(left, round(right - left, 3), kind, f"{statement.id}: {span_text(statement.milliseconds)}")


def _marks(dated: list[tuple[CommitRun, bool]], scale: _Scale) -> tuple[Mark, ...]:
    made: list[Mark] = []
    last = {True: -_NEAR, False: -_NEAR}
    for commit, ours in sorted(dated, key=lambda each: (each[0].at, each[0].version)):
        left = scale.place(commit.at)
        free = left - last[ours] >= _NEAR
        if free:
            last[ours] = left
        made.append(Mark(left, ours, str(commit.version) if free else "", _commit(commit)))
    return tuple(made)


def _commit(commit: CommitRun) -> str:
    inside = ", while the gate was closed" if commit.inside else ""
    kind = "metadata" if commit.metadata else "data"
    return (
        f"version {commit.version}: {commit.operation or 'unknown operation'} ({kind}) by {commit.user}"
        f"{inside}{late_text(commit)}"
    )


def _events(run: TableRun, commits: list[tuple[CommitRun, bool]]) -> tuple[TimelineEvent, ...]:
    found: list[TimelineEvent] = []
    for gate in run.gates:
        text = f"{gate.gate}, for {span_text(gate.until - gate.since)}"
        found.append(TimelineEvent(gate.since, _clock(gate.since), "gate", text))
    for statement in run.statements:
        ended = (
            f"failed after {span_text(statement.milliseconds)}"
            if statement.error
            else span_text(statement.milliseconds)
        )
        text = f"{statement.id} ({statement.phase.word}), {ended}"
        found.append(TimelineEvent(statement.at, _clock(statement.at), "statement", text))
    for commit, ours in commits:
        kind: Literal["commit of this run", "commit of others"] = "commit of this run" if ours else "commit of others"
        found.append(TimelineEvent(commit.at, _clock(commit.at), kind, _commit(commit)))
    return tuple(sorted(found, key=lambda each: each.at))


def _clock(at: int) -> str:
    """``2026-11-21 11:00:00.123 UTC``, for a time from another writer's clock."""
    if not time_text(at):
        return "unknown"
    return f"{datetime.fromtimestamp(at // 1000, UTC):%Y-%m-%d %H:%M:%S}.{at % 1000:03} UTC"
