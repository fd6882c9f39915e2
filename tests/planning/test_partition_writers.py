"""Writers that name the partition columns: named by the plan, and a refusal without consent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tablectl.attributes.policy import Policy
from tablectl.delta.protocol import Client
from tablectl.model.commit import AppTransaction, Commit
from tablectl.model.errors import PlanFileError
from tablectl.model.plan import Plan, TablePlan
from tablectl.model.table import LiveTable
from tablectl.model.table_options import TableOptions
from tablectl.planning.plan_file import dump_plan, load_plan
from tablectl.planning.plan_table import plan_table

_SPARK = Client("delta-spark", (4, 4, 0))
_BY_DAY = '["day"]'


def write(version: int = 7, by: str = _BY_DAY, mode: str = "Append", **facts: Any) -> Commit:
    parameters = {"mode": mode, "partitionBy": by}
    return Commit(version, 1, "WRITE", client=_SPARK, changes_data=True, parameters=parameters, **facts)


def stream(version: int = 7) -> Commit:
    transactions = (AppTransaction("3f1c", 12),)
    return Commit(version, 1, "STREAMING UPDATE", client=_SPARK, changes_data=True, transactions=transactions)


def planned(
    live: Callable[..., LiveTable], *history: Commit, by: tuple[str, ...] = ("day",), **options: Any
) -> TablePlan:
    table = replace(live(partition_columns=by), history=history)
    after: Any = "none" if by else ("day",)
    plan = plan_table(Policy({"partitioning": after}), table, "oss", TableOptions(rewrite="allowed", **options))
    assert plan
    return plan


def test_a_write_that_names_the_columns_is_a_refusal_that_names_it(live: Callable[..., LiveTable]) -> None:
    job = {"jobName": "nightly"}
    (refusal,) = planned(live, write(9, job=job), write(8, by="[]"), write(7, job=job)).refusals
    assert refusal.change == "partitioning"
    assert refusal.reason == (
        "existing writers of the table would fail on every run: WRITE by Delta Spark 4.4.0 (job nightly), last in "
        "version 9, names the partition columns"
    )
    assert refusal.condition == "DELTA_METADATA_MISMATCH"
    assert "`allow: [partition_writers]`" in refusal.fix


def test_of_a_stream_the_log_does_not_tell_and_it_is_a_refusal_all_the_same(live: Callable[..., LiveTable]) -> None:
    (refusal,) = planned(live, stream()).refusals
    assert "STREAMING UPDATE by Delta Spark 4.4.0 (3f1c), last in version 7, may name" in refusal.reason


@pytest.mark.parametrize(
    "commit",
    [
        write(by="[]"),
        write(by=""),
        write(by='["country"]'),
        write(user_metadata='{"tablectl":{"plan":"p","run":"r"}}'),
        Commit(7, 1, "MERGE", client=_SPARK, changes_data=True),
        write(by="[]", transactions=(AppTransaction("batch", 1),)),
    ],
)
def test_who_names_no_columns_that_the_table_has_goes_on(live: Callable[..., LiveTable], commit: Commit) -> None:
    assert planned(live, commit).refusals == ()


@pytest.mark.parametrize("mode", ["ErrorIfExists", "Ignore"])
def test_a_table_that_one_write_made_names_it(live: Callable[..., LiveTable], mode: str) -> None:
    made = write(0, mode=mode)
    optimized = Commit(1, 1, "OPTIMIZE", client=_SPARK, changes_data=True)
    for history in ((made,), (optimized, made)):
        (refusal,) = planned(live, *history).refusals
        assert refusal.reason == (
            "existing writers of the table would fail on every run: WRITE by Delta Spark 4.4.0, last in version 0, "
            "may name the partition columns, which the log does not tell"
        )
    plan = planned(live, made, allow=("partition_writers",))
    assert [each.code for each in plan.findings].count("P006") == 1


@pytest.mark.parametrize("later", [write(1, by="[]"), Commit(1, 1, "MERGE", client=_SPARK, changes_data=True)])
def test_later_writes_say_how_the_columns_are_named(live: Callable[..., LiveTable], later: Commit) -> None:
    assert planned(live, later, write(0, mode="ErrorIfExists")).refusals == ()
    assert planned(live, write(0, by="[]", mode="ErrorIfExists")).refusals == ()


def test_a_table_without_partitions_has_no_such_writers(live: Callable[..., LiveTable]) -> None:
    assert planned(live, write(), stream(), by=()).refusals == ()


def test_a_list_that_was_cut_counts(live: Callable[..., LiveTable]) -> None:
    assert len(planned(live, write(by='["da…')).refusals) == 1


def test_deltalake_writes_down_the_tables_columns_whether_it_names_them_or_not(live: Callable[..., LiveTable]) -> None:
    commit = replace(write(), client=Client("delta-rs", (1, 6, 6)))
    (refusal,) = planned(live, commit).refusals
    assert "may name the partition columns" in refusal.reason


def test_with_consent_it_is_a_finding(live: Callable[..., LiveTable], rich: Plan) -> None:
    plan = planned(live, write(), allow=("partition_writers",))
    assert plan.refusals == ()
    assert [each.message.partition(":")[0] for each in plan.findings if each.code == "P006"] == [
        "existing writers of the table will fail on every run"
    ]
    whole = replace(rich, tables=(plan,), failures=())
    assert load_plan(dump_plan(whole), "p.json").tables == (plan,)
    forged = replace(plan, basis=replace(plan.basis, options=TableOptions(rewrite="allowed")))
    with pytest.raises(PlanFileError, match="`refusals` does not follow from its changes"):
        load_plan(dump_plan(replace(whole, tables=(forged,))), "p.json")


def test_another_change_is_not_concerned(live: Callable[..., LiveTable]) -> None:
    table = replace(live(partition_columns=("day",)), history=(write(),))
    plan = plan_table(Policy({"isolation": "Serializable"}), table, "oss")
    assert plan
    assert plan.refusals == ()


def test_many_writers_are_counted_and_not_all_shown(live: Callable[..., LiveTable]) -> None:
    history = [write(20 - n, user=f"user{n}") for n in range(8)]
    (refusal,) = planned(live, *history).refusals
    assert refusal.reason.endswith("; and 3 more")
