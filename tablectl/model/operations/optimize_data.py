"""``OPTIMIZE`` of a clustered table."""

from __future__ import annotations

from typing import ClassVar

from tablectl.delta.names import TableName
from tablectl.frozen import frozen
from tablectl.model.code_block import Code
from tablectl.model.commits import LIVE, NEW, CommittedTransaction, Kind
from tablectl.model.operations.base import Operation, TableState
from tablectl.model.plan import Basis, CommitEffect, Rewrite, Verb


@frozen
class OptimizeData(Operation):
    """Clusters unclustered files. With ``full`` also files clustered by other columns."""

    full: bool = False
    verb: ClassVar[Verb] = "OPTIMIZE"
    word: ClassVar[str] = "optimize"

    def code(self, table: TableName) -> Code:
        """The statement."""
        return Code("sql", (f"OPTIMIZE {table.sql}{' FULL' * self.full}",))

    def effect(self, basis: Basis) -> CommitEffect:
        """Rewritten files, clustered."""
        return CommitEffect(rewrites_files=True, clusters=True)

    def commits(self, basis: Basis) -> tuple[CommittedTransaction, ...]:
        """The rewritten files, with the same rows."""
        return (CommittedTransaction(kind=Kind.OPTIMIZE, added=(NEW,), removed=(LIVE,), data_change=False),)

    def applied(self, state: TableState) -> TableState:
        """No setting changes."""
        return state

    def rewrite(self, basis: Basis) -> Rewrite | None:
        """With ``full`` all files. The amount depends on how they are clustered, which the attribute knows."""
        return Rewrite(clusters=True, vectors=None, everything=self.full, files_at_most=None, bytes_at_most=None)
