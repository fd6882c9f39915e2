"""A live table: the facts read from its log, as plain values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from tablectl.delta.keys import NOTHING_SET
from tablectl.delta.names import ColumnPath, TableName
from tablectl.delta.properties import find_text
from tablectl.delta.protocol import Client, Protocol
from tablectl.delta.schema import Schema
from tablectl.model.catalog_answers import CatalogEntry
from tablectl.model.commit import Commit, WriteHistory
from tablectl.model.file_layout import ClusteringState, PartitionLayout
from tablectl.model.table_options import Optimize
from tablectl.model.upkeep import UpkeepFacts, UpkeepPolicy

_MANY_CLIENTS = 20


@dataclass(frozen=True, slots=True)
class HistoryTruncation:
    """The age condition for deleting the history that a dropped feature left behind."""

    due: int = 0
    """Milliseconds since the epoch, by the committers' clocks: the time from which the history may be deleted; 0 if
    nothing is known to delay it.
    """


LOOK_BACK = 20
"""The number of commits to search for writers, if writers matter."""


@dataclass(frozen=True, slots=True)
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
    row_counts: bool = False
    """Whether to find the files whose statistics have no number of rows, at the same cost, in as many files at most."""
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


@dataclass(frozen=True, slots=True)
class CatalogDifference:
    """One fact that a catalog and the log of its table tell differently."""

    what: str
    """``property owner.team``, ``schema``, ``protocol``, ``clustering``, ``partition columns``."""
    catalog: str | None
    log: str | None


@dataclass(frozen=True, slots=True)
class CatalogFacts:
    """What a catalog says about a table whose commits go through it."""

    metadata_version: int
    """The version of the last commit that changed metadata: a plan is stale only if it moves."""
    etag: str = ""
    differences: tuple[CatalogDifference, ...] = ()
    """Where the log has another value. Read only if the log was read as well."""
    unread: str = ""
    """Why the log could not be read, if it should have been; empty otherwise."""


@dataclass(frozen=True, slots=True)
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
    uncounted: int | None = None
    """How many files have no number of rows in their statistics; ``None`` if that is unknown. Read on request."""
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
        """The value of a property as engines find it, by its exact key; ``None`` if they find none."""
        return find_text(self.properties, key)
