"""The commits of ``DROP FEATURE``: first the traces of the feature go, then its history is protected, then the feature.

Source: ``PreDowngradeTableFeatureCommand.scala`` and ``AlterTableDropFeatureDeltaCommand`` of Delta 4.4.0 (delta-1.3).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from tablectl.delta import keys
from tablectl.delta.protocol import PROTECTION, READER_FEATURES, needs_protection
from tablectl.insight.matrix.context import VECTORS, ConflictContext
from tablectl.model.commits import LIVE, NEW, CommittedTransaction, Kind, MetadataChange, ProtocolChange
from tablectl.support.frozen import frozen

Commits = tuple[CommittedTransaction, ...]
_WIDENING = keys.TYPE_WIDENING
_EMPTY = CommittedTransaction(kind=Kind.EMPTY, blind=True, data_change=False)
_PURGE = CommittedTransaction(kind=Kind.REORG, added=(NEW,), removed=(LIVE,), data_change=False)
_BARRIER = 3
"""Empty commits with a checkpoint each, so that no client reads history that it does not know."""


@frozen
class _Found:
    setting: ConflictContext
    traces: bool


def drop_feature_commits(
    name: str, setting: ConflictContext, *, truncate_history: bool = False, traces: bool = False
) -> Commits:
    """The commits that drop a feature of a table, in order.

    ``traces``: files or the schema contain traces of the feature, even if its property is off. The purge is among the
    commits even if there may be nothing to purge.
    """
    before = _REMOVED.get(name, _no_traces)(_Found(setting, traces))
    reader = name in READER_FEATURES
    protocol = setting.protocol
    protects = needs_protection(name, truncate_history=truncate_history, protocol=protocol)
    if name == PROTECTION or (reader and truncate_history):
        barrier: Commits = (_EMPTY,)
    else:
        barrier = (_EMPTY,) * _BARRIER if reader else ()
    # The empty commit deletes the protected history, and the property goes after it.
    first = (*barrier, _unset(keys.PROTECTED_BEFORE)) if name == PROTECTION else (*before, *barrier)
    last = CommittedTransaction(
        kind=Kind.DROP_FEATURE,
        metadata=MetadataChange(sets=((keys.PROTECTED_BEFORE, ""),) if protects else ()),
        protocol=ProtocolChange(adds=(PROTECTION,) if protects else (), removes=(name,)),
        blind=True,
        data_change=False,
    )
    return (*first, last)


def _unset(*names: str) -> CommittedTransaction:
    change = MetadataChange(removes=names)
    return CommittedTransaction(kind=Kind.UNSET_PROPERTIES, metadata=change, blind=True, data_change=False)


def _set(*values: tuple[str, str]) -> CommittedTransaction:
    change = MetadataChange(sets=values)
    return CommittedTransaction(kind=Kind.SET_PROPERTIES, metadata=change, blind=True, data_change=False)


def _no_traces(_found: _Found) -> Commits:
    return ()


def _vectors(found: _Found) -> Commits:
    tombstones = CommittedTransaction(kind=Kind.TOMBSTONES, data_change=False)
    if found.setting.value(VECTORS) != "true" and not found.traces:
        return (tombstones,)
    return (_unset(VECTORS), _PURGE, tombstones)


def _checkpoints(found: _Found) -> Commits:
    return (_set((keys.CHECKPOINT_POLICY, "classic")),) if found.setting.value(keys.CHECKPOINT_POLICY) == "v2" else ()


def _timestamps(found: _Found) -> Commits:
    since = tuple(
        key for key in (keys.TIMESTAMPS_SINCE_VERSION, keys.TIMESTAMPS_SINCE_TIME) if found.setting.value(key)
    )
    on = found.setting.value(keys.IN_COMMIT_TIMESTAMPS) == "true"
    if not since and not on:
        return ()
    change = MetadataChange(sets=((keys.IN_COMMIT_TIMESTAMPS, "false"),) if on else (), removes=since)
    return (CommittedTransaction(kind=Kind.UNSET_PROPERTIES, metadata=change, blind=True, data_change=False),)


def _widening(found: _Found) -> Commits:
    if found.setting.value(_WIDENING) != "true" and not found.traces:
        return ()
    schema = CommittedTransaction(
        kind=Kind.CHANGE_COLUMN, metadata=MetadataChange(schema="other"), blind=True, data_change=False
    )
    return (_unset(_WIDENING), _PURGE, schema) if found.traces else (_unset(_WIDENING),)


def _mapping(found: _Found) -> Commits:
    if found.setting.value(keys.COLUMN_MAPPING) not in {"name", "id"}:
        return ()
    change = MetadataChange(removes=(keys.COLUMN_MAPPING,), schema="other")
    return (
        CommittedTransaction(
            kind=Kind.REMOVE_MAPPING, metadata=change, added=(NEW,), removed=(LIVE,), data_change=False
        ),
    )


def _row_tracking(found: _Found) -> Commits:
    suspended = found.setting.value(keys.ROW_TRACKING_SUSPENDED) == "true"
    if suspended and found.setting.value(keys.ROW_TRACKING) != "true":
        return ()
    unbackfill = CommittedTransaction(kind=Kind.UNBACKFILL, added=(LIVE,), data_change=False)
    return (_set((keys.ROW_TRACKING, "false"), (keys.ROW_TRACKING_SUSPENDED, "true")), unbackfill)


_REMOVED: Mapping[str, Callable[[_Found], Commits]] = MappingProxyType(
    {
        "deletionVectors": _vectors,
        "v2Checkpoint": _checkpoints,
        "inCommitTimestamp": _timestamps,
        "typeWidening": _widening,
        "typeWidening-preview": _widening,
        "columnMapping": _mapping,
        "rowTracking": _row_tracking,
    }
)
"""The commits that remove the traces of a feature. Other features leave none that Delta removes."""
