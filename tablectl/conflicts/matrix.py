"""Who loses to whom on a table: every pair of operations, put to the conflict rules.

A pair is asked twice: where the two meet (one partition, one file, one stream run twice), and where they keep apart as
far as they can. No outcome is written down here: ``rules.decide_all`` gives each of them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

from tablectl.conflicts.context import ConflictContext
from tablectl.conflicts.operations import OperationGroup, Place, TableOperation, operations_of
from tablectl.conflicts.rules.decide import decide_all
from tablectl.conflicts.transactions import ConflictOutcome, ConflictResult

_WRITE_ROWS_ONLY = frozenset({"kernel", "delta-rs"})
"""Clients that people use to write data and not to change settings."""


class CellVerdict(StrEnum):
    """A cell in one word, the better first; ``mark`` is its sign in a grid."""

    COMMITS = "commits"
    DEPENDS = "depends"
    """It fails where both touch the same, and not, or not always, where they keep apart."""
    UNKNOWN = "cannot tell"
    FAILS = "fails"

    @property
    def mark(self) -> str:
        """One character that any terminal shows."""
        return _MARKS[self.value]


_MARKS = {"commits": ".", "depends": "~", "cannot tell": "?", "fails": "X"}


@dataclass(frozen=True, slots=True)
class Cell:
    """What becomes of the loser beside the winner."""

    loser: TableOperation
    winner: TableOperation
    meeting: ConflictOutcome
    """Where both touch one partition, one file, or are one stream."""
    apart: ConflictOutcome
    """Where they touch different ones, and say so in their conditions."""

    @property
    def verdict(self) -> CellVerdict:
        """Both outcomes in one word."""
        if self.meeting.survives:
            return CellVerdict.COMMITS
        if ConflictResult.UNKNOWN in (self.meeting.result, self.apart.result):
            return CellVerdict.UNKNOWN
        return CellVerdict.FAILS if self.apart.result is ConflictResult.FAILS else CellVerdict.DEPENDS


@dataclass(frozen=True, slots=True)
class Matrix:
    """All cells of one setting, loser by loser, each in the order of the winners."""

    setting: ConflictContext
    losers: tuple[TableOperation, ...]
    winners: tuple[TableOperation, ...]
    cells: tuple[Cell, ...]

    def cell(self, loser: str, winner: str) -> Cell:
        """The cell of two keys; ``KeyError`` where the table cannot take one of them."""
        for each in self.cells:
            if (each.loser.key, each.winner.key) == (loser, winner):
                return each
        raise KeyError((loser, winner))


def matrix(setting: ConflictContext, groups: Collection[OperationGroup] = tuple(OperationGroup)) -> Matrix:
    """Every pair of operations of some groups that such a table can take."""
    winners = tuple(each for each in operations_of(setting) if each.group in groups)
    losers = tuple(each for each in winners if _made_by(each, setting))
    cells = tuple(decide_pair(setting, winner, loser) for loser in losers for winner in winners)
    return Matrix(setting, losers, winners, cells)


def decide_pair(setting: ConflictContext, winner: TableOperation, loser: TableOperation) -> Cell:
    """One cell."""
    return Cell(loser, winner, _outcome(setting, winner, loser, "a"), _outcome(setting, winner, loser, "b"))


def _outcome(setting: ConflictContext, winner: TableOperation, loser: TableOperation, place: Place) -> ConflictOutcome:
    """The winner works at place ``a``. A statement of several transactions fares as the worst of them."""
    won = [each.winner for each in winner.transactions(setting, "a")]
    outcomes = [decide_all(won, each.loser(setting)) for each in loser.transactions(setting, place)]
    return max(outcomes, key=lambda outcome: outcome.rank)


def _made_by(loser: TableOperation, setting: ConflictContext) -> bool:
    return setting.client.engine not in _WRITE_ROWS_ONLY or loser.group in {OperationGroup.ROWS, OperationGroup.FILES}


@dataclass(frozen=True, slots=True)
class MatrixDifference:
    """A cell that another setting of the same table changes; ``None`` where one of the two cannot take the pair."""

    before: Cell | None
    after: Cell | None

    @property
    def cell(self) -> Cell:
        """Either of them, for its names."""
        cell = self.after or self.before
        assert cell is not None
        return cell


def compare(before: Matrix, after: Matrix) -> tuple[tuple[MatrixDifference, ...], int]:
    """The cells with another verdict or another way to fail, and the number of the equal ones."""
    old, new = _by_pair(before.cells), _by_pair(after.cells)
    pairs = dict.fromkeys((*old, *new))
    found = [MatrixDifference(old.get(pair), new.get(pair)) for pair in pairs]
    different = tuple(each for each in found if not _equal(each))
    return different, len(found) - len(different)


def _by_pair(cells: Sequence[Cell]) -> dict[tuple[str, str], Cell]:
    return {(cell.loser.key, cell.winner.key): cell for cell in cells}


def _equal(difference: MatrixDifference) -> bool:
    before, after = difference.before, difference.after
    if before is None or after is None:
        return False
    return (before.verdict, before.meeting.conflict) == (after.verdict, after.meeting.conflict)
