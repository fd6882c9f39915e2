"""What tablectl may do to a table: a closed family. There is no way to drop a table, a column or a row in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from tablectl.delta.names import ColumnPath, TableName, column_sql
from tablectl.delta.sql import quote_name, quote_text
from tablectl.model.code import Code

MAPPING_KEY = "delta.columnMapping.mode"
VECTORS_KEY = "delta.enableDeletionVectors"
FORMATS_KEY = "delta.universalFormat.enabledFormats"
ATOMIC_KEY = "delta.universalFormat.iceberg.atomicConversion.supported"


def compat_key(version: int) -> str:
    """The property of a version of Delta's Iceberg compatibility."""
    return f"delta.enableIcebergCompatV{version}"


@dataclass(frozen=True, slots=True)
class SetProperties:
    """``ALTER TABLE … SET TBLPROPERTIES``: all keys land in one commit (delta-1.0)."""

    values: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class UnsetProperties:
    """``ALTER TABLE … UNSET TBLPROPERTIES``: never shares a commit with a SET (delta-1.0)."""

    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ClusterBy:
    """``ALTER TABLE … CLUSTER BY``; no columns is ``NONE``."""

    columns: tuple[ColumnPath, ...]


@dataclass(frozen=True, slots=True)
class Purge:
    """``REORG TABLE … APPLY (PURGE)``: merges deletion vectors into their files.

    Nothing to purge makes no commit (delta-5).
    """


@dataclass(frozen=True, slots=True)
class RemoveMapping:
    """``SET TBLPROPERTIES ('delta.columnMapping.mode' = 'none')``: rewrites all data under the columns' own names.

    With any other key in the SET, Delta makes a second commit (delta-1.7), so it stands alone.
    """

    @property
    def values(self) -> tuple[tuple[str, str], ...]:
        """The properties as it leaves them."""
        return ((MAPPING_KEY, "none"),)


@dataclass(frozen=True, slots=True)
class DropFeature:
    """``ALTER TABLE … DROP FEATURE``: takes a feature from the protocol (delta-1.3).

    With ``truncate_history`` it makes nothing but empty commits, and fails, until the history that names the feature
    is a day old; then it gives that history up.
    """

    name: str
    truncate_history: bool = False


@dataclass(frozen=True, slots=True)
class OptimizeData:
    """``OPTIMIZE`` of a clustered table: clusters what is not, with ``full`` also what is by other columns."""

    full: bool = False


@dataclass(frozen=True, slots=True)
class Repartition:
    """The whole table written anew under other partition columns; no columns is without partitions.

    One commit of a DataFrame write: SQL has only REPLACE for it, which loses properties, constraints, generated and
    identity columns. An overwrite loses NOT NULL and row ids alone (docs/partitioning.md).
    """

    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UpgradeUniform:
    """``REORG TABLE … APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = n))``: up to three commits (delta-1.10).

    Sent again, it goes on where it was broken off.
    """

    version: int

    @property
    def values(self) -> tuple[tuple[str, str], ...]:
        """The properties as it leaves them; a table that maps by ``id`` it does not take."""
        return (
            (compat_key(self.version), "true"),
            (MAPPING_KEY, "name"),
            (VECTORS_KEY, "false"),
            (ATOMIC_KEY, "true"),
            (FORMATS_KEY, "iceberg"),
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
    """The statement as text: what the engine is given, unless it is a DataFrame write."""
    return render_code(operation, table).text


def render_code(operation: Operation, table: TableName) -> Code:
    """The statement: the table on the first line, what is done to it below, so that reviews read well."""
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
    """The DataFrame write as Python. It is shown and never run: the engine makes the write from the operation."""
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
    """A literal on one line, with nothing in it that a reader would not see."""
    return ascii(text)
