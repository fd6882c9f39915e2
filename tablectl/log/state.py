"""Finds the newest protocol, metadata and clustering domain of a version, from the cheapest source, and interprets them
as the facts of a live table. Rejects tables that must not be interpreted.

The order of sources is delta-4: the version's own checksum, otherwise the commits, newest first, until an older
checksum or the checkpoint provides the rest. A commit always takes precedence over a checksum.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import ClassVar

from tablectl.delta import keys
from tablectl.delta.names import ColumnPath
from tablectl.delta.protocol import Protocol
from tablectl.delta.schema import Schema, parse_schema
from tablectl.log.checksum import Checksum
from tablectl.log.history import History
from tablectl.log.parse_action import CLUSTERING, DomainMetadata, Metadata, parse_clustering
from tablectl.log.parse_commit import ParsedCommit
from tablectl.model.catalog_answers import CATALOG_FEATURES
from tablectl.model.commit import Commit
from tablectl.model.errors import LiveError
from tablectl.model.safe_text import cut
from tablectl.storage.table_log import AHEAD

_NOT_CLUSTERED = DomainMetadata(CLUSTERING, "", removed=True)
_READER = 3
_KNOWN = frozenset(
    {
        "columnMapping",
        "deletionVectors",
        "geospatial",
        "timestampNtz",
        "typeWidening",
        "typeWidening-preview",
        "v2Checkpoint",
        "vacuumProtocolCheck",
        "variantShredding",
        "variantShredding-preview",
        "variantType",
        "variantType-preview",
    }
)
"""Reader features that do not change where protocol, metadata and domains are stored (delta-1.13)."""
_CATALOG_PROPERTIES = (
    keys.UNITY_TABLE_ID,
    "ucTableId",
    "delta.coordinatedCommits.commitCoordinator",
    "delta.coordinatedCommits.commitCoordinator-preview",
)
_MAPPED = frozenset({"name", "id"})


@dataclass(frozen=True, slots=True)
class State:
    """The table-level actions of a version's log, not yet interpreted."""

    protocol: Protocol
    metadata: Metadata
    clustering: DomainMetadata | None
    """``None``, or a removed one, if the table has no clustering columns."""
    files: int | None = None
    """Files, bytes and deletion vectors, if a checksum of this version has them."""
    bytes: int | None = None
    vectors: int | None = None


@dataclass(slots=True)
class StateFindings:
    """The first of each action in a walk from the newest to the oldest. Later ones are older and ignored."""

    protocol: Protocol | None = None
    metadata: Metadata | None = None
    clustering: DomainMetadata | None = None

    def take(self, source: ParsedCommit | Checksum | State) -> None:
        """Takes the actions that are still missing."""
        self.protocol = self.protocol or source.protocol
        self.metadata = self.metadata or source.metadata
        self.clustering = self.clustering or source.clustering

    @property
    def complete(self) -> bool:
        """Whether older sources cannot matter: clustering columns require the feature in the protocol."""
        if self.protocol is None or self.metadata is None:
            return False
        return self.clustering is not None or not self.protocol.has("clustering")


def find_state(history: History, *, known_first: bool = False, before: State | None = None) -> State:
    """Walks a segment. Raises ``LiveError`` if a file is damaged, or if the log does not define the table.

    ``before`` is the state at the segment's base, if that is known.

    With ``known_first``, commits that were read before are used before a checksum is read. The state then has none.
    """
    segment = history.segment
    if known_first and (state := _known_state(history)):
        return state
    newest = history.checksum(segment.version)
    findings = StateFindings()
    if segment.version in segment.files.commits:
        findings.take(history.commit(segment.version))
    if newest is not None:
        findings.take(newest)
    if not findings.complete:
        if segment.checkpoint is not None and segment.version - segment.base > AHEAD:
            history.log.start(load_checkpoint_reader)
        _walk(history, findings, before)
    if not findings.complete and segment.checkpoint is not None:
        # Only this function needs a Parquet reader, which is slow to import.
        from tablectl.log.checkpoint import read_checkpoint  # noqa: PLC0415

        checkpoint = history.segment.checkpoint
        assert checkpoint is not None
        protocol, metadata, domains = read_checkpoint(history.log, checkpoint)
        clustering = next((domain for domain in domains if domain.name == CLUSTERING), None)
        findings.protocol = findings.protocol or protocol
        findings.metadata = findings.metadata or metadata
        findings.clustering = findings.clustering or clustering or _NOT_CLUSTERED
    if findings.protocol is None or findings.metadata is None:
        lacking = "protocol" if findings.protocol is None else "metaData"
        raise LiveError(
            f"{history.log.location}: no {lacking} action up to version {segment.version} of its log",
            "the log is damaged: every Delta table has one in its first commit",
        )
    counts = (newest.files, newest.bytes, newest.vectors) if newest else (None, None, None)
    return State(findings.protocol, findings.metadata, findings.clustering, *counts)


def _known_state(history: History) -> State | None:
    """The state from commits that were read before; ``None`` if they are not sufficient, or if only a checksum counts
    the deletion vectors.
    """
    findings = StateFindings()
    for version in range(history.segment.version, history.segment.base, -1):
        if not history.known(version):
            return None
        findings.take(history.commit(version))
        if findings.complete:
            break
    if not findings.complete or findings.protocol is None or findings.metadata is None:
        return None
    vectors = findings.protocol.has("deletionVectors")
    return None if vectors else State(findings.protocol, findings.metadata, findings.clustering)


def _walk(history: History, findings: StateFindings, before: State | None) -> None:
    for step in history.steps():
        findings.take(step)
        if not findings.complete and (checksum := history.checksum(step.version)):
            findings.take(checksum)
        if findings.complete:
            return
    base = history.segment.base
    if before is not None:
        findings.take(before)
        findings.clustering = findings.clustering or _NOT_CLUSTERED
    elif base >= 0 and base in history.segment.files.commits and (checksum := history.checksum(base)):
        findings.take(checksum)


def load_checkpoint_reader() -> None:
    """Loads the Parquet reader while a store answers: it takes as long as ten answers. Of so many commits without a
    checksum, usually none has the metadata, and the walk ends at the checkpoint.
    """
    import tablectl.log.checkpoint  # noqa: F401, PLC0415


def catalog_managed(location: str, why: str) -> LiveError:
    """The error for a table whose newest commits are known only to its catalog (delta-1.11)."""
    return LiveError(
        f"{location}: the table is managed by its catalog ({why}): its log alone does not say what it is now",
        "name it as catalog.schema.table, without `location`, with its catalog under `catalogs` in tablectl.yaml "
        "(docs/unity-catalog.md)",
    )


def check_protocol(protocol: Protocol, location: str, *, through_catalog: bool = False) -> None:
    """Rejects a table of which this reader could misread even the settings. Raises ``LiveError``.

    ``through_catalog`` says that the catalog's answer was read, too.
    """
    managed = sorted((protocol.reader_features | protocol.writer_features) & CATALOG_FEATURES)
    if managed and not through_catalog:
        raise catalog_managed(location, f"feature {managed[0]}")
    if protocol.reader > _READER:
        raise LiveError(
            f"{location}: the table asks for reader version {protocol.reader}, known is up to {_READER}",
            "nothing of it is interpreted; a newer tablectl may know it",
        )


def unknown_features(protocol: Protocol) -> tuple[str, ...]:
    """The reader features of a protocol that this reader does not know."""
    return tuple(sorted(protocol.reader_features - _KNOWN - CATALOG_FEATURES))


def check_properties(metadata: Metadata, location: str) -> None:
    """Rejects a table whose properties show that a catalog or coordinator has its newest commits. Raises
    ``LiveError``.
    """
    for key in _CATALOG_PROPERTIES:
        if metadata.properties.get(key):
            raise catalog_managed(location, f"property {key}")


def read_schema(metadata: Metadata, location: str) -> Schema:
    """The schema. It has physical names only if columns are mapped. Raises ``LiveError`` if it cannot be read."""
    if metadata.schema is None:
        raise LiveError(
            f"{location}: the table's metaData has no schemaString", "set a schema, or create the table again"
        )
    try:
        return parse_schema(metadata.schema)
    except (ValueError, RecursionError) as error:
        raise LiveError(f"{location}: the schema in the table's metaData cannot be read: {error}") from error


def read_clustering(
    protocol: Protocol, metadata: Metadata, domain: DomainMetadata | None, schema: Schema, location: str
) -> tuple[ColumnPath, ...] | None:
    """The clustering columns by logical name, as Delta derives them. The feature in the protocol enables clustering,
    the domain lists the columns, and without a domain there are no columns (delta-4).
    """
    if not protocol.has("clustering"):
        return None
    if domain is None or domain.removed:
        return ()
    try:
        physical = parse_clustering(domain.configuration)
    except ValueError as error:
        raise LiveError(f"{location}: the domain delta.clustering cannot be read: {error}") from error
    return logical_columns(physical, metadata, schema, location)


def logical_columns(
    physical: tuple[ColumnPath, ...], metadata: Metadata, schema: Schema, location: str
) -> tuple[ColumnPath, ...]:
    """The logical names of clustering columns. Raises ``LiveError`` for a column that the schema does not have."""
    mapped = metadata.properties.get(keys.COLUMN_MAPPING, "none").lower() in _MAPPED
    return tuple(_logical(schema, path, location, mapped=mapped) for path in physical)


def _logical(schema: Schema, path: tuple[str, ...], location: str, *, mapped: bool) -> ColumnPath:
    if mapped:
        logical = schema.logical(path)
    else:
        found = schema.find(path)
        logical = found[0] if found else None
    if logical is None:
        raise LiveError(f"{location}: the table is clustered by {'.'.join(path)}, a column its schema does not have")
    return logical


def frozen_properties(metadata: Metadata) -> MappingProxyType[str, str]:
    """The table's properties from ``metaData``. A long value is replaced by its beginning and digest."""
    return MappingProxyType({key: cut(value) for key, value in metadata.properties.items()})


_NO_COMMITS: Mapping[int, Commit] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class KnownState:
    """The state of a table at a version."""

    version: int
    identity: str
    """``TableLog.identity`` of the version's commit when the state was read."""
    state: State


class TableCache:
    """Keeps what was read of tables; this one keeps nothing. Locations are in canonical form. Threads may share it."""

    keeps_states: ClassVar[bool] = False
    """Whether ``keep`` does anything: what it needs costs a call of the system."""

    def load(self, location: str, table_id: str) -> Mapping[int, Commit]:
        """The kept commits of a table by version; empty if there are none."""
        return _NO_COMMITS

    def store(self, location: str, table_id: str, commits: Mapping[int, Commit]) -> None:
        """Keeps the commits of a table, instead of those kept before. Never raises."""

    def state(self, location: str) -> KnownState | None:
        """The kept state of the table at a location; ``None`` if there is none."""
        return None

    def keep(self, location: str, known: KnownState) -> None:
        """Keeps the state of the table at a location, instead of the one kept before. Never raises."""

    def flush(self) -> None:
        """Writes what is to be kept, and closes what is open: a connection must not get into a forked process. Never
        raises.
        """


@dataclass(slots=True)
class MemoryCache(TableCache):
    """Keeps the commits of the tables of one run, and no states: under a lease, the log alone is believed."""

    tables: dict[tuple[str, str], Mapping[int, Commit]] = field(default_factory=dict)

    def load(self, location: str, table_id: str) -> Mapping[int, Commit]:
        return self.tables.get((location, table_id), _NO_COMMITS)

    def store(self, location: str, table_id: str, commits: Mapping[int, Commit]) -> None:
        self.tables[location, table_id] = commits
