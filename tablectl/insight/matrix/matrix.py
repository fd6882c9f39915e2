"""The conflict matrix of a table: the conflict rules applied to every pair of operations.

Each pair is decided twice: once where both touch the same partition or file, or are one stream run twice; and once
where they touch different ones as far as possible. No outcome is stated here: ``rules.decide_all`` decides each of
them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from enum import StrEnum

from tablectl.conflicts.rules.decide import decide_all
from tablectl.conflicts.transactions import ConflictOutcome, ConflictResult, CurrentTransaction
from tablectl.frozen import frozen
from tablectl.insight.matrix.context import ConflictContext
from tablectl.insight.matrix.operations import OperationGroup, Place, TableOperation, Transaction, operations_of
from tablectl.model.commits import CommittedTransaction


class CellVerdict(StrEnum):
    """A cell in one word, from best to worst. ``mark`` is its sign in a grid."""

    COMMITS = "commits"
    DEPENDS = "depends"
    """It fails where both touch the same partition or file; where they touch different ones it commits, or may
    commit."""
    UNKNOWN = "cannot tell"
    FAILS = "fails"

    @property
    def mark(self) -> str:
        """One character that every terminal can show."""
        return _MARKS[self.value]


_MARKS = {"commits": ".", "depends": "~", "cannot tell": "?", "fails": "X"}


@frozen
class MatrixCell:
    """The outcome of the current operation after the committed one."""

    current: TableOperation
    committed: TableOperation
    overlapping: ConflictOutcome
    """Where both touch the same partition or file, or are the same stream."""
    separate: ConflictOutcome
    """Where they touch different ones, and their conditions say so."""

    @property
    def verdict(self) -> CellVerdict:
        """Both outcomes in one word."""
        if self.overlapping.succeeds:
            return CellVerdict.COMMITS
        if ConflictResult.UNKNOWN in (self.overlapping.result, self.separate.result):
            return CellVerdict.UNKNOWN
        return CellVerdict.FAILS if self.separate.result is ConflictResult.FAILS else CellVerdict.DEPENDS


@frozen
class Matrix:
    """All cells of one context: current operation by current operation, each in the order of the committed ones."""

    setting: ConflictContext
    all_current: tuple[TableOperation, ...]
    all_committed: tuple[TableOperation, ...]
    cells: tuple[MatrixCell, ...]

    def cell(self, current: str, committed: str) -> MatrixCell:
        """The cell of two keys. Raises ``KeyError`` if the table does not support one of the operations."""
        for each in self.cells:
            if (each.current.key, each.committed.key) == (current, committed):
                return each
        raise KeyError((current, committed))


def matrix(setting: ConflictContext, groups: Collection[OperationGroup] = tuple(OperationGroup)) -> Matrix:
    """Every pair of operations of these groups that such a table supports."""
    all_committed = tuple(each for each in operations_of(setting) if each.group in groups)
    all_current = tuple(each for each in all_committed if _made_by(each, setting))
    return Matrix(setting, all_current, all_committed, tuple(_cells(setting, all_committed, all_current)))


def decide_pair(setting: ConflictContext, committed: TableOperation, current: TableOperation) -> MatrixCell:
    """The cell of one pair."""
    return next(_cells(setting, [committed], [current]))


def _cells(
    setting: ConflictContext, all_committed: Sequence[TableOperation], all_current: Sequence[TableOperation]
) -> Iterator[MatrixCell]:
    # Of each operation once, not for each pair.
    won = [(each, each.transactions(setting, "a")) for each in all_committed]
    for current in all_current:
        same, other = _current(setting, current, "a"), _current(setting, current, "b")
        for committed, first in won:
            yield MatrixCell(current, committed, _outcome(committed, first, same), _outcome(committed, first, other))


def _current(setting: ConflictContext, operation: TableOperation, place: Place) -> list[CurrentTransaction]:
    return [each.current(setting) for each in operation.transactions(setting, place) if not each.automatic]


def _outcome(
    committed: TableOperation, won: Sequence[Transaction], lost: Sequence[CurrentTransaction]
) -> ConflictOutcome:
    """The committed operation works at place ``a``. A statement of several transactions gets their worst outcome. An
    automatic compaction after the committed write may not happen, so what fails because of it may fail.
    """
    own = _worst([each.committed for each in won if not each.automatic], lost)
    if not own.succeeds or not any(each.automatic for each in won):
        return own
    compacted = _worst([each.committed for each in won], lost)
    if compacted.succeeds:
        return own
    reason = f"{compacted.reason}, by the automatic compaction after {committed.name}"
    return replace(compacted, result=ConflictResult.MAY_FAIL, reason=reason)


def _worst(won: Sequence[CommittedTransaction], lost: Sequence[CurrentTransaction]) -> ConflictOutcome:
    return max((decide_all(won, each) for each in lost), key=lambda outcome: outcome.rank)


def _made_by(current: TableOperation, setting: ConflictContext) -> bool:
    return setting.client.family.runs_sql or current.group in {OperationGroup.ROWS, OperationGroup.FILES}


@frozen
class MatrixDifference:
    """A cell that differs in another context of the same table; ``None`` on a side that does not support the pair."""

    before: MatrixCell | None
    after: MatrixCell | None

    @property
    def cell(self) -> MatrixCell:
        """Either of the two cells, for its names."""
        cell = self.after or self.before
        assert cell is not None
        return cell


def compare(before: Matrix, after: Matrix) -> tuple[tuple[MatrixDifference, ...], int]:
    """The cells whose verdict or error class differs, and the number of equal cells."""
    old, new = _by_pair(before.cells), _by_pair(after.cells)
    pairs = dict.fromkeys((*old, *new))
    found = [MatrixDifference(old.get(pair), new.get(pair)) for pair in pairs]
    different = tuple(each for each in found if not _equal(each))
    return different, len(found) - len(different)


def _by_pair(cells: Sequence[MatrixCell]) -> dict[tuple[str, str], MatrixCell]:
    return {(cell.current.key, cell.committed.key): cell for cell in cells}


def _equal(difference: MatrixDifference) -> bool:
    before, after = difference.before, difference.after
    if before is None or after is None:
        return False
    return (before.verdict, before.overlapping.conflict) == (after.verdict, after.overlapping.conflict)
