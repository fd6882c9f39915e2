"""The operations that tablectl can run on a table: a closed set. None of them drops a table, a column or a row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from tablectl.delta import keys
from tablectl.delta.names import ColumnPath, TableName, column_sql
from tablectl.delta.sql import quote_name, quote_text
from tablectl.model.code import Code


@dataclass(frozen=True, slots=True)
class SetProperties:
    """``ALTER TABLE … SET TBLPROPERTIES``: one commit for all keys (delta-1.0)."""

    values: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class UnsetProperties:
    """``ALTER TABLE … UNSET TBLPROPERTIES``: never in the same commit as a SET (delta-1.0)."""

    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ClusterBy:
    """``ALTER TABLE … CLUSTER BY``. No columns means ``CLUSTER BY NONE``."""

    columns: tuple[ColumnPath, ...]


@dataclass(frozen=True, slots=True)
class Purge:
    """``REORG TABLE … APPLY (PURGE)``: merges deletion vectors into their files.

    Delta makes no commit if there is nothing to purge (delta-5).
    """


@dataclass(frozen=True, slots=True)
class RemoveMapping:
    """``SET TBLPROPERTIES ('delta.columnMapping.mode' = 'none')``: rewrites all data under the logical column names.

    Delta makes a second commit if the SET has any other key (delta-1.7), so it has none.
    """

    @property
    def values(self) -> tuple[tuple[str, str], ...]:
        """The properties after the operation."""
        return ((keys.COLUMN_MAPPING, "none"),)


@dataclass(frozen=True, slots=True)
class DropFeature:
    """``ALTER TABLE … DROP FEATURE``: removes a feature from the protocol (delta-1.3).

    With ``truncate_history`` it makes only empty commits, and fails, until the history that names the feature is a day
    old. Then it deletes that history.
    """

    name: str
    truncate_history: bool = False


@dataclass(frozen=True, slots=True)
class OptimizeData:
    """``OPTIMIZE`` of a clustered table: clusters unclustered files. With ``full`` also files clustered by other
    columns.
    """

    full: bool = False


@dataclass(frozen=True, slots=True)
class Repartition:
    """Rewrites the whole table with other partition columns. No columns means an unpartitioned table.

    One commit of a DataFrame write. In SQL only REPLACE can do this, and it loses properties, constraints, generated
    and identity columns. An overwrite loses only NOT NULL and row ids (docs/partitioning.md).
    """

    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UpgradeUniform:
    """``REORG TABLE … APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = n))``: up to three commits (delta-1.10).

    Run again after an interruption, it continues.
    """

    version: int

    @property
    def values(self) -> tuple[tuple[str, str], ...]:
        """The properties after the operation. It does not accept a table with column mapping by ``id``."""
        return (
            (keys.iceberg_compat(self.version), "true"),
            (keys.COLUMN_MAPPING, "name"),
            (keys.DELETION_VECTORS, "false"),
            (keys.UNIFORM_ATOMIC, "true"),
            (keys.UNIFORM_FORMATS, "iceberg"),
        )


Operation = (
    SetProperties
    | UnsetProperties
    | ClusterBy
    | Purge
    | RemoveMapping
    | UpgradeUniform
    | DropFeature
    | OptimizeData
    | Repartition
)


def render(operation: Operation, table: TableName) -> str:
    """The statement as text. The engine runs this text, unless the operation is a DataFrame write."""
    return render_code(operation, table).text


def render_code(operation: Operation, table: TableName) -> Code:
    """The statement with the table on the first line and the change below it, for readable reviews."""
    if isinstance(operation, Repartition):
        return Code("python", _overwrite(operation.columns, table))
    return Code("sql", _sql(operation, table))


def _sql(operation: Operation, table: TableName) -> tuple[str, ...]:
    alter, reorg = f"ALTER TABLE {table.sql}", f"REORG TABLE {table.sql}"
    match operation:
        case SetProperties() | RemoveMapping():
            pairs = [f"{quote_text(key)} = {quote_text(value)}" for key, value in operation.values]
            return (alter, *_list("SET TBLPROPERTIES", pairs))
        case UnsetProperties(keys):
            return (alter, *_list("UNSET TBLPROPERTIES IF EXISTS", [quote_text(key) for key in keys]))
        case ClusterBy(()):
            return (alter, "CLUSTER BY NONE")
        case ClusterBy(columns):
            return (alter, f"CLUSTER BY ({', '.join(column_sql(column) for column in columns)})")
        case Purge():
            return (reorg, "APPLY (PURGE)")
        case UpgradeUniform(version):
            return (reorg, f"APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = {version}))")
        case OptimizeData(full):
            return (f"OPTIMIZE {table.sql}{' FULL' * full}",)
        case DropFeature(name, truncate_history):
            return (alter, f"DROP FEATURE {quote_name(name)}{' TRUNCATE HISTORY' * truncate_history}")
        case Repartition():
            raise AssertionError("a DataFrame write has no SQL")
        case _:
            assert_never(operation)


def _list(verb: str, items: list[str]) -> tuple[str, ...]:
    if len(items) == 1:
        return (f"{verb} ({items[0]})",)
    return (f"{verb} (", *(f"  {item}," for item in items[:-1]), f"  {items[-1]}", ")")


def _overwrite(columns: tuple[str, ...], table: TableName) -> tuple[str, ...]:
    """The DataFrame write as Python. It is only shown: the engine makes the write from the operation."""
    read = (
        f"spark.read.format('delta').load({_python(table.parts[0])})"
        if table.is_path
        else f"spark.table({_python(table.sql)})"
    )
    save = f"save({_python(table.parts[0])})" if table.is_path else f"saveAsTable({_python(table.sql)})"
    parts = (f"  .partitionBy({', '.join(_python(column) for column in columns)})",) if columns else ()
    return (
        f"({read}",
        "  # shown, not run: tablectl makes this write, with the metadata",
        "  # of columns; as it is, generated ones would become plain",
        "  .write.format('delta').mode('overwrite')",
        "  .option('overwriteSchema', True)",
        *parts,
        f"  .{save})",
    )


def _python(text: str) -> str:
    """A Python literal on one line, without invisible characters."""
    return ascii(text)
