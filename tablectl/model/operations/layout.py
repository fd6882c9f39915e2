"""How the data of a table lies: clustering, the ``OPTIMIZE`` that clusters, and other partition columns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from tablectl.delta import keys
from tablectl.delta.databricks_runtimes import DOCUMENTED, RUN_HERE, capability
from tablectl.delta.dialects import dialect_of
from tablectl.delta.keys import CLUSTERING_DOMAIN
from tablectl.delta.names import TableName, column_sql, parse_column
from tablectl.model.catalog_answers import Right
from tablectl.model.commit_contents import (
    LIVE,
    NEW,
    CommittedTransaction,
    Kind,
    MetadataChange,
    ProtocolChange,
    rearranging_commit,
    settings_commit,
)
from tablectl.model.operations.base import (
    DATABRICKS_DOCS,
    NOWHERE,
    PARTITIONS,
    SQL_REFERENCE,
    Operation,
    StatementForm,
    alter,
)
from tablectl.model.plan import Basis, CommitEffect, Rewrite, Verb

CLUSTERING_FEATURES = ("clustering", "domainMetadata")
_BY_COLUMNS = StatementForm(
    id="cluster by",
    template="ALTER TABLE {table} CLUSTER BY ({columns})",
    source=SQL_REFERENCE + "sql-ref-syntax-ddl-cluster-by",
    example="ALTER TABLE `lake`.`sales`.`orders` CLUSTER BY (`customer_id`, `address`.`city`)",
    capability=capability("clustering", "set"),
)
_NONE = StatementForm(
    id="cluster by none",
    template="ALTER TABLE {table} CLUSTER BY NONE",
    source=SQL_REFERENCE + "sql-ref-syntax-ddl-cluster-by",
    example="ALTER TABLE `lake`.`sales`.`orders` CLUSTER BY NONE",
    capability=capability("clustering", "set"),
)
_AUTO = StatementForm(
    id="cluster by auto",
    template="ALTER TABLE {table} CLUSTER BY AUTO",
    source=SQL_REFERENCE + "sql-ref-syntax-ddl-cluster-by",
    example="ALTER TABLE `lake`.`sales`.`orders` CLUSTER BY AUTO",
    run_on=NOWHERE,
    capability=capability("clustering", "auto"),
)
_OPTIMIZE = StatementForm(
    id="optimize",
    template="OPTIMIZE {table}",
    source=SQL_REFERENCE + "delta-optimize",
    example="OPTIMIZE `lake`.`sales`.`orders`",
)
_OPTIMIZE_FULL = StatementForm(
    id="optimize full",
    template="OPTIMIZE {table} FULL",
    source=SQL_REFERENCE + "delta-optimize",
    example="OPTIMIZE `lake`.`sales`.`orders` FULL",
    capability=capability("clustering", "rewrite all data"),
)
_REPLACE_BY_COLUMNS = StatementForm(
    id="replace partitions by columns",
    template="ALTER TABLE {table} REPLACE PARTITIONED BY WITH CLUSTER BY ({columns})",
    source=DATABRICKS_DOCS + "tables/clustering",
    example="ALTER TABLE `lake`.`sales`.`orders` REPLACE PARTITIONED BY WITH CLUSTER BY (`day`, `id`)",
    run_on=NOWHERE,
    capability=capability("clustering", "replace partitions in place"),
)
_REPLACE_BY_AUTO = StatementForm(
    id="replace partitions by auto",
    template="ALTER TABLE {table} REPLACE PARTITIONED BY WITH CLUSTER BY AUTO",
    source=DATABRICKS_DOCS + "tables/clustering",
    example="ALTER TABLE `lake`.`sales`.`orders` REPLACE PARTITIONED BY WITH CLUSTER BY AUTO",
    run_on=NOWHERE,
    capability=capability("clustering", "replace partitions in place"),
)


@dataclass(frozen=True, slots=True)
class ClusterBy(Operation):
    """Writes the clustering domain; data files stay. No columns means ``CLUSTER BY NONE``."""

    columns: tuple[str, ...]
    """As policies write them: ``address.city``."""
    automatic: bool = False
    """``CLUSTER BY AUTO``: Databricks chooses the columns, and changes them by itself."""
    verb: ClassVar[Verb] = "CLUSTER BY"
    word: ClassVar[str] = "cluster"
    forms: ClassVar[tuple[StatementForm, ...]] = (_BY_COLUMNS, _NONE, _AUTO)

    @property
    def form(self) -> StatementForm:
        return _AUTO if self.automatic else _BY_COLUMNS if self.columns else _NONE

    def lines(self, table: TableName) -> tuple[str, ...]:
        return alter(table, f"CLUSTER BY {clustering_sql(self.columns, automatic=self.automatic) or 'NONE'}")

    def effect(self, basis: Basis) -> CommitEffect:
        return CommitEffect(features=new_features(basis), domains=(CLUSTERING_DOMAIN,))

    def commits(self, basis: Basis) -> tuple[CommittedTransaction, ...]:
        """One commit. With new features, Delta writes the metadata again, even though nothing in it differs. The mode
        AUTO is a table property.
        """
        features = new_features(basis)
        modes = ((keys.CLUSTER_BY_AUTO, "true"),) if self.automatic else ()
        change = MetadataChange(sets=modes) if features or modes else None
        return (settings_commit(Kind.CLUSTER_BY, change, features, domains=(CLUSTERING_DOMAIN,)),)

    @property
    def provides(self) -> Iterable[str]:
        return (CLUSTERING_DOMAIN,)


@dataclass(frozen=True, slots=True)
class OptimizeData(Operation):
    """Clusters unclustered files. With ``full`` also files clustered by other columns."""

    full: bool = False
    verb: ClassVar[Verb] = "OPTIMIZE"
    right: ClassVar[Right] = "MODIFY"
    word: ClassVar[str] = "optimize"
    forms: ClassVar[tuple[StatementForm, ...]] = (_OPTIMIZE, _OPTIMIZE_FULL)

    @property
    def form(self) -> StatementForm:
        return _OPTIMIZE_FULL if self.full else _OPTIMIZE

    def lines(self, table: TableName) -> tuple[str, ...]:
        return (f"OPTIMIZE {table.sql}{' FULL' * self.full}",)

    def effect(self, basis: Basis) -> CommitEffect:
        return CommitEffect(rewrites_files=True, clusters=True)

    def commits(self, basis: Basis) -> tuple[CommittedTransaction, ...]:
        return (rearranging_commit(Kind.OPTIMIZE),)

    def rewrite(self, basis: Basis) -> Rewrite | None:
        """With ``full`` all files. The amount depends on how they are clustered, which the attribute knows."""
        return Rewrite(clusters=True, vectors=None, everything=self.full, files_at_most=None, bytes_at_most=None)


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class ReplacePartitions(Operation):
    """Turns a partitioned table into a clustered one. Data files stay until OPTIMIZE.

    No source says which commits it makes. Partition columns are part of the metadata, so a plan expects a metadata
    change, which fails every concurrent write there (D15).
    """

    columns: tuple[str, ...]
    automatic: bool = False
    verb: ClassVar[Verb] = "REPLACE PARTITIONED BY"
    word: ClassVar[str] = "replace-partitions"
    forms: ClassVar[tuple[StatementForm, ...]] = (_REPLACE_BY_COLUMNS, _REPLACE_BY_AUTO)
    turn: ClassVar[int] = 0

    @property
    def form(self) -> StatementForm:
        return _REPLACE_BY_AUTO if self.automatic else _REPLACE_BY_COLUMNS

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

    @property
    def provides(self) -> Iterable[str]:
        return (PARTITIONS, CLUSTERING_DOMAIN)


def clustering_sql(columns: tuple[str, ...], *, automatic: bool) -> str:
    """The columns of ``CLUSTER BY``, or ``AUTO``; empty if there are none."""
    names = ", ".join(column_sql(parse_column(column)) for column in columns)
    return "AUTO" if automatic else f"({names})" if names else ""


def new_features(basis: Basis) -> tuple[str, ...]:
    """The features that the first clustering of a table adds."""
    protocol = basis.protocol.protocol()
    return tuple(feature for feature in CLUSTERING_FEATURES if not protocol.has(feature))


def _python(text: str) -> str:
    """A Python literal on one line, without invisible characters."""
    return ascii(text)
