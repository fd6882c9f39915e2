"""Tables that are born with their policy, on real Spark and Delta: their first plan is empty."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tablectl
from tablectl import TablectlError
from tablectl.engine.spark import SparkEngine
from tests.scenarios.conftest import Ran

Cli = Callable[..., Ran]
Policies = Callable[[str], None]
COLUMNS = "id BIGINT NOT NULL COMMENT 'the key', day DATE, code VARCHAR(10), at STRUCT<city: STRING, zip: INT>"
PROPERTIES = """
    isolation: Serializable
    deletion_vectors: enabled
    row_tracking: enabled
    column_mapping: name
    data_skipping: [id, day]
    retention: {log: 10 days, deleted_files: 2 days}
    features: {typeWidening: supported}
    constraints: {positive: "id > 0", day: not null}
    properties: {owner.team: "it's ours", delta.appendOnly: true, delta.checkpointPolicy: v2}
"""
OFF = """
    deletion_vectors: dropped
    row_tracking: disabled
    column_mapping: none
    uniform: none
    data_skipping: default
    isolation: default
    clustering: none
    partitioning: none
    properties: {delta.enableChangeDataFeed: true, owner.team: null}
"""


@pytest.fixture
def shop(spark: Any) -> Iterator[Path]:
    """The folder of an empty schema ``shop``."""
    spark.sql("CREATE SCHEMA shop")
    folder = Path(spark.conf.get("spark.sql.warehouse.dir").removeprefix("file:")) / "shop.db"
    yield folder
    spark.sql("DROP SCHEMA shop CASCADE")
    shutil.rmtree(folder, ignore_errors=True)


def pending(spark: Any, *tables: str) -> list[str]:
    """The changes of a plan."""
    plan = tablectl.plan(spark=spark, select=list(tables))
    assert not plan.failures
    return [f"{table.name}: {each.id}" for table in plan.tables for each in table.changes]


def test_the_plan_of_a_created_table_is_empty(spark: Any, shop: Path, cli: Cli, policies: Policies) -> None:
    del shop, cli
    policies(
        f"  shop.clustered:{PROPERTIES.replace('[id, day]', '[id, at.city]')}    clustering: [id, at.city]\n"
        f"  shop.partitioned:{PROPERTIES.replace('[id, day]', '[id]')}    partitioning: [day]\n"
        f"  shop.plain:{OFF}  shop.iceberg: {{uniform: iceberg_v2}}\n  shop.copy: {{clustering: [day]}}\n"
    )
    for table in ("clustered", "partitioned", "plain", "iceberg"):
        made = tablectl.create(spark, f"shop.{table}", COLUMNS)
        assert (made.made, made.version) == ("created", 0)
    assert tablectl.create(spark, "shop.copy", like="shop.clustered").made == "created"
    assert pending(spark) == []
    assert spark.table("shop.copy").schema == spark.table("shop.clustered").schema
    spark.sql("INSERT INTO shop.partitioned VALUES (1, DATE'2026-01-01', 'a', named_struct('city', 'b', 'zip', 2))")
    assert tablectl.create(spark, "shop.partitioned", COLUMNS).made == "already"


def test_a_table_that_is_something_else_is_left_alone(spark: Any, shop: Path, cli: Cli, policies: Policies) -> None:
    del shop, cli
    policies("  shop.orders: {deletion_vectors: enabled}\n")
    spark.sql("CREATE TABLE shop.orders (id STRING) USING delta")
    with pytest.raises(TablectlError) as refused:
        tablectl.create(spark, "shop.orders", "id BIGINT")
    assert refused.value.exit_code == 3
    assert "column id: type; deletion_vectors is disabled" in refused.value.message
    spark.sql("CREATE VIEW shop.returns AS SELECT 1 AS id")
    policies("  shop.returns: {deletion_vectors: enabled}\n")
    with pytest.raises(TablectlError, match="is a view"):
        tablectl.create(spark, "shop.returns", "id BIGINT")


def test_of_two_that_create_at_once_the_second_finds_the_table(
    spark: Any, shop: Path, cli: Cli, policies: Policies, monkeypatch: pytest.MonkeyPatch
) -> None:
    del shop, cli
    policies("  shop.orders: {deletion_vectors: enabled}\n")
    execute, others = SparkEngine.execute, list[str]()

    def second(engine: SparkEngine, sql: str, *args: Any, **more: Any) -> None:
        if not others:
            others.append("started")
            others.append(tablectl.create(spark, "shop.orders", "id BIGINT").made)
        execute(engine, sql, *args, **more)

    monkeypatch.setattr(SparkEngine, "execute", second)
    assert tablectl.create(spark, "shop.orders", "id BIGINT").made == "already"
    assert others == ["started", "created"]


def test_a_create_that_ended_before_its_entry_is_explained(
    spark: Any, shop: Path, cli: Cli, policies: Policies
) -> None:
    del cli
    policies("  shop.orders: {deletion_vectors: enabled}\n  shop.returns: {deletion_vectors: enabled}\n")
    tablectl.create(spark, "shop.orders", "id BIGINT")
    shutil.copytree(shop / "orders", shop / "returns")
    with pytest.raises(TablectlError) as refused:
        tablectl.create(spark, "shop.returns", "id BIGINT")
    assert "nothing but _delta_log" in refused.value.hint
    shutil.rmtree(shop / "returns")
    assert tablectl.create(spark, "shop.returns", "id BIGINT").made == "created"


def test_an_external_table_takes_over_the_log_of_a_create_that_ended_early(
    spark: Any, shop: Path, cli: Cli, policies: Policies, tmp_path: Path
) -> None:
    del shop, cli
    policies(f"  shop.orders: {{deletion_vectors: enabled, location: '{tmp_path}/orders'}}\n")
    tablectl.create(spark, "shop.orders", "id BIGINT")
    spark.sql("DROP TABLE shop.orders")
    made = tablectl.create(spark, "shop.orders", "id BIGINT")
    assert (made.made, made.version) == ("created", 0)


def test_a_session_with_the_defaults_makes_tables_as_declared(
    spark: Any, shop: Path, cli: Cli, policies: Policies, tmp_path: Path
) -> None:
    """A DataFrame, a stream, and SQL without any property."""
    policies(
        "  'shop.*':\n    isolation: Serializable\n    deletion_vectors: enabled\n    row_tracking: enabled\n"
        "    column_mapping: name\n    retention: {log: 10 days}\n    properties: {delta.checkpointPolicy: v2}\n"
    )
    session = spark.newSession()
    ran = cli("defaults", "python")
    assert (ran.code, ran.err) == (0, "")
    assert tablectl.set_defaults(session) == ()
    given = [line.split('"')[1] for line in ran.out.splitlines()]
    assert given
    assert all(session.conf.get(key) for key in given)
    session.range(3).write.format("delta").saveAsTable("shop.frame")
    session.sql("CREATE TABLE shop.statement (id BIGINT) USING delta")
    query = (
        session.readStream.table("shop.frame")
        .writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .toTable("shop.stream")
    )
    query.awaitTermination()
    assert spark.table("shop.stream").count() == 3
    assert pending(spark) == []
    del shop


KEPT = {
    "CREATE OR REPLACE TABLE shop.t (id BIGINT, day DATE) USING delta": {"deletion_vectors", "row_tracking"},
    "CREATE OR REPLACE TABLE shop.t USING delta AS SELECT 1L AS id, DATE'2026-01-01' AS day": {
        "deletion_vectors",
        "row_tracking",
    },
    "INSERT OVERWRITE shop.t VALUES (1, DATE'2026-01-01')": {
        *("deletion_vectors", "row_tracking", "column_mapping", "retention.log", "properties.owner.team"),
    },
    "TRUNCATE TABLE shop.t": {
        *("deletion_vectors", "row_tracking", "column_mapping", "retention.log", "properties.owner.team"),
        "clustering",
    },
}


@pytest.mark.parametrize("statement", list(KEPT))
def test_a_replacement_keeps_what_the_page_says(
    spark: Any, shop: Path, cli: Cli, policies: Policies, statement: str
) -> None:
    del shop, cli
    policies(
        "  shop.t: {clustering: [id], deletion_vectors: enabled, row_tracking: enabled, column_mapping: name, "
        "retention: {log: 10 days}, properties: {owner.team: ours}}\n"
    )
    tablectl.create(spark, "shop.t", "id BIGINT, day DATE")
    spark.sql("INSERT INTO shop.t VALUES (1, DATE'2026-01-01')")
    spark.sql(statement)
    every = {
        "clustering",
        "deletion_vectors",
        "row_tracking",
        "column_mapping",
        "retention.log",
        "properties.owner.team",
    }
    assert {each.removeprefix("shop.t: ") for each in pending(spark)} == every - KEPT[statement]


def test_the_command_takes_files_and_shows_its_statement(spark: Any, shop: Path, cli: Cli, policies: Policies) -> None:
    del shop
    policies("  shop.orders: {deletion_vectors: enabled}\n")
    Path("orders.sql").write_text("id BIGINT,\n  day DATE\n")
    Path("orders.json").write_text(spark.range(1).schema.json())
    shown = cli("create", "shop.orders", "--schema", "orders.sql", "--show")
    assert shown.out.startswith("CREATE TABLE `spark_catalog`.`shop`.`orders` (\n  `id` BIGINT,\n  `day` DATE\n)\n")
    assert spark.sql("SHOW TABLES IN shop").count() == 0
    assert cli("create", "shop.orders", "--schema", "orders.sql").code == 0
    assert "exists already" in cli("create", "shop.orders", "--schema", "orders.sql").out
    assert cli("create", "shop.orders", "--schema", "orders.json").code == 3
    assert cli("create", "shop.other", "--schema", "orders.json").code == 64
    Path("bad.sql").write_text("id BIGINT) USING delta --")
    ran = cli("create", "shop.orders", "--schema", "bad.sql")
    assert (ran.code, "bad.sql:1:1: a comma or the end is expected" in ran.err) == (1, True)
