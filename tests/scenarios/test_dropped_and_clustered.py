"""Vectors dropped and data clustered again, on real tables: broken off, gone on with, and a day later."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import tablectl
from tablectl.commands.run_plan import Control
from tablectl.leases.clock import SystemClock
from tests.scenarios.test_feature_chains import Lake, deltalake_rows, lake  # noqa: F401  # the fixture

pytestmark = pytest.mark.spark

VECTORS = "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
DAY = timedelta(hours=25)


class Tomorrow(SystemClock):
    """The clock of an apply that runs a day later."""

    def utc(self) -> datetime:
        return datetime.now(UTC) + DAY


def a_day_later(lake: Lake, policy: str) -> Any:  # noqa: F811
    """The same policy applied when its log is a day old, to Delta by the age of its files."""
    for file in (lake.table / "_delta_log").glob("*.*"):
        old = file.stat().st_mtime - DAY.total_seconds()
        os.utime(file, (old, old))
    lake.write_policy(policy)
    return tablectl.apply(
        lake.root / "p.yaml", directory=lake.root, spark=lake.spark, control=Control(clock=Tomorrow())
    )


def with_vectors(lake: Lake) -> tuple[int, list[tuple[Any, ...]]]:  # noqa: F811
    start = lake.create("id, id * 2 AS two", VECTORS)
    lake.sql("DELETE FROM {t} WHERE id % 10 = 3")
    return start + 1, lake.rows()


def test_vectors_are_dropped_though_the_drop_breaks_off_inside(lake: Lake) -> None:  # noqa: F811
    start, before = with_vectors(lake)
    broken = lake.apply("deletion_vectors: dropped", breaking=5)
    assert broken.exit_code == 5, broken
    chain = ["REORG", "SET TBLPROPERTIES", "Deletion Vector Tombstones", "Empty Commit"]
    assert lake.since(start) == chain
    lake.sql("INSERT INTO {t} SELECT 100, 200")
    lake.reached("deletion_vectors: dropped")
    again = ["Deletion Vector Tombstones", *["Empty Commit"] * 3, "DROP FEATURE"]
    assert lake.since(start) == [*chain, "WRITE", *again]
    protocol = lake.commit(start + len(chain) + 1 + len(again))["protocol"]
    assert (protocol["minReaderVersion"], "checkpointProtection" in protocol["writerFeatures"]) == (1, True)
    assert lake.rows() == deltalake_rows(lake.table) == [*before, (100, 200)]


@pytest.mark.slow
def test_with_history_given_up_nothing_stays_behind(lake: Lake) -> None:  # noqa: F811
    policy = "deletion_vectors: dropped, truncate_history: true"
    start, before = with_vectors(lake)
    first = lake.apply(policy)
    assert (first.exit_code, [str(table.outcome) for table in first.tables]) == (0, ["waiting"]), first
    assert lake.since(start) == ["REORG", "SET TBLPROPERTIES", "Deletion Vector Tombstones", "Empty Commit"]
    (table,) = tablectl.plan(lake.root / "p.yaml", directory=lake.root).tables
    (statement,) = table.statements
    made = lake.commit(start + 4)["commitInfo"]["timestamp"]
    assert statement.due is not None
    assert 24 * 3600 * 1000 <= statement.due - made <= 24 * 3600 * 1000 + 120_000
    assert lake.apply(policy).tables[0].commits == ()
    last = a_day_later(lake, policy)
    assert (last.exit_code, [str(table.outcome) for table in last.tables]) == (0, ["applied"]), last
    assert tablectl.plan(lake.root / "p.yaml", directory=lake.root).tables == ()
    log = sorted((lake.table / "_delta_log").glob("*.json"))
    assert f"{start + 1:020d}.json" not in {file.name for file in log}, "history was given up"
    assert '"minReaderVersion":1,"minWriterVersion":2' in log[-1].read_text()
    assert lake.rows() == deltalake_rows(lake.table) == before


def test_data_follows_new_columns_after_a_stop_in_between(lake: Lake) -> None:  # noqa: F811
    policy = "clustering: [two], optimize: full, rewrite: allowed"
    start = lake.create("id, id * 2 AS two", "CLUSTER BY (id)")
    lake.sql("OPTIMIZE {t}")
    before = lake.rows()
    broken = lake.apply(policy, breaking=2)
    assert (broken.exit_code, lake.since(start + 1)) == (5, ["CLUSTER BY"]), broken
    lake.sql("INSERT INTO {t} SELECT 100, 200")
    (table,) = tablectl.plan(lake.root / "p.yaml", directory=lake.root).tables
    assert [change.id for change in table.changes] == ["clustering.data"]
    lake.reached(policy)
    assert lake.since(start + 1) == ["CLUSTER BY", "WRITE", "OPTIMIZE"]
    assert lake.commit(start + 4)["add"]["tags"]["ZCUBE_ZORDER_BY"] == '["two"]'
    lake.sql("INSERT INTO {t} SELECT 101, 202")
    assert tablectl.plan(lake.root / "p.yaml", directory=lake.root).tables == (), "new data needs no statement"
    assert lake.rows() == deltalake_rows(lake.table) == [*before, (100, 200), (101, 202)]
    lake.sql("INSERT OVERWRITE {t} SELECT id, id FROM range(3)")
    (drifted,) = tablectl.drift(lake.root / "p.yaml", directory=lake.root).tables
    found = drifted.differences[0]
    assert (found.change.before, found.change.after) == ("none", ("two",))
    assert found.origin.commit is not None
    assert (found.origin.commit.version, found.origin.commit.overwrites) == (start + 6, True)
    lake.reached(policy)
    assert lake.since(start + 6) == ["CLUSTER BY", "OPTIMIZE"]


@pytest.mark.slow
def test_only_what_no_one_clustered_follows_where_that_is_asked(lake: Lake) -> None:  # noqa: F811
    start = lake.create("id, named_struct('x', id) AS s", "CLUSTER BY (id)")
    lake.sql("OPTIMIZE {t}")
    lake.sql("INSERT INTO {t} SELECT 100, named_struct('x', 1L)")
    lake.reached("clustering: [s.x], optimize: incremental")
    assert lake.since(start + 2) == ["CLUSTER BY", "OPTIMIZE"]
    assert lake.commit(start + 4)["add"]["tags"]["ZCUBE_ZORDER_BY"] == '["s.x"]'
    marks = tablectl.plan(lake.root / "p.yaml", directory=lake.root)
    assert marks.tables == ()


def test_data_is_clustered_by_columns_whose_names_need_backticks(lake: Lake) -> None:  # noqa: F811
    names = ["odd-name", "sp ace", "Ünï", "a.b", "x,y"]
    columns = ", ".join(f"id % {number + 2} AS `{name}`" for number, name in enumerate(names))
    lake.create(f"id, {columns}", "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    lake.reached("clustering: ['odd-name', 'sp ace', 'Ünï'], optimize: full, rewrite: allowed")
    lake.reached("clustering: ['`a.b`', 'x,y', 'odd-name'], optimize: full, rewrite: allowed")
    assert tablectl.drift(lake.root / "p.yaml", directory=lake.root).tables == ()


def test_old_files_that_are_added_again_are_still_clustered(lake: Lake) -> None:  # noqa: F811
    start = lake.create("id, id * 2 AS two", VECTORS)
    lake.reached("clustering: [two]")
    lake.sql("DELETE FROM {t} WHERE id = 3")
    lake.reached("clustering: [two], row_tracking: enabled")
    policy = "clustering: [two], row_tracking: enabled, optimize: incremental"
    refused = lake.apply(f"{policy}, max_bytes: 1")
    assert (refused.exit_code, lake.since(start)[-1]) == (3, "SET TBLPROPERTIES"), refused
    lake.reached(policy)
    assert lake.since(start)[-1] == "OPTIMIZE"


def test_delta_takes_the_text_that_every_client_reads(lake: Lake) -> None:  # noqa: F811
    lake.create()
    lake.sql(
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.appendOnly' = 'TRUE', 'delta.logRetentionDuration' = '60 days')"
    )
    lake.reached(
        "retention: {log: 60 days, deleted_files: 1 day 12 hours}, properties: {delta.appendOnly: 'TRUE', "
        "delta.checkpointRetentionDuration: 1.5 seconds, delta.checkpointPolicy: V2}"
    )
    stored = dict(lake.spark.sql(f"SHOW TBLPROPERTIES delta.`{lake.table}`").collect())
    assert (
        stored
        | {
            "delta.appendOnly": "true",
            "delta.logRetentionDuration": "interval 60 days",
            "delta.deletedFileRetentionDuration": "interval 36 hours",
            "delta.checkpointRetentionDuration": "interval 1500 milliseconds",
            "delta.checkpointPolicy": "v2",
        }
        == stored
    )


def test_the_write_that_made_a_table_is_named_before_its_columns_change(lake: Lake) -> None:  # noqa: F811
    frame = lake.spark.range(6).selectExpr("id", "id % 2 AS m")
    frame.write.format("delta").partitionBy("m").save(str(lake.table))
    lake.write_policy("partitioning: none, rewrite: allowed")
    (planned,) = tablectl.plan(lake.root / "p.yaml", directory=lake.root).tables
    assert "may name the partition columns" in planned.refusals[0].reason
    lake.reached("partitioning: none, rewrite: allowed, allow: [partition_writers]")
    with pytest.raises(Exception, match="DELTA_METADATA_MISMATCH"):
        frame.write.format("delta").mode("append").partitionBy("m").save(str(lake.table))
