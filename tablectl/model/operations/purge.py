"""``REORG TABLE … APPLY (PURGE)``."""

from __future__ import annotations

from typing import ClassVar

from tablectl.delta.names import TableName
from tablectl.frozen import frozen
from tablectl.model.code_block import Code
from tablectl.model.commits import LIVE, NEW, CommittedTransaction, Kind
from tablectl.model.operations.base import Operation, TableState, reorg
from tablectl.model.plan import Basis, CommitEffect, Rewrite, Verb


@frozen
class Purge(Operation):
    """Merges deletion vectors into their files.

    Delta makes no commit if there is nothing to purge (delta-5).
    """

    verb: ClassVar[Verb] = "REORG"
    word: ClassVar[str] = "reorg"

    def code(self, table: TableName) -> Code:
        """The statement."""
        return reorg(table, "APPLY (PURGE)")

    def effect(self, basis: Basis) -> CommitEffect:
        """Rewritten files."""
        return CommitEffect(rewrites_files=True)

    def commits(self, basis: Basis) -> tuple[CommittedTransaction, ...]:
        """The rewritten files, with the same rows."""
        return (CommittedTransaction(kind=Kind.REORG, added=(NEW,), removed=(LIVE,), data_change=False),)

    def applied(self, state: TableState) -> TableState:
        """No setting changes."""
        return state

    def rewrite(self, basis: Basis) -> Rewrite | None:
        """Each vector belongs to one file, so the number of vectors limits the files. The table limits the bytes."""
        known = [count for count in (basis.vectors, basis.files) if count is not None]
        return Rewrite(vectors=basis.vectors, files_at_most=min(known, default=None), bytes_at_most=basis.bytes)
