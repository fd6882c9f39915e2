"""The columns for which Delta collects statistics (delta-1.4)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import TypeVar

from tablectl.delta import keys
from tablectl.delta.names import ColumnPath, fold_column
from tablectl.delta.properties import parse_columns
from tablectl.delta.schema import Field, Schema

STATS_KEYS = (keys.INDEXED_COLUMNS, keys.STATISTICS_COLUMNS)
_DEFAULT_INDEXED = 32
_NO_COLUMNS: frozenset[ColumnPath] = frozenset()
_Parsed = TypeVar("_Parsed")
_TYPES = frozenset(
    {"byte", "short", "integer", "long", "float", "double", "date", "timestamp", "timestamp_ntz", "string"}
)


def has_order(field: Field) -> bool:
    """Whether a column is of a type with a minimum and a maximum, by which scans can skip files."""
    return field.type in _TYPES or field.type.startswith(("decimal", "string", "char", "varchar"))


def has_statistics(path: ColumnPath, schema: Schema, property_of: Callable[[str], str | None]) -> bool:
    """Whether Delta collects statistics for a leaf column, given the table's properties.

    ``delta.dataSkippingStatsColumns`` names columns or structs and takes precedence over
    ``delta.dataSkippingNumIndexedCols``, which counts leaves in schema order. Partition columns do not count
    (delta-1.4).
    """
    named = property_of(STATS_KEYS[1])
    if named is not None:
        return names_statistics(path, named)
    limit = _parsed(int, property_of(STATS_KEYS[0]) or "", _DEFAULT_INDEXED)
    if limit < 0:
        return True
    leaves = (leaf for leaf, _ in schema.leaves())
    return fold_column(path) in {fold_column(leaf) for leaf in islice(leaves, limit)}


def names_statistics(path: ColumnPath, named: str) -> bool:
    """Whether a list such as ``delta.dataSkippingStatsColumns`` names a leaf column, or a struct that contains it."""
    folded = fold_column(path)
    return any(folded[: len(column)] == column for column in _parsed(parse_columns, named, _NO_COLUMNS))


def _parsed(parse: Callable[[str], _Parsed], text: str, otherwise: _Parsed) -> _Parsed:
    try:
        return parse(text)
    except ValueError:
        return otherwise
