"""The statements that change settings, files or the whole table, and what is said of texts that are none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tablectl.delta.protocol import Client
from tablectl.insight.conflict_context import ConflictContext
from tablectl.insight.statements.command_actions import Alter, Rearrange, Replace, Send, StatementError
from tablectl.insight.statements.commits_of_statement import commits_of
from tablectl.insight.statements.parse_writes import DEEPEST, parse_statement
from tablectl.model.commit_contents import Kind, MetadataChange
from tests.insight.statements.sql_rows import SUBJECT

_SPARK = ConflictContext(client=Client("delta-spark", (4, 4, 0)))
_DATABRICKS = ConflictContext(client=Client("databricks", (16, 4)))


def kinds(sql: str, setting: ConflictContext = _SPARK) -> list[str]:
    return [each.kind.name for each in commits_of(parse_statement(sql), SUBJECT, setting)]


def refusal(sql: str, setting: ConflictContext = _SPARK) -> str:
    with pytest.raises(StatementError) as raised:
        kinds(sql, setting)
    return str(raised.value)


@pytest.mark.parametrize(
    ("sql", "verb", "made"),
    [
        ("ALTER TABLE s.t SET TBLPROPERTIES ('owner.team' = 'x')", "ALTER … SET TBLPROPERTIES", ["SET_PROPERTIES"]),
        ("alter table s.t set tblproperties (a.b 'x', c = 1, d = true)",
         "ALTER … SET TBLPROPERTIES", ["SET_PROPERTIES"]),
        ("ALTER TABLE s.t UNSET TBLPROPERTIES IF EXISTS ('a', b.c);",
         "ALTER … UNSET TBLPROPERTIES", ["UNSET_PROPERTIES"]),
        ("ALTER TABLE s.t CLUSTER BY (x, `a b`.c)", "ALTER … CLUSTER BY", ["CLUSTER_BY"]),
        ("ALTER TABLE s.t CLUSTER BY NONE", "ALTER … CLUSTER BY", []),
        ("ALTER TABLE s.t ADD COLUMNS (y INT COMMENT 'a, b', z STRUCT<a: INT, b: STRING>)",
         "ALTER … ADD COLUMNS", ["ADD_COLUMNS"]),
        ("ALTER TABLE s.t ADD COLUMN y DECIMAL(10, 2) AFTER x", "ALTER … ADD COLUMNS", ["ADD_COLUMNS"]),
        ("ALTER TABLE s.t RENAME COLUMN x TO y", "ALTER … RENAME COLUMN", ["CHANGE_COLUMN"]),
        ("ALTER TABLE s.t DROP COLUMN x", "ALTER … DROP COLUMN", ["CHANGE_COLUMN"]),
        ("ALTER TABLE s.t DROP COLUMNS IF EXISTS (x, n)", "ALTER … DROP COLUMN", ["CHANGE_COLUMN"]),
        ("ALTER TABLE s.t REPLACE COLUMNS (p STRING, n INT)", "ALTER … REPLACE COLUMNS", ["CHANGE_COLUMN"]),
        ("ALTER TABLE s.t ALTER COLUMN x TYPE BIGINT", "ALTER … ALTER COLUMN", ["WIDEN_COLUMN"]),
        ("ALTER TABLE s.t ALTER x COMMENT 'it''s; a number'", "ALTER … ALTER COLUMN", ["COMMENT_COLUMN"]),
        ("ALTER TABLE s.t ALTER COLUMN x SET NOT NULL", "ALTER … ALTER COLUMN", ["SET_NOT_NULL"]),
        ("ALTER TABLE s.t ALTER COLUMN x DROP NOT NULL", "ALTER … ALTER COLUMN", ["CHANGE_COLUMN"]),
        ("ALTER TABLE s.t ALTER COLUMN x SET DEFAULT (n >= 5)", "ALTER … ALTER COLUMN", ["CHANGE_COLUMN"]),
        ("ALTER TABLE s.t ALTER COLUMN x SYNC IDENTITY", "ALTER … ALTER COLUMN", ["CHANGE_COLUMN"]),
        ("ALTER TABLE s.t CHANGE COLUMN x x BIGINT COMMENT 'n'", "ALTER … ALTER COLUMN", ["WIDEN_COLUMN"]),
        ("ALTER TABLE s.t ADD CONSTRAINT c CHECK (x > 0 AND p IN ('a', ')'))",
         "ALTER … ADD CONSTRAINT", ["ADD_CONSTRAINT"]),
        ("ALTER TABLE s.t DROP CONSTRAINT IF EXISTS c", "ALTER … DROP CONSTRAINT", ["DROP_CONSTRAINT"]),
        ("ALTER TABLE s.t RENAME TO s.u", "ALTER … RENAME TO", []),
        ("ALTER TABLE s.t SET LOCATION '/x'", "ALTER … SET LOCATION", []),
        ("COMMENT ON TABLE s.t IS 'orders'", "COMMENT ON TABLE", ["SET_PROPERTIES"]),
        ("COMMENT ON COLUMN s.t.x IS NULL", "COMMENT ON COLUMN", ["COMMENT_COLUMN"]),
        ("COMMENT ON COLUMN spark_catalog.s.t.x.deep.er IS 'y'", "COMMENT ON COLUMN", ["COMMENT_COLUMN"]),
        ("OPTIMIZE s.t", "OPTIMIZE", ["OPTIMIZE"]),
        ("OPTIMIZE '/lake/t' WHERE p = 'a' ZORDER BY (x, d)", "OPTIMIZE", ["OPTIMIZE"]),
        ("OPTIMIZE delta.`file:/lake/t/` FULL", "OPTIMIZE", ["OPTIMIZE"]),
        ("REORG TABLE s.t WHERE p = 'a' APPLY (PURGE)", "REORG", ["REORG"]),
        ("REORG TABLE s.t APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 2))",
         "REORG … UPGRADE UNIFORM", ["UPGRADE_UNIFORM", "REORG", "SET_PROPERTIES"]),
        ("RESTORE TABLE s.t TO VERSION AS OF 3", "RESTORE", ["RESTORE"]),
        ("RESTORE s.t TO TIMESTAMP AS OF '2026-01-01'", "RESTORE", ["RESTORE"]),
        ("CREATE OR REPLACE TABLE s.t (p STRING) USING delta PARTITIONED BY (p) COMMENT 'AS' AS SELECT * FROM u",
         "REPLACE TABLE", ["REPLACE_TABLE"]),
        ("REPLACE TABLE s.t CLUSTER BY (p) AS SELECT * FROM s.t", "REPLACE TABLE", ["REPLACE_TABLE"]),
        ("CREATE OR REPLACE TABLE s.t SHALLOW CLONE s.u VERSION AS OF 1", "REPLACE TABLE … CLONE", ["CLONE"]),
        ("CREATE TABLE IF NOT EXISTS s.t (a INT)", "CREATE TABLE IF NOT EXISTS", []),
        ("VACUUM s.t", "VACUUM", ["VACUUM", "VACUUM"]),
        ("VACUUM '/lake/t' LITE RETAIN 0.5 HOURS", "VACUUM", ["VACUUM", "VACUUM"]),
        ("VACUUM s.t RETAIN .5 HOURS", "VACUUM", ["VACUUM", "VACUUM"]),
        ("VACUUM s.t RETAIN 168 HOURS DRY RUN", "VACUUM", []),
        ("/* why */ OPTIMIZE -- which\n s.t", "OPTIMIZE", ["OPTIMIZE"]),
    ],
)  # fmt: skip
def test_the_commits_of_a_statement(sql: str, verb: str, made: list[str]) -> None:
    assert parse_statement(sql).verb == verb.replace("ALTER …", "ALTER TABLE …")
    assert kinds(sql) == made


@pytest.mark.parametrize(
    "written", ["s.t", "S.T", "t", "`s`.`t`", "spark_catalog.s.t", "delta.`/lake/t/`", "delta.`file:///lake/t`"]
)
@pytest.mark.parametrize(
    "sql", ["OPTIMIZE {}", "ALTER TABLE {} CLUSTER BY (x)", "VACUUM {}", "COMMENT ON TABLE {} IS ''"]
)
def test_any_spelling_of_the_table(written: str, sql: str) -> None:
    assert kinds(sql.format(written))


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("ALTER TABLE s.t", "one of the forms of ALTER TABLE is expected, not its end"),
        ("ALTER TABLE s.t FREEZE", "SET TBLPROPERTIES ('key' = 'value', …)"),
        ("ALTER VIEW s.t SET TBLPROPERTIES ('a' = 'b')", "TABLE is expected, not 'VIEW'"),
        ("ALTER TABLE s.t SET TBLPROPERTIES ('a' = )", "a value in quotes is expected, not ')'"),
        ("ALTER TABLE s.t SET TBLPROPERTIES ('a' = 'b') NOW", "its end is expected, not 'NOW'"),
        ("ALTER TABLE s.t ADD COLUMNS (x)", "a column with its type is expected"),
        ("ALTER TABLE s.t ALTER COLUMN x", "a name is expected, not its end"),
        ("ALTER TABLE s.t ALTER COLUMN x COMMENT", "a change of the column is expected"),
        ("ALTER TABLE s.t ADD CONSTRAINT c CHECK ()", "an expression is expected"),
        ("ALTER TABLE s.t ADD CONSTRAINT c CHECK (x > 0", "')' is expected, not its end"),
        ("ALTER TABLE s.t DROP FEATURE", "ALTER TABLE table, followed by"),
        ("OPTIMIZE", "accepted is OPTIMIZE table [FULL] [WHERE condition] [ZORDER BY (column, …)]"),
        ("OPTIMIZE s.t WHERE", "a condition is expected, not its end"),
        ("OPTIMIZE s.t WHERE p =", "cannot be read"),
        ("OPTIMIZE s.t WHERE p = 'a' ORDER BY p", "cannot be read"),
        ("OPTIMIZE s.t WHERE p = 'a' RETURNING p", "cannot be read"),
        ("OPTIMIZE a.b.c.d", "at most three parts"),
        ("REORG TABLE s.t", "REORG TABLE table [WHERE condition] APPLY (PURGE)"),
        ("REORG TABLE s.t APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = x))", "a whole number is expected"),
        ("RESTORE TABLE s.t TO 3", "VERSION AS OF or TIMESTAMP AS OF is expected"),
        ("CREATE TABLE s.t (a INT)", "OR REPLACE is expected"),
        ("VACUUM s.t RETAIN HOURS", "a value in quotes is expected, not 'HOURS'"),
        ("VACUUM s.t GENTLY", "DRY RUN is expected, not 'GENTLY'"),
        ("COMMENT ON COLUMN x IS 'y'", "a table and a column is expected"),
        ("COMMENT ON TABLE s.t IS 5", "a quoted text is expected"),
        ("OPTIMIZE s.t; OPTIMIZE s.t", "holds 2"),
        ("OPTIMIZE `s.t", "` has no end"),
        ("OPTIMIZE s.``", "a name is expected, not '``'"),
        ("OPTIMIZE s.2024", "its end is expected, not '.2024'"),
        ("OPTIMIZE s.2a", "writes s.`2a`, not s.t"),
        ("ALTER TABLE s.t DROP CONSTRAINT 'c", "' has no end"),
        ("OPTIMIZE s.t /* why", "/* has no end"),
        ("OPTIMIZE s.other", "writes s.other, not s.t"),
        ("COMMENT ON COLUMN s.other.x IS ''", "writes s.other.x, not s.t"),
        ("COPY INTO s.t FROM '/x' FILEFORMAT = CSV", "it runs on Databricks: add --client databricks"),
        ("COPY INTO s.t FROM '/x'", "accepted is COPY INTO table FROM … FILEFORMAT = …"),
    ],
)  # fmt: skip
def test_what_is_not_such_a_statement_and_which_form_is(sql: str, said: str) -> None:
    assert said in refusal(sql)


def test_copy_into_is_an_append_on_databricks() -> None:
    assert kinds("COPY INTO s.t FROM '/x' FILEFORMAT = CSV", _DATABRICKS) == ["COPY_INTO"]


def test_what_a_statement_says_of_columns_and_files() -> None:
    changed = parse_statement("ALTER TABLE s.t ALTER COLUMN x COMMENT 'y', n TYPE DECIMAL(10, 2), p FIRST").action
    assert changed == Alter(Kind.CHANGE_COLUMN, MetadataChange(schema="other"))
    assert parse_statement("OPTIMIZE s.t ZORDER BY x, d").action == Rearrange(Kind.OPTIMIZE, zorder=True)
    made = parse_statement("CREATE OR REPLACE TABLE s.t PARTITIONED BY (p, d DATE) AS SELECT 1").action
    assert made == Replace(("p", "d"), query=True)
    action = parse_statement(r"ALTER TABLE s.t SET TBLPROPERTIES ('a\'b' = 'c''d\%')").action
    assert isinstance(action, Send)
    assert dict(action.operation.properties) == {"a'b": r"c'd\%"}


def test_a_vacuum_leaves_no_commit_on_s3() -> None:
    there = replace(SUBJECT, location="s3://lake/t")
    assert commits_of(parse_statement("VACUUM s.t"), there, _SPARK) == ()
    assert len(commits_of(parse_statement("VACUUM s.t"), replace(SUBJECT, location="abfss://c@a/t"), _SPARK)) == 2


@pytest.mark.parametrize("condition", ["(" * DEEPEST * 2 + "p = 'a'" + ")" * DEEPEST * 2, "NOT " * 12_000 + "b"])
def test_a_condition_without_end_is_refused(condition: str) -> None:
    assert "nested too deeply" in refusal(f"OPTIMIZE s.t WHERE {condition}")


def test_brackets_without_end_take_bounded_time() -> None:
    assert "is expected" in refusal(f"ALTER TABLE s.t ADD CONSTRAINT c CHECK {'(' * 60_000}")
    assert "its end is expected" in refusal(f"ALTER TABLE s.t ADD COLUMNS {'a INT, ' * 8_000} b INT)")
