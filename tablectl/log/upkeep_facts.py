"""What upkeep needs to know of a table, from its log alone: the sizes of its files, and its last OPTIMIZE and VACUUM.

A checksum has a histogram of the file sizes (Delta protocol, "Version Checksum File"), which says enough of a table
without partitions. Otherwise the log is replayed, up to ``MOST_FILES`` files: an OPTIMIZE merges files of a partition.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from math import inf

from tablectl.delta import keys
from tablectl.log.actions import Partition
from tablectl.log.file_facts import live_files
from tablectl.log.history import History
from tablectl.model.errors import LiveError
from tablectl.model.stamp import read_stamp
from tablectl.model.table import Commit, LiveTable
from tablectl.model.upkeep import OptimizePolicy, UpkeepFacts, UpkeepPolicy, WriterFiles, kept_seconds
from tablectl.support.frozen import frozen

MOST_FILES = 1_000_000
"""The maximum number of files that are replayed of one table."""
MOST_COMMITS = 2000
"""The maximum number of commits that are read of one table."""
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


@frozen
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
    if checksum is not None and checksum.histogram is not None and not table.partition_columns:
        below = [each for each in checksum.histogram if each.until <= small]
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
