"""What a live table is: the facts read from its log, as plain values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from tablectl.model.names import ColumnPath, TableName
from tablectl.model.options import Optimize
from tablectl.model.schema import Schema

_LEGACY_WRITER: Mapping[str, int] = MappingProxyType(
    {
        "appendOnly": 2,
        "invariants": 2,
        "checkConstraints": 3,
        "changeDataFeed": 4,
        "generatedColumns": 4,
        "columnMapping": 5,
        "identityColumns": 6,
    }
)
READER_FEATURES = frozenset(
    {
        "columnMapping",
        "deletionVectors",
        "timestampNtz",
        "v2Checkpoint",
        "typeWidening",
        "typeWidening-preview",
        "variantType",
        "variantType-preview",
        "variantShredding",
        "variantShredding-preview",
        "vacuumProtocolCheck",
        "catalogManaged",
        "geospatial",
    }
)
"""Features that readers must know too (delta-1.13)."""
_COLUMN_MAPPING_READER = 2
_TABLE_FEATURES_READER = 3
_TABLE_FEATURES_WRITER = 7


NOTHING_SET: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Protocol:
    """Which clients may read and write the table. Feature lists are empty below reader 3 and writer 7."""

    reader: int
    writer: int
    reader_features: frozenset[str] = frozenset()
    writer_features: frozenset[str] = frozenset()

    def has(self, feature: str) -> bool:
        """Whether the protocol supports a feature, the implied ones of numbered protocols included (delta-1.13)."""
        if self.writer >= _TABLE_FEATURES_WRITER:
            return feature in self.writer_features
        if feature == "columnMapping" and self.reader < _COLUMN_MAPPING_READER:
            return False
        return feature in _LEGACY_WRITER and self.writer >= _LEGACY_WRITER[feature]

    @property
    def features(self) -> frozenset[str]:
        """Every feature it supports, the implied ones of numbered protocols included."""
        if self.writer >= _TABLE_FEATURES_WRITER:
            return self.writer_features | self.reader_features
        return frozenset(feature for feature in _LEGACY_WRITER if self.has(feature))

    @property
    def lists_features(self) -> bool:
        """Whether it lists features instead of implying them by its numbers."""
        return self.writer >= _TABLE_FEATURES_WRITER

    def raised(self, features: frozenset[str]) -> Protocol:
        """The protocol after features are added, as Delta 4.4 normalises it (measured).

        A numbered protocol keeps numbers only where one number means exactly the features it then has: change data
        feed on (1,2) does not become (1,4), which would bring check constraints too, but writer 7 with an explicit
        list, in which the implied legacy features are written out.
        """
        missing = frozenset(feature for feature in features if not self.has(feature))
        if not missing:
            return self
        implied = {feature for feature in _LEGACY_WRITER if self.has(feature)}
        written = frozenset(self.writer_features | implied | missing)
        least = max(self.reader, _COLUMN_MAPPING_READER) if "columnMapping" in written else self.reader
        if self.writer < _TABLE_FEATURES_WRITER:
            exact = (Protocol(least, number) for number in sorted(set(_LEGACY_WRITER.values())))
            for numbered in exact:
                if written == {feature for feature in _LEGACY_WRITER if numbered.has(feature)}:
                    return numbered
        read = written & READER_FEATURES
        reader = _TABLE_FEATURES_READER if read - {"columnMapping"} else least
        return Protocol(
            reader,
            _TABLE_FEATURES_WRITER,
            read if reader == _TABLE_FEATURES_READER else frozenset(),
            written,
        )

    def lowered(self, features: frozenset[str]) -> Protocol:
        """The protocol after features are taken from it, as Delta 4.4 normalises it (measured).

        It falls back to numbers where those mean exactly the features that are left.
        """
        if not any(self.has(feature) for feature in features):
            return self
        implied = {feature for feature in _LEGACY_WRITER if self.has(feature)}
        left = frozenset((self.writer_features | implied) - features)
        return Protocol(1, 1).raised(left)

    def text(self) -> str:
        """For people: ``reader 3, writer 7: deletionVectors, clustering``."""
        names = sorted(self.reader_features | self.writer_features)
        return f"reader {self.reader}, writer {self.writer}" + (f": {', '.join(names)}" if names else "")


@dataclass(frozen=True, slots=True)
class Client:
    """Who wrote a commit, from ``commitInfo.engineInfo``: ``Apache-Spark/4.2.0 Delta-Lake/4.4.0``."""

    engine: str
    """``delta-spark``, ``kernel``, ``databricks``, ``delta-rs`` or ``unknown``."""
    version: tuple[int, ...] = ()

    def text(self) -> str:
        """For people: ``Delta Spark 4.4.0``."""
        names = {
            "delta-spark": "Delta Spark",
            "kernel": "Delta Kernel",
            "databricks": "Databricks",
            "delta-rs": "delta-rs",
        }
        return f"{names.get(self.engine, 'an unknown client')} {'.'.join(map(str, self.version))}".rstrip()


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
    client: Client = Client("unknown")
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
class MarkedPart:
    """Data files that are clustered alike."""

    columns: tuple[str, ...] | None = None
    """By which columns, as the files say; ``()`` by some that they do not name, ``None`` not at all."""
    files: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """By what the data of a table is clustered, file by file."""

    parts: tuple[MarkedPart, ...] = ()
    older: MarkedPart = MarkedPart()
    """Of the files that are not clustered at all, those that are as old as the table's clustering columns, or older:
    as far as the log in reach tells."""

    def total(self) -> MarkedPart:
        """All files."""
        return self._sum(lambda _part: True)

    def outside(self, columns: tuple[str, ...]) -> MarkedPart:
        """What is not clustered by some columns."""
        return self._sum(lambda part: part.columns not in {(), columns})

    def loose(self) -> MarkedPart:
        """What is not clustered at all."""
        return self._sum(lambda part: part.columns is None)

    def others(self, columns: tuple[str, ...]) -> MarkedPart:
        """What is clustered by other columns."""
        return self._sum(lambda part: part.columns not in {None, (), columns})

    def _sum(self, wanted: Callable[[MarkedPart], bool]) -> MarkedPart:
        parts = [part for part in self.parts if wanted(part)]
        return MarkedPart(files=sum(part.files for part in parts), bytes=sum(part.bytes for part in parts))


@dataclass(frozen=True, slots=True)
class Truncation:
    """What stands in the way of giving up the history that a dropped feature left behind."""

    due: int = 0
    """Milliseconds since the epoch, by the clocks of those who committed, from which on nothing does; 0 where nothing
    is known that does.
    """


@dataclass(frozen=True, slots=True)
class Layout:
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
    marks: Marks | None = None
    """Asked for where clustering columns change, or where data shall follow them; else ``None``."""
    optimize: Optimize = "never"
    """How data shall follow the clustering columns, where that was asked with the marks."""
    truncation: Truncation | None = None
    """Asked for where history shall be given up, of tables that have deletion vectors in their protocol, or
    checkpoints protected; else ``None``.
    """
    history: tuple[Commit, ...] = ()
    """The look-back: the most recent commits, newest first, as far as they were asked for and are still there."""
    layout: Layout | None = None
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
