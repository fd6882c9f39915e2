"""Tables of Spark's Hive metastore, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.spark


@pytest.fixture
def database(spark: Any) -> Iterator[str]:
    spark.sql("CREATE DATABASE sales")
    yield "sales"
    spark.sql("DROP DATABASE sales CASCADE")


def test_two_and_three_parts_name_one_table_whose_log_is_read_without_describe_detail(
    spark: Any, database: str, cli: Callable[..., Any], policies: Callable[[str], None], tmp_path: Path
) -> None:
    spark.sql("CREATE TABLE sales.orders (id BIGINT, day DATE) USING delta")
    spark.sql(f"CREATE TABLE sales.moved (id BIGINT) USING delta LOCATION '{tmp_path}/moved'")
    spark.sql("CREATE TABLE sales.plain (id BIGINT) USING parquet")
    spark.sql("CREATE VIEW sales.seen AS SELECT 1 AS one")
    policies("""
  sales.Orders: {clustering: [day]}
  spark_catalog.sales.moved: {isolation: Serializable}
""")
    assert cli("plan", "--out", "p.json", "--detailed-exitcode").code == 2
    assert cli("apply", "p.json").code == 0
    assert cli("plan", "--detailed-exitcode").code == 0

    policies("""
  sales.plain: {isolation: Serializable}
  sales.seen: {isolation: Serializable}
  sales.none: {isolation: Serializable}
""")
    broken = cli("plan")
    assert broken.code == 1
    for words in ("is not a Delta table", "is a view", "does not exist"):
        assert words in broken.out


def test_a_name_that_leads_elsewhere_since_the_plan_is_stale(
    spark: Any, database: str, cli: Callable[..., Any], policies: Callable[[str], None], tmp_path: Path
) -> None:
    spark.sql(f"CREATE TABLE sales.t (id BIGINT) USING delta LOCATION '{tmp_path}/first'")
    policies("\n  sales.t: {isolation: Serializable}\n")
    cli("plan", "--out", "p.json")
    spark.sql("DROP TABLE sales.t")
    spark.sql(f"CREATE TABLE sales.t (id BIGINT) USING delta LOCATION '{tmp_path}/second'")
    stale = cli("apply", "p.json")
    assert stale.code == 3
    assert "the name now leads to" in stale.out


def test_a_declared_location_is_read_without_asking_the_catalog_and_checked_before_statements_run(
    spark: Any, database: str, cli: Callable[..., Any], policies: Callable[[str], None], tmp_path: Path
) -> None:
    spark.sql(f"CREATE TABLE sales.t (id BIGINT) USING delta LOCATION '{tmp_path}/real'")
    spark.sql(f"CREATE TABLE delta.`{tmp_path}/wrong` (id BIGINT) USING delta")
    policies(f"\n  sales.t: {{isolation: Serializable, location: {tmp_path}/wrong}}\n")
    planned = cli("plan", "--out", "p.json")
    assert planned.code == 0
    assert "Spark" not in planned.err
    assert cli("apply", "p.json").code == 3
    policies(f"\n  sales.t: {{isolation: Serializable, location: {tmp_path}/real}}\n")
    assert cli("apply", "--yes").code == 0


def test_a_pattern_takes_every_delta_table_of_a_schema_and_a_new_one_with_the_next_plan(
    spark: Any, database: str, cli: Callable[..., Any], policies: Callable[[str], None], tmp_path: Path
) -> None:
    for number in range(3):
        spark.sql(f"CREATE TABLE sales.Orders_{number} (id BIGINT) USING delta")
    spark.sql("CREATE TABLE sales.orders_plain (id BIGINT) USING parquet")
    spark.sql("CREATE VIEW sales.orders_seen AS SELECT 1 AS one")
    spark.sql("CREATE TABLE sales.returns (id BIGINT) USING delta")
    policies("""
  sales.ORDERS_*: {isolation: Serializable}
  spark_catalog.sal?s.*_1: {clustering: [id]}
  sales.orders_2: {isolation: default, deletion_vectors: enabled}
  sales.nix*: {isolation: Serializable}
  nix.*: {isolation: Serializable}
""")
    planned = cli("plan", "--out", "p.json", "--verbose")
    assert planned.code == 1
    assert "sales.nix*  not readable" in planned.out
    assert "tables.yaml:7" in planned.out
    assert "the schema spark_catalog.nix does not exist" in planned.out
    assert planned.out.count("default → Serializable") == 2
    assert planned.out.count("CLUSTER BY (`id`)") == 1
    assert planned.out.count("'delta.enableDeletionVectors' = 'true'") == 1
    assert "returns" not in planned.out
    assert cli("apply", "p.json").code == 5
    policies("\n  sales.orders_*: {isolation: Serializable}\n  sales.orders_2: {unmanaged: [isolation]}\n")
    assert cli("plan", "--detailed-exitcode").out == "No changes. 3 tables match their policies.\n"
    spark.sql("CREATE TABLE sales.orders_3 (id BIGINT) USING delta")
    again = cli("plan", "--detailed-exitcode")
    assert (again.code, again.out.count("ALTER TABLE")) == (2, 2)
    assert cli("apply", "--yes").code == 0
    assert cli("plan", "--detailed-exitcode").code == 0
