"""Advice on real Delta: jobs that fail each other, the recommended policy applied, and the same race again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.interleaving import Writer

pytestmark = [pytest.mark.spark, pytest.mark.slow]  # 40 statements one after the other
RACES = 3


def race(spark: Any, table: Path) -> str:
    """The error of an update of one region, while another region is updated; empty if it commits."""
    held = f"UPDATE delta.`{table}` SET v = hold(v) WHERE region = 'r0' AND id > 0"
    with Writer(spark, held) as writer:
        writer.wait_inside()
        spark.sql(f"UPDATE delta.`{table}` SET v = v + 1 WHERE region = 'r1' AND id > 1")
        return writer.release().condition


def test_the_recommended_partitions_end_the_conflicts_that_the_log_does_not_show(
    spark: Any, cli: Callable[..., Any], tmp_path: Path
) -> None:
    table = tmp_path / "lake" / "orders"
    spark.sql(f"CREATE TABLE delta.`{table}` (id BIGINT, region STRING, v BIGINT) USING delta")
    spark.sql(f"INSERT INTO delta.`{table}` SELECT id, concat('r', id % 4), 0 FROM range(40)")
    for _ in range(8):
        for region in range(4):
            where = f"region = 'r{region}' AND id > {region}"
            spark.sql(f"UPDATE delta.`{table}` SET v = v + 1 WHERE {where}")
    assert [race(spark, table) for _ in range(RACES)] == ["DELTA_CONCURRENT_APPEND"] * RACES
    spark.sql(f"UPDATE delta.`{table}` SET v = v + 1 WHERE region = 'r2' AND id > 2")

    told = cli("advise", f"delta.`{table}`", "--list-files", "--out", "policies/advised.yaml", "--format", "json")
    assert told.code == 0, told.err
    first = told.json()["tables"][0]["advice"][0]
    assert (first["code"], first["declare"][-1]) == ("A02", ["partitioning", "", ["region"]])
    assert any("data files that no commit names" in each and each[0] != "0" for each in first["evidence"])

    assert cli("apply", "--yes").code == 0
    assert [race(spark, table) for _ in range(RACES)] == [""] * RACES
    assert cli("plan", "--detailed-exitcode").code == 0
    assert spark.sql(f"SELECT count(*) FROM delta.`{table}`").first()[0] == 40
