"""Reads the commits of the last 30 days that show who writes a table, and how.

A cache keeps what was read, so that the next plan reads only new commits. It is asked only for commits that the log
lists, and only if the newest commit that it has is the one in the log: a table that was created again has other commits
with the same versions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, pairwise
from types import MappingProxyType

from tablectl.delta.keys import NOTHING_SET
from tablectl.log.history import History
from tablectl.log.listing import LogFiles, parse_listing
from tablectl.log.parse_commit import CommitSyntaxError
from tablectl.log.state import TableCache
from tablectl.model.commit import Commit, WriteHistory
from tablectl.model.errors import LiveError
from tablectl.model.table import LiveTable
from tablectl.model.writers_in_history import STAMP
from tablectl.storage.read_budget import OversizeError
from tablectl.storage.table_log import VanishedError

DAYS = 30
"""How far back writers are looked for, from the newest commit."""
MOST_COMMITS = 2000
_ALWAYS = 20
"""The number of newest commits that always count, however old they are."""
_NEWEST = 5
_MILLISECONDS = DAYS * 24 * 60 * 60 * 1000
_TEXT = 200
_STREAMS = 3
_PARAMETERS = ("mode", "partitionBy", "queryId")
_METRICS = ("executionTimeMs", "execution_time_ms")
"""How long an operation took, as Delta Spark and delta-rs record it."""
_JOB = ("jobName", "jobId", "notebookId", "clusterId")
_NOTHING: Mapping[int, Commit] = MappingProxyType({})


def read_write_history(table: LiveTable, history: History, cache: TableCache) -> WriteHistory:
    """The write history of a table. Raises ``LiveError`` if the log cannot be read."""
    deep = history.relisted(_listed(history))
    first = max(history.segment.version - MOST_COMMITS + 1, 0)
    known = _believed(deep, cache.load(table.location, table.table_id), first)
    found: dict[int, Commit] = {}
    whole = False  # nothing is known of a damaged commit, nor of those before it
    try:
        whole = _read_recent(_newest_first(deep, known, first), found)
    except LiveError as error:
        if not isinstance(error, OversizeError) and not isinstance(error.__cause__, CommitSyntaxError):
            raise
    if found.keys() - known.keys():
        cache.store(table.location, table.table_id, found)
    return WriteHistory(tuple(found.values()), cut=not whole)


def _read_recent(commits: Iterator[Commit], found: dict[int, Commit]) -> bool:
    """Adds the commits of the last 30 days, and always the newest twenty. Returns whether these are all of them.

    The clocks of writers differ. So the newest time is the median of the newest commits, and the days end only where
    twenty commits in a row are older.
    """
    found.update((commit.version, commit) for commit in islice(commits, _ALWAYS))
    times = sorted(commit.timestamp for commit in list(found.values())[:_NEWEST] if commit.timestamp)
    oldest = times[len(times) // 2] - _MILLISECONDS if times else 0
    older: list[Commit] = []
    for commit in commits:
        if commit.timestamp and commit.timestamp < oldest:
            older.append(commit)
            if len(older) == _ALWAYS:
                break
        else:
            found.update((each.version, each) for each in (*older, commit))
            older.clear()
    return bool(older) or not found or 0 in found or _reaches_back(list(found.values()))


def _reaches_back(commits: Sequence[Commit]) -> bool:
    """Whether commits, newest first, whose older ones were cleaned up, are all of 30 days.

    The commit before the last one is not there. It was probably as far away as the others are from each other. One
    wrong clock makes two long gaps, so the third longest counts.
    """
    times = [commit.timestamp for commit in commits if commit.timestamp]
    gaps = sorted((abs(after - before) for after, before in pairwise(times)), reverse=True)
    gap = gaps[min(2, len(gaps) - 1)] if gaps else 0
    return bool(times) and times[-1] - gap <= times[0] - _MILLISECONDS


def _listed(history: History) -> LogFiles:
    """A listing that reaches as far back as commits are read."""
    files, top = history.segment.files, history.segment.version
    start = max(top - MOST_COMMITS, 0)
    if files.whole or start in files.commits or 0 in files.commits:
        return files
    return parse_listing(history.log.names(f"{start:020d}" if start else ""))


def _believed(history: History, kept: Mapping[int, Commit], first: int) -> Mapping[int, Commit]:
    """The kept commits, if the newest of them that the log lists is the same there."""
    listed = {version: commit for version, commit in kept.items() if version in history.segment.files.commits}
    usable = {version: listed[version] for version in listed if first <= version <= history.segment.version}
    if not usable:
        return _NOTHING
    anchor = max(usable)
    try:
        return usable if summary(history.commit(anchor).commit) == usable[anchor] else _NOTHING
    except LiveError:
        return _NOTHING


def _newest_first(history: History, known: Mapping[int, Commit], first: int) -> Iterator[Commit]:
    """The commits from the newest back to ``first``, or to the first gap of the log."""
    files, versions = history.segment.files.commits, []
    for version in range(history.segment.version, first - 1, -1):
        if version not in files:
            break
        versions.append(version)
    reading = history.skim(version for version in versions if version not in known)
    for version in versions:
        if version in known:
            yield known[version]
        else:
            try:
                yield summary(next(reading)().commit)
            except VanishedError:
                return  # the log was cleaned up while it was read


def summary(commit: Commit) -> Commit:
    """A commit without the contents that do not describe its writer, in bounded size."""
    return Commit(
        version=commit.version,
        timestamp=commit.timestamp,
        operation=commit.operation[:_TEXT],
        user=commit.user[:_TEXT],
        client=commit.client,
        user_metadata=STAMP if commit.user_metadata.startswith(STAMP) else "",
        changes_metadata=commit.changes_metadata,
        changes_data=commit.changes_data,
        overwrites=commit.overwrites,
        schema_writer=commit.schema_writer,
        parameters=_some(commit.parameters, _PARAMETERS),
        metrics=_some(commit.metrics, _METRICS),
        read_version=commit.read_version,
        blind_append=commit.blind_append,
        transactions=tuple(
            replace(each, app_id=each.app_id[:_TEXT], last_updated=0) for each in commit.transactions[:_STREAMS]
        ),
        first_file=commit.first_file,
        job=_some(commit.job, _JOB),
    )


def _some(texts: Mapping[str, str], keys: tuple[str, ...]) -> Mapping[str, str]:
    some = {key: texts[key][:_TEXT] for key in keys if key in texts}
    return MappingProxyType(some) if some else NOTHING_SET
