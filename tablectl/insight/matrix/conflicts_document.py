"""Which operations conflict on a table, as a document: a grid of operations, the reasons, what a policy changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from string import ascii_lowercase
from typing import Any

from tablectl.conflicts.streaming_readers import ReaderEffect, ReaderStop, stream_reader
from tablectl.conflicts.transactions import Conflict, ConflictOutcome
from tablectl.delta.dialects import dialect_for
from tablectl.delta.protocol import Client
from tablectl.documents.document import (
    Block,
    Card,
    Cell,
    ChangeRow,
    Changes,
    CommentEnd,
    Document,
    Facts,
    Grid,
    Heading,
    Paragraph,
    Row,
    Tone,
    Verdict,
)
from tablectl.documents.style import plural
from tablectl.insight.matrix.conflict_report import ConflictReport, ContextComparison
from tablectl.insight.matrix.context import ConflictContext
from tablectl.insight.matrix.matrix import (
    BY_APPLY,
    IN_TURN,
    CellVerdict,
    Matrix,
    MatrixCell,
    MatrixDifference,
    RowLevel,
    compare,
    fixes_for,
    row_levels,
)
from tablectl.insight.matrix.operations import OperationGroup, TableOperation
from tablectl.model.text import value_text
from tablectl.support.frozen import frozen

_TONES: Mapping[CellVerdict, Tone] = {
    CellVerdict.COMMITS: "good",
    CellVerdict.DEPENDS: "pending",
    CellVerdict.UNKNOWN: "pending",
    CellVerdict.FAILS: "bad",
}
_WORDS = {
    CellVerdict.COMMITS: "commits",
    CellVerdict.DEPENDS: "fails on the same data",
    CellVerdict.UNKNOWN: "not documented",
    CellVerdict.FAILS: "fails",
}
_MOST = 0.6
"""If at least this share of all writes, or of all changes of settings, is listed, they are named as a group."""
Listed = Callable[[Sequence[TableOperation]], str]
Pairs = Mapping[TableOperation, Sequence[TableOperation]]


def document_of_conflicts(report: ConflictReport, *, everything: bool = False, about: str = "") -> Document:
    """The whole report. ``everything`` lists every pair that fails; ``about`` limits it to one operation, given by its
    key.
    """
    cells = [cell for view in report.views for cell in view.live.cells]
    fails = sum(cell.verdict is CellVerdict.FAILS for cell in cells)
    parts = (f"{fails} of {plural(len(cells), 'pair')} of operations fail", f"version {report.live.version}")
    table = Card((report.live.name.text,), "", "", "", brief=(Paragraph(_layout(report), "quiet"),))
    end = CommentEnd("<!-- tablectl conflicts -->", "<code>tablectl conflicts</code> prints all of it.")
    return Document(
        subject="Conflicts",
        verdict=Verdict("pending" if fails else "good", report.live.name.text, parts),
        cards=(
            table,
            *(_view(each, everything=everything, about=about) for each in report.views),
            _policy(report, everything=everything, about=about),
        ),
        record=_json(report),
        comment=lambda: end,
    )


def _layout(report: ConflictReport) -> str:
    setting, live = report.views[0].live.setting, report.live
    layout = "clustered" if setting.clustered else "no partitions"
    if live.partition_columns:
        layout = f"partitioned by {', '.join(live.partition_columns)}"
    identity = ["identity columns"] if setting.identity else []
    return ", ".join(
        [f"version {live.version}", layout, f"deletion vectors {'on' if setting.vectors else 'off'}", *identity]
    )


def _who(view: ContextComparison) -> str:
    return " and ".join(client.text() for client in view.clients)


def _view(view: ContextComparison, *, everything: bool, about: str) -> Card:
    setting = view.live.setting
    level = f"{setting.level}{'' if setting.stored_level else ' (not set)'}"
    if about:
        blocks = _about(view.live, about)
    elif everything:
        blocks = reason_blocks(view.live.cells, setting, in_words(view.live))
    else:
        blocks = _everyday(view.live)
    return Card((f"When {_who(view)} commits second",), f"at {level}", "quiet", "", "client", brief=tuple(blocks))


def _everyday(found: Matrix) -> Iterator[Block]:
    """The writes of rows and the maintenance of their files against each other, then what else meets them."""
    kept = (each for each in found.all_current if each.group in {OperationGroup.ROWS, OperationGroup.FILES})
    rows = [each for each in kept if not each.key.startswith("evolving-")]
    letters = {each.key: letter for each, letter in zip(rows, ascii_lowercase, strict=False)}
    cells = [cell for cell in found.cells if cell.current in rows and cell.committed in rows]
    yield from _grid(found, rows, letters)
    yield from reason_blocks(cells, found.setting, lambda each: " ".join(letters[one.key] for one in each))
    yield from _statements(found, rows, letters)
    yield from _readers(found)
    if levels := row_levels(found.setting):
        yield Heading("Row-level concurrency, for plain conditions", style="sql")
        yield Facts(tuple((each.statement.upper(), _row_level(each)) for each in levels))


def _row_level(each: RowLevel) -> str:
    answer = {True: "holds", False: "does not hold", None: "unknown"}[each.holds]
    return f"{answer}{f': {each.why_not}' if each.why_not else ''} ({each.sources})"


def _grid(found: Matrix, rows: Sequence[TableOperation], letters: Mapping[str, str]) -> Iterator[Block]:
    """Rows commit second, columns commit first: a row's letter stands over its column."""
    made = []
    for row in rows:
        verdicts = [found.cell(row.key, column.key).verdict for column in rows]
        cells = ((Cell(verdict.mark, tone=_TONES[verdict]),) for verdict in verdicts)
        made.append(Row(((Cell(f"{letters[row.key]} {row.name}"),), *cells)))
    yield Grid("Rows commit second, columns first", ("in flight", *letters.values()), tuple(made))
    used = {found.cell(row.key, column.key).verdict for row in rows for column in rows}
    legend = "   ".join(f"{verdict.mark} {_WORDS[verdict]}" for verdict in CellVerdict if verdict in used)
    yield Paragraph(f"{legend}   (columns commit first)", "quiet")


@frozen
class _Why:
    """What the cells of a group have in common."""

    verdict: CellVerdict
    outcome: ConflictOutcome
    ways: tuple[str, ...]


def reason_blocks(cells: Iterable[MatrixCell], setting: ConflictContext, listed: Listed) -> Iterator[Block]:
    """The cells in which the current transaction may fail, grouped by reason, with certain failures first."""
    groups: dict[_Why, dict[TableOperation, list[TableOperation]]] = {}
    for cell in cells:
        if cell.verdict is not CellVerdict.COMMITS:
            ways = tuple(way for way in fixes_for(cell, setting) if way != BY_APPLY)
            pairs = groups.setdefault(_Why(cell.verdict, cell.overlapping, ways), {})
            pairs.setdefault(cell.current, []).append(cell.committed)
    order = sorted(groups.items(), key=lambda each: list(CellVerdict).index(each[0].verdict), reverse=True)
    for why, pairs in order:
        conflict = why.outcome.conflict
        title = f"{_raised(conflict, setting.client)}: " if conflict else ""
        may = why.verdict is CellVerdict.UNKNOWN
        facts = [(why.verdict.mark, f"{title}{why.outcome.reason} ({why.outcome.source})")]
        facts += [("where", text) for text in pairs_texts(pairs, listed, may=may)]
        facts += [("avoid" if index == 0 else "or", way) for index, way in enumerate(why.ways)]
        yield Facts(tuple(facts))
    if any(not why.ways for why in groups):
        yield Paragraph(f"Where nothing else is named: {IN_TURN}.", "quiet")


def _raised(conflict: Conflict, client: Client) -> str:
    message = conflict.message_of(client)
    return f'{conflict.raised_by(client)} ("{message}")' if message else conflict.raised_by(client)


def pairs_texts(pairs: Pairs, listed: Listed, what: str = "", *, may: bool = False) -> Iterator[str]:
    """``c d fail if a b commits first``, and ``what`` after it: losers with the same winners in one text."""
    alike: dict[tuple[TableOperation, ...], list[TableOperation]] = {}
    for current, all_committed in pairs.items():
        alike.setdefault(tuple(all_committed), []).append(current)
    for all_committed, all_current in alike.items():
        verb = "may fail" if may else "fails" if len(all_current) == 1 else "fail"
        yield f"{listed(all_current)} {verb} if {listed(all_committed)} commits first{what}"


def in_words(found: Matrix) -> Listed:
    """Operations by name. If nearly all writes, or all changes of settings, are among them, they are named as a
    group.
    """
    writes = [each for each in found.all_committed if each.group in {OperationGroup.ROWS, OperationGroup.FILES}]
    settings = [each for each in found.all_committed if each.group is OperationGroup.SETTINGS]

    def listed(operations: Sequence[TableOperation]) -> str:
        whole = [each for each in operations if each not in writes and each not in settings]
        names = [
            *_together("any write", writes, operations),
            *(each.name for each in whole),
            *_together("any change of settings", settings, operations),
        ]
        return ", ".join(names)

    return listed


def _together(title: str, every: Sequence[TableOperation], operations: Sequence[TableOperation]) -> list[str]:
    inside = [each.name for each in every if each in operations]
    if not inside or len(inside) < _MOST * len(every):
        return inside
    missing = [each.name for each in every if each not in operations]
    return [f"{title} (except {', '.join(missing)})" if missing else title]


def _statements(found: Matrix, all_current: Sequence[TableOperation], letters: Mapping[str, str]) -> Iterator[Block]:
    """The effect of changes of settings, and of the whole table, on the writes of the grid. Equal effects together."""
    groups: dict[tuple[str, int, CellVerdict], list[TableOperation]] = {}
    for committed in found.all_committed:
        if committed not in all_current:
            cells = [found.cell(each.key, committed.key) for each in all_current]
            groups.setdefault(_effects(cells, letters, found.setting.client), []).append(committed)
    yield Heading("Statements that change the table, while one of these runs", style="sql")
    for (harm, _, worst), all_committed in sorted(groups.items(), key=lambda each: each[0][1]):
        yield Facts(((worst.mark, harm), ("after", ", ".join(each.name for each in all_committed))))


def _effects(cells: Sequence[MatrixCell], letters: Mapping[str, str], client: Client) -> tuple[str, int, CellVerdict]:
    """``all except i j fail: MetadataChangedException``, how many of the cells that are, and the worst verdict."""
    affected = [cell for cell in cells if cell.verdict is not CellVerdict.COMMITS]
    if not affected:
        return "none of them fails", 0, CellVerdict.COMMITS
    parts: list[str] = []
    for verdict in reversed(list(CellVerdict)[1:]):
        mine = [cell for cell in affected if cell.verdict is verdict]
        if mine:
            what = {CellVerdict.FAILS: "fail", CellVerdict.UNKNOWN: "may fail"}.get(verdict, "fail on the same data")
            conflicts = [cell.overlapping.conflict for cell in mine if cell.overlapping.conflict]
            names = dict.fromkeys(each.raised_by(client) for each in conflicts)
            how = f": {' or '.join(names)}" if names else f": {mine[0].overlapping.reason}"
            parts.append(f"{_affected(mine, cells, letters)} {what}{how}")
    worst = max((cell.verdict for cell in affected), key=list(CellVerdict).index)
    return "; ".join(parts), len(affected), worst


def _affected(mine: Sequence[MatrixCell], every: Sequence[MatrixCell], letters: Mapping[str, str]) -> str:
    spared = [letters[cell.current.key] for cell in every if cell not in mine]
    if not spared:
        return "all"
    if len(spared) < len(mine):
        return f"all except {' '.join(spared)}"
    return " ".join(letters[cell.current.key] for cell in mine)


def _readers(found: Matrix) -> Iterator[Block]:
    dialect = dialect_for(found.setting.client.family).name
    by_stop: dict[ReaderStop, list[TableOperation]] = {}
    for each in found.all_committed:
        made = [transaction.committed for transaction in each.transactions(found.setting, "a")]
        by_stop.setdefault(stream_reader(made, dialect), []).append(each)
    listed = in_words(found)
    yield Heading("A stream that reads the table", style="sql")
    for stop, operations in sorted(by_stop.items(), key=lambda each: each[0].effect.rank):
        goes_on = stop.effect is ReaderEffect.GOES_ON
        what = "continues" if goes_on else "restarts" if stop.effect is ReaderEffect.RESTARTS else "stops"
        facts = [(what, f"after {listed(operations)}")]
        if not goes_on:
            condition = f"{stop.condition}: " if stop.condition else ""
            facts.append(("why", f"{condition}{stop.reason} ({stop.source})"))
            facts.append(("avoid" if stop.effect is ReaderEffect.STOPS else "then", stop.fix))
        yield Facts(tuple(facts))


def _about(found: Matrix, key: str) -> Iterator[Block]:
    """Everything about one operation, both as the current and as the committed one."""
    if not any(key == each.key for each in found.all_committed):
        yield Paragraph("this table cannot take it, or already has it")
        return
    for losing in (True, False):
        mine = [cell for cell in found.cells if key == (cell.current if losing else cell.committed).key]
        if not mine:
            continue
        spared = [cell.committed if losing else cell.current for cell in mine if cell.verdict is CellVerdict.COMMITS]
        name = (mine[0].current if losing else mine[0].committed).name
        yield Heading(f"{name} in flight" if losing else f"{name} commits first", style="sql")
        if spared:
            what = "it commits alongside" if losing else "it conflicts with none of"
            yield Paragraph(f"{what} {in_words(found)(spared)}")
        yield from reason_blocks(mine, found.setting, in_words(found))


def _policy(report: ConflictReport, *, everything: bool, about: str) -> Card:
    if not report.declared:
        return Card(("What the policy changes",), "no policy covers this table", "quiet", "")
    if not report.changes:
        return Card(("What the policy changes",), "nothing: the table matches it", "quiet", "")
    rows = (
        ChangeRow(
            each.id,
            value_text(each.before),
            value_text(each.after),
            result="apply refuses it" if each.id in report.refused else "",
        )
        for each in report.changes
    )
    blocks: list[Block] = [Changes(tuple(rows), caption="What the policy changes")]
    for view in report.views:
        if len(report.views) > 1:
            blocks.append(Heading(f"When {_who(view)} commits second", style="sql"))
        blocks += [*_differences(view, everything=everything, about=about), *_row_level_change(view)]
    return Card(("What the policy changes",), "", "", "", brief=tuple(blocks))


def _differences(view: ContextComparison, *, everything: bool, about: str) -> Iterator[Block]:
    """The pairs whose outcome differs, grouped by the difference. Pairs that only one of the two tables supports are
    left out.
    """
    assert view.planned is not None
    different, equal = compare(view.live, view.planned)
    groups: dict[tuple[CellVerdict, CellVerdict, ConflictOutcome], dict[TableOperation, list[TableOperation]]] = {}
    otherwise = 0
    for before, after in ((each.before, each.after) for each in different if not about or _concerns(each, about)):
        if not before or not after:
            continue
        if before.verdict is after.verdict and not everything:
            otherwise += 1
            continue
        key = (before.verdict, after.verdict, after.overlapping)
        groups.setdefault(key, {}).setdefault(after.current, []).append(after.committed)
    for (old, new, outcome), pairs in groups.items():
        worse = list(CellVerdict).index(new) >= list(CellVerdict).index(old)
        client = view.planned.setting.client
        conflict = f", with {outcome.conflict.raised_by(client)}" if outcome.conflict and worse else ""
        facts = [(f"{old.mark} → {new.mark}", f"now {_WORDS[new]}{conflict}: {outcome.reason} ({outcome.source})")]
        facts += [("where", text) for text in pairs_texts(pairs, in_words(view.planned))]
        yield Facts(tuple(facts))
    also = f", {otherwise} fail with another exception" if otherwise else ""
    yield Paragraph(f"{plural(equal, 'pair')} of operations have the same result as before{also}.")


def _concerns(difference: MatrixDifference, key: str) -> bool:
    return key in {difference.cell.current.key, difference.cell.committed.key}


def _row_level_change(view: ContextComparison) -> Iterator[Block]:
    if view.planned is None:
        return
    before, after = row_levels(view.live.setting), row_levels(view.planned.setting)
    for old, new in zip(before, after, strict=True):
        if old.holds is not new.holds:
            answer = {True: "holds now", False: "no longer holds", None: "may hold or not"}[new.holds]
            yield Paragraph(f"row-level concurrency {answer} for {new.statement.upper()} ({new.sources})")


def _json(report: ConflictReport) -> dict[str, Any]:
    """The matrix as plain values. ``meeting`` is the outcome for the same data, ``apart`` the outcome for different
    data.
    """
    return {
        "table": report.live.name.text,
        "version": report.live.version,
        "declared": report.declared,
        "changes": [
            {
                "change": change.id,
                "before": change.before,
                "after": change.after,
                "refused": change.id in report.refused,
            }
            for change in report.changes
        ],
        "operations": {each.key: each.name for view in report.views for each in _operations_of(view)},
        "views": [_json_of_view(view) for view in report.views],
    }


def _operations_of(view: ContextComparison) -> tuple[TableOperation, ...]:
    return (*view.live.all_committed, *(view.planned.all_committed if view.planned else ()))


def _json_of_view(view: ContextComparison) -> dict[str, Any]:
    setting = view.live.setting
    made: dict[str, Any] = {
        "clients": [{"engine": client.engine, "version": list(client.version)} for client in view.clients],
        "isolation": setting.level,
        "isolation_pinned": setting.stored_level is not None,
        "pairs": [_json_of_cell(cell, setting) for cell in view.live.cells],
        "streaming_readers": _json_of_readers(view.live),
        "row_level": [_json_of_row_level(each) for each in row_levels(setting)],
        "policy": None,
    }
    if view.planned is not None:
        different, equal = compare(view.live, view.planned)
        planned = view.planned.setting
        made["policy"] = {
            "equal": equal,
            "different": [
                {
                    "before": _json_of_cell(each.before, setting) if each.before else None,
                    "after": _json_of_cell(each.after, planned) if each.after else None,
                }
                for each in different
            ],
            "row_level": [_json_of_row_level(each) for each in row_levels(planned)],
        }
    return made


def _json_of_cell(cell: MatrixCell, setting: ConflictContext) -> dict[str, Any]:
    return {
        "current": cell.current.key,
        "committed": cell.committed.key,
        "verdict": cell.verdict,
        "meeting": _json_of_outcome(cell.overlapping, setting.client),
        "apart": _json_of_outcome(cell.separate, setting.client),
        "avoid": list(fixes_for(cell, setting)),
    }


def _json_of_outcome(outcome: ConflictOutcome, client: Client) -> dict[str, Any]:
    """``message`` is the text of clients that have one exception for all conflicts."""
    failure: Mapping[str, str | None] = {"exception": None, "message": None, "condition": None}
    conflict = outcome.conflict
    if conflict:
        message = conflict.message_of(client) or None
        failure = {"exception": conflict.raised_by(client), "message": message, "condition": conflict}
    return {"result": outcome.result, **failure, "reason": outcome.reason, "source": outcome.source}


def _json_of_readers(found: Matrix) -> list[dict[str, Any]]:
    dialect = dialect_for(found.setting.client.family).name
    rows = []
    for each in found.all_committed:
        made = [transaction.committed for transaction in each.transactions(found.setting, "a")]
        rows.append({"committed": each.key, **_json_of_stop(stream_reader(made, dialect))})
    return rows


def _json_of_stop(stop: ReaderStop) -> dict[str, Any]:
    return {
        "effect": stop.effect.name.lower(),
        "condition": stop.condition or None,
        "reason": stop.reason,
        "source": stop.source,
        "avoid": stop.fix or None,
    }


def _json_of_row_level(each: RowLevel) -> dict[str, Any]:
    return {"statement": each.statement, "holds": each.holds, "sources": each.sources, "why_not": each.why_not or None}
