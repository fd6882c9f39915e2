"""Which table a statement writes, read from its head."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablectl.writers import sql_writes
from tablectl.writers.sql_writes import sql_write


@pytest.mark.parametrize(
    ("statement", "table", "mode"),
    [
        ("INSERT INTO sales.orders VALUES (1)", "sales.orders", "append"),
        ("insert into table `my lake`.`a``b` values (1)", "`my lake`.`a``b`", "append"),
        ("INSERT INTO delta.`/lake/t` (a, b) VALUES (1, 'FROM here')", "delta.`/lake/t`", "append"),
        ("-- load\n/* INSERT INTO x */ INSERT INTO sales.orders VALUES (1)", "sales.orders", "append"),
        ("/* a /* b */ c */ INSERT INTO t VALUES (1)", "t", "append"),
        ("-- load\rINSERT INTO t VALUES (1)", "t", "append"),
        ("INSERT INTO t SELECT * FROM s", "t", "append, unless it reads t"),
        ("INSERT INTO t TABLE s", "t", "append, unless it reads t"),
        ("INSERT INTO t VALUES ((SELECT max(id) FROM t))", "t", "append, unless it reads t"),
        ("WITH s AS (SELECT 1) INSERT INTO t SELECT * FROM s", "t", "append, unless it reads t"),
        ("WITH s AS (SELECT 1) MERGE INTO t USING s ON a WHEN MATCHED THEN UPDATE SET * ", "t", "rewrite"),
        (
            "WITH s(a, b) AS (SELECT 1, 2), r AS (SELECT 3) MERGE INTO t USING s ON a WHEN MATCHED THEN DELETE",
            "t",
            "rewrite",
        ),
        (
            "WITH RECURSIVE s(a) MAX RECURSION LEVEL 5 AS (SELECT 1) DELETE FROM t WHERE a IN (SELECT * FROM s)",
            "t",
            "rewrite",
        ),
        ("WITH s AS (SELECT 1) FROM s INSERT INTO t SELECT *", "t", "rewrite"),
        ("FROM s INSERT INTO t SELECT *", "t", "rewrite"),
        ("FROM s INSERT INTO t SELECT 1 INSERT INTO t SELECT 2", "t", "rewrite"),
        ("FROM s INSERT INTO t SELECT 1 INSERT OVERWRITE t SELECT 2", "t", "any"),
        ("UPDATE t SET a = 'LONG'", "t", "rewrite"),
        ("INSERT INTO t VALUES ('LONG')", "t", "rewrite"),
        ("WITH s AS (SELECT 'LONG') INSERT INTO t SELECT * FROM s", None, "any"),
        ("FROM s INSERT INTO t SELECT 1 /* LONG */ INSERT INTO u SELECT 1", None, "any"),
        ("INSERT WITH SCHEMA EVOLUTION INTO t SELECT 1", "t", "any"),
        ("INSERT INTO t REPLACE WHERE day = 1 SELECT 1", "t", "any"),
        ("INSERT OVERWRITE t SELECT 1", "t", "any"),
        ("MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN DELETE", "t", "rewrite"),
        ("MERGE WITH SCHEMA EVOLUTION INTO t USING s ON true WHEN MATCHED THEN DELETE", "t", "any"),
        ("UPDATE lake.sales.t SET a = 1", "lake.sales.t", "rewrite"),
        ("DELETE FROM t", "t", "rewrite"),
        ("OPTIMIZE t ZORDER BY (a)", "t", "rewrite"),
        ("ALTER TABLE t ADD COLUMNS (a INT)", "t", "any"),
        ("CREATE OR REPLACE TABLE t AS SELECT 1", "t", "any"),
        ("CREATE TABLE IF NOT EXISTS t (a INT)", "t", "any"),
        ("TRUNCATE TABLE t", "t", "any"),
        ("RESTORE TABLE t TO VERSION AS OF 1", "t", "any"),
        ("INSERT INTO IDENTIFIER(:t) VALUES (1)", None, "append"),
        ("BEGIN INSERT INTO t VALUES (1); END", None, "any"),
        ("EXECUTE IMMEDIATE 'INSERT INTO t VALUES (1)'", None, "any"),
        ("FROM s INSERT INTO a SELECT 1 INSERT INTO b SELECT 2", None, "any"),
    ],
)
def test_statements_that_write(statement: str, table: str | None, mode: str) -> None:
    found = sql_write(statement.replace("LONG", "x" * 1_000_000))
    assert found is not None
    assert found.table == table
    told = str(found.mode)
    if found.may_append:
        told = "append, unless it reads t" if found.reads else "append"
    assert told == mode


@pytest.mark.parametrize(
    "statement",
    [
        "",
        "SELECT 'INSERT INTO t'",
        "WITH s AS (SELECT 1) SELECT * FROM s",
        "WITH s AS (SELECT 1) SELECT update, delete, insert, merge FROM s",
        "WITH s AS (SELECT 1) (SELECT update FROM s)",
        "FROM s SELECT insert, merge",
        "SELECT 'LONG'",
        "SHOW TABLES",
        "DESCRIBE TABLE EXTENDED t",
        "EXPLAIN INSERT INTO t VALUES (1)",
        "CREATE OR REPLACE TEMP VIEW v AS SELECT 1",
        "DROP TABLE t",
        "VACUUM t",
        "INSERT OVERWRITE DIRECTORY '/x' SELECT 1",
        "SET spark.x = 1",
        "USE sales",
        "(SELECT 1)",
        "/* a /* b */ INSERT INTO t VALUES (1) */ SELECT 1",
        "/* a /*+ b */ SELECT 1 /* */",
    ],
)
def test_statements_without_a_table_to_guard(statement: str) -> None:
    assert sql_write(statement.replace("LONG", "x" * 1_000_000)) is None


@pytest.mark.parametrize(
    ("head", "repeated", "most"),
    [
        ("WITH s AS (SELECT 1) SELECT a", ", update, delete", 20),
        ("SELECT a", ", update, delete", 1),
        ("MERGE INTO t USING s ON a WHEN MATCHED THEN UPDATE SET a = 1", ", a = 1", 12_100),
        ("INSERT INTO t VALUES (1)", ", (1)", 12_010),
        ("INSERT INTO t VALUES '", r"\'", 10),
        ("INSERT INTO t VALUES `", "``", 10),
    ],
)
def test_no_token_is_read_twice(monkeypatch: pytest.MonkeyPatch, head: str, repeated: str, most: int) -> None:
    """The time of a statement grows with its length, and not with its square."""
    count = 0

    def counted(text: str) -> Iterator[Any]:
        nonlocal count
        for token in tokens(text):
            count += 1
            yield token

    tokens = sql_writes._tokens
    monkeypatch.setattr(sql_writes, "_tokens", counted)
    sql_write(head + 3_000 * repeated)
    assert 0 < count <= most


@given(st.text(max_size=200))
def test_no_text_is_an_error(text: str) -> None:
    sql_write(text)
    sql_write(f"INSERT INTO {text}")
    sql_write(f"WITH {text}")
