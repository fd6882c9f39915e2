"""The rules of Delta Spark: the checks of its ``ConflictChecker``, in its order, by the client's version (delta-2).

Based on the sources of 3.0 to 4.4. An unknown version counts as the oldest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from tablectl.conflicts.transactions import (
    ClientRules,
    Conflict,
    ConflictOutcome,
    CurrentTransaction,
    Level,
    commits,
    fails,
)
from tablectl.delta import keys
from tablectl.delta.client_families import DELTA_SPARK
from tablectl.delta.keys import CLUSTERING_DOMAIN, ROW_TRACKING_DOMAIN
from tablectl.delta.properties import feature_of
from tablectl.delta.protocol import Client
from tablectl.model.commit_contents import CommittedTransaction, Kind, MetadataChange

Version = tuple[int, ...]

RELEASES = tuple(Client(DELTA_SPARK.name, version) for version in ((3, 2), (3, 3), (4, 1), (4, 3), (4, 4)))
"""The versions of Delta Spark in which its rules changed, oldest first."""
_IDENTITY_TAG: Version = (3, 3)
_BACKFILL: Version = (3, 3)
_IDENTICAL: Version = (4, 1)
_MAPPING_MODE = keys.COLUMN_MAPPING.lower()
_ROW_TRACKING = keys.ROW_TRACKING.lower()
_TOLERATED: Mapping[str, tuple[Version, frozenset[str] | None]] = MappingProxyType(
    {
        _ROW_TRACKING: ((4, 1), frozenset({"true"})),
        keys.MATERIALIZED_ROW_ID.lower(): ((4, 1), None),
        keys.MATERIALIZED_ROW_VERSION.lower(): ((4, 1), None),
        _MAPPING_MODE: ((4, 1), frozenset({"name"})),
        keys.MAX_COLUMN_ID.lower(): ((4, 1), None),
        keys.DELETION_VECTORS.lower(): ((4, 1), frozenset({"true"})),
        keys.CHECKPOINT_POLICY.lower(): ((4, 3), frozenset({"v2"})),
        keys.IN_COMMIT_TIMESTAMPS.lower(): ((4, 3), frozenset({"true"})),
        keys.TIMESTAMPS_SINCE_VERSION.lower(): ((4, 3), None),
        keys.TIMESTAMPS_SINCE_TIME.lower(): ((4, 3), None),
        keys.UNITY_TABLE_ID.lower(): ((4, 4), None),
    }
)
"""Properties that a current transaction adopts from a committed one: since which version, and with which values
(delta-2.2)."""
_NEW_ONLY = frozenset(key for key in _TOLERATED if key.startswith(("delta.incommit", "io.")))
"""Those of them that must not have had another value before."""
_NEEDS_ROW_TRACKING = frozenset(key for key in _TOLERATED if key.startswith("delta.rowtracking."))
_KNOWN_SINCE: Mapping[str, Version] = MappingProxyType(
    {
        "clustering": (3, 1),
        "icebergCompatV2": (3, 1),
        "allowColumnDefaults": (3, 1),
        "vacuumProtocolCheck": (3, 2),
        "typeWidening": (3, 3),
        "inCommitTimestamp": (3, 3),
        "checkpointProtection": (3, 3),
        "variantType": (4, 0),
        "catalogManaged": (4, 0),
        "materializePartitionColumns": (4, 1),
        "variantShredding": (4, 1),
        "icebergCompatV3": (4, 3),
        "adaptiveMetadata-preview": (4, 4),
    }
)
"""The first version that can write a table with a feature. Features not listed are older than 3.0."""
_LARGE = frozenset({Kind.RESTORE, Kind.CLONE})
_RETRIED = frozenset({Kind.OPTIMIZE, Kind.REORG})
_REARRANGING = frozenset({Kind.OPTIMIZE, Kind.REORG, Kind.BACKFILL, Kind.UNBACKFILL})
_BACKFILLS = frozenset({Kind.BACKFILL, Kind.UNBACKFILL})


def decide_spark(all_committed: Sequence[CommittedTransaction], current: CurrentTransaction) -> ConflictOutcome:
    """The outcome of a Delta Spark transaction after these committed ones, in the order of their versions."""
    if all_committed and current.kind in _LARGE:
        return fails(Conflict.WRITE, f"{current.kind} takes the next version, or it fails", "delta-2.5")
    for index, committed in enumerate(all_committed):
        seen = _as_seen(committed, all_committed[:index])
        outcome = next((outcome for check in _CHECKS if (outcome := check(seen, current))), None)
        if outcome is not None:
            return _after_retry(all_committed, current, outcome)
    return _why_it_commits(all_committed, current)


def level_used(current: CurrentTransaction) -> Level:
    """The level at which a commit is checked: Delta lowers it for commits that change no row (delta-2.4)."""
    other_domains = set(current.domains) - {ROW_TRACKING_DOMAIN}
    if current.data_change or current.metadata or current.protocol or current.app_ids or other_domains:
        return current.level
    if current.level is Level.WRITE_SERIALIZABLE and current.kind not in _REARRANGING:
        return current.level
    return Level.SNAPSHOT


def metadata_failure(change: MetadataChange, version: Version) -> str:
    """Why a data write of this version of Delta Spark fails on a committed metadata change; empty if it adopts the
    change.

    The order is that of delta-2.2. Before 4.1, only the tags of the commit decide what is tolerated.
    """
    if change.tag == "identity" and version >= _IDENTITY_TAG:
        return ""
    if change.tag == "row tracking" and _BACKFILL <= version < _IDENTICAL:
        return ""
    never = _always_fails(change)
    if never:
        return never
    since = max([_TOLERATED[key.lower()][0] for key, _ in change.sets] or [_IDENTICAL])
    if version < since:
        return f"concurrent writes continue only from Delta Spark {'.'.join(map(str, since))} on"
    return ""


def _always_fails(change: MetadataChange) -> str:
    """Why no version adopts a metadata change."""
    if change.beyond or change.described:
        return "a new table id, name, description or partitioning conflicts with every concurrent write"
    if change.removes:
        return "removing a property conflicts with every concurrent write"
    unsafe = sorted({key for key, value in change.sets if not _adoptable(key, value, change)})
    if unsafe:
        return f"changing {', '.join(unsafe)} conflicts with every concurrent write"
    sets = {key.lower() for key, _ in change.sets}
    if change.schema == "other" or (change.schema == "mapping" and _MAPPING_MODE not in sets):
        return "changing the schema conflicts with every concurrent write"
    return ""


def _adoptable(key: str, value: str, change: MetadataChange) -> bool:
    folded = key.lower()
    if folded not in _TOLERATED or (folded in _NEW_ONLY and folded in {each.lower() for each in change.renews}):
        return False
    if folded in _NEEDS_ROW_TRACKING:
        return any(each.lower() == _ROW_TRACKING and to.lower() == "true" for each, to in change.sets)
    values = _TOLERATED[folded][1]
    # Delta reads booleans case-insensitively, and names verbatim.
    return values is None or value in values or (value.lower() == "true" and "true" in values)


def _as_seen(committed: CommittedTransaction, before: Sequence[CommittedTransaction]) -> CommittedTransaction:
    """The committed transaction as it differs from what the current one adopted of those before it.

    An identity-only change is skipped without being adopted, so the next metadata appears to change the schema.
    """
    moved = any(each.metadata is not None and each.metadata.tag == "identity" for each in before)
    if not moved or committed.metadata is None:
        return committed
    return replace(committed, metadata=replace(committed.metadata, schema="other"))


def _protocol(committed: CommittedTransaction, current: CurrentTransaction) -> ConflictOutcome | None:
    source = "delta-2.1 (1)"
    change = committed.protocol
    if change is not None:
        unknown = [each for each in change.adds if current.client.version < _KNOWN_SINCE.get(each, ())]
        if unknown:
            return fails(Conflict.UNSUPPORTED, f"{current.client.text()} cannot write {', '.join(unknown)}", source)
        if current.protocol:
            return fails(Conflict.PROTOCOL_CHANGED, "both change the protocol", source)
        if change.removes:
            reason = "dropping a protocol feature conflicts with every concurrent transaction"
            return fails(Conflict.PROTOCOL_CHANGED, reason, source)
    # The features that a committed transaction enables by a property (delta-1.3, revalidation)
    sets = committed.metadata.sets if committed.metadata else ()
    used = sorted(
        set(current.drops)
        & (set(committed.traces) | {feature for key, value in sets if (feature := feature_of(key, value))})
        - {"rowTracking"}
    )
    if used:
        return fails(Conflict.REVALIDATION, f"the other commit used {', '.join(used)}, which this one drops", source)
    return None


def _metadata(committed: CommittedTransaction, current: CurrentTransaction) -> ConflictOutcome | None:
    change = committed.metadata
    if change is None:
        return None
    source = "delta-2.2"
    if current.metadata:
        return fails(Conflict.METADATA_CHANGED, "two metadata changes always conflict", source)
    why = metadata_failure(change, current.client.version)
    return fails(Conflict.METADATA_CHANGED, why, source) if why else None


def _domains(committed: CommittedTransaction, current: CurrentTransaction) -> ConflictOutcome | None:
    shared = sorted(set(committed.domains) & set(current.domains) - {ROW_TRACKING_DOMAIN})
    if not shared:
        return None
    what = "the clustering columns" if shared == [CLUSTERING_DOMAIN] else f"the domain {', '.join(shared)}"
    return fails(Conflict.TRANSACTION, f"both write {what}", "delta-2.3")


def _app_ids(committed: CommittedTransaction, current: CurrentTransaction) -> ConflictOutcome | None:
    shared = sorted(set(committed.app_ids) & set(current.app_ids))
    if not shared:
        return None
    reason = f"two runs of one stream, or of one idempotent write, at the same time: {', '.join(shared)}"
    return fails(Conflict.TRANSACTION, reason, "delta-2.1 (4)")


def _backfills(committed: CommittedTransaction, current: CurrentTransaction) -> ConflictOutcome | None:
    if current.kind is Kind.UNBACKFILL and committed.kind is Kind.BACKFILL:
        reason = "row tracking is being enabled and dropped at the same time"
        return fails(Conflict.BACKFILL, reason, "ConflictChecker.scala 551")
    return None


def _added(committed: CommittedTransaction, current: CurrentTransaction) -> ConflictOutcome | None:
    if _skips_added(committed, current):
        return None
    level = level_used(current)
    if level is Level.SNAPSHOT or (level is Level.WRITE_SERIALIZABLE and committed.blind and not current.metadata):
        return None
    file = next((file for file in committed.added if current.reads.admit(file, partitioned=current.partitioned)), None)
    if file is None:
        return None
    where = "in a partition that it reads" if current.partitioned else "to a table without partitions that it reads"
    return fails(Conflict.APPEND, f"files were added {where}", "delta-3")


def _skips_added(committed: CommittedTransaction, current: CurrentTransaction) -> bool:
    known = current.client.version >= _BACKFILL
    return known and (committed.kind in _BACKFILLS or current.kind in _BACKFILLS)


def _removed_read(committed: CommittedTransaction, current: CurrentTransaction) -> ConflictOutcome | None:
    if current.kind in _BACKFILLS:
        return None  # backfill skips files that were removed concurrently
    read = set(current.reads.files)
    if any(file.path in read for file in committed.removed) or (committed.removed and current.reads.whole):
        return fails(Conflict.DELETE_READ, "a file that it read was removed or rewritten", "delta-3")
    return None


def _removed_twice(committed: CommittedTransaction, current: CurrentTransaction) -> ConflictOutcome | None:
    removes = set(current.removes)
    if any(file.path in removes for file in committed.removed):
        return fails(Conflict.DELETE_DELETE, "both remove or rewrite the same file", "delta-3")
    return None


_CHECKS: tuple[Callable[[CommittedTransaction, CurrentTransaction], ConflictOutcome | None], ...] = (
    _protocol,
    _metadata,
    _domains,
    _app_ids,
    _backfills,
    _added,
    _removed_read,
    _removed_twice,
)
"""In the order of ``ConflictChecker.checkConflicts``."""


def _after_retry(
    all_committed: Sequence[CommittedTransaction], current: CurrentTransaction, outcome: ConflictOutcome
) -> ConflictOutcome:
    """OPTIMIZE and REORG retry after any conflict, and commit if all their input files are still in the table
    (delta-2.5).
    """
    if current.kind not in _RETRIED or outcome.conflict is Conflict.UNSUPPORTED:
        return outcome
    inputs = {*current.reads.files, *current.removes}
    gone = any(file.path in inputs for committed in all_committed for file in committed.removed)
    if gone or any(committed.repartitions for committed in all_committed):
        return outcome
    return commits("it retries by itself: all files that it rewrites still exist", "delta-2.5")


def _why_it_commits(all_committed: Sequence[CommittedTransaction], current: CurrentTransaction) -> ConflictOutcome:
    if any(committed.metadata is not None for committed in all_committed):
        return commits("it adopts the change and continues", "delta-2.2")
    added = any(committed.added for committed in all_committed)
    if added and any(_skips_added(committed, current) for committed in all_committed):
        return commits("a row tracking backfill only commits files again", "delta-1.6")
    if added and current.reads.nothing:
        return commits("it reads nothing of the table, so added files do not conflict", "delta-3")
    if added and level_used(current) is Level.SNAPSHOT:
        return commits("it changes no row, so added files do not conflict", "delta-2.4")
    if (
        added
        and level_used(current) is Level.WRITE_SERIALIZABLE
        and all(committed.blind for committed in all_committed)
    ):
        return commits("under WriteSerializable a blind append conflicts with nothing", "delta-3")
    if added or any(committed.removed for committed in all_committed):
        return commits("the other commit touched no file that it reads or writes", "delta-3")
    return commits("the other commit changed nothing that it reads or writes", "delta-2.1")


RULES = ClientRules(family=DELTA_SPARK, decide=decide_spark, strictest=RELEASES[0], releases=RELEASES)
