"""What was found when patterns were looked up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tablectl.delta.names import TableName
from tablectl.model.errors import TablectlError


@dataclass(frozen=True, slots=True)
class PatternMatches:
    """Live Delta tables, and what could not be looked at."""

    tables: Mapping[TableName, str] = field(default_factory=dict)
    """Where each lies."""
    failures: tuple[tuple[str, TablectlError], ...] = ()
    """What stays unknown, by the name of a table or the text of a pattern."""

    @staticmethod
    def all(parts: Iterable[PatternMatches]) -> PatternMatches:
        """Several as one."""
        every = tuple(parts)
        tables = {name: where for each in every for name, where in each.tables.items()}
        return PatternMatches(tables, tuple(failure for each in every for failure in each.failures))
