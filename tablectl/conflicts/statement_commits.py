"""The contents of a statement's commits that matter to other transactions."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, assert_never

from tablectl.attributes.features import PROTECTION, needs_protection
from tablectl.conflicts.transactions import (
    CLUSTERING_DOMAIN,
    CommittedTransaction,
    File,
    Kind,
    MetadataChange,
    ProtocolChange,
)
from tablectl.delta import keys
from tablectl.delta.properties import feature_of
from tablectl.model.operations import (
    ClusterBy,
    DropFeature,
    Operation,
    OptimizeData,
    Purge,
    RemoveMapping,
    Repartition,
    SetProperties,
    UnsetProperties,
    UpgradeUniform,
)
from tablectl.model.plan import Backfill, Basis, CommitEffect

_CLUSTERING_FEATURES = ("clustering", "domainMetadata")
_ROW_TRACKING_FEATURES = ("rowTracking", "domainMetadata")
_ROW_TRACKING = keys.ROW_TRACKING.lower()
_BACKFILL_FILES = 22_000
"""Files to which one commit gives row ids (``rowTracking.backfill.maxNumFiles``)."""
_MATERIALIZED = (
    (keys.MATERIALIZED_ROW_ID, ""),
    (keys.MATERIALIZED_ROW_VERSION, ""),
)
_TIMESTAMPS = keys.IN_COMMIT_TIMESTAMPS.lower()
_TIMESTAMPS_SINCE = (keys.TIMESTAMPS_SINCE_VERSION, keys.TIMESTAMPS_SINCE_TIME)
"""The properties that remain after in-commit timestamps are disabled: since when they were enabled."""
PROTECTED_BEFORE = keys.PROTECTED_BEFORE

LIVE = File("live")
"""Stands for each file of the table that a statement may rewrite and a writer may have read."""
NEW = File("new")


def effect_of(operation: Operation, basis: Basis) -> CommitEffect:
    """The effect of one operation on a table (delta-1.1)."""
    protocol = basis.protocol.protocol()
    match operation:
        case SetProperties(values):
            return _set_effect(values, basis)
        case UnsetProperties(keys):
            return CommitEffect(removes=keys)
        case ClusterBy():
            missing = tuple(feature for feature in _CLUSTERING_FEATURES if not protocol.has(feature))
            return CommitEffect(features=missing, domains=(CLUSTERING_DOMAIN,))
        case Purge():
            return CommitEffect(rewrites_files=True)
        case UpgradeUniform():
            return _uniform_effect(operation, basis)
        case RemoveMapping():
            return CommitEffect(sets=operation.values, rewrites_files=True)
        case OptimizeData():
            return CommitEffect(rewrites_files=True, clusters=True)
        case DropFeature(name, truncate_history):
            protects = needs_protection(name, truncate_history=truncate_history, protocol=protocol)
            return CommitEffect(
                features=(PROTECTION,) if protects else (), drops=(name,), truncates_history=truncate_history
            )
        case Repartition():
            # An overwrite clears the clustering of a clustered table (delta-1.4).
            domains = (CLUSTERING_DOMAIN,) if basis.clustered else ()
            return CommitEffect(rewrites_files=True, repartitions=True, domains=domains)
        case _:
            assert_never(operation)


def commits_of(effect: CommitEffect, basis: Basis) -> tuple[CommittedTransaction, ...]:
    """The commits of a statement in order, as concurrent writers see them (delta-1.1).

    Enabling row tracking takes three: the protocol, the files committed again, the property. Dropping a feature takes
    several commits, and the last one drops it.
    """
    if effect.drops:
        return _drop_commits(effect)
    if effect.uniform:
        return _uniform_commits(effect, basis)
    metadata = _metadata(effect, basis)
    features = effect.features
    before: tuple[CommittedTransaction, ...] = ()
    if _ROW_TRACKING in _turned_on(effect):
        raised = tuple(feature for feature in features if feature in _ROW_TRACKING_FEATURES)
        features = tuple(feature for feature in features if feature not in raised)
        upgrade = CommittedTransaction(
            kind=Kind.UPGRADE_PROTOCOL, protocol=ProtocolChange(adds=raised), blind=True, data_change=False
        )
        backfill = CommittedTransaction(kind=Kind.BACKFILL, added=(LIVE,), data_change=False)
        before = (upgrade, backfill) if raised else (backfill,)
    last = CommittedTransaction(
        kind=_kind(effect),
        metadata=metadata,
        protocol=ProtocolChange(adds=features) if features else None,
        domains=effect.domains,
        added=(NEW,) if effect.rewrites_files else (),
        removed=(LIVE,) if effect.rewrites_files else (),
        # ALTERs read nothing and are recorded as blind appends (delta-2.4).
        blind=not effect.rewrites_files,
        data_change=effect.repartitions,
        repartitions=effect.repartitions,
    )
    return (*before, last)


def _set_effect(values: tuple[tuple[str, str], ...], basis: Basis) -> CommitEffect:
    brought = {feature for key, value in values if (feature := feature_of(key, value))}
    if "rowTracking" in brought:
        brought |= set(_ROW_TRACKING_FEATURES)
    protocol = basis.protocol.protocol()
    missing = tuple(sorted(feature for feature in brought if not protocol.has(feature)))
    return CommitEffect(sets=values, features=missing)


def _uniform_effect(upgrade: UpgradeUniform, basis: Basis) -> CommitEffect:
    brought = ("columnMapping", f"icebergCompatV{upgrade.version}")
    return CommitEffect(
        sets=tuple(pair for pair in upgrade.values if pair[0] != keys.COLUMN_MAPPING or basis.mapping == "none"),
        features=tuple(feature for feature in brought if not basis.protocol.protocol().has(feature)),
        uniform=upgrade.version,
        rewrites_files=upgrade.version > 1 and basis.files != 0,
    )


def _uniform_commits(effect: CommitEffect, basis: Basis) -> tuple[CommittedTransaction, ...]:
    """First the compatibility version and what it requires, then the rewritten files, then the format."""
    settings = replace(
        effect, sets=tuple(pair for pair in effect.sets if pair[0] != keys.UNIFORM_FORMATS), rewrites_files=False
    )
    first = CommittedTransaction(
        kind=Kind.UPGRADE_UNIFORM,
        metadata=_metadata(settings, basis),
        protocol=ProtocolChange(adds=effect.features) if effect.features else None,
        blind=True,
        data_change=False,
    )
    files = CommittedTransaction(kind=Kind.REORG, added=(NEW,), removed=(LIVE,), data_change=False)
    formats = MetadataChange(sets=((keys.UNIFORM_FORMATS, "iceberg"),))
    last = CommittedTransaction(kind=Kind.SET_PROPERTIES, metadata=formats, blind=True, data_change=False)
    return (first, files, last) if effect.rewrites_files else (first, last)


def backfill_of(effect: CommitEffect, basis: Basis) -> Backfill | None:
    """The files that get row ids, in as many commits as that takes. ``None`` if there are none or their number is
    unknown.

    It counts all files, because only each file's log entry says whether the file has ids already. If the protocol has
    the feature, or a backfill was interrupted, Delta skips files with ids.
    """
    if _ROW_TRACKING not in _turned_on(effect) or not basis.files:
        return None
    return Backfill(
        files_at_most=basis.files, bytes_at_most=basis.bytes, commits_at_most=-(-basis.files // _BACKFILL_FILES)
    )


def _drop_commits(effect: CommitEffect) -> tuple[CommittedTransaction, ...]:
    """Checkpoints follow empty commits, three of them if they replace history (delta-1.3)."""
    feature = effect.drops[0]
    tombstones = CommittedTransaction(kind=Kind.TOMBSTONES, data_change=False)
    empty = CommittedTransaction(kind=Kind.EMPTY, blind=True, data_change=False)
    before: tuple[CommittedTransaction, ...]
    sets: tuple[tuple[str, str], ...] = ()
    if feature == PROTECTION:
        unset = CommittedTransaction(
            kind=Kind.UNSET_PROPERTIES,
            metadata=MetadataChange(removes=(PROTECTED_BEFORE,)),
            blind=True,
            data_change=False,
        )
        before = (empty, unset)
    elif effect.truncates_history:
        before = (tombstones, empty)
    else:
        sets = ((PROTECTED_BEFORE, ""),)
        before = (tombstones, empty, empty, empty)
    last = CommittedTransaction(
        kind=Kind.DROP_FEATURE,
        metadata=MetadataChange(sets=sets),
        protocol=ProtocolChange(adds=effect.features, removes=effect.drops),
        blind=True,
        data_change=False,
    )
    return (*before, last)


def _metadata(effect: CommitEffect, basis: Basis) -> MetadataChange | None:
    """Delta rewrites the metadata action on every property or feature change, even when nothing differs."""
    if effect.repartitions:
        return MetadataChange(beyond=True, schema="other")
    if not (effect.sets or effect.removes or effect.features):
        return None
    turned_on = _turned_on(effect)
    sets = effect.sets
    renews: tuple[str, ...] = ()
    tag: Literal["", "row tracking"] = ""
    if _ROW_TRACKING in turned_on:
        sets = (*effect.sets, *_MATERIALIZED)
        tag = "row tracking" if len(effect.sets) == 1 else ""
    if _TIMESTAMPS in turned_on and basis.protocol.protocol().has("inCommitTimestamp"):
        # Disabling in-commit timestamps keeps the record of when they were first enabled; enabling them again changes
        # it.
        sets = (*sets, *((key, "") for key in _TIMESTAMPS_SINCE))
        renews = _TIMESTAMPS_SINCE
    schema = _schema_change(effect, basis)
    return MetadataChange(sets=sets, renews=renews, removes=effect.removes, schema=schema, tag=tag)


def _schema_change(effect: CommitEffect, basis: Basis) -> Literal["same", "mapping", "other"]:
    """The ids of a struct's fields are stored in the type of its column, so the column's type changes (delta-1.7)."""
    if not any(key.lower() == keys.COLUMN_MAPPING.lower() for key, _ in effect.sets):
        return "same"
    return "other" if basis.nested or effect.rewrites_files else "mapping"


def _turned_on(effect: CommitEffect) -> set[str]:
    return {key.lower() for key, value in effect.sets if value.lower() == "true"}


def _kind(effect: CommitEffect) -> Kind:
    if effect.repartitions:
        return Kind.OVERWRITE
    if effect.rewrites_files:
        if effect.clusters:
            return Kind.OPTIMIZE
        return Kind.REMOVE_MAPPING if effect.sets else Kind.REORG
    if effect.domains:
        return Kind.CLUSTER_BY
    return Kind.UNSET_PROPERTIES if effect.removes else Kind.SET_PROPERTIES
