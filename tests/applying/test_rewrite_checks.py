"""A table rewritten under other partition columns: what is looked at before and after, on a fake lake."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from tablectl.applying.row_sums import checksums
from tablectl.delta.protocol import Protocol
from tablectl.delta.schema import Schema, parse_schema
from tablectl.model.errors import EngineError
from tablectl.model.run_report import RunOutcome
from tablectl.model.table_options import TableOptions
from tests.applying.fake_lake import FakeEngine, FakeTable, at, fails
from tests.applying.world import WITH_VECTORS, Kill, World

DAY: dict[str, Any] = {"partitioning": ("day",)}


@pytest.fixture
def world() -> World:
    world = World(options=TableOptions(rewrite="allowed", max_bytes=5000))
    world.lake.add()
    return world


def test_one_stamped_commit_and_both_versions_compared_behind_the_gate(world: World) -> None:
    plan = world.plan(**DAY)
    assert [(each.phase, each.verb, each.repartition) for each in plan.statements] == [
        ("closed", "OVERWRITE", ("day",))
    ]
    run = world.run(plan)
    assert (run.outcome, world.sent, world.table.live.partition_columns) == (
        RunOutcome.APPLIED,
        ["OVERWRITE day"],
        ("day",),
    )
    assert [sql.rpartition(" ")[2] for sql in world.asked] == ["0", "1"]
    steps = [event for event in world.events if event in {"after closed-overwrite", "compare", "verify"}]
    assert steps == ["after closed-overwrite", "compare", "verify"]


def test_what_was_compared_once_is_not_compared_again_even_after_vacuum(world: World) -> None:
    plan = world.plan(**DAY)
    world.run(plan)
    world.asked.clear()
    assert (world.run(plan, "ben").outcome, world.sent) == (RunOutcome.ALREADY, ["OVERWRITE day"])
    assert world.asked == []


def test_a_rewrite_of_a_run_that_was_killed_before_it_compared_is_compared_by_the_next(world: World) -> None:
    plan = world.plan(**DAY)
    world.loses = 1

    def kill(event: str) -> None:
        if event == "compare":
            raise Kill

    world.tick = kill
    with pytest.raises(Kill):
        world.run(plan)
    world.tick = lambda _event: None
    run = world.run(plan, "ben")
    assert (run.outcome, world.sent) == (RunOutcome.UNVERIFIED, ["OVERWRITE day"])
    assert "RESTORE" in run.hint


def test_what_could_not_be_compared_is_not_called_different_and_nothing_is_to_be_restored(world: World) -> None:
    class Vacuumed(FakeEngine):
        def row(self, sql: str) -> tuple[str | None, ...]:
            raise EngineError("a file does not exist", "", "FAILED_READ_FILE.FILE_NOT_EXIST")

    plan = world.plan(**DAY)
    world.engine = Vacuumed
    run = world.run(plan)
    assert (run.outcome, run.message) == (
        RunOutcome.UNVERIFIED,
        "version 1 was not compared with version 0: a file does not exist",
    )
    assert "RESTORE" not in run.hint
    assert "nothing is known to be wrong" in run.hint
    world.engine = FakeEngine
    assert world.run(plan, "ben").outcome is RunOutcome.ALREADY
    assert len(world.asked) == 2, "the next run compares what this one could not"


def test_a_rewrite_without_a_stamp_is_found_and_compared(world: World) -> None:
    """Its commit has no ``commitInfo`` of ours, where a session setting or another driver took it away."""
    world.loses = 1

    def erase(table: FakeTable, _sql: str) -> None:
        table.history[-1] = replace(table.history[-1], user_metadata="", changes_metadata=True)

    world.after = erase
    run = world.run(world.plan(**DAY))
    assert (run.outcome, run.message) == (
        RunOutcome.UNVERIFIED,
        "version 1 is not what version 0 was: it has 0 rows instead of 1",
    )


def test_a_rewrite_that_succeeded_and_is_in_no_log_is_unknown(world: World) -> None:
    def vanish(table: FakeTable, _sql: str) -> None:
        table.states.pop()
        table.history.pop()
        table.rows.pop()

    world.after = vanish
    run = world.run(world.plan(**DAY))
    assert run.outcome is RunOutcome.UNKNOWN
    assert "no commit of it is in the table's log" in run.message


def test_rows_that_are_missing_are_found_and_the_way_back_is_named(world: World) -> None:
    world.loses = 1
    run = world.run(world.plan(**DAY))
    assert run.outcome is RunOutcome.UNVERIFIED
    assert run.message == "version 1 is not what version 0 was: it has 0 rows instead of 1"
    assert run.hint == (
        "`RESTORE TABLE `delta`.`/lake/orders` TO VERSION AS OF 0` brings version 0 back, "
        "and takes back every commit after 1, if there are any"
    )


def test_it_is_compared_before_a_later_statement_can_fail() -> None:
    world = World(options=TableOptions(rewrite="allowed"), loses=1, before=fails(2))
    world.lake.add(partition_columns=("day",))
    run = world.run(world.plan(partitioning="none", clustering=("id",)))
    assert run.outcome is RunOutcome.UNVERIFIED
    assert "it has 0 rows instead of 1" in run.message


def test_what_others_changed_at_the_last_moment_is_not_lost_in_silence(world: World) -> None:
    """A foreign ALTER between our reading and Delta's transaction: the overwrite puts back the columns as we read."""
    plan = world.plan(**DAY)

    def comment(table: FakeTable) -> None:
        text = json.loads(table.live.schema.text)
        text["fields"][0]["metadata"] = {"comment": "theirs"}
        before = table.live.schema
        table.commit("CHANGE COLUMN", schema=replace(before, text=json.dumps(text)))
        world.after = at(1, lambda table: _put_back(table, before))

    world.before = at(1, comment)
    run = world.run(plan)
    assert (run.outcome, run.message) == (
        RunOutcome.UNVERIFIED,
        "version 2 is not what version 1 was: id: comment",
    )


def _put_back(table: FakeTable, schema: Schema) -> None:
    table.states[-1] = replace(table.states[-1], schema=schema)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"properties": {"delta.enableRowTracking": "true"}}, "row tracking is on"),
        ({"clustering": (("id",),)}, "the table is clustered by id"),
        ({"protocol": Protocol(1, 7, frozenset(), frozenset({"icebergCompatV2"}))}, "it is unknown whether"),
    ],
)
def test_a_table_that_must_not_be_rewritten_since_the_last_look_ends_with_the_version_to_restore(
    world: World, change: dict[str, Any], why: str
) -> None:
    """Delta's overwrite takes the table as it is when its transaction begins."""
    world.before = at(1, lambda table: table.commit("ALTER", **change))
    run = world.run(world.plan(**DAY))
    assert (run.outcome, world.table.live.partition_columns) == (RunOutcome.UNVERIFIED, ("day",))
    assert run.message.startswith(f"version 2 rewrote a table that others had changed just before: partitioning: {why}")
    assert "RESTORE TABLE `delta`.`/lake/orders` TO VERSION AS OF 1" in run.hint


def test_a_writer_that_obeys_no_gate_ends_the_rewrite_and_loses_nothing(world: World) -> None:
    def append(table: FakeTable, _sql: str) -> None:
        table.commit("WRITE", "stream")
        raise EngineError("files were added", "run the command again", "DELTA_CONCURRENT_APPEND")

    world.before = append
    run = world.run(world.plan(**DAY))
    assert (run.outcome, len(world.sent), world.table.live.partition_columns) == (RunOutcome.FAILED, 1, ())
    assert (world.table.rows, "guard these writers" in run.hint) == ([1, 2], True)


def test_a_failure_in_the_middle_leaves_the_table_and_the_next_run_goes_on(world: World) -> None:
    plan = world.plan(**DAY)
    world.before = fails(1)
    assert world.run(plan).outcome is RunOutcome.FAILED
    assert len(world.table.history) == 1
    world.before = lambda _table, _sql: None
    assert world.run(plan, "ben").outcome is RunOutcome.APPLIED


def test_an_answer_that_was_lost_is_not_a_second_rewrite(world: World) -> None:
    world.after = fails(1)
    run = world.run(world.plan(**DAY))
    assert (run.outcome, len(world.sent), len(world.asked)) == (RunOutcome.APPLIED, 1, 2)


def test_a_table_that_outgrew_its_limit_is_not_written(world: World) -> None:
    plan = world.plan(**DAY)
    world.table.commit("WRITE", bytes=5001)
    run = world.run(plan)
    assert (run.outcome, world.sent) == (RunOutcome.REFUSED, [])
    assert run.message == "partitioning: it rewrites at most 5,001 bytes, and `max_bytes` allows 5,000"


def test_a_purge_of_a_table_that_outgrew_its_limit_is_not_sent(world: World) -> None:
    """The limit binds each rewrite, not only those of all data."""
    world.lake.add(**WITH_VECTORS)
    plan = world.plan(deletion_vectors="purged")
    world.table.commit("WRITE", bytes=5001)
    run = world.run(plan)
    assert (run.outcome, run.message, world.sent) == (
        RunOutcome.REFUSED,
        "deletion_vectors: it rewrites at most 5,001 bytes, and `max_bytes` allows 5,000",
        [],
    )


@pytest.mark.parametrize(
    ("free", "outcome"), [(2999, RunOutcome.REFUSED), (3000, RunOutcome.APPLIED), (None, RunOutcome.APPLIED)]
)
def test_a_disk_without_room_for_a_second_copy_is_left_alone(
    world: World, free: int | None, outcome: RunOutcome
) -> None:
    world.lake.disk = free
    run = world.run(world.plan(**DAY))
    assert (run.outcome, len(world.sent)) == (outcome, int(outcome is RunOutcome.APPLIED))


def test_empty_texts_are_not_made_null() -> None:
    world = World(options=TableOptions(rewrite="allowed"))
    text = json.dumps({"type": "struct", "fields": [{"name": "a`b", "type": "string"}, {"name": "id", "type": "long"}]})
    world.lake.add(schema=parse_schema(text))
    world.empty_texts = 2
    run = world.run(world.plan(partitioning=("`a``b`",)))
    assert (run.outcome, world.sent) == (RunOutcome.REFUSED, [])
    assert run.message == (
        "the table holds 2 empty texts in `a``b`, which Delta stores as NULL in a partition column; 2 texts "
        "__HIVE_DEFAULT_PARTITION__ in `a``b`, which Delta stores as NULL in a partition column; 2 texts in `a``b` "
        "that are too long for the name of a folder"
    )
    (query,) = world.asked
    assert query.startswith("SELECT count_if(`a``b` = ''), count_if(`a``b` = '__HIVE_DEFAULT_PARTITION__'), count_if(")
    assert query.endswith("FROM `delta`.`/lake/orders` VERSION AS OF 0")
    assert "gate closed" not in world.events, "the rows are counted before writers wait"


def test_the_query_of_the_checksums(world: World) -> None:
    first = "-6148914691236517205L"
    pairs = f"map_keys(`tags`), arrays_zip(map_values(`tags`), sequence({first}, {first} + size(`tags`)))"
    values = {
        "`id`": "xxhash64(`id` IS NULL, `id`)",
        "`day`": "xxhash64(`day` IS NULL, `day`)",
        "`place`": "xxhash64(`place` IS NULL, `place`.`city` IS NULL, `place`.`city`)",
        "`tags`": f"xxhash64(`tags` IS NULL, size(`tags`), {pairs})",
    }
    whole = f"xxhash64({', '.join(values.values())})"
    sums = ", ".join(f"sum(CAST({each} AS DECIMAL(38, 0)))" for each in (whole, *values.values()))
    assert checksums(world.table.live, "t") == f"SELECT count(*), {sums}\nFROM t VERSION AS OF 0"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (0, "it has x rows instead of 0"),
        (1, "the same values in other rows"),
        (3, "other values in `day`"),
        (5, "other values in `tags`"),
    ],
)
def test_each_checksum_tells_what_is_different(world: World, changed: int, message: str) -> None:
    class Lies(FakeEngine):
        def row(self, sql: str) -> tuple[str | None, ...]:
            values = ["0"] * 6
            if sql.endswith(" 1"):
                values[changed] = "x"
            return tuple(values)

    world.engine = Lies
    run = world.run(world.plan(**DAY))
    assert run.message == f"version 1 is not what version 0 was: {message}"
