"""What a plan is expected to cost the writers of a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import MappingProxyType

from tablectl.delta.protocol import Client
from tablectl.model.commit import Commit, WriteHistory
from tablectl.model.plan import Phase, TablePlan
from tablectl.model.table import LiveTable
from tablectl.planning.plan_file import dump_plan, load_plan
from tests.applying.lake_run import plan_of

Live = Callable[..., LiveTable]
TablePlanner = Callable[..., TablePlan]
START = 1_793_577_600_000
"""Monday, 2 November 2026, 00:00 UTC."""
HOUR = 3_600_000
SPARK = Client("delta-spark", (4, 4, 0))


def nightly(days: int, hour: int = 2) -> WriteHistory:
    """A MERGE each day that takes the first half of an hour."""
    took = MappingProxyType({"executionTimeMs": str(HOUR // 2)})
    commits = [
        Commit(
            day + 1,
            START + (day * 24 + hour) * HOUR + HOUR // 2 - 1,
            "MERGE",
            client=SPARK,
            changes_data=True,
            metrics=took,
        )
        for day in range(days)
    ]
    return WriteHistory(tuple(reversed(commits)))


def test_a_blocking_statement_has_a_loss_for_each_hour(live: Live, table_plan: TablePlanner) -> None:
    loss = table_plan(replace(live(), past=nightly(30)), isolation="Serializable").loss
    assert loss is not None
    assert (loss.writes, loss.unknown, len(loss.failed)) == (30, "", 168)
    assert all(0.4 < loss.failed[day * 24 + 2] < 0.6 for day in range(7))
    assert loss.failed[5] < 0.01
    assert loss.quietest is not None
    assert loss.quietest % 24 not in range(6)  # the hours around the job
    assert [each.statement for each in loss.statements] == ["closed-set"]
    assert 700 < loss.seconds[2] < 1000


def test_a_safe_statement_has_none(live: Live, table_plan: TablePlanner) -> None:
    plan = table_plan(replace(live(), writes=nightly(30)), deletion_vectors="enabled")
    assert {each.phase for each in plan.statements} == {Phase.FREE}
    assert plan.loss is None


def test_three_runs_are_evidence_and_are_named(live: Live, table_plan: TablePlanner) -> None:
    loss = table_plan(replace(live(), past=nightly(3)), isolation="Serializable").loss
    assert loss is not None
    assert (loss.unknown, loss.jobs) == ("", ("MERGE: runs on 3 days, each between 02:00 and 02:30 UTC",))
    assert loss.failed[2] > 0.3


def test_a_table_that_was_never_written_tells_nothing(live: Live, table_plan: TablePlanner) -> None:
    made = WriteHistory((Commit(0, START, "CREATE TABLE"),))
    loss = table_plan(replace(live(), past=made), isolation="Serializable").loss
    assert loss is not None
    assert (loss.failed, loss.unknown) == ((), "no writes in 30 days")


def test_a_history_that_was_not_read_tells_nothing(live: Live, table_plan: TablePlanner) -> None:
    assert table_plan(live(), isolation="Serializable").loss is None


def test_two_statements_cost_less_than_each_alone(live: Live, table_plan: TablePlanner) -> None:
    plan = table_plan(replace(live(), past=nightly(30)), isolation="Serializable", properties={"debug": None, "a": "b"})
    loss = plan.loss
    assert loss is not None
    assert max(loss.failed) <= sum(max(each.failed) for each in loss.statements)


def test_a_history_of_an_hour_knows_no_quiet_hour(live: Live, table_plan: TablePlanner) -> None:
    commits = tuple(
        Commit(100 - age, START - age * 60_000, "MERGE", client=SPARK, changes_data=True, read_version=99 - age)
        for age in range(60)
    )
    loss = table_plan(replace(live(), past=WriteHistory(commits)), isolation="Serializable").loss
    assert loss is not None
    assert (loss.unknown, loss.quietest) == ("", None)


def test_a_plan_file_keeps_the_loss(live: Live, table_plan: TablePlanner) -> None:
    plan = plan_of(table_plan(replace(live(), past=nightly(30)), isolation="Serializable"))
    plan = replace(plan, format=2)
    assert load_plan(dump_plan(plan), "plan.json", to_apply=False) == plan


def test_the_write_that_made_a_table_is_not_told_as_no_write(live: Live, table_plan: TablePlanner) -> None:
    made = WriteHistory((Commit(0, START, "WRITE", changes_data=True),))
    loss = table_plan(replace(live(), past=made), isolation="Serializable").loss
    assert loss is not None
    assert loss.unknown == "no writes but the one that made the table"
    timeless = WriteHistory((Commit(3, 0, "WRITE", changes_data=True),))
    loss = table_plan(replace(live(), past=timeless), isolation="Serializable").loss
    assert loss is not None
    assert loss.unknown == "its commits do not say when they were made"
