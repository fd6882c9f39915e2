"""How the data files of a table lie: by clustering columns, and over partitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal, InvalidOperation

_WHOLE = frozenset({"byte", "short", "integer", "long"})
_DIGITS = 15
"""So many digits of a decimal survive as a binary number, as JSON is read."""


def exact_value(kind: str, value: object) -> Decimal:
    """A value of a column, or a literal that Spark compares with it, as a number: dates as days. Raises ``ValueError``
    for types whose statistics are not exact: texts and times are cut, and a float is compared as a double.
    """
    number = isinstance(value, int | float | str) and not isinstance(value, bool)
    if kind == "date" and isinstance(value, str) and len(value) == len("2026-01-31"):
        return Decimal(date.fromisoformat(value).toordinal())
    try:
        if kind in _WHOLE and number:
            return Decimal(str(value))
        if kind == "double" and number:
            return Decimal(repr(float(str(value))))
        if kind.startswith("decimal") and number:
            found = Decimal(str(value))
            if len(found.as_tuple().digits) <= _DIGITS:
                return found
    except InvalidOperation:
        pass
    raise ValueError(f"no exact value of type {kind}")


def exact_text(kind: str, value: Decimal) -> str:
    """The value for people."""
    return date.fromordinal(int(value)).isoformat() if kind == "date" else f"{value:f}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnRange:
    """The values of a column in one file."""

    nulls: int
    """How many are null."""
    least: Decimal | None = None
    """``None`` if unknown, or if all are null."""
    greatest: Decimal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRanges:
    """The values of some columns in one file."""

    rows: int = 0
    columns: Mapping[str, ColumnRange] = field(default_factory=dict)
    """By name; without the columns of which nothing certain is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileGroup:
    """Data files with the same clustering columns."""

    columns: tuple[str, ...] | None = None
    """The columns by the files' tags; ``()`` if clustered by columns that the tags do not name, ``None`` if not
    clustered.
    """
    files: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusteringState:
    """The clustering of a table's data, by file."""

    parts: tuple[FileGroup, ...] = ()
    older: FileGroup = FileGroup()
    """Of the unclustered files, those that are as old as the table's clustering columns, or older. Derived from the
    part of the log that is available.
    """

    def total(self) -> FileGroup:
        """All files."""
        return self._sum(lambda _part: True)

    def outside(self, columns: tuple[str, ...]) -> FileGroup:
        """Files that are not clustered by ``columns``."""
        return self._sum(lambda part: part.columns not in {(), columns})

    def unclustered(self) -> FileGroup:
        """Files that are not clustered."""
        return self._sum(lambda part: part.columns is None)

    def others(self, columns: tuple[str, ...]) -> FileGroup:
        """Files that are clustered by other columns than ``columns``."""
        return self._sum(lambda part: part.columns not in {None, (), columns})

    def _sum(self, wanted: Callable[[FileGroup], bool]) -> FileGroup:
        parts = [part for part in self.parts if wanted(part)]
        return FileGroup(files=sum(part.files for part in parts), bytes=sum(part.bytes for part in parts))


@dataclass(frozen=True, slots=True)
class PartitionLayout:
    """How the files of a partitioned table are distributed over its partitions, from the log."""

    partitions: int
    median: int
    """The median size of a partition, in bytes."""
    values: tuple[tuple[str, int], ...]
    """Each partition column and its number of values."""
