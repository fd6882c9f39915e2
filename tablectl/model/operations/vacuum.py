"""``VACUUM``: deletes the files that no version within the table's retention names."""

from __future__ import annotations

from typing import ClassVar

from tablectl.delta.names import TableName
from tablectl.model.commits import CommittedTransaction, Kind
from tablectl.model.operations.base import SQL_REFERENCE, Operation, StatementForm, TableState
from tablectl.model.plan import Basis, CommitEffect, Verb
from tablectl.model.rights import Right
from tablectl.support.frozen import frozen

_VACUUM = StatementForm(
    id="vacuum",
    template="VACUUM {table}",
    source=SQL_REFERENCE + "delta-vacuum",
    example="VACUUM `lake`.`sales`.`orders`",
)


@frozen
class VacuumFiles(Operation):
    """Without RETAIN: the table's own retention holds, and Delta's check of it stays on. Only upkeep sends it."""

    verb: ClassVar[Verb] = "VACUUM"
    right: ClassVar[Right] = "MODIFY"
    word: ClassVar[str] = "vacuum"
    forms: ClassVar[tuple[StatementForm, ...]] = (_VACUUM,)

    def lines(self, table: TableName) -> tuple[str, ...]:
        return (f"VACUUM {table.sql}",)

    def effect(self, basis: Basis) -> CommitEffect:
        return CommitEffect()

    def commits(self, basis: Basis) -> tuple[CommittedTransaction, ...]:
        """Two commits without actions, which record its begin and its end (``VacuumCommand.scala`` of Delta 4.4.0)."""
        made = CommittedTransaction(kind=Kind.VACUUM, data_change=False)
        return (made, made)

    def applied(self, state: TableState) -> TableState:
        return state
