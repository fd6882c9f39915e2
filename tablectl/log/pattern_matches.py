"""The result of looking up patterns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field

from tablectl.delta.names import TableName
from tablectl.frozen import frozen
from tablectl.model.errors import TablectlError


@frozen
class PatternMatches:
    """The live Delta tables that were found, and the failures."""

    tables: Mapping[TableName, str] = field(default_factory=dict)
    """Each table's location."""
    failures: tuple[tuple[str, TablectlError], ...] = ()
    """Failed lookups, by the name of a table or the text of a pattern."""

    others: tuple[str, ...] = ()
    """Why what matches is not a Delta table: a sentence for each view and each table of another format."""

    @staticmethod
    def all(parts: Iterable[PatternMatches]) -> PatternMatches:
        """Merges several results."""
        every = tuple(parts)
        tables = {name: where for each in every for name, where in each.tables.items()}
        failures = tuple(failure for each in every for failure in each.failures)
        return PatternMatches(tables, failures, tuple(other for each in every for other in each.others))
