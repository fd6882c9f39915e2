"""Schemas of records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import pytest

from tablectl.model.json_records import record_schema


@dataclass(frozen=True)
class Leaf:
    """A leaf."""

    name: str


@dataclass(frozen=True)
class Tree:
    """A ``tree``
    of two lines.
    """

    leaves: tuple[Leaf, ...]
    """All of them."""
    kind: Literal["oak", "elm"]
    age: int | None
    value: str | tuple[str, ...] | None
    pair: tuple[str, int]
    sizes: Mapping[str, int]


@dataclass(frozen=True)
class Odd:
    """Has what no record has."""

    number: complex


def test_a_record() -> None:
    schema = record_schema(Tree, "tree:1", "a tree", {"sum": {"type": "integer"}}, {"maybe": {"type": "null"}})
    assert (schema["$id"], schema["title"], schema["description"]) == (
        "urn:tablectl:tree:1",
        "a tree",
        "A `tree` of two lines.",
    )
    assert schema["required"] == ["age", "kind", "leaves", "pair", "sizes", "sum", "value"]
    assert schema["additionalProperties"] is False
    assert schema["properties"] == {
        "leaves": {"description": "All of them.", "type": "array", "items": {"$ref": "#/$defs/Leaf"}},
        "kind": {"enum": ["oak", "elm"]},
        "age": {"type": ["integer", "null"]},
        "value": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}, {"type": "null"}]},
        "pair": {
            "type": "array",
            "prefixItems": [{"type": "string"}, {"type": "integer"}],
            "items": False,
            "minItems": 2,
        },
        "sizes": {"type": "object", "additionalProperties": {"type": "integer"}},
        "sum": {"type": "integer"},
        "maybe": {"type": "null"},
    }
    assert list(schema["$defs"]) == ["Leaf"]


def test_a_type_that_no_record_has() -> None:
    kind: type[Any] = Odd
    with pytest.raises(TypeError, match="complex"):
        record_schema(kind, "odd:1", "odd", {}, {})
