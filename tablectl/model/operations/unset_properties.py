"""``ALTER TABLE … UNSET TBLPROPERTIES``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from tablectl.delta.names import TableName
from tablectl.delta.sql import quote_text
from tablectl.frozen import frozen
from tablectl.model.code_block import Code
from tablectl.model.commits import CommittedTransaction, Kind, MetadataChange
from tablectl.model.operations.base import Operation, TableState, alter, clauses
from tablectl.model.plan import Basis, CommitEffect, Verb


@frozen
class UnsetProperties(Operation):
    """One commit for all keys, never the same as a SET (delta-1.0)."""

    keys: tuple[str, ...]
    verb: ClassVar[Verb] = "UNSET TBLPROPERTIES"
    word: ClassVar[str] = "unset"

    def code(self, table: TableName) -> Code:
        """Without an error for a key that is not set."""
        return alter(table, *clauses("UNSET TBLPROPERTIES IF EXISTS", [quote_text(key) for key in self.keys]))

    def effect(self, basis: Basis) -> CommitEffect:
        """The removed keys."""
        return CommitEffect(removes=self.keys)

    def commits(self, basis: Basis) -> tuple[CommittedTransaction, ...]:
        """A metadata action without the keys."""
        change = MetadataChange(removes=self.keys)
        return (CommittedTransaction(kind=Kind.UNSET_PROPERTIES, metadata=change, blind=True, data_change=False),)

    def applied(self, state: TableState) -> TableState:
        """The table without the keys."""
        return state.with_properties(self.properties)

    @property
    def properties(self) -> Mapping[str, str | None]:
        """The keys, not set."""
        return dict.fromkeys(self.keys)
