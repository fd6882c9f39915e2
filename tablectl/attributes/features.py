"""Protocol features: which ones DROP FEATURE can remove, and what remains after it (delta-1.13, delta-1.15)."""

from __future__ import annotations

from tablectl.delta.protocol import PROTECTION, READER_FEATURES, Protocol
from tablectl.model.plan import FeatureFact, Leaves

_HISTORY = READER_FEATURES - {
    "timestampNtz",
    "variantType",
    "variantType-preview",
    "variantShredding",
    "variantShredding-preview",
    "catalogManaged",
}
"""Reader features that DROP FEATURE removes, with their history or leaving checkpointProtection behind."""
_FREELY = frozenset(
    {
        "checkConstraints",
        "rowTracking",
        "domainMetadata",
        "inCommitTimestamp",
        "materializePartitionColumns",
        "coordinatedCommits-preview",
    }
)
_TRUNCATES = frozenset({PROTECTION})
"""Features that only TRUNCATE HISTORY removes."""


def leaves(feature: str) -> Leaves:
    """How a feature can be removed from a protocol: not at all, by losing history or adding a guard, or without either.

    An unknown feature counts as one that cannot be removed.
    """
    if feature in _TRUNCATES:
        return "truncating"
    if feature in _HISTORY:
        return "with history"
    return "freely" if feature in _FREELY else "never"


def added_features(before: Protocol, after: Protocol) -> tuple[FeatureFact, ...]:
    """The features that a plan adds, by name, and how each can be removed."""
    new = sorted(after.features - before.features)
    return tuple(FeatureFact(name=each, reader=each in READER_FEATURES, leaves=leaves(each)) for each in new)
