"""The value types of all attributes, and facts about them that only policy files need."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tablectl.attributes.policy import ATTRIBUTES
from tablectl.attributes.value_types import ValueType

SHAPES: Mapping[str, ValueType] = MappingProxyType({attribute.name: attribute.shape for attribute in ATTRIBUTES})
"""Attribute name → type, in the order of plans."""

CONTRADICTIONS = tuple(
    (("uniform", version), other)
    for version in ("iceberg_v1", "iceberg_v2")
    for other in (("deletion_vectors", "enabled"), ("column_mapping", "none"))
)
"""Pairs of attribute values that no table can have at the same time."""

EXCLUSIVE = ("clustering", "partitioning")
"""At most one of these attributes can list columns."""
