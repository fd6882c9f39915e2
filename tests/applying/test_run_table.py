from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tablectl.applying.run_context import RunContext
from tablectl.applying.run_table import run_table
from tablectl.attributes.policy import Policy
from tablectl.delta.protocol import Client
from tablectl.delta.schema import Field, Schema
from tablectl.leases.acquire import break_lease
from tablectl.leases.clock import StoppedError
from tablectl.leases.lease import Lease
from tablectl.leases.lease_records import tail
from tablectl.model.errors import EngineError
from tablectl.model.plan import TablePlan
from tablectl.model.run_report import RunOutcome, TableRun
from tablectl.model.stamp import Stamp, read_stamp
from tablectl.model.table import LiveTable
from tablectl.model.table_options import TableOptions
from tablectl.planning.diff import ChangeState, change_state
from tablectl.planning.plan_table import plan_table
from tests.applying.fake_lake import (
    COLUMNS,
    SPARK,
    FakeEngine,
    FakeTable,
    at,
    contended,
    fails,
    parse_sql,
)
from tests.applying.world import DIGEST, WITH_VECTORS, Kill, World, settle
from tests.builders import VECTORS
from tests.leases.lease_fakes import claim, try_acquire


@pytest.fixture
def world() -> World:
    made = World()
    made.lake.add()
    return made


# The good run


def test_a_fresh_table_is_brought_to_its_plan(world: World) -> None:
    world.table.set_property("debug", "on")
    plan = world.plan(**settle())
    run = world.run(plan)
    assert run.outcome is RunOutcome.APPLIED
    assert world.table.live.properties == {"delta.isolationLevel": "Serializable", "owner.team": "web"}
    assert [commit.version for commit in run.commits] == [2, 3]
    assert [each.sql for each in run.statements] == [each.sql for each in plan.statements] == world.sent
    assert run.changed == ("isolation", "properties.debug", "properties.owner.team")
    assert (run.already, run.foreign, run.later, run.epoch, run.message) == ((), (), (), 1, "")


def test_every_commit_carries_the_stamp(world: World) -> None:
    run = world.run(world.plan(**settle()))
    stamps = {read_stamp(commit.user_metadata) for commit in world.table.history[1:]}
    assert stamps == {Stamp("ann", DIGEST)}
    assert len(run.commits) == len(world.table.stamped)


def test_every_statement_proves_the_lease_first(world: World) -> None:
    world.table.set_property("debug", "on")
    world.run(world.plan(**settle()))
    executed = [index for index, event in enumerate(world.events) if event == "execute"]
    assert len(executed) == 2
    for index in executed:
        assert world.events[index - 2] == "prove"
        assert world.events[index - 1].startswith("before ")


def test_what_is_already_so_sends_no_statement(world: World) -> None:
    plan = world.plan(**settle())
    world.table.set_property("delta.isolationLevel", "Serializable")
    world.table.set_property("owner.team", "web")
    run = world.run(plan)
    assert run.outcome is RunOutcome.ALREADY
    assert (world.sent, run.commits, run.changed) == ([], (), ())
    assert run.already == ("isolation", "properties.owner.team")
    assert "prove" not in world.events


def test_what_was_done_before_is_left_out_of_the_statement(world: World) -> None:
    plan = world.plan(**settle())
    world.table.set_property("owner.team", "web")
    run = world.run(plan)
    assert run.outcome is RunOutcome.APPLIED
    assert [parse_sql(sql).values for sql in world.sent] == [(("delta.isolationLevel", "Serializable"),)]
    assert (run.changed, run.already) == (("isolation",), ("properties.owner.team",))


def test_new_data_makes_nothing_stale(world: World) -> None:
    plan = world.plan(**settle())
    world.table.commit("WRITE")
    assert world.run(plan).outcome is RunOutcome.APPLIED


@pytest.mark.parametrize("statement", [1, 2])
@pytest.mark.parametrize("hung", ["before", "after"])
def test_an_unrelated_alter_in_the_window_is_harmless_and_reported(world: World, hung: str, statement: int) -> None:
    world.table.set_property("debug", "on")
    plan = world.plan(**settle())
    setattr(world, hung, at(statement, lambda table: table.set_property("other", "x", "eve")))
    run = world.run(plan)
    assert run.outcome is RunOutcome.APPLIED
    assert [(commit.operation, commit.user) for commit in run.foreign] == [("SET TBLPROPERTIES", "eve")]
    assert len(run.commits) == 2


def test_text_with_every_trap_in_it_arrives_as_it_is(world: World) -> None:
    value = "it's \\ `tick` \n\t${env:HOME}; DROP TABLE x -- é"
    world.run(world.plan(properties={"owner.`odd` 'key'": value}))
    assert world.table.live.properties == {"owner.`odd` 'key'": value}


# Purging


def test_a_purge_runs_reorg_then_off_and_no_second_reorg_without_vectors() -> None:
    world = World()
    world.lake.add(**WITH_VECTORS)
    run = world.run(world.plan(deletion_vectors="purged"))
    assert run.outcome is RunOutcome.APPLIED
    assert [parse_sql(sql).verb for sql in world.sent] == ["REORG", "SET"]


def test_vectors_that_slip_in_before_the_property_are_purged_too() -> None:
    world = World()
    world.lake.add(**WITH_VECTORS)
    plan = world.plan(deletion_vectors="purged")
    world.before = at(2, lambda table: table.commit("DELETE", vectors=2))
    run = world.run(plan)
    assert run.outcome is RunOutcome.APPLIED
    assert [parse_sql(sql).verb for sql in world.sent] == ["REORG", "SET", "REORG"]
    assert world.table.live.vectors == 0


def test_reorg_is_left_out_where_no_vector_is_left() -> None:
    world = World()
    world.lake.add(**WITH_VECTORS)
    plan = world.plan(deletion_vectors="purged")
    world.table.commit("REORG", vectors=0)
    run = world.run(plan)
    assert run.outcome is RunOutcome.APPLIED
    assert [parse_sql(sql).verb for sql in world.sent] == ["SET"]


def test_vectors_are_counted_where_no_checksum_tells() -> None:
    world = World()
    world.lake.add(**WITH_VECTORS).checksums = False
    run = world.run(world.plan(deletion_vectors="purged"))
    assert run.outcome is RunOutcome.APPLIED


def test_a_state_on_the_way_is_gone_on_from() -> None:
    world = World()
    world.lake.add(**WITH_VECTORS)
    plan = world.plan(deletion_vectors="purged")
    world.table.set_property("delta.enableDeletionVectors", "false")
    run = world.run(plan)
    assert run.outcome is RunOutcome.APPLIED
    assert [parse_sql(sql).verb for sql in world.sent] == ["REORG"]


# Stale tables


def test_a_changed_value_makes_the_table_stale_and_names_the_commits(world: World) -> None:
    plan = world.plan(**settle())
    world.table.commit("WRITE", "stream")
    world.table.set_property("owner.team", "legal", "eve")
    run = world.run(plan)
    assert run.outcome is RunOutcome.STALE
    assert run.message == "properties.owner.team was not set and is legal"
    assert [(each.version, each.operation, each.user) for each in run.foreign] == [
        (1, "WRITE", "stream"),
        (2, "SET TBLPROPERTIES", "eve"),
    ]
    assert run.foreign[-1].at == world.table.history[-1].timestamp
    assert (world.sent, run.commits) == ([], ())


def without(column: str) -> Schema:
    text = json.loads(COLUMNS.text)
    text["fields"] = [each for each in text["fields"] if each["name"] != column]
    return Schema(tuple(each for each in COLUMNS.fields if each.name != column), json.dumps(text))


def retyped(column: str, kind: str) -> Schema:
    return Schema(tuple(replace(each, type=kind) if each.name == column else each for each in COLUMNS.fields))


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"schema": without("id")}, "column id is gone"),
        ({"schema": retyped("id", "string")}, "column id was long and is string"),
        ({"schema": retyped("id", "string"), "table_id": "x"}, "the table was replaced since the plan"),
        ({"clustering": (("day",),)}, r"clustering was none and is \[day\]"),
    ],
)
def test_what_the_plan_took_for_granted_must_hold(world: World, facts: dict[str, Any], message: str) -> None:
    plan = world.plan(clustering=("id",))
    world.table.commit("ALTER", "eve", **facts)
    run = world.run(plan)
    assert (run.outcome, world.sent) == (RunOutcome.STALE, [])
    assert run.message.startswith(message.replace("\\", ""))


def test_a_new_column_makes_nothing_stale(world: World) -> None:
    plan = world.plan(clustering=("id",))
    world.table.commit("ADD COLUMNS", schema=Schema((*COLUMNS.fields, Field("new", "string"))))
    assert world.run(plan).outcome is RunOutcome.APPLIED


@pytest.mark.parametrize("hung", ["before", "after"])
def test_a_managed_property_changed_in_the_window_stops_the_table(world: World, hung: str) -> None:
    world.table.set_property("debug", "on")
    plan = world.plan(**settle())
    setattr(world, hung, at(1, lambda table: table.set_property("debug", "loud", "eve")))
    run = world.run(plan)
    assert (run.outcome, len(world.sent)) == (RunOutcome.STALE, 1)
    assert run.message == "properties.debug was on and is loud"
    assert len(run.commits) == 1
    assert [each.user for each in run.foreign] == ["eve"]


def test_a_table_replaced_in_the_window_is_touched_no_more(world: World) -> None:
    world.table.set_property("debug", "on")
    plan = world.plan(**settle())
    world.before = at(1, lambda table: table.commit("REPLACE TABLE", "eve", table_id="another"))
    run = world.run(plan)
    assert (run.outcome, len(world.sent)) == (RunOutcome.STALE, 1)
    assert "new table id" in run.message


def test_a_table_replaced_under_the_last_statement_is_not_taken_for_done(world: World) -> None:
    plan = world.plan(isolation="Serializable")
    world.before = at(1, lambda table: table.commit("REPLACE TABLE", "eve", table_id="another"))
    assert world.run(plan).outcome is RunOutcome.STALE


def test_an_earlier_run_of_the_plan_is_not_a_stranger(world: World) -> None:
    plan = world.plan(**settle())
    world.table.commit("SET TBLPROPERTIES", "apply", Stamp("earlier", DIGEST).text(), properties={"owner.team": "web"})
    world.table.set_property("delta.isolationLevel", "odd", "eve")
    run = world.run(plan)
    assert run.outcome is RunOutcome.STALE
    assert [each.user for each in run.foreign] == ["eve"]


def test_a_run_that_comes_back_after_its_lease_is_reported(world: World) -> None:
    plan = world.plan(**settle())
    late = Stamp("earlier", DIGEST).text()
    world.after = at(
        1, lambda table: table.commit("SET TBLPROPERTIES", "apply", late, properties=table.live.properties)
    )
    run = world.run(plan)
    assert run.outcome is RunOutcome.APPLIED
    assert [each.version for each in run.foreign] == [2]


# Verification


def test_what_others_undo_after_our_last_commit_decides_the_outcome(world: World) -> None:
    plan = world.plan(isolation="Serializable")
    world.after = at(1, lambda table: table.set_property("delta.isolationLevel", None, "eve"))
    run = world.run(plan)
    assert run.outcome is RunOutcome.UNVERIFIED
    assert "isolation: applied and verified, then changed by others: version 2 (" in run.message
    assert run.later == ("isolation",)
    assert [each.user for each in run.foreign] == ["eve"]
    assert len(world.sent) == 1


@pytest.mark.parametrize("value", ["odd", "WriteSerializable"])
def test_so_is_a_change_to_something_else(world: World, value: str) -> None:
    plan = world.plan(isolation="Serializable")
    world.after = at(1, lambda table: table.set_property("delta.isolationLevel", value, "eve"))
    run = world.run(plan)
    assert (run.outcome, run.later) == (RunOutcome.UNVERIFIED, ("isolation",))


def test_so_is_a_table_replaced_afterwards(world: World) -> None:
    plan = world.plan(isolation="Serializable")
    world.after = at(1, lambda table: table.commit("REPLACE TABLE", "eve", table_id="another", properties={}))
    run = world.run(plan)
    assert (run.outcome, run.later) == (RunOutcome.UNVERIFIED, ("isolation",))


def test_what_does_not_read_as_declared_at_our_last_commit_is_unverified(world: World) -> None:
    world.table.set_property("debug", "on")
    plan = world.plan(**settle())
    # Between the two statements someone puts the first one's value back.
    world.after = at(1, lambda table: table.set_property("owner.team", None, "eve"))
    run = world.run(plan)
    assert run.outcome is RunOutcome.UNVERIFIED
    assert "properties.owner.team is not set, not web" in run.message
    assert [each.user for each in run.foreign] == ["eve"]
    assert len(world.sent) == 2


def test_a_statement_without_effect_is_found_out(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = world.plan(isolation="Serializable")
    monkeypatch.setattr(FakeEngine, "_run", lambda *_: None)
    run = world.run(plan)
    assert (run.outcome, len(world.sent)) == (RunOutcome.UNVERIFIED, 1)


# Refusals under the lease


def test_a_phase_that_became_stricter_is_refused(world: World) -> None:
    plan = world.plan(deletion_vectors="enabled")
    assert [each.phase for each in plan.statements] == ["free"]
    world.table.commit("WRITE", clients=(Client("delta-rs", (1, 0)), SPARK))
    run = world.run(plan)
    assert (run.outcome, world.sent) == (RunOutcome.REFUSED, [])
    assert "was planned for the free phase and now needs closed" in run.message
    assert run.hint == "plan again, so that the writers that would fail now are reviewed"


def test_a_phase_that_became_looser_is_fine() -> None:
    world = World()
    world.lake.add(clients=(Client("delta-spark", (4, 0)),))  # it fails by what 4.4 tolerates
    plan = world.plan(deletion_vectors="enabled")
    assert [each.phase for each in plan.statements] == ["closed"]
    world.table.commit("WRITE", clients=(SPARK,))
    assert world.run(plan).outcome is RunOutcome.APPLIED


def test_a_statement_that_the_plan_does_not_hold_is_refused(world: World) -> None:
    plan = world.plan(**settle())
    other = world.plan(clustering=("id",))
    run = world.run(replace(plan, changes=other.changes))
    assert (run.outcome, world.sent) == (RunOutcome.REFUSED, [])
    assert run.message == "clustering needs a CLUSTER BY that the plan does not hold"


def test_a_change_that_the_table_cannot_take_any_more_is_refused(world: World) -> None:
    plan = world.plan(clustering=("id",))
    world.table.commit("REPLACE", partition_columns=("day",))
    run = world.run(plan)
    assert (run.outcome, world.sent) == (RunOutcome.REFUSED, [])
    assert "partitioned by day" in run.message


# Contention, errors, lost answers


@pytest.mark.parametrize("condition", ["DELTA_METADATA_CHANGED", "DELTA_CONCURRENT_APPEND.WITHOUT_HINT"])
def test_a_contended_statement_is_tried_again(world: World, condition: str) -> None:
    plan = world.plan(isolation="Serializable")
    world.before = contended(4, condition)
    run = world.run(plan)
    assert (run.outcome, len(world.sent)) == (RunOutcome.APPLIED, 5)
    assert [each.condition for each in run.statements] == [condition] * 4 + [""]
    assert world.events.count("prove") == 6, "once before each, and once at the end"
    assert world.clock.now > 1000


def test_it_is_given_up_at_last(world: World) -> None:
    plan = world.plan(isolation="Serializable")
    world.before = contended(100)
    run = world.run(plan)
    assert (run.outcome, len(world.sent)) == (RunOutcome.FAILED, 5)
    assert run.message == "[DELTA_METADATA_CHANGED] someone was faster"
    assert "commits of writers without a guard won against each try" in run.hint
    assert "`--when quiet`" in run.hint


def test_each_statement_has_its_own_tries(world: World) -> None:
    world.table.set_property("debug", "on")
    plan = world.plan(**settle())
    clash, left = contended(100), Counter[str]()

    def four_each(table: FakeTable, sql: str) -> None:
        left[sql] += 1
        if left[sql] < 5:
            clash(table, sql)

    world.before = four_each
    run = world.run(plan)
    assert (run.outcome, len(world.sent)) == (RunOutcome.APPLIED, 10)


def test_contention_with_someone_who_did_the_same_needs_no_more(world: World) -> None:
    plan = world.plan(isolation="Serializable")

    def faster(table: FakeTable, sql: str) -> None:
        table.set_property("delta.isolationLevel", "Serializable")
        contended(1)(table, sql)

    world.before = faster
    run = world.run(plan)
    assert (run.outcome, len(world.sent), run.commits) == (RunOutcome.ALREADY, 1, ())


def test_a_stop_during_the_pause_is_an_interruption(world: World) -> None:
    plan = world.plan(isolation="Serializable")
    world.before = contended(1)

    def stop() -> None:
        raise StoppedError("stopped while waiting")

    world.clock.on_sleep = stop
    run = world.run(plan)
    assert (run.outcome, len(world.sent)) == (RunOutcome.INTERRUPTED, 1)


def test_a_failure_ends_the_table_with_the_error_class(world: World) -> None:
    world.table.set_property("debug", "on")
    plan = world.plan(**settle())
    world.before = fails(1, "SOME_CLASS")
    run = world.run(plan)
    assert (run.outcome, len(world.sent), run.commits) == (RunOutcome.FAILED, 1, ())
    assert (run.message, run.hint) == ("[SOME_CLASS] the connection broke", "look at the cluster")
    assert (run.statements[0].error, run.statements[0].condition) == ("the connection broke", "SOME_CLASS")


@pytest.mark.parametrize("number", [1, 2])
def test_a_lost_answer_counts_as_done(world: World, number: int) -> None:
    world.table.set_property("debug", "on")
    plan = world.plan(**settle())
    world.after = fails(number)
    run = world.run(plan)
    assert (run.outcome, len(world.sent), len(run.commits)) == (RunOutcome.APPLIED, 2, 2)


def test_a_lost_answer_that_others_undo_is_not_sent_again(world: World) -> None:
    world.table.set_property("debug", "on")
    plan = world.plan(**settle())
    world.after = fails(1)
    world.before = at(2, lambda table: table.set_property("owner.team", None, "eve"))
    run = world.run(plan)
    assert (run.outcome, len(world.sent)) == (RunOutcome.UNVERIFIED, 2)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_so_it_does_on_the_way_to_purged(number: int) -> None:
    world = World()
    world.lake.add(**WITH_VECTORS)
    plan = world.plan(deletion_vectors="purged")
    slip, lose = at(2, lambda table: table.commit("DELETE", vectors=2)), fails(number)
    world.before, world.after = slip, lose
    run = world.run(plan)
    assert (run.outcome, len(world.sent), len(run.commits)) == (RunOutcome.APPLIED, 3, 3)


def test_a_failed_statement_whose_table_cannot_be_read_is_reported_as_such(world: World) -> None:
    plan = world.plan(isolation="Serializable")

    def down(table: FakeTable, sql: str) -> None:
        table.broken = "the disk is gone"
        raise EngineError("the connection broke", "look at the cluster")

    world.after = down
    run = world.run(plan)
    assert run.outcome is RunOutcome.UNKNOWN
    assert run.message == ("the connection broke; whether it took effect is unknown: /lake/orders: the disk is gone")
    assert run.hint == "look at the cluster"


def test_a_table_that_cannot_be_read_fails(world: World) -> None:
    plan = world.plan(isolation="Serializable")
    world.table.broken = "the disk is gone"
    run = world.run(plan)
    assert (run.outcome, run.message, world.sent) == (RunOutcome.FAILED, "/lake/orders: the disk is gone", [])


def test_an_error_that_no_one_foresaw_is_the_tables_own(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", "tablectl")
    world.table.set_property("debug", "on")
    plan = world.plan(**settle())

    def bug(_table: FakeTable) -> None:
        raise ZeroDivisionError("a bug")

    world.before = at(2, bug)
    run = world.run(plan)
    assert run.outcome is RunOutcome.FAILED
    assert run.message == "unexpected error: ZeroDivisionError: a bug"
    assert len(run.commits) == 1
    assert "ZeroDivisionError" in caplog.text


class PanicException(BaseException):
    """As Rust's libraries raise it."""

    __module__ = "pyo3_runtime"


def test_a_panic_of_a_library_costs_neither_the_report_nor_the_gate(world: World) -> None:
    world.table.set_property("debug", "on")
    plan = world.plan(**settle())

    def panic(_table: FakeTable) -> None:
        raise PanicException("poisoned")

    world.before = at(2, panic)
    run = world.run(plan)
    assert (run.outcome, run.message) == (RunOutcome.FAILED, "unexpected error: PanicException: poisoned")
    assert (len(run.commits), run.shut) == (1, "")


# Names


def test_a_name_that_leads_elsewhere_stops_the_table() -> None:
    world = World()
    world.lake.add("sales.orders", "/lake/orders")
    plan = world.plan(isolation="Serializable")
    world.table.moved_to = "/lake/new_orders"
    run = world.run(plan)
    assert (run.outcome, world.sent) == (RunOutcome.STALE, [])
    assert run.message == "the name now leads to /lake/new_orders; the plan was made for /lake/orders"


def test_a_location_may_be_spelt_in_two_ways() -> None:
    world = World()
    world.lake.add("sales.orders", "/lake/orders")
    plan = world.plan(isolation="Serializable")
    world.table.moved_to = "file:///lake//orders/"
    assert world.run(plan).outcome is RunOutcome.APPLIED
    assert parse_sql(world.sent[0]).table == ("spark_catalog", "sales", "orders")


def test_a_name_that_is_gone_fails_the_table() -> None:
    world = World()
    table = world.lake.add("sales.orders", "/lake/orders")
    plan = world.plan(isolation="Serializable")
    lease = world.lease()
    table.name = replace(table.name, parts=("sales", "old_orders"))
    engine = FakeEngine(world.lake, Stamp("ann", DIGEST))
    window = RunContext(
        engine, world.lake, world.clock, engine.stamp, world.stop, lambda *_: None, claim("ann"), lambda _: world.store
    )
    run = run_table(window, plan, lease)
    assert (run.outcome, engine.sent) == (RunOutcome.FAILED, [])
    assert "does not exist" in run.message


def test_a_path_plan_that_was_read_elsewhere_is_not_run(world: World) -> None:
    """Such a plan exists only where its file was edited."""
    plan = replace(world.plan(isolation="Serializable"), location="/lake/other")
    world.lake.tables["/lake/other"] = world.lake.tables.pop("/lake/orders")
    run = world.run(plan)
    assert (run.outcome, world.sent) == (RunOutcome.STALE, [])


# Stop and lease


@pytest.mark.parametrize(("step", "sent"), [("fresh", 0), ("before closed-set", 1), ("after closed-set", 1)])
def test_a_stop_lets_no_further_statement_start(world: World, step: str, sent: int) -> None:
    world.table.set_property("debug", "on")
    plan = world.plan(**settle())
    world.tick = lambda event: world.stop.set() if event == step else None
    run = world.run(plan)
    assert (run.outcome, len(world.sent), len(run.commits)) == (RunOutcome.INTERRUPTED, sent, sent)
    assert run.hint == "run the same command again"


def test_a_stop_after_the_last_statement_changes_nothing(world: World) -> None:
    plan = world.plan(isolation="Serializable")
    world.tick = lambda event: world.stop.set() if event == "after closed-set" else None
    assert world.run(plan).outcome is RunOutcome.APPLIED


@pytest.mark.parametrize("how", ["broken", "gone", "ran out"])
def test_without_the_lease_nothing_more_is_sent(world: World, how: str) -> None:
    world.table.set_property("debug", "on")
    plan = world.plan(**settle())

    def lose(_table: FakeTable) -> None:
        if how == "broken":
            break_lease(world.store, 1, "stuck", claim("ben").owner, world.clock)
        elif how == "gone":
            world.store.kept.clear()
        else:
            world.clock.now += 61

    world.after = at(1, lose)
    run = world.run(plan)
    assert (run.outcome, len(world.sent), len(run.commits)) == (RunOutcome.FAILED, 1, 1)
    assert "lease" in run.message
    assert run.hint.startswith("run the same apply again")


# Kills


def _facts(world: World) -> tuple[LiveTable, list[str]]:
    return replace(world.table.live, version=0), [commit.operation for commit in world.table.stamped]


def _world(**facts: Any) -> World:
    world = World(options=TableOptions(rewrite="allowed", max_bytes=3000))
    world.lake.add(**facts)
    return world


MANY = {"owner.team": "web", "delta.checkpointRetentionDuration": "interval 60 days", "a": None, "b": None}
ICEBERG_V1: dict[str, Any] = {
    "properties": {
        "delta.enableIcebergCompatV1": "true",
        "delta.universalFormat.enabledFormats": "iceberg",
        "delta.columnMapping.mode": "name",
    }
}
CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "one": ({}, {"isolation": "Serializable"}),
    "free": ({"clustering": (("id",),)}, {"deletion_vectors": "enabled", "clustering": ("day",)}),
    "merged": ({"properties": {"a": "1", "b": "2"}}, {"isolation": "Serializable", "properties": MANY}),
    "purge": (WITH_VECTORS, {"deletion_vectors": "purged"}),
    "purge off": ({**WITH_VECTORS, "properties": {}}, {"deletion_vectors": "purged", "isolation": "Serializable"}),
    "needs": (
        {"properties": {"delta.dataSkippingNumIndexedCols": "1", "a": "1"}},
        {
            "clustering": ("place.city",),
            "deletion_vectors": "enabled",
            "properties": {"delta.dataSkippingNumIndexedCols": "32", "a": None},
        },
    ),
    "row tracking": ({}, {"row_tracking": "enabled", "properties": {"owner.team": "web"}}),
    "suspended": (
        {"properties": {"delta.rowTrackingSuspended": "true"}},
        {"row_tracking": "enabled", "isolation": "Serializable"},
    ),
    "mapping on": ({}, {"column_mapping": "name", "row_tracking": "enabled", "properties": {"owner.team": "web"}}),
    "mapping off": (
        {"properties": {"delta.columnMapping.mode": "name", "a": "1"}},
        {"column_mapping": "none", "properties": MANY},
    ),
    "partitioned": ({"properties": {"a": "1"}}, {"partitioning": ("day",), "properties": {"a": "2", "b": None}}),
    "clustered instead": (
        {"partition_columns": ("day",)},
        {"partitioning": "none", "clustering": ("id",), "isolation": "Serializable"},
    ),
    "partitioned instead": ({"clustering": (("id",),)}, {"partitioning": ("day",), "clustering": "none"}),
    "uniform v1": ({"schema": without("tags")}, {"uniform": "iceberg_v1", "properties": {"owner.team": "web"}}),
    "uniform v2": (WITH_VECTORS, {"uniform": "iceberg_v2", "isolation": "Serializable"}),
    "uniform v1 to v2": (ICEBERG_V1, {"uniform": "iceberg_v2", "isolation": "Serializable"}),
    "uniform none": (ICEBERG_V1, {"uniform": "none", "deletion_vectors": "enabled", "column_mapping": "none"}),
    "all": (
        {**WITH_VECTORS, "clustering": (("id",),), "properties": {"delta.enableDeletionVectors": "true", "a": "1"}},
        {
            "isolation": "Serializable",
            "deletion_vectors": "purged",
            "clustering": ("day", "place.city"),
            "properties": MANY,
        },
    ),
}


def _uninterrupted(case: str) -> tuple[tuple[LiveTable, list[str]], list[str]]:
    facts, policy = CASES[case]
    world = _world(**facts)
    ticks: list[str] = []
    world.tick = ticks.append
    assert world.run(world.plan(**policy)).outcome is RunOutcome.APPLIED
    return _facts(world), ticks


def _kills() -> Iterator[Any]:
    for case in CASES:
        _, ticks = _uninterrupted(case)
        for number, event in enumerate(ticks):
            yield pytest.param(case, number, id=f"{case}-{number}-{event}")


@pytest.mark.parametrize(("case", "number"), list(_kills()))
def test_a_run_killed_anywhere_is_finished_by_the_same_command(case: str, number: int) -> None:
    facts, policy = CASES[case]
    world = _world(**facts)
    plan = world.plan(**policy)
    left = number

    def kill(_event: str) -> None:
        nonlocal left
        left -= 1
        if left == -1:
            raise Kill

    world.tick = kill
    with pytest.raises(Kill):
        world.run(plan, "ann")
    dead = tail(world.store)
    assert dead is not None
    assert dead.held
    run = world.run(plan, "ben")
    assert run.outcome in {RunOutcome.APPLIED, RunOutcome.ALREADY}
    assert (run.epoch, run.foreign, run.later) == (2, (), ())
    assert _facts(world) == _uninterrupted(case)[0]
    assert world.clock.now >= 1075


def test_a_dead_holders_lease_is_not_taken_at_once(world: World) -> None:
    world.lease("ann")
    assert not isinstance(try_acquire(world.store, claim("ben"), world.clock), Lease)


# Everything at once

POLICIES = st.fixed_dictionaries(
    {},
    optional={
        "isolation": st.sampled_from(["Serializable", "default"]),
        "deletion_vectors": st.sampled_from(["enabled", "disabled", "purged"]),
        "row_tracking": st.sampled_from(["enabled", "disabled"]),
        "clustering": st.sampled_from(["none", ("id",), ("day", "id"), ("place.city",)]),
        "partitioning": st.sampled_from(["none", ("day",), ("id",)]),
        "properties": st.dictionaries(
            st.sampled_from(
                ["owner.team", "a", "delta.checkpointRetentionDuration", "delta.dataSkippingNumIndexedCols"]
            ),
            st.sampled_from([None, "7", "interval 60 days"]),
            max_size=3,
        ),
    },
).map(lambda policy: {key: value for key, value in policy.items() if not _odd(value)})


def _odd(value: Any) -> bool:
    """Values that policies themselves would refuse."""
    return isinstance(value, dict) and (
        value.get("delta.checkpointRetentionDuration") == "7"
        or value.get("delta.dataSkippingNumIndexedCols") == "interval 60 days"
    )


STARTS = st.fixed_dictionaries(
    {
        "protocol": st.just(VECTORS),
        "vectors": st.sampled_from([0, 5]),
        "clustering": st.sampled_from([None, (), (("id",),)]),
        "clients": st.sampled_from([(), (SPARK,), (Client("delta-rs", (1, 0)),)]),
        "properties": st.dictionaries(
            st.sampled_from(
                ["owner.team", "a", "delta.isolationLevel", "delta.enableDeletionVectors", "delta.enableRowTracking"]
            ),
            st.sampled_from(["true", "Serializable", "7"]),
        ),
    }
)


def _kill(_table: FakeTable) -> None:
    raise Kill


def _clash(_table: FakeTable) -> None:
    raise EngineError("clash", "", "DELTA_METADATA_CHANGED")


def _break(_table: FakeTable) -> None:
    raise EngineError("the connection broke")


ACTS: dict[str, Callable[[FakeTable], object]] = {
    "kill": _kill,
    "clash": _clash,
    "break": _break,
    "write": lambda table: table.commit("WRITE", "stream"),
    "delete": lambda table: table.commit("DELETE", "stream", vectors=(table.live.vectors or 0) + 1),
    "other": lambda table: table.set_property("unmanaged", str(table.live.version)),
    "steal": lambda table: table.set_property("owner.team", "eve"),
    "unset": lambda table: table.set_property("owner.team", None),
    "isolate": lambda table: table.set_property("delta.isolationLevel", "Serializable"),
    "vectors": lambda table: table.set_property("delta.enableDeletionVectors", "true"),
    "cluster": lambda table: table.commit("CLUSTER BY", clustering=(("id",),)),
    "strange": lambda table: table.commit("WRITE", clients=(Client("unknown"),)),
    "drop": lambda table: table.commit("DROP COLUMNS", schema=without("day")),
    "replace": lambda table: table.commit("REPLACE", table_id=f"{table.live.table_id}+"),
}
SCRIPTS = st.dictionaries(st.integers(0, 25), st.sampled_from(sorted(ACTS)), max_size=4)
IN_ENGINE = {"execute", "midway", "landed"}


@settings(max_examples=200, deadline=None)
@given(start=STARTS, policy=POLICIES, script=SCRIPTS)
def test_whatever_happens(start: dict[str, Any], policy: dict[str, Any], script: dict[int, str]) -> None:
    world = _world(**start)
    planned = plan_table(Policy(policy), world.table.live, "oss", world.options)
    assume(planned is not None and not planned.refusals)
    assert planned is not None
    plan = planned
    seen: list[LiveTable] = []
    world.lake.on_read = lambda table: seen.append(table.live)
    steps = 0

    def happen(event: str) -> None:
        nonlocal steps
        if event == "execute":
            _check_sent(plan, seen[-1], world.sent[-1])
        act = script.get(steps)
        steps += 1
        # Only statements give engine errors; a kill or a foreign commit may come at any step.
        if act and (event in IN_ENGINE or act not in {"clash", "break"}):
            world.events.append(act)
            ACTS[act](world.table)

    world.tick = happen
    for number in range(4):
        first, world.events = world.table.live.version, []
        try:
            run = world.run(plan, f"run-{number}")
        except Kill:
            continue
        _check_run(world, plan, run, first)
        if not set(world.events) & set(ACTS) and run.outcome in {RunOutcome.APPLIED, RunOutcome.ALREADY}:
            assert (run.foreign, run.later) == ((), ())


def _check_sent(plan: TablePlan, seen: LiveTable, sql: str) -> None:
    assert seen.table_id == plan.table_id
    assert not [change for change in plan.changes if change_state(change, seen) is ChangeState.STALE]
    planned = {statement.verb.split()[0] for statement in plan.statements}
    assert (sql.split(maxsplit=1)[0] if sql.startswith("OVERWRITE") else parse_sql(sql).verb) in planned


def _check_run(world: World, plan: TablePlan, run: TableRun, first: int) -> None:
    done = Counter(each.id for each in run.statements if each.condition != "DELTA_METADATA_CHANGED")
    assert all(count == 1 for count in done.values())
    assert "unexpected" not in run.message
    stamped = [commit.version for commit in world.table.history if f'"{_who(world)}"' in commit.user_metadata]
    assert [commit.version for commit in run.commits] == stamped
    if run.outcome in {RunOutcome.APPLIED, RunOutcome.ALREADY}:
        at_version = stamped[-1] if stamped else None
        states = [each for each in world.table.states if at_version in {None, each.version} and each.version >= first]
        assert any(all(change_state(change, each) is ChangeState.DONE for change in plan.changes) for each in states)
    else:
        assert run.message
        assert run.hint or run.outcome is RunOutcome.FAILED
    if not set(world.events) & set(ACTS):
        assert run.outcome not in {RunOutcome.FAILED, RunOutcome.UNVERIFIED, RunOutcome.INTERRUPTED}


def _who(world: World) -> str:
    last = tail(world.store)
    assert last is not None
    return last.run.removeprefix("run-of-")


def test_a_name_that_leads_elsewhere_is_stale_although_nothing_is_missing_at_the_old_place() -> None:
    world = World()
    world.lake.add("lake.sales.orders", "/lake/orders")
    plan = world.plan(isolation="Serializable")
    world.table.set_property("delta.isolationLevel", "Serializable")
    world.table.moved_to = "/lake/green"
    run = world.run(plan)
    assert (run.outcome, world.sent) == (RunOutcome.STALE, [])
    assert "the name now leads to /lake/green" in run.message
