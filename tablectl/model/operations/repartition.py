"""The rewrite of a whole table with other partition columns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import ClassVar

from tablectl.delta.keys import CLUSTERING_DOMAIN
from tablectl.delta.names import TableName
from tablectl.frozen import frozen
from tablectl.model.code_block import Code
from tablectl.model.commits import LIVE, NEW, CommittedTransaction, Kind, MetadataChange
from tablectl.model.operations.base import PARTITIONS, Operation, TableState
from tablectl.model.plan import Basis, CommitEffect, Rewrite, Verb


@frozen
class Repartition(Operation):
    """Rewrites the whole table. No columns means an unpartitioned table.

    One commit of a DataFrame write. In SQL only REPLACE can do this, and it loses properties, constraints, generated
    and identity columns. An overwrite loses only NOT NULL and row ids (docs/partitioning.md).
    """

    columns: tuple[str, ...]
    verb: ClassVar[Verb] = "OVERWRITE"
    word: ClassVar[str] = "overwrite"
    turn: ClassVar[int] = 0

    def code(self, table: TableName) -> Code:
        """The write as Python. It is only shown: the engine makes the write from the operation."""
        name = _python(table.parts[0]) if table.is_path else _python(table.sql)
        read = f"spark.read.format('delta').load({name})" if table.is_path else f"spark.table({name})"
        save = f"save({name})" if table.is_path else f"saveAsTable({name})"
        parts = (f"  .partitionBy({', '.join(map(_python, self.columns))})",) if self.columns else ()
        lines = (
            f"({read}",
            "  # shown, not run: tablectl makes this write, with the metadata",
            "  # of columns; as it is, generated ones would become plain",
            "  .write.format('delta').mode('overwrite')",
            "  .option('overwriteSchema', True)",
            *parts,
            f"  .{save})",
        )
        return Code("python", lines)

    def effect(self, basis: Basis) -> CommitEffect:
        """Rewritten files under other partition columns."""
        return CommitEffect(rewrites_files=True, repartitions=True, domains=self._domains(basis))

    def commits(self, basis: Basis) -> tuple[CommittedTransaction, ...]:
        """One overwrite, which changes the data."""
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
        """The partition columns."""
        return (PARTITIONS,)

    def rewrite(self, basis: Basis) -> Rewrite | None:
        """All files."""
        return Rewrite(vectors=basis.vectors, everything=True, files_at_most=basis.files, bytes_at_most=basis.bytes)

    @property
    def partition_columns(self) -> tuple[str, ...] | None:
        """The columns."""
        return self.columns

    def _domains(self, basis: Basis) -> tuple[str, ...]:
        """An overwrite clears the clustering of a clustered table (delta-1.4)."""
        return (CLUSTERING_DOMAIN,) if basis.clustered else ()


def _python(text: str) -> str:
    """A Python literal on one line, without invisible characters."""
    return ascii(text)
