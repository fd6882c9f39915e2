"""What ``data_skipping`` refuses, Delta refuses with the class that the refusal names; what it accepts, Delta takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tablectl.attributes.policy import Policy
from tablectl.delta.names import TableName
from tablectl.log.reader import read_table
from tablectl.planning.plan_table import plan_table

pytestmark = pytest.mark.spark

_COLUMNS = """id BIGINT, flag BOOLEAN, raw BINARY, list ARRAY<INT>, s STRUCT<a: INT, b: STRING>,
    mixed STRUCT<a: INT, f: BOOLEAN>, note STRING, price DECIMAL(10,2), local TIMESTAMP_NTZ, day DATE"""


def test_delta_refuses_the_columns_that_the_plan_refuses(spark: Any, tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    spark.sql(f"CREATE TABLE delta.`{place}` ({_COLUMNS}) USING delta PARTITIONED BY (day)")
    live = read_table(TableName("", (place,)), place)
    for columns in (
        ("id",),
        ("S", "note"),
        ("s.a", "price", "local"),
        ("flag",),
        ("raw",),
        ("list",),
        ("mixed",),
        ("s", "s.a"),
        ("nonesuch",),
        ("day",),
    ):
        plan = plan_table(Policy(data_skipping=columns), live, "oss")
        assert plan is not None
        refused = plan.refusals[0].condition if plan.refusals else ""
        sql = (
            f"ALTER TABLE delta.`{place}` SET TBLPROPERTIES ('delta.dataSkippingStatsColumns' = '{','.join(columns)}')"
        )
        if not refused:
            spark.sql(sql)
            continue
        with pytest.raises(Exception, match=refused):
            spark.sql(sql)


def test_delta_takes_a_list_without_the_clustering_columns_and_then_refuses_to_cluster(
    spark: Any, tmp_path: Path
) -> None:
    place = str(tmp_path / "t")
    spark.sql(f"CREATE TABLE delta.`{place}` (id BIGINT, note STRING) USING delta CLUSTER BY (id)")
    plan = plan_table(Policy(data_skipping=("note",)), read_table(TableName("", (place,)), place), "oss")
    assert plan is not None
    assert "left without statistics" in plan.refusals[0].reason
    spark.sql(f"ALTER TABLE delta.`{place}` SET TBLPROPERTIES ('delta.dataSkippingStatsColumns' = 'note')")
    with pytest.raises(Exception, match="DELTA_CLUSTERING_COLUMN_MISSING_STATS"):
        spark.sql(f"ALTER TABLE delta.`{place}` CLUSTER BY (id)")
