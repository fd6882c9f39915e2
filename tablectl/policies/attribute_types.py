"""The value types of all attributes, and facts about them that only policy files need."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tablectl.attributes.policy import ATTRIBUTES
from tablectl.attributes.value_types import ValueType
from tablectl.delta import keys

SHAPES: Mapping[str, ValueType] = MappingProxyType({attribute.name: attribute.shape for attribute in ATTRIBUTES})
"""Attribute name → type, in the order of plans."""

CONTRADICTIONS = tuple(
    (("uniform", version), other)
    for version in ("iceberg_v1", "iceberg_v2")
    for other in (("deletion_vectors", "enabled"), ("column_mapping", "none"))
)
"""Pairs of attribute values that no table can have at the same time."""

MANIFEST_RIVALS = tuple(
    ((f"properties.{keys.MANIFEST}", "true"), other)
    for other in (
        ("deletion_vectors", "enabled"),
        ("column_mapping", "name"),
        ("uniform", "iceberg_v1"),
        ("uniform", "iceberg_v2"),
    )
)
"""The same for the property that writes symlink manifests: their readers know neither vectors nor mapped columns."""

EXCLUSIVE = ("clustering", "partitioning")
"""At most one of these attributes can list columns."""

LATER_WORDS = frozenset({("clustering", "auto")})
"""Values that are planned but not implemented."""
