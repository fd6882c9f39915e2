"""Reads the commits of some days with their files, and finds the data files that no commit names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import takewhile

from tablectl.conflicts.past_writers import known_period
from tablectl.log.catalog_managed import open_log
from tablectl.log.history import read_commit
from tablectl.log.listing import LogFiles, commit_name
from tablectl.log.open_version import commits_between, read_twice
from tablectl.log.parse_commit import CommitSyntaxError, ParsedCommit
from tablectl.model.commit_contents import CommitFiles, PastCommits, UnnamedFiles
from tablectl.model.errors import LiveError
from tablectl.storage.log_stores import Stores
from tablectl.storage.read_budget import OversizeError
from tablectl.storage.table_log import DataFile, TableLog

MOST_COMMITS = 2000
"""The maximum number of commits that are read of one table."""
MOST_FILES = 1_000_000
"""The maximum number of files that are listed of one table."""
_DAY = 86_400.0
_WEEK = 7 * _DAY
"""VACUUM deletes files that no commit names after this time, if the table sets no other."""
_PARTITIONS = 1000


def read_past_commits(stores: Stores, location: str, days: int, *, list_files: bool) -> PastCommits:
    """The commits of the ``days`` before the newest one. Raises ``LiveError`` if the table cannot be read.

    With ``list_files``, the whole table is listed as well. A file that a commit of this time could have written, and
    none names, is left of a write that failed, or of a task that Spark ran twice.
    """
    log = open_log(stores, location, stores.managed(location))
    # The files are listed before the commits, so a write that commits in between is in both.
    listed = stores.data_files(location, MOST_FILES) if list_files else ()
    named: set[str] | None = set() if list_files else None

    def read() -> tuple[list[CommitFiles], bool]:
        wanted = commits_between(log, -1, None, MOST_COMMITS)
        if wanted is None:
            return [], False
        return _within(log, wanted.files, wanted.version, days, named)

    found, cut = read_twice(read, read)
    if named is None:
        return PastCommits(tuple(found), cut)
    unnamed = _unnamed(found, listed, named) if len(listed) < MOST_FILES else None
    return PastCommits(tuple(found), cut, unnamed)


def unnamed_files(stores: Stores, location: str, *, after: int, since: float) -> tuple[DataFile, ...]:
    """The data files modified from ``since`` on (in seconds since the epoch) that no commit after a version names.

    They are of writes that failed or have not committed yet. Raises ``LiveError`` if that is unknown.
    """
    log = open_log(stores, location, stores.managed(location))
    # The files are listed before the commits, so a write that commits in between is in both.
    listed = stores.data_files(location, MOST_FILES)
    if len(listed) == MOST_FILES:
        raise LiveError(
            f"{location}: has {MOST_FILES:,} data files or more, which are too many to compare with its log"
        )
    recent = [each for each in listed if each.modified >= since]
    named = _named_after(log, after) if recent else frozenset()
    return tuple(each for each in recent if each.path not in named)


def row_versions(stores: Stores, location: str, *, after: int) -> tuple[int, ...]:
    """The versions after one that add rows, newest first. Streams read these. Raises ``LiveError``."""
    log = open_log(stores, location, stores.managed(location))
    parsed = _commits_after(log, after)
    return tuple(sorted((each.version for each in parsed if _adds_rows(each)), reverse=True))


def newest_row_version(stores: Stores, location: str) -> int:
    """The newest version that adds rows; -1 if none does. Reads back from the newest commit.

    Commits that were cleaned up, or are too many to read, may have added rows: then it is the newest of these. Raises
    ``LiveError`` if no commit can be read.
    """
    log = open_log(stores, location, stores.managed(location))

    def read() -> int:
        wanted = commits_between(log, -1, None, MOST_COMMITS)
        if wanted is None:
            raise LiveError(f"{location}: has no commit left, only a checkpoint")
        version = wanted.version
        versions = range(version, max(version - MOST_COMMITS, -1), -1)
        for parsed in _parsed(log, takewhile(wanted.files.commits.__contains__, versions)):
            version = parsed.version
            if _adds_rows(parsed):
                return version
        return version - 1

    return read_twice(read, read)


def _adds_rows(parsed: ParsedCommit) -> bool:
    return any(file.added and file.data_change for file in parsed.files)


def _named_after(log: TableLog, after: int) -> frozenset[str]:
    """The files that the commits after a version name."""
    return frozenset(file.key[0] for parsed in _commits_after(log, after) for file in parsed.files)


def _commits_after(log: TableLog, after: int) -> list[ParsedCommit]:
    """All commits after a version. Raises ``LiveError`` if some cannot be read."""

    def read() -> list[ParsedCommit]:
        wanted = commits_between(log, after, None, MOST_COMMITS)
        versions = range(after + 1, wanted.version + 1) if wanted else range(0)
        if len(versions) > MOST_COMMITS or (wanted and not all(each in wanted.files.commits for each in versions)):
            raise LiveError(f"{log.location}: not all commits after version {after} can be read")
        return list(_parsed(log, versions))

    return read_twice(read, read)


def _within(
    log: TableLog, files: LogFiles, newest: int, days: int, named: set[str] | None
) -> tuple[list[CommitFiles], bool]:
    """The commits of these days, and whether older ones of them were left out."""
    first = max(newest - MOST_COMMITS + 1, 0)
    versions = (each for each in range(newest, first - 1, -1) if each in files.commits)
    found: list[CommitFiles] = []
    try:
        for parsed in _parsed(log, versions):
            oldest = found[0].commit.timestamp - days * _DAY * 1000 if found else 0.0
            if parsed.commit.timestamp and parsed.commit.timestamp < oldest:
                return found, False
            added = [file for file in parsed.files if file.added]
            removed = [file for file in parsed.files if not file.added]
            found.append(
                CommitFiles(
                    parsed.commit,
                    frozenset(file.partition for file in added[:_PARTITIONS]),
                    frozenset(file.partition for file in removed[:_PARTITIONS]),
                    len(added),
                    sum(file.size for file in added),
                    len(removed),
                    sum(file.size for file in removed),
                )
            )
            if named is not None:
                named.update(file.key[0] for file in parsed.files)
    except LiveError as error:
        if not found or not (isinstance(error, OversizeError) or isinstance(error.__cause__, CommitSyntaxError)):
            raise
        return found, True  # nothing is known of a damaged commit, nor of those before it
    return found, first > 0 and len(found) == MOST_COMMITS


def _parsed(log: TableLog, versions: Iterable[int]) -> Iterator[ParsedCommit]:
    return log.each(lambda each: read_commit(log, commit_name(each), each, with_files=True), versions)


def _unnamed(found: list[CommitFiles], listed: Iterable[DataFile], named: set[str]) -> UnnamedFiles | None:
    """The files without a commit, of the time in which all commits are known and no VACUUM has deleted such files."""
    commits = [each.commit for each in found]
    period = known_period(commits, None)
    if period is None:
        return None
    start = max(
        [period.start, *(each.timestamp / 1000 - _WEEK for each in commits if each.operation.startswith("VACUUM"))]
    )
    left = [each for each in listed if start < each.modified and each.path not in named]
    newer = [each.size for each in left if each.modified >= period.end]
    sizes = [each.size for each in left if each.modified < period.end]
    return UnnamedFiles(len(sizes), sum(sizes), max(period.end - start, 0.0), (len(newer), sum(newer)))
