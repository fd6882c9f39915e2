"""The gate of a table ahead of its statements, seen by the writers that it is for."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest

from tablectl.delta.protocol import Client
from tablectl.delta.schema import Field, Schema
from tablectl.leases.guards import HERE, GuardMode, GuardRecord
from tablectl.leases.lease_records import Gate, LeaseRecord, parse_record, tail
from tablectl.model.calendar import TableWindow
from tablectl.model.commit import Commit
from tablectl.model.errors import WindowError
from tablectl.model.run_report import RunOutcome
from tablectl.model.stamp import Stamp, read_stamp
from tablectl.model.table import CatalogFacts
from tablectl.policies.config import WindowConfig
from tablectl.writers.gate_entry import GateEntry, GuardTimeout, StoredGuard
from tests.applying.fake_lake import COLUMNS, FakeEngine, FakeTable, at, contended, fails, parse_sql
from tests.applying.world import DIGEST, WITH_VECTORS, Kill, World, settle
from tests.applying.writers import FakeGuard
from tests.leases.lease_fakes import Fault

PHASES: dict[str, Any] = {
    "deletion_vectors": "purged",
    "clustering": ("day",),
    "isolation": "Serializable",
}
CLUSTERED = {**WITH_VECTORS, "clustering": (("id",),)}


def gate_of(world: World) -> Gate:
    last = tail(world.store)
    assert last is not None
    return last.gate


@pytest.fixture
def world() -> World:
    made = World()
    made.lake.add(**CLUSTERED)
    return made


def guard(world: World, writer: str = "etl", mode: GuardMode = GuardMode.ANY, ttl: float = 60.0) -> FakeGuard:
    return FakeGuard(world.store, writer, mode, ttl)


def alive(world: World, *guards: FakeGuard) -> None:
    """They renew whenever our clock moves, by the second."""
    before = world.clock.on_sleep

    def beat() -> None:
        before()
        for each in guards:
            if each.record.name in world.store.kept:
                each.beat()

    world.clock.on_sleep = beat


# What gate a statement finds


def test_the_gate_tightens_from_phase_to_phase_and_is_open_before_the_verification(world: World) -> None:
    seen: list[tuple[str, Gate]] = []
    world.before = lambda _table, sql: seen.append((parse_sql(sql).verb, gate_of(world)))
    world.tick = lambda event: seen.append((event, gate_of(world))) if event == "verify" else None
    run = world.run(world.plan(**PHASES))
    assert run.outcome is RunOutcome.APPLIED
    assert seen == [
        ("CLUSTER", Gate.NO_SCHEMA),
        ("REORG", Gate.APPENDS_ONLY),
        ("SET", Gate.CLOSED),
        ("verify", Gate.OPEN),
    ]


def test_the_record_that_ends_the_last_closed_statement_opens_the_gate(world: World) -> None:
    assert world.run(world.plan(isolation="Serializable")).outcome is RunOutcome.APPLIED
    records = [parse_record(data) for name, data in sorted(world.store.kept.items()) if name.startswith("lease/")]
    steps = [(each.kind, each.gate, each.running is not None) for each in records]
    assert steps == [
        ("acquire", Gate.OPEN, False),
        ("gate", Gate.CLOSED, False),
        ("statement", Gate.CLOSED, True),
        ("statement", Gate.OPEN, False),
    ]


def test_a_gate_stays_closed_after_a_statement_that_failed_until_its_end_is_known(world: World) -> None:
    seen: list[Gate] = []
    read = world.lake.commits

    def commits(location: str, *, after: int) -> tuple[Commit, ...]:
        if world.sent:
            seen.append(gate_of(world))
        return read(location, after=after)

    world.lake.commits = commits  # type: ignore[method-assign]
    world.before = fails(1)
    world.run(world.plan(isolation="Serializable"))
    assert seen[0] is Gate.CLOSED


def test_a_writer_that_evolves_the_schema_when_the_gate_opens_does_not_make_the_run_stale() -> None:
    world = World()
    world.lake.add(catalog=CatalogFacts(0))
    plan = world.plan(isolation="Serializable")

    def version_in_catalog(table: FakeTable, _sql: str) -> None:
        table.states[-1] = replace(table.states[-1], catalog=CatalogFacts(table.live.version))

    def write(event: str) -> None:
        if event == "gate open" and world.table.live.version == 1:
            live = world.table.live
            properties = {**live.properties, "x": "1"}
            world.table.commit("WRITE", "etl", properties=properties, catalog=CatalogFacts(live.version + 1))

    world.after, world.tick = version_in_catalog, write
    assert world.run(plan).outcome is RunOutcome.APPLIED


@pytest.mark.parametrize("fault", [None, Fault.LOST_ANSWER, Fault.REFUSED])
def test_a_closed_statement_after_the_last_one_shuts_the_gate_again(fault: Fault | None) -> None:
    """Someone undoes, after the gate has opened, what was done before the run."""
    world = World()
    world.lake.add()
    world.table.set_property("debug", "on")
    plan = world.plan(**settle())
    world.table.set_property("debug", None)
    lease = world.lease("ann")
    ended, gates, undone = lease.statement_ended, list[Gate](), list[int]()
    ends: list[bool] = []

    def end(*, opens: bool = False) -> None:
        ends.append(opens)
        if len(ends) == 1 and fault is not None:
            world.store.faults.append(fault)
        ended(opens=opens)

    def undo(table: FakeTable) -> None:
        if len(ends) == 1 and not undone:
            if fault is Fault.REFUSED:
                lease.renew()
            assert gate_of(world) is Gate.OPEN
            table.set_property("debug", "on", "etl")
            undone.append(table.live.version)

    lease.statement_ended = end  # type: ignore[method-assign]
    world.lake.on_read = undo
    world.before = lambda _table, _sql: gates.append(gate_of(world))
    run = world.run(plan, lease=lease)
    assert gates == [Gate.CLOSED, Gate.CLOSED]
    assert [each.version for each in run.foreign if each.inside] == []


def test_a_phase_without_statements_is_skipped(world: World) -> None:
    world.run(world.plan(isolation="Serializable"))
    assert [event for event in world.events if event.startswith("gate")] == ["gate closed", "gate open"]


def test_what_is_already_so_shuts_nothing(world: World) -> None:
    plan = world.plan(isolation="Serializable")
    world.table.set_property("delta.isolationLevel", "Serializable")
    world.run(plan)
    assert [event for event in world.events if event.startswith("gate")] == []


def test_the_reviewed_phase_counts_though_its_need_is_gone(world: World) -> None:
    """A statement that was planned for a closed gate finds one, whatever made it stricter."""
    world.table.commit("WRITE", clients=(Client("delta-rs", (1, 0)),))
    plan = world.plan(clustering=("day",))
    assert [each.phase for each in plan.statements] == ["closed"]
    world.table.commit("WRITE", clients=CLUSTERED.get("clients", (Client("delta-spark", (4, 4, 0)),)))
    world.run(plan)
    assert "gate closed" in world.events


def test_the_gate_is_put_before_the_guards_are_listed(world: World) -> None:
    """Whoever puts a guard before the listing is on it, and whoever puts it after sees the gate."""
    calls: list[str] = []
    create, names = world.store.create, world.store.names

    def creates(name: str, data: bytes) -> bool:
        calls.append(f"gate {b'closed' in data}" if name.startswith("lease/") else name)
        return create(name, data)

    def lists(prefix: str) -> tuple[str, ...]:
        calls.append(prefix)
        return names(prefix)

    lease = world.lease()
    world.store.create, world.store.names = creates, lists  # type: ignore[method-assign]
    world.run(world.plan(isolation="Serializable"), lease=lease)
    assert "guards/" in calls[calls.index("gate True") :]


# Which writers it waits for


@pytest.mark.parametrize("mode", list(GuardMode))
def test_no_statement_runs_while_a_writer_is_in_its_way(world: World, mode: GuardMode) -> None:
    writer = guard(world, mode=mode, ttl=600)
    world.clock.later(100, writer.end)
    ran: list[tuple[str, bool]] = []
    world.before = lambda _table, sql: ran.append((parse_sql(sql).verb, world.clock.now >= 1100))
    run = world.run(world.plan(**PHASES))
    assert run.outcome is RunOutcome.APPLIED
    assert ran == [("CLUSTER", mode is GuardMode.ANY), ("REORG", mode is not GuardMode.APPEND), ("SET", True)]
    assert 100_000 <= run.drain_ms < 102_000


def test_the_lease_is_kept_through_a_long_drain(world: World) -> None:
    writer = guard(world)
    alive(world, writer)
    world.clock.later(250, writer.end)
    run = world.run(world.plan(**settle()))
    assert run.outcome is RunOutcome.APPLIED
    assert world.clock.now >= 1250


def test_a_dead_writer_holds_no_one_up_for_good(world: World) -> None:
    guard(world, ttl=30)
    run = world.run(world.plan(isolation="Serializable"))
    assert run.outcome is RunOutcome.APPLIED
    assert 37_500 <= run.drain_ms < 40_000


@pytest.mark.parametrize("mode", list(GuardMode))
def test_a_writer_that_was_taken_for_dead_is_named_since_it_may_be_alive(world: World, mode: GuardMode) -> None:
    """It may hold the interpreter's lock, or its machine may be paused: then it commits after the statement."""
    paused = guard(world, "long sort", mode, ttl=60)
    world.after = lambda _table, _sql: paused.beat()
    plan = world.plan(isolation="Serializable")
    run = world.run(plan)
    assert run.outcome is RunOutcome.APPLIED
    assert [(each.writer, each.reason, each.fails) for each in run.possible_failures] == [
        (f"long sort ({mode})", "gave no sign of life for 75 s", plan.statements[0].fails)
    ]
    (note,) = run.notes
    assert note.startswith(f"no sign of life, and so taken for dead: long sort ({mode}); ")


def test_many_writers_that_were_taken_for_dead_are_one_note(world: World) -> None:
    for number in range(300):
        guard(world, f"pod {number}", ttl=30)
    run = world.run(world.plan(isolation="Serializable"))
    assert len(run.possible_failures) == 300
    (note,) = run.notes
    assert "and 295 more" in note


def test_a_writer_that_ends_in_time_is_not_named(world: World) -> None:
    writer = guard(world, ttl=60)
    world.clock.later(70, writer.end)
    run = world.run(world.plan(isolation="Serializable"))
    assert (run.possible_failures, run.notes) == ((), ())


def test_with_proceed_the_dead_are_in_the_log_before_the_statement_too(world: World) -> None:
    world.config, world.proceed = WindowConfig(drain=50), "the load is stuck"
    dead = guard(world, "paused", GuardMode.APPEND, ttl=30)
    alive(world, guard(world, "nightly load", GuardMode.APPEND))
    known: list[LeaseRecord | None] = []
    world.before = lambda _table, _sql: known.append(tail(world.store))
    run = world.run(world.plan(isolation="Serializable"))
    assert [each.dead_guards for each in known if each] == [(dead.record.id,)]
    assert {each.writer: each.reason for each in run.possible_failures} == {
        "nightly load (append)": "did not end in time",
        "paused (append)": "gave no sign of life for 38 s",
    }


def test_a_write_in_a_callback_of_the_apply_fails_at_once_at_its_own_gate(world: World) -> None:
    """It would never return: the apply keeps its gate shut until the callback has returned."""
    failed: list[GuardTimeout] = []

    def write(event: str) -> None:
        if event == "execute":
            stored = StoredGuard(world.store, GuardRecord("0123abcd", 0, "audit", GuardMode.APPEND))
            with pytest.raises(GuardTimeout) as raised:
                GateEntry(stored, "sales.orders", None, world.clock, lambda call: call()).enter()
            failed.append(raised.value)

    world.tick = write
    run = world.run(world.plan(isolation="Serializable"))
    assert run.outcome is RunOutcome.APPLIED
    (error,) = failed
    assert "a part of the apply that holds the gate (closed), and would wait for itself" in error.message


def test_a_write_in_another_thread_of_the_same_process_waits_for_the_apply(world: World) -> None:
    waited: list[GuardTimeout] = []

    def write() -> None:
        stored = StoredGuard(world.store, GuardRecord("0123abcd", 0, "stream", GuardMode.APPEND))
        with pytest.raises(GuardTimeout) as raised:
            GateEntry(stored, "sales.orders", 0.0, world.clock, lambda call: call()).enter()
        waited.append(raised.value)

    def start(event: str) -> None:
        if event == "execute":
            thread = threading.Thread(target=write)
            thread.start()
            thread.join(60)

    world.tick = start
    world.run(world.plan(isolation="Serializable"))
    (error,) = waited
    assert "waited 0 s at the gate (closed)" in error.message


def test_a_writer_that_comes_later_waits_by_itself(world: World) -> None:
    first = guard(world, mode=GuardMode.APPEND)
    world.clock.later(5, first.end)
    world.clock.later(3, lambda: alive(world, guard(world, "late")))
    run = world.run(world.plan(isolation="Serializable"))
    assert run.outcome is RunOutcome.APPLIED
    assert run.drain_ms < 7000


def test_who_is_waited_for_is_reported_again_and_again(world: World) -> None:
    writer = guard(world, "nightly load")
    alive(world, writer)
    world.clock.later(20, writer.end)
    world.run(world.plan(isolation="Serializable"))
    waits = [event for event in world.told if event.step == "draining"]
    assert {event.words for event in waits} == {"appends-only gate, waiting for nightly load (any)"}
    seconds = [event.waited for event in waits]
    assert seconds == sorted(seconds, key=lambda each: each or 0)
    assert len(seconds) >= 20


# Decided after the wait


def test_what_a_writer_did_meanwhile_is_not_done_again(world: World) -> None:
    writer = guard(world)

    def finish() -> None:
        world.table.set_property("delta.isolationLevel", "Serializable")
        writer.end()

    world.clock.later(5, finish)
    run = world.run(world.plan(isolation="Serializable"))
    assert (run.outcome, world.sent, run.already) == (RunOutcome.ALREADY, [], ())


def test_what_a_writer_changed_meanwhile_makes_the_table_stale(world: World) -> None:
    writer = guard(world)
    fields = tuple(replace(each, type="string") if each.name == "day" else each for each in COLUMNS.fields)

    def finish() -> None:
        world.table.commit("ALTER", "etl", schema=Schema((*fields, Field("new", "string"))))
        writer.end()

    world.clock.later(5, finish)
    run = world.run(world.plan(clustering=("day",)))
    assert (run.outcome, world.sent) == (RunOutcome.STALE, [])
    assert gate_of(world) is Gate.OPEN


def test_a_writer_of_an_unknown_kind_seen_meanwhile_makes_a_phase_stricter(world: World) -> None:
    writer = guard(world)

    def finish() -> None:
        world.table.commit("WRITE", "etl", clients=(Client("unknown"),))
        writer.end()

    world.clock.later(5, finish)
    run = world.run(world.plan(clustering=("day",)))
    assert (run.outcome, world.sent) == (RunOutcome.REFUSED, [])


# Not drained


def test_not_drained_in_time_opens_the_gate_and_leaves_the_table(world: World) -> None:
    alive(world, guard(world, "nightly load"), guard(world, "ad hoc", GuardMode.REWRITE))
    version = world.table.live.version
    run = world.run(world.plan(**settle()))
    assert (run.outcome, world.sent, run.commits) == (RunOutcome.NO_WINDOW, [], ())
    assert world.table.live.version == version
    assert gate_of(world) is Gate.OPEN
    assert run.message.startswith("waited 300 s for writers, since 2026-08-22 ")
    assert run.message.endswith("UTC: nightly load (any), ad hoc (rewrite)")
    assert "--proceed REASON" in run.hint


def test_the_limit_is_the_users(world: World) -> None:
    world.config = WindowConfig(drain=20)
    alive(world, guard(world))
    run = world.run(world.plan(**settle()))
    assert (run.outcome, round(run.drain_ms, -3)) == (RunOutcome.NO_WINDOW, 20_000)


def test_a_table_has_a_limit_of_its_own(world: World) -> None:
    world.config = WindowConfig(drain=300)
    alive(world, guard(world))
    run = world.run(replace(world.plan(**settle()), window=TableWindow(drain=20)))
    assert (run.outcome, round(run.drain_ms, -3)) == (RunOutcome.NO_WINDOW, 20_000)


def test_what_ran_before_stays(world: World) -> None:
    alive(world, guard(world, mode=GuardMode.APPEND))
    run = world.run(world.plan(**PHASES))
    assert (run.outcome, len(run.commits)) == (RunOutcome.NO_WINDOW, 2)
    assert gate_of(world) is Gate.OPEN


def test_guards_that_cannot_be_read_are_not_drained(world: World) -> None:
    plan, lease = world.plan(isolation="Serializable"), world.lease()
    names = world.store.names

    def unreadable(prefix: str) -> tuple[str, ...]:
        if prefix == "guards/":
            raise WindowError("permission denied")
        return names(prefix)

    world.store.names = unreadable  # type: ignore[method-assign]
    run = world.run(plan, lease=lease)
    assert (run.outcome, world.sent) == (RunOutcome.NO_WINDOW, [])
    assert run.message.endswith("guards that cannot be read: permission denied")
    assert gate_of(world) is Gate.OPEN


def test_a_store_that_goes_away_while_writers_are_waited_for_loses_the_lease(world: World) -> None:
    alive(world, guard(world))
    plan, lease = world.plan(isolation="Serializable"), world.lease()
    world.clock.on_sleep = lambda: setattr(world.store, "down", True)
    run = world.run(plan, lease=lease)
    assert (run.outcome, world.sent) == (RunOutcome.FAILED, [])
    assert "was lost" in run.message
    assert run.drain_ms < 62_000


# Going on over them


def test_proceed_names_the_writers_that_may_fail_and_goes_on(world: World) -> None:
    world.config, world.proceed = WindowConfig(drain=20), "the load hangs since Monday"
    alive(world, guard(world, "nightly load"), guard(world, "etl", GuardMode.APPEND))
    plan = world.plan(**settle())
    run = world.run(plan)
    assert (run.outcome, len(run.commits)) == (RunOutcome.APPLIED, 1)
    assert {each.writer for each in run.possible_failures} == {"etl (append)", "nightly load (any)"}
    assert {each.reason for each in run.possible_failures} == {"did not end in time"}
    assert {each.fails for each in run.possible_failures} == {plan.statements[0].fails}
    (told,) = [event.words for event in world.told if event.step == "proceed"]
    assert "the load hangs since Monday" in told
    assert {read_stamp(commit.user_metadata) for commit in world.table.stamped} == {
        Stamp("ann", DIGEST, "the load hangs since Monday")
    }
    assert "MetadataChangedException" in told


def test_who_was_given_up_is_not_waited_for_at_the_next_gate(world: World) -> None:
    world.config, world.proceed = WindowConfig(drain=20), "hangs"
    alive(world, guard(world, "hung"))
    run = world.run(world.plan(**PHASES))
    assert run.outcome is RunOutcome.APPLIED
    assert 20_000 <= run.drain_ms < 22_000
    assert [each.writer for each in run.possible_failures] == ["hung (any)"]
    assert (
        run.possible_failures[0].fails
        == "concurrent writes that change the schema fail once (MetadataChangedException)"
    )


def test_guards_that_cannot_be_read_may_be_anybodys(world: World) -> None:
    world.config, world.proceed = WindowConfig(drain=5), "the store is broken"
    plan, lease = world.plan(isolation="Serializable"), world.lease()
    names = world.store.names

    def unreadable(prefix: str) -> tuple[str, ...]:
        if prefix == "guards/":
            raise WindowError("permission denied")
        return names(prefix)

    world.store.names = unreadable  # type: ignore[method-assign]
    run = world.run(plan, lease=lease)
    assert run.outcome is RunOutcome.APPLIED
    assert [each.writer for each in run.possible_failures] == ["unknown"]


# Every exit


def _bug(_table: FakeTable) -> None:
    raise ZeroDivisionError("a bug")


@pytest.mark.parametrize(
    ("hook", "outcome"),
    [
        (fails(1, "SOME_CLASS"), RunOutcome.FAILED),
        (contended(9), RunOutcome.FAILED),
        (at(1, _bug), RunOutcome.FAILED),
        (at(1, lambda table: table.commit("REPLACE", table_id="another")), RunOutcome.STALE),
    ],
)
def test_the_gate_is_open_after_every_exit(world: World, hook: Any, outcome: RunOutcome) -> None:
    world.before = hook
    run = world.run(world.plan(**settle()))
    assert run.outcome is outcome
    assert gate_of(world) is Gate.OPEN


@pytest.mark.parametrize("step", ["gate closed", "draining", "drained", "before closed-set", "after closed-set"])
def test_a_stop_opens_the_gate(world: World, step: str) -> None:
    writer = guard(world)
    world.clock.later(9, writer.end)
    world.tick = lambda event: world.stop.set() if event == step else None
    run = world.run(world.plan(isolation="Serializable"))
    assert run.outcome is (RunOutcome.APPLIED if "closed-set" in step else RunOutcome.INTERRUPTED)
    assert gate_of(world) is Gate.OPEN


def test_a_gate_that_cannot_be_opened_fails_no_verified_table(world: World) -> None:
    def down(event: str) -> None:
        world.store.down = event == "after closed-set" or world.store.down

    world.tick = down
    run = world.run(world.plan(isolation="Serializable"))
    assert run.outcome is RunOutcome.APPLIED
    world.store.down = False
    assert gate_of(world) is Gate.CLOSED


def test_a_gate_that_could_not_be_put_lets_no_statement_run(world: World) -> None:
    plan, lease = world.plan(isolation="Serializable"), world.lease()
    world.store.down = True
    run = world.run(plan, lease=lease)
    assert (run.outcome, run.message, world.sent) == (RunOutcome.FAILED, "the store is down", [])


def test_the_time_that_the_gate_was_closed_is_reported(world: World) -> None:
    world.before = at(1, lambda _table: setattr(world.clock, "now", world.clock.now + 7))
    run = world.run(world.plan(isolation="Serializable"))
    assert run.window_ms == 7000
    world.table.set_property("delta.isolationLevel", None)
    world.lake.on_read = lambda table: None
    assert world.run(world.plan(clustering=("day",)), "ben").window_ms == 0


# Kills


def test_a_gate_whose_keeper_was_killed_is_open_to_the_next(world: World) -> None:
    def kill(event: str) -> None:
        if event == "drained":
            raise Kill

    plan = world.plan(isolation="Serializable")
    world.tick = kill
    with pytest.raises(Kill):
        world.run(plan)
    assert gate_of(world) is Gate.CLOSED
    world.tick = lambda _event: None
    run = world.run(plan, "ben")
    assert (run.outcome, run.epoch, gate_of(world)) == (RunOutcome.APPLIED, 2, Gate.OPEN)


def test_killed_while_writers_are_waited_for(world: World) -> None:
    plan = world.plan(isolation="Serializable")
    writer = guard(world)
    alive(world, writer)

    def kill() -> None:
        raise Kill

    world.clock.later(50, kill)
    with pytest.raises(Kill):
        world.run(plan)
    writer.end()
    world.clock.on_sleep = lambda: None
    assert world.run(plan, "ben").outcome is RunOutcome.APPLIED


# Shut briefly, and open again whatever the store does


def test_appends_pass_while_a_merge_is_waited_for(world: World) -> None:
    """A closed gate would make each new append wait for the longest MERGE in flight."""
    merge = guard(world, "merge", GuardMode.REWRITE, ttl=600)
    world.clock.later(100, merge.end)
    run = world.run(world.plan(isolation="Serializable"))
    assert run.outcome is RunOutcome.APPLIED
    spans = {span.gate: (span.until - span.since) / 1000 for span in run.gates}
    assert spans.get("appends-only", 0) >= 100
    assert spans["closed"] < 1
    assert run.window_ms is not None
    assert run.window_ms < 1000


def test_without_guards_the_gate_closes_at_once(world: World) -> None:
    run = world.run(world.plan(isolation="Serializable"))
    assert [span.gate for span in run.gates] == ["closed"]


def test_the_gate_opens_though_a_put_fails(world: World) -> None:
    lease = world.lease()
    # One for the record that the statement is over, and one for the first try to open the gate.
    world.tick = lambda event: world.store.faults.extend([Fault.REFUSED] * 2) if event == "landed" else None
    run = world.run(world.plan(isolation="Serializable"), lease=lease)
    assert run.outcome is RunOutcome.APPLIED
    assert lease.record.gate is Gate.OPEN
    assert world.told[-1].step != "note"


def test_an_engine_that_dies_while_writers_are_waited_for_opens_the_gate(world: World) -> None:
    class Dies(FakeEngine):
        def alive(self) -> bool:
            return world.clock.now < 1010

    world.engine = Dies
    alive(world, guard(world))
    run = world.run(world.plan(isolation="Serializable"))
    assert (run.outcome, run.message, world.sent) == (RunOutcome.FAILED, "the engine does not answer", [])
    assert run.drain_ms < 15_000
    assert gate_of(world) is Gate.OPEN


def test_a_gate_that_is_not_open_is_not_told_as_open(world: World) -> None:
    lease = world.lease()
    # One for the record that the statement is over, and each try to open the gate.
    world.tick = lambda event: world.store.faults.extend([Fault.REFUSED] * 6) if event == "landed" else None
    world.run(world.plan(isolation="Serializable"), lease=lease)
    steps = [event.step for event in world.told]
    assert "gate open" not in steps
    (note,) = [event.words for event in world.told if event.step == "note"]
    assert note.startswith("the gate is not open yet: refused")
    lease.renew()
    assert lease.record.gate is Gate.OPEN


def test_a_gate_whose_closing_had_no_answer_is_opened(world: World) -> None:
    """The put arrives late: the run ended long before, and the renewals would have kept it closed."""
    lease = world.lease()
    world.store.faults.append(Fault.LATE)
    world.run(world.plan(isolation="Serializable"), lease=lease)
    world.store.deliver()
    lease.renew()
    last = tail(world.store)
    assert last is not None
    assert last.gate is Gate.OPEN


# Decisions about writers are records before anything is done over them


def test_a_guard_that_is_taken_for_dead_is_in_the_log_before_the_statement(world: World) -> None:
    dead = guard(world, ttl=30)
    known: list[tuple[str, ...]] = []

    def before(_table: object, _sql: str) -> None:
        last = tail(world.store)
        assert last is not None
        known.append(last.dead_guards)

    world.before = before
    world.run(world.plan(isolation="Serializable"))
    assert known == [(dead.record.id,)]


def test_to_go_on_over_writers_is_in_the_log_before_the_statement(world: World) -> None:
    alive(world, guard(world, "nightly load"))
    world.proceed = "the load is stuck"
    notes: list[str] = []
    world.before = lambda _table, _sql: notes.extend(
        record.reason
        for name in sorted(world.store.kept)
        if name.startswith("lease/") and (record := parse_record(world.store.kept[name])).kind == "note"
    )
    world.run(world.plan(isolation="Serializable"))
    assert len(notes) == 1
    assert notes[0].startswith("proceed: the load is stuck (waited 300 s for writers")


def test_writers_that_wait_for_each_others_gates_do_not_stall_the_apply(world: World) -> None:
    """This one holds its guard here and waits at the gate of another table, whose writer waits at ours."""
    nested = guard(world, "nested")
    record = replace(nested.record, beat=2, waits="/lake/customers")
    world.store.create(record.name, record.to_bytes())
    opened: list[float] = []

    def tick(event: str) -> None:
        if event == "gate open" and not opened:
            opened.append(world.clock.now)
            world.store.delete(record.name)
            nested.end()

    world.tick = tick
    run = world.run(world.plan(isolation="Serializable"))
    assert run.outcome is RunOutcome.APPLIED
    assert 1002 <= opened[0] < 1005
    assert run.drain_ms < 10_000


def test_a_writer_that_may_not_delete_its_guard_and_waits_here_is_not_waited_for(world: World) -> None:
    waiting = guard(world)
    record = replace(waiting.record, beat=2, waits=HERE)
    world.store.create(record.name, record.to_bytes())
    run = world.run(world.plan(isolation="Serializable"))
    assert run.outcome is RunOutcome.APPLIED
    assert run.drain_ms < 1000
