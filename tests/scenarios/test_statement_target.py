"""Where statements go on real Delta: a name that is renamed or swapped meanwhile, a foreign change, a lost answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tablectl
from tablectl.applying.events import RunEvent
from tablectl.commands.run_plan import Control
from tablectl.engine import spark as engine_module
from tablectl.engine.spark import SparkEngine
from tablectl.model.errors import EngineError
from tablectl.model.run_report import RunOutcome, RunReport

pytestmark = pytest.mark.spark


class Lake:
    """``swap.orders`` in /blue, and ``swap.orders_next``, which has a column more, in /green."""

    def __init__(self, spark: Any, tmp_path: Path, policies: Callable[[str], None]) -> None:
        self.spark, self.policies = spark, policies
        self.blue, self.green = tmp_path / "blue", tmp_path / "green"
        spark.sql("CREATE DATABASE swap")
        columns = "SELECT id, id % 3 AS m"
        spark.sql(f"CREATE TABLE swap.orders USING delta LOCATION '{self.blue}' AS {columns} FROM range(9)")
        spark.sql(
            f"CREATE TABLE swap.orders_next USING delta LOCATION '{self.green}' "
            f"AS {columns}, 'precious' AS extra FROM range(9)"
        )

    def swap(self) -> None:
        """As a blue/green deployment does it."""
        self.spark.sql("ALTER TABLE swap.orders RENAME TO swap.orders_prev")
        self.spark.sql("ALTER TABLE swap.orders_next RENAME TO swap.orders")

    def apply(self, policy: str, at: str, act: Callable[[], object]) -> RunReport:
        """An apply in the midst of which something happens once."""
        self.policies(f"  swap.orders: {policy}\n")
        done = False

        def notify(event: RunEvent) -> None:
            nonlocal done
            if event.step == at and not done:
                done = True
                act()

        report = tablectl.apply(spark=self.spark, control=Control(notify=notify))
        assert done
        return report

    def history(self, path: Path) -> list[str]:
        rows = self.spark.sql(f"DESCRIBE HISTORY delta.`{path}`").collect()
        return [row.operation for row in reversed(rows)]

    def columns(self, path: Path) -> list[str]:
        return list(self.spark.read.format("delta").load(str(path)).columns)


@pytest.fixture
def lake(
    spark: Any, tmp_path: Path, policies: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Lake]:
    monkeypatch.chdir(tmp_path)
    yield Lake(spark, tmp_path, policies)
    spark.sql("DROP DATABASE swap CASCADE")


SET = "{properties: {owner.team: web}}"
OVERWRITE = "{partitioning: [m], rewrite: allowed}"


@pytest.mark.parametrize("policy", [SET, OVERWRITE], ids=["a SET", "an overwrite"])
def test_a_swap_while_the_gate_is_closed_touches_no_other_table(lake: Lake, policy: str) -> None:
    report = lake.apply(policy, "gate closed", lake.swap)
    (run,) = report.tables
    assert (run.outcome, report.exit_code) == (RunOutcome.STALE, 3)
    assert str(lake.green) in run.message
    assert (len(lake.history(lake.blue)), len(lake.history(lake.green))) == (1, 1)
    assert lake.columns(lake.green) == ["id", "m", "extra"]


def test_a_swap_at_the_last_moment_takes_no_overwrite_along(lake: Lake) -> None:
    """After our own look at the name: the frame is read from the location, and written there."""
    report = lake.apply(OVERWRITE, "before closed-overwrite", lake.swap)
    (run,) = report.tables
    assert lake.columns(lake.green) == ["id", "m", "extra"]
    assert (len(lake.history(lake.green)), run.outcome) == (1, RunOutcome.UNVERIFIED)
    assert "the name swap.orders was moved to " in run.message
    detail = lake.spark.sql(f"DESCRIBE DETAIL delta.`{lake.blue}`").collect()[0]
    assert (detail.partitionColumns, lake.columns(lake.blue)) == (["m"], ["id", "m"])


def test_a_statement_that_a_swap_took_along_is_named_loudly(lake: Lake) -> None:
    report = lake.apply(SET, "before closed-set", lake.swap)
    (run,) = report.tables
    if lake.history(lake.green) == ["CREATE TABLE AS SELECT"]:
        pytest.fail("the engine did not follow the name: this test shows nothing")
    assert (run.outcome, report.exit_code) == (RunOutcome.UNVERIFIED, 5)
    assert "ANOTHER TABLE" in run.message
    assert f"version 1 of file:{lake.green}" in run.message


def test_a_renamed_table_is_left_alone(lake: Lake) -> None:
    def rename() -> None:
        lake.spark.sql("ALTER TABLE swap.orders RENAME TO swap.archive")

    report = lake.apply(SET, "gate closed", rename)
    (run,) = report.tables
    assert run.outcome is RunOutcome.FAILED
    assert "does not exist" in run.message
    assert len(lake.history(lake.blue)) == 1


def test_someone_elses_change_of_the_key_at_the_last_moment_is_reported(lake: Lake) -> None:
    def theirs() -> None:
        lake.spark.sql("ALTER TABLE swap.orders SET TBLPROPERTIES ('owner.team' = 'green')")

    report = lake.apply(SET, "before closed-set", theirs)
    (run,) = report.tables
    assert (run.outcome, report.exit_code) == (RunOutcome.UNVERIFIED, 5)
    assert "overwrote a change of another writer" in run.message
    assert "version 1 (SET TBLPROPERTIES)" in run.message


@pytest.mark.parametrize("landed", [True, False])
def test_a_lost_answer_is_found_in_the_log(lake: Lake, monkeypatch: pytest.MonkeyPatch, landed: bool) -> None:
    execute = SparkEngine.execute

    def loses(self: SparkEngine, sql: str, *rest: Any, **more: Any) -> None:
        if landed:
            execute(self, sql, *rest, **more)
        raise EngineError("the connection was reset", unanswered=True)

    monkeypatch.setattr(engine_module.SparkEngine, "execute", loses)
    monkeypatch.setattr(engine_module.SparkEngine, "interrupt", lambda *_: False)
    lake.policies(f"  swap.orders: {SET}\n")
    report = tablectl.apply(spark=lake.spark)
    (run,) = report.tables
    assert run.outcome is (RunOutcome.APPLIED if landed else RunOutcome.FAILED)
    assert len(lake.history(lake.blue)) == 1 + landed


def test_a_nested_type_that_was_widened_before_is_not_a_difference(lake: Lake) -> None:
    """Delta drops the history of nested types when it writes all files again."""
    path = lake.blue.parent / "nested"
    lake.spark.sql(
        f"CREATE TABLE delta.`{path}` (m INT, s STRUCT<a: INT>, l ARRAY<STRUCT<x: INT>>) USING delta "
        "TBLPROPERTIES ('delta.enableTypeWidening' = 'true')"
    )
    lake.spark.sql(f"INSERT INTO delta.`{path}` VALUES (1, struct(2), array(struct(3)))")
    for column in ("s.a", "l.element.x"):
        lake.spark.sql(f"ALTER TABLE delta.`{path}` ALTER COLUMN {column} TYPE BIGINT")
    lake.policies(f"  delta.`{path}`: {OVERWRITE}\n")
    report = tablectl.apply(spark=lake.spark)
    assert [(run.outcome, run.message) for run in report.tables] == [(RunOutcome.APPLIED, "")]


def test_a_saved_plan_applied_again_after_vacuum_finds_nothing_wrong(lake: Lake) -> None:
    lake.policies(f"  swap.orders: {OVERWRITE}\n")
    plan = tablectl.plan(spark=lake.spark)
    assert tablectl.apply(plan, spark=lake.spark).exit_code == 0
    lake.spark.sql("INSERT INTO swap.orders VALUES (100, 1)")
    lake.spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    try:
        lake.spark.sql("VACUUM swap.orders RETAIN 0 HOURS")
    finally:
        lake.spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")
    report = tablectl.apply(plan, spark=lake.spark)
    assert (report.exit_code, [run.outcome for run in report.tables]) == (0, [RunOutcome.ALREADY])
