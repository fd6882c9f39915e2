"""Conditions as hypothesis draws them, rows over small domains, and SQLite to say which rows satisfy which condition.

SQLite knows nothing of tablectl: it has the same three-valued logic, and compares texts by their bytes.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from itertools import product

from hypothesis import strategies as st

from tablectl.delta.names import TableName
from tablectl.delta.schema import Field, Schema
from tablectl.insight.statements.target import StatementTable

Row = tuple[object, ...]

COLUMNS = ("p", "n", "d", "b", "x")
"""A text, a number, a date, a boolean, and a number that is not a partition column."""
SUBJECT = StatementTable(
    name=TableName("spark_catalog", ("s", "t")),
    location="/lake/t",
    schema=Schema(
        (Field("p", "string"), Field("n", "integer"), Field("d", "date"), Field("b", "boolean"), Field("x", "long"))
    ),
    partition_columns=("p", "n", "d", "b"),
)
_TEXTS = ("", "a", "ab", "b", "B", "é", "\uffff", "😀")
_NUMBERS = (-1, 0, 1, 2)
_DATES = ("2025-12-31", "2026-01-01", "2026-01-02")
ROWS: tuple[Row, ...] = tuple(product((None, *_TEXTS), (None, *_NUMBERS), (None, *_DATES), (None, 0, 1), (None, 1)))


def _text(value: str) -> str:
    return f"'{value}'"


_VALUES = {
    "p": st.sampled_from(_TEXTS).map(_text),
    "n": st.sampled_from(("-1", "0", "1", "2", "0.5", "1.0")),
    "d": st.sampled_from(_DATES).flatmap(lambda each: st.sampled_from((f"'{each}'", f"DATE '{each}'"))),
    "x": st.sampled_from(("0", "1")),
}
_NULLABLE = {column: st.one_of(values, values, values, st.just("NULL")) for column, values in _VALUES.items()}
_COMPARED = st.sampled_from(("p", "p", "n", "n", "d", "x"))


def _comparison(column: str) -> st.SearchStrategy[str]:
    value, operator = _NULLABLE[column], st.sampled_from(("=", "<>", "<", "<=", ">", ">=", "<=>"))
    return st.one_of(
        st.tuples(operator, value).map(lambda each: f"{column} {each[0]} {each[1]}"),
        st.tuples(value, operator).map(lambda each: f"{each[0]} {each[1]} {column}"),
        st.tuples(st.sampled_from(("", "NOT ")), st.lists(value, min_size=1, max_size=3)).map(
            lambda each: f"{column} {each[0]}IN ({', '.join(each[1])})"
        ),
        st.tuples(st.sampled_from(("", "NOT ")), value, value).map(
            lambda each: f"{column} {each[0]}BETWEEN {each[1]} AND {each[2]}"
        ),
        st.sampled_from((f"{column} IS NULL", f"{column} IS NOT NULL")),
    )


_LIKE = st.tuples(
    st.sampled_from(("", "NOT ")), st.sampled_from(("a%", "%", "a_", "%b", "ab", "", "é%", "\uffff%"))
).map(lambda each: f"p {each[0]}LIKE '{each[1]}'")
_LEAVES = st.one_of(
    _COMPARED.flatmap(_comparison),
    _COMPARED.flatmap(_comparison),
    _LIKE,
    st.sampled_from(("b", "b = TRUE", "b = FALSE", "b IS NULL", "TRUE", "FALSE", "p = n", "x = n")),
)
CONDITIONS = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, min_size=2, max_size=3).map(lambda each: f"({' AND '.join(each)})"),
        st.lists(inner, min_size=2, max_size=3).map(lambda each: f"({' OR '.join(each)})"),
        inner.map(lambda each: f"(NOT {each})"),
    ),
    max_leaves=6,
)
"""Conditions in Spark's SQL on the columns of ``SUBJECT``."""


class Rows:
    """A table in SQLite."""

    def __init__(self, rows: Iterable[Row] = ROWS) -> None:
        self._base = sqlite3.connect(":memory:")
        self._base.execute("PRAGMA case_sensitive_like = ON")
        self._base.execute(f"CREATE TABLE t ({', '.join(COLUMNS)})")
        self._base.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(COLUMNS))})", rows)

    def satisfying(self, condition: str) -> set[Row]:
        """The rows for which a condition is true."""
        sqlite = condition.replace("DATE '", "'").replace("<=>", "IS")
        return set(self._base.execute(f"SELECT * FROM t WHERE {sqlite}"))
