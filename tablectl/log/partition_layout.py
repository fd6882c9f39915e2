"""The distribution of a partitioned table's files over its partitions, by log replay. The cost grows with the files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice

from tablectl.delta.schema import Schema
from tablectl.log.actions import FileAction, Partition
from tablectl.log.history import read_commit
from tablectl.log.listing import Segment, commit_name
from tablectl.model.table import PartitionLayout
from tablectl.storage.table_log import TableLog


def measure_layout(
    log: TableLog, segment: Segment, columns: tuple[str, ...], schema: Schema, most: int
) -> PartitionLayout | None:
    """The layout of a version by its partition columns; ``None`` without files, and with more than ``most`` files."""
    sizes: Counter[Partition] = Counter()
    files = 0
    for file in islice(_files(log, segment), most + 1):
        sizes[file.partition] += file.size
        files += 1
    if not files or files > most:
        return None
    stored = zip(columns, schema.physical_names(columns), strict=True)
    values = {column: {dict(each).get(name) for each in sizes} for column, name in stored}
    return PartitionLayout(
        partitions=len(sizes),
        median=sorted(sizes.values())[(len(sizes) - 1) // 2],
        values=tuple((column, len(found)) for column, found in values.items()),
    )


def _files(log: TableLog, segment: Segment) -> Iterator[FileAction]:
    """Each file of the version once, by its newest action."""
    seen: set[tuple[str, str]] = set()
    for version in range(segment.version, segment.base, -1):
        commit = read_commit(log, commit_name(version), version, with_files=True)
        for file in reversed(commit.files):
            if file.added and file.key not in seen:
                yield file
            seen.add(file.key)
    if segment.checkpoint:
        # Only a checkpoint needs pyarrow, which is slow to import.
        from tablectl.log.checkpoint import PARTITIONS, checkpoint_files  # noqa: PLC0415

        yield from checkpoint_files(log, segment.checkpoint, seen, PARTITIONS)
