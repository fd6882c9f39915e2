"""Protocol features: which of them DROP FEATURE removes, and what remains (delta-1.13, delta-1.15)."""

from __future__ import annotations

from tablectl.delta.protocol import READER_FEATURES, Protocol
from tablectl.model.plan import FeatureFact, Leaves

_HISTORY = READER_FEATURES - {
    "timestampNtz",
    "variantType",
    "variantType-preview",
    "variantShredding",
    "variantShredding-preview",
    "catalogManaged",
}
"""Reader features that DROP FEATURE removes: with history, or with checkpointProtection in their place."""
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
PROTECTION = "checkpointProtection"
"""Keeps the history from before a feature was dropped readable."""
_TRUNCATES = frozenset({PROTECTION})
"""Removed with TRUNCATE HISTORY alone."""


def leaves(feature: str) -> Leaves:
    """How a feature leaves a protocol: not at all, with a loss of history or a guard in its place, or without either.

    A feature that is not known here counts as one that stays.
    """
    if feature in _TRUNCATES:
        return "truncating"
    if feature in _HISTORY:
        return "with history"
    return "freely" if feature in _FREELY else "never"


def needs_protection(feature: str, *, truncate_history: bool, protocol: Protocol) -> bool:
    """Whether ``DROP FEATURE`` adds ``checkpointProtection``: for a reader feature whose history stays (delta-1.15)."""
    return feature in READER_FEATURES and not truncate_history and not protocol.has(PROTECTION)


def added_features(before: Protocol, after: Protocol) -> tuple[FeatureFact, ...]:
    """The features that a plan adds, by name, and what it takes to be rid of each."""
    new = sorted(after.features - before.features)
    return tuple(FeatureFact(name=each, reader=each in READER_FEATURES, leaves=leaves(each)) for each in new)
