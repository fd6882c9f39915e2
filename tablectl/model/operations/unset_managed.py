"""``ALTER TABLE … UNSET MANAGED``, of Databricks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tablectl.delta.names import TableName
from tablectl.model.code_block import Code
from tablectl.model.commits import CommittedTransaction
from tablectl.model.operations.base import Operation, TableState, alter
from tablectl.model.plan import Basis, CommitEffect, Verb


@dataclass(frozen=True, slots=True)
class UnsetManaged(Operation):
    """Back to an external table, where it was before ``SET MANAGED``."""

    verb: ClassVar[Verb] = "UNSET MANAGED"
    word: ClassVar[str] = "unset-managed"
    turn: ClassVar[int] = 5

    def code(self, table: TableName) -> Code:
        """The statement."""
        return alter(table, "UNSET MANAGED")

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
