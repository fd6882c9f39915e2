"""The shapes of all attributes, and what of them only policy files need to know."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tablectl.attributes.clustering import MAX_COLUMNS
from tablectl.attributes.policy import ATTRIBUTES
from tablectl.attributes.value_types import ValueType

SHAPES: Mapping[str, ValueType] = MappingProxyType({attribute.name: attribute.shape for attribute in ATTRIBUTES})
"""By attribute, in the order of plans."""

MOST_COLUMNS: Mapping[str, int] = MappingProxyType({"clustering": MAX_COLUMNS})
"""How many columns an attribute takes at most, where Delta limits them."""

TOP_LEVEL = frozenset({"partitioning"})
"""Attributes whose columns cannot be fields of a struct."""

CONTRADICTIONS = tuple(
    (("uniform", version), other)
    for version in ("iceberg_v1", "iceberg_v2")
    for other in (("deletion_vectors", "enabled"), ("column_mapping", "none"))
)
"""Pairs of values, each with its attribute, that no table has at once."""

EXCLUSIVE = ("clustering", "partitioning")
"""At most one of these lists columns."""

LATER_WORDS = frozenset({("clustering", "auto")})
"""Values of the design that are not built yet."""
