"""Which texts are statements, and what is said of those that are not."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablectl.delta.protocol import Client
from tablectl.insight.conflict_context import ConflictContext
from tablectl.insight.statements.command_actions import StatementError
from tablectl.insight.statements.commits_of_statement import commits_of
from tablectl.insight.statements.parse_writes import DEEPEST, LONGEST, parse_statement
from tests.insight.statements.sql_rows import SUBJECT

_SPARK = ConflictContext(client=Client("delta-spark", (4, 4, 0)))


def commits(sql: str) -> None:
    commits_of(parse_statement(sql), SUBJECT, _SPARK)


def refusal(sql: str) -> str:
    with pytest.raises(StatementError) as raised:
        commits(sql)
    return str(raised.value)


@pytest.mark.parametrize(
    ("sql", "verb", "parts"),
    [
        ("UPDATE s.t SET x = 1", "UPDATE", ("s", "t")),
        ("DELETE FROM spark_catalog.s.t AS u WHERE u.x = 1 ;", "DELETE", ("spark_catalog", "s", "t")),
        ("/* why */ DELETE FROM `s`.`t` -- all\n", "DELETE", ("s", "t")),
        ("MERGE INTO s.t USING u ON t.x = u.x WHEN MATCHED THEN DELETE", "MERGE", ("s", "t")),
        ("MERGE WITH SCHEMA EVOLUTION INTO s.t USING u ON t.x = u.x WHEN MATCHED THEN DELETE", "MERGE", ("s", "t")),
        ("INSERT INTO delta.`/lake/t` VALUES (1)", "INSERT", ("delta", "/lake/t")),
        ("INSERT OVERWRITE s.t SELECT 1", "INSERT OVERWRITE", ("s", "t")),
        ("INSERT OVERWRITE TABLE s.t PARTITION (p = 'a') SELECT 1", "INSERT OVERWRITE", ("s", "t")),
        ("INSERT INTO s.t REPLACE WHERE p = 'a' SELECT * FROM u", "INSERT … REPLACE WHERE", ("s", "t")),
        ("WITH c AS (SELECT 1) INSERT INTO s.t SELECT * FROM c", "INSERT", ("s", "t")),
        ("TRUNCATE TABLE s.t", "TRUNCATE", ("s", "t")),
    ],
)
def test_statements(sql: str, verb: str, parts: tuple[str, ...]) -> None:
    found = parse_statement(sql)
    assert (found.verb, found.parts) == (verb, parts)
    commits(sql)


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("", "the statement is empty"),
        (" ; -- nothing\n;", "holds 0"),
        ("DELETE FROM", "cannot be read"),
        ("DELETE FROM s.t WHERE p = 'a", "cannot be read"),
        ("DELETE FROM s.t WHERE (p = 'a'", "cannot be read"),
        ("DELETE FROM s.t WHERE p = 'a'; DELETE FROM s.t", "holds 2"),
        ("SELECT * FROM s.t", "SELECT is not one of"),
        ("DROP TABLE s.t", "DROP is not one of"),
        ("CREATE TABLE s.t AS SELECT 1", "accepted is CREATE OR REPLACE TABLE"),
        ("WITH c AS (SELECT 1) SELECT * FROM c", "SELECT is not one of"),
        ("FROM u INSERT INTO s.t SELECT *", "is not one of"),
        ("INSERT INTO s.t DEFAULT VALUES", "DEFAULT is not known here"),
        ("DELETE FROM IDENTIFIER('s.t')", "cannot tell which table"),
        ("DELETE FROM s.t WHERE p = ${day}", "write the value in its place"),
        ("DELETE FROM s.t WHERE p = 'a\x00'", "not text"),
        ("DELETE FROM s.t WHERE p = '\ud800'", "not text"),
        ("DELETE FROM s.other", "writes s.other, not s.t"),
        ("DELETE FROM u.t", "writes u.t, not s.t"),
        ("DELETE FROM lake.s.t", "writes lake.s.t, not s.t"),
        ("DELETE FROM delta.`/lake/other`", "writes delta.`/lake/other`, not s.t"),
        ("UPDATE lake.orders SET", "lacks something"),
        ("MERGE INTO lake.orders t USING s ON t.id = s.id", "lacks something"),
    ],
)
def test_what_is_not_such_a_statement(sql: str, said: str) -> None:
    assert said in refusal(sql)


@pytest.mark.parametrize(
    "written", ["s.t", "S.T", "t", "spark_catalog.s.t", "delta.`/lake/t/`", "delta.`file:/lake/t`"]
)
def test_names_that_mean_the_table(written: str) -> None:
    commits(f"DELETE FROM {written} WHERE p = 'a'")


def test_a_script_of_a_megabyte_is_refused_before_it_is_parsed() -> None:
    script = "DELETE FROM s.t WHERE p = 'a';\n" * 33_000
    began = time.process_time()
    assert f"at most {LONGEST:,} are read" in refusal(script)
    assert time.process_time() - began < 1


@pytest.mark.parametrize(
    "condition",
    [
        f"{'(' * DEEPEST * 2}p = 'a'{')' * DEEPEST * 2}",
        f"p = CAST(x AS {'ARRAY<' * 20}INT{'>' * 20})",
        f"p = {'struct(' * 20}x{')' * 20}",
        f"{'(' * 30_000}p = 'a'{')' * 30_000}",
        f"{'NOT ' * 12_000}b",
        f"x = {'- ' * 20_000}1",
        f"{'CASE WHEN b THEN ' * 3_000}1{' END' * 3_000} = 1",
    ],
)
def test_nesting_without_end_is_refused(condition: str) -> None:
    assert "nested too deeply" in refusal(f"DELETE FROM s.t WHERE {condition}")


@pytest.mark.parametrize(
    "condition",
    [
        " AND ".join(f"x <> {each}" for each in range(4_000)),
        " OR ".join(f"p = 'a{each}' AND n = {each % 7}" for each in range(1_500)),
        " AND ".join(f"(p = 'a{each}' OR n = {each})" for each in range(1_500)),
        f"p IN ({', '.join(repr(str(each)) for each in range(7_000))})",
    ],
)
def test_long_conditions_take_bounded_time(condition: str) -> None:
    began = time.process_time()
    commits(f"DELETE FROM s.t WHERE {condition}")
    assert time.process_time() - began < 15


_MERGE = """
MERGE INTO s.t AS t USING ( SELECT * FROM u WHERE p = 'a' ) AS u ON t . p = u . p AND t.x = 1
WHEN MATCHED AND t.p IS NULL THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT ( p , x ) VALUES ( u.p , 1 )
WHEN NOT MATCHED BY SOURCE THEN DELETE
"""
_INSERT = """
INSERT INTO s.t PARTITION ( p = 'a' , n ) ( d , b )
SELECT d , b FROM s.t JOIN u ON t.x = u.x WHERE d > DATE '2026-01-01' GROUP BY d
"""
_REPLACE = """
INSERT INTO s.t REPLACE WHERE p IN ( 'a' , NULL ) OR NOT n BETWEEN - 1 AND 2
VALUES ( 'a' , 1 , CAST ( '2026-01-01' AS DATE ) , TRUE , 3L )
"""
_OVERWRITE = (
    "WITH c AS ( SELECT CASE WHEN b THEN 1 END AS n , * FROM t ) INSERT OVERWRITE TABLE s.t BY NAME SELECT * FROM c"
)
_UPDATE = "UPDATE s.t AS t SET t.p = 'b' , x = ( SELECT max ( x ) FROM s.t ) WHERE p LIKE 'a%' AND d <=> '2026-01-01' ;"
_ALTER = "ALTER TABLE s.t SET TBLPROPERTIES ( 'a' = 'b' , delta.c = TRUE ) CLUSTER BY ( a , `b` ) DROP FEATURE x"
_COLUMNS = "ALTER TABLE s.t ALTER COLUMN a TYPE DECIMAL ( 10 , 2 ) , b COMMENT 'x' ADD CONSTRAINT c CHECK ( x > 0 )"
_OPTIMIZE = "OPTIMIZE s.t FULL WHERE p = 'a' ZORDER BY ( x , d ) REORG TABLE s.t WHERE n > 1 APPLY ( PURGE )"
_CREATE = "CREATE OR REPLACE TABLE s.t PARTITIONED BY ( p ) AS SELECT 1 VACUUM s.t RETAIN 7 HOURS DRY RUN"
_STATEMENTS = (_MERGE, _INSERT, _REPLACE, _OVERWRITE, _UPDATE, _ALTER, _COLUMNS, _OPTIMIZE, _CREATE)


@st.composite
def _spoilt(draw: st.DrawFn) -> str:
    """A statement with words left out, doubled or taken from others."""
    words = draw(st.sampled_from(_STATEMENTS)).split()
    every = sorted({word for each in _STATEMENTS for word in each.split()})
    for _ in range(draw(st.integers(0, 4))):
        place = draw(st.integers(0, len(words) - 1))
        words[place : place + draw(st.integers(0, 2))] = draw(st.lists(st.sampled_from(every), max_size=2)) or [""]
    return " ".join(words)


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(max_size=60), _spoilt(), _spoilt()))
def test_any_text_is_a_statement_or_refused(text: str) -> None:
    try:
        commits(text)
    except StatementError as error:
        said = error.message
    else:
        said = ""
    assert said.isprintable()
