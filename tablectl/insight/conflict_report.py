"""Conflicts between writers of a table, in its current state and after its policy is applied: as a record, and as a
document with a grid of operations, the reasons, and what the policy changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from string import ascii_lowercase

from pydantic import computed_field

from tablectl.attributes.policy import Policy, basis_of
from tablectl.conflicts.expected_writers import ExpectedWriters
from tablectl.conflicts.transactions import Level
from tablectl.delta.names import TableName
from tablectl.delta.protocol import Client
from tablectl.documents.document import (
    Block,
    Card,
    ChangeRow,
    Changes,
    ColourGrid,
    CommentEnd,
    Document,
    Facts,
    Heading,
    Paragraph,
    Shade,
    Square,
    Verdict,
)
from tablectl.documents.style import plural
from tablectl.insight.conflict_context import NO_ASSUMPTION, Assumption, ConflictContext
from tablectl.insight.matrix import (
    BY_APPLY,
    IN_TURN,
    CellOutcome,
    CellVerdict,
    Matrix,
    MatrixCell,
    MatrixDifference,
    RowLevel,
    StreamingReader,
    compare,
    matrix,
    row_levels,
    streaming_readers,
)
from tablectl.insight.table_operations import OperationGroup, TableOperation
from tablectl.model.plan import Change
from tablectl.model.safe_text import value_text
from tablectl.model.table import LiveTable
from tablectl.model.table_options import NO_OPTIONS, TableOptions
from tablectl.planning.derive_statements import operations_for, refusals_for
from tablectl.planning.diff import diff
from tablectl.support.typed_json import AsText, Unwritten


@dataclass(frozen=True, slots=True)
class PolicyEffect:
    """What a policy changes in the matrix of a client."""

    equal: int
    """How many pairs have the same outcome as before."""
    different: tuple[MatrixDifference, ...]
    row_level: tuple[RowLevel, ...]
    """Row-level concurrency after the policy is applied."""


@dataclass(frozen=True, slots=True)
class ContextComparison:
    """The matrices of one client, or of several clients with equal outcomes."""

    clients: tuple[Client, ...]
    live: Unwritten[Matrix]
    planned: Unwritten[Matrix | None]
    """The matrix after the policy is applied; ``None`` if it changes nothing."""

    @computed_field
    @property
    def isolation(self) -> Level:
        """The level at which these clients commit."""
        return self.live.setting.level

    @computed_field
    @property
    def isolation_pinned(self) -> bool:
        """Whether the table sets the level."""
        return self.live.setting.stored_level is not None

    @computed_field
    @property
    def pairs(self) -> tuple[MatrixCell, ...]:
        """All pairs of operations."""
        return self.live.cells

    @computed_field
    @property
    def streaming_readers(self) -> tuple[StreamingReader, ...]:
        """The streams that read the table."""
        return streaming_readers(self.live)

    @computed_field
    @property
    def row_level(self) -> tuple[RowLevel, ...]:
        """Row-level concurrency as the table is."""
        return row_levels(self.live.setting)

    @computed_field
    @property
    def policy(self) -> PolicyEffect | None:
        """What the policy changes; ``None`` if it changes nothing."""
        if self.planned is None:
            return None
        different, equal = compare(self.live, self.planned)
        return PolicyEffect(equal, different, row_levels(self.planned.setting))


@dataclass(frozen=True, slots=True)
class ConflictReport:
    """The conflicts on one table."""

    live: Unwritten[LiveTable]
    declared: bool
    """Whether a policy applies to the table."""
    changes: tuple[Change, ...]
    """The changes that the policy requires."""
    refused: tuple[str, ...]
    """The ids of those changes that tablectl would refuse."""
    views: tuple[ContextComparison, ...]
    format: int = 2

    @computed_field
    @property
    def table(self) -> AsText[TableName]:
        """Its name."""
        return self.live.name

    @computed_field
    @property
    def version(self) -> int:
        """The version that the outcomes are of."""
        return self.live.version

    @computed_field
    @property
    def operations(self) -> Mapping[str, str]:
        """The names of all operations, by key."""
        found = (matrix for view in self.views for matrix in (view.live, view.planned) if matrix)
        return {each.key: each.name for matrix in found for each in matrix.all_committed}


def conflict_report(
    live: LiveTable,
    policy: Policy | None,
    dialect: str,
    assumption: Assumption = NO_ASSUMPTION,
    options: TableOptions = NO_OPTIONS,
) -> ConflictReport:
    """The matrices of a table, for the clients of the assumption, otherwise for those that its history suggests."""
    changes = diff(policy, live, dialect) if policy else ()
    basis = basis_of(live, options)
    refused = tuple(refusal.change for refusal in refusals_for(changes, live, dialect, options))
    expected = assumption.clients or [(client, None) for client in ExpectedWriters.of(basis, dialect).clients]
    views: list[ContextComparison] = []
    # After the policy is applied, even if that needs a rewrite that is refused.
    operations = [each.operation for each in operations_for(changes, basis)]
    for client, photon in expected:
        setting = ConflictContext.of(live, client, photon=photon, auto_compact=assumption.auto_compact)
        after = setting.after(operations)
        view = ContextComparison((client,), matrix(setting), matrix(after) if changes else None)
        same = next((each for each in views if _alike(each, view)), None)
        if same is None:
            views.append(view)
        else:
            views[views.index(same)] = replace(same, clients=(*same.clients, client))
    return ConflictReport(live, policy is not None, changes, refused, tuple(views))


def _alike(one: ContextComparison, other: ContextComparison) -> bool:
    pairs = ((one.live, other.live), (one.planned, other.planned))
    return all(_outcomes(left) == _outcomes(right) for left, right in pairs)


def _outcomes(found: Matrix | None) -> list[tuple[object, ...]]:
    cells = found.cells if found else ()
    return [(cell.current.key, cell.committed.key, cell.overlapping, cell.separate) for cell in cells]


_SHADES: Mapping[CellVerdict, Shade] = {
    CellVerdict.COMMITS: "good",
    CellVerdict.DEPENDS: "some",
    CellVerdict.UNKNOWN: "unknown",
    CellVerdict.FAILS: "bad",
}
_WORDS = {
    CellVerdict.COMMITS: "commits",
    CellVerdict.DEPENDS: "fails on the same data",
    CellVerdict.UNKNOWN: "not documented",
    CellVerdict.FAILS: "fails",
}
_EFFECTS = ("goes_on", "restarts", "stops")
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
    end = CommentEnd.of("conflicts")
    return Document(
        subject="Conflicts",
        verdict=Verdict("pending" if fails else "good", report.live.name.text, parts),
        cards=(
            table,
            *(_view(each, everything=everything, about=about) for each in report.views),
            _policy(report, everything=everything, about=about),
        ),
        record=report,
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
        blocks = reason_blocks(view.live.cells, in_words(view.live))
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
    yield from reason_blocks(cells, lambda each: " ".join(letters[one.key] for one in each))
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
        verdicts = [(column, found.cell(row.key, column.key).verdict) for column in rows]
        squares = (
            Square(_SHADES[verdict], f"{row.name} after {column.name}: {_WORDS[verdict]}", verdict.mark)
            for column, verdict in verdicts
        )
        made.append((f"{letters[row.key]} {row.name}", tuple(squares)))
    used = {found.cell(row.key, column.key).verdict for row in rows for column in rows}
    shown = tuple((_SHADES[verdict], _WORDS[verdict]) for verdict in CellVerdict if verdict in used)
    yield ColourGrid("Rows commit second, columns first", "in flight", tuple(letters.values()), tuple(made), shown)
    legend = "   ".join(f"{verdict.mark} {_WORDS[verdict]}" for verdict in CellVerdict if verdict in used)
    yield Paragraph(f"{legend}   (columns commit first)", "quiet")


@dataclass(frozen=True, slots=True)
class _Why:
    """What the cells of a group have in common."""

    verdict: CellVerdict
    outcome: CellOutcome
    ways: tuple[str, ...]


def reason_blocks(cells: Iterable[MatrixCell], listed: Listed) -> Iterator[Block]:
    """The cells in which the current transaction may fail, grouped by reason, with certain failures first."""
    groups: dict[_Why, dict[TableOperation, list[TableOperation]]] = {}
    for cell in cells:
        if cell.verdict is not CellVerdict.COMMITS:
            ways = tuple(way for way in cell.avoid if way != BY_APPLY)
            pairs = groups.setdefault(_Why(cell.verdict, cell.meeting, ways), {})
            pairs.setdefault(cell.current, []).append(cell.committed)
    order = sorted(groups.items(), key=lambda each: list(CellVerdict).index(each[0].verdict), reverse=True)
    for why, pairs in order:
        title = f"{why.outcome.raised}: " if why.outcome.condition else ""
        may = why.verdict is CellVerdict.UNKNOWN
        facts = [(why.verdict.mark, f"{title}{why.outcome.reason} ({why.outcome.source})")]
        facts += [("where", text) for text in pairs_texts(pairs, listed, may=may)]
        facts += [("avoid" if index == 0 else "or", way) for index, way in enumerate(why.ways)]
        yield Facts(tuple(facts))
    if any(not why.ways for why in groups):
        yield Paragraph(f"Where nothing else is named: {IN_TURN}.", "quiet")


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
            groups.setdefault(_effects(cells, letters), []).append(committed)
    yield Heading("Statements that change the table, while one of these runs", style="sql")
    for (harm, _, worst), all_committed in sorted(groups.items(), key=lambda each: each[0][1]):
        yield Facts(((worst.mark, harm), ("after", ", ".join(each.name for each in all_committed))))


def _effects(cells: Sequence[MatrixCell], letters: Mapping[str, str]) -> tuple[str, int, CellVerdict]:
    """``all except i j fail: MetadataChangedException``, how many of the cells that are, and the worst verdict."""
    affected = [cell for cell in cells if cell.verdict is not CellVerdict.COMMITS]
    if not affected:
        return "none of them fails", 0, CellVerdict.COMMITS
    parts: list[str] = []
    for verdict in reversed(list(CellVerdict)[1:]):
        mine = [cell for cell in affected if cell.verdict is verdict]
        if mine:
            what = {CellVerdict.FAILS: "fail", CellVerdict.UNKNOWN: "may fail"}.get(verdict, "fail on the same data")
            names = dict.fromkeys(cell.meeting.exception for cell in mine if cell.meeting.condition)
            how = f": {' or '.join(names)}" if names else f": {mine[0].meeting.reason}"
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
    groups: dict[tuple[str, ...], list[StreamingReader]] = {}
    for each in streaming_readers(found):
        groups.setdefault((each.effect, each.condition, each.reason, each.source, each.avoid), []).append(each)
    listed = in_words(found)
    yield Heading("A stream that reads the table", style="sql")
    for readers in sorted(groups.values(), key=lambda each: _EFFECTS.index(each[0].effect)):
        stop = readers[0]
        goes_on = stop.effect == "goes_on"
        what = "continues" if goes_on else stop.effect
        facts = [(what, f"after {listed([each.committed for each in readers])}")]
        if not goes_on:
            condition = f"{stop.condition}: " if stop.condition else ""
            facts.append(("why", f"{condition}{stop.reason} ({stop.source})"))
            facts.append(("avoid" if stop.effect == "stops" else "then", stop.avoid))
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
        yield from reason_blocks(mine, in_words(found))


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
    effect = view.policy
    assert view.planned is not None
    assert effect is not None
    groups: dict[tuple[CellVerdict, CellVerdict, CellOutcome], dict[TableOperation, list[TableOperation]]] = {}
    otherwise = 0
    for difference in effect.different:
        before, after = difference.before, difference.after
        if about and about not in {difference.cell.current.key, difference.cell.committed.key}:
            continue
        if not before or not after:
            continue
        if before.verdict is after.verdict and not everything:
            otherwise += 1
            continue
        key = (before.verdict, after.verdict, after.meeting)
        groups.setdefault(key, {}).setdefault(after.current, []).append(after.committed)
    for (old, new, outcome), pairs in groups.items():
        worse = list(CellVerdict).index(new) >= list(CellVerdict).index(old)
        conflict = f", with {outcome.exception}" if outcome.condition and worse else ""
        facts = [(f"{old.mark} → {new.mark}", f"now {_WORDS[new]}{conflict}: {outcome.reason} ({outcome.source})")]
        facts += [("where", text) for text in pairs_texts(pairs, in_words(view.planned))]
        yield Facts(tuple(facts))
    also = f", {otherwise} fail with another exception" if otherwise else ""
    yield Paragraph(f"{plural(effect.equal, 'pair')} of operations have the same result as before{also}.")


def _row_level_change(view: ContextComparison) -> Iterator[Block]:
    effect = view.policy
    for old, new in zip(view.row_level, effect.row_level, strict=True) if effect else ():
        if old.holds is not new.holds:
            answer = {True: "holds now", False: "no longer holds", None: "may hold or not"}[new.holds]
            yield Paragraph(f"row-level concurrency {answer} for {new.statement.upper()} ({new.sources})")
