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


_LISTS = (
    ("id",),
    ("S", "note"),
    ("s.a", "price", "local"),
    ("flag",),
    ("raw",),
    ("list",),
    ("mixed",),
    ("mixed.a",),
    ("mixed.f",),
    ("mixed", "mixed.f"),
    ("s", "s.a"),
    ("nonesuch",),
    ("day",),
)


def test_delta_refuses_the_columns_that_the_plan_refuses(spark: Any, tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    spark.sql(f"CREATE TABLE delta.`{place}` ({_COLUMNS}) USING delta PARTITIONED BY (day)")
    live = read_table(TableName("", (place,)), place)
    planned, found = {}, {}
    for columns in _LISTS:
        plan = plan_table(Policy({"data_skipping": columns}), live, "oss")
        assert plan is not None
        planned[columns] = plan.refusals[0].condition if plan.refusals else ""
        values = f"'delta.dataSkippingStatsColumns' = '{','.join(columns)}'"
        found[columns] = _condition(spark, f"ALTER TABLE delta.`{place}` SET TBLPROPERTIES ({values})")
    assert planned == found


def _condition(spark: Any, sql: str) -> str:
    """The error class with which Delta rejects a statement; empty if it takes it."""
    try:
        spark.sql(sql)
    except Exception as error:  # noqa: BLE001  # any rejection counts, and is compared
        condition = getattr(error, "getCondition", None)
        return str(condition()) if condition else type(error).__name__
    return ""


def test_delta_takes_a_list_without_the_clustering_columns_and_then_refuses_to_cluster(
    spark: Any, tmp_path: Path
) -> None:
    place = str(tmp_path / "t")
    spark.sql(f"CREATE TABLE delta.`{place}` (id BIGINT, note STRING) USING delta CLUSTER BY (id)")
    plan = plan_table(Policy({"data_skipping": ("note",)}), read_table(TableName("", (place,)), place), "oss")
    assert plan is not None
    assert "left without statistics" in plan.refusals[0].reason
    spark.sql(f"ALTER TABLE delta.`{place}` SET TBLPROPERTIES ('delta.dataSkippingStatsColumns' = 'note')")
    with pytest.raises(Exception, match="DELTA_CLUSTERING_COLUMN_MISSING_STATS"):
        spark.sql(f"ALTER TABLE delta.`{place}` CLUSTER BY (id)")


def test_delta_finds_columns_whose_names_have_commas_blanks_and_hyphens(spark: Any, tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    spark.sql(
        f"CREATE TABLE delta.`{place}` (`a,b` BIGINT, `my col` BIGINT, `order-id` BIGINT, s STRUCT<`x.y`: INT>)"
        " USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    )
    name, policy = TableName("", (place,)), Policy({"data_skipping": ("a,b", "my col", "order-id", "s.`x.y`")})
    plan = plan_table(policy, read_table(name, place), "oss")
    assert plan is not None
    for statement in plan.statements:
        spark.sql(statement.sql)
    live = read_table(name, place)
    assert live.property("delta.dataSkippingStatsColumns") == "`a,b`,`my col`,`order-id`,s.`x.y`"
    assert plan_table(policy, live, "oss") is None
