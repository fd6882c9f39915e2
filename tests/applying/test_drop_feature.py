"""``deletion_vectors: dropped`` on the fake lake: in one run, or in two with a day between them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tablectl.attributes.policy import Policy
from tablectl.delta.protocol import Protocol
from tablectl.leases.clock import milliseconds
from tablectl.model.plan import TablePlan
from tablectl.model.run_report import RunOutcome
from tablectl.model.table_options import TableOptions
from tablectl.planning.diff import diff
from tests.applying.fake_lake import at, fails
from tests.applying.world import WITH_VECTORS, Kill, World

PURGED: dict[str, Any] = {**WITH_VECTORS, "properties": {"delta.enableDeletionVectors": "false"}, "vectors": 0}
PROTECTED: dict[str, Any] = {
    "protocol": Protocol(1, 7, frozenset(), frozenset({"appendOnly", "checkpointProtection", "invariants"}))
}
TRUNCATING = TableOptions(truncate_history=True)
POLICY = Policy({"deletion_vectors": "dropped"})


def world(options: TableOptions = TableOptions(), **facts: Any) -> World:  # noqa: B008  # frozen
    made = World(options=options)
    table = made.lake.add(**facts)
    table.at = lambda _version: milliseconds(made.clock.utc())
    return made


def operations(made: World) -> list[str]:
    return [commit.operation for commit in made.table.stamped]


def a_day_later(made: World) -> None:
    made.clock.wall += timedelta(hours=25)


def test_one_run_purges_turns_off_and_drops() -> None:
    made = world(**WITH_VECTORS)
    run = made.run(made.plan(deletion_vectors="dropped"))
    assert (run.outcome, run.changed) == (RunOutcome.APPLIED, ("deletion_vectors",))
    assert operations(made) == [
        "REORG",
        "SET TBLPROPERTIES",
        "Deletion Vector Tombstones",
        *["Empty Commit"] * 3,
        "DROP FEATURE",
    ]
    assert made.table.live.protocol == Protocol(1, 7, frozenset(), frozenset({"checkpointProtection"}))
    assert diff(POLICY, made.live()) == ()


def test_vectors_that_slip_in_are_purged_before_the_feature_goes() -> None:
    made = world(**WITH_VECTORS)
    made.after = at(1, lambda table: table.commit("DELETE", vectors=2))
    run = made.run(made.plan(deletion_vectors="dropped"))
    assert run.outcome is RunOutcome.APPLIED
    assert operations(made)[:3] == ["REORG", "SET TBLPROPERTIES", "REORG"]
    assert [sql.split("\n")[1] for sql in made.sent][-1] == "DROP FEATURE `deletionVectors`"


def test_with_history_truncated_the_first_run_waits_and_says_until_when() -> None:
    made = world(TRUNCATING, **WITH_VECTORS)
    plan = made.plan(deletion_vectors="dropped")
    assert [statement.due for statement in plan.statements] == [None, None, None, 0]
    run = made.run(plan)
    assert (run.outcome, run.code, run.changed) == (RunOutcome.WAITING, 0, ())
    assert run.message.startswith("deletion_vectors: due at 2026-08-23 ")
    assert operations(made) == ["REORG", "SET TBLPROPERTIES", "Deletion Vector Tombstones", "Empty Commit"]
    assert made.live().protocol.has("deletionVectors")


def test_before_that_time_nothing_is_sent_and_every_plan_names_it() -> None:
    made = world(TRUNCATING, **WITH_VECTORS)
    first = made.plan(deletion_vectors="dropped")
    made.run(first)
    again = made.plan(deletion_vectors="dropped")
    (statement,) = again.statements
    assert statement.due == max(commit.timestamp for commit in made.table.stamped) + 24 * 3600 * 1000
    sent = len(made.sent)
    for plan in (first, again):
        run = made.run(plan)
        assert (run.outcome, run.commits, len(made.sent)) == (RunOutcome.WAITING, (), sent)


@pytest.mark.parametrize("saved", [True, False], ids=["the plan of the first run", "a plan of the day"])
def test_a_day_later_the_feature_goes_and_leaves_nothing_behind(*, saved: bool) -> None:
    made = world(TRUNCATING, **WITH_VECTORS)
    plan = made.plan(deletion_vectors="dropped")
    made.run(plan)
    a_day_later(made)
    run = made.run(plan if saved else made.plan(deletion_vectors="dropped"))
    assert (run.outcome, run.changed) == (RunOutcome.APPLIED, ("deletion_vectors",))
    assert operations(made)[4:] == ["Deletion Vector Tombstones", "Empty Commit", "DROP FEATURE"]
    assert made.table.live.protocol == Protocol(1, 1)
    assert diff(POLICY, made.live()) == ()


def test_what_an_earlier_drop_left_in_its_stead_goes_too() -> None:
    made = world(TRUNCATING, **PROTECTED)
    made.table.commit("DROP FEATURE", "ben", protocol=made.table.live.protocol)
    plan = made.plan(deletion_vectors="dropped")
    assert [(change.before, change.after) for change in plan.changes] == [("protected", "dropped")]
    assert made.run(plan).outcome is RunOutcome.WAITING
    a_day_later(made)
    assert made.run(plan).outcome is RunOutcome.APPLIED
    assert made.table.live.protocol == Protocol(1, 2)
    assert diff(POLICY, made.live()) == ()


def test_without_the_option_what_an_earlier_drop_left_may_stay() -> None:
    assert diff(POLICY, world(**PROTECTED).live()) == ()


def test_delta_may_find_history_too_young_after_all() -> None:
    made = world(TRUNCATING, **PURGED)
    plan = made.plan(deletion_vectors="dropped")
    assert plan.statements[0].due is None
    made.inside = fails(3, "DELTA_FEATURE_DROP_HISTORICAL_VERSIONS_EXIST")
    run = made.run(plan)
    assert (run.outcome, run.code) == (RunOutcome.WAITING, 0)
    assert run.message.startswith("deletion_vectors: due at 2026-08-23 ")
    assert len(run.commits) == 2
    made.inside = lambda _table, _operation: None
    a_day_later(made)
    assert made.run(plan).outcome is RunOutcome.APPLIED


def test_the_same_answer_to_a_drop_that_truncates_nothing_is_a_failure() -> None:
    made = world(**PURGED)
    made.inside = fails(1, "DELTA_FEATURE_DROP_HISTORICAL_VERSIONS_EXIST")
    assert made.run(made.plan(deletion_vectors="dropped")).outcome is RunOutcome.FAILED


def test_other_changes_of_a_table_that_waits_are_made_and_verified() -> None:
    made = world(TRUNCATING, **WITH_VECTORS)
    run = made.run(made.plan(deletion_vectors="dropped", isolation="Serializable"))
    assert (run.outcome, run.changed) == (RunOutcome.WAITING, ("isolation",))


def test_someone_who_turns_vectors_on_in_between_makes_it_stale() -> None:
    made = world(**PURGED)
    plan = made.plan(deletion_vectors="dropped")
    made.before = at(1, lambda table: table.set_property("delta.enableDeletionVectors", "true"))
    made.inside = fails(1)
    assert made.run(plan).outcome in {RunOutcome.STALE, RunOutcome.FAILED, RunOutcome.UNVERIFIED}


@pytest.mark.parametrize("operation", ["Deletion Vector Tombstones", "Empty Commit", "DROP FEATURE"])
def test_data_that_others_commit_inside_the_drop_keep_nothing_from_it(operation: str) -> None:
    made = world(**PURGED)
    found = False

    def write(table: Any, step: str) -> None:
        nonlocal found
        if step == operation and not found:
            found = True
            table.commit("WRITE", "stream")

    made.inside = write
    assert made.run(made.plan(deletion_vectors="dropped")).outcome is RunOutcome.APPLIED


def _uninterrupted(options: TableOptions) -> int:
    made = world(options, **WITH_VECTORS)
    ticks: list[str] = []
    made.tick = ticks.append
    plan = made.plan(deletion_vectors="dropped")
    two_days(made, plan)
    return len(ticks)


def two_days(made: World, plan: TablePlan) -> None:
    for _ in range(2):
        made.run(plan)
        a_day_later(made)


CASES = {"dropped": TableOptions(), "truncated": TRUNCATING}


@pytest.mark.parametrize(
    ("case", "number"), [(case, number) for case, options in CASES.items() for number in range(_uninterrupted(options))]
)
def test_killed_anywhere_the_same_plan_goes_on_from_there(case: str, number: int) -> None:
    """Inside of the drop too, between any two of its commits."""
    made = world(CASES[case], **WITH_VECTORS)
    plan = made.plan(deletion_vectors="dropped")
    left = number

    def kill(_event: str) -> None:
        nonlocal left
        left -= 1
        if left == -1:
            raise Kill

    made.tick = kill
    with pytest.raises(Kill):
        two_days(made, plan)
    for _ in range(2):
        run = made.run(plan)
        assert run.outcome in {RunOutcome.APPLIED, RunOutcome.ALREADY, RunOutcome.WAITING}, run.message
        a_day_later(made)
    assert run.outcome in {RunOutcome.APPLIED, RunOutcome.ALREADY}
    assert operations(made).count("DROP FEATURE") == 1
    assert not made.table.live.protocol.has("deletionVectors")
    assert diff(POLICY, made.live()) == ()


@pytest.mark.parametrize("number", range(1, 5))
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_statement_that_fails_in_the_chain_is_made_by_the_next_apply(number: int, moment: str) -> None:
    made = world(**WITH_VECTORS)
    plan = made.plan(deletion_vectors="dropped")
    setattr(made, moment, fails(number))
    first = made.run(plan)
    setattr(made, moment, lambda _table, _sql: None)
    assert made.run(plan).outcome in {RunOutcome.APPLIED, RunOutcome.ALREADY}
    assert first.outcome in {RunOutcome.FAILED, RunOutcome.APPLIED}
    assert diff(POLICY, made.live()) == ()
