"""How the data files of a table lie: by clustering columns, and over partitions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


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
