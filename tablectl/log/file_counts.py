"""Counts files, bytes and deletion vectors by log replay, for a version without a usable checksum.

Delta protocol, "Action Reconciliation": a file is identified by its path and deletion vector, and its newest action
counts.
"""

from __future__ import annotations

from tablectl.log.actions import Counts
from tablectl.log.history import read_commit
from tablectl.log.listing import Segment, commit_name
from tablectl.storage.table_log import TableLog


def replay(log: TableLog, segment: Segment) -> Counts:
    """The totals of a version's files. The cost grows with the log, so this runs only on request."""
    seen: set[tuple[str, str]] = set()
    total = Counts()
    versions = range(segment.version, segment.base, -1)
    log.check_sizes(map(commit_name, versions))
    for commit in log.each(lambda each: read_commit(log, commit_name(each), each, with_files=True), versions):
        for file in reversed(commit.files):
            if file.added and file.key not in seen:
                total = total.plus(Counts(1, file.size, 1 if file.key[1] else 0))
            seen.add(file.key)
    if segment.checkpoint is None:
        return total
    # Only a checkpoint needs pyarrow, which is slow to import.
    from tablectl.log.checkpoint import count_files  # noqa: PLC0415

    return total.plus(count_files(log, segment.checkpoint, seen))
