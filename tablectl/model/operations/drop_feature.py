"""``ALTER TABLE … DROP FEATURE``, and the commits that it makes.

First the traces of the feature go, then its history is protected, then the feature. Source:
``PreDowngradeTableFeatureCommand.scala`` and ``AlterTableDropFeatureDeltaCommand`` of Delta 4.4.0 (delta-1.3).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

from tablectl.delta import keys
from tablectl.delta.databricks_runtimes import capability
from tablectl.delta.names import TableName, quote_name
from tablectl.delta.protocol import PROTECTION, READER_FEATURES, Protocol, find_feature, needs_protection
from tablectl.model.commit_contents import (
    LIVE,
    CommittedTransaction,
    Kind,
    MetadataChange,
    ProtocolChange,
    rearranging_commit,
    settings_commit,
)
from tablectl.model.operations.base import NO_PROPERTIES, Operation, StatementForm, alter
from tablectl.model.plan import Basis, CommitEffect, Rewrite, Verb

Commits = tuple[CommittedTransaction, ...]
Stored = Callable[[str], "str | None"]
"""The text of a property; ``None`` if it is not set."""
_EMPTIED = frozenset({"deletionVectors", "columnMapping"})
"""Features whose traces an attribute removes by statements of its own, before the drop."""
WIDENED = frozenset({"typeWidening", "typeWidening-preview"})
_DROP = StatementForm(
    id="drop feature",
    template="ALTER TABLE {table} DROP FEATURE {feature}",
    source="https://docs.delta.io/delta-drop-feature/",
    example="ALTER TABLE `lake`.`sales`.`orders` DROP FEATURE `deletionVectors`",
    capability=capability("features", "drop without loss of history"),
)
_TRUNCATING = StatementForm(
    id="drop feature truncate history",
    template="ALTER TABLE {table} DROP FEATURE {feature} TRUNCATE HISTORY",
    source="https://docs.delta.io/delta-drop-feature/",
    example="ALTER TABLE `lake`.`sales`.`orders` DROP FEATURE `deletionVectors` TRUNCATE HISTORY",
    capability=capability("features", "drop with loss of history"),
)
_EMPTY = settings_commit(Kind.EMPTY)
_PURGE = rearranging_commit(Kind.REORG)
_BARRIER = 3
"""Empty commits with a checkpoint each, so that no client reads history that it does not know."""


@dataclass(frozen=True, slots=True)
class DropFeature(Operation):
    """Removes a feature from the protocol (delta-1.3).

    With ``truncate_history`` it makes only empty commits, and fails, until the history that names the feature is a day
    old. Then it deletes that history. Run again after an interruption, it continues.
    """

    name: str
    truncate_history: bool = False
    verb: ClassVar[Verb] = "DROP FEATURE"
    word: ClassVar[str] = "drop"
    forms: ClassVar[tuple[StatementForm, ...]] = (_DROP, _TRUNCATING)
    turn: ClassVar[int] = 3

    @property
    def form(self) -> StatementForm:
        return _TRUNCATING if self.truncate_history else _DROP

    def lines(self, table: TableName) -> tuple[str, ...]:
        return alter(table, f"DROP FEATURE {quote_name(self.name)}{' TRUNCATE HISTORY' * self.truncate_history}")

    def effect(self, basis: Basis) -> CommitEffect:
        """The dropped feature, and the one that protects its history."""
        protocol = basis.protocol.protocol()
        protects = needs_protection(self.name, truncate_history=self.truncate_history, protocol=protocol)
        return CommitEffect(
            features=(PROTECTION,) if protects else (),
            drops=(self.name,),
            truncates_history=self.truncate_history,
            rewrites_files=self._rewrites(basis),
        )

    def commits(self, basis: Basis) -> Commits:
        """Several commits, of which the last one drops it."""
        return drop_feature_commits(
            self.name,
            basis.protocol.protocol(),
            _nothing if self.name in _EMPTIED else basis.stored_text,
            truncate_history=self.truncate_history,
            traces=self._rewrites(basis),
        )

    @property
    def properties(self) -> Mapping[str, str | None]:
        """The property that used the feature."""
        feature = find_feature(self.name)
        return {feature.switch.key: feature.switch.dropped} if feature and feature.switch else NO_PROPERTIES

    def rewrite(self, basis: Basis) -> Rewrite | None:
        """Files from before the last change of a column's type: the log does not say which these are."""
        if not self._rewrites(basis):
            return None
        return Rewrite(vectors=basis.vectors, everything=True, files_at_most=basis.files, bytes_at_most=basis.bytes)

    def _rewrites(self, basis: Basis) -> bool:
        return self.name in WIDENED and basis.widened


def _nothing(_key: str) -> None:
    return None


@dataclass(frozen=True, slots=True)
class _Found:
    stored: Stored
    traces: bool

    def is_on(self, key: str, value: str = "true") -> bool:
        return (self.stored(key) or "").lower() == value

    def unset(self, key: str) -> CommittedTransaction:
        """Delta unsets the property that uses the feature even if it is not set: then the metadata stays as it was,
        which later writers adopt.
        """
        return _unset(*([key] if self.stored(key) else []))


def drop_feature_commits(
    name: str, protocol: Protocol, stored: Stored, *, truncate_history: bool = False, traces: bool = False
) -> Commits:
    """The commits that drop a feature of a table, in order.

    ``traces``: files or the schema contain traces of the feature, even if its property is off. The purge is among the
    commits even if there may be nothing to purge.
    """
    before = _REMOVED.get(name, _no_traces)(_Found(stored, traces))
    reader = name in READER_FEATURES
    protects = needs_protection(name, truncate_history=truncate_history, protocol=protocol)
    if name == PROTECTION or (reader and truncate_history):
        barrier: Commits = (_EMPTY,)
    else:
        barrier = (_EMPTY,) * _BARRIER if reader else ()
    # The empty commit deletes the protected history, and the property goes after it.
    first = (*barrier, _unset(keys.PROTECTED_BEFORE)) if name == PROTECTION else (*before, *barrier)
    sets = ((keys.PROTECTED_BEFORE, ""),) if reader and not truncate_history else ()
    last = CommittedTransaction(
        kind=Kind.DROP_FEATURE,
        metadata=MetadataChange(sets=sets),
        protocol=ProtocolChange(adds=(PROTECTION,) if protects else (), removes=(name,)),
        blind=True,
        data_change=False,
    )
    return (*first, last)


def _unset(*names: str) -> CommittedTransaction:
    return settings_commit(Kind.UNSET_PROPERTIES, MetadataChange(removes=names))


def _set(*values: tuple[str, str]) -> CommittedTransaction:
    return settings_commit(Kind.SET_PROPERTIES, MetadataChange(sets=values))


def _no_traces(_found: _Found) -> Commits:
    return ()


def _vectors(found: _Found) -> Commits:
    tombstones = CommittedTransaction(kind=Kind.TOMBSTONES, data_change=False)
    if not found.is_on(keys.DELETION_VECTORS) and not found.traces:
        return (tombstones,)
    return (found.unset(keys.DELETION_VECTORS), _PURGE, tombstones)


def _checkpoints(found: _Found) -> Commits:
    return (_set((keys.CHECKPOINT_POLICY, "classic")),) if found.is_on(keys.CHECKPOINT_POLICY, "v2") else ()


def _timestamps(found: _Found) -> Commits:
    since = tuple(key for key in (keys.TIMESTAMPS_SINCE_VERSION, keys.TIMESTAMPS_SINCE_TIME) if found.stored(key))
    on = found.is_on(keys.IN_COMMIT_TIMESTAMPS)
    if not since and not on:
        return ()
    change = MetadataChange(sets=((keys.IN_COMMIT_TIMESTAMPS, "false"),) if on else (), removes=since)
    return (settings_commit(Kind.UNSET_PROPERTIES, change),)


def _widening(found: _Found) -> Commits:
    if not found.is_on(keys.TYPE_WIDENING) and not found.traces:
        return ()
    schema = settings_commit(Kind.CHANGE_COLUMN, MetadataChange(schema="other"))
    unset = found.unset(keys.TYPE_WIDENING)
    return (unset, _PURGE, schema) if found.traces else (unset,)


def _mapping(found: _Found) -> Commits:
    if found.stored(keys.COLUMN_MAPPING) not in {"name", "id"}:
        return ()
    change = MetadataChange(removes=(keys.COLUMN_MAPPING,), schema="other")
    return (rearranging_commit(Kind.REMOVE_MAPPING, change),)


def _row_tracking(found: _Found) -> Commits:
    if found.is_on(keys.ROW_TRACKING_SUSPENDED) and not found.is_on(keys.ROW_TRACKING):
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
