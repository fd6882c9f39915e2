"""The facts about a table and its client that decide which of two operations fails."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from tablectl.conflicts.transactions import Level, Platform
from tablectl.delta import keys
from tablectl.delta.keys import NOTHING_SET
from tablectl.delta.properties import find_text, other_spelling
from tablectl.delta.protocol import Client, Protocol, supported_by
from tablectl.model.operations import ClusterBy, Operation, Repartition, ReplacePartitions, SetProperties
from tablectl.model.plan import Basis, ProtocolFact
from tablectl.model.table import LiveTable

VECTORS = keys.DELETION_VECTORS
LEVEL = keys.ISOLATION_LEVEL
_PLAIN = Protocol(1, 2)
_AUTO_OPTIMIZE = "delta.autoOptimize"
"""The older property that also turns on automatic compaction."""


@dataclass(frozen=True, slots=True)
class Assumption:
    """What to assume about the sessions that write a table."""

    clients: tuple[tuple[Client, bool | None], ...] = ()
    """The clients, each with whether it has Photon, ``None`` if unknown; empty for those of the history and policy."""
    auto_compact: bool | None = None
    """``spark.databricks.delta.autoCompact.enabled``; ``None`` if the sessions do not set it."""


NO_ASSUMPTION = Assumption()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConflictContext:
    """One table as seen by one of its clients."""

    client: Client
    """The client of the current transaction: its rules decide."""
    protocol: Protocol = _PLAIN
    properties: Mapping[str, str] = field(default_factory=lambda: NOTHING_SET)
    partitioned: bool = False
    clustered: bool = False
    identity: bool = False
    blind: bool = True
    """Whether the table's writers record blind appends as such."""
    blind_sql: bool = True
    """Whether those do that run SQL."""
    photon: bool | None = None
    preview: bool = False
    """Whether sessions opted in to the preview of runtimes 14.0 and 14.1 (D49)."""
    auto_compact: bool | None = None
    """The sessions' ``spark.databricks.delta.autoCompact.enabled``, which overrides the table's property; ``None`` if
    they do not set it.
    """

    @classmethod
    def of(
        cls, live: LiveTable, client: Client, *, photon: bool | None = None, auto_compact: bool | None = None
    ) -> ConflictContext:
        """The context of a live table. The properties of its writers follow from its history."""
        compactions = (each.parameters.get("auto", "") for each in live.history if each.operation == "OPTIMIZE")
        if auto_compact is None and any(each.lower() == "true" for each in compactions):
            auto_compact = True
        return cls(
            client=client,
            protocol=live.protocol,
            properties=live.properties,
            partitioned=bool(live.partition_columns),
            clustered=live.clustering is not None,
            identity=live.schema.has_identity(),
            blind=all(each.family.records_blind_appends for each in live.clients),
            blind_sql=not any(each.family.in_sql_engines for each in live.clients),
            photon=photon,
            auto_compact=auto_compact,
        )

    @property
    def compacts(self) -> bool:
        """Whether a write may be followed by an automatic OPTIMIZE (``AutoCompact.scala``)."""
        if self.auto_compact is not None:
            return self.auto_compact
        return self.value(keys.AUTO_COMPACT) in {"true", "auto", "legacy"} or self.value(_AUTO_OPTIMIZE) == "true"

    def value(self, key: str) -> str:
        """A ``delta.*`` property in lower case, found as engines find it; empty if it is not set."""
        return (find_text(self.properties, key) or "").lower()

    @property
    def stored_level(self) -> Level | None:
        """The isolation level set on the table; ``None`` if it sets no known level."""
        return next((level for level in Level if level.lower() == self.value(LEVEL)), None)

    @property
    def level(self) -> Level:
        """The level that the client uses. An unset level means another one to each family (D6, delta-1.2)."""
        return self.stored_level or Level(self.client.family.unset_level)

    @property
    def vectors(self) -> bool | None:
        """Whether deletion vectors are enabled. On a clustered table, unset differs from disabled (D41)."""
        stored = self.value(VECTORS)
        if stored:
            return stored == "true"
        return None if self.clustered else False

    @property
    def platform(self) -> Platform:
        """The facts for Databricks' rules, assuming typical statements: plain conditions (D44), and a MERGE that
        filters its target (D45).
        """
        return Platform(
            vectors=self.vectors,
            clustered=self.clustered,
            photon=self.photon,
            preview=self.preview,
            plain=True,
            filtered=True,
            identity=self.identity,
        )

    @property
    def basis(self) -> Basis:
        """The same facts for deriving commits from statements."""
        return Basis(
            protocol=ProtocolFact.of(self.protocol),
            partitioned=self.partitioned,
            clustered=self.clustered,
            identity=self.identity,
            schema_writers=False,
            overwrites=False,
            clients=(),
            vectors=None,
            files=None,
            bytes=None,
            stored=tuple(sorted(self.properties.items())),
        )

    def with_property(self, key: str, value: str) -> ConflictContext:
        """The same table with one property changed, including the feature that the property adds."""
        return self.after([SetProperties(((key, value),))])

    def after(self, operations: Iterable[Operation]) -> ConflictContext:
        """The same table after these operations."""
        context = self
        for operation in operations:
            context = _after(context, operation)
        return context


def _after(before: ConflictContext, operation: Operation) -> ConflictContext:
    """The same table after one operation."""
    effect = operation.effect(before.basis)
    partitioned, clustered = _layout_after(before, operation)
    return replace(
        before,
        protocol=before.protocol.raised(frozenset(effect.features)).lowered(frozenset(effect.drops)),
        # The sets of an effect lack removed keys, and the property of a dropped feature.
        properties=_properties_after(before.properties, {**dict(effect.sets), **operation.properties}),
        partitioned=partitioned,
        clustered=clustered,
    )


def _layout_after(before: ConflictContext, operation: Operation) -> tuple[bool, bool]:
    """Whether the table is partitioned, and whether it is clustered."""
    match operation:
        case Repartition():
            partitioned = bool(operation.columns)
            return partitioned, before.clustered and not partitioned
        case ReplacePartitions():
            return False, True
        case ClusterBy():
            # Delta does not cluster partitioned tables: an operation that clusters has removed the partitions.
            clusters = bool(operation.columns or operation.automatic)
            return before.partitioned and not clusters, True
        case _:
            return before.partitioned, before.clustered


def _properties_after(before: Mapping[str, str], changed: Mapping[str, str | None]) -> Mapping[str, str]:
    """The properties after a change. ``None`` removes a key. A key that only adds a feature is not stored."""
    after = dict(before)
    for key, value in changed.items():
        read = other_spelling(key) or key
        after.pop(read, None)
        if value is not None and not supported_by(key, value):
            after[read] = value
    return MappingProxyType(after)
