"""Other partition columns, by a rewrite of the whole table, and their replacement by clustering columns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import ClassVar

from tablectl.delta import keys
from tablectl.delta.databricks_runtimes import capability
from tablectl.delta.dialects import dialect_of
from tablectl.delta.keys import CLUSTERING_DOMAIN
from tablectl.delta.names import TableName
from tablectl.delta.workspace_runs import DOCUMENTED, RUN_HERE
from tablectl.model.catalog_answers import Right
from tablectl.model.commits import LIVE, NEW, CommittedTransaction, Kind, MetadataChange, ProtocolChange
from tablectl.model.operations.base import (
    DATABRICKS_DOCS,
    NOWHERE,
    PARTITIONS,
    Operation,
    StatementForm,
    TableState,
    alter,
)
from tablectl.model.operations.clustering import CLUSTERING_FEATURES, clustering_sql, new_features
from tablectl.model.plan import Basis, CommitEffect, Rewrite, Verb
from tablectl.support.frozen import frozen

_BY_COLUMNS = StatementForm(
    id="replace partitions by columns",
    template="ALTER TABLE {table} REPLACE PARTITIONED BY WITH CLUSTER BY ({columns})",
    source=DATABRICKS_DOCS + "tables/clustering",
    example="ALTER TABLE `lake`.`sales`.`orders` REPLACE PARTITIONED BY WITH CLUSTER BY (`day`, `id`)",
    run_on=NOWHERE,
    capability=capability("clustering", "replace partitions in place"),
)
_BY_AUTO = StatementForm(
    id="replace partitions by auto",
    template="ALTER TABLE {table} REPLACE PARTITIONED BY WITH CLUSTER BY AUTO",
    source=DATABRICKS_DOCS + "tables/clustering",
    example="ALTER TABLE `lake`.`sales`.`orders` REPLACE PARTITIONED BY WITH CLUSTER BY AUTO",
    run_on=NOWHERE,
    capability=capability("clustering", "replace partitions in place"),
)


@frozen
class Repartition(Operation):
    """Rewrites the whole table. No columns means an unpartitioned table.

    One commit of a DataFrame write. In SQL only REPLACE can do this, and it loses properties, constraints, generated
    and identity columns. An overwrite loses only NOT NULL and row ids (docs/partitioning.md).
    """

    columns: tuple[str, ...]
    verb: ClassVar[Verb] = "OVERWRITE"
    right: ClassVar[Right] = "MODIFY"
    word: ClassVar[str] = "overwrite"
    forms: ClassVar[tuple[StatementForm, ...]] = ()
    turn: ClassVar[int] = 0

    @property
    def form(self) -> None:
        return None

    def evidence(self, dialect: str) -> str:
        return RUN_HERE if dialect_of(dialect).rewrite_measured else DOCUMENTED

    def lines(self, table: TableName) -> tuple[str, ...]:
        """The write as Python. It is only shown: the engine makes the write from the operation."""
        name = _python(table.parts[0]) if table.is_path else _python(table.sql)
        read = f"spark.read.format('delta').load({name})" if table.is_path else f"spark.table({name})"
        save = f"save({name})" if table.is_path else f"saveAsTable({name})"
        parts = (f"  .partitionBy({', '.join(map(_python, self.columns))})",) if self.columns else ()
        return (
            f"({read}",
            "  # shown, not run: tablectl makes this write, with the metadata",
            "  # of columns; as it is, generated ones would become plain",
            "  .write.format('delta').mode('overwrite')",
            "  .option('overwriteSchema', True)",
            *parts,
            f"  .{save})",
        )

    def effect(self, basis: Basis) -> CommitEffect:
        return CommitEffect(rewrites_files=True, repartitions=True, domains=self._domains(basis))

    def commits(self, basis: Basis) -> tuple[CommittedTransaction, ...]:
        made = CommittedTransaction(
            kind=Kind.OVERWRITE,
            metadata=MetadataChange(beyond=True, schema="other"),
            domains=self._domains(basis),
            added=(NEW,),
            removed=(LIVE,),
            data_change=True,
            repartitions=True,
        )
        return (made,)

    def applied(self, state: TableState) -> TableState:
        """The table with these partitions. One that is no longer clustered keeps the feature in its protocol."""
        partitioned = bool(self.columns)
        return replace(state, partitioned=partitioned, clustered=state.clustered and not partitioned)

    @property
    def provides(self) -> Iterable[str]:
        return (PARTITIONS,)

    def rewrite(self, basis: Basis) -> Rewrite | None:
        return Rewrite(
            vectors=basis.vectors,
            everything=True,
            files_at_most=basis.files,
            bytes_at_most=basis.bytes,
            copies=basis.options.rewrite == "copy",
        )

    @property
    def partition_columns(self) -> tuple[str, ...] | None:
        return self.columns

    def _domains(self, basis: Basis) -> tuple[str, ...]:
        """An overwrite clears the clustering of a clustered table (delta-1.4)."""
        return (CLUSTERING_DOMAIN,) if basis.clustered else ()


@frozen
class ReplacePartitions(Operation):
    """Turns a partitioned table into a clustered one. Data files stay until OPTIMIZE.

    No source says which commits it makes. Partition columns are part of the metadata, so a plan expects a metadata
    change, which fails every concurrent write there (D15).
    """

    columns: tuple[str, ...]
    automatic: bool = False
    verb: ClassVar[Verb] = "REPLACE PARTITIONED BY"
    word: ClassVar[str] = "replace-partitions"
    forms: ClassVar[tuple[StatementForm, ...]] = (_BY_COLUMNS, _BY_AUTO)
    turn: ClassVar[int] = 0

    @property
    def form(self) -> StatementForm:
        return _BY_AUTO if self.automatic else _BY_COLUMNS

    def lines(self, table: TableName) -> tuple[str, ...]:
        columns = clustering_sql(self.columns, automatic=self.automatic)
        return alter(table, f"REPLACE PARTITIONED BY WITH CLUSTER BY {columns}")

    def effect(self, basis: Basis) -> CommitEffect:
        return CommitEffect(features=new_features(basis), domains=(CLUSTERING_DOMAIN,))

    def commits(self, basis: Basis) -> tuple[CommittedTransaction, ...]:
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
        protocol = state.protocol.raised(frozenset(CLUSTERING_FEATURES))
        return replace(state, clustered=True, partitioned=False, protocol=protocol)

    @property
    def provides(self) -> Iterable[str]:
        return (PARTITIONS, CLUSTERING_DOMAIN)


def _python(text: str) -> str:
    """A Python literal on one line, without invisible characters."""
    return ascii(text)
