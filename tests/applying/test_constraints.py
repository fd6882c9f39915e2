"""``constraints`` and ``features`` on the fake lake: rows in the way, changed expressions, killed runs."""

from __future__ import annotations

from typing import Any

import pytest

from tablectl.attributes.policy import Policy
from tablectl.delta.protocol import READER_FEATURES, Protocol
from tablectl.model.run_report import RunOutcome
from tablectl.planning.diff import diff
from tests.applying.world import Kill, World

POSITIVE = {"constraints": {"positive": "id > 0"}}


def world(violations: int = 0, **facts: Any) -> World:
    made = World(violations=violations)
    made.lake.add(**facts)
    return made


def protocol(*features: str) -> Protocol:
    read = frozenset(features) & READER_FEATURES
    return Protocol(3 if read else 1, 7, read, frozenset(features))


def test_a_constraint_is_added_and_reads_as_declared() -> None:
    made = world()
    run = made.run(made.plan(**POSITIVE))
    assert (run.outcome, run.changed) == (RunOutcome.APPLIED, ("constraints.positive",))
    assert made.live().properties["delta.constraints.positive"] == "id > 0"
    assert diff(Policy(POSITIVE), made.live()) == ()


def test_rows_in_the_way_are_counted_before_the_gate_closes() -> None:
    made = world(violations=1_234)
    run = made.run(made.plan(**POSITIVE))
    assert run.outcome is RunOutcome.REFUSED
    assert "1,234 rows violate constraints.positive (id > 0)" in run.message
    assert "where NOT coalesce((id > 0), false)" in run.hint
    assert made.sent == []
    assert "count" in made.events
    assert "gate closed" not in made.events


def test_a_changed_expression_is_dropped_and_added() -> None:
    made = world(protocol=Protocol(1, 3), properties={"delta.constraints.positive": "id > 5"})
    run = made.run(made.plan(**POSITIVE))
    assert run.outcome is RunOutcome.APPLIED
    assert [commit.operation for commit in made.table.stamped] == ["DROP CONSTRAINT", "ADD CONSTRAINT"]
    assert diff(Policy(POSITIVE), made.live()) == ()


def test_a_run_killed_between_drop_and_add_is_finished_by_the_next() -> None:
    made = world(protocol=Protocol(1, 3), properties={"delta.constraints.positive": "id > 5"})
    plan = made.plan(**POSITIVE)

    def kill(_table: Any, sql: str) -> None:
        if "ADD CONSTRAINT" in sql:
            raise Kill

    made.before = kill
    with pytest.raises(Kill):
        made.run(plan)
    made.before = lambda _table, _sql: None
    assert made.run(plan).outcome is RunOutcome.APPLIED
    assert [commit.operation for commit in made.table.stamped] == ["DROP CONSTRAINT", "ADD CONSTRAINT"]


@pytest.mark.parametrize(
    ("feature", "key", "value"),
    [
        ("typeWidening", "delta.enableTypeWidening", "true"),
        ("v2Checkpoint", "delta.checkpointPolicy", "v2"),
        ("inCommitTimestamp", "delta.enableInCommitTimestamps", "true"),
        ("vacuumProtocolCheck", "", ""),
    ],
)
@pytest.mark.parametrize("commit", [1, 2, 3, 4])
def test_a_drop_killed_before_any_commit_is_finished_by_the_next(
    feature: str, key: str, value: str, commit: int
) -> None:
    made = world(protocol=protocol(feature), properties={key: value} if key else {})
    policy = {"features": {feature: "dropped"}}
    plan = made.plan(**policy)
    left = commit

    def kill(_table: Any, _operation: str) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise Kill

    made.inside = kill
    try:
        made.run(plan)
    except Kill:
        made.inside = lambda _table, _operation: None
        assert made.live().protocol.has(feature)
        assert made.run(plan).outcome is RunOutcome.APPLIED
    assert not made.live().protocol.has(feature)
    assert diff(Policy(policy), made.live()) == ()
    assert [each.operation for each in made.table.stamped].count("DROP FEATURE") == 1


@pytest.mark.parametrize("killed", [1, 2])
def test_a_drop_of_row_tracking_goes_on_from_where_it_was_killed(killed: int) -> None:
    made = world(
        protocol=protocol("rowTracking", "domainMetadata"),
        properties={"delta.enableRowTracking": "true"},
    )
    plan = made.plan(row_tracking="dropped")
    left = killed

    def kill(event: str) -> None:
        nonlocal left
        left -= event == "midway"
        if left == 0:
            raise Kill

    made.tick = kill
    with pytest.raises(Kill):
        made.run(plan)
    made.tick = lambda _event: None
    assert made.run(plan).outcome is RunOutcome.APPLIED
    assert made.live().protocol.features == {"domainMetadata"}
    assert diff(Policy({"row_tracking": "dropped"}), made.live()) == ()


@pytest.mark.parametrize("text", ["id <> 'O''Brien'", "id RLIKE r'^\\d+$'"])
def test_a_text_in_quotes_that_delta_cuts_is_applied_once_and_is_our_own(text: str) -> None:
    made = world()
    declared = {"constraints": {"named": text}}
    assert made.run(made.plan(**declared)).outcome is RunOutcome.APPLIED
    assert diff(Policy(declared), made.live()) == ()


def test_rows_are_counted_with_the_text_that_will_be_stored() -> None:
    made = world(violations=1)
    run = made.run(made.plan(constraints={"named": "id<>'O''Brien'"}))
    assert "where NOT coalesce((id <> 'O\\'Brien'), false)" in run.hint
