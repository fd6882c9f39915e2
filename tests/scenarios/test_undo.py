"""The SQL that a plan gives for taking it back, sent by hand after the apply."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tablectl
from tablectl.delta.names import TableName
from tablectl.log.reader import read_table

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
    """In an order of its own: vectors cannot go on beside manifests, nor clustering without statistics."""
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
