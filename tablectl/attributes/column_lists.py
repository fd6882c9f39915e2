"""Lists of columns as attribute values: spelling, comparison, and the facts about them that a plan keeps."""

from __future__ import annotations

from tablectl.delta.names import ColumnPath, NameSyntaxError, column_text, fold_column, parse_column
from tablectl.delta.schema import Schema
from tablectl.model.plan import ColumnFact, Value


def paths_of(value: Value) -> tuple[ColumnPath, ...]:
    """The columns of a value; empty for a word. Raises ``NameSyntaxError`` for text that is not a column."""
    return tuple(parse_column(text) for text in value) if isinstance(value, tuple) else ()


def folded(value: Value) -> object:
    """A form in which lists that Delta does not distinguish are equal: it ignores the case of column names."""
    if not isinstance(value, tuple):
        return value
    try:
        return tuple(fold_column(path) for path in paths_of(value))
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
