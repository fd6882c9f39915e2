"""Names of tables and columns in policies, with variables expanded."""

from __future__ import annotations

from tablectl.delta.names import (
    NameSyntaxError,
    TableName,
    column_text,
    parse_column,
    parse_table,
    split_parts,
)
from tablectl.delta.sql import quote_name
from tablectl.policies.variables import Variables, quote_variables


def read_table(text: str, variables: Variables, catalog: str) -> TableName:
    """The table that an identifier with variables names. Two parts mean schema and table in ``catalog``.

    Raises ``NameSyntaxError`` and ``UndefinedVariableError``.
    """
    parts = variables.expand_parts(text, _split_table)
    check_characters(parts)
    return parse_table(".".join(quote_name(part) for part in parts) if "${" in text else text, catalog)


def read_location(text: str, variables: Variables) -> str:
    """An absolute location, in the form of a path table's location. Raises as ``read_table``."""
    location = variables.expand(text)
    check_characters((location,))
    return parse_table(f"delta.{quote_name(location)}").parts[0]


def read_column(text: str, variables: Variables) -> str:
    """A column in its shortest spelling. Raises as ``read_table``."""
    parts = variables.expand_parts(text, _split_table if "`" in text else parse_column)
    check_characters(parts)
    return column_text(parts)


def why_unusable(text: str) -> str:
    """Why a text cannot be stored; empty if it can. No engine stores NUL, and a lone surrogate is not valid text."""
    if "\0" in text:
        return "it holds a NUL character"
    if any("\ud800" <= char <= "\udfff" for char in text):
        return "it holds half a character (a lone surrogate)"
    return ""


def _split_table(text: str) -> tuple[str, ...]:
    return split_parts(quote_variables(text))


def check_characters(parts: tuple[str, ...]) -> None:
    """Raises ``NameSyntaxError`` if a part of a name cannot be stored."""
    for part in parts:
        reason = why_unusable(part)
        if reason:
            raise NameSyntaxError(f"{part!r} is not a valid name: {reason}")
