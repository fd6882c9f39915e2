"""Upkeep of one table under its lease: slices, gates, kills, and what keeps a VACUUM from running."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest

from tablectl.applying.scheduler import Pace
from tablectl.leases.clock import milliseconds
from tablectl.leases.guards import GuardMode
from tablectl.leases.lease_records import tail
from tablectl.model.errors import EngineError
from tablectl.model.run_report import TableRun
from tablectl.model.stamp import Stamp
from tablectl.model.stream_progress import StreamPosition
from tablectl.model.table_options import TableOptions
from tablectl.model.upkeep import OptimizePolicy, UpkeepFacts, UpkeepPolicy, VacuumPolicy
from tablectl.planning.plan_upkeep import VACUUM_RISKS, ShallowClones, UpkeepTable, due_tasks, upkeep_table
from tests.applying.fake_lake import FakeEngine, FakeTable
from tests.applying.world import World
from tests.applying.writers import FakeGuard

BOTH = UpkeepPolicy(optimize=OptimizePolicy(small_files="30%"), vacuum=VacuumPolicy(every="7 days"))
OPTIMIZE = UpkeepPolicy(optimize=OptimizePolicy(small_files="30%"))
VACUUM = UpkeepPolicy(vacuum=VacuumPolicy(every="7 days"))


class Upkeep(World):
    """A table of many small files that were never merged, in the fake lake."""

    facts: UpkeepFacts
    last: FakeEngine | None

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        self.facts = UpkeepFacts(files=100, bytes=100_000, small_files=100, small_bytes=100_000, cut=True, commits=9)
        self.lake.add(upkeep=self.facts)
        self.last = None
        world = self

        class Engine(FakeEngine):
            """Remembers itself, so that a test sees its settings."""

            def __init__(self, *args: Any, **given: Any) -> None:
                super().__init__(*args, **given)
                self.batches, self.unused = world.batches, 7
                world.last = self

        self.engine = Engine

    batches = 1

    def due(self, policy: UpkeepPolicy = BOTH, **more: Any) -> UpkeepTable:
        live = self.table.live
        tasks = due_tasks(policy, live, milliseconds(self.clock.utc()))
        return replace(upkeep_table(policy, live, tasks, self.dialect, self.options), **more)

    def upkeep(self, policy: UpkeepPolicy = BOTH, run: str = "ann", **more: Any) -> TableRun:
        return self.run(self.due(policy, **more), run)

    @property
    def settings(self) -> dict[str, str]:
        assert self.last is not None
        return self.last.settings

    def gate(self) -> str:
        last = tail(self.store)
        return str(last.gate) if last else "open"


def operations(table: FakeTable) -> list[str]:
    return [commit.operation for commit in table.history[1:]]


def test_files_are_merged_and_then_old_ones_deleted() -> None:
    world = Upkeep()
    run = world.upkeep()
    assert (run.outcome, run.message) == ("applied", "")
    assert operations(world.table) == ["OPTIMIZE", "VACUUM START", "VACUUM END"]
    assert world.sent == ["OPTIMIZE `delta`.`/lake/orders`", "VACUUM `delta`.`/lake/orders`"]
    assert run.notes == (
        "OPTIMIZE: 100 files (100.0 kB) became 1, in 1 slice; the gate was shut for 0 s at most",
        (
            "VACUUM: DRY RUN named 7 files and directories, and 7 files (7.0 kB) were deleted; "
            "guarded writes of mode `any` waited for 0 s at most"
        ),
    )
    assert [each.gate for each in run.gates] == ["appends-only", "no-schema"]
    assert world.gate() == "open"


def test_every_commit_carries_the_run() -> None:
    world = Upkeep()
    world.upkeep()
    assert len(world.table.commits_of("ann")) == 3


def test_delta_gets_sizes_and_batches_and_logs_its_vacuum() -> None:
    world = Upkeep()
    world.upkeep()
    assert world.settings == {
        "vacuum.logging.enabled": "true",
        "optimize.maxFileSize": "128000000",
        "optimize.minFileSize": "64000000",
        "optimize.batchSize": "512000000",
    }


def test_another_product_gets_no_settings() -> None:
    world = Upkeep(dialect="databricks")
    world.upkeep(OPTIMIZE)
    assert world.settings == {}


def test_vacuum_deletes_while_a_restore_waits_and_other_writes_go_on() -> None:
    world, gates = Upkeep(), list[str]()
    world.before = lambda _table, sql: gates.append(f"{sql.split()[0]} {world.gate()}")
    world.upkeep()
    assert gates == ["OPTIMIZE appends-only", "VACUUM no-schema"]
    assert world.gate() == "open"


def test_vacuum_never_overrides_the_retention() -> None:
    world = Upkeep()
    world.upkeep(VACUUM)
    assert not any("RETAIN" in sql or "retentionDurationCheck" in sql for sql in (*world.sent, *world.asked))
    assert not any("retention" in key for key in world.settings)


def test_an_error_after_a_batch_leaves_the_rest_to_the_next_slice() -> None:
    world = Upkeep()
    world.batches, ends = 4, iter([True, False, False, False, False])

    def end(_event: str) -> None:
        if _event == "midway" and next(ends):
            raise EngineError("the files of a batch are gone", "", "DELTA_CONCURRENT_DELETE_READ")

    world.tick = end
    run = world.upkeep(OPTIMIZE)
    assert run.outcome == "applied"
    assert operations(world.table) == ["OPTIMIZE"] * 5
    assert "in 2 slices" in run.notes[0]
    assert [each.gate for each in run.gates] == ["appends-only", "appends-only"]


def test_a_slice_is_interrupted_before_writers_have_waited_too_long() -> None:
    world = Upkeep()
    world.config = replace(world.config, upkeep=0.2)
    came = threading.Event()

    def interrupt(tag: str, address: str = "") -> bool:
        assert tag
        assert not address
        came.set()
        return False

    def endless(_table: FakeTable, _sql: str) -> None:
        assert world.last is not None
        world.last.interrupt = interrupt  # type: ignore[method-assign]
        assert came.wait(60)
        came.clear()
        raise EngineError("canceled", "", "OPERATION_CANCELED")

    world.before = endless
    run = world.upkeep(OPTIMIZE)
    assert run.outcome == "waiting"
    assert "no part of it ends within 0 s; a longer `window.upkeep` makes longer slices" in run.message
    assert world.gate() == "open"


def test_tiny_files_are_merged_by_the_thousand_so_that_a_slice_ends() -> None:
    """One task reads all files that become one: 2,000,000 of 1 kB would take hours, and no part of it is committed."""
    world, sizes = Upkeep(), list[str]()
    world.facts = UpkeepFacts(files=9000, bytes=9_000_000, small_files=9000, small_bytes=9_000_000, cut=True, commits=9)
    world.table.states[-1] = replace(world.table.live, upkeep=world.facts)
    world.before = lambda _table, _sql: sizes.append(world.settings["optimize.maxFileSize"])
    assert world.upkeep(OPTIMIZE).outcome == "applied"
    assert sizes == ["1000000"]
    assert (world.settings["optimize.minFileSize"], world.settings["optimize.batchSize"]) == ("500000", "16000000")


def test_a_slice_in_which_nothing_ended_is_tried_with_smaller_parts() -> None:
    world, sizes = Upkeep(), list[int]()
    world.facts = UpkeepFacts(files=50, bytes=10**9, small_files=50, small_bytes=10**9, cut=True, commits=9)
    world.table.states[-1] = replace(world.table.live, upkeep=world.facts)
    world.config = replace(world.config, upkeep=0.2)
    came = threading.Event()

    def interrupt(tag: str, address: str = "") -> bool:
        came.set()
        return False

    def slow(_table: FakeTable, _sql: str) -> None:
        assert world.last is not None
        sizes.append(int(world.settings["optimize.maxFileSize"]))
        if sizes[-1] > 20_000_000:
            world.last.interrupt = interrupt  # type: ignore[method-assign]
            assert came.wait(60)
            raise EngineError("canceled", "", "OPERATION_CANCELED")

    world.before = slow
    run = world.upkeep(OPTIMIZE)
    assert (run.outcome, sizes) == ("applied", [128_000_000, 16_000_000])
    assert world.settings["optimize.batchSize"] == "16000000"


def test_an_error_other_than_a_conflict_ends_the_table() -> None:
    world = Upkeep()

    def fail(_table: FakeTable, _sql: str) -> None:
        raise EngineError("no space left", "make room")

    world.before = fail
    run = world.upkeep(OPTIMIZE)
    assert (run.outcome, run.message, run.hint) == ("failed", "no space left", "make room")
    assert world.gate() == "open"


@pytest.mark.parametrize(("policy", "verb"), [(OPTIMIZE, "OPTIMIZE"), (VACUUM, "VACUUM")])
def test_a_statement_that_a_signal_ended_does_not_fail(policy: UpkeepPolicy, verb: str) -> None:
    """Ctrl-C reaches the engine, too, if it runs in the same group of processes."""
    world = Upkeep()

    def interrupt(_table: FakeTable, _sql: str) -> None:
        world.stop.set()
        raise EngineError("Job 7 cancelled because SparkContext was shut down")

    world.before = interrupt
    run = world.upkeep(policy)
    assert run.outcome == "interrupted"
    assert run.message == f"stopped while {verb} ran: Job 7 cancelled because SparkContext was shut down"
    assert run.hint == "run the same command again"


def test_vacuum_is_refused_on_a_table_whose_retention_delta_cannot_read() -> None:
    world = Upkeep()
    world.table.set_property("delta.deletedFileRetentionDuration", "interval 1 fortnight")
    run = world.upkeep(VACUUM)
    assert (run.outcome, world.sent) == ("refused", [])
    assert "is 'interval 1 fortnight', which is not an interval: Delta refuses VACUUM for it" in run.message


def test_the_second_of_two_runs_finds_nothing_left() -> None:
    world = Upkeep()
    plan = world.due()
    world.run(plan)
    done = operations(world.table)
    run = world.run(plan, "ben")
    assert (run.outcome, operations(world.table)) == ("already", done)
    assert run.notes == ("OPTIMIZE is not due any more", "VACUUM is not due any more")


def test_a_table_that_was_replaced_is_left_alone() -> None:
    world = Upkeep()
    plan = world.due()
    world.table.commit("CREATE OR REPLACE TABLE", table_id="another")
    run = world.run(plan)
    assert (run.outcome, world.sent) == ("stale", [])


def test_a_guarded_merge_that_does_not_end_is_not_interrupted() -> None:
    world = Upkeep()
    guard = FakeGuard(world.store, "nightly", GuardMode.REWRITE)
    world.clock.on_sleep = guard.beat
    run = world.upkeep(OPTIMIZE, window=None)
    assert run.outcome == "no window"
    assert "nightly (rewrite)" in run.message
    assert (world.sent, world.gate()) == ([], "open")


def test_appends_go_on_meanwhile() -> None:
    world = Upkeep()
    guard = FakeGuard(world.store, "stream", GuardMode.APPEND)
    world.clock.on_sleep = guard.beat
    assert world.upkeep(OPTIMIZE).outcome == "applied"


def test_writers_without_a_guard_forbid_it_while_they_write() -> None:
    world = Upkeep()
    now = milliseconds(world.clock.utc())
    for minute in range(60, 0, -1):
        world.table.commit("MERGE", "nightly")
        at = replace(world.table.history[-1], timestamp=now - minute * 20_000, metrics={"executionTimeMs": "15000"})
        world.table.history[-1] = at
    run = world.upkeep(OPTIMIZE)
    assert (run.outcome, world.sent) == ("waiting", [])
    assert "writers without a guard may fail now" in run.message


def test_the_same_writers_with_guards_do_not() -> None:
    world = Upkeep()
    test = world.clock.utc()
    for minute in range(60, 0, -1):
        world.table.commit("MERGE", "")
        at = replace(world.table.history[-1], timestamp=milliseconds(test) - minute * 20_000)
        world.table.history[-1] = at
    guard = FakeGuard(world.store, "nightly", GuardMode.APPEND)
    world.clock.on_sleep = guard.beat
    assert world.upkeep(OPTIMIZE).outcome == "applied"


def test_no_more_bytes_in_an_hour_than_the_limit() -> None:
    world = Upkeep()
    world.table.commit("OPTIMIZE", "apply", Stamp("eve", "p").text())
    spent = replace(
        world.table.history[-1],
        timestamp=milliseconds(world.clock.utc()) - 60_000,
        metrics={"numRemovedBytes": "950"},
    )
    world.table.history[-1] = spent
    plan = world.due(OPTIMIZE)
    world.pace = Pace(1000)
    run = world.run(plan)
    assert (run.outcome, world.sent) == ("waiting", [])
    assert "`window.max_bytes_per_hour` is 1.0 kB" in run.message


def test_vacuum_waits_for_a_stream_that_has_not_read_old_commits() -> None:
    world = Upkeep(options=TableOptions(streams=(("fraud", "/checkpoints/fraud"),)))
    world.table.commit("WRITE")
    world.lake.positions["fraud"] = lambda place: StreamPosition("fraud", place, "q", 3, 0, read=0)
    run = world.upkeep(VACUUM)
    assert (run.outcome, world.sent) == ("waiting", [])
    assert "a stream may still need files that VACUUM deletes: fraud: has read version 0" in run.message


def test_vacuum_runs_although_a_stream_reads_that_has_read_them() -> None:
    world = Upkeep(options=TableOptions(streams=(("fraud", "/checkpoints/fraud"),)))
    world.table.commit("WRITE")
    world.lake.positions["fraud"] = lambda place: StreamPosition("fraud", place, "q", 3, 0, read=1)
    assert world.upkeep(VACUUM).outcome == "applied"


def test_vacuum_is_refused_while_the_table_keeps_files_for_less_than_the_policy() -> None:
    world = Upkeep()
    plan = world.due(VACUUM, keeps="interval 30 days")
    world.table.set_property("delta.deletedFileRetentionDuration", "interval 7 days")
    run = world.run(plan)
    assert (run.outcome, world.sent) == ("refused", [])
    assert "the policy's `retention.deleted_files` is interval 30 days" in run.message


def test_vacuum_is_refused_for_the_source_of_a_shallow_clone() -> None:
    world = Upkeep()
    run = world.upkeep(VACUUM, clones=lambda: ShallowClones(("lake.dev.orders",)))
    assert (run.outcome, world.sent) == ("refused", [])
    assert "shallow clones read files of this table: lake.dev.orders" in run.message


def test_vacuum_with_a_short_retention_waits_for_running_writes() -> None:
    world = Upkeep()
    world.table.set_property("delta.deletedFileRetentionDuration", "interval 1 hour")
    FakeGuard(world.store, "nightly", GuardMode.APPEND)
    run = world.upkeep(VACUUM)
    assert (run.outcome, world.sent) == ("waiting", [])
    assert "files are kept for 60 min, and writes are running: nightly" in run.message


def test_vacuum_does_not_run_while_a_table_that_may_be_a_clone_cannot_be_read() -> None:
    world = Upkeep()
    run = world.upkeep(VACUUM, clones=lambda: ShallowClones(unread=("lake.dev.orders: its log is damaged",)))
    assert (run.outcome, world.sent) == ("refused", [])
    assert "that may be shallow clones of this one cannot be read: lake.dev.orders: its log is damaged" in run.message


def test_a_clone_that_is_made_during_the_dry_run_is_found() -> None:
    """The DRY RUN of a large table takes hours. What was found before it is old."""
    world, names = Upkeep(), list[str]()
    world.tick = lambda event: names.append("lake.dev.orders") if event == "dry run" else None
    run = world.upkeep(VACUUM, clones=lambda: ShallowClones(tuple(names)))
    assert (run.outcome, world.sent, world.gate()) == ("refused", [], "open")


# A RESTORE, and what else changes the table as a whole


def test_a_guarded_restore_that_is_running_ends_before_files_are_deleted() -> None:
    world = Upkeep()
    restore = FakeGuard(world.store, "restore", GuardMode.ANY).lives(world.clock)
    seen = list[bool]()
    world.clock.later(20, restore.end)
    world.before = lambda _table, sql: seen.append(restore.ended) if sql.startswith("VACUUM") else None
    assert world.upkeep(VACUUM).outcome == "applied"
    assert seen == [True]


def test_vacuum_waits_for_no_append_and_no_merge() -> None:
    world = Upkeep()
    for mode in (GuardMode.APPEND, GuardMode.REWRITE):
        FakeGuard(world.store, str(mode), mode).lives(world.clock)
    began = world.clock.now
    assert world.upkeep(VACUUM).outcome == "applied"
    assert world.clock.now - began < 1


def test_vacuum_does_not_run_while_a_guarded_restore_does_not_end() -> None:
    world = Upkeep()
    FakeGuard(world.store, "restore", GuardMode.ANY).lives(world.clock)
    run = world.upkeep(VACUUM)
    assert (run.outcome, world.sent, world.gate()) == ("no window", [], "open")


def test_a_table_that_changed_while_a_restore_was_waited_for_is_looked_at_again() -> None:
    world = Upkeep()
    restore = FakeGuard(world.store, "restore", GuardMode.ANY).lives(world.clock)

    def restored() -> None:
        world.table.set_property("delta.deletedFileRetentionDuration", "interval 1 day")
        restore.end()

    world.clock.later(20, restored)
    run = world.upkeep(VACUUM, keeps="interval 7 days")
    assert (run.outcome, world.sent) == ("refused", [])


def test_the_gate_stays_shut_while_a_vacuum_without_an_answer_may_delete() -> None:
    world = Upkeep()

    def lost(_table: FakeTable, _sql: str) -> None:
        assert world.last is not None
        world.last.interrupt = lambda tag, address="": None  # type: ignore[method-assign]
        raise EngineError("the connection broke", unanswered=True)

    class Remote(world.engine):  # type: ignore[name-defined,misc]
        """An engine that goes on without its client."""

        def __init__(self, *args: Any, **given: Any) -> None:
            super().__init__(*args, **given)
            self.bound, self.address = 400.0, "connect"

    world.engine, world.before = Remote, lost
    run = world.upkeep(VACUUM)
    last = tail(world.store)
    assert last is not None
    assert (run.outcome, str(last.shut)) == ("unknown", "no-schema")


def test_the_run_says_what_vacuum_cannot_see_before_it_runs() -> None:
    world = Upkeep()
    world.upkeep(VACUUM)
    told = [event.words for event in world.told]
    assert next(each for each in told if each == VACUUM_RISKS)
    assert told.index(VACUUM_RISKS) < next(at for at, each in enumerate(told) if "VACUUM would delete" in each)
