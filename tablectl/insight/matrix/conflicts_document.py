"""Which operations conflict on a table, as a document: a grid of operations, and the reasons with their fixes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from tablectl.insight.matrix.conflict_report import ConflictReport, ContextComparison
from tablectl.insight.matrix.conflicts_json import conflicts_json
from tablectl.insight.matrix.matrix import BY_APPLY, CellVerdict, Matrix, MatrixCell, fixes_for, row_levels
from tablectl.insight.matrix.operations import OperationGroup, TableOperation
from tablectl.json_text import write_json
from tablectl.model.text import value_text
from tablectl.reports.document import (
    Block,
    Card,
    Cell,
    ChangeRow,
    Changes,
    CommentEnd,
    Document,
    Facts,
    ForPrograms,
    Grid,
    Heading,
    Row,
    Tone,
)
from tablectl.reports.style import plural
from tablectl.reports.wording import PlanVerdict

_TONES: dict[CellVerdict, Tone] = {
    CellVerdict.COMMITS: "good",
    CellVerdict.DEPENDS: "pending",
    CellVerdict.UNKNOWN: "pending",
    CellVerdict.FAILS: "bad",
}
_WORDS = {
    CellVerdict.COMMITS: "commits",
    CellVerdict.DEPENDS: "same data",
    CellVerdict.UNKNOWN: "unknown",
    CellVerdict.FAILS: "fails",
}


def document_of_conflicts(report: ConflictReport) -> Document:
    """The document with its JSON. On a terminal, ``conflicts`` has a layout of its own."""
    programs = ForPrograms(data=lambda: write_json(conflicts_json(report), indent=2) + "\n")
    end = CommentEnd("<!-- tablectl conflicts -->", "<code>tablectl conflicts</code> prints all of it.")
    return replace(conflicts_document(report), programs=programs, comment=lambda: end)


def conflicts_document(report: ConflictReport) -> Document:
    """The document of a table's conflicts, one card for each client."""
    pairs = [pair for view in report.views for pair in view.live.cells]
    fails = sum(pair.verdict is CellVerdict.FAILS for pair in pairs)
    parts = (f"{fails} of {plural(len(pairs), 'pair')} of operations fail", f"version {report.live.version}")
    return Document(
        subject="Conflicts",
        verdict=PlanVerdict("pending" if fails else "good", report.live.name.text, parts),
        cards=tuple(map(_card, report.views)),
        tail=tuple(_policy(report)),
    )


def _policy(report: ConflictReport) -> Iterator[Block]:
    if report.changes:
        rows = (
            ChangeRow(
                each.id,
                value_text(each.before),
                value_text(each.after),
                result="apply refuses it" if each.id in report.refused else "",
            )
            for each in report.changes
        )
        yield Changes(tuple(rows), caption="What the policy changes")


def _card(view: ContextComparison) -> Card:
    setting = view.live.setting
    who = " and ".join(client.text() for client in view.clients)
    details: list[Block] = [*_reasons(view.live), *_row_level(view)]
    return Card(
        names=(who,),
        noun="client",
        state=f"{setting.level}{'' if setting.stored_level else ' (not set)'}",
        tone="quiet",
        mark="-",
        brief=(_grid(view.live),),
        details=tuple(details),
    )


def _everyday(operations: Iterable[TableOperation]) -> list[TableOperation]:
    """The operations of the grid: writes of rows, and maintenance of their files."""
    kept = (each for each in operations if each.group in {OperationGroup.ROWS, OperationGroup.FILES})
    return [each for each in kept if not each.key.startswith("evolving-")]


def _grid(found: Matrix) -> Grid:
    """Rows commit second, columns commit first."""
    names = {pair.current.key: pair.current for pair in found.cells}
    rows = _everyday(names.values())
    made = []
    for row in rows:
        cells = [found.cell(row.key, column.key).verdict for column in rows]
        made.append(Row(((Cell(row.name),), *((Cell(_WORDS[verdict], tone=_TONES[verdict]),) for verdict in cells))))
    return Grid("Rows commit second, columns first", ("Operation", *(each.name for each in rows)), tuple(made))


def _reasons(found: Matrix) -> Iterator[Block]:
    """The pairs that may fail, grouped by reason, with certain failures first."""
    groups: dict[tuple[CellVerdict, str, str, str, tuple[str, ...]], list[MatrixCell]] = {}
    for pair in found.cells:
        if pair.verdict is CellVerdict.COMMITS:
            continue
        outcome = pair.overlapping
        error = outcome.conflict.raised_by(found.setting.client) if outcome.conflict else ""
        ways = tuple(way for way in fixes_for(pair, found.setting) if way != BY_APPLY)
        groups.setdefault((pair.verdict, error, outcome.reason, outcome.source, ways), []).append(pair)
    for key in sorted(groups, key=lambda each: list(CellVerdict).index(each[0]), reverse=True):
        verdict, error, reason, source, ways = key
        yield Heading(error or _WORDS[verdict], f"{reason} ({source})")
        facts = [(_WORDS[verdict], text) for text in _pairs(groups[key])]
        yield Facts((*facts, *(("fix", way) for way in ways)))


def _pairs(pairs: Sequence[MatrixCell]) -> Iterator[str]:
    """``UPDATE, DELETE if INSERT, MERGE commits first``: operations with the same conflicts together."""
    first: dict[str, list[str]] = {}
    for pair in pairs:
        first.setdefault(pair.current.name, []).append(pair.committed.name)
    alike: dict[tuple[str, ...], list[str]] = {}
    for name, others in first.items():
        alike.setdefault(tuple(others), []).append(name)
    for committed, names in alike.items():
        yield f"{', '.join(names)} if {', '.join(committed)} commits first"


def _row_level(view: ContextComparison) -> Iterator[Block]:
    levels = row_levels(view.live.setting)
    if levels:
        answers = {True: "holds", False: "does not hold", None: "cannot tell"}
        yield Heading("Row-level concurrency", "for plain conditions", "sql")
        yield Facts(
            tuple(
                (
                    each.statement.upper(),
                    f"{answers[each.holds]}{f': {each.why_not}' if each.why_not else ''} ({each.sources})",
                )
                for each in levels
            )
        )
