"""What the plan refuses, Delta refuses with the class that the refusal names; what it lets through, Delta takes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tablectl.attributes.policy import Policy
from tablectl.delta.names import TableName
from tablectl.engine.spark import SparkEngine, wrap_spark
from tablectl.log.reader import read_table
from tablectl.model.errors import EngineError
from tablectl.model.operations import ClusterBy, SetProperties
from tablectl.model.plan import TablePlan
from tablectl.planning.plan_table import plan_table

pytestmark = pytest.mark.spark

COLUMNS = """id BIGINT, flag BOOLEAN, raw BINARY, list ARRAY<INT>, pairs MAP<STRING, INT>, s STRUCT<a: INT, b: STRING>,
    price DECIMAL(10,2), day DATE, at TIMESTAMP, local TIMESTAMP_NTZ, note STRING, tiny TINYINT, real DOUBLE,
    `a.b` INT"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("agrees")


@pytest.fixture(scope="module")
def engine(spark: Any, place: Path) -> Iterator[SparkEngine]:
    engine = wrap_spark(spark)
    engine.execute(f"CREATE TABLE delta.`{place}/wide` ({COLUMNS}) USING delta")
    many = ", ".join(f"c{number} INT" for number in range(40))
    engine.execute(f"CREATE TABLE delta.`{place}/many` ({many}) USING delta")
    engine.execute(f"CREATE TABLE delta.`{place}/parts` (id INT, day DATE) USING delta PARTITIONED BY (day)")
    named = "TBLPROPERTIES ('delta.dataSkippingStatsColumns' = 'id,s')"
    engine.execute(f"CREATE TABLE delta.`{place}/named` (id INT, other INT, s STRUCT<a: INT>) USING delta {named}")
    yield engine
    engine.close()


def plan(place: Path, table: str, policy: Policy) -> TablePlan | None:
    live = read_table(TableName("", (f"{place}/{table}",)), f"{place}/{table}")
    return plan_table(policy, live, "oss")


@pytest.mark.parametrize(
    ("table", "column"),
    [
        ("wide", "flag"),
        ("wide", "raw"),
        ("wide", "list"),
        ("wide", "pairs"),
        ("wide", "s"),
        ("wide", "nonesuch"),
        ("wide", "s.nonesuch"),
        ("wide", "a.b"),
        ("many", "c32"),
        ("many", "c39"),
        ("parts", "id"),
        ("named", "other"),
    ],
)
def test_a_refused_clustering_is_refused_by_delta_too(
    engine: SparkEngine, place: Path, table: str, column: str
) -> None:
    planned = plan(place, table, Policy({"clustering": (column,)}))
    assert planned is not None
    (refusal,) = planned.refusals
    with pytest.raises(EngineError) as caught:
        engine.execute(ClusterBy((column,)).sql(planned.table))
    assert caught.value.condition == refusal.condition


@pytest.mark.parametrize(
    ("table", "column"),
    [
        *(
            ("wide", each)
            for each in ("id", "price", "day", "at", "local", "note", "tiny", "real", "s.a", "S.B", "`a.b`")
        ),
        ("many", "c31"),
        ("named", "id"),
        ("named", "s.a"),
    ],
)
def test_a_planned_clustering_is_taken_by_delta(engine: SparkEngine, place: Path, table: str, column: str) -> None:
    planned = plan(place, table, Policy({"clustering": (column,)}))
    if planned is None:
        return  # an earlier case left the table clustered so
    assert planned.refusals == ()
    for statement in planned.statements:
        engine.execute(statement.sql)
    assert plan(place, table, Policy({"clustering": (column,)})) is None


@pytest.mark.parametrize(
    ("before", "key", "value"),
    [
        ("", "delta.appendOnly", "true"),
        ("", "delta.enableChangeDataFeed", "true"),
        ("", "delta.checkpointPolicy", "v2"),
        ("", "delta.enableInCommitTimestamps", "true"),
        ("", "delta.enableTypeWidening", "true"),
        ("TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')", "delta.checkpointPolicy", "v2"),
        (
            "TBLPROPERTIES ('delta.minWriterVersion' = '5', 'delta.minReaderVersion' = '2')",
            "delta.checkpointPolicy",
            "v2",
        ),
        ("CLUSTER BY (id)", "delta.enableChangeDataFeed", "true"),
        ("", "delta.logRetentionDuration", "interval 60 days"),
    ],
)
def test_the_protocol_a_plan_foresees_is_the_one_delta_makes(
    engine: SparkEngine, tmp_path: Path, before: str, key: str, value: str
) -> None:
    table = TableName("", (str(tmp_path / "t"),))
    engine.execute(f"CREATE TABLE {table.sql} (id INT) USING delta {before}")
    planned = plan_table(Policy({"properties": {key: value}}), read_table(table, str(tmp_path / "t")), "oss")
    assert planned is not None
    engine.execute(SetProperties(((key, value),)).sql(table))
    assert read_table(table, str(tmp_path / "t")).protocol == planned.protocol_after.protocol()


def test_vectors_next_to_symlink_manifests_are_refused_by_both_and_taken_in_one_set(
    engine: SparkEngine, tmp_path: Path
) -> None:
    manifest = "delta.compatibility.symlinkFormatManifest.enabled"
    table = TableName("", (str(tmp_path / "t"),))
    engine.execute(f"CREATE TABLE {table.sql} (id INT) USING delta TBLPROPERTIES ('{manifest}' = 'true')")
    live = read_table(table, str(tmp_path / "t"))
    alone = plan_table(Policy({"deletion_vectors": "enabled"}), live, "oss")
    assert alone is not None
    (refusal,) = alone.refusals
    with pytest.raises(EngineError) as caught:
        engine.execute(SetProperties((("delta.enableDeletionVectors", "true"),)).sql(table))
    assert caught.value.condition == refusal.condition
    both = plan_table(Policy({"deletion_vectors": "enabled", "properties": {manifest: "false"}}), live, "oss")
    assert both is not None
    (statement,) = both.statements
    engine.execute(statement.sql)
