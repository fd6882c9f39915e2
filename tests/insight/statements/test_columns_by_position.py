"""An INSERT fills columns by position: the partitions that SQLite writes are never taken for others."""

from __future__ import annotations

import sqlite3
from itertools import permutations, product

import pytest

from tablectl.conflicts.transactions import ConflictResult
from tablectl.delta.names import TableName
from tablectl.delta.protocol import Client
from tablectl.delta.schema import Field, Schema
from tablectl.insight.conflict_context import ConflictContext
from tablectl.insight.statements.pair_outcomes import between
from tablectl.insight.statements.parse_writes import parse_statement
from tablectl.insight.statements.target import StatementTable

_COLUMNS = ("a", "p", "v")
_TABLE = StatementTable(
    name=TableName("spark_catalog", ("s", "t")),
    location="/lake/t",
    schema=Schema(tuple(Field(each, "string") for each in _COLUMNS)),
    partition_columns=("p",),
)
_UPDATE = "UPDATE t SET v = 'z' WHERE p = 'y'"
_ORDERS = [", ".join(each) for each in permutations(_COLUMNS)]
_LISTS = ["", *(f"({each})" for each in _ORDERS)]
_QUERIES = [
    "SELECT * FROM t WHERE p = 'x'",
    "SELECT * FROM t WHERE a = 'x'",
    "SELECT * FROM t AS q WHERE q.p = 'x' AND v = 'x'",
    "SELECT * FROM (SELECT * FROM t WHERE p = 'x')",
    "SELECT * FROM (SELECT * FROM t) WHERE p = 'x'",
    "SELECT * FROM t WHERE p = 'x' UNION ALL SELECT * FROM t WHERE a = 'x'",
    "SELECT * FROM (SELECT * FROM t WHERE p = 'x' UNION SELECT v, a, p FROM t WHERE v = 'x')",
    "SELECT t.* FROM t WHERE p = 'x'",
    "SELECT 'x', * FROM (SELECT a, v FROM t WHERE p = 'x')",
    *(f"SELECT {order} FROM t WHERE p = 'x'" for order in _ORDERS),
    *(f"SELECT {order} FROM (SELECT * FROM t WHERE p = 'x')" for order in _ORDERS),
    *(f"SELECT * FROM (SELECT {order} FROM t WHERE p = 'x')" for order in _ORDERS),
    *(f"WITH c AS (SELECT {order} FROM t WHERE p = 'x') SELECT * FROM c" for order in _ORDERS),
    *(f"WITH c AS (SELECT {order} FROM t) SELECT * FROM c WHERE p = 'x'" for order in _ORDERS),
    *(f"WITH c AS (SELECT * FROM t WHERE p = 'x') SELECT {order} FROM c" for order in _ORDERS),
    *(f"WITH c(a, p, v) AS (SELECT {order} FROM t) SELECT * FROM c WHERE p = 'x'" for order in _ORDERS),
    *(f"WITH t AS (SELECT {order} FROM s.t) SELECT * FROM t WHERE p = 'x'" for order in _ORDERS),
    *(f"WITH t AS (SELECT a AS p, p AS a, v FROM s.t) SELECT {order} FROM t WHERE p = 'x'" for order in _ORDERS),
    "SELECT a AS p, p AS a, v FROM t WHERE p = 'x'",
    "SELECT a AS p, p AS a, v FROM (SELECT p AS a, a AS p, v FROM t) WHERE p = 'x'",
]


def _written(insert: str) -> set[str]:
    """The partitions of the rows that it inserts."""
    base = sqlite3.connect(":memory:")
    base.execute("ATTACH ':memory:' AS s")
    base.execute("CREATE TABLE s.t (a TEXT, p TEXT, v TEXT)")
    base.executemany("INSERT INTO s.t VALUES (?, ?, ?)", product("xyq", repeat=3))
    (last,) = base.execute("SELECT max(rowid) FROM s.t").fetchone()
    base.execute(insert)
    return {each for (each,) in base.execute("SELECT p FROM s.t WHERE rowid > ?", (last,))}


@pytest.mark.parametrize("columns", _LISTS)
@pytest.mark.parametrize("query", _QUERIES)
def test_rows_in_a_partition_that_the_other_reads_are_never_said_to_commit(columns: str, query: str) -> None:
    for verb in ("INSERT INTO", "INSERT OVERWRITE"):
        written = _written(f"INSERT INTO s.t {columns} {query}")
        statement = parse_statement(f"{verb} s.t {columns} {query}")
        found = between(
            parse_statement(_UPDATE), statement, _TABLE, ConflictContext(client=Client("delta-spark", (4, 4, 0)))
        )
        assert "y" not in written or found.outcomes[0].result is not ConflictResult.COMMITS


@pytest.mark.parametrize(
    ("insert", "commits"),
    [
        ("INSERT INTO t SELECT * FROM t WHERE p = 'x'", True),
        ("INSERT INTO t (a, p, v) SELECT * FROM t WHERE p = 'x'", True),
        ("INSERT INTO t (v, p, a) SELECT * FROM t WHERE p = 'x'", True),
        ("INSERT INTO t (p, a, v) SELECT * FROM t WHERE p = 'x'", False),
        ("INSERT INTO t (p, a, v) SELECT * FROM t WHERE a = 'abc'", True),
        ("INSERT INTO t BY NAME SELECT * FROM t WHERE p = 'x'", True),
        ("INSERT INTO t BY NAME SELECT v, p, a FROM t WHERE p = 'x'", True),
        ("INSERT INTO t (p, a, v) SELECT p, a, v FROM t WHERE p = 'x'", True),
        ("INSERT INTO t PARTITION (p = 'x') SELECT * FROM t", True),
        ("INSERT INTO t PARTITION (p) SELECT * FROM t WHERE p = 'x'", False),
    ],
)
def test_a_column_keeps_its_limits_where_it_fills_itself(insert: str, commits: bool) -> None:
    setting = ConflictContext(client=Client("delta-spark", (4, 4, 0)))
    found = between(parse_statement(_UPDATE), parse_statement(insert), _TABLE, setting)
    assert (found.outcomes[0].result is ConflictResult.COMMITS) is commits
