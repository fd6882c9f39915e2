"""The reordering that WriteSerializable permits, shown on a table (D14): a DELETE commits after an INSERT whose rows it
would have deleted, without having read them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from tablectl.conflicts.transactions import ConflictOutcome, Level
from tablectl.delta.names import ColumnPath, column_sql, parse_table
from tablectl.delta.protocol import Client, Protocol
from tablectl.delta.schema import Field, Schema
from tablectl.frozen import frozen
from tablectl.insight.matrix.context import LEVEL, ConflictContext
from tablectl.insight.matrix.matrix import decide_pair
from tablectl.insight.matrix.operations import operation
from tablectl.model.table import LiveTable

_LITERALS: Mapping[str, str] = MappingProxyType(
    {
        "date": "DATE'2026-01-31'",
        "timestamp": "TIMESTAMP'2026-01-31 12:00:00'",
        "timestamp_ntz": "TIMESTAMP_NTZ'2026-01-31 12:00:00'",
        "string": "'x'",
        "long": "42",
        "integer": "42",
        "short": "42",
        "byte": "42",
        "double": "42.0",
        "float": "42.0",
        "boolean": "true",
    }
)
_DECIMAL = re.compile(r"decimal\(\d+,\d+\)\Z")
EXAMPLE = LiveTable(
    name=parse_table("lake.sales.orders"),
    location="",
    version=12,
    table_id="",
    protocol=Protocol(1, 2),
    schema=Schema((Field("order_id", "long"), Field("order_date", "date"))),
    partition_columns=("order_date",),
)
"""The table of the example if the user names none."""


@frozen
class AnomalyExample:
    """Two transactions, and the outcome of the one that began first at each level."""

    delete: str
    insert: str
    condition: str
    version: int
    """The version that both start from."""
    outcomes: tuple[tuple[Level, ConflictOutcome], ...]
    """The outcome of the DELETE at each level that a table can have."""
    client: Client
    """The client of both writes."""


def anomaly_example(live: LiveTable, setting: ConflictContext) -> AnomalyExample | None:
    """The example on this table; ``None`` if no column has a type for which a literal can be written.

    It uses a partition column if there is one, else a clustering column, else the first column.
    """
    column = next((each for each in _candidates(live) if _literal(live, each)), None)
    if column is None:
        return None
    literal, name, table = _literal(live, column), column_sql(column), live.name.sql
    outcomes = tuple(
        (level, decide_pair(setting.with_property(LEVEL, level), operation("insert"), operation("delete")).overlapping)
        for level in (Level.SERIALIZABLE, Level.WRITE_SERIALIZABLE)
    )
    return AnomalyExample(
        delete=f"DELETE FROM {table} WHERE {name} = {literal}",  # noqa: S608  # names are quoted; it is never run
        insert=f"INSERT INTO {table} ({name}) VALUES ({literal})",  # noqa: S608
        condition=f"{name} = {literal}",
        version=live.version,
        outcomes=outcomes,
        client=setting.client,
    )


def _candidates(live: LiveTable) -> tuple[ColumnPath, ...]:
    partitions = tuple((name,) for name in live.partition_columns)
    clustering = tuple(path for path in live.clustering or () if len(path) == 1)
    return (*partitions, *clustering, *((field.name,) for field in live.schema.fields if not field.identity))


def _literal(live: LiveTable, column: ColumnPath) -> str:
    found = live.schema.find(column)
    if found is None:
        return ""
    type_ = found[1].type
    return "42" if _DECIMAL.match(type_) else _LITERALS.get(type_, "")
