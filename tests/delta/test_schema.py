"""Schemas: found without case, leaves in Delta's order, bad ones refused."""

from __future__ import annotations

import json

import pytest

from tablectl.delta.schema import Field, Schema, parse_schema

_ADDRESS = Field("Address", "struct", fields=(Field("City", "string", physical="col-7"), Field("zip.code", "integer")))
_SCHEMA = Schema(
    (
        Field("id", "long", physical="col-1"),
        _ADDRESS,
        Field("tags", "array"),
        Field("when", "timestamp"),
    )
)


def test_columns_are_found_without_regard_to_case_and_spelled_as_the_table_does() -> None:
    assert _SCHEMA.find(("ADDRESS", "city")) == (("Address", "City"), _ADDRESS.fields[0])
    assert _SCHEMA.find(("address",)) == (("Address",), _ADDRESS)
    assert _SCHEMA.find(("address", "zip.code")) == (("Address", "zip.code"), _ADDRESS.fields[1])


@pytest.mark.parametrize("path", [("gone",), ("address", "street"), ("id", "x"), ("tags", "element"), ()])
def test_what_is_not_there(path: tuple[str, ...]) -> None:
    assert _SCHEMA.find(path) is None


def test_logical_names_of_physical_ones() -> None:
    assert _SCHEMA.logical(("col-1",)) == ("id",)
    assert _SCHEMA.logical(("Address", "col-7")) == ("Address", "City")
    assert _SCHEMA.logical(("id",)) is None
    assert _SCHEMA.logical(()) is None


def test_leaves_count_an_array_once_and_a_struct_by_its_fields() -> None:
    assert [path for path, _ in _SCHEMA.leaves()] == [
        ("id",),
        ("Address", "City"),
        ("Address", "zip.code"),
        ("tags",),
        ("when",),
    ]


def _text(*fields: object) -> str:
    return json.dumps({"type": "struct", "fields": fields})


def test_a_schema_as_delta_writes_it() -> None:
    schema = parse_schema(
        _text(
            {"name": "id", "type": "long", "nullable": False, "metadata": {"delta.identity.start": 1}},
            {"name": "price", "type": "decimal(10,2)", "nullable": True, "metadata": {}},
            {
                "name": "address",
                "type": {"type": "struct", "fields": [{"name": "city", "type": "string"}]},
                "metadata": {"delta.columnMapping.physicalName": "col-9"},
            },
            {"name": "tags", "type": {"type": "array", "elementType": "string", "containsNull": True}},
            {"name": "facts", "type": {"type": "map", "keyType": "string", "valueType": "long"}},
        )
    )
    assert [(field.name, field.type) for field in schema.fields] == [
        ("id", "long"),
        ("price", "decimal(10,2)"),
        ("address", "struct"),
        ("tags", "array"),
        ("facts", "map"),
    ]
    assert schema.has_identity()
    assert not schema.fields[0].nullable
    assert schema.fields[2].physical == "col-9"
    assert schema.logical(("col-9", "city")) == ("address", "city")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"type": "array"}',
        '{"type": "struct"}',
        _text("id"),
        _text({"type": "long"}),
        _text({"name": "id"}),
        _text({"name": "id", "type": 7}),
        _text({"name": "a", "type": {"type": "struct"}}),
        _text({"name": "id", "type": "long", "metadata": [1]}),
    ],
)
def test_what_is_not_a_schema(text: str) -> None:
    with pytest.raises(ValueError):
        parse_schema(text)


def test_equal_columns_of_two_tables_are_one_record() -> None:
    text = '{"type":"struct","fields":[{"name":"%s","type":"long","nullable":true,"metadata":{}}]}'
    (one,), (other,) = (parse_schema(text % "id").fields for _ in range(2))
    assert one is other
    (one,), (other,) = (parse_schema(text % ("x" * 200)).fields for _ in range(2))
    assert one is not other  # texts of any length are not kept for the next table
    assert one == other


def test_two_names_that_only_unicode_takes_for_one_are_two_columns() -> None:
    schema = Schema((Field("straße", "long"), Field("STRASSE", "string")))
    assert schema.find(("Straße",)) == (("straße",), schema.fields[0])
    assert schema.find(("strasse",)) == (("STRASSE",), schema.fields[1])
