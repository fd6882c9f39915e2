"""The columns of a new table: every name is quoted, and every type is a known one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tablectl.delta.schema_sql import columns_sql, new_schema


def sql_of(*fields: dict[str, Any]) -> tuple[str, ...]:
    text = json.dumps({"type": "struct", "fields": [{"nullable": True, "metadata": {}, **each} for each in fields]})
    return columns_sql(new_schema(text))


def test_nested_columns_and_comments() -> None:
    inner = {"type": "struct", "fields": [{"name": "c`d", "type": "string", "nullable": False, "metadata": {}}]}
    assert sql_of(
        {"name": "id", "type": "long", "nullable": False, "metadata": {"comment": "it's"}},
        {"name": "a b", "type": inner},
        {"name": "many", "type": {"type": "array", "elementType": inner, "containsNull": False}},
        {"name": "map", "type": {"type": "map", "keyType": "string", "valueType": "decimal(10,2)"}},
        {"name": "code", "type": "varchar(10)"},
        {"name": "flag", "type": "string", "metadata": {"__CHAR_VARCHAR_TYPE_STRING": "char(3)"}},
    ) == (
        "`id` BIGINT NOT NULL COMMENT 'it\\'s'",
        "`a b` STRUCT<`c``d`: STRING NOT NULL>",
        "`many` ARRAY<STRUCT<`c``d`: STRING NOT NULL>>",
        "`map` MAP<STRING, DECIMAL(10,2)>",
        "`code` VARCHAR(10)",
        "`flag` CHAR(3)",
    )


def test_ids_and_names_of_column_mapping_belong_to_the_other_table() -> None:
    metadata = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "col-1", "comment": "x"}
    text = json.dumps(
        {"type": "struct", "fields": [{"name": "id", "type": "long", "nullable": True, "metadata": metadata}]}
    )
    assert json.loads(new_schema(text))["fields"][0]["metadata"] == {"comment": "x"}


@pytest.mark.parametrize("kind", ["decimal(99,2)", "decimal(39,0)", "decimal(2,3)", "decimal(10,-2)"])
def test_a_decimal_that_spark_does_not_have_is_refused(kind: str) -> None:
    for column in ({"name": "p", "type": kind}, {"name": "p", "type": {"type": "array", "elementType": kind}}):
        with pytest.raises(ValueError, match=r"column p is .*: a decimal has at most 38 digits, and"):
            sql_of(column)
    assert sql_of({"name": "p", "type": "decimal(38,38)"}) == ("`p` DECIMAL(38,38)",)


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ({"type": "bigint) USING delta --"}, "is of type"),
        ({"type": "interval day"}, "is of type interval day"),
        ({"type": {"type": "udt", "class": "x"}}, "a type of its own"),
        ({"type": "date", "metadata": {"delta.generationExpression": "CAST(ts AS DATE)"}}, "generationExpression"),
        ({"type": "long", "metadata": {"CURRENT_DEFAULT": "1"}}, "CURRENT_DEFAULT"),
        ({"type": "string", "metadata": {"__CHAR_VARCHAR_TYPE_STRING": "x) --"}}, "no length"),
    ],
)
def test_a_column_that_needs_more_is_refused_by_name(field: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sql_of({"name": "day", **field})


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"type": "struct", "fields": []}', '{"type": "struct", "fields": [1]}']
)
def test_other_text_is_not_a_schema(text: str) -> None:
    with pytest.raises(ValueError, match="schema"):
        new_schema(text)


def test_a_column_that_is_named_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="ID is named twice"):
        sql_of({"name": "id", "type": "long"}, {"name": "ID", "type": "long"})


def test_a_schema_that_is_nested_without_end_is_refused() -> None:
    with pytest.raises(ValueError):
        new_schema('{"type":"struct","fields":[{"name":"a","type":' + '{"type":"array","elementType":' * 5000)
