"""What a live table is: the facts read from its log, as plain values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from tablectl.delta.names import ColumnPath, TableName
from tablectl.delta.protocol import Client, Protocol
from tablectl.delta.schema import Schema
from tablectl.model.table_options import Optimize

NOTHING_SET: Mapping[str, str] = MappingProxyType({})
UNKNOWN_CLIENT = Client("unknown")


@dataclass(frozen=True, slots=True)
class AppTransaction:
    """A ``txn`` action: the last batch that an application, mostly a stream, wrote to the table with this commit."""

    app_id: str
    """A stream's query id, or what a writer gave as ``txnAppId``."""
    version: int
    last_updated: int = 0
    """Milliseconds since the epoch, by the writer's clock; 0 where unknown."""


@dataclass(frozen=True, slots=True)
class Commit:
    """One entry of a table's history: what the commit did, and what its ``commitInfo`` says of it.

    ``commitInfo`` may hold anything: what is not of its form is taken as absent, and long texts are cut.
    """

    version: int
    timestamp: int
    """Milliseconds since the epoch: the in-commit timestamp, else the writer's clock; 0 where unknown."""
    operation: str
    user: str = ""
    client: Client = UNKNOWN_CLIENT
    user_metadata: str = ""
    changes_metadata: bool = False
    """Whether the commit carries a ``metaData`` or ``protocol`` action, or a domain other than row tracking's."""
    changes_data: bool = False
    """Whether it adds or removes files."""
    overwrites: bool = False
    """Whether it replaced the whole table."""
    schema_writer: bool = False
    """Whether it carried both data and metadata, as schema evolution and identity columns do."""
    engine: str = ""
    """``engineInfo`` as it stands: what ``client`` was told from."""
    parameters: Mapping[str, str] = field(default_factory=lambda: NOTHING_SET)
    """Of the operation, as ``DESCRIBE HISTORY`` shows those that are not null; a value that was cut ends with …"""
    metrics: Mapping[str, str] = field(default_factory=lambda: NOTHING_SET)
    """Of the operation, in the same way."""
    tags: Mapping[str, str] = field(default_factory=lambda: NOTHING_SET)
    """What the writer says of its commit, such as ``delta.rowTracking.preserved``."""
    read_version: int | None = None
    """The version that the transaction began from."""
    isolation: str = ""
    """The level that the transaction ran at: ``Serializable``, ``WriteSerializable``, ``SnapshotIsolation``."""
    blind_append: bool | None = None
    """Whether it only added files, and read none."""
    transactions: tuple[AppTransaction, ...] = ()
    job: Mapping[str, str] = field(default_factory=lambda: NOTHING_SET)
    """The job, notebook and cluster that committed, as Databricks notes them: ``jobId``, ``jobName``, ``runId``, …,
    ``notebookId``, ``clusterId``.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class FileGroup:
    """Data files that are clustered alike."""

    columns: tuple[str, ...] | None = None
    """By which columns, as the files say; ``()`` by some that they do not name, ``None`` not at all."""
    files: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusteringState:
    """By what the data of a table is clustered, file by file."""

    parts: tuple[FileGroup, ...] = ()
    older: FileGroup = FileGroup()
    """Of the files that are not clustered at all, those that are as old as the table's clustering columns, or older:
    as far as the log in reach tells."""

    def total(self) -> FileGroup:
        """All files."""
        return self._sum(lambda _part: True)

    def outside(self, columns: tuple[str, ...]) -> FileGroup:
        """What is not clustered by some columns."""
        return self._sum(lambda part: part.columns not in {(), columns})

    def loose(self) -> FileGroup:
        """What is not clustered at all."""
        return self._sum(lambda part: part.columns is None)

    def others(self, columns: tuple[str, ...]) -> FileGroup:
        """What is clustered by other columns."""
        return self._sum(lambda part: part.columns not in {None, (), columns})

    def _sum(self, wanted: Callable[[FileGroup], bool]) -> FileGroup:
        parts = [part for part in self.parts if wanted(part)]
        return FileGroup(files=sum(part.files for part in parts), bytes=sum(part.bytes for part in parts))


@dataclass(frozen=True, slots=True)
class HistoryTruncation:
    """What stands in the way of giving up the history that a dropped feature left behind."""

    due: int = 0
    """Milliseconds since the epoch, by the clocks of those who committed, from which on nothing does; 0 where nothing
    is known that does.
    """


@dataclass(frozen=True, slots=True)
class PartitionLayout:
    """How the files of a partitioned table lie in its partitions, from the log."""

    partitions: int
    median: int
    """Bytes of the partition in the middle, by size."""
    values: tuple[tuple[str, int], ...]
    """Each partition column, and how many values it has."""


@dataclass(frozen=True, slots=True)
class LiveTable:
    """One table at one version. ``None`` in a count means unknown, never none."""

    name: TableName
    location: str
    version: int
    table_id: str
    protocol: Protocol
    schema: Schema
    partition_columns: tuple[str, ...] = ()
    clustering: tuple[ColumnPath, ...] | None = None
    """Logical paths; ``()`` is clustered without columns, ``None`` never clustered."""
    properties: Mapping[str, str] = field(default_factory=lambda: NOTHING_SET)
    files: int | None = None
    bytes: int | None = None
    vectors: int | None = None
    """Deletion vectors in the current version."""
    marks: ClusteringState | None = None
    """Asked for where clustering columns change, or where data shall follow them; else ``None``."""
    optimize: Optimize = "never"
    """How data shall follow the clustering columns, where that was asked with the marks."""
    truncation: HistoryTruncation | None = None
    """Asked for where history shall be given up, of tables that have deletion vectors in their protocol, or
    checkpoints protected; else ``None``.
    """
    history: tuple[Commit, ...] = ()
    """The look-back: the most recent commits, newest first, as far as they were asked for and are still there."""
    layout: PartitionLayout | None = None
    """Of a partitioned table, where it was asked for."""

    @property
    def clients(self) -> tuple[Client, ...]:
        """Who wrote the recent commits, without repetition, sorted."""
        found = {commit.client for commit in self.history}
        return tuple(sorted(found, key=lambda client: (client.engine, client.version)))

    @property
    def schema_writers(self) -> bool:
        """Whether a recent commit carried both data and metadata (schema evolution, identity columns)."""
        return any(commit.schema_writer for commit in self.history)

    @property
    def overwrites(self) -> bool:
        """Whether a recent commit overwrote the whole table."""
        return any(commit.overwrites for commit in self.history)

    @property
    def app_ids(self) -> tuple[str, ...]:
        """The applications, mostly streams, whose ``txn`` is in the recent commits: without repetition, sorted."""
        return tuple(sorted({each.app_id for commit in self.history for each in commit.transactions}))

    def property(self, key: str) -> str | None:
        """The value of a property. ``delta.*`` keys are found without regard to case, the user's own exactly."""
        if key in self.properties:
            return self.properties[key]
        if not key.lower().startswith("delta."):
            return None
        return next((value for name, value in self.properties.items() if name.lower() == key.lower()), None)
