"""Lists of columns as attribute values: spelling, comparison, the facts about them that a plan keeps, and whether Delta
collects statistics for a column.
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from itertools import islice
from typing import TypeVar

from tablectl.delta import keys
from tablectl.delta.names import ColumnPath, NameSyntaxError, column_text, fold_column, parse_column
from tablectl.delta.properties import parse_columns
from tablectl.delta.schema import Field, Schema
from tablectl.model.plan import ColumnFact, Value


def folded(value: Value) -> Value:
    """A form in which lists that Delta does not distinguish are equal: it ignores the case of column names."""
    if not isinstance(value, tuple):
        return value
    try:
        return tuple(column_text(fold_column(parse_column(text))) for text in value)
    except NameSyntaxError:
        return value


def resolved(declared: str | tuple[str, ...], schema: Schema) -> tuple[Value, tuple[ColumnFact, ...]]:
    """The declared columns in the table's spelling, with the facts about those that the table has."""
    if isinstance(declared, str):
        return declared, ()
    spelled, facts = [], []
    for text in declared:
        found = schema.find(parse_column(text))
        spelled.append(column_text(found[0]) if found else text)
        if found:
            facts.append(ColumnFact(column=spelled[-1], type=found[1].type))
    return tuple(spelled), tuple(facts)


_COMPARED = 200
"""How many names of a schema are compared with a misspelt one."""
_SHOWN = 8


def no_column(text: str, schema: Schema) -> tuple[str, str, str]:
    """Why a name that the table does not have is refused, the name that is probably meant, and Delta's error class."""
    every = {column_text(path).casefold(): column_text(path) for path, _ in islice(schema.every_field(), _COMPARED)}
    near = get_close_matches(text.casefold()[:_COMPARED], every, n=1)
    names = [field.name for field in islice(schema.fields, _SHOWN)]
    listed = f"name a column of the table ({', '.join(names)}{', …' if len(schema.fields) > _SHOWN else ''})"
    fix = f"did you mean {every[near[0]]}?" if near else listed
    return f"the table has no column {text}", fix, "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"


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
