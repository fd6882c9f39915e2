"""Facts about the files of a version, and what upkeep needs to know of a table, from its log alone.

By log replay: how many files there are, the partitions they lie in, and the clustering of their data. Clustering shows
in the tags that OPTIMIZE writes into the ``add`` of each file that it clusters. Delta Spark marks such a file with
``clusteringProvider`` ``liquid`` and the tags ``ZCUBE_ID`` and ``ZCUBE_ZORDER_BY``, a JSON list of logical column
names, in backticks where a name needs them (measured with Delta 4.4). Other writers do not copy these marks, so files
that they rewrite count as not clustered.

For upkeep: the sizes of the files, and the last OPTIMIZE and VACUUM. A checksum has a histogram of the file sizes
(Delta protocol, "Version Checksum File"), which says enough of a table without partitions. Otherwise the log is
replayed, up to ``MOST_FILES`` files: an OPTIMIZE merges files of a partition.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import inf

from tablectl.delta import keys
from tablectl.delta.names import NameSyntaxError, column_text, parse_column
from tablectl.delta.schema import Schema
from tablectl.log.history import History, read_commit
from tablectl.log.listing import Segment, commit_name, parse_listing
from tablectl.log.parse_action import MARKS, PARTITIONS, STATISTICS, Counts, FileAction, Partition
from tablectl.log.parse_commit import ParsedCommit
from tablectl.model.commit import Commit
from tablectl.model.errors import LiveError
from tablectl.model.file_layout import ClusteringState, FileGroup, PartitionLayout
from tablectl.model.stamp import read_stamp
from tablectl.model.table import LiveTable
from tablectl.model.upkeep import OptimizePolicy, UpkeepFacts, UpkeepPolicy, WriterFiles, kept_seconds
from tablectl.storage.table_log import TableLog, VanishedError
from tablectl.support.json_text import read_json

_MOST_SEARCHED = 1000
"""The maximum number of commits to search for the one that set the clustering columns."""
MOST_FILES = 1_000_000
"""The maximum number of files that are replayed of one table for its upkeep."""
MOST_COMMITS = 2000
"""The maximum number of commits that are read of one table for its upkeep."""
_MOST_WRITERS = 20
_NOT_ALL = "not all commits since the last VACUUM were read"
_NO_METRICS = "a commit has no metrics of it"
_ADDED = ("numTargetFilesAdded", "numAddedFiles", "numFiles", "num_target_files_added", "num_added_files")
_ADDED_BYTES = ("numTargetBytesAdded", "numAddedBytes", "numOutputBytes")
_REMOVED = ("numTargetFilesRemoved", "numRemovedFiles", "num_target_files_removed", "num_removed_files")
_REMOVED_BYTES = ("numTargetBytesRemoved", "numRemovedBytes")
"""The metrics of an operation, as Delta Spark (``DeltaOperations.scala``) and delta-rs record them: the first that it
has. delta-rs records no bytes.
"""


def find_clustering_state(history: History) -> ClusteringState:
    """The clustering state of a version, by log replay. The cost grows with the number of files."""
    log, segment = history.log, history.segment
    commits: dict[int, ParsedCommit] = {}
    seen: set[tuple[str, str]] = set()
    live: list[tuple[str, int, str]] = []
    for version in range(segment.version, segment.base, -1):
        commits[version] = read_commit(log, commit_name(version), version, with_files=True)
        live += [(file.key[0], file.size, file.cluster) for file in _added(commits[version], seen)]
    live += [(file.key[0], file.size, file.cluster) for file in _checkpoint_files(log, segment, seen, MARKS)]
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
    for version in range(newest, max(newest - _MOST_SEARCHED, -1), -1):
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


def files_without_row_counts(log: TableLog, segment: Segment, most: int) -> int | None:
    """How many files of a version have no number of rows in their statistics; ``None`` with more than ``most`` files.

    A checkpoint may hold statistics as columns alone (``delta.checkpoint.writeStatsAsJson``). So its files count only
    if at least one of them has statistics as JSON.
    """
    seen: set[tuple[str, str]] = set()
    files = without = 0
    for version in range(segment.version, segment.base, -1):
        commit = read_commit(log, commit_name(version), version, with_files=True, statistics=True)
        for file in _added(commit, seen):
            files, without = files + 1, without + (not _has_row_count(file))
    older = [_has_row_count(file) for file in islice(_checkpoint_files(log, segment, seen, STATISTICS), most + 1)]
    if files + len(older) > most:
        return None
    return without + (older.count(False) if any(older) else 0)


def _has_row_count(file: FileAction) -> bool:
    try:
        known = read_json(file.statistics) if file.statistics else None
    except ValueError:
        return False
    return isinstance(known, dict) and isinstance(known.get("numRecords"), int)


def live_files(log: TableLog, segment: Segment, *, statistics: bool = False) -> Iterator[FileAction]:
    """Each file of the version once, by its newest action, with its partition or with its statistics."""
    seen: set[tuple[str, str]] = set()
    for version in range(segment.version, segment.base, -1):
        name = commit_name(version)
        yield from _added(read_commit(log, name, version, with_files=True, statistics=statistics), seen)
    yield from _checkpoint_files(log, segment, seen, STATISTICS if statistics else PARTITIONS)


def _checkpoint_files(
    log: TableLog, segment: Segment, seen: set[tuple[str, str]], columns: Sequence[str]
) -> Iterator[FileAction]:
    """The files of the checkpoint that were not ``seen``, with the given columns; none without a checkpoint."""
    if segment.checkpoint:
        # Only a checkpoint needs pyarrow, which is slow to import.
        from tablectl.log.checkpoint import checkpoint_files  # noqa: PLC0415

        yield from checkpoint_files(log, segment.checkpoint, seen, columns)


def _added(commit: ParsedCommit, seen: set[tuple[str, str]]) -> Iterator[FileAction]:
    """The files that a commit adds and of which no newer action was ``seen``. All its files are seen from now on."""
    for file in reversed(commit.files):
        if file.added and file.key not in seen:
            yield file
        seen.add(file.key)


def read_upkeep_facts(table: LiveTable, history: History, policy: UpkeepPolicy) -> UpkeepFacts:
    """The facts for a policy. Raises ``LiveError`` if the log cannot be read."""
    keep = kept_seconds(table.property(keys.DELETED_FILE_RETENTION)) * 1000
    commits, cut, whole = _commits(history, policy, keep)
    facts = facts_of_commits(commits, keep=keep, cut=cut)
    facts = replace(facts, log=len(history.segment.files.commits), unread=facts.unread if whole else _NOT_ALL)
    if policy.optimize is None:
        return replace(facts, files=table.files, bytes=table.bytes)
    sizes = file_sizes(table, history, policy.optimize)
    if sizes is None:
        return replace(facts, files=table.files, bytes=table.bytes)
    return replace(
        facts, files=sizes.files, bytes=sizes.bytes, small_files=sizes.small_files, small_bytes=sizes.small_bytes
    )


@dataclass(frozen=True, slots=True)
class FileSizes:
    """The files of a version, and how many of them are small and can be merged."""

    files: int
    bytes: int
    small_files: int
    small_bytes: int


def file_sizes(table: LiveTable, history: History, policy: OptimizePolicy) -> FileSizes | None:
    """The sizes of a version's files; ``None`` if it has more than ``MOST_FILES``."""
    small = policy.target_bytes // 2
    checksum = history.checksum(history.segment.version)
    sizes = checksum.histogram if checksum is not None and not table.partition_columns else None
    if checksum is not None and sizes is not None:
        below = [each for each in sizes if each.until <= small]
        files, size = sum(each.files for each in below), sum(each.bytes for each in below)
        alone = files < 2  # one file has nothing to be merged with
        return FileSizes(checksum.files, checksum.bytes, 0 if alone else files, 0 if alone else size)
    if (table.files or 0) > MOST_FILES:
        return None
    return _replayed(history, small)


def _replayed(history: History, small: int) -> FileSizes | None:
    files = total = 0
    counts: Counter[Partition] = Counter()
    sizes: Counter[Partition] = Counter()
    for each in islice(live_files(history.log, history.segment), MOST_FILES + 1):
        files, total = files + 1, total + each.size
        if each.size < small:
            counts[each.partition] += 1
            sizes[each.partition] += each.size
    if files > MOST_FILES:
        return None
    merged = [partition for partition, count in counts.items() if count > 1]
    return FileSizes(files, total, sum(counts[each] for each in merged), sum(sizes[each] for each in merged))


def _commits(history: History, policy: UpkeepPolicy, keep: float) -> tuple[list[Commit], bool, bool]:
    """The commits that matter, newest first, whether older ones exist, and whether none of these matters: back to the
    newest OPTIMIZE with its whole run, and to those whose files the newest VACUUM had to keep.
    """
    found: list[Commit] = []
    optimized, run = policy.optimize is None, ""
    until = None if policy.vacuum else inf
    try:
        for parsed in history.recent(MOST_COMMITS, sure=1):
            commit = parsed.commit
            if optimized and not _is_of(commit, run) and until is not None and commit.timestamp < until:
                return found, True, True
            found.append(commit)
            if not optimized and commit.operation == "OPTIMIZE":
                optimized, stamp = True, read_stamp(commit.user_metadata)
                run = stamp.run if stamp else ""
            if until is None and is_vacuumed(commit):
                until = commit.timestamp - keep
    except LiveError:
        if not found:
            raise
        return found, True, False
    cut = not found or found[-1].version > 0
    return found, cut, not cut


def facts_of_commits(commits: Sequence[Commit], *, keep: float, cut: bool) -> UpkeepFacts:
    """The facts that some commits show, newest first. ``keep`` is for how many milliseconds a VACUUM keeps files."""
    optimize = next((each for each in commits if each.operation == "OPTIMIZE"), None)
    vacuumed = next((each.timestamp for each in commits if is_vacuumed(each)), 0)
    stamp = read_stamp(optimize.user_metadata) if optimize else None
    since_run = _since_run(commits, stamp.run) if stamp else ()
    return UpkeepFacts(
        optimized_at=optimize.timestamp if optimize else 0,
        optimized_by_us=stamp is not None,
        added_since=sum(added(each)[0] for each in since_run if each.operation != "OPTIMIZE"),
        vacuumed_at=vacuumed,
        removed=tuple(
            (each.timestamp, *removed(each))
            for each in commits
            if removed(each)[0] and each.timestamp > vacuumed - keep
        ),
        unread=_NO_METRICS if any(map(_hides_removals, commits)) else "",
        commits=len(commits),
        oldest=min((each.timestamp for each in commits if each.timestamp), default=0),
        cut=cut,
        writers=tuple(_writers(commits)),
    )


def is_vacuumed(commit: Commit) -> bool:
    """Whether a commit says that a VACUUM has ended, and not failed."""
    return commit.operation == "VACUUM END" and commit.parameters.get("status", "COMPLETED") == "COMPLETED"


def _hides_removals(commit: Commit) -> bool:
    """Whether a commit may have removed files without a word of it in its metrics: some writers record none, and older
    ones none of an overwrite.
    """
    told = any(name in commit.metrics for name in _REMOVED) or (commit.metrics and not commit.overwrites)
    told = told or commit.operation.startswith("ROW TRACKING")  # it adds each file again
    return commit.changes_data and commit.version > 0 and not commit.blind_append and not told


def _since_run(commits: Sequence[Commit], run: str) -> Sequence[Commit]:
    """The commits since the first of a run's."""
    first = min(each.version for each in commits if _is_of(each, run))
    return [each for each in commits if each.version >= first]


def _is_of(commit: Commit, run: str) -> bool:
    stamp = read_stamp(commit.user_metadata) if run else None
    return stamp is not None and stamp.run == run


def added(commit: Commit) -> tuple[int, int]:
    """The files that a commit added, and their bytes, by its metrics; 0 where it has none."""
    return commit.metric(*_ADDED), commit.metric(*_ADDED_BYTES)


def removed(commit: Commit) -> tuple[int, int]:
    """The files that a commit removed, and their bytes, as ``added``."""
    return commit.metric(*_REMOVED), commit.metric(*_REMOVED_BYTES)


def _writers(commits: Sequence[Commit]) -> Iterator[WriterFiles]:
    """The writers by the files that they added. An operation without a name of its own has the client's."""
    counted: dict[str, WriterFiles] = {}
    for commit in commits:
        files, size = added(commit)
        if files and commit.changes_data and commit.operation not in {"OPTIMIZE", "REORG"}:
            name = f"{commit.operation[:60]} by {commit.source[:60] or commit.client.text()}"
            old = counted.get(name) or WriterFiles(name=name)
            new = replace(old, commits=old.commits + 1, files=old.files + files, bytes=old.bytes + size)
            counted[name] = new
    order: Callable[[WriterFiles], tuple[int, str]] = lambda each: (-each.files, each.name)  # noqa: E731
    yield from sorted(counted.values(), key=order)[:_MOST_WRITERS]
