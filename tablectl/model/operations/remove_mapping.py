"""``ALTER TABLE … SET TBLPROPERTIES ('delta.columnMapping.mode' = 'none')``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from tablectl.delta import keys
from tablectl.delta.names import TableName
from tablectl.frozen import frozen
from tablectl.model.code_block import Code
from tablectl.model.commits import LIVE, NEW, CommittedTransaction, Kind, MetadataChange
from tablectl.model.operations.base import Operation, TableState, alter
from tablectl.model.operations.set_properties import set_clause
from tablectl.model.plan import Basis, CommitEffect, Rewrite, Verb

_VALUES = ((keys.COLUMN_MAPPING, "none"),)


@frozen
class RemoveMapping(Operation):
    """Rewrites all data under the logical column names.

    Delta makes a second commit if the SET has any other key (delta-1.7), so it has none.
    """

    verb: ClassVar[Verb] = "REMOVE COLUMN MAPPING"
    word: ClassVar[str] = "mapping"
    turn: ClassVar[int] = 2

    def code(self, table: TableName) -> Code:
        """The statement: a SET of one property."""
        return alter(table, *set_clause(_VALUES))

    def effect(self, basis: Basis) -> CommitEffect:
        """The property and the rewritten files."""
        return CommitEffect(sets=_VALUES, rewrites_files=True)

    def commits(self, basis: Basis) -> tuple[CommittedTransaction, ...]:
        """One commit with metadata and files."""
        change = MetadataChange(sets=_VALUES, schema="other")
        made = CommittedTransaction(
            kind=Kind.REMOVE_MAPPING, metadata=change, added=(NEW,), removed=(LIVE,), data_change=False
        )
        return (made,)

    def applied(self, state: TableState) -> TableState:
        """The table without a mapping."""
        return state.with_properties(self.properties)

    @property
    def properties(self) -> Mapping[str, str | None]:
        """The mode."""
        return dict(_VALUES)

    def rewrite(self, basis: Basis) -> Rewrite | None:
        """All files."""
        return Rewrite(vectors=basis.vectors, everything=True, files_at_most=basis.files, bytes_at_most=basis.bytes)
