"""Columns as a schemaString has them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tablectl.delta.schema import columns_of, differences, own_metadata

NESTED: list[dict[str, Any]] = [
    {"name": "id", "type": "long", "nullable": False, "metadata": {"comment": "key", "delta.columnMapping.id": 1}},
    {"name": "s", "type": {"type": "struct", "fields": [{"name": "a", "type": "string", "metadata": {}}]}},
    {
        "name": "m",
        "type": {
            "type": "map",
            "keyType": "string",
            "valueType": {"type": "array", "elementType": "long", "containsNull": False},
            "valueContainsNull": True,
        },
    },
]


def schema(*fields: dict[str, Any]) -> str:
    return json.dumps({"type": "struct", "fields": fields})


def test_every_level_is_a_column() -> None:
    found = {".".join(each.path): (each.type, each.nullable, each.reachable) for each in columns_of(schema(*NESTED))}
    assert found == {
        "id": ("long", False, True),
        "s": ("struct", True, True),
        "s.a": ("string", True, True),
        "m": ("map", True, True),
        "m.key": ("string", True, False),
        "m.value": ("array", True, False),
        "m.value.element": ("long", False, False),
    }


def test_what_column_mapping_keeps_is_not_metadata_of_the_column_itself() -> None:
    assert own_metadata(schema(*NESTED)) == (("id", {"comment": "key"}), ("s", {}), ("m", {}))
    assert own_metadata("") == ()


def test_differences_are_named_by_column() -> None:
    one, other = (
        NESTED[0],
        {**NESTED[0], "nullable": True, "type": "integer", "metadata": {"delta.columnMapping.id": 2}},
    )
    assert differences(schema(one), schema(other)) == ("id: NOT NULL", "id: comment", "id: type")
    assert differences(schema(one), schema(one, NESTED[1])) == ("s", "s.a")
    assert differences(schema(*NESTED), schema(*NESTED)) == ()


def test_how_far_an_identity_has_come_counts() -> None:
    marks = [{"name": "id", "type": "long", "metadata": {"delta.identity.highWaterMark": mark}} for mark in (3, 4)]
    assert differences(*map(schema, marks)) == ("id: delta.identity.highWaterMark",)


@pytest.mark.parametrize("text", ["{", "[]", '{"fields": [1]}', '{"fields": [{"name": "a"}]}', '{"fields": 1}', "1"])
def test_what_is_not_a_schema_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        columns_of(text)
