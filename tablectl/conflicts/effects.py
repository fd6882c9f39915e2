"""What a statement's commits hold, as far as other transactions care."""

from __future__ import annotations

from tablectl.attributes.catalogue import feature_of
from tablectl.model.operations import ClusterBy, Operation, Purge, SetProperties, UnsetProperties
from tablectl.model.plan import Basis, CommitEffect

_CLUSTERING_FEATURES = ("clustering", "domainMetadata")


def effect_of(operation: Operation, basis: Basis) -> CommitEffect:
    """The effect of one operation on a table of this basis (delta.md 1.1)."""
    protocol = basis.protocol.protocol()
    match operation:
        case SetProperties(values):
            brought = {feature for key, value in values if (feature := feature_of(key, value))}
            missing = tuple(sorted(feature for feature in brought if not protocol.has(feature)))
            return CommitEffect(sets=values, features=missing)
        case UnsetProperties(keys):
            return CommitEffect(removes=keys)
        case ClusterBy():
            missing = tuple(feature for feature in _CLUSTERING_FEATURES if not protocol.has(feature))
            return CommitEffect(features=missing, domains=("delta.clustering",))
        case Purge():
            return CommitEffect(rewrites_files=True)
