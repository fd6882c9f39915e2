"""The records of a conflict: the committed transaction, the current transaction that lost the race, and the outcome.

The client of the current transaction decides (delta-2), so the client belongs to that record. A partition is the values
of a file in the order of the table's partition columns, ``()`` on a table without partitions.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from tablectl.delta.protocol import Client

Partition = tuple[str | None, ...]

CLUSTERING_DOMAIN = "delta.clustering"
ROW_TRACKING_DOMAIN = "delta.rowTracking"


class Kind(StrEnum):
    """What a transaction does, as far as conflicts depend on it. The value is text for people."""

    APPEND = "INSERT"
    """Reads nothing of the table."""
    STREAMING_APPEND = "streaming append"
    READING_INSERT = "INSERT … SELECT from the table itself"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    MERGE = "MERGE"
    OVERWRITE = "full overwrite"
    DYNAMIC_OVERWRITE = "dynamic partition overwrite"
    REPLACE_WHERE = "replaceWhere"
    OPTIMIZE = "OPTIMIZE"
    REORG = "REORG"
    BACKFILL = "row tracking backfill"
    UNBACKFILL = "row tracking unbackfill"
    SET_PROPERTIES = "SET TBLPROPERTIES"
    UNSET_PROPERTIES = "UNSET TBLPROPERTIES"
    CLUSTER_BY = "CLUSTER BY"
    ADD_COLUMNS = "ADD COLUMNS"
    CHANGE_COLUMN = "ALTER COLUMN"
    SET_NOT_NULL = "SET NOT NULL"
    ADD_CONSTRAINT = "ADD CONSTRAINT"
    DROP_CONSTRAINT = "DROP CONSTRAINT"
    DROP_FEATURE = "DROP FEATURE"
    TOMBSTONES = "Deletion Vector Tombstones"
    """Protects deletion vector files that are no longer used from a VACUUM by clients that do not know them."""
    EMPTY = "Empty Commit"
    UPGRADE_PROTOCOL = "UPGRADE PROTOCOL"
    REMOVE_MAPPING = "REMOVE COLUMN MAPPING"
    UPGRADE_UNIFORM = "REORG … UPGRADE UNIFORM"
    REPLACE_TABLE = "REPLACE TABLE"
    RESTORE = "RESTORE"
    CLONE = "CLONE"


class Level(StrEnum):
    """An isolation level. Tables have one of the first two; Delta assigns the third to some of its own commits."""

    SERIALIZABLE = "Serializable"
    WRITE_SERIALIZABLE = "WriteSerializable"
    SNAPSHOT = "SnapshotIsolation"


@dataclass(frozen=True, slots=True)
class File:
    """A data file."""

    path: str
    partition: Partition = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataChange:
    """A ``metaData`` action, as its differences from the version before it. All empty: it repeats the previous one."""

    sets: tuple[tuple[str, str], ...] = ()
    """Properties with their new values."""
    renews: tuple[str, ...] = ()
    """Those of ``sets`` that had another value before. This matters for keys that Delta itself writes."""
    removes: tuple[str, ...] = ()
    schema: Literal["same", "mapping", "other"] = "same"
    """``mapping``: only the column mapping of top-level fields is new."""
    beyond: bool = False
    """Whether the table's id, name, description or partition columns differ."""
    tag: Literal["", "identity", "row tracking"] = ""
    """Delta's tag on the commit: only identity high-water marks moved, or only row tracking was enabled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolChange:
    """A ``protocol`` action, as its differences from the version before it."""

    adds: tuple[str, ...] = ()
    removes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedTransaction:
    """A commit that took its version before the current transaction could."""

    kind: Kind
    metadata: MetadataChange | None = None
    protocol: ProtocolChange | None = None
    domains: tuple[str, ...] = ()
    app_ids: tuple[str, ...] = ()
    """The app ids of its ``txn`` actions: streams and idempotent writes."""
    added: tuple[File, ...] = ()
    removed: tuple[File, ...] = ()
    """A file that gets a deletion vector is removed and added again under the same path."""
    blind: bool = False
    """Its ``isBlindAppend``. Delta Kernel and ``deltalake`` never set it to true, even for a blind append."""
    data_change: bool = True
    """Whether its file actions change rows; false if they only rearrange them."""
    traces: tuple[str, ...] = ()
    """Features that it used: a transaction that drops one of them finds it in use."""
    repartitions: bool = False
    """Whether it changed the table's partition columns."""
    zorder: bool = False
    """Whether an OPTIMIZE orders by ``ZORDER BY``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reads:
    """What a transaction read of the table."""

    partitions: tuple[Partition, ...] | None = ()
    """The partitions that its predicates admit; ``None`` is all of them. Predicates on data columns and
    nondeterministic predicates count as true (delta-3)."""
    files: tuple[str, ...] = ()
    """Paths of the files left after file skipping by statistics."""
    whole: bool = False
    """Whether it is marked as having read the whole table, whatever its predicates."""

    @property
    def nothing(self) -> bool:
        """Whether it read nothing."""
        return self.partitions == () and not self.files and not self.whole

    def admit(self, file: File, *, partitioned: bool) -> bool:
        """Whether it would have read an added file. Without partitions it would have read any file (delta-3)."""
        if self.nothing:
            return False
        if self.whole or not partitioned or self.partitions is None:
            return True
        return file.partition in self.partitions


NOTHING = Reads()
EVERYTHING = Reads(partitions=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    """The facts that Databricks' rules need in addition to the transaction. ``None`` is unknown."""

    vectors: bool | None = None
    """Whether deletion vectors are enabled, by the property's current value (D97)."""
    clustered: bool | None = None
    photon: bool | None = None
    preview: bool = False
    """Whether the session opted in to the preview of runtimes 14.0 and 14.1 (D49)."""
    plain: bool | None = None
    """Whether the conditions are free of what row-level concurrency does not support (D44)."""
    filtered: bool | None = None
    """Whether a MERGE filters the target explicitly (D45)."""
    identity: bool = False
    """Whether the table has identity columns (D23)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentTransaction:
    """A transaction that read an older version and tries to commit after the committed one."""

    kind: Kind
    client: Client
    level: Level = Level.SERIALIZABLE
    """The table's level, as this transaction read it. Unset is Serializable in open-source Delta (delta-1.2)."""
    partitioned: bool = False
    reads: Reads = NOTHING
    adds: bool = True
    """Whether it adds files."""
    removes: tuple[str, ...] = ()
    """Paths that it removes."""
    data_change: bool = True
    """Whether its file actions change rows. Also false if it found no row to change."""
    metadata: bool = False
    """Whether it contains a ``metaData`` action."""
    protocol: bool = False
    drops: tuple[str, ...] = ()
    """Features that it drops from the protocol."""
    domains: tuple[str, ...] = ()
    app_ids: tuple[str, ...] = ()
    zorder: bool = False
    platform: Platform = Platform()


class Conflict(StrEnum):
    """How a transaction fails: Delta's error class."""

    PROTOCOL_CHANGED = "DELTA_PROTOCOL_CHANGED"
    METADATA_CHANGED = "DELTA_METADATA_CHANGED"
    TRANSACTION = "DELTA_CONCURRENT_TRANSACTION"
    APPEND = "DELTA_CONCURRENT_APPEND"
    DELETE_READ = "DELTA_CONCURRENT_DELETE_READ"
    DELETE_DELETE = "DELTA_CONCURRENT_DELETE_DELETE"
    WRITE = "DELTA_CONCURRENT_WRITE"
    UNSUPPORTED = "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE"
    """The committed transaction added a feature that the client of the current one cannot write."""
    REVALIDATION = "DELTA_FEATURE_DROP_CONFLICT_REVALIDATION_FAIL"
    BACKFILL = "DELTA_ROW_TRACKING_BACKFILL_RUNNING_CONCURRENTLY_WITH_UNBACKFILL"

    @property
    def exception(self) -> str:
        """The class that Spark raises."""
        return _EXCEPTIONS[self.value]

    def raised_by(self, client: Client) -> str:
        """The class that this client raises: that of Spark, unless its family has one class for all conflicts."""
        return client.family.commit_error or self.exception


_EXCEPTIONS = {
    "DELTA_PROTOCOL_CHANGED": "ProtocolChangedException",
    "DELTA_METADATA_CHANGED": "MetadataChangedException",
    "DELTA_CONCURRENT_TRANSACTION": "ConcurrentTransactionException",
    "DELTA_CONCURRENT_APPEND": "ConcurrentAppendException",
    "DELTA_CONCURRENT_DELETE_READ": "ConcurrentDeleteReadException",
    "DELTA_CONCURRENT_DELETE_DELETE": "ConcurrentDeleteDeleteException",
    "DELTA_CONCURRENT_WRITE": "ConcurrentWriteException",
    "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE": "DeltaUnsupportedTableFeatureException",
    "DELTA_FEATURE_DROP_CONFLICT_REVALIDATION_FAIL": "DeltaTableFeatureException",
    "DELTA_ROW_TRACKING_BACKFILL_RUNNING_CONCURRENTLY_WITH_UNBACKFILL": "DeltaIllegalStateException",
}


class ConflictResult(StrEnum):
    """The result of the current transaction, from best to worst."""

    COMMITS = "commits"
    MAY_FAIL = "may fail"
    """It depends on facts that the records do not contain, such as the rows that both touch."""
    UNKNOWN = "cannot tell"
    """It is not documented, and must be treated as a failure."""
    FAILS = "fails"


@dataclass(frozen=True, slots=True)
class ConflictOutcome:
    """The result of the current transaction, its reason and its source."""

    result: ConflictResult
    reason: str
    source: str
    """``delta-2.2``, or the ids of facts about Databricks (``D15``)."""
    conflict: Conflict | None = None
    """The error class if it fails; never set if it commits."""

    @property
    def succeeds(self) -> bool:
        """Whether it certainly commits."""
        return self.result is ConflictResult.COMMITS

    @property
    def rank(self) -> int:
        """Higher is worse."""
        return list(ConflictResult).index(self.result)


def commits(reason: str, source: str) -> ConflictOutcome:
    """The outcome of a current transaction that commits."""
    return ConflictOutcome(ConflictResult.COMMITS, reason, source)


def fails(conflict: Conflict, reason: str, source: str) -> ConflictOutcome:
    """The outcome of a current transaction that fails."""
    return ConflictOutcome(ConflictResult.FAILS, reason, source, conflict)
