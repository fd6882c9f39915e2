"""Asks a session where a table is. Imports nothing of Spark: the session is passed in."""

from __future__ import annotations

from typing import Any

from tablectl.delta.names import quote_name, split_parts
from tablectl.engine.errors import engine_error
from tablectl.engine.facts import delta_location, described_facts, not_found
from tablectl.model.errors import EngineError

UNGUARDED = "_tablectl_unguarded"
"""An attribute of the sessions of an apply: its own statements never wait at its gate (docs/guards.md)."""


def locate(session: Any, name: str) -> str:
    """The location of the table that a name means in a session, as its own statements would resolve it. Changes nothing
    there.

    Raises ``LiveError`` if there is no such Delta table, ``EngineError`` if the session cannot tell.
    """
    return describe(session, ".".join(quote_name(part) for part in split_parts(name)), name)


def describe(session: Any, sql: str, text: str) -> str:
    """The location of a table, given as SQL and as text for messages. Errors as in ``locate``."""
    try:
        rows = rows_of(session, f"DESCRIBE TABLE EXTENDED {sql}")
    except EngineError as error:
        raise not_found(text, error) or error from error
    return delta_location(text, described_facts(rows))


def rows_of(session: Any, sql: str) -> list[Any]:
    """All rows of a query. Raises ``EngineError``."""
    try:
        return list(session.sql(sql).collect())
    except Exception as error:  # whatever Spark, py4j or gRPC raise is the engine's answer
        raise engine_error(error) from error
