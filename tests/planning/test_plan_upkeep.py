"""What upkeep is due, by policy and log."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tablectl.attributes.predictive_optimization import why_maintained
from tablectl.delta.protocol import Client, Protocol
from tablectl.model.catalog_answers import CatalogEntry
from tablectl.model.table_options import NO_OPTIONS, TableOptions
from tablectl.model.upkeep import (
    OptimizePolicy,
    UpkeepFacts,
    UpkeepPolicy,
    UpkeepTask,
    VacuumPolicy,
    read_optimize,
    read_vacuum,
)
from tablectl.planning.plan_upkeep import due_tasks, upkeep_table
from tests.builders import live_table, look_back

DAY = 86_400_000
NOW = 1_800_000_000_000
MB = 1_000_000


def optimize(policy: OptimizePolicy, **facts: Any) -> UpkeepTask:
    given = {"files": 1000, "bytes": 10_000 * MB, "small_files": 400, "small_bytes": 4000 * MB, **facts}
    live = replace(live_table(), upkeep=UpkeepFacts(**given))
    (task,) = due_tasks(UpkeepPolicy(optimize=policy), live, NOW)
    return task


def vacuum(keeps: str = "", **facts: Any) -> UpkeepTask:
    properties = {"delta.deletedFileRetentionDuration": keeps} if keeps else {}
    live = replace(live_table(properties=properties), upkeep=UpkeepFacts(**facts))
    (task,) = due_tasks(UpkeepPolicy(vacuum=VacuumPolicy(every="7 days")), live, NOW)
    return task


def test_many_bytes_in_small_files_are_due() -> None:
    task = optimize(OptimizePolicy(small_files="30%"))
    assert (task.due, task.files, task.bytes) == (True, 400, 4000 * MB)
    assert task.why == "40% of its bytes are in 400 small files"


def test_fewer_bytes_than_the_share_are_not() -> None:
    assert not optimize(OptimizePolicy(small_files="50%")).due


def test_a_handful_of_small_files_is_left_to_time() -> None:
    few = {"files": 5, "bytes": 5 * MB, "small_files": 5, "small_bytes": 5 * MB}
    task = optimize(OptimizePolicy(small_files="30%"), **few)
    assert (task.due, task.why[:68]) == (False, "100% of its bytes are in 5 small files, of which OPTIMIZE would save")
    assert optimize(OptimizePolicy(small_files="30%", every="7 days"), **few, optimized_at=NOW - 8 * DAY).due


def test_a_table_without_small_files_is_never_due() -> None:
    none = {"small_files": 0, "small_bytes": 0, "optimized_at": NOW - 99 * DAY}
    assert not optimize(OptimizePolicy(small_files="30%", every="7 days"), **none).due


def test_time_since_the_last_optimize() -> None:
    policy = OptimizePolicy(every="7 days")
    assert optimize(policy, optimized_at=NOW - 7 * DAY).due
    task = optimize(policy, optimized_at=NOW - 6 * DAY)
    assert (task.due, task.since) == (False, NOW + DAY)


def test_a_table_that_was_never_optimized_says_from_when_it_is_due() -> None:
    task = optimize(OptimizePolicy(every="7 days"), oldest=NOW - DAY)
    assert (task.due, task.since) == (False, NOW + 6 * DAY)
    assert optimize(OptimizePolicy(every="7 days"), oldest=NOW - 8 * DAY).since == NOW - DAY


def test_a_table_that_is_due_by_its_small_files_does_not_say_since_a_day_to_come() -> None:
    task = optimize(OptimizePolicy(small_files="30%", every="7 days"), optimized_at=NOW - DAY)
    assert (task.due, task.since) == (True, 0)


def test_a_table_with_nothing_to_merge_does_not_say_due_from_a_day_gone_by() -> None:
    none = {"small_files": 0, "small_bytes": 0, "optimized_at": NOW - 99 * DAY}
    assert optimize(OptimizePolicy(every="7 days"), **none).since == 0


def test_commits_without_a_time_are_not_taken_for_those_of_1970() -> None:
    assert (optimize(OptimizePolicy(every="7 days")).since, vacuum().since) == (0, 0)


def test_a_commit_of_a_clock_far_ahead_does_not_put_upkeep_off_for_years() -> None:
    ahead = NOW + 3000 * DAY
    assert optimize(OptimizePolicy(every="7 days"), optimized_at=ahead, oldest=NOW - 8 * DAY).due
    assert vacuum(vacuumed_at=ahead, oldest=NOW - 8 * DAY).due
    assert not vacuum(vacuumed_at=NOW + DAY // 2, oldest=NOW - 8 * DAY).due, "clocks differ by some hours"


def test_a_first_commit_of_a_clock_far_ahead_does_not_put_upkeep_off() -> None:
    ahead = NOW + 300 * DAY
    assert optimize(OptimizePolicy(every="7 days"), oldest=ahead).due
    assert vacuum(oldest=ahead).due


def test_a_new_table_is_due_once_its_first_commit_is_old_enough() -> None:
    policy = OptimizePolicy(every="7 days")
    assert not optimize(policy, oldest=NOW - DAY).due
    assert optimize(policy, oldest=NOW - 8 * DAY).due


def test_without_an_optimize_in_a_log_that_was_cleaned_up_it_is_due() -> None:
    assert optimize(OptimizePolicy(every="7 days"), oldest=NOW - DAY, cut=True).due


def test_a_run_that_was_killed_is_due_until_its_files_are_merged() -> None:
    policy = OptimizePolicy(every="7 days")
    recent = {"optimized_at": NOW - 60_000, "optimized_by_us": True}
    task = optimize(policy, **recent)
    assert (task.due, task.why) == (True, "the last run did not finish: 400 of its small files are left")
    assert not optimize(policy, **recent, added_since=390).due


def test_an_optimize_of_someone_else_counts_as_complete() -> None:
    assert not optimize(OptimizePolicy(every="7 days"), optimized_at=NOW - 60_000).due


def test_a_table_with_too_many_files_to_count_is_due_by_time_alone() -> None:
    unknown = {"small_files": None, "small_bytes": None}
    assert not optimize(OptimizePolicy(small_files="30%"), **unknown).due
    assert optimize(OptimizePolicy(every="7 days"), **unknown, optimized_at=NOW - 8 * DAY).due


def test_vacuum_is_due_by_time_and_names_what_is_old_enough() -> None:
    removed = ((NOW - 10 * DAY, 5, 500), (NOW - 2 * DAY, 9, 900))
    task = vacuum(vacuumed_at=NOW - 8 * DAY, removed=removed)
    assert (task.due, task.files, task.bytes) == (True, 5, 500)
    assert vacuum("interval 1 day", vacuumed_at=NOW - 8 * DAY, removed=removed).files == 14


def test_files_of_commits_that_were_not_read_are_unknown_and_not_none() -> None:
    few = vacuum(removed=((NOW - 10 * DAY, 5, 500),), unread="not all commits were read", cut=True)
    assert (few.files, few.bytes) == (None, None)
    assert few.why.startswith("commits removed at least 5 files (500 B)")
    none = vacuum(unread="not all commits were read", cut=True)
    assert (none.due, none.files, none.bytes) == (True, None, None)
    assert none.why == (
        "how many files no reader can need any more is unknown: not all commits were read; no VACUUM was found"
    )


@pytest.mark.parametrize("engine", ["unknown", "delta-spark"])
def test_vacuum_is_shown_as_free_with_any_client(engine: str) -> None:
    """A client that no rule knows is taken to fail by every commit; a VACUUM's have no actions."""
    live = replace(live_table(history=look_back([Client(engine)])), upkeep=UpkeepFacts(cut=True))
    policy = UpkeepPolicy(vacuum=VacuumPolicy(every="7 days"))
    (statement,) = upkeep_table(policy, live, due_tasks(policy, live, NOW), "oss", NO_OPTIONS).statements
    assert (str(statement.phase), statement.fails) == ("free", "")


def test_vacuum_is_not_due_before_its_time() -> None:
    task = vacuum(vacuumed_at=NOW - 6 * DAY)
    assert (task.due, task.since) == (False, NOW + DAY)


def test_the_retention_of_the_table_alone_decides_what_is_old() -> None:
    """A text that Delta cannot read counts as its default of a week: never as less."""
    assert vacuum("interval 1 fortnight", removed=((NOW - 5 * DAY, 5, 500),), cut=True).files == 0


@pytest.mark.parametrize(
    "policy",
    [OptimizePolicy(small_files="30%", target="1 GB", every="7 days"), OptimizePolicy(every="12 hours")],
)
def test_a_policy_is_read_from_its_text(policy: OptimizePolicy) -> None:
    assert read_optimize(policy.text) == policy


def test_the_same_of_vacuum() -> None:
    assert read_vacuum(VacuumPolicy(every="7 days").text) == VacuumPolicy(every="7 days")


def test_statements_come_from_operations_with_their_phases() -> None:
    live = replace(live_table(), upkeep=UpkeepFacts(small_files=400, small_bytes=400, bytes=400, cut=True))
    policy = UpkeepPolicy(optimize=OptimizePolicy(small_files="30%"), vacuum=VacuumPolicy(every="7 days"))
    table = upkeep_table(policy, live, due_tasks(policy, live, NOW), "oss", NO_OPTIONS)
    assert [(each.id, str(each.phase)) for each in table.statements] == [
        ("upkeep.optimize", "rewrite"),
        ("upkeep.vacuum", "free"),
    ]
    assert table.statements[0].rewrite is not None
    assert table.statements[0].rewrite.bytes_at_most == 400
    assert (table.changes, table.applies) == ((), True)


def test_the_option_optimize_of_a_clustered_table_says_how_upkeep_clusters() -> None:
    live = replace(live_table(clustering=(("id",),)), upkeep=UpkeepFacts(small_files=400, small_bytes=400, bytes=400))
    policy = UpkeepPolicy(optimize=OptimizePolicy(small_files="30%"), clusters="full")
    options = TableOptions(rewrite="allowed")
    table = upkeep_table(policy, live, due_tasks(policy, live, NOW), "oss", options)
    assert table.statements[0].sql.endswith(" FULL")


def test_a_table_that_its_catalog_maintains_is_named() -> None:
    live = live_table(protocol=Protocol(3, 7, frozenset({"catalogManaged"}), frozenset({"catalogManaged"})))
    assert why_maintained(live, None, "oss").startswith("its catalog maintains it")
    assert why_maintained(live, None, "databricks") == ""


def test_predictive_optimization_is_named_unless_the_policy_turns_it_off() -> None:
    live = live_table(entry=CatalogEntry(optimization="inherit", optimized=True))
    assert why_maintained(live, None, "databricks") == "predictive optimization of Databricks maintains it"
    assert why_maintained(live, "disabled", "databricks") == ""
