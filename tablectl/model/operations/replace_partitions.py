"""``ALTER TABLE … REPLACE PARTITIONED BY WITH CLUSTER BY``, of Databricks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import ClassVar

from tablectl.delta import keys
from tablectl.delta.keys import CLUSTERING_DOMAIN
from tablectl.delta.names import ColumnPath, TableName
from tablectl.frozen import frozen
from tablectl.model.code_block import Code
from tablectl.model.commits import CommittedTransaction, Kind, MetadataChange, ProtocolChange
from tablectl.model.operations.base import PARTITIONS, Operation, TableState, alter
from tablectl.model.operations.cluster_by import clustering_sql, new_features
from tablectl.model.plan import Basis, CommitEffect, Verb


@frozen
class ReplacePartitions(Operation):
    """Turns a partitioned table into a clustered one. Data files stay until OPTIMIZE.

    No source says which commits it makes. Partition columns are part of the metadata, so a plan expects a metadata
    change, which fails every concurrent write there (D15).
    """

    columns: tuple[ColumnPath, ...]
    automatic: bool = False
    verb: ClassVar[Verb] = "REPLACE PARTITIONED BY"
    word: ClassVar[str] = "replace-partitions"
    turn: ClassVar[int] = 0

    def code(self, table: TableName) -> Code:
        """The columns in backticks where they need them."""
        columns = clustering_sql(self.columns, automatic=self.automatic)
        return alter(table, f"REPLACE PARTITIONED BY WITH CLUSTER BY {columns}")

    def effect(self, basis: Basis) -> CommitEffect:
        """The domain, and the features of the first clustering."""
        return CommitEffect(features=new_features(basis), domains=(CLUSTERING_DOMAIN,))

    def commits(self, basis: Basis) -> tuple[CommittedTransaction, ...]:
        """One change of the metadata."""
        modes = ((keys.CLUSTER_BY_AUTO, "true"),) if self.automatic else ()
        features = new_features(basis)
        made = CommittedTransaction(
            kind=Kind.REPLACE_PARTITIONS,
            metadata=MetadataChange(sets=modes, beyond=True),
            protocol=ProtocolChange(adds=features) if features else None,
            domains=(CLUSTERING_DOMAIN,),
            data_change=False,
            repartitions=True,
        )
        return (made,)

    def applied(self, state: TableState) -> TableState:
        """A clustered table without partitions."""
        features = frozenset({"clustering", "domainMetadata"})
        return replace(state, clustered=True, partitioned=False, protocol=state.protocol.raised(features))

    @property
    def provides(self) -> Iterable[str]:
        """The partition columns and the domain."""
        return (PARTITIONS, CLUSTERING_DOMAIN)
