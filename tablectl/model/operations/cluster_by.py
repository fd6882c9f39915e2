"""``ALTER TABLE … CLUSTER BY``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import ClassVar

from tablectl.delta import keys
from tablectl.delta.keys import CLUSTERING_DOMAIN
from tablectl.delta.names import ColumnPath, TableName, column_sql
from tablectl.frozen import frozen
from tablectl.model.code_block import Code
from tablectl.model.commits import CommittedTransaction, Kind, MetadataChange, ProtocolChange
from tablectl.model.operations.base import Operation, TableState, alter
from tablectl.model.plan import Basis, CommitEffect, Verb

_FEATURES = ("clustering", "domainMetadata")


@frozen
class ClusterBy(Operation):
    """Writes the clustering domain; data files stay. No columns means ``CLUSTER BY NONE``."""

    columns: tuple[ColumnPath, ...]
    automatic: bool = False
    """``CLUSTER BY AUTO``: Databricks chooses the columns, and changes them by itself."""
    verb: ClassVar[Verb] = "CLUSTER BY"
    word: ClassVar[str] = "cluster"

    def code(self, table: TableName) -> Code:
        """The columns in backticks where they need them."""
        return alter(table, f"CLUSTER BY {clustering_sql(self.columns, automatic=self.automatic) or 'NONE'}")

    def effect(self, basis: Basis) -> CommitEffect:
        """The domain, and the features of the first clustering."""
        return CommitEffect(features=new_features(basis), domains=(CLUSTERING_DOMAIN,))

    def commits(self, basis: Basis) -> tuple[CommittedTransaction, ...]:
        """One commit. With new features, Delta writes the metadata again, even though nothing in it differs. The mode
        AUTO is a table property.
        """
        features = new_features(basis)
        modes = ((keys.CLUSTER_BY_AUTO, "true"),) if self.automatic else ()
        made = CommittedTransaction(
            kind=Kind.CLUSTER_BY,
            metadata=MetadataChange(sets=modes) if features or modes else None,
            protocol=ProtocolChange(adds=features) if features else None,
            domains=(CLUSTERING_DOMAIN,),
            blind=True,
            data_change=False,
        )
        return (made,)

    def applied(self, state: TableState) -> TableState:
        """A clustered table. Delta does not cluster partitioned tables: an operation that clusters has removed the
        partitions.
        """
        return replace(
            state,
            clustered=True,
            partitioned=state.partitioned and not (self.columns or self.automatic),
            protocol=state.protocol.raised(frozenset(_FEATURES)),
        )

    @property
    def provides(self) -> Iterable[str]:
        """The domain."""
        return (CLUSTERING_DOMAIN,)


def clustering_sql(columns: tuple[ColumnPath, ...], *, automatic: bool) -> str:
    """The columns of ``CLUSTER BY``, or ``AUTO``; empty if there are none."""
    names = ", ".join(column_sql(column) for column in columns)
    return "AUTO" if automatic else f"({names})" if names else ""


def new_features(basis: Basis) -> tuple[str, ...]:
    """The features that the first clustering of a table adds."""
    protocol = basis.protocol.protocol()
    return tuple(feature for feature in _FEATURES if not protocol.has(feature))
