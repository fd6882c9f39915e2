"""What a run tells of itself: times, commits saved, writers that it may have failed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tablectl.applying.remaining_statements import separate_commits
from tablectl.leases.clock import milliseconds
from tablectl.leases.guards import HERE, GuardMode
from tablectl.leases.lease import Lease
from tablectl.model.errors import EngineError
from tablectl.model.plan import CommitEffect, Phase, Statement
from tablectl.model.run_report import RunOutcome
from tablectl.model.stamp import Stamp
from tests.applying.fake_lake import FakeTable, at
from tests.applying.world import DIGEST, WITH_VECTORS, World
from tests.applying.writers import FakeGuard
from tests.leases.lease_fakes import acquire, claim

MANY = {
    "isolation": "Serializable",
    "clustering": ("day",),
    "deletion_vectors": "purged",
    "properties": {"a": "1", "b": "2", "x": None, "y": None},
}


@pytest.fixture
def world() -> World:
    made = World()
    properties = {**WITH_VECTORS["properties"], "x": "1", "y": "1"}
    made.lake.add(**{**WITH_VECTORS, "clustering": (("id",),), "properties": properties})
    return made


def takes(world: World, seconds: float) -> None:
    """Every statement takes so long."""
    world.before = lambda _table, _sql: setattr(world.clock, "now", world.clock.now + seconds)


def test_times(world: World) -> None:
    takes(world, 3)
    writer = FakeGuard(world.store, mode=GuardMode.APPEND, ttl=600)
    before = world.clock.on_sleep

    def end() -> None:
        before()
        if world.clock.now >= 1020:
            writer.end()

    world.clock.on_sleep = end
    run = world.run(world.plan(**MANY))
    assert run.outcome is RunOutcome.APPLIED
    assert [each.phase for each in run.statements] == ["free", "rewrite", "closed", "closed"]
    # Closed from the moment that the gate was put, so while the writer ended too.
    assert 14_000 <= run.drain_ms < 15_100
    assert run.window_ms == run.drain_ms + 6000
    assert run.rewrite_ms == 3000
    assert run.exposed_ms == 3000  # from the end of the first ALTER to that of the second


def test_when_the_gate_was_what(world: World) -> None:
    takes(world, 3)
    run = world.run(world.plan(**MANY))
    assert [each.gate for each in run.gates] == ["no-schema", "appends-only", "closed"]
    assert [each.since for each in run.gates[1:]] == [each.until for each in run.gates[:-1]]
    first, second, *closed = run.statements
    no_schema, appends, shut = run.gates
    assert no_schema.since <= first.at < first.at + 3000 <= no_schema.until
    assert appends.since <= second.at < appends.until
    assert all(shut.since <= each.at < shut.until for each in closed)
    assert shut.until - shut.since == run.window_ms


def test_a_run_that_fails_no_one_has_no_window(world: World) -> None:
    takes(world, 3)
    run = world.run(world.plan(clustering=("day",)))
    assert (run.window_ms, run.drain_ms, run.rewrite_ms, run.exposed_ms) == (0, 0, 0, 0)


def test_commits_against_a_statement_for_each(world: World) -> None:
    run = world.run(world.plan(**MANY))
    assert (run.metadata_commits, run.separate_commits) == (4, 7)
    assert [each.separate for each in run.statements] == [1, 0, 4, 2]


@pytest.mark.parametrize(
    ("effect", "commits"),
    [
        (CommitEffect(), 0),
        (CommitEffect(rewrites_files=True), 0),
        (CommitEffect(sets=(("a", "1"), ("b", "2"))), 2),
        (CommitEffect(removes=("a",)), 1),
        (CommitEffect(domains=("delta.clustering",), features=("clustering", "domainMetadata")), 1),
    ],
)
def test_what_a_statement_would_be_one_by_one(effect: CommitEffect, commits: int) -> None:
    statement = Statement(
        id="x",
        verb="SET TBLPROPERTIES",
        sql="",
        phase=Phase.CLOSED,
        reason="",
        serves=(),
        effect=effect,
        fails="",
        commits=("SET TBLPROPERTIES",),
    )
    assert separate_commits(statement) == commits


# Others inside the window


def test_who_commits_while_the_gate_is_closed_is_reported(world: World) -> None:
    world.table.commit("WRITE", "early")
    plan = world.plan(**MANY)
    world.before = at(3, lambda table: table.commit("WRITE", "rude"))
    world.tick = lambda event: world.table.commit("WRITE", "late") if event == "verify" else None
    run = world.run(plan)
    assert [(each.writer, each.inside) for each in run.foreign] == [("WRITE by rude", True), ("WRITE by late", False)]
    rude = [each for each in run.possible_failures if each.writer == "WRITE by rude"]
    assert [each.reason for each in rude] == ["wrote while the gate was closed"]


def test_who_commits_after_the_lease_was_lost_has_passed_no_closed_gate(world: World) -> None:
    """The gate was dead by then, and its writers had recorded that."""
    plan = world.plan(isolation="Serializable")
    at_work(world)

    def slept(table: FakeTable) -> None:
        world.clock.now += 100
        assert isinstance(acquire(world.store, claim("ben"), world.clock), Lease)
        table.commit("WRITE", "etl")

    world.before = at(1, slept)
    run = world.run(plan)
    assert (run.outcome, run.possible_failures) == (RunOutcome.FAILED, ())
    assert [(each.writer, each.inside) for each in run.foreign] == [("WRITE by etl", False)]


def test_a_writer_that_was_waited_for_is_not_inside(world: World) -> None:
    writer = FakeGuard(world.store, "etl", ttl=600)

    def finish() -> None:
        if world.clock.now >= 1010:
            world.table.commit("WRITE", "etl")
            writer.end()
            world.clock.on_sleep = lambda: None

    world.clock.on_sleep = finish
    run = world.run(world.plan(isolation="Serializable"))
    assert (run.outcome, run.possible_failures) == (RunOutcome.APPLIED, ())
    assert [each.inside for each in run.foreign] == [False]


def test_an_apply_that_had_lost_its_lease_is_named(world: World) -> None:
    plan = world.plan(isolation="Serializable")
    late = Stamp("earlier", DIGEST).text()

    def land(table: FakeTable) -> None:
        table.commit("SET TBLPROPERTIES", "apply", late, properties=table.live.properties)

    world.before = at(1, land)
    run = world.run(plan)
    assert [(each.run, each.inside, each.late) for each in run.foreign] == [("earlier", True, True)]
    assert not [each for each in run.possible_failures if "TBLPROPERTIES" in each.writer]


def test_an_apply_that_ended_well_before_a_stale_plan_is_not_accused_of_a_lost_lease(world: World) -> None:
    plan = world.plan(isolation="Serializable")
    stamp = Stamp("earlier", "another plan").text()
    world.table.commit("SET TBLPROPERTIES", "ann", stamp, properties={"delta.isolationLevel": "SnapshotIsolation"})
    run = world.run(plan)
    assert run.outcome is RunOutcome.STALE
    assert [(each.run, each.late) for each in run.foreign] == [("earlier", False)]


def test_the_successor_of_a_run_that_noticed_no_loss_is_not_accused_of_one(world: World) -> None:
    """The statement failed while this process was paused: the outcome is that failure, and the lease is over."""
    plan = world.plan(isolation="Serializable")

    def slept(table: FakeTable, _sql: str) -> None:
        world.clock.now += 100
        assert isinstance(acquire(world.store, claim("ben"), world.clock), Lease)
        table.commit("SET TBLPROPERTIES", "ben", Stamp("ben", DIGEST).text(), properties={"a": "1"})
        raise EngineError("no")

    world.before = slept
    run = world.run(plan)
    assert [(each.run, each.late) for each in run.foreign] == [("ben", False)]


# Writers that it may have failed


def at_work(world: World, ago: int = 30) -> None:
    """Commits are made so many seconds before the run."""
    world.table.at = lambda version: milliseconds(world.clock.utc()) - 1000 * ago + version


def test_on_an_idle_table_no_one_may_have_failed(world: World) -> None:
    at_work(world, ago=7 * 24 * 3600)
    for user in ("etl", "stream", "etl"):
        world.table.commit("WRITE", user)
    run = world.run(world.plan(isolation="Serializable"))
    assert (run.outcome, run.possible_failures) == (RunOutcome.APPLIED, ())
    assert [writer.name for writer in run.writers] == ["WRITE by etl", "WRITE by stream"]


def test_where_no_guard_was_seen_every_writer_at_work_may_have_failed(world: World) -> None:
    at_work(world)
    for user in ("etl", "stream", "etl"):
        world.table.commit("WRITE", user)
    run = world.run(world.plan(isolation="Serializable"))
    assert [(each.writer, each.reason) for each in run.possible_failures] == [
        ("WRITE by etl", "no guard was seen"),
        ("WRITE by stream", "no guard was seen"),
    ]
    assert all("MetadataChangedException" in each.fails for each in run.possible_failures)


def test_what_fails_no_one_fails_no_one(world: World) -> None:
    at_work(world)
    world.table.commit("WRITE", "etl")
    assert world.run(world.plan(clustering=("day",))).possible_failures == ()


def test_a_table_whose_writers_use_guards_has_no_possible_failures_by_rumour(world: World) -> None:
    at_work(world)
    world.table.commit("WRITE", "etl")
    FakeGuard(world.store, mode=GuardMode.APPEND, ttl=1)
    (silent,) = world.run(world.plan(isolation="Serializable")).possible_failures
    assert silent.reason == "gave no sign of life for 1 s"  # of the guard, and nothing of the log


def waiting(world: World, writer: str = "etl") -> FakeGuard:
    """A guard of a writer that waits at the gate."""
    guard = FakeGuard(world.store, writer)
    guard.end()
    guard.record = replace(guard.record, beat=2, waits=HERE)
    world.store.create(guard.record.name, guard.record.to_bytes())
    return guard


def test_a_writer_that_came_to_a_closed_gate_and_waits_has_a_guard(world: World) -> None:
    """The drain was over when it came."""
    at_work(world)
    world.table.commit("WRITE", "etl")
    world.before = at(1, lambda _table: waiting(world))
    run = world.run(world.plan(isolation="Serializable"))
    assert (run.outcome, run.possible_failures) == (RunOutcome.APPLIED, ())


def test_the_record_of_a_writer_that_died_as_it_waited_does_not_stay_forever(world: World) -> None:
    guard = waiting(world)
    world.run(world.plan(isolation="Serializable"))
    assert guard.record.name not in world.store.kept


def test_one_that_began_to_wait_meanwhile_keeps_its_record(world: World) -> None:
    came: list[FakeGuard] = []
    world.before = at(1, lambda _table: came.append(waiting(world)))
    world.run(world.plan(isolation="Serializable"))
    assert came[0].record.name in world.store.kept


def test_a_statement_that_failed_has_failed_no_one(world: World) -> None:
    at_work(world)
    world.table.commit("WRITE", "etl")

    def no(_table: FakeTable, _sql: str) -> None:
        raise EngineError("no")

    world.before = no
    assert world.run(world.plan(isolation="Serializable")).possible_failures == ()
