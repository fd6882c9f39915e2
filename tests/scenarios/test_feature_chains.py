"""Attributes that are chains of commits, on real tables: broken off between any two, the next apply goes on.

The rows are the same before and after, as Spark and, where it reads such tables, ``deltalake`` have them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tablectl
from tablectl.commands.run_plan import Control
from tests.interleaving import Breaking
from tests.scenarios.conftest import operations

pytestmark = pytest.mark.spark

Log = Callable[[Path], list[dict[str, Any]]]


class Lake:
    """One table, and what policies make of it."""

    def __init__(self, spark: Any, log: Log, root: Path) -> None:
        self.spark, self._log, self.root, self.table = spark, log, root, root / "t"

    def create(self, columns: str = "id, id * 2 AS two", *clauses: str) -> int:
        """A table of two files and 60 rows; its newest version."""
        made = f"CREATE TABLE delta.`{self.table}` USING delta {' '.join(clauses)}"
        self.spark.sql(f"{made} AS SELECT {columns} FROM range(0, 60, 1, 2)")
        return self.newest()

    def sql(self, text: str) -> None:
        self.spark.sql(text.replace("{t}", f"delta.`{self.table}`"))

    def write_policy(self, policy: str) -> None:
        (self.root / "p.yaml").write_text(f"version: 1\ntables: {{'delta.`{self.table}`': {{{policy}}}}}\n", "utf-8")

    def apply(self, policy: str, breaking: int = 0) -> Any:
        """An apply; ``breaking`` is the number of the commit that does not come about, from 1."""
        self.write_policy(policy)
        control = Control(notify=Breaking(self.spark, breaking).at_statements) if breaking else Control()
        return tablectl.apply(self.root / "p.yaml", directory=self.root, spark=self.spark, control=control)

    def reached(self, policy: str) -> None:
        """Apply a policy, after which nothing is left to do."""
        report = self.apply(policy)
        assert report.exit_code == 0, report
        assert tablectl.plan(self.root / "p.yaml", directory=self.root).tables == ()

    def since(self, version: int) -> list[str]:
        return operations(self._log(self.table)[version + 1 :])

    def newest(self) -> int:
        return len(self._log(self.table)) - 1

    def commit(self, version: int) -> dict[str, Any]:
        return self._log(self.table)[version]

    def rows(self) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self.spark.read.format("delta").load(str(self.table)).orderBy("id").collect()]


@pytest.fixture
def lake(spark: Any, log: Log, tmp_path: Path) -> Lake:
    return Lake(spark, log, tmp_path)


def deltalake_rows(table: Path) -> list[tuple[Any, ...]]:
    """The rows as a reader that is not Spark has them."""
    found = pytest.importorskip("deltalake").DeltaTable(str(table)).to_pyarrow_table().to_pylist()
    return sorted(tuple(row.values()) for row in found)


def test_row_tracking_there_and_back_and_there_broken_off_between_its_commits(lake: Lake) -> None:
    start = lake.create()
    before = lake.rows()
    chain = ["UPGRADE PROTOCOL", "ROW TRACKING BACKFILL", "SET TBLPROPERTIES"]
    for reached in (1, 2):
        broken = lake.apply("row_tracking: enabled", breaking=2)
        assert broken.exit_code == 5, broken
        assert lake.since(start) == chain[:reached]
        assert lake.rows() == before
        # What the first run did is not done again, so that the second breaks off one commit later.
    lake.reached("row_tracking: enabled")
    assert lake.since(start) == chain
    assert [row[0] for row in lake.spark.sql(f"SELECT _metadata.row_id FROM delta.`{lake.table}`").distinct().collect()]
    lake.reached("row_tracking: disabled")
    lake.reached("row_tracking: enabled")
    assert lake.since(start) == [*chain, "SET TBLPROPERTIES", "SET TBLPROPERTIES"], "files keep their ids"
    assert lake.rows() == deltalake_rows(lake.table) == before


def test_a_suspended_table_is_freed_first(lake: Lake) -> None:
    start = lake.create()
    lake.sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.rowTrackingSuspended' = 'true')")
    lake.reached("row_tracking: disabled")
    lake.reached("row_tracking: enabled")
    assert lake.since(start + 1) == [
        "UNSET TBLPROPERTIES",
        "UPGRADE PROTOCOL",
        "ROW TRACKING BACKFILL",
        "SET TBLPROPERTIES",
    ]


@pytest.mark.slow
def test_a_mapping_there_and_back_and_there(lake: Lake) -> None:
    start = lake.create("id, named_struct('x', id) AS s, array(named_struct('y', id)) AS list", "CLUSTER BY (id)")
    before = lake.rows()
    lake.reached("column_mapping: name")
    lake.sql("ALTER TABLE {t} RENAME COLUMN s TO place")
    refused = lake.apply("column_mapping: none")
    assert (refused.exit_code, lake.since(start)) == (3, ["SET TBLPROPERTIES", "RENAME COLUMN"])
    broken = lake.apply("column_mapping: none, rewrite: allowed, properties: {a: b}", breaking=2)
    assert broken.exit_code == 5, broken
    assert lake.rows() == before
    lake.reached("column_mapping: none, rewrite: allowed, properties: {a: b}")
    assert lake.since(start + 2) == ["SET TBLPROPERTIES", "REMOVE COLUMN MAPPING"]
    assert lake.commit(start + 4)["add"]["dataChange"] is False
    assert lake.rows() == before
    assert [row[0] for row in deltalake_rows(lake.table)] == list(range(60))
    lake.sql("OPTIMIZE {t} FULL")
    lake.reached("column_mapping: name")
    assert lake.rows() == before


@pytest.mark.slow
def test_iceberg_v2_broken_off_between_its_commits_and_back_to_vectors_without_a_mapping(lake: Lake) -> None:
    start = lake.create("id, array(id) AS list", "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    lake.sql("DELETE FROM {t} WHERE id % 3 = 0")
    before = lake.rows()
    chain = ["REORG TABLE UPGRADE UNIFORM", "REORG", "SET TBLPROPERTIES"]
    broken = lake.apply("uniform: iceberg_v2, rewrite: allowed", breaking=2)
    assert broken.exit_code == 5, broken
    assert lake.since(start + 1) in (chain[:1], chain[:2]), "files are committed by threads of their own"
    assert lake.rows() == before
    lake.reached("uniform: iceberg_v2, rewrite: allowed")
    assert lake.since(start + 1) == chain
    lake.sql("INSERT INTO {t} VALUES (100, array(7))")
    after = [*before, (100, [7])]
    assert lake.rows() == after
    lake.reached("uniform: none, deletion_vectors: enabled, column_mapping: none, rewrite: allowed")
    assert lake.since(start + 5) == ["UNSET TBLPROPERTIES", "SET TBLPROPERTIES", "REMOVE COLUMN MAPPING"]
    assert lake.rows() == after
    lake.reached("uniform: iceberg_v2, rewrite: allowed")
    assert lake.rows() == after


@pytest.mark.slow
def test_iceberg_v1_then_v2_then_v1(lake: Lake) -> None:
    start = lake.create()
    before = lake.rows()
    lake.reached("uniform: iceberg_v1")
    broken = lake.apply("uniform: iceberg_v2, rewrite: allowed", breaking=2)
    assert broken.exit_code == 5, broken
    lake.reached("uniform: iceberg_v2, rewrite: allowed")
    assert lake.since(start + 2) == [
        "UNSET TBLPROPERTIES",
        "REORG TABLE UPGRADE UNIFORM",
        "REORG",
        "SET TBLPROPERTIES",
    ]
    lake.reached("uniform: iceberg_v1")
    lake.reached("uniform: none")
    assert lake.since(start + 6) == ["REORG TABLE UPGRADE UNIFORM", "UNSET TBLPROPERTIES"]
    assert lake.rows() == before


@pytest.mark.slow
@pytest.mark.parametrize("version", ["iceberg_v1", "iceberg_v2"])
def test_iceberg_v3_after_another_version_broken_off_between_its_commits(lake: Lake, version: str) -> None:
    lake.create()
    before = lake.rows()
    lake.reached(f"uniform: {version}, rewrite: allowed")
    start = lake.newest()
    chain = ["UPGRADE PROTOCOL", "ROW TRACKING BACKFILL", "SET TBLPROPERTIES"]
    for _ in range(2):
        broken = lake.apply("uniform: iceberg_v3", breaking=2)
        assert broken.exit_code == 5, broken
        assert lake.rows() == before
    lake.reached("uniform: iceberg_v3, deletion_vectors: enabled")
    assert lake.since(start) == [*chain, "SET TBLPROPERTIES"], "deletion vectors come after the version that takes them"
    lake.sql("DELETE FROM {t} WHERE id = 7")
    assert lake.rows() == [row for row in before if row[0] != 7]
    for refused in ("uniform: iceberg_v2, rewrite: allowed", "uniform: none"):
        assert lake.apply(refused).exit_code == 3
    assert lake.since(start)[len(chain) + 1 :] == ["DELETE"]


@pytest.mark.slow
def test_inserts_fail_where_iceberg_v3_meets_a_variant(lake: Lake) -> None:
    lake.create("id, parse_json('{}') AS body")
    lake.sql(
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name', "
        "'delta.enableIcebergCompatV3' = 'true', 'delta.enableRowTracking' = 'true')"
    )
    with pytest.raises(Exception, match="INVALID_FIELD_NAME"):
        lake.sql("INSERT INTO {t} SELECT 100L, parse_json('[1]')")
