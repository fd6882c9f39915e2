"""A process killed after each of its steps, on real tables; the same command again finishes the rest.

The killed run is a process of its own that reaches the shared JVM over Spark Connect (two JVMs must not commit to one
local directory). The run after it waits for the dead lease on a clock that passes time instead of sleeping.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import tablectl
from tablectl.commands.run_plan import Control
from tablectl.delta.names import TableName
from tablectl.log.reader import read_table
from tablectl.model.run_report import RunOutcome
from tests.scenarios.conftest import operations

pytestmark = pytest.mark.spark

STEPS = [
    pytest.param("leased", marks=pytest.mark.slow),
    pytest.param("fresh", marks=pytest.mark.slow),
    pytest.param("gate appends-only", marks=pytest.mark.slow),
    pytest.param("before purge-before", marks=pytest.mark.slow),
    "after purge-before",
    pytest.param("gate closed", marks=pytest.mark.slow),
    pytest.param("drained", marks=pytest.mark.slow),
    pytest.param("before closed-set", marks=pytest.mark.slow),
    "after closed-set",
    pytest.param("before closed-unset", marks=pytest.mark.slow),
    pytest.param("after closed-unset", marks=pytest.mark.slow),
    pytest.param("gate open", marks=pytest.mark.slow),
    pytest.param("verify", marks=pytest.mark.slow),
    "released",
]

KILLED = """
import os, sys
from pathlib import Path
import tablectl
from tablectl.commands.run_plan import Control

def notify(event):
    if event.step == sys.argv[1]:
        os._exit(9)

tablectl.apply(Path("p.json"), control=Control(notify=notify))
"""


class PassingClock:
    """Real time plus all that was slept: a dead holder is waited out at once, a live one as ever."""

    def __init__(self) -> None:
        self.slept = 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self.slept

    def sleep(self, seconds: float) -> None:
        self.slept += seconds

    def utc(self) -> datetime:
        return datetime.now(UTC)


@pytest.mark.parametrize("step", STEPS)
def test_a_run_killed_at_any_step_is_finished_by_the_same_command(
    spark: Any,
    connect_url: str,
    cli: Callable[..., Any],
    policies: Callable[[str], None],
    log: Callable[[Path], list[dict[str, Any]]],
    tmp_path: Path,
    step: str,
) -> None:
    table = tmp_path / "t"
    spark.sql(f"""CREATE TABLE delta.`{table}` USING delta
        TBLPROPERTIES ('delta.enableDeletionVectors' = 'true', 'stray' = 'x') AS SELECT id FROM range(0, 90, 1, 1)""")
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id % 3 = 0")
    policies(f"""
  delta.`{table}`:
    isolation: Serializable
    deletion_vectors: purged
    properties: {{stray: null}}
""")
    (tmp_path / "tablectl.yaml").write_text(f"engine: {{remote: '{connect_url}'}}\n", encoding="utf-8")
    assert cli("plan", "--out", "p.json").code == 0
    script = [sys.executable, "-c", KILLED, step]
    killed = subprocess.run(script, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False)
    assert killed.returncode == 9, killed.stderr
    landed = operations(log(table)[2:])

    again = tablectl.apply(tmp_path / "p.json", directory=tmp_path, spark=spark, control=Control(clock=PassingClock()))

    assert again.exit_code == 0, again
    (run,) = again.tables
    assert operations(log(table)[2:]) == ["REORG", "SET TBLPROPERTIES", "UNSET TBLPROPERTIES"]
    assert len(run.commits) == 3 - len(landed), "no second commit for what had landed"
    assert run.outcome is (RunOutcome.ALREADY if len(landed) == 3 else RunOutcome.APPLIED)
    stamps = [json.loads(commit["commitInfo"]["userMetadata"])["tablectl"] for commit in log(table)[2:]]
    assert {stamp["plan"] for stamp in stamps} == {again.plan}
    assert spark.sql(f"SELECT count(*), sum(id) FROM delta.`{table}`").first() == (
        60,
        sum(i for i in range(90) if i % 3),
    )
    assert run.epoch in {2, 3}, "3 where a statement of the killed run was waited for, with leases of its own"
    assert cli("window", "show", f"delta.`{table}`").out.count(f"free; last held (epoch {run.epoch})") == 1


@pytest.mark.parametrize(
    "step",
    [
        pytest.param("before closed-overwrite", marks=pytest.mark.slow),
        "after closed-overwrite",
        pytest.param("compare", marks=pytest.mark.slow),
    ],
)
def test_a_rewrite_killed_around_its_commit_loses_no_row(
    spark: Any,
    connect_url: str,
    cli: Callable[..., Any],
    policies: Callable[[str], None],
    log: Callable[[Path], list[dict[str, Any]]],
    tmp_path: Path,
    step: str,
) -> None:
    table = tmp_path / "t"
    spark.sql(f"CREATE TABLE delta.`{table}` (id BIGINT, day STRING COMMENT 'of the sale') USING delta")
    spark.sql(f"INSERT INTO delta.`{table}` SELECT id, concat('d', id % 3) FROM range(0, 90, 1, 1)")
    policies(f"  delta.`{table}`: {{partitioning: [day], rewrite: allowed}}\n")
    (tmp_path / "tablectl.yaml").write_text(f"engine: {{remote: '{connect_url}'}}\n", encoding="utf-8")
    assert cli("plan", "--out", "p.json").code == 0
    script = [sys.executable, "-c", KILLED, step]
    killed = subprocess.run(script, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False)
    assert killed.returncode == 9, killed.stderr
    landed = operations(log(table)[2:])
    assert landed == ([] if step.startswith("before") else ["WRITE"])

    again = tablectl.apply(tmp_path / "p.json", directory=tmp_path, spark=spark, control=Control(clock=PassingClock()))

    assert again.exit_code == 0, again
    assert operations(log(table)[2:]) == ["WRITE"], "the data is rewritten once"
    live = read_table(TableName("", (str(table),)), str(table))
    assert live.partition_columns == ("day",)
    assert "of the sale" in live.schema.text
    assert spark.sql(f"SELECT count(*), sum(id) FROM delta.`{table}`").first() == (90, sum(range(90)))
