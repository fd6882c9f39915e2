"""Determines when history can be deleted: the age of the first checkpoint after the last use of a dropped feature.

Delta deletes commits and checkpoints older than ``delta.dropFeatureTruncateHistory.retentionDuration`` (a day by
default), in whole minutes, up to the newest checkpoint of that age. ``DROP FEATURE … TRUNCATE HISTORY`` fails, and
leaves a checkpoint, until no remaining commit uses the feature, or until no remaining commit needs protected
checkpoints (delta-1.3; measured with Delta 4.4). Times are those of the commits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

from tablectl.delta import keys
from tablectl.delta.properties import parse_interval
from tablectl.delta.protocol import PROTECTION
from tablectl.delta.schema import TYPE_CHANGES
from tablectl.log.history import History, read_commit
from tablectl.log.listing import LogFiles, commit_name, parse_listing
from tablectl.log.parse_commit import ParsedCommit
from tablectl.model.table import HistoryTruncation, LiveTable
from tablectl.storage.table_log import VanishedError

_VERSION = re.compile(r"[0-9]{1,18}\Z")
_RETENTION = keys.TRUNCATION_RETENTION
_PROTECTED_BEFORE = keys.PROTECTED_BEFORE
_DAY = 24 * 60 * 60 * 1000
_MINUTE = 60 * 1000
_MOST = 1000
"""The maximum number of commits to search, as a bound for extreme logs."""


def find_truncation(live: LiveTable, history: History, features: frozenset[str]) -> HistoryTruncation | None:
    """When the history of all these features can be deleted; ``None`` for a table that has none of them.

    Delta keeps everything it needs to read any version within the retention, so the oldest checkpoint after the last
    use must be a day old. If there is none, there is nothing to wait for: the drop itself makes one, and fails.
    """
    wanted = features & live.protocol.features
    if not wanted:
        return None
    first = _last_mark(live, history, wanted) + 1 if wanted & _USES.keys() else 0
    if PROTECTION in wanted:
        # The first version whose checkpoint needs no protection
        text = live.property(_PROTECTED_BEFORE) or ""
        first = max(first, min(int(text), live.version) if _VERSION.match(text) else 0)
    log = history.log
    checkpoints = sorted(each.version for each in _listed(history).checkpoints)
    version = next((each for each in checkpoints if each >= first), None)
    if version is None or version > live.version or not first:
        return HistoryTruncation()
    try:
        at = read_commit(log, commit_name(version), version).commit.timestamp
    except VanishedError:
        return HistoryTruncation()
    # The first full minute at which Delta considers it old enough. Files are slightly younger than their commits.
    return HistoryTruncation((at // _MINUTE + 2) * _MINUTE + _retention(live) if at else 0)


def _listed(history: History) -> LogFiles:
    """All files of the log."""
    files = history.segment.files
    return files if files.whole else parse_listing(history.log.names(), whole=True)


def _retention(live: LiveTable) -> int:
    try:
        return parse_interval(live.property(_RETENTION) or "") // 1000
    except ValueError:
        return _DAY


def _last_mark(live: LiveTable, history: History, features: frozenset[str]) -> int:
    """The newest version that uses one of the features; -1 if no available version does."""
    log = history.log
    commits = _listed(history).commits
    for version in range(live.version, max(live.version - _MOST, -1), -1):
        if version not in commits:
            return -1
        try:
            commit = read_commit(log, commit_name(version), version, with_files=True)
        except VanishedError:
            return -1
        if any(_USES[each](commit) for each in features & _USES.keys()):
            return version
    return -1


def _property(commit: ParsedCommit, wanted: str) -> str:
    """The value of a property in the metadata of a commit, in lower case; empty if it has none."""
    return (commit.metadata.properties.get(wanted) or "").lower() if commit.metadata else ""


def _vectors(commit: ParsedCommit) -> bool:
    return _property(commit, keys.DELETION_VECTORS) == "true" or any(file.key[1] for file in commit.files)


def _checkpoints(commit: ParsedCommit) -> bool:
    return _property(commit, keys.CHECKPOINT_POLICY) == "v2"


def _mapping(commit: ParsedCommit) -> bool:
    return _property(commit, keys.COLUMN_MAPPING) in {"name", "id"}


def _widening(commit: ParsedCommit) -> bool:
    return commit.metadata is not None and TYPE_CHANGES in (commit.metadata.schema or "")


_USES: Mapping[str, Callable[[ParsedCommit], bool]] = MappingProxyType(
    {
        "deletionVectors": _vectors,
        "v2Checkpoint": _checkpoints,
        "columnMapping": _mapping,
        "typeWidening": _widening,
        "typeWidening-preview": _widening,
    }
)
"""Feature → whether a commit uses it (``actionUsesFeature`` in ``TableFeature.scala``). Delta looks for traces of these
in history."""
