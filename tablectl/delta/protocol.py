"""Protocol versions, the clients that write commits (Delta protocol, "Requirements for Writers"), and the table
features: what brings each of them, what it needs, and how it leaves a table.

Source of the features: ``TableFeature.scala`` and ``PreDowngradeTableFeatureCommand.scala`` of Delta 4.4.0 (delta-1.13,
delta-1.15).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from tablectl.delta import keys
from tablectl.delta.client_families import ClientFamily, family_of

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
"""Features that readers must support too (delta-1.13)."""


PROTECTION = "checkpointProtection"
"""Keeps the history from before a feature was dropped readable."""
_COLUMN_MAPPING_READER = 2


_TABLE_FEATURES_READER = 3


_TABLE_FEATURES_WRITER = 7


@dataclass(frozen=True, slots=True)
class Protocol:
    """A table's protocol versions and features. Feature lists are empty below reader 3 and writer 7."""

    reader: int
    writer: int
    reader_features: frozenset[str] = frozenset()
    writer_features: frozenset[str] = frozenset()

    def has(self, feature: str) -> bool:
        """Whether the protocol supports a feature, including those that numbered protocols imply (delta-1.13)."""
        if self.writer >= _TABLE_FEATURES_WRITER:
            return feature in self.writer_features
        if feature == "columnMapping" and self.reader < _COLUMN_MAPPING_READER:
            return False
        return feature in _LEGACY_WRITER and self.writer >= _LEGACY_WRITER[feature]

    @property
    def features(self) -> frozenset[str]:
        """Every supported feature, including those that numbered protocols imply."""
        if self.writer >= _TABLE_FEATURES_WRITER:
            return self.writer_features | self.reader_features
        return frozenset(feature for feature in _LEGACY_WRITER if self.has(feature))

    @property
    def read_features(self) -> frozenset[str]:
        """Every feature that readers must support, including the one that reader version 2 implies."""
        if self.reader >= _TABLE_FEATURES_READER:
            return self.reader_features
        return frozenset({"columnMapping"} if self.reader == _COLUMN_MAPPING_READER else ())

    def new_to_readers(self, before: Protocol) -> bool:
        """Whether a client that reads tables of the protocol ``before`` may not be able to read this one."""
        return self.reader > before.reader or not self.read_features <= before.read_features

    @property
    def lists_features(self) -> bool:
        """Whether the protocol lists its features instead of implying them by version numbers."""
        return self.writer >= _TABLE_FEATURES_WRITER

    def raised(self, features: frozenset[str]) -> Protocol:
        """The protocol after features are added, as Delta 4.4 normalises it (measured).

        A numbered protocol keeps its numbers only if one number means exactly the resulting features. Change data feed
        on (1,2) does not become (1,4), because that would add check constraints. It becomes writer 7 with an explicit
        list that includes the implied legacy features.
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
        """The protocol after features are removed, as Delta 4.4 normalises it (measured).

        It returns to version numbers if these mean exactly the remaining features.
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


def needs_protection(feature: str, *, truncate_history: bool, protocol: Protocol) -> bool:
    """Whether ``DROP FEATURE`` adds ``checkpointProtection``: for a reader feature whose history stays (delta-1.15)."""
    return feature in READER_FEATURES and not truncate_history and not protocol.has(PROTECTION)


@dataclass(frozen=True, slots=True)
class Client:
    """The writer of a commit, from ``commitInfo.engineInfo``: ``Apache-Spark/4.2.0 Delta-Lake/4.4.0``."""

    engine: str
    """The name of its family: ``delta-spark``, ``kernel``, ``unknown``."""
    version: tuple[int, ...] = ()

    def text(self) -> str:
        """For people: ``Delta Spark 4.4.0``."""
        return f"{self.family.title} {'.'.join(map(str, self.version))}".rstrip()

    @property
    def family(self) -> ClientFamily:
        """What holds for every version of the client."""
        return family_of(self.engine)


Leaves = Literal["never", "truncating", "with history", "freely"]
"""How a feature can be removed from a protocol: ``never``; ``truncating``, only by DROP FEATURE … TRUNCATE HISTORY;
``with history``, by DROP FEATURE, which truncates history or leaves ``checkpointProtection`` behind; ``freely``, by
DROP FEATURE alone.
"""
SUPPORT = "delta.feature."
"""How a property begins that adds a feature to a protocol: ``'delta.feature.v2Checkpoint' = 'supported'``."""


@dataclass(frozen=True, slots=True)
class Switch:
    """The property whose value uses a feature."""

    key: str
    on: str
    dropped: str | None = None
    """Its value after DROP FEATURE, which changes it; ``None`` if it is removed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFeature:
    """One feature."""

    name: str
    leaves: Leaves = "never"
    attribute: str = ""
    """The attribute that adds and drops it; empty if ``features`` does."""
    needs: tuple[str, ...] = ()
    """The features that it requires. Delta adds them with it, and drops none of them while it is there."""
    switch: Switch | None = None

    @property
    def support(self) -> str:
        """The key that adds it."""
        return f"{SUPPORT}{self.name}"


_WIDENING = Switch(keys.TYPE_WIDENING, "true")
_MAPPING = ("columnMapping",)
FEATURES: tuple[TableFeature, ...] = (
    TableFeature(name="appendOnly"),
    TableFeature(name="invariants"),
    TableFeature(
        name="checkConstraints",
        leaves="freely",
    ),
    TableFeature(name="changeDataFeed"),
    TableFeature(name="generatedColumns"),
    TableFeature(name="identityColumns"),
    TableFeature(name="columnMapping", leaves="with history", attribute="column_mapping"),
    TableFeature(
        name="deletionVectors",
        leaves="with history",
        attribute="deletion_vectors",
    ),
    TableFeature(name="timestampNtz"),
    TableFeature(name="v2Checkpoint", leaves="with history", switch=Switch(keys.CHECKPOINT_POLICY, "v2", "classic")),
    TableFeature(name="typeWidening", leaves="with history", switch=_WIDENING),
    TableFeature(name="typeWidening-preview", leaves="with history", switch=_WIDENING),
    TableFeature(name="variantType"),
    TableFeature(name="variantType-preview"),
    TableFeature(name="variantShredding", needs=("variantType",)),
    TableFeature(name="variantShredding-preview"),
    TableFeature(name="vacuumProtocolCheck", leaves="with history"),
    TableFeature(
        name="geospatial",
        leaves="with history",
    ),
    TableFeature(name="catalogManaged", needs=("inCommitTimestamp", "vacuumProtocolCheck")),
    TableFeature(name="domainMetadata", leaves="freely"),
    TableFeature(
        name="rowTracking",
        leaves="freely",
        attribute="row_tracking",
        needs=("domainMetadata",),
        switch=Switch(keys.ROW_TRACKING, "true"),
    ),
    TableFeature(name="clustering", attribute="clustering", needs=("domainMetadata",)),
    TableFeature(name="icebergCompatV1", attribute="uniform", needs=_MAPPING),
    TableFeature(name="icebergCompatV2", attribute="uniform", needs=_MAPPING),
    TableFeature(name="icebergCompatV3", attribute="uniform", needs=(*_MAPPING, "rowTracking")),
    TableFeature(name="allowColumnDefaults"),
    TableFeature(name="inCommitTimestamp", leaves="freely", switch=Switch(keys.IN_COMMIT_TIMESTAMPS, "true", "false")),
    TableFeature(
        name="materializePartitionColumns",
        leaves="freely",
        switch=Switch(keys.MATERIALIZE_PARTITIONS, "true"),
    ),
    TableFeature(
        name="coordinatedCommits-preview", leaves="freely", needs=("inCommitTimestamp", "vacuumProtocolCheck")
    ),
    TableFeature(name=PROTECTION, leaves="truncating"),
)
"""Every feature that tablectl knows. Redirected tables (``redirect…-preview``) are not read, and so are not among
them."""

SWITCHES = frozenset(each.switch.key.lower() for each in FEATURES if each.switch)
"""The properties that use features, folded."""


def find_feature(name: str) -> TableFeature | None:
    """The feature with this name, in any letter case; ``None`` if it is not known."""
    return next((each for each in FEATURES if each.name.lower() == name.lower()), None)


def leaves(name: str) -> Leaves:
    """How a feature leaves a protocol. A feature that is not known counts as one that cannot."""
    found = find_feature(name)
    return found.leaves if found else "never"


def supported_by(key: str, value: str) -> str:
    """The feature that ``delta.feature.<name>`` adds; empty for another key or value."""
    if not key.lower().startswith(SUPPORT) or value.lower() not in {"supported", "enabled"}:
        return ""
    name = key[len(SUPPORT) :]
    found = find_feature(name)
    return found.name if found else name


def with_needed(names: Iterable[str]) -> frozenset[str]:
    """Features with those that they need."""
    found = set(names)
    for each in FEATURES:
        if each.name in found:
            found |= set(each.needs)
    return frozenset(found) if found == set(names) else with_needed(found)


def dependents(name: str, protocol: Protocol) -> tuple[str, ...]:
    """The features of a protocol that need a feature. Delta refuses to drop it while they are there."""
    return tuple(each.name for each in FEATURES if name in each.needs and protocol.has(each.name))
