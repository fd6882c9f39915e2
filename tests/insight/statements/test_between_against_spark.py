"""Pairs of statements on real Spark and Delta: what ``between`` says of the loser is what happens to it.

The losing statement is held inside its transaction while the other commits. Where it is said to commit it must, where
it is said to fail it must, in the way that is said; each cell also names what was measured, so that a change shows.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tablectl.conflicts.transactions import Conflict, ConflictResult
from tablectl.delta.names import TableName
from tablectl.delta.protocol import Client
from tablectl.insight.conflict_context import ConflictContext
from tablectl.insight.statements.pair_outcomes import between
from tablectl.insight.statements.parse_writes import parse_statement
from tablectl.insight.statements.target import StatementTable
from tablectl.log.reader import read_table
from tests.interleaving import Writer

pytestmark = pytest.mark.spark

_DELTA = Client("delta-spark", (4, 4, 0))
_SOURCE = "(SELECT hold(id) AS id, 'a' AS p, DATE '2026-01-01' AS d, 9L AS v FROM range(1, 2))"
_APPEND_A = "INSERT INTO $t VALUES (8, 'a', DATE '2026-01-01', 8)"
_APPEND_B = "INSERT INTO $t VALUES (8, 'b', DATE '2026-01-02', 8)"
_APPEND_EMPTY = "INSERT INTO $t VALUES (8, '', DATE '2026-01-03', 8)"
_MATCHED = "WHEN MATCHED THEN UPDATE SET v = 9"
_COMMITS, _FAILS, _MAY = ConflictResult.COMMITS, ConflictResult.FAILS, ConflictResult.MAY_FAIL
_CA, _DR = Conflict.APPEND, Conflict.DELETE_READ


class Pairs:
    """A table partitioned by a text and a date: two rows of a on the first of January, two of b on the second, one of
    neither on the third.
    """

    def __init__(self, spark: Any, folder: Path) -> None:
        self._spark, self._folder = spark, folder

    def create(self) -> Pairs:
        """The table of the pairs."""
        folder = self._folder
        self._spark.sql(
            f"CREATE TABLE delta.`{folder}/t` (id BIGINT, p STRING, d DATE, v BIGINT) USING delta PARTITIONED BY (p, d)"
        )
        rows = "(1, 'a', DATE '2026-01-01', 1), (2, 'a', DATE '2026-01-01', 2), (3, 'b', DATE '2026-01-02', 3), "
        rows += "(4, 'b', DATE '2026-01-02', 4), (5, NULL, DATE '2026-01-03', 5)"
        self._spark.sql(f"INSERT INTO delta.`{folder}/t` SELECT /*+ COALESCE(1) */ * FROM VALUES {rows}")
        return self

    def check(self, place: Path, current: str, committed: str) -> tuple[ConflictResult, str]:
        """What is said of the loser, and the condition with which it ended; they must agree."""
        shutil.copytree(self._folder / "t", place / "t")
        table = TableName("", (str(place / "t"),))
        live = read_table(table, str(place / "t"))
        first, second = (sql.replace("$t", table.sql) for sql in (current, committed))
        pair = between(
            parse_statement(first), parse_statement(second), StatementTable.of(live), ConflictContext.of(live, _DELTA)
        )
        pair_outcome = pair.outcomes[0]
        with Writer(self._spark, first) as writer:
            writer.wait_inside()
            self._spark.sql(second)
            happened = writer.release().condition.partition(".")[0]
        assert happened in {
            *pair_outcome.conflicts,
            *([""] if pair_outcome.result is not ConflictResult.FAILS else []),
        }, pair_outcome
        return pair_outcome.result, happened


@pytest.fixture(scope="module")
def pairs(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Pairs:
    return Pairs(spark, tmp_path_factory.mktemp("pairs")).create()


def merge(on: str, clauses: str = _MATCHED, source: str = _SOURCE) -> str:
    return f"MERGE INTO $t t USING {source} s ON {on} {clauses}"


_QUICK = [
    ("UPDATE $t SET v = hold(v) WHERE (p = 'a' AND v > 0) OR (p = 'a' AND id = 2)", _APPEND_B, _COMMITS, ""),
    ("DELETE FROM $t WHERE d < '2026-01-02' AND hold(id) = 1", _APPEND_B, _COMMITS, ""),
    ("UPDATE $t SET v = hold(v) WHERE p IS NULL", _APPEND_EMPTY, _FAILS, _CA),
    ("DELETE FROM $t WHERE d = DATE '2026-01-01' AND hold(id) = 1", "DELETE FROM $t WHERE p = 'b'", _MAY, ""),
    ("DELETE FROM $t WHERE p = 'a' AND hold(id) = 1", "DELETE FROM $t WHERE p > 'a'", _COMMITS, ""),
    (merge("t.id = s.id AND t.p = s.p"), _APPEND_B, _FAILS, _CA),
    (merge("t.id = s.id AND t.p = s.p AND t.p = 'a'"), _APPEND_B, _COMMITS, ""),
    (merge("t.id = s.id", "WHEN MATCHED AND t.p = 'a' THEN UPDATE SET v = 9"), _APPEND_B, _COMMITS, ""),
    (merge("t.id = s.id", "WHEN MATCHED AND t.p = 'a' AND t.v = 1 THEN DELETE"), _APPEND_B, _FAILS, _CA),
    (merge("t.id = s.id AND t.p = 'a'", "WHEN NOT MATCHED THEN INSERT *"), _APPEND_B, _COMMITS, ""),
    ("INSERT OVERWRITE $t PARTITION (p = 'a') SELECT hold(9), DATE '2026-01-01', 9L", _APPEND_B, _COMMITS, ""),
    ("INSERT INTO $t REPLACE WHERE p = 'a' SELECT hold(9), 'a', DATE '2026-01-01', 9L", _APPEND_A, _FAILS, _CA),
    ("INSERT INTO $t SELECT hold(id), p, d, v FROM $t WHERE p = 'a'", _APPEND_B, _COMMITS, ""),
]

_MORE = [
    ("UPDATE $t SET v = hold(v) WHERE (p = 'a' AND v > 0) OR (p = 'a' AND id = 2)", _APPEND_A, _FAILS, _CA),
    ("UPDATE $t SET v = hold(v) WHERE NOT (p = 'b' OR v = 5)", _APPEND_B, _MAY, ""),
    ("UPDATE $t SET v = hold(v) WHERE p = 'a' OR v = 3", _APPEND_B, _FAILS, _CA),
    ("UPDATE $t SET v = hold(v) WHERE upper(p) = 'A'", _APPEND_B, _MAY, ""),
    ("UPDATE $t SET v = hold(v) WHERE p LIKE 'a%'", _APPEND_B, _COMMITS, ""),
    ("UPDATE $t SET v = hold(v) WHERE P <=> 'a'", _APPEND_EMPTY, _COMMITS, ""),
    ("UPDATE $t SET v = hold(v) WHERE p IN ('a', 'c') AND p <> 'c'", _APPEND_B, _COMMITS, ""),
    ("UPDATE $t SET v = hold(v) WHERE d BETWEEN '2025-12-01' AND '2026-01-01'", _APPEND_B, _COMMITS, ""),
    ("DELETE FROM $t WHERE d = DATE '2026-01-01' AND hold(id) = 1", _APPEND_A, _FAILS, _CA),
    ("DELETE FROM $t WHERE p = 'a' AND hold(id) = 1", "DELETE FROM $t WHERE p = 'a'", _MAY, _DR),
    (merge("t.id = s.id AND (t.p = 'a' OR t.p = 'c') AND (t.p = 'a' OR t.v = 1)"), _APPEND_B, _MAY, ""),
    (merge("t.id = s.id AND (t.p = 'a' OR t.p = 'c') AND t.d < '2026-01-02'"), _APPEND_B, _COMMITS, ""),
    (merge("t.id = s.id AND ((t.p = 'a' AND t.v = 1) OR (t.p = 'a' AND t.v = 2))"), _APPEND_B, _MAY, ""),
    (
        merge("t.id = s.id", "WHEN MATCHED AND t.p = 'a' THEN DELETE WHEN MATCHED AND s.v = 1 THEN DELETE"),
        _APPEND_B,
        _FAILS,
        _CA,
    ),
    (
        merge("t.id = s.id AND t.p = 'a'", f"{_MATCHED} WHEN NOT MATCHED BY SOURCE AND t.p = 'a' THEN DELETE"),
        _APPEND_B,
        _FAILS,
        _CA,
    ),
    ("INSERT OVERWRITE $t PARTITION (p = 'a') SELECT hold(9), DATE '2026-01-01', 9L", _APPEND_A, _FAILS, _CA),
    ("INSERT OVERWRITE $t SELECT hold(9), 'a', DATE '2026-01-01', 9L", _APPEND_B, _FAILS, _CA),
    ("INSERT INTO $t REPLACE WHERE p = 'a' SELECT hold(9), 'a', DATE '2026-01-01', 9L", _APPEND_B, _COMMITS, ""),
    ("INSERT INTO $t SELECT hold(id), p, d, v FROM $t WHERE p = 'a'", _APPEND_A, _FAILS, _CA),
    (
        "INSERT INTO $t SELECT hold(a.id), a.p, a.d, a.v FROM $t a JOIN range(9) r ON r.id = a.id WHERE a.p = 'a'",
        _APPEND_B,
        _COMMITS,
        "",
    ),
    (
        "INSERT INTO $t SELECT hold(a.id), a.p, a.d, a.v FROM $t a JOIN range(9) r ON r.id = a.id AND a.p = 'a'",
        _APPEND_B,
        _COMMITS,
        "",
    ),
    (
        "INSERT INTO $t WITH c AS (SELECT * FROM $t WHERE p = 'a') SELECT hold(id), p, d, v FROM c WHERE v > 0",
        _APPEND_B,
        _COMMITS,
        "",
    ),
    (
        "INSERT INTO $t SELECT hold(9), 'a', DATE '2026-01-01', (SELECT max(v) FROM $t WHERE p = 'a')",
        _APPEND_B,
        _MAY,
        "",
    ),
]


_NARROWED = [
    ("INSERT INTO $t SELECT hold(id), p, d, v FROM (SELECT * FROM $t) WHERE p = 'a'", _APPEND_B, _MAY, ""),
    ("INSERT INTO $t WITH c AS (SELECT * FROM $t) SELECT hold(id), p, d, v FROM c WHERE p = 'a'", _APPEND_B, _MAY, ""),
    ("INSERT INTO $t SELECT hold(max(id)), p, d, 1L FROM $t GROUP BY p, d HAVING p = 'a'", _APPEND_B, _MAY, ""),
    ("INSERT INTO $t SELECT hold(id), p, d, v FROM $t VERSION AS OF 1", _APPEND_B, _COMMITS, ""),
]
"""Queries of the table itself that register less than they name."""


@pytest.mark.slow
@pytest.mark.parametrize(("current", "committed", "said", "happened"), _NARROWED)
def test_a_query_that_spark_narrows(
    pairs: Pairs, tmp_path: Path, current: str, committed: str, said: ConflictResult, happened: str
) -> None:
    assert pairs.check(tmp_path, current, committed) == (said, happened)


@pytest.fixture(scope="module")
def events(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Pairs:
    """A table partitioned by a column that Delta computes."""
    folder = tmp_path_factory.mktemp("events")
    spark.sql(
        f"CREATE TABLE delta.`{folder}/t` (id BIGINT, at TIMESTAMP, d DATE GENERATED ALWAYS AS (CAST(at AS DATE))) "
        "USING delta PARTITIONED BY (d)"
    )
    for day in (1, 2):
        spark.sql(f"INSERT INTO delta.`{folder}/t` (id, at) VALUES ({day}, TIMESTAMP '2026-01-0{day} 09:00:00')")
    return Pairs(spark, folder)


_MOVES = "UPDATE $t SET at = TIMESTAMP '2026-01-01 10:00:00' WHERE d = DATE '2026-01-02'"
_MERGES = (
    "MERGE INTO $t t USING (SELECT 2L AS id, TIMESTAMP '2026-01-01 10:00:00' AS at) s "
    "ON t.id = s.id AND t.d = DATE '2026-01-02' WHEN MATCHED THEN UPDATE SET t.at = s.at"
)


@pytest.mark.parametrize("committed", [_MOVES, _MERGES])
def test_assigning_a_base_column_moves_a_row_to_another_partition(
    events: Pairs, tmp_path: Path, committed: str
) -> None:
    current = "UPDATE $t SET id = hold(id) WHERE d = DATE '2026-01-01'"
    assert events.check(tmp_path, current, committed) == (_MAY, _CA)


@pytest.mark.parametrize(("current", "committed", "said", "happened"), _QUICK)
def test_a_pair(
    pairs: Pairs, tmp_path: Path, current: str, committed: str, said: ConflictResult, happened: str
) -> None:
    assert pairs.check(tmp_path, current, committed) == (said, happened)


@pytest.mark.slow
@pytest.mark.parametrize(("current", "committed", "said", "happened"), _MORE)
def test_more_pairs(
    pairs: Pairs, tmp_path: Path, current: str, committed: str, said: ConflictResult, happened: str
) -> None:
    assert pairs.check(tmp_path, current, committed) == (said, happened)
