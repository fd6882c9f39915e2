"""What the operations on a catalog's settings have in common: the table's log does not have them."""

from __future__ import annotations

from typing import ClassVar

from tablectl.model.commits import CommittedTransaction
from tablectl.model.operations.base import TableState
from tablectl.model.plan import Basis, CommitEffect


class CatalogSetting:
    """Mixed into an operation that changes only what the catalog stores."""

    __slots__ = ()

    moves: ClassVar[bool] = False
    """Whether the table moves to another location."""

    def effect(self, basis: Basis) -> CommitEffect:
        """Nothing in the log."""
        del basis
        return CommitEffect(in_catalog=True, moves=self.moves)

    def commits(self, basis: Basis) -> tuple[CommittedTransaction, ...]:
        """None that a source names."""
        del basis
        return ()

    def applied(self, state: TableState) -> TableState:
        """The same state."""
        return state
