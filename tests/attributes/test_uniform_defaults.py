"""Which defaults of columns Iceberg compatibility V3 takes: those that Delta reads without SQL."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tablectl.attributes.uniform import is_plain_literal

TEXTS = {
    "string": ("'x'", '"x"', "'it''s'", "'a(b'", r"'a\'", r"'a\\'", "'", "x", "NULL", "'a' || 'b'", "upper('a')", ""),
    "byte": ("1", "-1", "+1", "1000", "1 + 1", "1L", "1.0", "NULL", "2147483647", "2147483648", " 1"),
    "integer": ("0", "- 1", "-2147483648", "-2147483649", "0x1", "1e1", "CAST(1 AS INT)"),
    "long": ("1", "1L", "1l", "1LL", "9223372036854775807", "9223372036854775808", "-9223372036854775808"),
    "float": ("1", "1.5", ".5", "1.", "1e3", "1.5F", "1.5D", "NaN", "-Infinity", "1.5BD", "nan", " 1.5 ", "1 + 1"),
    "double": ("1.5e-3", "+.5d", "e3", "."),
    "decimal(5,2)": (
        "1.5",
        "1.555",
        "1.550",
        "123.45",
        "1234.5",
        "12345",
        "123456",
        "1e2",
        "1E-3",
        "1.5BD",
        "x",
        "-.5",
    ),
    "boolean": ("true", "FALSE", "1 = 1", "NULL"),
    "binary": ("X'1F'", "x'1f'", "X'1G'", "X''", 'X"1F"', "'abc'", "abc", "X1F"),
    "date": ("'2020-01-01'", "DATE'2020-01-01'", "'2020-02-30'", "'2020-1-1'", "2020-01-01", "current_date()"),
    "timestamp": (
        *("'2020-01-01 00:00:00'", "'2020-01-01T00:00:00'", "'2020-01-01T00:00:00Z'", "'2020-01-01T00:00:00+01:00'"),
        *("'2020-01-01T00:00'", "'2020-01-01 00:00'", "'2020-01-01 00:00:00.5'", "'2020-01-01T00:00:00.5'"),
        *("'2020-01-01'", "'2020-01-01 00:00:00Z'", "TIMESTAMP'2020-01-01 00:00:00'", "'2020-01-01T25:00:00'"),
    ),
    "timestamp_ntz": ("'2020-01-01 00:00:00'", "'2020-01-01T00:00:00Z'", "'2020-01-01T00:00:00.123456789'"),
}


@pytest.mark.parametrize(
    ("kind", "taken", "refused"),
    [
        ("string", "'it''s'", "NULL"),
        ("integer", "-1", "1 + 1"),
        ("decimal(5,2)", "1.5", "1.555"),
        ("date", "'2020-01-01'", "DATE'2020-01-01'"),
        ("timestamp", "'2020-01-01T00:00:00Z'", "current_timestamp()"),
        ("variant", "", "parse_json('1')"),
    ],
)
def test_a_default_is_read_by_the_type_of_its_column(kind: str, taken: str, refused: str) -> None:
    assert not taken or is_plain_literal(taken, kind)
    assert not is_plain_literal(refused, kind)


@pytest.mark.spark
@pytest.mark.slow
def test_delta_takes_the_same_defaults(spark: Any) -> None:
    jvm = spark._jvm
    fields: list[dict[str, Any]] = [
        {"name": f"c{number}", "type": kind, "nullable": True, "metadata": {"CURRENT_DEFAULT": text}}
        for number, (kind, text) in enumerate((kind, text) for kind, texts in TEXTS.items() for text in texts)
    ]
    made = jvm.org.apache.spark.sql.types.DataType.fromJson(json.dumps({"type": "struct", "fields": fields})).fields()
    found = [jvm.org.apache.spark.sql.delta.DeltaColumnDefaults.hasLiteralDefault(each) for each in made]
    expected = [is_plain_literal(each["metadata"]["CURRENT_DEFAULT"], each["type"]) for each in fields]
    differ = [
        (each["type"], each["metadata"]["CURRENT_DEFAULT"], delta)
        for each, delta, ours in zip(fields, found, expected, strict=True)
        if delta != ours
    ]
    assert not differ
