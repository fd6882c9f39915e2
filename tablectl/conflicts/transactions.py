"""The records of a conflict: the committed transaction, the current transaction that lost the race, and the outcome.

The client of the current transaction decides (delta-2), so the client belongs to that record.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from tablectl.delta.client_families import ClientFamily
from tablectl.delta.protocol import Client
from tablectl.model.commit_contents import CommittedTransaction, File, Kind, Partition


class Level(StrEnum):
    """An isolation level. Tables have one of the first two; Delta assigns the third to some of its own commits."""

    SERIALIZABLE = "Serializable"
    WRITE_SERIALIZABLE = "WriteSerializable"
    SNAPSHOT = "SnapshotIsolation"


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

    def message_of(self, client: Client) -> str:
        """The text that this client gives with its one class for all conflicts; empty for other clients."""
        return dict(client.family.commit_messages).get(self.value, "")


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


_RANKS = {each: rank for rank, each in enumerate(ConflictResult)}


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
        return _RANKS[self.result]


def commits(reason: str, source: str) -> ConflictOutcome:
    """The outcome of a current transaction that commits."""
    return ConflictOutcome(ConflictResult.COMMITS, reason, source)


def fails(conflict: Conflict, reason: str, source: str) -> ConflictOutcome:
    """The outcome of a current transaction that fails."""
    return ConflictOutcome(ConflictResult.FAILS, reason, source, conflict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientRules:
    """The conflict rules of the clients of one family."""

    family: ClientFamily
    decide: Callable[[Sequence[CommittedTransaction], CurrentTransaction], ConflictOutcome]
    """The outcome of a current transaction of the family after several committed ones, in the order of their versions.
    """
    strictest: Client
    """The client of the family whose transactions fail most. A client of unknown kind counts as it."""
    releases: tuple[Client, ...] = ()
    """The versions in which the rules changed, oldest first; empty if they are the same for all versions."""


def worst(outcomes: Sequence[ConflictOutcome]) -> ConflictOutcome:
    """The worst outcome, and the first among equals: it is the one that ends the transaction."""
    return max(outcomes, key=lambda outcome: outcome.rank, default=commits("nothing came in between", "delta-2.1"))
