"""A live table: the facts read from its log, as plain values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from types import MappingProxyType

from tablectl.delta.names import ColumnPath, TableName
from tablectl.delta.protocol import Client, Protocol
from tablectl.delta.schema import Schema
from tablectl.model.catalog_answers import CatalogEntry
from tablectl.model.stamp import Stamp, read_stamp
from tablectl.model.table_options import Optimize
from tablectl.model.upkeep import UpkeepFacts, UpkeepPolicy
from tablectl.support.frozen import frozen
from tablectl.support.json_text import UNWRITTEN, in_json

NOTHING_SET: Mapping[str, str] = MappingProxyType({})
UNKNOWN_CLIENT = Client("unknown")
_MANY_CLIENTS = 20


@frozen
class AppTransaction:
    """A ``txn`` action: the last batch that an application, usually a stream, wrote to the table with this commit."""

    app_id: str
    """A stream's query id, or the ``txnAppId`` that a writer set."""
    version: int
    last_updated: int = 0
    """Milliseconds since the epoch, by the writer's clock; 0 if unknown."""


STATEMENT_ID = "queryHistoryStatementId"
"""In ``Commit.job``: the statement of a SQL warehouse that made the commit, by its id in the history of queries."""


@frozen
class Commit:
    """One entry of a table's history: what the commit did, and the contents of its ``commitInfo``.

    ``commitInfo`` can contain anything: malformed values count as absent, and long texts are cut.
    """

    version: int
    timestamp: int
    """Milliseconds since the epoch: the in-commit timestamp, otherwise the writer's clock; 0 if unknown."""
    operation: str
    user: str = ""
    client: Client = UNKNOWN_CLIENT
    user_metadata: str = field(default="", metadata=UNWRITTEN)
    changes_metadata: bool = field(default=False, metadata=UNWRITTEN)
    """Whether the commit has a ``metaData`` or ``protocol`` action, or writes a domain other than row tracking's."""
    changes_data: bool = field(default=False, metadata=UNWRITTEN)
    """Whether the commit adds or removes files."""
    overwrites: bool = field(default=False, metadata=UNWRITTEN)
    """Whether the commit replaced the whole table."""
    schema_writer: bool = field(default=False, metadata=UNWRITTEN)
    """Whether the commit changes both data and metadata, as schema evolution and identity columns do."""
    engine: str = ""
    """The unchanged ``engineInfo``, from which ``client`` is derived."""
    parameters: Mapping[str, str] = field(default_factory=lambda: NOTHING_SET)
    """The operation's parameters that are not null, as ``DESCRIBE HISTORY`` shows them. A cut value ends with …"""
    metrics: Mapping[str, str] = field(default_factory=lambda: NOTHING_SET, metadata=UNWRITTEN)
    """The operation's metrics, in the same form."""
    tags: Mapping[str, str] = field(default_factory=lambda: NOTHING_SET, metadata=UNWRITTEN)
    """The writer's tags for the commit, such as ``delta.rowTracking.preserved``."""
    read_version: int | None = field(default=None, metadata=UNWRITTEN)
    """The version that the transaction started from."""
    isolation: str = field(default="", metadata=UNWRITTEN)
    """The isolation level of the transaction: ``Serializable``, ``WriteSerializable``, ``SnapshotIsolation``."""
    blind_append: bool | None = field(default=None, metadata=UNWRITTEN)
    """Whether the commit only added files and read none; ``None`` if unknown."""
    transactions: tuple[AppTransaction, ...] = field(default=(), metadata=UNWRITTEN)
    first_file: int = field(default=0, metadata=UNWRITTEN)
    """When the first of its new files was written, in milliseconds since the epoch; 0 if unknown."""
    job: Mapping[str, str] = field(default_factory=lambda: NOTHING_SET)
    """The job, notebook and cluster of the commit, as Databricks records them: ``jobId``, ``jobName``, ``runId``, …,
    ``notebookId``, ``clusterId``; and ``STATEMENT_ID``.
    """

    @property
    @in_json
    def stamp(self) -> Stamp | None:
        """The run of tablectl that made it; ``None`` for other commits."""
        return read_stamp(self.user_metadata)

    def metric(self, *names: str) -> int:
        """The first of these metrics that the commit has; 0 if it has none, or no number of 64 bits."""
        text = next((self.metrics[name] for name in names if name in self.metrics), "")
        return int(text) if text.isascii() and text.isdigit() and len(text) < len(str(2**63)) else 0

    @property
    def source(self) -> str:
        """What committed, with one name for all runs of a job: ``job nightly``, ``notebook 42``, the user, ``cluster
        0123-abc``; empty if the commit names none. A job has a new cluster for each run.
        """
        job = self.job.get("jobName") or self.job.get("jobId")
        notebook, cluster = self.job.get("notebookId"), self.job.get("clusterId")
        if job or notebook:
            return f"job {job}" if job else f"notebook {notebook}"
        return self.user or (f"cluster {cluster}" if cluster else "")


@frozen
class WriteHistory:
    """The commits of the last 30 days, as far as they show who writes a table, and how."""

    commits: tuple[Commit, ...]
    """Newest first, without the contents that do not describe the writer."""
    cut: bool = False
    """Whether older commits of these days are unknown: there are too many, one is damaged, or the log was cleaned."""


@frozen(kw_only=True)
class FileGroup:
    """Data files with the same clustering columns."""

    columns: tuple[str, ...] | None = None
    """The columns by the files' tags; ``()`` if clustered by columns that the tags do not name, ``None`` if not
    clustered.
    """
    files: int = 0
    bytes: int = 0


@frozen(kw_only=True)
class ClusteringState:
    """The clustering of a table's data, by file."""

    parts: tuple[FileGroup, ...] = ()
    older: FileGroup = FileGroup()
    """Of the unclustered files, those that are as old as the table's clustering columns, or older. Derived from the
    part of the log that is available.
    """

    def total(self) -> FileGroup:
        """All files."""
        return self._sum(lambda _part: True)

    def outside(self, columns: tuple[str, ...]) -> FileGroup:
        """Files that are not clustered by ``columns``."""
        return self._sum(lambda part: part.columns not in {(), columns})

    def unclustered(self) -> FileGroup:
        """Files that are not clustered."""
        return self._sum(lambda part: part.columns is None)

    def others(self, columns: tuple[str, ...]) -> FileGroup:
        """Files that are clustered by other columns than ``columns``."""
        return self._sum(lambda part: part.columns not in {None, (), columns})

    def _sum(self, wanted: Callable[[FileGroup], bool]) -> FileGroup:
        parts = [part for part in self.parts if wanted(part)]
        return FileGroup(files=sum(part.files for part in parts), bytes=sum(part.bytes for part in parts))


@frozen
class HistoryTruncation:
    """The age condition for deleting the history that a dropped feature left behind."""

    due: int = 0
    """Milliseconds since the epoch, by the committers' clocks: the time from which the history may be deleted; 0 if
    nothing is known to delay it.
    """


@frozen
class PartitionLayout:
    """How the files of a partitioned table are distributed over its partitions, from the log."""

    partitions: int
    median: int
    """The median size of a partition, in bytes."""
    values: tuple[tuple[str, int], ...]
    """Each partition column and its number of values."""


LOOK_BACK = 20
"""The number of commits to search for writers, if writers matter."""


@frozen
class Depth:
    """How much of a table to read in addition to protocol, metadata and domains, whose cost does not depend on its
    size.
    """

    look_back: int = 0
    """The number of newest commits to read for the history."""
    counts: bool = False
    """Whether to compute files, bytes and vectors from the whole log if no checksum has them. The cost grows with the
    number of files.
    """
    layout: bool = False
    """Whether to measure the layout of a partitioned table, at the same cost, up to ``log.reader.MOST_FILES`` files."""
    truncation: frozenset[str] = frozenset()
    """The features for which to determine when history can be deleted. The cost grows with the commits of a day."""
    marks: Optimize | None = None
    """How data must follow the clustering columns; ``None`` to not read its clustering. The cost grows with
    the files.
    """
    writers: Callable[[LiveTable], bool] | None = None
    """Decides from the table with its history whether to read the commits of the last 30 days, up to 2,000 files."""
    losses: Callable[[LiveTable], bool] | None = None
    """The same, if ``writers`` does not read them: only to tell what statements are expected to cost the writers."""
    upkeep: UpkeepPolicy | None = None
    """The upkeep that the facts are read for; ``None`` to read none. The cost grows with the commits since the last
    one, and with the number of files of a partitioned table.
    """
    entry: bool = False
    """Whether to ask the table's catalog for its entry. The depth is then asked for again with the answer."""
    partly: bool = False
    """Whether a table with an unknown reader feature is read as far as its log says it in clear: protocol, properties,
    schema and history. Otherwise it is an error.
    """

    @property
    def shallow(self) -> bool:
        """Whether it asks for nothing of the log but the state."""
        return replace(self, entry=False, partly=False) == Depth()


WITH_HISTORY = Depth(LOOK_BACK)
"""A table with its history, as far as writers matter."""


@frozen
class CatalogDifference:
    """One fact that a catalog and the log of its table tell differently."""

    what: str
    """``property owner.team``, ``schema``, ``protocol``, ``clustering``, ``partition columns``."""
    catalog: str | None
    log: str | None


@frozen
class CatalogFacts:
    """What a catalog says about a table whose commits go through it."""

    metadata_version: int
    """The version of the last commit that changed metadata: a plan is stale only if it moves."""
    etag: str = ""
    differences: tuple[CatalogDifference, ...] = ()
    """Where the log has another value. Read only if the log was read as well."""
    unread: str = ""
    """Why the log could not be read, if it should have been; empty otherwise."""


@frozen
class LiveTable:
    """One table at one version. ``None`` in a count means unknown, not zero."""

    name: TableName
    location: str
    version: int
    table_id: str
    protocol: Protocol
    schema: Schema
    partition_columns: tuple[str, ...] = ()
    clustering: tuple[ColumnPath, ...] | None = None
    """Logical paths; ``()`` if clustering is enabled without columns, ``None`` if it never was."""
    properties: Mapping[str, str] = field(default_factory=lambda: NOTHING_SET)
    files: int | None = None
    bytes: int | None = None
    vectors: int | None = None
    """Deletion vectors in the current version."""
    marks: ClusteringState | None = None
    """Read only if the clustering columns change, or if the data must follow them; otherwise ``None``."""
    optimize: Optimize = "never"
    """How the data must follow the clustering columns; set when ``marks`` is read."""
    truncation: HistoryTruncation | None = None
    """Read only if history must be deleted, for tables whose protocol has the features that need it; otherwise
    ``None``.
    """
    history: tuple[Commit, ...] = ()
    """The look-back: the most recent commits, newest first, as far as requested and available."""
    writes: WriteHistory | None = None
    """Read only if a phase depends on who else may write the table; otherwise ``None``."""
    past: WriteHistory | None = None
    """The same commits, read only for the expected loss of statements whose phase does not depend on them."""
    layout: PartitionLayout | None = None
    """Read on request, for partitioned tables only."""
    unknown: tuple[str, ...] = ()
    """The reader features that tablectl does not know. They may change the meaning of everything but the protocol, the
    properties and the schema, so the rest is unknown then.
    """
    catalog: CatalogFacts | None = None
    """Set only if the table's commits go through its catalog."""
    entry: CatalogEntry | None = None
    """What the catalog says about the table itself. Read on request; ``None`` if it was not read."""
    upkeep: UpkeepFacts | None = None
    """Read on request; ``None`` if it was not read."""

    @property
    def known_commits(self) -> tuple[Commit, ...]:
        """The commits that show who writes the table: those of the last 30 days if they were read, otherwise the
        look-back.
        """
        return self.writes.commits if self.writes else self.history

    @property
    def clients(self) -> tuple[Client, ...]:
        """The clients of these commits, sorted, without duplicates. Of many, the oldest and the newest of each kind."""
        found = {commit.client for commit in self.known_commits}
        clients = sorted(found, key=lambda client: (client.engine, client.version))
        if len(clients) > _MANY_CLIENTS:
            ends = ([each for each in clients if each.engine == kind] for kind in sorted({c.engine for c in clients}))
            clients = [client for kind in ends for client in dict.fromkeys((kind[0], kind[-1]))]
        return tuple(clients)

    @property
    def schema_writers(self) -> bool:
        """Whether a recent commit changed both data and metadata (schema evolution, identity columns)."""
        return any(commit.schema_writer for commit in self.known_commits)

    @property
    def overwrites(self) -> bool:
        """Whether a recent commit overwrote the whole table."""
        return any(commit.overwrites for commit in self.known_commits)

    @property
    def app_ids(self) -> tuple[str, ...]:
        """The applications, usually streams, with a ``txn`` in the recent commits: sorted, without duplicates."""
        return tuple(sorted({each.app_id for commit in self.history for each in commit.transactions}))

    def property(self, key: str) -> str | None:
        """The value of a property; ``None`` if it is not set. ``delta.*`` keys ignore letter case, user keys do not."""
        if key in self.properties:
            return self.properties[key]
        if not key.lower().startswith("delta."):
            return None
        return next((value for name, value in self.properties.items() if name.lower() == key.lower()), None)
