"""Each promise of the fault runs, broken in a small log."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chaos.check import (
    Told,
    Violation,
    cause_of,
    check_attempts,
    check_exits,
    check_interleaving,
    check_jobs,
    check_lost,
    check_metadata,
    check_rows,
    check_writers,
    expected_rows,
)
from chaos.journal import Attempt, HookCall, Journal, read_journal
from chaos.replay import Row, rows_at
from chaos.strangers import MARK
from tests.chaos.logs import HandMade, rows, stamp


@pytest.fixture
def table(tmp_path: Path) -> HandMade:
    """A table with one row of no one's and one property."""
    made = HandMade(tmp_path / "t0")
    made.commit(made.metadata(stray="x"), made.add("first", rows(-1, [1])))
    return made


def attempt(name: str, act: str = "append", told: str = "ok", keys: tuple[int, ...] = (), **more: Any) -> Attempt:
    return Attempt(name, 1, "t0", act, tuple((key, 7) for key in keys), told=told, **more)


def found_in(table: HandMade, *attempts: Attempt) -> list[str]:
    log = table.log()
    expected = expected_rows(log, 0, rows_at(log, 0), attempts)
    both = [*check_attempts(log, 0, attempts), *check_rows("t0", expected, rows_at(log, log.commits[-1].version))]
    assert all((each.promise, each.table) == ("rows", "t0") for each in both)
    return [each.what for each in both]


# Rows ----------------------------------------------------------------------------------------------------------------


def test_a_table_that_holds_what_its_writer_was_told_breaks_nothing(table: HandMade) -> None:
    table.commit(table.add("a", rows(1, [10, 11])), user="w-0")
    table.commit({"remove": {"path": "a"}}, table.add("b", rows(1, [10])), user="w-1")
    table.commit(table.add("c", rows(1, [12])), user="w-3")
    attempts = [
        attempt("w-0", keys=(10, 11)),
        attempt("w-1", "delete", keys=(11,)),
        attempt("w-2", keys=(99,), told="failed"),
        attempt("w-3", keys=(12,), told="unknown"),
        attempt("w-4", keys=(13,), told="unknown"),
        attempt("w-5", "optimize"),
    ]
    assert found_in(table, *attempts) == []


def test_a_row_that_is_there_twice_is_found(table: HandMade) -> None:
    table.commit(table.add("a", rows(1, [10])), table.add("b", rows(1, [10])), user="w-0")
    assert found_in(table, attempt("w-0", keys=(10,))) == [
        "1 rows are there too often or as no one wrote them, such as (1, 10, 7, 2)"
    ]


def test_a_row_that_a_later_rewrite_dropped_is_found(table: HandMade) -> None:
    table.commit(table.add("a", rows(1, [10, 11])), user="w-0")
    table.commit({"remove": {"path": "a"}}, table.add("b", rows(1, [10])), user=stamp("r1"))
    assert found_in(table, attempt("w-0", keys=(10, 11))) == ["1 rows are lost or changed, such as (1, 11, 7, 3)"]


def test_a_value_that_a_later_rewrite_took_back_is_found(table: HandMade) -> None:
    table.commit(table.add("a", rows(1, [10], value=1)), user="w-0")
    table.commit({"remove": {"path": "a"}}, table.add("b", rows(1, [10], value=7)), user="w-1")
    table.commit({"remove": {"path": "b"}}, table.add("c", rows(1, [10], value=1)), user=stamp("r1"))
    attempts = [Attempt("w-0", 1, "t0", "append", ((10, 1),), told="ok"), attempt("w-1", "update", keys=(10,))]
    assert found_in(table, *attempts) == [
        "1 rows are lost or changed, such as (1, 10, 7, 2)",
        "1 rows are there too often or as no one wrote them, such as (1, 10, 1, 2)",
    ]


def test_a_commit_that_a_writer_was_told_of_and_that_is_not_there_is_found(table: HandMade) -> None:
    assert found_in(table, attempt("w-0", keys=(10,))) == ["append w-0 was told ok and has 0 commits"]


@pytest.mark.parametrize(("told", "times"), [("ok", 2), ("unknown", 2), ("failed", 1)])
def test_more_commits_than_a_writer_was_told_of_are_found(table: HandMade, told: str, times: int) -> None:
    for number in range(times):
        table.commit(table.add(f"a{number}", rows(1, [10])), user="w-0")
    assert f"append w-0 was told {told} and has {times} commits" in found_in(
        table, attempt("w-0", keys=(10,), told=told)
    )


def test_a_commit_of_no_one_is_found(table: HandMade) -> None:
    table.commit(table.metadata(), operation="RESTORE")
    assert found_in(table) == ["version 1 (RESTORE) is of no one"]


def test_what_a_stranger_of_the_round_committed_is_not_an_apply_s(table: HandMade) -> None:
    table.commit(table.metadata(theirs="1"), user=MARK, operation="SET TBLPROPERTIES")
    assert found_in(table) == []
    assert metadata(table) == []


def test_a_merge_changes_what_is_there_and_inserts_the_rest(table: HandMade) -> None:
    table.commit(table.add("a", rows(1, [10], value=1)), user="w-0")
    table.commit({"remove": {"path": "a"}}, table.add("b", rows(1, [10, 11])), user="w-1")
    before: list[Row] = rows(-1, [1])
    attempts = [Attempt("w-0", 1, "t0", "append", ((10, 1),), told="ok"), attempt("w-1", "merge", keys=(10, 11))]
    assert sorted(expected_rows(table.log(), 0, before, attempts)) == [(-1, 1, 7, 1), (1, 10, 7, 2), (1, 11, 7, 3)]


# Metadata ------------------------------------------------------------------------------------------------------------


def metadata(table: HandMade) -> list[str]:
    return [each.what for each in check_metadata(table.log(), 0, ["plan"], ("property.owner", "property.stray"))]


def test_the_commits_of_a_plan_break_nothing(table: HandMade) -> None:
    table.commit(table.metadata(owner="a"), user=stamp("r1"), operation="SET TBLPROPERTIES")
    table.commit(table.metadata(stray=None), user=stamp("r2"), operation="UNSET TBLPROPERTIES")
    assert metadata(table) == []


@pytest.mark.parametrize("user", ["", "w-0", stamp("r1", "other")])
def test_a_foreign_metadata_commit_is_found(table: HandMade, user: str) -> None:
    table.commit(table.metadata(owner="a"), user=user, operation="SET TBLPROPERTIES")
    assert metadata(table) == ["version 1 (SET TBLPROPERTIES) is of no plan of this round"]


def test_a_second_metadata_commit_that_changes_nothing_is_found(table: HandMade) -> None:
    for run in ("r1", "r2"):
        table.commit(table.metadata(owner="a"), user=stamp(run), operation="SET TBLPROPERTIES")
    assert metadata(table) == ["version 2 (SET TBLPROPERTIES) is a metadata commit that changes nothing"]


def test_a_setting_that_is_put_back_and_set_again_is_found(table: HandMade) -> None:
    for value in ("y", "x", "y"):
        table.commit(table.metadata(stray=value), user=stamp("r1"), operation="SET")
    assert metadata(table) == [
        "version 2 (SET) sets property.stray to x a second time",
        "version 3 (SET) sets property.stray to y a second time",
    ]


def test_a_setting_that_the_policy_does_not_hold_is_found(table: HandMade) -> None:
    table.commit(table.metadata(foreign="1"), user=stamp("r1"), operation="SET")
    assert metadata(table) == ["version 1 (SET) changes property.foreign, which the policy does not hold: None → 1"]


# Two runs ------------------------------------------------------------------------------------------------------------


def report(run: str, *foreign: str, outcome: str = "applied", code: int = 0) -> Told:
    mentioned = [{"version": 1, "run": each} for each in foreign]
    return Told(code, {"run": run, "tables": [{"name": "delta.`/x/t0`", "outcome": outcome, "foreign": mentioned}]})


def interleaved(table: HandMade, told: list[Told], acquired: dict[str, float]) -> list[str]:
    return [each.what for each in check_interleaving(table.log(), 0, told, acquired)]


def test_a_run_that_takes_over_is_not_an_interleaving(table: HandMade) -> None:
    table.commit(user=stamp("run-a"), at=10)
    table.commit(user=stamp("run-b"), at=30)
    assert interleaved(table, [Told(-9), report("run-b")], {"run-a": 5.0, "run-b": 20.0}) == []


def test_commits_of_two_runs_in_turns_are_found(table: HandMade) -> None:
    for at, run in ((10, "run-a"), (20, "run-b"), (30, "run-a")):
        table.commit(user=stamp(run), at=at, operation="SET")
    words = "version 3 (SET) of run run-a landed after run run-b had taken the table, and no report says so"
    assert interleaved(table, [Told(-9), report("run-b")], {}) == [words]
    assert interleaved(table, [Told(-9), report("run-b", "run-a")], {}) == []
    assert interleaved(table, [report("run-a", "run-b"), report("run-b")], {}) == []


def test_a_late_commit_under_the_lease_of_another_run_is_found_before_that_one_commits(table: HandMade) -> None:
    table.commit(user=stamp("run-a"), at=30, operation="SET")
    table.commit(user=stamp("run-b"), at=40)
    words = "version 1 (SET) of run run-a landed after run run-b had taken the table, and no report says so"
    assert interleaved(table, [Told(-9), report("run-b")], {"run-a": 5.0, "run-b": 20.0}) == [words]


def test_a_run_that_lost_its_lease_may_not_say_applied_without_naming_the_other() -> None:
    lost = {"run-a": "run-b"}
    silent, names, failed = report("run-a"), report("run-a", "run-b"), report("run-a", outcome="failed")
    assert [each.what for each in check_lost("t0", [silent, report("run-b")], lost)] == [
        "run run-a says that it applied the table, and not that run run-b took it over"
    ]
    assert check_lost("t0", [names, failed, Told(-9)], lost) == []


def test_a_run_cannot_name_one_that_began_after_its_end() -> None:
    first, other = report("run-a"), report("run-b")
    for begun, found in ((1_400, 1), (1_600, 0)):
        runs = [replace(first, report={**(first.report or {}), "at": 1_000, "took_ms": 500})]
        runs.append(replace(other, report={**(other.report or {}), "at": begun, "took_ms": 500}))
        assert len(check_lost("t0", runs, {"run-a": "run-b"})) == found


# Exit codes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("told", "what"),
    [
        (Told(64), "a run ended with 64"),
        (report("a", outcome="no window", code=4), "exit code 4, yet run a made commits"),
        (report("a", outcome="failed", code=0), "exit code 0 with {'t0': 'failed'}"),
        (report("b", outcome="applied", code=5), "exit code 5, and every table is ['applied']"),
    ],
)
def test_an_exit_code_that_does_not_fit_is_found(table: HandMade, told: Told, what: str) -> None:
    table.commit(user=stamp("a"))
    assert [each.what for each in check_exits([told], {"t0": table.log()})] == [what]


def test_exit_codes_that_fit_break_nothing(table: HandMade) -> None:
    table.commit(user=stamp("a"))
    told = [
        Told(-9),
        report("a"),
        report("b", outcome="no window", code=4),
        report("a", outcome="failed", code=5),
        Told(1),
    ]
    assert check_exits(told, {"t0": table.log()}) == []


def test_a_table_that_another_run_of_the_plan_finished_is_done(table: HandMade) -> None:
    table.commit(user=stamp("a"))
    assert check_exits([report("a", outcome="already", code=0)], {"t0": table.log()}) == []


def test_a_table_that_is_done_and_owes_its_after_hook_may_end_a_run_with_5(table: HandMade) -> None:
    table.commit(user=stamp("a"))
    facts = {"name": "delta.`/x/t0`", "outcome": "done by another run", "owed": ["resume"]}
    assert check_exits([Told(5, {"run": "a", "tables": [facts]})], {"t0": table.log()}) == []


# Writers -------------------------------------------------------------------------------------------------------------


def conflict(name: str, **shown: Any) -> str:
    return f"{name}: Files were added by a concurrent update.\nConflicting commit: {json.dumps(shown)}\nRefer to …"


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (conflict("ConcurrentAppendException", txnId="txn-1"), "apply"),
        (conflict("ConcurrentAppendException", txnId="txn-2"), "writer"),
        (conflict("ConcurrentDeleteReadException", timestamp=20_000), "writer"),
        (conflict("ConcurrentAppendException", txnId="gone"), "unknown conflict"),
        ("[DELTA_CONCURRENT_APPEND] a concurrent OPTIMIZE added data to table t0 committed at version 1.", "apply"),
        ("[DELTA_CONCURRENT_APPEND] a concurrent WRITE added data to table t0 committed at version 2.", "writer"),
        ("MetadataChangedException: The metadata of the Delta table has been changed", "apply"),
        ("GuardTimeout: t0: waited 150 s", "gate"),
        ("AnalysisException: no such column", "unknown"),
    ],
)
def test_the_commit_that_failed_a_writer_is_looked_up(table: HandMade, error: str, cause: str) -> None:
    table.commit(user=stamp("a"), at=10)
    table.commit(user="w-0", at=20)
    assert cause_of(table.log(), attempt("w-1", told="failed", error=error)) == cause


def test_only_a_conflict_with_another_writer_is_not_a_violation(table: HandMade) -> None:
    table.commit(user="w-0", at=20)
    by_writer = attempt("w-1", "merge", told="failed", error=conflict("ConcurrentAppendException", txnId="txn-1"))
    by_apply = attempt("w-2", told="failed", error="MetadataChangedException: changed")
    found, others = check_writers(table.log(), [by_writer, by_apply])
    assert found == [Violation("writers", "t0", "append w-2 failed (apply): MetadataChangedException: changed")]
    assert others == 1


# Journals ------------------------------------------------------------------------------------------------------------


def test_a_journal_gives_its_attempts_back_and_passes_over_a_line_that_was_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journal = Journal(path)
    journal.note("try", "w-0", writer=1, table="t0", act="append", pairs=[(10, 7)])
    journal.note("inside", "w-0")
    journal.note("told", "w-0", told="ok", error="")
    journal.note("try", "w-1", writer=1, table="t0", act="delete", pairs=[(10, 7)])
    with path.open("a", encoding="utf-8") as file:
        file.write('{"event": "told", "id": "w-1", "to')
    first, second = read_journal(path)
    assert (first.id, first.told, first.pairs) == ("w-0", "ok", ((10, 7),))
    assert first.waited is not None
    assert (second.act, second.told, second.waited) == ("delete", "unknown", None)


# Jobs ----------------------------------------------------------------------------------------------------------------


def called(*calls: tuple[str, str, float]) -> list[HookCall]:
    return [HookCall(hook, "t0", run, at) for hook, run, at in calls]


def test_jobs_that_are_resumed_after_the_last_statement_break_nothing(table: HandMade) -> None:
    table.commit(table.metadata(stray=None), user=stamp("r1"), at=50)
    calls = called(("before", "r1", 40), ("after", "r1", 60))
    assert check_jobs(table.log(), 0, calls, shared=False) == []


def test_a_statement_that_commits_after_its_jobs_were_resumed_by_the_next_run_is_found(table: HandMade) -> None:
    table.commit(table.metadata(stray=None), user=stamp("r1"), at=50)
    calls = called(("before", "r1", 40), ("after", "r2", 45))
    (found,) = check_jobs(table.log(), 0, calls, shared=False)
    assert (found.promise, found.what) == (
        "jobs",
        "version 1 (WRITE) of run r1 came after its jobs were resumed",
    )


def test_jobs_that_stay_paused_are_found(table: HandMade) -> None:
    (found,) = check_jobs(table.log(), 0, called(("before", "r1", 40)), shared=False)
    assert found.what == "its jobs were never resumed"
