"""Determines when history can be deleted: the age of the first checkpoint after the last use of a dropped feature.

Delta deletes commits and checkpoints older than ``delta.dropFeatureTruncateHistory.retentionDuration`` (a day by
default), in whole minutes, up to the newest checkpoint of that age. ``DROP FEATURE … TRUNCATE HISTORY`` fails, and
leaves a checkpoint, until no remaining commit names deletion vectors, or until no remaining commit needs protected
checkpoints (delta-1.3; measured with Delta 4.4). Times are those of the commits.
"""

from __future__ import annotations

import re

from tablectl.delta import keys
from tablectl.delta.properties import parse_interval
from tablectl.log.commits import ParsedCommit
from tablectl.log.history import History, read_commit
from tablectl.log.listing import LogFiles, commit_name, parse_listing
from tablectl.model.table import HistoryTruncation, LiveTable
from tablectl.storage.table_log import VanishedError

VECTORS = "deletionVectors"
PROTECTION = "checkpointProtection"
_VERSION = re.compile(r"[0-9]{1,18}\Z")
_RETENTION = keys.TRUNCATION_RETENTION
_PROTECTED_BEFORE = keys.PROTECTED_BEFORE
_ENABLED = keys.DELETION_VECTORS.lower()
_DAY = 24 * 60 * 60 * 1000
_MINUTE = 60 * 1000
_MOST = 1000
"""The maximum number of commits to search, as a bound for extreme logs."""


def has_truncation(live: LiveTable) -> bool:
    """Whether the age of the history can matter to a table."""
    return live.protocol.has(VECTORS) or live.protocol.has(PROTECTION)


def find_truncation(live: LiveTable, history: History) -> HistoryTruncation | None:
    """When history can be deleted; ``None`` for a table without history to delete.

    Delta keeps everything it needs to read any version within the retention, so the oldest checkpoint after the last
    use must be a day old. If there is none, there is nothing to wait for: the drop itself makes one, and fails.
    """
    if not has_truncation(live):
        return None
    first = 0
    if live.protocol.has(VECTORS):
        first = _last_mark(live, history) + 1
    if live.protocol.has(PROTECTION):
        first = max(first, _protected_before(live))
    log = history.log
    checkpoints = sorted(each.version for each in _listed(history).checkpoints)
    version = next((each for each in checkpoints if each >= first), None)
    if version is None or version > live.version or not first:
        return HistoryTruncation()
    try:
        at = read_commit(log, commit_name(version), version).commit.timestamp
    except VanishedError:
        return HistoryTruncation()
    return HistoryTruncation(_due(at, _retention(live)) if at else 0)


def _listed(history: History) -> LogFiles:
    """All files of the log."""
    files = history.segment.files
    return files if files.whole else parse_listing(history.log.names(), whole=True)


def _due(checkpoint: int, retention: int) -> int:
    """The first full minute at which Delta considers it old enough. Files are slightly younger than their commits."""
    return (checkpoint // _MINUTE + 2) * _MINUTE + retention


def _retention(live: LiveTable) -> int:
    try:
        return parse_interval(live.property(_RETENTION) or "") // 1000
    except ValueError:
        return _DAY


def _last_mark(live: LiveTable, history: History) -> int:
    """The newest version that names a vector or has vectors enabled; -1 if no available version does."""
    log = history.log
    commits = _listed(history).commits
    for version in range(live.version, max(live.version - _MOST, -1), -1):
        if version not in commits:
            return -1
        try:
            commit = read_commit(log, commit_name(version), version, with_files=True)
        except VanishedError:
            return -1
        if _marked(commit):
            return version
    return -1


def _marked(commit: ParsedCommit) -> bool:
    properties = commit.metadata.properties if commit.metadata else {}
    enabled = any(key.lower() == _ENABLED and value.lower() == "true" for key, value in properties.items())
    return enabled or any(file.key[1] for file in commit.files)


def _protected_before(live: LiveTable) -> int:
    """The first version whose checkpoint needs no protection."""
    text = live.property(_PROTECTED_BEFORE) or ""
    return min(int(text), live.version) if _VERSION.match(text) else 0
