"""What past commits did to the files of a table."""

from __future__ import annotations

from tablectl.frozen import frozen
from tablectl.model.table import Commit

PartitionValues = tuple[tuple[str, str | None], ...]
"""The values of a file's partition columns, sorted by physical name; ``()`` without partitions."""


@frozen
class CommitFiles:
    """A commit with the files that it adds and removes."""

    commit: Commit
    added: frozenset[PartitionValues] = frozenset()
    """The partitions of the files that it adds."""
    removed: frozenset[PartitionValues] = frozenset()
    added_files: int = 0
    added_bytes: int = 0
    removed_files: int = 0
    removed_bytes: int = 0


@frozen
class UnnamedFiles:
    """Data files that no commit names, of a time in which all commits are known. Failed writes leave them behind."""

    files: int
    bytes: int
    seconds: float
    """The length of that time."""


@frozen
class PastCommits:
    """The commits of a table, newest first, with their files."""

    commits: tuple[CommitFiles, ...]
    cut: bool = False
    """Whether older commits of the requested days were not read."""
    unnamed: UnnamedFiles | None = None
    """``None`` if the table was not listed."""
