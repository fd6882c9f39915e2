"""Each attribute says what it takes; nothing else does."""

from __future__ import annotations

from tablectl.attributes.policy import ATTRIBUTES
from tablectl.policies.attribute_types import EXCLUSIVE, SHAPES


def test_every_field_has_a_shape() -> None:
    assert tuple(SHAPES) == tuple(attribute.name for attribute in ATTRIBUTES)
    assert all(shape.words or shape.columns or shape.mapped for shape in SHAPES.values())
    assert all(shape.description for shape in SHAPES.values())


def test_what_they_take() -> None:
    assert SHAPES["isolation"].takes == "takes one of Serializable, WriteSerializable, default"
    assert SHAPES["clustering"].takes == "takes a list of columns or `none` or `auto`"
    assert SHAPES["properties"].takes == "takes a map of keys to texts"
    assert SHAPES["isolation"].example == "`isolation: Serializable`"


def test_only_attributes_exclude_each_other() -> None:
    assert set(EXCLUSIVE) <= set(SHAPES)
