"""Which operations conflict on a table, as text: a grid of operations, the reasons, what a policy changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from string import ascii_lowercase

from tablectl.conflicts.streaming_readers import ReaderEffect, ReaderStop, stream_reader
from tablectl.conflicts.transactions import Conflict, ConflictOutcome
from tablectl.delta.dialects import dialect_for
from tablectl.delta.protocol import Client
from tablectl.frozen import frozen
from tablectl.insight.matrix.conflict_report import ConflictReport, ContextComparison
from tablectl.insight.matrix.context import ConflictContext
from tablectl.insight.matrix.matrix import (
    BY_APPLY,
    IN_TURN,
    CellVerdict,
    Matrix,
    MatrixCell,
    MatrixDifference,
    compare,
    fixes_for,
    row_levels,
)
from tablectl.insight.matrix.operations import OperationGroup, TableOperation
from tablectl.model.text import printable, value_text
from tablectl.reports.style import Style, plural, wrapped

_COLOURS = {
    CellVerdict.COMMITS: "green",
    CellVerdict.DEPENDS: "yellow",
    CellVerdict.UNKNOWN: "yellow",
    CellVerdict.FAILS: "red",
}
_WORDS = {
    CellVerdict.COMMITS: "commits",
    CellVerdict.DEPENDS: "fails on the same data",
    CellVerdict.UNKNOWN: "not documented",
    CellVerdict.FAILS: "fails",
}
_MOST = 0.6
"""If at least this share of all writes, or of all changes of settings, is listed, they are named as a group."""
Named = Callable[[TableOperation], str]


def conflicts_text(report: ConflictReport, style: Style, *, everything: bool = False, about: str = "") -> str:
    """The whole report. ``everything`` lists every pair that fails; ``about`` limits it to one operation, given by its
    key.
    """
    lines = [style.paint(printable(report.live.name.text), "bold"), *_facts(report, style)]
    for view in report.views:
        lines += ["", *_view(view, style, everything=everything, about=about)]
    lines += ["", *_policy(report, style, everything=everything, about=about)]
    return "\n".join(lines) + "\n"


def _facts(report: ConflictReport, style: Style) -> list[str]:
    setting, live = report.views[0].live.setting, report.live
    layout = "clustered" if setting.clustered else "no partitions"
    if live.partition_columns:
        layout = f"partitioned by {', '.join(live.partition_columns)}"
    facts = [f"version {live.version}", layout, f"deletion vectors {'on' if setting.vectors else 'off'}"]
    if setting.identity:
        facts.append("identity columns")
    return wrapped(", ".join(facts), 2, style, "dim")


def _view(view: ContextComparison, style: Style, *, everything: bool, about: str) -> list[str]:
    setting = view.live.setting
    who = " and ".join(client.text() for client in view.clients)
    level = f"{setting.level}{'' if setting.stored_level else ' (not set)'}"
    lines = wrapped(f"When {who} commits second, at {level}:", 0, style, "bold")
    if about:
        return [*lines, *_about(view.live, about, style)]
    if everything:
        return [*lines, *reason_lines(view.live.cells, setting, in_words(view.live), style)]
    rows = _everyday(view.live)
    letters = {each.key: letter for each, letter in zip(rows, ascii_lowercase, strict=False)}
    cells = [cell for cell in view.live.cells if cell.current in rows and cell.committed in rows]
    sections = [
        _grid(view.live, rows, letters, style),
        reason_lines(cells, setting, lambda each: " ".join(letters[one.key] for one in each), style),
        _statements(view.live, rows, letters, style),
        _readers(view.live, style),
        _row_level(setting, style),
    ]
    for section in sections:
        lines += [*section, ""] if section else []
    return lines[:-1]


def _everyday(found: Matrix) -> list[TableOperation]:
    """The operations of the grid: writes of rows, and maintenance of their files."""
    kept = (each for each in found.all_current if each.group in {OperationGroup.ROWS, OperationGroup.FILES})
    return [each for each in kept if not each.key.startswith("evolving-")]


def _grid(found: Matrix, rows: Sequence[TableOperation], letters: Mapping[str, str], style: Style) -> list[str]:
    """Rows commit second, columns commit first: a row's letter stands over its column."""
    pad = max(len(each.name) for each in rows) + 4
    head = f"  {'in flight'.ljust(pad)}{' '.join(letters.values())}"
    also = "  commits first"
    lines = [style.paint(head + (also if len(head + also) <= style.width else ""), "dim")]
    for row in rows:
        cells = (found.cell(row.key, column.key).verdict for column in rows)
        marks = " ".join(style.paint(verdict.mark, _COLOURS[verdict]) for verdict in cells)
        lines.append(f"  {letters[row.key]} {row.name.ljust(pad - 2)}{marks}")
    used = {found.cell(row.key, column.key).verdict for row in rows for column in rows}
    legend = "   ".join(f"{verdict.mark} {_WORDS[verdict]}" for verdict in CellVerdict if verdict in used)
    return [*lines, *wrapped(legend, 2, style, "dim")]


@frozen
class _Why:
    """What the cells of a group have in common."""

    verdict: CellVerdict
    outcome: ConflictOutcome
    ways: tuple[str, ...]


Listed = Callable[[Sequence[TableOperation]], str]


def reason_lines(cells: Iterable[MatrixCell], setting: ConflictContext, listed: Listed, style: Style) -> list[str]:
    """The cells in which the current transaction may fail, grouped by reason, with certain failures first."""
    groups: dict[_Why, dict[TableOperation, list[TableOperation]]] = {}
    for cell in cells:
        if cell.verdict is not CellVerdict.COMMITS:
            ways = tuple(way for way in fixes_for(cell, setting) if way != BY_APPLY)
            groups.setdefault(_Why(cell.verdict, cell.overlapping, ways), {}).setdefault(cell.current, []).append(
                cell.committed
            )
    lines: list[str] = []
    order = sorted(groups.items(), key=lambda each: list(CellVerdict).index(each[0].verdict), reverse=True)
    for why, pairs in order:
        may = why.verdict is CellVerdict.UNKNOWN
        lines += [*_why(why, setting, style), *pairs_lines(pairs, listed, style, may=may)]
        for index, way in enumerate(why.ways):
            lines += style.prose("avoid" if index == 0 else "or", way, 4)
    if any(not why.ways for why in groups):
        lines += wrapped(f"Where nothing else is named: {IN_TURN}.", 2, style, "dim")
    return lines


def _raised(conflict: Conflict, client: Client) -> str:
    message = conflict.message_of(client)
    return f'{conflict.raised_by(client)} ("{message}")' if message else conflict.raised_by(client)


def _why(why: _Why, setting: ConflictContext, style: Style) -> list[str]:
    conflict = why.outcome.conflict
    mark = style.paint(why.verdict.mark, _COLOURS[why.verdict], "bold")
    title = f"{_raised(conflict, setting.client)}: " if conflict else ""
    first, *rest = wrapped(f"{title}{why.outcome.reason} ({why.outcome.source})", 4, style)
    return [f"  {mark} {first.strip()}", *rest]


def pairs_lines(
    pairs: Mapping[TableOperation, Sequence[TableOperation]],
    listed: Listed,
    style: Style,
    what: str = "",
    *,
    may: bool = False,
) -> list[str]:
    """``c d fail if a b commits first``, and ``what`` after it: losers with the same winners in one line."""
    alike: dict[tuple[TableOperation, ...], list[TableOperation]] = {}
    for current, all_committed in pairs.items():
        alike.setdefault(tuple(all_committed), []).append(current)
    lines: list[str] = []
    for all_committed, all_current in alike.items():
        verb = "may fail" if may else "fails" if len(all_current) == 1 else "fail"
        lines += wrapped(
            f"{listed(all_current)} {verb} if {listed(all_committed)} commits first{what}", 4, style, "cyan"
        )
    return lines


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


def _statements(
    found: Matrix, all_current: Sequence[TableOperation], letters: Mapping[str, str], style: Style
) -> list[str]:
    """The effect of changes of settings, and of the whole table, on the writes of the grid. Equal effects share a
    line.
    """
    groups: dict[tuple[str, int, CellVerdict], list[TableOperation]] = {}
    for committed in found.all_committed:
        if committed not in all_current:
            cells = [found.cell(each.key, committed.key) for each in all_current]
            groups.setdefault(_effects(cells, letters, found.setting.client), []).append(committed)
    lines = [style.paint("Statements that change the table, while one of these runs:", "bold")]
    for (harm, _, worst), all_committed in sorted(groups.items(), key=lambda each: each[0][1]):
        first, *rest = wrapped(harm, 4, style)
        lines += [f"  {style.paint(worst.mark, _COLOURS[worst], 'bold')} {first.strip()}", *rest]
        lines += wrapped(", ".join(each.name for each in all_committed), 4, style, "cyan")
    return lines


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
            parts.append(f"{_who(mine, cells, letters)} {what}{how}")
    worst = max((cell.verdict for cell in affected), key=list(CellVerdict).index)
    return "; ".join(parts), len(affected), worst


def _who(mine: Sequence[MatrixCell], every: Sequence[MatrixCell], letters: Mapping[str, str]) -> str:
    spared = [letters[cell.current.key] for cell in every if cell not in mine]
    if not spared:
        return "all"
    if len(spared) < len(mine):
        return f"all except {' '.join(spared)}"
    return " ".join(letters[cell.current.key] for cell in mine)


def _readers(found: Matrix, style: Style) -> list[str]:
    dialect = dialect_for(found.setting.client.family).name
    by_stop: dict[ReaderStop, list[TableOperation]] = {}
    for each in found.all_committed:
        made = [transaction.committed for transaction in each.transactions(found.setting, "a")]
        by_stop.setdefault(stream_reader(made, dialect), []).append(each)
    listed = in_words(found)
    lines = [style.paint("A stream that reads the table:", "bold")]
    for stop, operations in sorted(by_stop.items(), key=lambda each: each[0].effect.rank):
        what = {ReaderEffect.GOES_ON: "continues after", ReaderEffect.RESTARTS: "restarts after"}.get(
            stop.effect, "stops after"
        )
        lines += wrapped(f"{what} {listed(operations)}", 2, style)
        if stop.effect is not ReaderEffect.GOES_ON:
            condition = f"{stop.condition}: " if stop.condition else ""
            lines += wrapped(f"{condition}{stop.reason} ({stop.source})", 4, style, "dim")
            lines += style.prose("avoid" if stop.effect is ReaderEffect.STOPS else "then", stop.fix, 4)
    return lines


def _row_level(setting: ConflictContext, style: Style) -> list[str]:
    levels = row_levels(setting)
    if not levels:
        return []
    lines = [style.paint("Row-level concurrency, for plain conditions:", "bold")]
    for each in levels:
        answer = {True: "holds", False: "does not hold", None: "cannot tell"}[each.holds]
        why = f": {each.why_not}" if each.why_not else ""
        lines += wrapped(f"{each.statement.upper()} {answer}{why} ({each.sources})", 2, style)
    return lines


def _about(found: Matrix, key: str, style: Style) -> list[str]:
    """Everything about one operation, both as the current and as the committed one."""
    if not any(key == each.key for each in found.all_committed):
        return ["  this table cannot take it, or already has it"]
    lines: list[str] = []
    for losing in (True, False):
        mine = [cell for cell in found.cells if key == (cell.current if losing else cell.committed).key]
        if not mine:
            continue
        spared = [cell.committed if losing else cell.current for cell in mine if cell.verdict is CellVerdict.COMMITS]
        name = (mine[0].current if losing else mine[0].committed).name
        lines += ["", style.paint(f"{name} in flight" if losing else f"{name} commits first", "bold")]
        if spared:
            what = "it commits alongside" if losing else "it conflicts with none of"
            lines += wrapped(f"{what} {in_words(found)(spared)}", 2, style)
        lines += reason_lines(mine, found.setting, in_words(found), style)
    return lines


def _policy(report: ConflictReport, style: Style, *, everything: bool, about: str) -> list[str]:
    if not report.declared:
        return [style.paint("No policy covers this table.", "dim")]
    if not report.changes:
        return [style.paint("The table matches its policy: no changes.", "dim")]
    lines = [style.paint("What the policy changes:", "bold")]
    for change in report.changes:
        refused = "  (apply refuses it)" if change.id in report.refused else ""
        lines += wrapped(f"{change.id}: {value_text(change.before)} → {value_text(change.after)}{refused}", 2, style)
    for view in report.views:
        if len(report.views) > 1:
            lines += wrapped(
                f"when {' and '.join(client.text() for client in view.clients)} commits second:", 2, style, "bold"
            )
        lines += [*_differences(view, style, everything=everything, about=about), *_row_level_change(view, style)]
    return lines


def _differences(view: ContextComparison, style: Style, *, everything: bool, about: str) -> list[str]:
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
    lines: list[str] = []
    for (old, new, outcome), pairs in groups.items():
        better = list(CellVerdict).index(new) < list(CellVerdict).index(old)
        mark = f"{style.paint(old.mark, _COLOURS[old])} → {style.paint(new.mark, _COLOURS[new])}"
        conflict = (
            f", with {outcome.conflict.raised_by(view.planned.setting.client)}"
            if outcome.conflict and not better
            else ""
        )
        words = f"now {_WORDS[new]}{conflict}: {outcome.reason} ({outcome.source})"
        first, *rest = wrapped(words, 8, style)
        lines += [f"  {mark} {first.strip()}", *rest, *pairs_lines(pairs, in_words(view.planned), style)]
    also = f", {otherwise} fail with another exception" if otherwise else ""
    return [*lines, *wrapped(f"{plural(equal, 'pair')} of operations have the same result as before{also}.", 2, style)]


def _concerns(difference: MatrixDifference, key: str) -> bool:
    return key in {difference.cell.current.key, difference.cell.committed.key}


def _row_level_change(view: ContextComparison, style: Style) -> list[str]:
    if view.planned is None:
        return []
    before, after = row_levels(view.live.setting), row_levels(view.planned.setting)
    lines: list[str] = []
    for old, new in zip(before, after, strict=True):
        if old.holds is not new.holds:
            answer = {True: "holds now", False: "no longer holds", None: "may hold or not"}[new.holds]
            lines += wrapped(f"row-level concurrency {answer} for {new.statement.upper()} ({new.sources})", 2, style)
    return lines
