"""Columns in SQL, read without an engine."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tablectl.delta.schema_sql import columns_sql, new_schema, schema_of_columns

MANY = """
id BIGINT NOT NULL COMMENT 'it\\'s the "key"', who STRING COMMENT 'it''s', -- a comment
`a b` decimal(10, 2), price DECIMAL, code VARCHAR(10), flag char(3), /* two
lines */ at STRUCT<city: STRING NOT NULL COMMENT 'x', zip INT, at: STRUCT<x: DOUBLE>>,
tags ARRAY<MAP<STRING, TIMESTAMP_NTZ>>, seen timestamp, größe INT, 1st INT, raw BINARY, v VARIANT, Date DATE
"""


def test_every_type_is_read() -> None:
    assert columns_sql(new_schema(schema_of_columns(MANY))) == (
        "`id` BIGINT NOT NULL COMMENT 'it\\'s the \"key\"'",
        "`who` STRING COMMENT 'it\\'s'",
        "`a b` DECIMAL(10,2)",
        "`price` DECIMAL(10,0)",
        "`code` VARCHAR(10)",
        "`flag` CHAR(3)",
        "`at` STRUCT<`city`: STRING NOT NULL COMMENT 'x', `zip`: INT, `at`: STRUCT<`x`: DOUBLE>>",
        "`tags` ARRAY<MAP<STRING, TIMESTAMP_NTZ>>",
        "`seen` TIMESTAMP",
        "`größe` INT",
        "`1st` INT",
        "`raw` BINARY",
        "`v` VARIANT",
        "`Date` DATE",
    )


@pytest.mark.parametrize(
    ("text", "comment"),
    [
        ("'it''s'", "it's"),
        ("'a\\''''", "a''"),
        ('"say ""x"" and \'\'y"', "say \"x\" and ''y"),
        ("'a\"\"b'", 'a""b'),
        ("''", ""),
    ],
)
def test_two_quotes_in_a_comment_are_one(text: str, comment: str) -> None:
    """As in Spark since 4.0."""
    (field,) = json.loads(schema_of_columns(f"id BIGINT COMMENT {text}"))["fields"]
    assert field["metadata"]["comment"] == comment


RAW = "id BIGINT COMMENT r'C:\\'"


def test_a_backslash_in_a_raw_comment_is_a_backslash() -> None:
    """Also before the last quote (``STRING_LITERAL`` in Spark's ``SqlBaseLexer.g4``)."""
    (field,) = json.loads(schema_of_columns(RAW))["fields"]
    assert field["metadata"]["comment"] == "C:\\"


@pytest.mark.spark
def test_spark_reads_the_same(spark: Any) -> None:
    from pyspark.sql.types import StructType

    del spark
    plain = MANY.replace("größe INT, 1st INT, ", "")  # Spark takes such names in backticks only
    for text in (plain, RAW):
        assert json.loads(schema_of_columns(text)) == json.loads(StructType.fromDDL(text).json())


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "line 1: the name of a column is expected, and the text ends"),
        ("id", "line 1: a type that tablectl knows is expected, and the text ends"),
        ("id BIGINT,\n", "line 1: the name of a column is expected, and the text ends"),
        ("id BIGINT\nday DATE", "line 2: a comma or the end is expected here, and found day"),
        ("id BIGINT) USING delta --", "line 1: a comma or the end is expected here, and found )"),
        ("id INTERVAL DAY", "line 1: a type that tablectl knows is expected, and found INTERVAL"),
        ("id BIGINT,\nx INT DEFAULT 1", "line 2: column x needs a CREATE TABLE of your own, and found DEFAULT"),
        ("id ARRAY<INT", "line 1: > is expected, and the text ends"),
        ("c VARCHAR", "line 1: the length of VARCHAR is expected before this, and the text ends"),
        ("c INT COMMENT x", "line 1: a comment in quotes is expected, and found x"),
        ("c ?", "line 1: '?' is not part of SQL"),
        ("c INT,\n?", "line 2: '?' is not part of SQL"),
        ("x " + "ARRAY<" * 60, "line 1: types are nested more than 50 deep, and found ARRAY"),
    ],
)
def test_what_is_not_a_list_of_columns_is_refused_by_line(text: str, why: str) -> None:
    with pytest.raises(ValueError) as refused:
        schema_of_columns(text)
    assert str(refused.value) == why
