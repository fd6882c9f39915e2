"""Names of tables and columns as policies write them, variables filled in."""

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
    """The table that an identifier with variables names; two parts lie in ``catalog``.

    Raises ``NameSyntaxError`` and ``UndefinedVariableError``.
    """
    parts = variables.expand_parts(text, _split_table)
    check_characters(parts)
    return parse_table(".".join(quote_name(part) for part in parts) if "${" in text else text, catalog)


def read_location(text: str, variables: Variables) -> str:
    """An absolute location, as a path table of that place would have it. Raises as ``read_table``."""
    location = variables.expand(text)
    check_characters((location,))
    return parse_table(f"delta.{quote_name(location)}").parts[0]


def read_column(text: str, variables: Variables) -> str:
    """A column in its shortest spelling. Raises as ``read_table``."""
    parts = variables.expand_parts(text, _split_table if "`" in text else parse_column)
    check_characters(parts)
    return column_text(parts)


def why_unusable(text: str) -> str:
    """Why a text can be stored nowhere, empty where it can: no engine keeps NUL, and half a character is no text."""
    if "\0" in text:
        return "it holds a NUL character"
    if any("\ud800" <= char <= "\udfff" for char in text):
        return "it holds half a character (a lone surrogate)"
    return ""


def _split_table(text: str) -> tuple[str, ...]:
    return split_parts(quote_variables(text))


def check_characters(parts: tuple[str, ...]) -> None:
    """Raises ``NameSyntaxError`` where a part of a name can be stored nowhere."""
    for part in parts:
        reason = why_unusable(part)
        if reason:
            raise NameSyntaxError(f"{part!r} is not a valid name: {reason}")
