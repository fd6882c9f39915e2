"""Asks a session where a table is, and reads what its catalog answers. Imports nothing of Spark: the session is passed
in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from tablectl.delta.credentials import without_credentials
from tablectl.delta.names import quote_name, split_parts
from tablectl.engine.errors import engine_error
from tablectl.model.errors import EngineError, LiveError, MissingError

UNGUARDED = "_tablectl_unguarded"
"""An attribute of the sessions of an apply: its own statements never wait at its gate (docs/guards.md)."""
_DETAILS = "# Detailed Table Information"
_FACT = re.compile(r"^(Type|Provider|Location): ?(.*)$", re.MULTILINE)
_MISSING = frozenset({"TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND", "DELTA_TABLE_NOT_FOUND"})
_MISSING_CATALOG = frozenset({"CATALOG_NOT_FOUND", "REQUIRES_SINGLE_PART_NAMESPACE", "_LEGACY_ERROR_TEMP_1126"})
"""The conditions with which Spark says that a catalog does not exist. The last two take the name for a schema of the
session's own catalog."""


class ViewError(LiveError):
    """A name leads to a view."""


def described_facts(rows: Iterable[Sequence[Any]]) -> Mapping[str, str]:
    """The facts in the rows of ``DESCRIBE TABLE EXTENDED``. The rows above them are columns, which may have any
    name.
    """
    facts: dict[str, str] = {}
    for row in rows:
        if row[0] == _DETAILS:
            facts.clear()
        facts[row[0]] = row[1]
    return facts


def shown_facts(information: str) -> Mapping[str, str] | None:
    """The facts in the text of ``SHOW TABLE EXTENDED``; ``None`` if they are ambiguous.

    The text also contains comments and property values verbatim, so users control some of its lines. But the true lines
    are always in the text: a fact that occurs only once is the true one.
    """
    found = _FACT.findall(information)
    facts = dict(found)
    incomplete = facts.get("Provider", "").lower() == "delta" and not facts.get("Location")
    return None if len(facts) < len(found) or "Type" not in facts or incomplete else facts


def delta_location(table: str, facts: Mapping[str, str]) -> str:
    """The table's location, without the credentials that a catalog may keep in it.

    Raises ``LiveError`` for a view, and for a table that is not a Delta table.
    """
    kind, provider, location = facts.get("Type", ""), facts.get("Provider", ""), facts.get("Location", "")
    if "VIEW" in kind.upper() or not (kind or provider or location):  # of a temporary view, only the columns are told
        raise ViewError(f"{table} is a view", "policies are for tables: name the tables under the view")
    if provider.lower() != "delta" or not location:
        raise LiveError(f"{table} is not a Delta table (its provider is {provider or 'unknown'})")
    return without_credentials(location)


def schema_name(shown: str) -> str | None:
    """A schema name as ``SHOW SCHEMAS`` quotes it; ``None`` for a nested schema, whose tables have four parts."""
    parts = split_parts(shown)
    return parts[0] if len(parts) == 1 else None


def not_found(what: str, error: EngineError) -> LiveError | None:
    """The ``LiveError`` that something does not exist, if the engine's error says so; else ``None``."""
    if error.condition in _MISSING_CATALOG:
        hint = "configure it under engine.conf as spark.sql.catalog.NAME, or check its name"
        return MissingError(f"{what} does not exist: the engine has no such catalog", hint)
    if error.condition in _MISSING:
        return MissingError(f"{what} does not exist", "check the name and engine.catalog in tablectl.yaml")
    return None


def locate(session: Any, name: str) -> str:
    """The location of the table that a name means in a session, as its own statements would resolve it. Changes nothing
    there.

    Raises ``LiveError`` if there is no such Delta table, ``EngineError`` if the session does not say.
    """
    return describe(partial(rows_of, session), ".".join(quote_name(part) for part in split_parts(name)), name)


def describe(ask: Callable[[str], Sequence[Sequence[Any]]], sql: str, text: str) -> str:
    """The location of a table, given as SQL and as text for messages. ``ask`` returns the rows of a query. Errors as in
    ``locate``.
    """
    try:
        rows = ask(f"DESCRIBE TABLE EXTENDED {sql}")
    except EngineError as error:
        raise not_found(text, error) or error from error
    return delta_location(text, described_facts(rows))


def rows_of(session: Any, sql: str) -> list[Any]:
    """All rows of a query. Raises ``EngineError``."""
    try:
        return list(session.sql(sql).collect())
    except Exception as error:  # whatever Spark, py4j or gRPC raise is the engine's answer
        raise engine_error(error) from error
