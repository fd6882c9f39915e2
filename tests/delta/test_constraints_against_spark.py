"""Constraints on real Spark and Delta: the declared text, the text that is sent and the text that Delta stores mean the
same to Spark, on generated expressions and on rows.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from tablectl.delta.expressions import equal, sent_text, why_not_stored, why_refused
from tablectl.delta.sql_tokens import sql_tokens, stored_by_delta

_CONTENTS = (
    "O'Brien",
    'say "hi"',
    "a\\b",
    "",
    "'",
    '"',
    "%_",
    "\\%",
    "x\ny",
    "größe",
    "\\n",
    "''",
    "\\'",
    "😀",
    "A",
    "1",
)
_NUMBERS = (
    "1",
    "2L",
    "3S",
    "4Y",
    "1.5",
    ".5",
    "2.",
    "1e3",
    "1.5e-3",
    "1e-3",
    "2D",
    "1.5BD",
    "1.5D",
    "1F",
    "1.5F",
    "1e-3F",
)
_COLUMNS = ("s", "`s`", "i", "d", "`a b`", "st.x", "st.`y z`", "arr[0]", "m['k']", "I")
_CASTS = ("INT", "STRING", "DECIMAL(10,2)", "DOUBLE", "ARRAY<INT>", "ARRAY<ARRAY<INT>>", "MAP<STRING,ARRAY<INT>>")
_COLUMN_TYPES = (
    "s STRING, i INT, d DOUBLE, `a b` STRING, st STRUCT<x: INT, `y z`: STRING>, arr ARRAY<INT>, m MAP<STRING, STRING>"
)
_ROWS = [
    ("O'Brien", 1, 1.5, "x", (1, "q"), [1, -2], {"k": "v"}),
    ("OBrien", -1, 0.0, 'say "hi"', (5, "%_"), [3], {"k": "a\\b"}),
    ("", 1000, 0.001, "say hi", (0, ""), [0], {"k": ""}),
    (None, None, None, None, None, None, None),
]
_MARKS = ("+", "- ", "*", "/", "||", "%", "&", "|", "^", "<<", ">>", ">>>")


def _literal(draw: random.Random) -> str:
    """A text in quotes, in one of the spellings that Spark reads."""
    content, quote = draw.choice(_CONTENTS), draw.choice("'\"")
    form = draw.randrange(5)
    if form == 0 and quote not in content:
        return f"{draw.choice('rR')}{quote}{content}{quote}"
    escaped = content.replace("\\", "\\\\")
    if form == 1:
        return quote + "".join(f"\\u{ord(each):04x}" if ord(each) < 0x10000 else each for each in content) + quote
    if form == 2:
        return f"{quote}{escaped.replace(quote, chr(92) + quote)}{quote} {quote}tail{quote}"
    return f"{quote}{escaped.replace(quote, quote * 2 if form == 3 else chr(92) + quote)}{quote}"


def _value(draw: random.Random, depth: int) -> str:
    form = draw.randrange(9 if depth else 3)

    def inner() -> str:
        return _value(draw, depth - 1)

    blank = draw.choice(("", " ", "\n"))
    match form:
        case 0:
            return _literal(draw)
        case 1:
            return draw.choice(_NUMBERS)
        case 2:
            return draw.choice(_COLUMNS)
        case 3:
            return f"concat({inner()},{blank}{inner()})"
        case 4:
            return f"({inner()}{blank}{draw.choice(_MARKS)}{blank}{inner()})"
        case 5:
            return f"CAST({inner()} AS {draw.choice(_CASTS)})"
        case 6:
            return f"{draw.choice(_COLUMNS)}::{draw.choice(_CASTS)}"
        case 7:
            return f"coalesce({inner()},{inner()})"
        case _:
            return f"CASE WHEN {_condition(draw, depth - 1)} THEN {inner()} ELSE {inner()} END"


def _condition(draw: random.Random, depth: int = 2) -> str:
    form, blank = draw.randrange(10 if depth else 3), draw.choice(("", " "))
    if form < 3:
        mark = draw.choice(("=", "==", "<>", "!=", "<=>", "<", "<=", ">", ">=", "!>", "!<"))
        return f"{_value(draw, depth)}{blank}{mark}{blank}{_value(draw, depth)}"
    if form == 3:
        return f"s {draw.choice(('LIKE', 'RLIKE', 'NOT LIKE', 'ILIKE'))} {_literal(draw)}"
    if form == 4:
        return f"s IN ({_literal(draw)},{_literal(draw)})"
    if form == 5:
        return f"{draw.choice(('NOT ', '!', '! '))}({_condition(draw, depth - 1)})"
    if form == 6:
        return f"{draw.choice(('forall', 'exists'))}(arr,{blank}e{blank}->{blank}e > {draw.choice(_NUMBERS)})"
    if form == 7:
        return f"{_value(draw, depth - 1)} IS NOT NULL"
    return f"({_condition(draw, depth - 1)}){blank}{draw.choice(('AND', 'OR'))}{blank}({_condition(draw, depth - 1)})"


def _compare(spark: Any, texts: list[str]) -> dict[str, int]:
    """Counts of what happened; fails at the first text whose meaning changes on the way."""
    parser = spark._jsparkSession.sessionState().sqlParser()

    def parsed(text: str) -> str | None:
        try:
            return str(parser.parseExpression(text).toString())
        except (Py4JJavaError, PySparkException):
            return None

    counts = dict.fromkeys(("not spark", "refused", "refused without need", "same"), 0)
    kept: list[tuple[str, str]] = []
    for text in texts:
        meant = parsed(text)
        if meant is None or why_refused(text):
            counts["not spark"] += 1
            continue
        statement = f"ALTER TABLE delta.`/none` ADD CONSTRAINT `c` CHECK ({sent_text(text)})"
        stored = parser.parsePlan(statement).expr()
        assert stored == stored_by_delta(sent_text(text)), text
        if any(why_not_stored(text)):
            counts["refused"] += 1
            counts["refused without need"] += parsed(stored) == meant
            continue
        assert parsed(stored) == meant, (text, stored)
        assert equal(text, stored), (text, stored)
        counts["same"] += 1
        kept.append((text, stored))
    rows = spark.createDataFrame(_ROWS, _COLUMN_TYPES).cache()
    for declared, stored in kept:
        found = [_accepted(rows, each) for each in (declared, stored)]
        assert found[0] == found[1], (declared, stored)
    return counts


def _accepted(rows: Any, text: str) -> list[bool] | str:
    """The rows that a constraint takes; the class of the error if it cannot be asked."""
    try:
        return [row[0] for row in rows.selectExpr(f"coalesce(({text}), false)").collect()]
    except PySparkException as error:
        return str(error.getCondition() or type(error).__name__)


def _texts(seed: int, count: int) -> list[str]:
    draw = random.Random(seed)
    return [_condition(draw) for _ in range(count)]


def test_generated_constraints_are_stored_with_the_declared_meaning(spark: Any) -> None:
    counts = _compare(spark, _texts(1, 60))
    assert counts["same"] > 15
    assert counts["refused without need"] == 0, counts


@pytest.mark.slow
def test_hundreds_of_generated_constraints_are_stored_with_the_declared_meaning(spark: Any) -> None:
    counts = _compare(spark, _texts(2, 1_000))
    assert counts["refused without need"] == 0, counts


@pytest.mark.parametrize("content", _CONTENTS)
def test_the_value_of_a_text_in_quotes_is_that_of_spark(spark: Any, content: str) -> None:
    draw = random.Random(content)
    literals = [each for each in (_literal(draw) for _ in range(40)) if "tail" not in each]
    (row,) = spark.sql(f"SELECT {', '.join(literals)}").collect()
    assert [next(iter(sql_tokens(each))).value for each in literals] == list(row)


def test_a_doubled_quote_is_stored_and_enforced_as_declared(spark: Any, tmp_path: Any) -> None:
    table = f"delta.`{tmp_path}/t`"
    spark.sql(f"CREATE TABLE {table} (s STRING) USING delta")
    declared = "s != 'O''Brien'"
    spark.sql(f"ALTER TABLE {table} ADD CONSTRAINT `c` CHECK ({sent_text(declared)})")
    stored = {row.key: row.value for row in spark.sql(f"SHOW TBLPROPERTIES {table}").collect()}
    assert equal(declared, stored["delta.constraints.c"])
    spark.sql(f"INSERT INTO {table} VALUES ('OBrien')")
    with pytest.raises(Exception, match="CHECK constraint c"):
        spark.sql(f"INSERT INTO {table} VALUES ('O\\'Brien')")
