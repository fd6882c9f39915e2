"""The state of a whole lake: one record per table, with a policy or without, and a document with one row per table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from tablectl.attributes.policy import HIDDEN
from tablectl.delta import keys
from tablectl.documents.document import (
    BarChart,
    Cell,
    CommentEnd,
    Document,
    Grid,
    Lines,
    Row,
    Shade,
    Tone,
    Verdict,
    name_lines,
    unread_title,
    without_tables,
)
from tablectl.documents.style import plural
from tablectl.model.errors import ExitCode
from tablectl.model.plan import TableFailure
from tablectl.model.report_methods import ReportMethods
from tablectl.model.safe_text import listed, size_text, time_text
from tablectl.reports.mask import Mask
from tablectl.support.typed_json import Omitted

TableState = Literal[
    "as declared",
    "changed by others",
    "catalog differs",
    "not applied yet",
    "never applied",
    "unknown",
    "no policy",
    "not readable",
]
"""``as declared``: nothing differs from the policy. ``changed by others``: drift. ``not applied yet`` and ``never
applied``: the policy was not applied since it declares this, or at all. ``unknown``: it differs, and the history does
not show why.
"""
STATES: tuple[TableState, ...] = (
    "not readable",
    "changed by others",
    "catalog differs",
    "unknown",
    "not applied yet",
    "never applied",
    "no policy",
    "as declared",
)
"""From the most to the least important one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableStatus:
    """One table. ``None`` and an empty text mean unknown or none."""

    table: str
    location: str = ""
    state: TableState
    policy: str = ""
    """The file and line that name the table, or the pattern that matches it."""
    version: int | None = None
    differences: tuple[str, ...] = ()
    """``isolation: declared Serializable, found default``."""
    changed_by: str = ""
    changed_at: int | None = None
    """Milliseconds since the epoch, like all times."""
    applied_at: int | None = None
    """The newest commit of an apply among the commits that were read."""
    applied_run: str = ""
    written_at: int | None = None
    """The newest commit of others, among the commits that were read."""
    reader: int | None = None
    writer: int | None = None
    features: tuple[str, ...] = ()
    locked_out: tuple[str, ...] = ()
    """Clients that the policy declares and that cannot read or write the table as it is."""
    isolation: str = ""
    findings: tuple[str, ...] = ()
    """The codes of lint."""
    files: int | None = None
    bytes: int | None = None
    file_bytes: int | None = None
    """The average size of a file."""
    vectors: int | None = None
    """Deletion vectors that readers must merge."""
    unclustered_bytes: int | None = None
    """Data that is not clustered by the table's columns; read with ``--debt`` only."""
    log_retention: str = ""
    file_retention: str = ""
    error: str = ""
    rivals: Omitted[tuple[str, ...]] = ()
    """Who alters the table, and which writers that is expected to fail."""
    created_at: Omitted[int | None] = None
    """The first commit. Read of tables without a policy, and of those to which none was ever applied."""
    created_by: Omitted[str] = ""
    slipped: Omitted[str] = ""
    """Set for such a table that is younger than the last apply of any table: the command that adopts or changes it."""
    owner: Omitted[str] = ""
    """Who is responsible for the table, by its policy."""
    upkeep: Omitted[tuple[str, ...]] = ()
    """What upkeep is due by the policy: ``vacuum since 2026-11-21 11:00:00 UTC``; read with ``--debt`` only."""
    small_files: Omitted[int | None] = None
    """Files that an OPTIMIZE by the policy would merge, as above."""
    vacuum_bytes: Omitted[int | None] = None
    """The bytes that a VACUUM would delete, by the metrics of commits, as above."""
    log_files: Omitted[int | None] = None
    """The commits in the log, as above."""
    copy: Omitted[str] = ""
    """What is left of a copy beside the table: how many parts, and since when."""


@dataclass(frozen=True, slots=True, repr=False)
class LakeStatus(ReportMethods):
    """All tables, the ones that need attention first."""

    tables: tuple[TableStatus, ...]
    env: str
    at: int
    """When the tables were read, in milliseconds since the epoch."""
    failures: tuple[TableFailure, ...] = ()
    """Patterns that could not be looked up."""
    unmatched: tuple[str, ...] = ()

    def count(self, *states: TableState) -> int:
        """The number of tables in one of these states."""
        return sum(table.state in states for table in self.tables)

    @property
    def managed(self) -> int:
        """The number of tables that a policy declares."""
        return sum(table.state != "no policy" and bool(table.policy) for table in self.tables)

    @property
    def unmanaged(self) -> int:
        """The number of tables that were created since the last apply, and not as a policy declares."""
        return sum(bool(table.slipped) for table in self.tables)

    @property
    def exit_code(self) -> ExitCode:
        """1 if a table cannot be read, otherwise 0: status reports, and judges nothing."""
        return ExitCode.ERROR if self.failures or self.count("not readable") else ExitCode.DONE


_TONES: dict[TableState, Tone] = {
    "not readable": "bad",
    "changed by others": "bad",
    "catalog differs": "bad",
    "unknown": "pending",
    "not applied yet": "pending",
    "never applied": "quiet",
    "no policy": "quiet",
    "as declared": "good",
}
_HEAD = ("Table", "State", "Differences", "Last apply", "Last write", "Protocol", "Debt", "Retention", "Checks")
_BRIEF = tuple(map(_HEAD.index, ("Table", "State", "Last write", "Debt")))
_SMALL = 16_000_000
"""Bytes. Files that are smaller on average are called small."""
_MOST_BARS = 20
_FEWEST_BARS = 2
_MANY = 100
"""With fewer files, their size does not matter."""
_MOST = 5


def document_of_status(status: LakeStatus, mask: Mask) -> Document:
    """The state of a lake."""
    masked = masked_status(status, mask)
    end = CommentEnd("<!-- tablectl status -->", "<code>tablectl status --report FILE.html</code> writes all rows.")
    return replace(status_document(masked), record=masked, comment=lambda: end)


def masked_status(status: LakeStatus, mask: Mask) -> LakeStatus:
    """The state of a lake for display: differences of hidden properties are named without their values."""
    return mask.by_value(replace(status, tables=tuple(_masked(each, mask) for each in status.tables)))


def _masked(table: TableStatus, mask: Mask) -> TableStatus:
    return replace(
        table,
        differences=tuple(map(mask.named, table.differences)),
        isolation=HIDDEN if mask.hides(keys.ISOLATION_LEVEL) else table.isolation,
        log_retention=HIDDEN if mask.hides(keys.LOG_RETENTION) else table.log_retention,
        file_retention=HIDDEN if mask.hides(keys.DELETED_FILE_RETENTION) else table.file_retention,
    )


def status_document(status: LakeStatus) -> Document:
    """The document of a lake's state."""
    drifted, unread = status.count("changed by others"), status.count("not readable")
    total = len(status.tables)
    parts = [f"{status.managed} of {plural(total, 'table')} have a policy"]
    parts += [f"{count} {state}" for state in STATES if (count := status.count(state))]
    if status.unmanaged:
        parts.append(f"{status.unmanaged} created since the last apply, not as a policy declares")
    if unread or status.failures:
        verdict = Verdict("bad", unread_title(total), tuple(parts))
    elif drifted:
        verdict = Verdict("pending", "Changed by others", tuple(parts))
    elif status.count("not applied yet", "never applied", "unknown"):
        verdict = Verdict("pending", "Not all policies are applied", tuple(parts))
    else:
        verdict = Verdict("good", "As declared" if total else "No tables", tuple(parts))
    named = any(each.rivals for each in status.tables)
    rows = tuple(_row(each, rivals=named) for each in status.tables)
    return Document(
        subject="Status",
        verdict=verdict,
        env=status.env,
        counts=tuple(_counts(status)),
        facts=(("Read", Cell(time_text(status.at))),),
        overview=Grid(
            "All tables, those that need attention first",
            (*_HEAD, *(("Altered by",) if named else ())),
            rows,
            sortable=True,
            brief=_BRIEF,
            below=_HEAD.index("Differences"),
        )
        if rows
        else None,
        tail=(*_sizes(status.tables), *without_tables(status.unmatched, status.failures)),
        summary=tuple(map(Cell, parts)),
    )


def _sizes(tables: tuple[TableStatus, ...]) -> Iterator[BarChart]:
    """The largest tables by bytes: how much of each is not clustered, and what a VACUUM would delete beside it."""
    known = [(each.bytes + (each.vacuum_bytes or 0), each) for each in tables if each.bytes]
    largest = sorted(known, key=lambda each: (-each[0], each[1].table))[:_MOST_BARS]
    if len(largest) < _FEWEST_BARS:
        return
    scale = 100 / largest[0][0]
    rows = []
    for _, table in largest:
        small = table.file_bytes is not None and table.file_bytes < _SMALL and (table.files or 0) >= _MANY
        live, mixed, old = table.bytes or 0, table.unclustered_bytes or 0, table.vacuum_bytes or 0
        parts: tuple[tuple[Shade, float], ...] = (
            ("high" if small else "good", scale * max(live - mixed, 0)),
            ("some", scale * min(mixed, live)),
            ("unknown", scale * old),
        )
        rows.append((table.table, "; ".join(cell.text for cell in _debt(table)), parts))
    legend: tuple[tuple[Shade, str], ...] = (
        ("good", "data"),
        ("high", "data in small files"),
        ("some", "not clustered"),
        ("unknown", "old files, for VACUUM"),
    )
    used = {shade for _, _, parts in rows for shade, share in parts if share}
    yield BarChart("The largest tables", tuple(rows), tuple(each for each in legend if each[0] in used))


def _counts(status: LakeStatus) -> Iterator[Cell]:
    """``3 changed by others``: the tables by their state, those that need attention first."""
    for state in STATES:
        if count := status.count(state):
            yield Cell(f"{count:,} {state}", tone=_TONES[state], badge=True)
    if status.tables:
        yield Cell(f"{status.managed:,} of {plural(len(status.tables), 'table')} have a policy", tone="quiet")


def _row(table: TableStatus, *, rivals: bool) -> Row:
    cells: tuple[Lines, ...] = (
        name_lines(table.table, table.policy, table.owner),
        (Cell(table.state, tone=_TONES[table.state], badge=True),),
        tuple(_differences(table)),
        _time(table.applied_at),
        _time(table.written_at),
        tuple(_protocol(table)),
        tuple(_debt(table)),
        tuple(_retention(table)),
        tuple(_checks(table)),
    )
    if rivals:
        cells = (*cells, tuple(Cell(each, tone="pending") for each in table.rivals))
    return Row(cells, words=(table.table,))


def _differences(table: TableStatus) -> Iterator[Cell]:
    if table.error:
        yield Cell(table.error, tone="bad")
    if table.slipped:
        who = f" by {table.created_by}" if table.created_by else ""
        yield Cell(f"created {time_text(table.created_at or 0)}{who}, after the last apply", tone="pending")
        yield Cell(table.slipped, code=True)
    yield from (Cell(each, code=True) for each in table.differences[:_MOST])
    if len(table.differences) > _MOST:
        yield Cell(f"and {len(table.differences) - _MOST} more")
    if table.changed_by:
        when = f", {time_text(table.changed_at)}" if table.changed_at else ""
        yield Cell(f"by {table.changed_by}{when}", tone="bad")
    yield from (Cell(f"due: {each}", tone="pending") for each in table.upkeep)
    if table.copy:
        yield Cell(f"a copy beside it: {table.copy}", tone="pending")


def _time(at: int | None) -> Lines:
    text = time_text(at) if at else ""
    return (Cell(text[: len("2026-11-21 11:00")]),) if text else ()


def _protocol(table: TableStatus) -> Iterator[Cell]:
    if table.reader is not None:
        yield Cell(f"{table.reader}, {table.writer}")
    if table.features:
        yield Cell(listed(table.features, _MOST), tone="quiet")
    yield from (Cell(each, tone="bad") for each in table.locked_out)


def _debt(table: TableStatus) -> Iterator[Cell]:
    if table.files is not None and table.bytes is not None:
        yield Cell(f"{plural(table.files, 'file')}, {size_text(table.bytes)}")
    if table.file_bytes is not None and table.file_bytes < _SMALL and (table.files or 0) >= _MANY:
        yield Cell(f"small files: {size_text(table.file_bytes)} on average", tone="pending")
    if table.vectors:
        yield Cell(plural(table.vectors, "deletion vector"), tone="pending")
    if table.unclustered_bytes:
        yield Cell(f"{size_text(table.unclustered_bytes)} not clustered", tone="pending")
    if table.small_files:
        yield Cell(plural(table.small_files, "small file"), tone="pending")
    if table.vacuum_bytes:
        yield Cell(f"{size_text(table.vacuum_bytes)} to vacuum", tone="pending")
    if table.log_files:
        yield Cell(f"{plural(table.log_files, 'commit')} in the log", tone="quiet")


def _retention(table: TableStatus) -> Iterator[Cell]:
    if table.log_retention:
        yield Cell(f"log {table.log_retention.removeprefix('interval ').removesuffix(' (default)')}")
    if table.file_retention:
        yield Cell(f"files {table.file_retention.removeprefix('interval ').removesuffix(' (default)')}")


def _checks(table: TableStatus) -> Iterator[Cell]:
    if table.isolation:
        yield Cell(f"isolation {table.isolation}")
    if table.findings:
        yield Cell(", ".join(table.findings), tone="pending")
