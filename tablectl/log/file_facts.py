"""Facts about all files of a version, by log replay: how many there are, the partitions they lie in, and the clustering
of their data.

Clustering shows in the tags that OPTIMIZE writes into the ``add`` of each file that it clusters. Delta Spark marks such
a file with ``clusteringProvider`` ``liquid`` and the tags ``ZCUBE_ID`` and ``ZCUBE_ZORDER_BY``, a JSON list of logical
column names, in backticks where a name needs them (measured with Delta 4.4). Other writers do not copy
these marks, so files that they rewrite count as not clustered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice

from tablectl.delta.names import NameSyntaxError, column_text, parse_column
from tablectl.delta.schema import Schema
from tablectl.log.actions import Counts, FileAction, Partition
from tablectl.log.commits import ParsedCommit
from tablectl.log.history import History, read_commit
from tablectl.log.listing import Segment, commit_name, parse_listing
from tablectl.model.table import ClusteringState, FileGroup, PartitionLayout
from tablectl.storage.table_log import TableLog, VanishedError
from tablectl.support.json_text import read_json

MOST_COMMITS = 1000
"""The maximum number of commits to search for the one that set the clustering columns."""


def find_clustering_state(history: History) -> ClusteringState:
    """The clustering state of a version, by log replay. The cost grows with the number of files."""
    log, segment = history.log, history.segment
    commits: dict[int, ParsedCommit] = {}
    seen: set[tuple[str, str]] = set()
    live: list[tuple[str, int, str]] = []
    for version in range(segment.version, segment.base, -1):
        commits[version] = read_commit(log, commit_name(version), version, with_files=True)
        live += [(file.key[0], file.size, file.cluster) for file in _added(commits[version], seen)]
    if segment.checkpoint:
        # Only a checkpoint needs pyarrow, which is slow to import.
        from tablectl.log.checkpoint import MARKS, checkpoint_files  # noqa: PLC0415

        found = checkpoint_files(log, segment.checkpoint, seen, MARKS)
        live += [(file.key[0], file.size, file.cluster) for file in found]
    sizes: Counter[str] = Counter()
    counts = Counter(mark for _, _, mark in live)
    for _, size, mark in live:
        sizes[mark] += size
    parts = (FileGroup(columns=mark_columns(mark), files=counts[mark], bytes=sizes[mark]) for mark in sorted(counts))
    younger = _younger(history, commits) if counts[""] else None
    older = [size for path, size, mark in live if not mark and younger is not None and path not in younger]
    return ClusteringState(parts=tuple(parts), older=FileGroup(files=len(older), bytes=sum(older)))


def _younger(history: History, commits: dict[int, ParsedCommit]) -> set[str] | None:
    """The files added after the commit that set the clustering columns; ``None`` if that commit is not available."""
    log, newest = history.log, history.segment.version
    files = history.segment.files
    listed = (files if files.whole else parse_listing(log.names())).commits
    paths: set[str] = set()
    for version in range(newest, max(newest - MOST_COMMITS, -1), -1):
        commit = commits.get(version)
        if commit is None:
            if version not in listed:
                return None
            try:
                commit = read_commit(log, commit_name(version), version, with_files=True)
            except VanishedError:
                return None
        if commit.clustering is not None:
            return paths
        paths |= _new_paths(commit)
    return None


def _new_paths(commit: ParsedCommit) -> set[str]:
    """The files that a commit adds, without those that existed before. A DELETE that writes a deletion vector removes
    and adds the same path; a backfill of row tracking adds files again without changing data and removes none.
    """
    gone = {file.key[0] for file in commit.files if not file.added}
    return {file.key[0] for file in commit.files if file.added and (file.data_change or gone)} - gone


def mark_columns(mark: str) -> tuple[str, ...] | None:
    """The columns in a mark. A mark that is not a list of names comes from another clustering provider."""
    if not mark:
        return None
    try:
        columns = read_json(mark)
    except ValueError:
        return (mark,)
    known = isinstance(columns, list) and all(isinstance(each, str) for each in columns)
    return tuple(map(_column, columns)) if known else (mark,)


def _column(text: str) -> str:
    try:
        return column_text(parse_column(text))
    except NameSyntaxError:
        return text


def replay(log: TableLog, segment: Segment) -> Counts:
    """The totals of a version's files. The cost grows with the log, so this runs only on request."""
    seen: set[tuple[str, str]] = set()
    total = Counts()
    versions = range(segment.version, segment.base, -1)
    log.check_sizes(map(commit_name, versions))
    for commit in log.each(lambda each: read_commit(log, commit_name(each), each, with_files=True), versions):
        for file in _added(commit, seen):
            total = total.plus(Counts(1, file.size, 1 if file.key[1] else 0))
    if segment.checkpoint is None:
        return total
    # Only a checkpoint needs pyarrow, which is slow to import.
    from tablectl.log.checkpoint import count_files  # noqa: PLC0415

    return total.plus(count_files(log, segment.checkpoint, seen))


def measure_layout(
    log: TableLog, segment: Segment, columns: tuple[str, ...], schema: Schema, most: int
) -> PartitionLayout | None:
    """The layout of a version by its partition columns; ``None`` without files, and with more than ``most`` files."""
    sizes: Counter[Partition] = Counter()
    files = 0
    for file in islice(live_files(log, segment), most + 1):
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


def live_files(log: TableLog, segment: Segment, *, statistics: bool = False) -> Iterator[FileAction]:
    """Each file of the version once, by its newest action, with its partition or with its statistics."""
    seen: set[tuple[str, str]] = set()
    for version in range(segment.version, segment.base, -1):
        name = commit_name(version)
        yield from _added(read_commit(log, name, version, with_files=True, statistics=statistics), seen)
    if segment.checkpoint:
        # Only a checkpoint needs pyarrow, which is slow to import.
        from tablectl.log.checkpoint import PARTITIONS, STATISTICS, checkpoint_files  # noqa: PLC0415

        wanted = STATISTICS if statistics else PARTITIONS
        yield from checkpoint_files(log, segment.checkpoint, seen, wanted)


def _added(commit: ParsedCommit, seen: set[tuple[str, str]]) -> Iterator[FileAction]:
    """The files that a commit adds and of which no newer action was ``seen``. All its files are seen from now on."""
    for file in reversed(commit.files):
        if file.added and file.key not in seen:
            yield file
        seen.add(file.key)
