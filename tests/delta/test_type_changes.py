"""Which recorded changes of types the Iceberg compatibility of Delta refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tablectl.delta.type_changes import TypeChange, type_changes


def _schema(kind: Any, recorded: Any) -> str:
    metadata = {"delta.typeChanges": recorded}
    return json.dumps(
        {"type": "struct", "fields": [{"name": "c", "type": kind, "nullable": True, "metadata": metadata}]}
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("byte", "double"),
        ("short", "double"),
        ("integer", "double"),
        ("date", "timestamp_ntz"),
        ("integer", "decimal(10,0)"),
        ("byte", "decimal(11,1)"),
        ("long", "decimal(20,0)"),
        ("decimal(10,2)", "decimal(12,4)"),
        ("decimal(10,2)", "decimal(38,3)"),
    ],
)
def test_a_change_that_iceberg_does_not_know_is_refused(before: str, after: str) -> None:
    assert TypeChange(("c",), before, after).iceberg_refuses


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("byte", "short"),
        ("byte", "long"),
        ("integer", "long"),
        ("float", "double"),
        ("decimal(10,2)", "decimal(12,2)"),
        ("decimal(10,2)", "decimal(10,2)"),
        ("string", "double"),  # Delta takes no such change, and refuses the whole table elsewhere
        ("long", "double"),
        ("date", "timestamp"),
        ("long", "decimal(19,0)"),
        ("integer", "decimal(10,1)"),
        ("decimal(10,2)", "decimal(11,4)"),
        ("decimal(10,2)", "decimal(8,2)"),
        ("decimal(999999999999,2)", "decimal(9999999999999,4)"),
    ],
)
def test_a_change_that_iceberg_knows_or_delta_does_not_take_is_not_refused(before: str, after: str) -> None:
    assert not TypeChange(("c",), before, after).iceberg_refuses


def test_a_change_inside_a_column_is_found_by_its_path() -> None:
    text = _schema(
        {"type": "map", "keyType": "double", "valueType": "string", "valueContainsNull": True},
        [
            {"fromType": "short", "toType": "integer", "fieldPath": "key"},
            {"fromType": "integer", "toType": "double", "fieldPath": "key"},
        ],
    )
    assert list(type_changes(text)) == [
        TypeChange(("c", "key"), "short", "integer"),
        TypeChange(("c", "key"), "integer", "double"),
    ]


@pytest.mark.parametrize(
    "recorded",
    [
        None,
        "x",
        7,
        {},
        [None],
        ["x"],
        [{}],
        [{"fromType": 1, "toType": "double"}],
        [{"fromType": "integer"}],
        [{"fromType": "a", "toType": "b", "fieldPath": []}],
    ],
)
def test_a_record_that_is_none_of_delta_is_left_out(recorded: Any) -> None:
    assert list(type_changes(_schema("double", recorded))) == []
