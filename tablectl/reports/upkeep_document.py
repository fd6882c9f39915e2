"""What upkeep is due in a lake: one record per table whose policy declares any, and the document with one row per
table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from tablectl.documents.document import (
    Cell,
    CommentEnd,
    Document,
    Grid,
    Lines,
    Row,
    Tone,
    Verdict,
    name_lines,
    without_tables,
)
from tablectl.documents.style import plural
from tablectl.model.errors import ExitCode
from tablectl.model.expected_loss import failed_text, hour_text
from tablectl.model.plan import TableFailure
from tablectl.model.report_methods import ReportMethods
from tablectl.model.safe_text import size_text, time_text
from tablectl.model.upkeep import UpkeepTask, WriterFiles
from tablectl.reports.mask import Mask
from tablectl.support.typed_json import Omitted

UpkeepState = Literal["not readable", "refused", "due", "not due"]
UPKEEP_STATES: tuple[UpkeepState, ...] = ("not readable", "refused", "due", "not due")
"""From the most to the least important one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableUpkeep:
    """One table. ``None`` and an empty text mean unknown or none."""

    table: str
    location: str = ""
    state: UpkeepState
    policy: str = ""
    """The file and line that name the table, or the pattern that matches it."""
    reason: str = ""
    """Why it is refused, or cannot be read."""
    tasks: tuple[UpkeepTask, ...] = ()
    files: int | None = None
    bytes: int | None = None
    small_files: int | None = None
    """Files below half of the target that an OPTIMIZE can merge with another one."""
    small_bytes: int | None = None
    unnamed_files: int | None = None
    """Files that no commit of the last 30 days names: failed writes left them, or running ones make them."""
    unnamed_bytes: int | None = None
    writers: tuple[WriterFiles, ...] = ()
    """The writers that added most files since the last OPTIMIZE or VACUUM, by the metrics of their commits."""
    failed_now: float | None = None
    """How many writes without a guard an OPTIMIZE is expected to fail at this hour."""
    failed_least: float | None = None
    """The same at the quietest hour."""
    quietest: int | None = None
    """The quietest hour of the week, from 0 for Monday 00:00 UTC."""
    unknown: str = ""
    """Why these numbers are unknown."""
    owner: Omitted[str] = ""
    """Who is responsible for the table, by its policy."""


@dataclass(frozen=True, slots=True, repr=False)
class LakeUpkeep(ReportMethods):
    """All tables whose policy declares upkeep, the ones that need attention first."""

    tables: tuple[TableUpkeep, ...]
    env: str
    at: int
    """When the tables were read, in milliseconds since the epoch."""
    failures: tuple[TableFailure, ...] = ()
    """Patterns that could not be looked up."""
    unmatched: tuple[str, ...] = ()
    selected: bool = False
    """Whether only some tables of the policies were asked for."""

    def count(self, state: UpkeepState) -> int:
        """The number of tables in a state."""
        return sum(table.state == state for table in self.tables)

    @property
    def exit_code(self) -> ExitCode:
        """1 if a table cannot be read, 3 if one is refused, otherwise 0: that something is due is not a failure."""
        if self.failures or self.count("not readable"):
            return ExitCode.ERROR
        return ExitCode.REFUSED if self.count("refused") else ExitCode.DONE


_TONES: dict[UpkeepState, Tone] = {"not readable": "bad", "refused": "bad", "due": "pending", "not due": "good"}
_HEAD = ("Table", "State", "OPTIMIZE", "VACUUM", "Files", "Writers without a guard", "Small files by")
_MOST = 3


def document_of_upkeep(upkeep: LakeUpkeep, mask: Mask) -> Document:
    """What upkeep is due."""
    end = CommentEnd.of("upkeep")
    masked = mask.by_value(upkeep)  # it names no property, only values can be hidden
    return replace(upkeep_document(masked), record=masked, comment=lambda: end)


def upkeep_document(upkeep: LakeUpkeep) -> Document:
    """The document of what is due."""
    total, due = len(upkeep.tables), upkeep.count("due")
    parts = [f"{count:,} {state}" for state in UPKEEP_STATES if (count := upkeep.count(state))]
    if upkeep.failures or upkeep.count("not readable"):
        verdict = Verdict("bad", "Not all tables could be read", tuple(parts))
    elif upkeep.count("refused"):
        verdict = Verdict("bad", "Refused", tuple(parts))
    elif due:
        verdict = Verdict("pending", f"Due on {plural(due, 'table')}", tuple(parts))
    else:
        parts = parts or ["declare `upkeep` for a table, or in the `defaults` of its file"]
        none = "No selected table declares upkeep" if upkeep.selected else "No table declares upkeep"
        verdict = Verdict("good", "Nothing is due" if total else none, tuple(parts))
    rows = tuple(map(_row, upkeep.tables))
    return Document(
        subject="Upkeep",
        verdict=verdict,
        env=upkeep.env,
        counts=tuple(
            Cell(f"{count:,} {state}", tone=_TONES[state], badge=True)
            for state in UPKEEP_STATES
            if (count := upkeep.count(state))
        ),
        notes=("`tablectl upkeep --apply` does what is due.",) if due else (),
        facts=(("Read", Cell(time_text(upkeep.at))),),
        overview=Grid("Tables with upkeep, those that need attention first", _HEAD, rows, sortable=True)
        if rows
        else None,
        tail=tuple(without_tables(upkeep.unmatched, upkeep.failures)),
        summary=tuple(map(Cell, parts)),
    )


def _row(table: TableUpkeep) -> Row:
    tasks = {each.kind: each for each in table.tasks}
    cells: tuple[Lines, ...] = (
        name_lines(table.table, table.policy, table.owner),
        tuple(_state(table)),
        tuple(_task(tasks.get("optimize"), "merges")),
        tuple(_task(tasks.get("vacuum"), "deletes")),
        tuple(_files(table)),
        tuple(_cost(table)),
        tuple(Cell(f"{each.files:,} in {each.commits:,}: {each.name}") for each in table.writers[:_MOST]),
    )
    return Row(cells, words=(table.table,))


def _state(table: TableUpkeep) -> Iterator[Cell]:
    yield Cell(table.state, tone=_TONES[table.state], badge=True)
    if table.reason:
        yield Cell(table.reason, tone="bad")


def _task(task: UpkeepTask | None, verb: str) -> Iterator[Cell]:
    if task is None:
        return
    when = time_text(task.since)
    if task.due:
        yield Cell(f"due since {when}" if when else "due", tone="pending")
    else:
        yield Cell(f"due from {when}" if when else "not due")
    yield Cell(task.why, tone="quiet")
    if task.due and task.files is not None and task.bytes is not None:
        yield Cell(f"{verb} {plural(task.files, 'file')}, {size_text(task.bytes)}")
    yield from (Cell(each, tone="quiet") for each in task.notes)


def _files(table: TableUpkeep) -> Iterator[Cell]:
    if table.files is not None and table.bytes is not None:
        yield Cell(f"{plural(table.files, 'file')}, {size_text(table.bytes)}")
    if table.unnamed_files is not None and table.unnamed_bytes is not None:
        size = size_text(table.unnamed_bytes)
        yield Cell(f"{table.unnamed_files:,} that no commit names, {size}: of failed writes, or of running ones")
    if table.small_files and table.small_bytes is not None:
        yield Cell(f"{table.small_files:,} small, {size_text(table.small_bytes)}", tone="pending")


def _cost(table: TableUpkeep) -> Iterator[Cell]:
    if table.failed_now is not None:
        yield Cell(f"now {failed_text(table.failed_now)} failed writes expected")
    if table.failed_least is not None and table.quietest is not None:
        yield Cell(f"{hour_text(table.quietest)}: {failed_text(table.failed_least)}")
    if table.unknown:
        yield Cell(f"unknown: {table.unknown}", tone="quiet")
