"""Two statements on one table: who fails, and what would keep them apart."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablectl.conflicts.transactions import Conflict, ConflictResult
from tablectl.delta.names import TableName, parse_table
from tablectl.delta.protocol import Client
from tablectl.delta.schema import Field, Schema
from tablectl.insight.conflict_context import LEVEL, VECTORS, ConflictContext
from tablectl.insight.statements.pair_outcomes import StatementPair, between, region_text
from tablectl.insight.statements.parse_writes import parse_statement
from tablectl.insight.statements.suggestions import SuggestedPartitioning, Suggestions, suggest
from tablectl.insight.statements.target import StatementTable
from tablectl.model.commit_contents import Kind
from tests.insight.statements.sql_rows import CONDITIONS, SUBJECT, Rows

_FIELDS = (Field("id", "long"), Field("date", "date"), Field("country", "string"), Field("amount", "decimal(10,2)"))
_ORDERS = StatementTable(
    name=parse_table("lake.orders"),
    location="/lake/orders",
    schema=Schema(_FIELDS),
    partition_columns=("date", "country"),
)
_FLAT = replace(_ORDERS, partition_columns=())
_SPARK = ConflictContext(client=Client("delta-spark", (4, 4, 0)))
_COMMITS, _FAILS, _MAY, _UNKNOWN = (
    ConflictResult.COMMITS,
    ConflictResult.FAILS,
    ConflictResult.MAY_FAIL,
    ConflictResult.UNKNOWN,
)

MERGE = (
    "MERGE INTO lake.orders t USING {source} s ON t.id = s.id AND t.date = s.date {on} "
    "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED {clause} THEN INSERT *"
)


def merge(source: str = "updates", on: str = "", clause: str = "") -> str:
    return MERGE.format(source=source, on=on, clause=clause)


def pair(
    first: str, second: str, subject: StatementTable = _ORDERS, setting: ConflictContext = _SPARK
) -> StatementPair:
    return between(parse_statement(first), parse_statement(second), subject, setting)


def results(
    first: str, second: str, subject: StatementTable = _ORDERS, setting: ConflictContext = _SPARK
) -> tuple[ConflictResult, ConflictResult]:
    one, two = pair(first, second, subject, setting).outcomes
    return one.result, two.result


def ways(first: str, second: str, subject: StatementTable = _ORDERS, setting: ConflictContext = _SPARK) -> Suggestions:
    return suggest(parse_statement(first), parse_statement(second), subject, setting)


_BOTH = (_COMMITS, _COMMITS)
DAY_1 = "UPDATE lake.orders SET amount = 0 WHERE date = '2026-01-01'"
FRENCH = f"{DAY_1} AND country = 'fr'"
DAY_2 = "DELETE FROM lake.orders WHERE date = DATE '2026-01-02' AND amount = 0"


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        (DAY_1, DAY_2, _BOTH),
        (DAY_1, DAY_1, (_FAILS, _FAILS)),
        (DAY_2, DAY_2, (_MAY, _MAY)),
        (DAY_1, "UPDATE $t SET amount = 0 WHERE amount < 0", (_MAY, _FAILS)),
        (DAY_1, "UPDATE $t SET date = '2026-01-01' WHERE date = '2026-01-02'", (_MAY, _COMMITS)),
        (DAY_1, "INSERT INTO $t VALUES (1, DATE '2026-01-02', 'de', 1)", _BOTH),
        (DAY_1, "INSERT INTO $t VALUES (1, DATE '2026-01-01', 'de', 1)", (_FAILS, _COMMITS)),
        (DAY_1, "INSERT INTO $t (date, id) VALUES ('2026-01-02', 1), ('2026-01-03', 2)", _BOTH),
        (DAY_1, "INSERT INTO $t SELECT * FROM updates", (_MAY, _COMMITS)),
        (DAY_1, "INSERT INTO $t BY NAME SELECT * FROM updates WHERE date > DATE '2026-01-01'", (_MAY, _COMMITS)),
        (DAY_1, "INSERT INTO $t BY NAME SELECT * FROM updates WHERE date > DATE '2026-01-02'", _BOTH),
        (DAY_1, "INSERT INTO $t SELECT id, date, country, 1 FROM $t WHERE date = '2026-01-02'", _BOTH),
        (DAY_1, "INSERT INTO $t SELECT id, date, country, 1 FROM $t", (_MAY, _FAILS)),
        (DAY_1, "INSERT OVERWRITE $t PARTITION (date = '2026-01-02') SELECT 1, 'de', 1", _BOTH),
        (DAY_1, "INSERT OVERWRITE $t SELECT 1, DATE '2026-01-02', 'de', 1", (_MAY, _FAILS)),
        (DAY_1, "INSERT INTO $t REPLACE WHERE date > '2026-01-01' SELECT * FROM updates", _BOTH),
        (DAY_1, "TRUNCATE TABLE $t", (_MAY, _FAILS)),
        (DAY_1, "DELETE FROM $t WHERE FALSE", _BOTH),
        (merge(), merge(), (_FAILS, _FAILS)),
        (merge(on="AND t.date = '2026-01-01'"), DAY_2, (_COMMITS, _MAY)),
        (merge("(SELECT * FROM updates WHERE date = '2026-01-01')", "AND t.date = '2026-01-01'"), DAY_2, _BOTH),
        (merge(on="AND t.date = '2026-01-01'", clause="AND s.date = '2026-01-01'"), DAY_2, _BOTH),
        (merge("(SELECT * FROM updates WHERE date = '2026-01-01')"), DAY_2, (_MAY, _COMMITS)),
    ],
)  # fmt: skip
def test_pairs_on_a_partitioned_table(first: str, second: str, said: tuple[ConflictResult, ConflictResult]) -> None:
    first, second = (each.replace("$t", "lake.orders") for each in (first, second))
    assert results(first, second) == said
    assert results(second, first) == (said[1], said[0])


@pytest.mark.parametrize(
    ("condition", "separate"),
    [
        ("country = 'de'", True),
        ("COUNTRY = 'de' AND lake.orders.date > '2025-01-01'", True),
        ("country = 'fr'", False),
        ("country LIKE 'd%'", True),
        ("country LIKE '_r'", False),
        ("country <=> NULL", True),
        ("country IS NULL", True),
        ("country IS NOT NULL", False),
        ("NOT (country <> 'de')", True),
        ("country IN ('de', 'at') OR country BETWEEN 'a' AND 'c'", True),
        ("country > 'f'", False),
        ("country > 'fr'", True),
        ("country = 1", False),
        ("upper(country) = 'DE'", False),
        ("country = current_user()", False),
        ("country = :country", False),
        (r"country = 'd\x65'", False),
        ("country = 'd''e'", False),
        ("country = 'de' COLLATE UTF8_LCASE", False),
        ("country NOT IN ('fr', NULL)", True),
        ("NOT country IN (SELECT country FROM others)", False),
        ("country = 'de' OR id = 1", False),
        ("country = 'de' AND id = 1", True),
    ],
)
def test_conditions_that_keep_out_of_a_country(condition: str, separate: bool) -> None:
    other = "UPDATE lake.orders SET amount = 0 WHERE country = 'fr'"
    assert pair(f"UPDATE lake.orders SET amount = 1 WHERE {condition}", other).separate is separate


_TYPED = [
    ("long", "k = 1", "k = 2", True),
    ("long", "k > 1", "k < 2", True),
    ("long", "k > 1.5", "k <= 1", True),
    ("integer", "k = '1'", "k = 2L", True),
    ("integer", "k = '01'", "k = 2", False),
    ("short", "k = -1", "k >= 0", True),
    ("boolean", "k", "NOT k", True),
    ("boolean", "k = TRUE", "k IS NULL", True),
    ("decimal(10,2)", "k = 1.5", "k = 1.50", False),
    ("decimal(10,2)", "k < 1.5", "k >= 1.50", True),
    ("decimal(38,0)", "k < 0.5", "k > 0.5", False),
    ("double", "k < 1", "k >= 1", True),
    ("double", "k = 1e0", "k = 2", True),
    ("float", "k < 0.1", "k > 0.2", True),
    ("date", "k = '2026-01-01'", "k = DATE '2026-01-02'", True),
    ("date", "k = to_date('2026-01-01')", "k = CAST('2026-01-02' AS DATE)", True),
    ("date", "k = '2026-1-1'", "k = '2026-01-02'", False),
    ("date", "k > '2026-01-01'", "k < '2026-01-02'", True),
    ("timestamp_ntz", "k < TIMESTAMP_NTZ '2026-01-01 00:00:00'", "k >= '2026-01-01'", True),
    ("timestamp", "k < '2026-01-01 00:00:00'", "k >= '2026-01-01'", False),
    ("timestamp", "k < '2026-01-01 00:00:00'", "k >= '2026-02-01'", True),
    ("timestamp", "k = '2026-01-01'", "k <> '2026-01-01'", False),
    ("string", "k = 'a'", "k = 'A'", True),
    ("string", "k = '\uffff'", "k > '\U0001f600'", True),
    ("binary", "k = 'a'", "k = 'b'", False),
]


@pytest.mark.parametrize(("kind", "one", "other", "separate"), _TYPED)
def test_each_type_of_partition_column(kind: str, one: str, other: str, separate: bool) -> None:
    subject = replace(_ORDERS, schema=Schema((*_FIELDS, Field("k", kind))), partition_columns=("k",))
    update = "UPDATE lake.orders SET amount = 0 WHERE "
    assert pair(update + one, update + other, subject).separate is separate


def test_texts_of_a_char_column_are_padded_so_nothing_is_proven() -> None:
    subject = replace(_ORDERS, schema=Schema((Field("k", "string", bytewise=False),)), partition_columns=("k",))
    update = "UPDATE lake.orders SET amount = 0 WHERE "
    assert not pair(f"{update} k = 'a'", f"{update} k = 'b'", subject).separate
    assert pair(f"{update} k IS NULL", f"{update} k IS NOT NULL", subject).separate


def test_an_empty_text_is_stored_as_null() -> None:
    empty = "INSERT INTO lake.orders VALUES (1, DATE '2026-01-01', '', 1)"
    update = "UPDATE lake.orders SET amount = 0 WHERE country "
    assert results(f"{update} IS NULL", empty) == (_FAILS, _COMMITS)
    assert results(f"{update} = ''", empty) == (_COMMITS, _COMMITS)


def test_without_partitions_every_added_file_is_read() -> None:
    found = pair(DAY_1, DAY_2, _FLAT)
    assert [pair_outcome.result for pair_outcome in found.outcomes] == [_MAY, _FAILS]
    assert found.outcomes[1].conflicts == (Conflict.APPEND,)
    assert results(DAY_1, "INSERT INTO lake.orders VALUES (1, '2026-01-02', 'de', 1)", _FLAT) == (_FAILS, _COMMITS)


def test_write_serializable_lets_blind_appends_be() -> None:
    weak = _SPARK.with_property(LEVEL, "WriteSerializable")
    same = "INSERT INTO lake.orders VALUES (1, DATE '2026-01-01', 'de', 1)"
    assert results(DAY_1, same, setting=weak) == (_COMMITS, _COMMITS)
    assert results(DAY_1, f"{same[:24]} SELECT * FROM lake.orders WHERE date = '2026-01-01'", setting=weak) == (
        _FAILS,
        _FAILS,
    )


def test_an_append_by_an_engine_that_does_not_record_it_may_fail_the_other() -> None:
    weak = replace(_SPARK.with_property(LEVEL, "WriteSerializable"), blind_sql=False)
    append = "INSERT INTO lake.orders VALUES (1, DATE '2026-01-01', 'de', 1)"
    assert results(DAY_1, append, setting=weak) == (_MAY, _COMMITS)


def test_identity_values_drawn_by_both() -> None:
    subject = replace(_ORDERS, schema=Schema((*_FIELDS, Field("n", "long", identity=True))))
    insert = "INSERT INTO lake.orders (id, date, country) VALUES (1, '2026-01-01', 'de')"
    found = pair(insert, insert, subject, replace(_SPARK, identity=True))
    assert found.outcomes[0].result is _MAY
    assert found.outcomes[0].conflicts == (Conflict.METADATA_CHANGED,)


def test_schema_evolution() -> None:
    evolving = "MERGE WITH SCHEMA EVOLUTION" + merge(on="AND t.date = '2026-01-02'").removeprefix("MERGE")
    assert Conflict.METADATA_CHANGED in pair(DAY_1, evolving).outcomes[0].conflicts


def test_databricks_by_its_documented_facts() -> None:
    runtime = replace(_SPARK, client=Client("databricks", (15, 4)))
    assert results(DAY_1, DAY_2, setting=runtime) == (_COMMITS, _COMMITS)
    assert results(DAY_1, DAY_1, setting=runtime) == (_MAY, _MAY)
    assert results(DAY_1, "INSERT OVERWRITE lake.orders SELECT 1", setting=runtime) == (_MAY, _MAY)
    # Only conditions in ON are documented to keep a MERGE apart (D63).
    clause = "MERGE INTO lake.orders t USING u s ON t.id = s.id WHEN MATCHED AND t.date = '2026-01-01' THEN DELETE"
    assert results(clause, DAY_2) == (_COMMITS, _COMMITS)
    assert results(clause, DAY_2, setting=runtime) == (_MAY, _COMMITS)


def test_row_level_concurrency_falls_back_for_subqueries() -> None:
    runtime = replace(_SPARK, client=Client("databricks", (15, 4))).with_property(VECTORS, "true")
    plain = pair(DAY_1, DAY_2, _FLAT, runtime)
    queried = pair("DELETE FROM lake.orders WHERE id IN (SELECT id FROM gone)", DAY_2, _FLAT, runtime)
    assert "D51" in plain.outcomes[0].source
    assert "D44" in queried.outcomes[0].source


def test_parts_that_narrow_nothing_are_named_with_the_reason() -> None:
    found = pair(merge(on="AND t.country = 5 AND t.amount > 1 AND s.x = 2"), DAY_1)
    assert dict(found.first[0].passed_over) == {
        "t.id = s.id": "compares with the source",
        "t.date = s.date": "compares with the source",
        "t.country = 5": "country is a STRING: write the value as one",
        "t.amount > 1": "amount is not a partition column",
        "s.x = 2": "compares with the source",
    }


def test_regions_as_text() -> None:
    found = pair("DELETE FROM lake.orders WHERE date > '2026-01-01' AND country IN ('de', 'fr')", DAY_1)
    assert region_text(found.first[0].rewrites, _ORDERS) == "country IN ('de', 'fr') AND date >= DATE '2026-01-02'"


@pytest.mark.parametrize(
    ("query", "reads"),
    [
        ("SELECT 1, DATE '2026-02-01', 'de', 1", None),
        ("SELECT * FROM updates", None),
        ("SELECT * FROM lake.orders WHERE date = '2026-01-01'", "date = DATE '2026-01-01'"),
        ("SELECT o.* FROM orders o JOIN u ON u.id = o.id AND o.date = '2026-01-01'", "date = DATE '2026-01-01'"),
        ("SELECT o.* FROM orders o LEFT JOIN u ON u.id = o.id AND o.date = '2026-01-01'", "anywhere"),
        ("SELECT * FROM lake.orders VERSION AS OF 3 WHERE date = '2026-01-01'", None),
        ("SELECT * FROM (SELECT * FROM lake.orders WHERE country = 'de') WHERE id = 1", "country = 'de'"),
        ("SELECT * FROM orders WHERE country = 'a' UNION SELECT * FROM u", "country = 'a'"),
        ("SELECT * FROM u WHERE id IN (SELECT id FROM lake.orders WHERE country = 'de')", "anywhere"),
        ("TABLE lake.orders", "anywhere"),
        ("WITH c AS (SELECT * FROM lake.orders WHERE country = 'de') SELECT * FROM c", "country = 'de'"),
        ("WITH orders AS (SELECT * FROM orders WHERE country = 'de') SELECT * FROM orders", "anywhere"),
        ("WITH c AS (SELECT * FROM c) SELECT * FROM c", None),
    ],
)  # fmt: skip
def test_what_an_insert_reads_of_its_own_table(query: str, reads: str | None) -> None:
    found = pair(f"INSERT INTO lake.orders {query}", DAY_1).first[0]
    assert (found.reads and region_text(found.reads, _ORDERS)) == reads


_ELSEWHERE = "INSERT INTO lake.orders VALUES (1, DATE '2026-02-02', 'de', 1)"


@pytest.mark.parametrize(
    ("query", "flat", "partitioned"),
    [
        ("SELECT * FROM lake.orders", _FAILS, _FAILS),
        ("SELECT * FROM lake.orders UNION ALL SELECT * FROM u", _FAILS, _FAILS),
        ("SELECT * FROM (SELECT * FROM lake.orders)", _FAILS, _MAY),
        ("SELECT * FROM (SELECT * FROM lake.orders) WHERE date = '2026-01-01'", _FAILS, _MAY),
        ("WITH c AS (SELECT * FROM lake.orders) SELECT * FROM c WHERE date = '2026-01-01'", _MAY, _MAY),
        ("WITH c AS (SELECT * FROM lake.orders) SELECT * FROM u", _MAY, _MAY),
        ("SELECT max(id), date, 'de', 1 FROM lake.orders GROUP BY date HAVING date = '2026-01-01'", _FAILS, _MAY),
        ("SELECT o.* FROM lake.orders o JOIN u ON u.id = o.id", _FAILS, _MAY),
        ("SELECT * FROM (SELECT * FROM lake.orders LIMIT 0)", _MAY, _MAY),
        ("SELECT * FROM lake.orders VERSION AS OF 3", _COMMITS, _COMMITS),
        ("SELECT * FROM lake.orders TIMESTAMP AS OF '2026-01-01'", _COMMITS, _COMMITS),
    ],
)
def test_a_query_of_the_table_itself_fails_for_certain_only_where_nothing_narrows_it(
    query: str, flat: ConflictResult, partitioned: ConflictResult
) -> None:
    statement = f"INSERT INTO lake.orders {query}"
    assert results(statement, _ELSEWHERE, _FLAT)[0] is flat
    assert results(statement, _ELSEWHERE)[0] is partitioned


def test_a_merge_that_may_evolve_the_schema_may_also_add_nothing() -> None:
    """Raced on 4.4.0 under WriteSerializable: the MERGE commits after a blind INSERT if it adds no column."""
    setting = _SPARK.with_property(LEVEL, "WriteSerializable")
    evolving = "MERGE WITH SCHEMA EVOLUTION INTO lake.orders t USING u s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *"
    assert results(evolving, _ELSEWHERE, _FLAT, setting)[0] is _MAY


# Generated columns

_EVENTS = StatementTable(
    name=parse_table("lake.events"),
    location="/lake/events",
    schema=Schema(
        (
            Field("id", "long"),
            Field("eventTime", "timestamp"),
            Field("date", "date", generated="CAST(eventTime AS DATE)"),
        )
    ),
    partition_columns=("date",),
)
_ID_OF_DAY_1 = "UPDATE lake.events SET id = 5 WHERE date = DATE'2026-01-01'"


@pytest.mark.parametrize(
    ("statement", "second"),
    [
        ("UPDATE lake.events SET eventTime = TIMESTAMP'2026-01-01 10:00:00' WHERE date = DATE'2026-01-02'", _MAY),
        ("UPDATE lake.events SET id = 1 WHERE date = DATE'2026-01-02'", _COMMITS),
        (
            (
                "MERGE INTO lake.events t USING s ON t.id = s.id AND t.date = DATE'2026-01-02' "
                "WHEN MATCHED THEN UPDATE SET t.eventTime = s.eventTime"
            ),
            _MAY,
        ),
        (
            (
                "MERGE INTO lake.events t USING s ON t.id = s.id AND t.date = DATE'2026-01-02' "
                "WHEN MATCHED THEN UPDATE SET t.id = s.id"
            ),
            _COMMITS,
        ),
        (
            (
                "MERGE INTO lake.events date USING s ON date.id = s.id AND date.date = DATE'2026-01-02' "
                "WHEN MATCHED THEN UPDATE SET date.EVENTTIME = s.eventTime"
            ),
            _MAY,
        ),
    ],
)
def test_assigning_a_base_column_may_move_a_row_to_any_partition(statement: str, second: ConflictResult) -> None:
    """Raced on 4.4.0: the UPDATE of eventTime adds a file to the partition that the other statement reads."""
    assert results(_ID_OF_DAY_1, statement, _EVENTS)[0] is second


def test_a_scan_may_be_narrowed_by_the_base_column() -> None:
    """Delta derives a filter on the generated column for a query, and not for UPDATE, DELETE and MERGE."""
    query = "INSERT INTO lake.events SELECT * FROM lake.events WHERE eventTime = TIMESTAMP'2026-01-01 10:00:00'"
    insert = "INSERT INTO lake.events VALUES (1, TIMESTAMP'2026-02-02 10:00:00', DATE'2026-02-02')"
    assert results(query, insert, _EVENTS)[0] is _MAY
    delete = "DELETE FROM lake.events WHERE eventTime = TIMESTAMP'2026-01-01 10:00:00'"
    assert results(delete, insert, _EVENTS)[0] is _FAILS


def test_row_level_concurrency_knows_fields_of_structs() -> None:
    """``st.x`` is a field of the column ``st`` unless a table has that name (D44)."""
    table = replace(_FLAT, schema=Schema((*_FIELDS, Field("st", "struct", fields=(Field("x", "long"),)))))
    assert pair("UPDATE lake.orders SET id = 1 WHERE st.x = 1", DAY_1, table).first[0].plain is False
    assert pair("UPDATE lake.orders st SET id = 1 WHERE st.id = 1", DAY_1, table).first[0].plain is True


@pytest.mark.parametrize(
    ("insert", "draws"),
    [
        ("INSERT INTO lake.orders VALUES (1, DATE'2026-01-01', 'de', 1)", False),
        ("INSERT INTO lake.orders (id, date) VALUES (1, DATE'2026-01-01')", False),
        ("INSERT INTO lake.orders (id, date) VALUES (DEFAULT, DATE'2026-01-01')", True),
        ("INSERT INTO lake.orders (date) VALUES (DATE'2026-01-01')", True),
        ("INSERT INTO lake.orders SELECT * FROM u", True),
        ("INSERT INTO lake.orders BY NAME SELECT 1 AS id", True),
    ],
)
def test_an_insert_with_explicit_identity_values_draws_none(insert: str, *, draws: bool) -> None:
    fields = (replace(_FIELDS[0], identity=True), *_FIELDS[1:])
    assert pair(insert, DAY_1, replace(_FLAT, schema=Schema(fields))).first[0].draws is draws


@pytest.mark.parametrize(
    ("query", "adds"),
    [
        ("SELECT 1, DATE '2026-02-01', 'de', 1", "country = 'de' AND date = DATE '2026-02-01'"),
        ("SELECT id, date, 'de', 1 FROM u WHERE date >= '2026-02-01'", "country = 'de'"),
        ("SELECT id, date, c, 1 FROM u WHERE date >= DATE '2026-02-01'", "date >= DATE '2026-02-01'"),
        ("SELECT id, day AS date, c, 1 FROM u WHERE day IN ('2026-02-01') AND c = 5", "date = DATE '2026-02-01'"),
        ("SELECT id, date, c, 1 FROM u WHERE date <> '2026-02-01'", "anywhere"),
        ("SELECT id, date, c, 1 FROM u WHERE date = '2026-02-01' GROUP BY ROLLUP (date)", "anywhere"),
        ("SELECT u.id, date, c, 1 FROM u JOIN w ON u.id = w.id WHERE date = '2026-02-01'", "anywhere"),
        ("WITH c AS (SELECT * FROM u WHERE date = '2026-02-01') SELECT 1,date,a,1 FROM c", "date = DATE '2026-02-01'"),
        ("WITH c (date, id) AS (SELECT * FROM u WHERE date = '2026-02-01') SELECT id, date, c, 1 FROM c", "anywhere"),
        ("SELECT id, date, 'de' || 'x', 1 FROM u", "anywhere"),
        ("SELECT 1, '2026-02-01'", "anywhere"),
    ],
)  # fmt: skip
def test_where_the_rows_of_an_insert_lie(query: str, adds: str) -> None:
    found = pair(f"INSERT INTO lake.orders {query}", DAY_1).first[0]
    assert region_text(found.adds, _ORDERS) == adds


def test_a_text_from_a_source_may_be_padded() -> None:
    source = "INSERT INTO lake.orders SELECT id, date, country, 1 FROM u WHERE country = 'de'"
    update = "UPDATE lake.orders SET amount = 0 WHERE country "
    assert pair(source, f"{update} = 'fr'").separate
    assert not pair(source, f"{update} = 'de   '").separate
    assert not pair(source, f"{update} > 'de'").separate


# Ways to keep them apart


def test_a_way_that_leaves_a_statement_nothing_to_do_is_none() -> None:
    """A condition that contradicts the INSERT's own would keep everything apart."""
    found = ways(
        "INSERT OVERWRITE lake.orders SELECT * FROM s",
        "INSERT INTO lake.orders BY NAME SELECT * FROM s WHERE country = 'fr'",
    )
    assert found.rewrites == ()


def test_a_condition_that_follows_is_written_out() -> None:
    found = ways(merge("(SELECT * FROM updates WHERE date = '2026-01-01')"), DAY_2)
    (rewrite,) = found.rewrites
    assert (rewrite.statement, rewrite.only_if) == (0, "")
    assert "AND t.date = DATE '2026-01-01'" in rewrite.sql


def test_a_source_is_limited_to_what_the_target_is() -> None:
    (rewrite,) = ways(merge(on="AND t.date = '2026-01-01'"), DAY_2).rewrites
    assert "USING (SELECT * FROM updates s WHERE date = DATE '2026-01-01') AS s ON" in rewrite.sql
    assert rewrite.only_if == "its source has no other rows to insert"


def test_a_statement_is_kept_out_of_where_the_other_is() -> None:
    (rewrite,) = ways("UPDATE lake.orders SET amount = 0 WHERE id = 1", DAY_2).rewrites
    kept = "(date <> DATE '2026-01-02' OR date IS NULL)"
    assert rewrite.sql == f"UPDATE lake.orders SET amount = 0 WHERE id = 1 AND {kept}"
    assert rewrite.only_if == "the rows that it is for lie there"


def test_values_that_only_the_user_knows_are_left_blank() -> None:
    found = ways(merge(), merge())
    assert [each.statement for each in found.rewrites] == [0, 1]
    assert all("t.date = DATE '<its date>'" in each.sql for each in found.rewrites)
    assert all("FROM updates s WHERE date = DATE '<its date>'" in each.sql for each in found.rewrites)


_NOT_DAY_2 = "(date <> DATE '2026-01-02' OR date IS NULL)"


@pytest.mark.parametrize(
    ("sql", "rewritten"),
    [
        (
            'UPDATE lake.orders SET country = \'O\'\'Brien\' WHERE country = "a ""b""" AND id = CAST(7 AS INT)',
            'UPDATE lake.orders SET country = \'O\'\'Brien\' WHERE country = "a ""b""" AND id = CAST(7 AS INT) AND $c',
        ),
        (
            r"DELETE FROM lake.orders WHERE country = 'it\'s' OR country = r'C:\x' COLLATE UTF8_LCASE -- OR it's ;",
            r"DELETE FROM lake.orders WHERE (country = 'it\'s' OR country = r'C:\x' COLLATE UTF8_LCASE) AND $c",
        ),
        ("DELETE FROM lake.orders -- WHERE it's\n ;", "DELETE FROM lake.orders WHERE $c"),
        (
            "UPDATE lake.orders SET amount = CASE WHEN id = 1 OR id = 2 THEN 1 END\n/* WHERE */ WHERE (id = 1)",
            "UPDATE lake.orders SET amount = CASE WHEN id = 1 OR id = 2 THEN 1 END\n/* WHERE */ WHERE (id = 1) AND $c",
        ),
    ],
)
def test_a_rewrite_is_the_text_as_it_was_written(sql: str, rewritten: str) -> None:
    """A print of the parsed statement once wrote ``CONCAT('O', 'Brien')`` for ``'O''Brien'``, and BIGINT for INT."""
    (rewrite,) = ways(sql, DAY_2).rewrites
    assert rewrite.sql == rewritten.replace("$c", _NOT_DAY_2)


def test_an_alias_and_a_source_stay_as_they_are() -> None:
    source = "(SELECT * FROM u WHERE (date = '2026-01-01' OR date = '2025-01-01') AND who <> 'O''Brien') s"
    sql = f"MERGE INTO lake.orders AS t\nUSING {source}\nON t.date = s.date WHEN MATCHED THEN UPDATE SET country = who"
    (rewrite,) = ways(sql, DAY_2).rewrites
    added = " AND t.date IN (DATE '2025-01-01', DATE '2026-01-01') WHEN"
    assert (rewrite.sql, rewrite.only_if) == (sql.replace(" WHEN", added), "")


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM lake.orders WHERE id = 1 /* a /* b */ OR */ OR id = 2",
        "DELETE FROM lake.orders WHERE id = 1 -- one\rOR id = 2",
        "DELETE FROM lake.orders WHERE country = 'a\x1bb' AND id = 1",
        "UPDATE lake.orders SET country = 'a\nb' WHERE id = 1",
    ],
)
def test_where_spark_may_read_the_text_otherwise_the_condition_is_to_be_added_by_hand(sql: str) -> None:
    found = ways(sql, DAY_2).rewrites
    assert [(each.sql, each.by_hand) for each in found] in ([], [("", f"add {_NOT_DAY_2} to its WHERE")])


def test_a_condition_on_the_query_of_replace_where_is_not_the_same() -> None:
    """Spark refuses rows outside the replaced ones; a condition in the query would drop them instead."""
    sql = (
        "INSERT INTO lake.orders REPLACE WHERE (date = '2026-01-01' AND id = 1) OR date = '2025-01-01' SELECT * FROM u"
    )
    assert all(each.only_if for each in ways(sql, DAY_2).rewrites)


def test_small_decimals_are_written_in_digits() -> None:
    """Spark takes 1E-7 for a double, which is less precise than a decimal."""
    subject = replace(_ORDERS, schema=Schema((*_FIELDS, Field("k", "decimal(38,20)"))), partition_columns=("k",))
    update, delete = "UPDATE lake.orders SET amount = 0 WHERE id = 1", "DELETE FROM lake.orders WHERE k > 0.0000001"
    (rewrite, *_) = ways(update, delete, subject).rewrites
    assert "k <= 0.0000001" in rewrite.sql


def test_a_partitioning_that_would_do() -> None:
    found = ways(DAY_1, DAY_2, _FLAT, replace(_SPARK, clustered=True))
    assert found == Suggestions((), (SuggestedPartitioning(("date",), unclustered=True),))


_TIMED = replace(
    _FLAT,
    schema=Schema(
        (Field("id", "long"), Field("at", "timestamp"), Field("local", "timestamp_ntz"), Field("day", "date"))
    ),
)


@pytest.mark.parametrize("column", ["at", "local"])
def test_a_timestamp_is_not_suggested_as_a_partition_column(column: str) -> None:
    """Each of its values would be a directory."""
    early = f"INSERT INTO lake.orders SELECT * FROM lake.orders WHERE {column} < '2026-01-01 00:00:00'"
    late = f"DELETE FROM lake.orders WHERE {column} > '2026-06-01 00:00:00'"
    assert pair(early, late, replace(_TIMED, partition_columns=(column,))).separate
    assert ways(early, late, _TIMED).partitionings == ()


def test_the_date_of_a_timestamp_is_suggested() -> None:
    old = "DELETE FROM lake.orders WHERE at < '2026-01-01 00:00:00' AND day <= '2026-01-01'"
    new = "DELETE FROM lake.orders WHERE at > '2026-06-01 00:00:00' AND day >= '2026-06-01'"
    assert [each.columns for each in ways(old, new, _TIMED).partitionings] == [("day",)]


@pytest.mark.parametrize(("first", "second"), [(FRENCH, FRENCH), ("TRUNCATE TABLE lake.orders", DAY_1), (DAY_1, DAY_2)])
def test_where_nothing_helps_or_is_needed_nothing_is_named(first: str, second: str) -> None:
    assert ways(first, second) == Suggestions()


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (merge(), DAY_2),
        (merge(), merge()),
        (merge("(SELECT id, date, 'de' AS country, 1 AS amount FROM updates)"), DAY_1),
        ("INSERT INTO lake.orders SELECT id, date, country, 1 FROM updates", DAY_1),
        ("UPDATE lake.orders SET amount = 0 WHERE id = 1", "DELETE FROM lake.orders"),
    ],
)
def test_a_rewritten_statement_does_what_it_is_suggested_for(first: str, second: str) -> None:
    found = ways(first, second)
    texts = [first, second]
    for each, day in zip(found.rewrites, ("2026-02-01", "2026-02-02"), strict=False):
        texts[each.statement] = each.sql.replace("<its date>", day)
    assert pair(texts[0], texts[1]).separate is bool(found.rewrites)


def test_long_statements_are_not_rewritten() -> None:
    long = "UPDATE lake.orders SET amount = 0 WHERE id = 1 AND " + " AND ".join(f"id <> {each}" for each in range(500))
    assert ways(long, DAY_2) == Suggestions()


# Soundness against rows

_ROWS = Rows()
_VERBS = st.sampled_from(
    (
        "UPDATE s.t SET x = 1 WHERE {}",
        "DELETE FROM s.t WHERE {}",
        "INSERT INTO s.t REPLACE WHERE {} SELECT * FROM u",
        "INSERT INTO s.t SELECT * FROM s.t WHERE {}",
        "MERGE INTO s.t USING u ON t.x = u.x AND {} WHEN MATCHED THEN DELETE",
        "MERGE INTO s.t USING u ON t.x = u.x WHEN MATCHED AND {} THEN UPDATE SET x = 1",
    )
)


@settings(max_examples=150, deadline=None)
@given(_VERBS, CONDITIONS, _VERBS, CONDITIONS)
def test_statements_that_are_said_to_commit_touch_no_common_partition(
    one: str, mine: str, two: str, theirs: str
) -> None:
    found = between(parse_statement(one.format(mine)), parse_statement(two.format(theirs)), SUBJECT, _SPARK)
    touched = [{row[:-1] for row in _ROWS.satisfying(condition)} for condition in (mine, theirs)]
    if any(pair_outcome.result is _COMMITS for pair_outcome in found.outcomes):
        assert not touched[0] & touched[1]


# Names and values that are not what they look like

_PLACE = replace(
    _ORDERS,
    location="/lake/t",
    schema=Schema((Field("id", "long"), Field("p", "string"), Field("v", "long"))),
    partition_columns=("p",),
)


@pytest.mark.parametrize(
    ("held", "other"),
    [
        # a field of a struct, which may hold any value, is not the column of that name
        (
            "UPDATE {t} SET v = 9 WHERE p = 'b'",
            "INSERT INTO {t} (id, p, v) SELECT id, p, v FROM src WHERE info.p = 'abc'",
        ),
        (
            "UPDATE {t} SET v = 9 WHERE p = 'b'",
            "INSERT INTO {t} BY NAME SELECT id, info.p AS p, v FROM src WHERE p = 'abc'",
        ),
        (
            "UPDATE {t} SET v = 9 WHERE p = 'b'",
            "MERGE INTO {t} USING (SELECT * FROM src WHERE p = 'abc') s ON t.p = info.p WHEN MATCHED THEN DELETE",
        ),
        # 1 equals the text '01', and is stored as '1'
        (
            "UPDATE {t} SET v = 9 WHERE p = '1'",
            "MERGE INTO {t} t USING src s ON t.p = s.p AND t.p = '01' WHEN MATCHED THEN UPDATE SET *",
        ),
        (
            "UPDATE {t} SET v = 9 WHERE p = '01'",
            "MERGE INTO {t} t USING (SELECT 1 AS p) s ON t.p = s.p WHEN MATCHED THEN DELETE",
        ),
        # Hive's name for null is stored as null
        ("UPDATE {t} SET v = 9 WHERE p IS NULL", "INSERT INTO {t} VALUES (1, '__HIVE_DEFAULT_PARTITION__', 2)"),
    ],
)
def test_a_name_or_a_value_that_is_ambiguous_is_never_safe(held: str, other: str) -> None:
    first, second = (each.format(t="lake.orders") for each in (held, other))
    assert results(first, second, subject=_PLACE)[0] is not _COMMITS


def test_a_source_column_with_its_own_alias_still_limits_the_rows() -> None:
    held = "UPDATE lake.orders SET v = 9 WHERE p = 'b'"
    for other in (
        "INSERT INTO lake.orders (id, p, v) SELECT id, p, v FROM src WHERE src.p = 'abc'",
        "MERGE INTO lake.orders t USING src s ON t.p = s.p AND t.p = 'abc' WHEN MATCHED THEN UPDATE SET *",
    ):
        assert results(held, other, subject=_PLACE)[0] is _COMMITS


def test_the_table_by_a_path_with_dots_or_links_is_the_table(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "t")
    table = replace(_PLACE, location=str(tmp_path / "t"))
    for odd in ("t/../t", "./t", "link", "t/"):
        assert table.named(["delta", f"{tmp_path}/{odd}"])
    cloud = replace(_PLACE, location="s3://bucket/t")
    assert cloud.named(["delta", "s3a://bucket/x/../t"])
    assert not cloud.named(["delta", "s3://other/t"])


@pytest.mark.parametrize(
    ("written", "named"),
    [
        ("t", True),
        ("x.t", True),
        ("some.catalog.t", True),
        ("delta.`t`", True),
        ("delta.`x/t`", False),
        ("delta.`/other/t`", False),
        ("delta.`s3://bucket/t`", False),
        ("x.other", False),
    ],
)
def test_a_table_with_only_a_path_is_written_by_its_last_part(written: str, named: bool) -> None:
    by_path = replace(_PLACE, name=TableName("", ("/lake/x/t",)), location="/lake/x/t")
    statement = parse_statement(f"INSERT INTO {written} SELECT * FROM {written} WHERE p = 'a'")
    assert by_path.written_as(statement.parts) is named
    if named:
        update = parse_statement("UPDATE delta.`/lake/x/t` SET v = 1 WHERE p = 'b'")
        found = between(statement, update, by_path, _SPARK)
        assert found.first[0].kind is Kind.READING_INSERT
        assert found.separate


def test_another_table_of_the_same_last_part_is_not_read_as_this_one() -> None:
    by_path = replace(_PLACE, name=TableName("", ("/lake/x/t",)), location="/lake/x/t")
    statement = parse_statement("INSERT INTO delta.`/lake/x/t` SELECT * FROM staging.t")
    assert between(statement, statement, by_path, _SPARK).first[0].reads is None


_BIG = replace(_FLAT, schema=Schema(_FIELDS))
_BY_ROWS = ConflictContext(client=Client("databricks", (16, 4)), properties={VECTORS: "true"})


def test_conditions_without_a_common_row_commit_with_row_level_concurrency() -> None:
    update, delete = "UPDATE lake.orders SET country = 'x' WHERE id = 1", "DELETE FROM lake.orders WHERE id = 2"
    found = pair(update, delete, _BIG, _BY_ROWS)
    assert found.separate
    assert found.outcomes[0].source == "D26, D40, D46, D51"
    assert found.outcomes[0].reason.endswith("under many concurrent transactions it may fail all the same")
    assert results(update, delete, _BIG, replace(_BY_ROWS, properties={})) == (_MAY, _MAY)


@pytest.mark.parametrize(
    "other",
    [
        "DELETE FROM lake.orders WHERE id IN (1, 2)",
        "DELETE FROM lake.orders WHERE country = 'x'",
        "DELETE FROM lake.orders WHERE id = 2 AND rand() < 0.5",
        "DELETE FROM lake.orders WHERE id IN (SELECT id FROM gone)",
    ],
)
def test_a_row_that_both_may_change_may_conflict(other: str) -> None:
    update = "UPDATE lake.orders SET country = 'x' WHERE id = 1"
    assert _MAY in results(update, other, _BIG, _BY_ROWS)


def proposed(first: str, second: str, subject: StatementTable, setting: ConflictContext) -> bool:
    """Whether partitions are proposed for two statements."""
    return bool(suggest(parse_statement(first), parse_statement(second), subject, setting).partitionings)


def test_partitions_are_never_proposed_for_keys_changed_columns_or_row_level_concurrency() -> None:
    delete = "DELETE FROM lake.orders WHERE {}"
    assert not proposed(delete.format("id = 1"), delete.format("id = 2"), _FLAT, _SPARK)
    move = "UPDATE lake.orders SET country = 'b' WHERE country = 'a'"
    assert not proposed(move, delete.format("country = 'c'"), _FLAT, _SPARK)
    by_country = [delete.format(f"country = '{each}' AND amount > 1") for each in "ab"]
    assert proposed(by_country[0], by_country[1], _FLAT, _SPARK)
    assert not proposed(delete.format("country = upper(country)"), by_country[0], _BIG, _BY_ROWS)
