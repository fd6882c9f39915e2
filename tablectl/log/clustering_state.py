"""The clustering of a table's data, from the tags that OPTIMIZE writes into the ``add`` of each file that it clusters.

Delta Spark marks such a file with ``clusteringProvider`` ``liquid`` and the tags ``ZCUBE_ID`` and ``ZCUBE_ZORDER_BY``,
a JSON list of logical column names, in backticks where a name needs them (measured with Delta 4.4). Other
writers do not copy these marks, so files that they rewrite count as not clustered.
"""

from __future__ import annotations

from collections import Counter

from tablectl.delta.names import NameSyntaxError, column_text, parse_column
from tablectl.json_text import read_json
from tablectl.log.commits import ParsedCommit
from tablectl.log.history import History, read_commit
from tablectl.log.listing import commit_name, parse_listing
from tablectl.model.table import ClusteringState, FileGroup
from tablectl.storage.table_log import VanishedError

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
        for file in reversed(commits[version].files):
            if file.added and file.key not in seen:
                live.append((file.key[0], file.size, file.cluster))
            seen.add(file.key)
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
