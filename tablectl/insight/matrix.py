"""The conflict matrix of a table: the conflict rules applied to every pair of operations.

Each pair is decided twice: once where both touch the same partition or file, or are one stream run twice; and once
where they touch different ones as far as possible. No outcome is stated here: ``rules.decide_all`` decides each of
them. A fix is found by deciding the same pair again, with one fact changed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Literal

from pydantic import computed_field

from tablectl.conflicts.databricks_rules import NOT_DOCUMENTED, row_level, row_level_limits
from tablectl.conflicts.rules import decide_all, rules_of
from tablectl.conflicts.streaming_readers import stream_reader
from tablectl.conflicts.transactions import Conflict, ConflictOutcome, ConflictResult, CurrentTransaction, Level
from tablectl.delta.dialects import dialect_for
from tablectl.delta.protocol import Client
from tablectl.insight.conflict_context import LEVEL, VECTORS, ConflictContext
from tablectl.insight.table_operations import (
    OPERATIONS,
    OperationGroup,
    Place,
    TableOperation,
    Transaction,
    operation,
    operations_of,
)
from tablectl.model.commit_contents import CommittedTransaction
from tablectl.support.typed_json import AsKey, Unwritten


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


@dataclass(frozen=True, slots=True)
class CellOutcome:
    """An outcome, with what the client of the current transaction raises. Its texts are empty if it commits."""

    result: ConflictResult
    exception: str
    message: str
    """The text of clients that have one exception for all conflicts."""
    condition: Conflict | Literal[""]
    reason: str
    source: str

    @classmethod
    def of(cls, outcome: ConflictOutcome, client: Client) -> CellOutcome:
        """An outcome of this client."""
        conflict = outcome.conflict
        exception, message = (conflict.raised_by(client), conflict.message_of(client)) if conflict else ("", "")
        return cls(outcome.result, exception, message, conflict or "", outcome.reason, outcome.source)

    @property
    def raised(self) -> str:
        """The exception, with its message if it has one."""
        return f'{self.exception} ("{self.message}")' if self.message else self.exception


@dataclass(frozen=True, slots=True)
class MatrixCell:
    """The outcome of the current operation after the committed one."""

    current: AsKey[TableOperation]
    committed: AsKey[TableOperation]
    overlapping: Unwritten[ConflictOutcome]
    """Where both touch the same partition or file, or are the same stream."""
    separate: Unwritten[ConflictOutcome]
    """Where they touch different ones, and their conditions say so."""
    setting: Unwritten[ConflictContext]

    @computed_field
    @property
    def meeting(self) -> CellOutcome:
        """The outcome for the same data."""
        return CellOutcome.of(self.overlapping, self.setting.client)

    @computed_field
    @property
    def apart(self) -> CellOutcome:
        """The outcome for different data."""
        return CellOutcome.of(self.separate, self.setting.client)

    @computed_field
    @property
    def avoid(self) -> tuple[str, ...]:
        """The changes with which the current transaction would commit, the least intrusive first. Empty if it commits
        already, and if only running one after the other helps.
        """
        return () if self.overlapping.succeeds else tuple(_fixes(self, self.setting))

    @computed_field
    @property
    def verdict(self) -> CellVerdict:
        """Both outcomes in one word."""
        if self.overlapping.succeeds:
            return CellVerdict.COMMITS
        if ConflictResult.UNKNOWN in (self.overlapping.result, self.separate.result):
            return CellVerdict.UNKNOWN
        return CellVerdict.FAILS if self.separate.result is ConflictResult.FAILS else CellVerdict.DEPENDS


@dataclass(frozen=True, slots=True)
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
    all_current = tuple(
        each
        for each in all_committed
        if setting.client.family.runs_sql or each.group in {OperationGroup.ROWS, OperationGroup.FILES}
    )
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
            meeting, apart = _outcome(committed, first, same), _outcome(committed, first, other)
            yield MatrixCell(current, committed, meeting, apart, setting)


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


@dataclass(frozen=True, slots=True)
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


STATEMENTS = ("update", "delete", "merge")
"""The operations with row-level concurrency. An INSERT that reads the table counts as a MERGE (D36)."""
_LIMITS: Mapping[str, str] = MappingProxyType(
    {
        "D41": "the runtime is not known: it begins with 13.3 for clustered tables, with 14.2 for others",
        "D42": "the table is partitioned",
        "D43": "deletion vectors are off",
        "D44": "the conditions use structs, arrays, maps, subqueries or nondeterministic expressions",
        "D45": "on 14.2 a MERGE needs Photon and a filter on its target",
        "D47": "the runtime is older than 13.3",
        "D48": "runtime 13.3 has it for clustered tables only",
        "D49": "runtimes 14.0 and 14.1 have it for clustered tables, and for others where the preview is on",
        "D50": "the table has no deletion vectors",
        "D51": "the table has no deletion vectors",
        "D99": "runtimes before 14.2 without Photon have it for DELETE only",
    }
)


@dataclass(frozen=True, slots=True)
class RowLevel:
    """The answer for one statement."""

    statement: str
    """The key of its operation."""
    holds: bool | None
    """Whether row-level concurrency applies; ``None`` is unknown."""
    sources: str
    """The ids of the facts that say so."""

    limits: Unwritten[tuple[str, ...]]
    """The ids of the facts that prevent it."""

    @computed_field
    @property
    def why_not(self) -> str:
        """What prevents it; empty if it applies."""
        return "; ".join(dict.fromkeys(_LIMITS[each] for each in self.limits))


def row_levels(setting: ConflictContext) -> tuple[RowLevel, ...]:
    """The answer for each statement on a Databricks table. Clients without row-level concurrency (delta-3) get an empty
    result.
    """
    if not setting.client.family.row_level:
        return ()
    asked = ((key, operation(key).transactions(setting, "a")[0].current(setting)) for key in STATEMENTS)
    return tuple(RowLevel(key, *row_level(current), row_level_limits(current)) for key, current in asked)


@dataclass(frozen=True, slots=True)
class StreamingReader:
    """A stream that reads the table, after a commit of an operation."""

    committed: AsKey[TableOperation]
    effect: str
    """``goes_on``, ``restarts`` or ``stops``."""
    condition: str
    """Delta's error class, if known."""
    reason: str
    source: str
    avoid: str
    """What to do; empty if it goes on."""


def streaming_readers(found: Matrix) -> tuple[StreamingReader, ...]:
    """What each operation does to a stream."""
    dialect = dialect_for(found.setting.client.family).name
    readers = []
    for each in found.all_committed:
        made = [transaction.committed for transaction in each.transactions(found.setting, "a")]
        stop = stream_reader(made, dialect)
        effect = stop.effect.name.lower()
        readers.append(StreamingReader(each, effect, stop.condition, stop.reason, stop.source, stop.fix))
    return tuple(readers)


BY_APPLY = "run it with `tablectl apply`: guarded writers wait for it"
IN_TURN = "run one after the other, or retry the one that fails (tablectl.retry_on_conflict)"
"""The fix that always works; it is not repeated for each pair."""
_BY_TABLECTL = frozenset(
    each.key
    for each in OPERATIONS
    if each.key in {"set", "unset", "isolation", "vectors-on", "vectors-off", "cluster", "purge"}
    or each.key.startswith(("checkpoints-", "timestamps-"))
)
"""Changes that a policy can declare, so that an apply makes them in its window."""


def _fixes(cell: MatrixCell, setting: ConflictContext) -> Iterator[str]:
    if cell.separate.succeeds:
        yield _separate(cell, setting)
    elif not setting.partitioned and not setting.clustered:
        split = replace(setting, partitioned=True)
        fits = cell.current.fits(split) and cell.committed.fits(split)
        if fits and decide_pair(split, cell.committed, cell.current).separate.succeeds:
            yield "partition by a column that both filter by, and name it with literals in both conditions"
    plain = (_without_zorder(cell.committed), _without_zorder(cell.current))
    if plain != (cell.committed, cell.current) and decide_pair(setting, *plain).overlapping.succeeds:
        yield "remove ZORDER BY"
    yield from _newer(cell, setting)
    if setting.client.family.row_level:
        yield from _on_databricks(cell, setting)
    if cell.committed.key in _BY_TABLECTL:
        yield BY_APPLY


def _separate(cell: MatrixCell, setting: ConflictContext) -> str:
    if cell.current.key == cell.committed.key == "stream":
        return "never run two queries on one checkpoint"
    if "restore" in (cell.current.key, cell.committed.key):
        return "restore a version with the same schema and settings"
    if setting.partitioned:
        return "name the partition columns with literals in both conditions, so that they use different partitions"
    return "make the two use different files"


def _without_zorder(each: TableOperation) -> TableOperation:
    return operation("optimize") if each.key == "zorder" else each


def _newer(cell: MatrixCell, setting: ConflictContext) -> Iterator[str]:
    rules = rules_of(setting.client)
    for release in rules.releases if rules else ():
        if release.version > setting.client.version[:2]:
            then = replace(setting, client=release)
            if decide_pair(then, cell.committed, cell.current).overlapping.succeeds:
                yield f"upgrade the writer that fails to {release.text()}"
                return


def _on_databricks(cell: MatrixCell, setting: ConflictContext) -> Iterator[str]:
    if setting.level is Level.SERIALIZABLE:
        weaker = setting.with_property(LEVEL, "WriteSerializable")
        if decide_pair(weaker, cell.committed, cell.current).overlapping.succeeds:
            yield "isolation: WriteSerializable"
    if setting.vectors is not True:
        marked = setting.with_property(VECTORS, "true")
        then = decide_pair(marked, cell.committed, cell.current)
        if then.overlapping.succeeds:
            yield "deletion_vectors: enabled"
        elif (
            then.overlapping.result is not ConflictResult.FAILS
            and _by_rows(cell, marked)
            and not _by_rows(cell, setting)
        ):
            yield "deletion_vectors: enabled, after which only rows that both touch conflict"


def _by_rows(cell: MatrixCell, setting: ConflictContext) -> bool:
    if (
        cell.current.group is not OperationGroup.ROWS
        or cell.committed.group is not OperationGroup.ROWS
        or cell.separate.conflict is None
    ):
        return False
    if cell.overlapping.source.startswith(NOT_DOCUMENTED):
        return False  # no rule says that rows would count there
    return all(row_level(each.current(setting))[0] for each in cell.current.transactions(setting, "a"))
