"""Protocol versions and features, and the clients that write commits. Delta protocol, "Requirements for Writers"."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tablectl.delta.client_families import ClientFamily, family_of
from tablectl.support.frozen import frozen

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


@frozen
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


@frozen
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
