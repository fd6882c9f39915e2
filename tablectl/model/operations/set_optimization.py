"""``ALTER TABLE … ENABLE | DISABLE | INHERIT PREDICTIVE OPTIMIZATION``, of Databricks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from tablectl.delta.names import TableName
from tablectl.model.code_block import Code
from tablectl.model.commits import CommittedTransaction
from tablectl.model.operations.base import Operation, TableState, alter
from tablectl.model.plan import Basis, CommitEffect, Verb

OptimizationWord = Literal["ENABLE", "DISABLE", "INHERIT"]


@dataclass(frozen=True, slots=True)
class SetOptimization(Operation):
    """A setting in the catalog. The table's log does not have it."""

    setting: OptimizationWord
    verb: ClassVar[Verb] = "PREDICTIVE OPTIMIZATION"
    word: ClassVar[str] = "predictive-optimization"
    turn: ClassVar[int] = 0

    def code(self, table: TableName) -> Code:
        """The statement."""
        return alter(table, f"{self.setting} PREDICTIVE OPTIMIZATION")

    def effect(self, basis: Basis) -> CommitEffect:
        """Nothing in the log."""
        del basis
        return CommitEffect(in_catalog=True)

    def commits(self, basis: Basis) -> tuple[CommittedTransaction, ...]:
        """None that a source names."""
        del basis
        return ()

    def applied(self, state: TableState) -> TableState:
        """The same state."""
        return state
