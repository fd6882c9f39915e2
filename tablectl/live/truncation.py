"""What keeps history from being given up: how young the last commit is that a dropped feature left its mark on.

Delta deletes commits and checkpoints older than ``delta.dropFeatureTruncateHistory.retentionDuration``, a day unless
set, by the minute; until no commit that is left names deletion vectors, or none is left that checkpoints are protected
for, ``DROP FEATURE … TRUNCATE HISTORY`` fails (delta.md 1.3). Clocks are those of the commits.
"""

from __future__ import annotations

from tablectl.attributes.catalogue import parse_interval
from tablectl.live.commits import ParsedCommit
from tablectl.live.history import History, read_commit
from tablectl.live.listing import commit_name, parse_listing
from tablectl.live.log import VanishedError
from tablectl.model.live import LiveTable, Truncation

VECTORS = "deletionVectors"
PROTECTION = "checkpointProtection"
_RETENTION = "delta.dropFeatureTruncateHistory.retentionDuration"
_PROTECTED_BEFORE = "delta.requireCheckpointProtectionBeforeVersion"
_ENABLED = "delta.enabledeletionvectors"
_DAY = 24 * 60 * 60 * 1000
_MINUTE = 60 * 1000
_MOST = 10_000
"""Commits that are looked through; a bound, so that an absurd log ends somewhere."""


def has_truncation(live: LiveTable) -> bool:
    """Whether a table has anything to which the age of its history could matter."""
    return live.protocol.has(VECTORS) or live.protocol.has(PROTECTION)


def find_truncation(live: LiveTable, history: History) -> Truncation | None:
    """When history may be given up, for a table that has reason to; the newest mark of either feature decides."""
    if not has_truncation(live):
        return None
    retention = _retention(live)
    marks = [_vectors_mark(live, history, retention)] if live.protocol.has(VECTORS) else []
    marks += [_protection_mark(live, history)] if live.protocol.has(PROTECTION) else []
    newest = max(marks)
    return Truncation(_due(newest, retention) if newest else 0)


def _due(mark: int, retention: int) -> int:
    """The first full minute by which Delta takes a commit for old enough; files are a little younger than commits."""
    return (mark // _MINUTE + 2) * _MINUTE + retention


def _retention(live: LiveTable) -> int:
    try:
        return parse_interval(live.property(_RETENTION) or "") // 1000
    except ValueError:
        return _DAY


def _vectors_mark(live: LiveTable, history: History, retention: int) -> int:
    """When the newest commit was made that names a vector, or has them on; 0 where none does that is young enough."""
    log, newest = history.log, 0
    commits = parse_listing(log.names()).commits
    for version in range(live.version, max(live.version - _MOST, -1), -1):
        if version not in commits:
            return 0
        try:
            commit = read_commit(log, commit_name(version), version, with_files=True)
        except VanishedError:
            return 0
        at = commit.commit.timestamp
        if _marked(commit):
            return at
        newest = newest or at
        if at and at < newest - retention:
            return 0
    return 0


def _marked(commit: ParsedCommit) -> bool:
    properties = commit.metadata.properties if commit.metadata else {}
    enabled = any(key.lower() == _ENABLED and value.lower() == "true" for key, value in properties.items())
    return enabled or any(file.key[1] for file in commit.files)


def _protection_mark(live: LiveTable, history: History) -> int:
    """When the newest commit was made that checkpoints are protected for; 0 where it is gone."""
    text = live.property(_PROTECTED_BEFORE) or ""
    log = history.log
    if not text.isdecimal() or not text.isascii():
        return 0
    version = min(int(text), live.version)
    try:
        return read_commit(log, commit_name(version), version).commit.timestamp
    except VanishedError:
        return 0
