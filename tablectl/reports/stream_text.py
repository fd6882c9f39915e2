"""The declared streaming queries of a table, for people: how far each is, and which statement stops it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from tablectl.model.plan import TablePlan
from tablectl.model.streams import StreamState, StreamWriter
from tablectl.planning.stream_stops import StreamStop, stops_of

if TYPE_CHECKING:  # only runs load it
    from tablectl.applying.run_report import StreamRun

_WRITES = "it writes the table and does not read it"


def stream_lines(table: TablePlan, states: Iterable[StreamState], dialect: str) -> tuple[str, ...]:
    """One line for each stream."""
    stops = stops_of(table, dialect)
    effect = _effect(stops) if table.statements else "no statement concerns it"
    return tuple(f"{each.name} {each.text}; {_WRITES if isinstance(each, StreamWriter) else effect}" for each in states)


def _effect(stops: Sequence[StreamStop]) -> str:
    if not stops:
        return "it goes on; with a schemaTrackingLocation, or on Databricks, it may stop once and restart"
    worst = max(stops, key=lambda each: each.stop.effect.rank)
    fix = f"; {worst.stop.fix}" if worst.stop.fix else ""
    return f"{worst.statement.verb} stops it, because {worst.stop.reason}: {worst.stop.effect.value}{fix}"


def stream_run_text(stream: StreamRun) -> str:
    """What became of a stream in a run."""
    return f"{stream.name} {stream.note}"
