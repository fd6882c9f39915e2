"""The table features of the Delta protocol: what brings each of them, what it needs, and how it leaves a table.

Source: ``TableFeature.scala`` and ``PreDowngradeTableFeatureCommand.scala`` of Delta 4.4.0 (delta-1.13, delta-1.15).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from tablectl.delta import keys
from tablectl.delta.protocol import PROTECTION, Protocol
from tablectl.support.frozen import frozen

Leaves = Literal["never", "truncating", "with history", "freely"]
"""How a feature can be removed from a protocol: ``never``; ``truncating``, only by DROP FEATURE … TRUNCATE HISTORY;
``with history``, by DROP FEATURE, which truncates history or leaves ``checkpointProtection`` behind; ``freely``, by
DROP FEATURE alone.
"""
SUPPORT = "delta.feature."
"""How a property begins that adds a feature to a protocol: ``'delta.feature.v2Checkpoint' = 'supported'``."""


@frozen
class Switch:
    """The property whose value uses a feature."""

    key: str
    on: str
    dropped: str | None = None
    """Its value after DROP FEATURE, which changes it; ``None`` if it is removed."""


@frozen(kw_only=True)
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
