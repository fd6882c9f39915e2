"""Which rows have the same sums, by Spark itself."""

from __future__ import annotations

from typing import Any

import pytest

from tablectl.applying.row_sums import row_sums, unlike

pytestmark = pytest.mark.spark

_X = "named_struct('x', 1, 'y', CAST(NULL AS INT))"
_Y = "named_struct('x', CAST(NULL AS INT), 'y', 1)"
DIFFERENT = {
    "NULL and an empty text": ("string", "('')", "(NULL)"),
    "rows that swap a value with NULL": ("int, int, int", "(7,NULL,1),(NULL,7,2)", "(7,NULL,2),(NULL,7,1)"),
    "values of other rows": ("int, int", "(1,2),(2,1)", "(1,1),(2,2)"),
    "a row twice": ("int", "(1),(1)", "(1),(2)"),
    "NULL in an array": ("array<int>", "(array(1,NULL))", "(array(1))"),
    "the place of NULL in an array": ("array<int>", "(array(1,NULL,2))", "(array(NULL,1,2))"),
    "NULL and a number of its place": ("array<int>", "(array(NULL,1))", "(array(1,NULL))"),
    "NULL and its text": ("array<string>", "(array(NULL,'null'))", "(array('null',NULL))"),
    "an array of NULLs and a longer one": ("array<bigint>", "(array(NULL,NULL))", "(array(NULL,NULL,NULL))"),
    "an empty map and NULL": ("map<string,int>", "(map())", "(NULL)"),
    "the values of a map": ("map<string,int>", "(map('a',1,'b',NULL))", "(map('a',NULL,'b',1))"),
    "an empty array and one of NULL": ("array<int>", "(array())", "(array(NULL))"),
    "an empty array and NULL": ("array<int>", "(array())", "(NULL)"),
    "where nested arrays end": ("array<array<int>>", "(array(array(1),array(2,3)))", "(array(array(1,2),array(3)))"),
    "empty arrays in an array": ("array<array<int>>", "(array(array(),array(0)))", "(array(array(0),array()))"),
    "a struct of NULL and NULL": ("struct<x:int>", "(named_struct('x',CAST(NULL AS INT)))", "(NULL)"),
    "the field of a struct": ("struct<x:int,y:int>", f"({_X})", f"({_Y})"),
    "the field of a struct in an array": ("array<struct<x:int,y:int>>", f"(array({_X}))", f"(array({_Y}))"),
    "the field of a struct in a map": ("map<string,struct<x:int,y:int>>", f"(map('a',{_X}))", f"(map('a',{_Y}))"),
    "NULL in a map": ("map<string,int>", "(map('a',NULL))", "(map('a',0))"),
    "microseconds": ("timestamp", "(TIMESTAMP'2024-01-01 00:00:00.000001')", "(TIMESTAMP'2024-01-01 00:00:00.000002')"),
    "microseconds in a map": (
        "map<string,timestamp>",
        "(map('a',TIMESTAMP'2024-01-01 00:00:00.000001'))",
        "(map('a',TIMESTAMP'2024-01-01 00:00:00.000999'))",
    ),
    "the key of a map": ("map<binary,int>", "(map(X'00',1))", "(map(X'01',1))"),
    "signed zeros": ("double", "(-0.0D)", "(0.0D)"),
    "signed zeros of a float": ("float", "(-0.0F)", "(0.0F)"),
    "signed zeros in a map": ("map<string,double>", "(map('a',-0.0D))", "(map('a',0.0D))"),
    "signed zeros in an array": ("array<double>", "(array(-0.0D))", "(array(0.0D))"),
    "binary": ("binary", "(X'00')", "(X'0000')"),
    "decimals": ("decimal(38,2)", "(1.10BD)", "(1.11BD)"),
    "the type of a variant": ("variant", "(parse_json('1'))", """(parse_json('"1"'))"""),
    "the number in a variant": ("variant", "(CAST(1 AS VARIANT))", "(CAST(1.5D AS VARIANT))"),
}
SAME = {
    "rows in another order": ("int, string", "(1,'a'),(2,NULL)", "(2,NULL),(1,'a')"),
    "NaN": ("double", "(double('NaN'))", "(double('NaN'))"),
    "a map of binary": ("map<binary,double>", "(map(X'00',1D))", "(map(X'00',1D))"),
    "nothing": ("int", "(1) LIMIT 0", "(2) LIMIT 0"),
    "a field whose name needs quotes": ("struct<`a``.b`:int>", "(named_struct('a`.b',1))", "(named_struct('a`.b',1))"),
}


def differs(spark: Any, types: str, one: str, other: str) -> str:
    names = ", ".join(f"`c``{number}`" for number, _ in enumerate(_split(types)))
    ddl = ", ".join(f"{name} {kind}" for name, kind in zip(names.split(", "), _split(types), strict=True))
    empty = spark.sql(f"SELECT {', '.join(f'CAST(NULL AS {kind}) AS {name}' for name, kind in _pairs(ddl))} LIMIT 0")
    sums = row_sums(empty.schema.json())
    sides = []
    for values in (one, other):
        rows, _, limit = values.partition(" LIMIT")
        text = (
            f"SELECT {', '.join(f'CAST({name} AS {kind}) AS {name}' for name, kind in _pairs(ddl))} FROM VALUES {rows}"
        )
        frame = spark.sql(f"{text} AS t({names})" + (f" LIMIT{limit}" if limit else ""))
        sides.append([str(each) for each in frame.selectExpr(*[each.sql for each in sums]).collect()[0]])
    return unlike(sums, sides)


def _split(types: str) -> list[str]:
    return types.split(", ")


def _pairs(ddl: str) -> list[tuple[str, str]]:
    return [(name, kind) for name, _, kind in (each.partition(" ") for each in ddl.split(", "))]


def test_other_values_have_other_sums(spark: Any) -> None:
    assert [what for what, case in DIFFERENT.items() if not differs(spark, *case)] == []


def test_the_same_values_have_the_same_sums(spark: Any) -> None:
    assert {what: found for what, case in SAME.items() if (found := differs(spark, *case))} == {}
