"""The way back from an apply: the SQL that its plan gives, sent by hand, and `tablectl undo`, applied."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tablectl
from tablectl.delta.names import TableName
from tablectl.log.reader import read_table
from tests.scenarios.conftest import Ran

pytestmark = pytest.mark.spark

POLICY = """\
version: 1
tables:
  delta.`{table}`:
    isolation: Serializable
    deletion_vectors: enabled
    clustering: [b]
    data_skipping: [b]
    properties:
      delta.compatibility.symlinkFormatManifest.enabled: false
      owner.team: null
      x: y
"""


def test_a_whole_table_is_taken_back(spark: Any, tmp_path: Path) -> None:
    """In an order of its own: vectors cannot continue with manifests, nor clustering without statistics."""
    table = tmp_path / "t"
    spark.sql(
        f"CREATE TABLE delta.`{table}` (a INT, b INT) USING delta CLUSTER BY (a) TBLPROPERTIES ("
        "'delta.dataSkippingStatsColumns' = 'a', 'owner.team' = 'web', "
        "'delta.compatibility.symlinkFormatManifest.enabled' = 'true')"
    )
    spark.sql(f"INSERT INTO delta.`{table}` VALUES (1, 2)")
    (tmp_path / "policy.yaml").write_text(POLICY.format(table=table), encoding="utf-8")
    before = read_table(TableName("", (str(table),)), str(table))
    plan = tablectl.plan(tmp_path / "policy.yaml", directory=tmp_path)
    assert tablectl.apply(plan, policies=tmp_path / "policy.yaml", directory=tmp_path, spark=spark).exit_code == 0
    changed = read_table(TableName("", (str(table),)), str(table))
    assert (changed.clustering, changed.property("x")) == ((("b",),), "y")
    for statement in plan.tables[0].undo:
        spark.sql(statement)
    after = read_table(TableName("", (str(table),)), str(table))
    assert (after.properties, after.clustering) == (before.properties, before.clustering)
    # What cannot be taken back was said: the protocol stays raised.
    assert after.protocol.has("deletionVectors")
    assert any("deletionVectors" in statement.undo_note for statement in plan.tables[0].statements)


TABLES = {
    "flat": ("", "isolation: Serializable, deletion_vectors: enabled, row_tracking: enabled, clustering: [b]"),
    "kept": ("", "data_skipping: [a], retention: {log: 60 days, deleted_files: 14 days}"),
    "iceberg": ("", "uniform: iceberg_v2, rewrite: allowed"),
    "mapped": ("", "column_mapping: name, rewrite: allowed, properties: {owner.team: payments, x: y, stray: null}"),
    "spoken": ("", "features: {vacuumProtocolCheck: supported}, properties: {x: y}"),
    "split": ("PARTITIONED BY (a)", "partitioning: [b], rewrite: allowed"),
}
"""Tables with the policy that is applied and undone; together the policies have every attribute that open-source Delta
has.
"""


def test_an_undo_restores_every_attribute(
    spark: Any, tmp_path: Path, cli: Callable[..., Ran], policies: Callable[[str], None]
) -> None:
    before = {}
    for name, (layout, _) in TABLES.items():
        table = tmp_path / name
        spark.sql(
            f"CREATE TABLE delta.`{table}` (a INT, b INT, c STRING) USING delta {layout} "
            "TBLPROPERTIES ('owner.team' = 'web', 'stray' = 'z')"
        )
        spark.sql(f"INSERT INTO delta.`{table}` VALUES (1, 2, 'x'), (3, 4, 'y')")
        before[name] = state(table)
    policies("".join(f"  delta.`{tmp_path / name}`: {{{policy}}}\n" for name, (_, policy) in TABLES.items()))
    assert cli("apply", "--yes").code == 0
    assert all(state(tmp_path / name) != before[name] for name in TABLES)
    (run,) = cli("runs", "--format", "json").json()["runs"]
    assert cli("undo", run["stamp"]["run"], "--write", "--yes", "--out", "undo.json").code == 0
    ran = cli("apply", "undo.json", "--yes")
    assert ran.code == 0, ran.out + ran.err
    assert {name: state(tmp_path / name) for name in TABLES} == before
    spoken = tmp_path / "spoken"
    assert not read_table(TableName("", (str(spoken),)), str(spoken)).protocol.has("vacuumProtocolCheck")
    rows = spark.sql(f"SELECT a, b, c FROM delta.`{tmp_path / 'split'}` ORDER BY a").collect()
    assert [tuple(row) for row in rows] == [(1, 2, "x"), (3, 4, "y")]


def state(table: Path) -> tuple[Any, ...]:
    """What policies may declare of a table, as its log has it. Properties with the value of their default are unset,
    and Delta's own marks, such as the one that DROP FEATURE leaves, are none.
    """
    live = read_table(TableName("", (str(table),)), str(table))
    ours = {key: value for key, value in live.properties.items() if value not in {"false", "none", "Serializable"}}
    marks = (
        "delta.requireCheckpointProtection",
        "delta.rowTracking.",
        "delta.columnMapping.",
        "delta.universalFormat.",
    )
    return live.clustering or (), live.partition_columns, {key: ours[key] for key in ours if not key.startswith(marks)}
