"""``CLUSTER BY``, and the ``OPTIMIZE`` of clustered data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import ClassVar

from tablectl.delta import keys
from tablectl.delta.databricks_runtimes import capability
from tablectl.delta.keys import CLUSTERING_DOMAIN
from tablectl.delta.names import TableName, column_sql, parse_column
from tablectl.model.catalog_answers import Right
from tablectl.model.commits import LIVE, NEW, CommittedTransaction, Kind, MetadataChange, ProtocolChange
from tablectl.model.operations.base import NOWHERE, SQL_REFERENCE, Operation, StatementForm, TableState, alter
from tablectl.model.plan import Basis, CommitEffect, Rewrite, Verb
from tablectl.support.frozen import frozen

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


@frozen
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
            protocol=state.protocol.raised(frozenset(CLUSTERING_FEATURES)),
        )

    @property
    def provides(self) -> Iterable[str]:
        return (CLUSTERING_DOMAIN,)


@frozen
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
        return (CommittedTransaction(kind=Kind.OPTIMIZE, added=(NEW,), removed=(LIVE,), data_change=False),)

    def applied(self, state: TableState) -> TableState:
        return state

    def rewrite(self, basis: Basis) -> Rewrite | None:
        """With ``full`` all files. The amount depends on how they are clustered, which the attribute knows."""
        return Rewrite(clusters=True, vectors=None, everything=self.full, files_at_most=None, bytes_at_most=None)


def clustering_sql(columns: tuple[str, ...], *, automatic: bool) -> str:
    """The columns of ``CLUSTER BY``, or ``AUTO``; empty if there are none."""
    names = ", ".join(column_sql(parse_column(column)) for column in columns)
    return "AUTO" if automatic else f"({names})" if names else ""


def new_features(basis: Basis) -> tuple[str, ...]:
    """The features that the first clustering of a table adds."""
    protocol = basis.protocol.protocol()
    return tuple(feature for feature in CLUSTERING_FEATURES if not protocol.has(feature))
