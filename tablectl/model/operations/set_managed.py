"""``ALTER TABLE … SET MANAGED``, of Databricks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tablectl.delta.names import TableName
from tablectl.model.code_block import Code
from tablectl.model.commits import CommittedTransaction
from tablectl.model.operations.base import Operation, TableState, alter
from tablectl.model.plan import Basis, CommitEffect, Verb


@dataclass(frozen=True, slots=True)
class SetManaged(Operation):
    """The catalog takes over the storage of an external table, and the table moves there."""

    verb: ClassVar[Verb] = "SET MANAGED"
    word: ClassVar[str] = "set-managed"
    turn: ClassVar[int] = 5

    def code(self, table: TableName) -> Code:
        """The statement."""
        return alter(table, "SET MANAGED")

    def effect(self, basis: Basis) -> CommitEffect:
        """The table moves."""
        del basis
        return CommitEffect(in_catalog=True, moves=True)

    def commits(self, basis: Basis) -> tuple[CommittedTransaction, ...]:
        """None that a source names."""
        del basis
        return ()

    def applied(self, state: TableState) -> TableState:
        """The same state, elsewhere."""
        return state
