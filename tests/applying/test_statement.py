"""What became of a statement, and what is known of it while it runs, on a fake lake."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from tablectl.applying.lease_wait import may_renew
from tablectl.applying.run_context import TAG
from tablectl.applying.statement import ends_with_commit
from tablectl.delta.names import parse_table
from tablectl.delta.schema import parse_schema
from tablectl.leases.lease import Lease
from tablectl.leases.lease_records import Gate, LeaseRecord, RunningStatement, record_at, tail
from tablectl.model.errors import EngineError, ExitCode
from tablectl.model.run_report import RunOutcome
from tablectl.model.stamp import Stamp
from tablectl.model.table_options import TableOptions
from tests.applying.fake_lake import FakeEngine, FakeLake, FakeTable, at
from tests.applying.world import Kill, World, settle
from tests.leases.lease_fakes import Fault, acquire, claim, try_acquire

NO_ANSWER = EngineError("the connection was reset", "see whether its server runs", unanswered=True)
DAY: dict[str, Any] = {"partitioning": ("day",)}


@pytest.fixture
def world() -> World:
    world = World(options=TableOptions(rewrite="allowed", max_bytes=5000))
    world.lake.add()
    return world


@pytest.fixture
def named() -> World:
    """A catalog table in /blue, and another one in /green under another name."""
    world = World(options=TableOptions(rewrite="allowed", max_bytes=5000))
    world.lake.add("main.sales.orders", "/blue")
    return world


def swap(world: World) -> None:
    """Blue and green change their names: ``orders`` leads to /green from now on."""
    blue = world.lake.tables["/blue"]
    wide = parse_schema(blue.live.schema.text.replace('"tags"', '"extra"'))
    world.lake.add("main.sales.orders_next", "/green", schema=wide)
    green = world.lake.tables["/green"]
    blue.name, green.name = parse_table("main.sales.orders_prev"), parse_table("main.sales.orders")


def engines(world: World, **facts: Any) -> list[FakeEngine]:
    """The engines of the runs to come, which say this of operations."""
    made: list[FakeEngine] = []
    build: Any = partial(FakeEngine, **facts)

    def make(*args: Any, **kwargs: Any) -> FakeEngine:
        made.append(build(*args, **kwargs))
        return made[-1]

    world.engine = make  # type: ignore[assignment]
    return made


def records(world: World) -> Iterator[LeaseRecord]:
    """What is left of the log, oldest first."""
    last = tail(world.store)
    for seq in range(1, (last.seq if last else 0) + 1):
        record = record_at(world.store, seq)
        if record is not None:
            yield record


# Where it goes


@pytest.mark.parametrize("policy", [{"isolation": "Serializable"}, DAY], ids=["a SET", "an overwrite"])
def test_a_name_that_was_swapped_while_writers_were_waited_for_leads_nowhere(
    named: World, policy: dict[str, Any]
) -> None:
    plan = named.plan(**policy)
    lake_run(named, plan, tick=lambda event: swap(named) if event == "gate closed" else None)
    green = named.lake.tables["/green"]
    assert (named.sent, len(green.history)) == ([], 1)


def lake_run(world: World, plan: Any, tick: Callable[[str], None]) -> Any:
    """A run over the table in /blue, whose name may be another's by the end."""
    swapped = False

    def once(event: str) -> None:
        nonlocal swapped
        before = len(world.lake.tables)
        if not swapped:
            tick(event)
        swapped = swapped or len(world.lake.tables) > before

    world.tick = once
    world._notify = lambda event: world._told(event.step)  # type: ignore[method-assign]
    return world.run(plan)


def test_it_is_stale_and_says_where_the_name_leads_now(named: World) -> None:
    plan = named.plan(**DAY)
    run = lake_run(named, plan, tick=lambda event: swap(named) if event == "gate closed" else None)
    assert (run.outcome, run.message) == (
        RunOutcome.STALE,
        "the name now leads to /green; the plan was made for /blue",
    )


def test_a_statement_that_went_to_another_table_names_both_loudly(named: World) -> None:
    """The name moved between our look and the engine's."""
    plan = named.plan(isolation="Serializable")
    run = lake_run(named, plan, tick=lambda event: swap(named) if event == "before closed-set" else None)
    assert run.outcome is RunOutcome.UNVERIFIED
    assert run.message == (
        "SET TBLPROPERTIES went to ANOTHER TABLE: it is version 1 of /green, to which the name main.sales.orders "
        "led at that moment, and not in /blue, for which the plan was made"
    )
    assert run.hint.startswith("undo it there by hand")


def test_a_name_that_was_given_away_and_back_is_said_to_have_led_somewhere_else(named: World) -> None:
    """Neither the log of the planned table nor the name tells where the statement went, and no one came in between."""
    plan = named.plan(isolation="Serializable")
    blue = named.lake.tables["/blue"]
    names: list[Any] = []

    def back(event: str) -> None:
        if event == "before closed-set":
            swap(named)
        if event == "landed":
            green = named.lake.tables["/green"]
            names.extend([blue.name, green.name])
            blue.name, green.name = green.name, blue.name

    named._notify = lambda event: named._told(event.step)  # type: ignore[method-assign]
    named.tick = back
    run = named.run(plan)
    assert (run.outcome, run.code, run.foreign, len(blue.history)) == (RunOutcome.UNVERIFIED, 5, (), 1)
    assert run.message == (
        "SET TBLPROPERTIES succeeded somewhere else than in /blue: the engine reports success, and no commit of it is "
        "in the table's log, nor in that of the table to which main.sales.orders leads now"
    )
    assert run.hint.startswith("look for run ann in the history of tables that had this name or location")
    assert len(named.lake.tables["/green"].stamped) == 1


def test_no_statement_follows_one_that_succeeded_somewhere_else(named: World) -> None:
    named.lake.tables["/blue"].set_property("debug", "on")
    plan = named.plan(**settle())
    assert len(plan.statements) == 2
    named.after = at(1, lambda table: (table.states.pop(), table.history.pop()))
    assert (named.run(plan).outcome, len(named.sent)) == (RunOutcome.UNVERIFIED, 1)


def test_a_table_that_was_dropped_and_made_again_as_the_statement_ran_is_named(world: World) -> None:
    """Its log starts at 0 again, so the commit is not above the version that the statement was decided from."""
    for _ in range(7):
        world.table.commit("WRITE")
    plan = world.plan(isolation="Serializable")

    def made_again(table: FakeTable) -> None:
        table.states[:] = [replace(table.live, version=0, table_id="another")]
        table.history[:] = [replace(table.history[0], user="eve")]
        table.rows[:] = [1]

    world.before = at(1, made_again)
    run = world.run(plan)
    assert (run.outcome, run.code) == (RunOutcome.UNVERIFIED, 5)
    assert run.message == (
        "SET TBLPROPERTIES went to ANOTHER TABLE: it is version 1 of /lake/orders, which was made again since the plan"
    )


def test_commits_in_between_are_blamed_only_if_there_are_any(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine reports success, and its commit carries no stamp and does nothing."""
    plan = world.plan(isolation="Serializable")
    ours = lambda _engine, table, _sql: table.commit("SET TBLPROPERTIES", "apply", properties={})  # noqa: E731
    monkeypatch.setattr(FakeEngine, "_run", ours)
    run = world.run(plan)
    assert (run.outcome, len(run.foreign)) == (RunOutcome.UNVERIFIED, 1)
    assert "see whose commits came in between below" in run.hint


def test_an_overwrite_is_written_to_the_location_and_never_to_a_name(named: World) -> None:
    plan = named.plan(**DAY)
    run = lake_run(named, plan, tick=lambda event: swap(named) if event == "before closed-overwrite" else None)
    blue, green = named.lake.tables["/blue"], named.lake.tables["/green"]
    assert (blue.live.partition_columns, len(green.history)) == (("day",), 1)
    assert run.outcome is RunOutcome.UNVERIFIED
    assert run.message == "/blue is as declared, and the name main.sales.orders was moved to /green since"
    assert all("`/blue`" in sql for sql in named.asked)


def test_a_table_that_was_replaced_while_queries_ran_is_not_written(world: World) -> None:
    plan = world.plan(**DAY)

    def free(_location: str) -> int | None:
        _replaced(world.table)
        return None

    world.lake.free = free  # type: ignore[method-assign,assignment]
    run = world.run(plan)
    assert (run.outcome, world.sent) == (RunOutcome.STALE, [])
    assert "a new table id" in run.message


def _replaced(table: FakeTable) -> None:
    table.states[-1] = replace(table.states[-1], table_id="another")


# Over whose change


def test_a_foreign_change_of_the_same_key_at_the_last_moment_is_reported(world: World) -> None:
    plan = world.plan(properties={"owner.team": "web"})
    world.before = at(1, lambda table: table.set_property("owner.team", "green"))
    run = world.run(plan)
    assert (run.outcome, world.table.live.properties["owner.team"]) == (RunOutcome.UNVERIFIED, "web")
    assert run.message.startswith("version 2 overwrote a change of another writer: properties.owner.team")
    assert run.message.endswith("by version 1 (SET TBLPROPERTIES)")


def test_so_is_a_change_of_another_apply_whose_commits_have_a_stamp_of_their_own(world: World) -> None:
    plan = world.plan(properties={"owner.team": "web"})
    theirs: dict[str, Any] = {"stamp": Stamp("r9", "d9").text(), "properties": {"owner.team": "green"}}
    world.before = at(1, lambda table: table.commit("SET TBLPROPERTIES", "apply", **theirs))
    run = world.run(plan)
    assert run.outcome is RunOutcome.UNVERIFIED
    assert run.message.startswith("version 2 overwrote a change of another writer: properties.owner.team")


def test_a_foreign_change_of_another_key_changes_nothing(world: World) -> None:
    plan = world.plan(properties={"owner.team": "web"})
    world.before = at(1, lambda table: table.set_property("other", "green"))
    run = world.run(plan)
    assert run.outcome is RunOutcome.APPLIED
    assert [each.version for each in run.foreign] == [1]


# A pause before it is sent


def test_a_run_that_was_paused_past_its_lease_before_it_sent_a_statement_does_not_send_it(world: World) -> None:
    """Its successor found nothing running, and sent the statement itself."""
    plan = world.plan(isolation="Serializable")
    made = engines(world)
    lease = world.lease("ann")

    def paused() -> None:
        made[0].on_send = lambda: None
        world.clock.now += 100
        successor = acquire(world.store, claim("ben"), world.clock)
        assert isinstance(successor, Lease)
        world.table.set_property("delta.isolationLevel", "Serializable")

    world.tick = lambda event: setattr(made[0], "on_send", paused) if event == "before closed-set" else None
    run = world.run(plan, lease=lease)
    assert (run.outcome, world.sent, world.table.live.version) == (RunOutcome.FAILED, [], 1)


def test_one_that_was_paused_for_less_announces_the_statement_again(world: World) -> None:
    plan = world.plan(isolation="Serializable")
    made = engines(world, bound=50.0, address="here")

    def paused() -> None:
        world.clock.now += 20

    world.tick = lambda event: setattr(made[0], "on_send", paused) if event == "before closed-set" else None
    run = world.run(plan)
    assert run.outcome is RunOutcome.APPLIED
    named = [each.running.until for each in records(world) if each.running]
    assert named[0] == named[1]


def test_a_statement_that_is_not_sent_is_not_in_the_lease_record(world: World) -> None:
    """The store does not answer at the last moment."""
    plan = world.plan(isolation="Serializable")
    made = engines(world)

    def paused() -> None:
        world.clock.now += 20
        world.store.faults.append(Fault.REFUSED)

    world.tick = lambda event: setattr(made[0], "on_send", paused) if event == "before closed-set" else None
    run = world.run(plan)
    assert (run.outcome, world.sent) == (RunOutcome.FAILED, [])
    assert tail(world.store).running is None  # type: ignore[union-attr]


# Answers that do not come


def lost_answer(_table: FakeTable, _sql: str) -> None:
    raise NO_ANSWER


def test_a_statement_that_landed_without_an_answer_is_done(world: World) -> None:
    made = engines(world)
    world.after = lost_answer
    run = world.run(world.plan(isolation="Serializable"))
    assert (run.outcome, len(world.sent)) == (RunOutcome.APPLIED, 1)
    assert made[0].interrupted == [(made[0].tags[0], "")]


def test_one_that_was_interrupted_in_time_failed_and_is_not_sent_again(world: World) -> None:
    engines(world)
    world.before = lost_answer
    run = world.run(world.plan(isolation="Serializable"))
    assert (run.outcome, run.message, len(world.sent)) == (RunOutcome.FAILED, "the connection was reset", 1)
    assert world.clock.now == 1000, "the engine said at once that nothing of it runs"


@pytest.mark.parametrize("says", [True, None], ids=["it runs", "it does not say"])
def test_one_of_which_no_one_knows_is_unknown_and_the_gate_stays_shut_for_the_ttl(
    world: World, says: bool | None
) -> None:
    engines(world, running={"*": says})
    world.before = lost_answer
    shut: list[Gate] = []
    world.clock.on_sleep = lambda: shut.append(tail(world.store).gate)  # type: ignore[union-attr]
    lease = world.lease()
    run = world.run(world.plan(isolation="Serializable"), lease=lease)
    assert (run.outcome, run.code) == (RunOutcome.UNKNOWN, 5)
    assert "it may still run in the engine" in run.message
    assert set(shut) == {Gate.CLOSED}
    assert 1055 <= world.clock.now <= 1065


def test_what_lands_while_its_end_is_waited_for_is_done(world: World) -> None:
    engines(world, running={"*": None})
    world.before = lost_answer
    plan = world.plan(isolation="Serializable")
    stamp = '{"tablectl":{"plan":"d1","run":"ann"}}'
    set_by_us = {"delta.isolationLevel": "Serializable"}
    world.clock.later(5, lambda: world.table.commit("SET TBLPROPERTIES", "apply", stamp, properties=set_by_us))
    run = world.run(plan)
    assert (run.outcome, [each.version for each in run.commits]) == (RunOutcome.APPLIED, [1])
    assert world.clock.now < 1010


def test_a_statement_that_may_still_run_stays_in_the_lease_record(world: World) -> None:
    engines(world, running={"*": None}, bound=450, address="connect host:1 s u")
    world.before = lost_answer
    lease = world.lease()
    world.run(world.plan(isolation="Serializable"), lease=lease)
    lease.release()
    left = tail(world.store)
    assert left is not None
    assert left.running is not None
    assert (left.kind, left.running.engine, left.running.tag[: len(TAG)]) == ("release", "connect host:1 s u", TAG)


def test_the_one_commit_of_a_statement_is_its_end_though_the_engine_does_not_tell(world: World) -> None:
    engines(world, running={"*": None}, bound=450, address="connect host:1 s u")
    world.after = lost_answer
    world.table.set_property("debug", "on")
    run = world.run(world.plan(**settle()))
    assert (run.outcome, len(world.sent), world.clock.now) == (RunOutcome.APPLIED, 2, 1000)
    assert tail(world.store).running is None  # type: ignore[union-attr]


def test_the_first_of_several_commits_is_not(world: World) -> None:
    """Row tracking: the protocol, the files, the property. The answer is lost, and all three are there."""
    engines(world, running={"*": None}, bound=450, address="connect host:1 s u")
    world.after = lost_answer
    lease = world.lease()
    run = world.run(world.plan(row_tracking="enabled"), lease=lease)
    assert (run.outcome, run.code, len(world.sent)) == (RunOutcome.UNKNOWN, 5, 1)
    assert lease.release()
    left = tail(world.store)
    assert left is not None
    assert left.running is not None
    assert (left.shut is not Gate.OPEN, left.running.version) == (True, None)


@pytest.mark.parametrize(
    ("commits", "ends"),
    [(("SET TBLPROPERTIES",), True), (("OPTIMIZE",), False), (("REORG",), False), (("A", "B"), False), ((), False)],
)
def test_which_statements_end_with_their_commit(world: World, commits: tuple[str, ...], ends: bool) -> None:
    statement = world.plan(isolation="Serializable").statements[0]
    assert ends_with_commit(replace(statement, commits=commits)) is ends


def test_a_dead_engine_starts_nothing(world: World) -> None:
    engines(world, is_alive=False)
    run = world.run(world.plan(isolation="Serializable"))
    assert (run.outcome, run.message, world.sent) == (RunOutcome.FAILED, "the engine does not answer", [])


def test_a_gate_that_is_shut_is_not_renewed_without_a_living_engine(world: World) -> None:
    lease, engine = world.lease(), FakeEngine(FakeLake(), world_stamp(), is_alive=False)
    assert may_renew(engine)(lease)
    lease.gate(Gate.CLOSED)
    assert not may_renew(engine)(lease)
    engine.is_alive = True
    assert may_renew(engine)(lease)


def world_stamp() -> Any:

    return Stamp("r", "d")


# What the record says


def test_the_record_names_a_statement_before_it_is_sent_and_takes_it_back_after(world: World) -> None:
    made = engines(world, bound=30, address="connect host:1 s u")
    seen: list[RunningStatement | None] = []
    world.before = lambda _table, _sql: seen.append(tail(world.store).running)  # type: ignore[union-attr]
    world.table.set_property("debug", "on")
    run = world.run(world.plan(**settle()))
    assert run.outcome is RunOutcome.APPLIED
    assert [each.tag for each in seen if each] == made[0].tags
    assert len(set(made[0].tags)) == 2
    assert {(each.engine, each.until) for each in seen if each} == {("connect host:1 s u", 30)}
    assert tail(world.store).running is None  # type: ignore[union-attr]


def test_a_store_that_fails_as_a_statement_ends_does_not_keep_the_next_from_being_sent(world: World) -> None:
    world.table.set_property("debug", "on")
    fail = lambda event: world.store.faults.append(Fault.REFUSED) if event == "landed" else None  # noqa: E731
    world.tick = fail
    run = world.run(world.plan(**settle()))
    assert (run.outcome, len(world.sent)) == (RunOutcome.APPLIED, 2)


def test_the_full_bound_is_in_the_record_until_the_client_is_gone(world: World) -> None:
    """From then on the engine counts, and each record what is left, less a quarter."""
    engines(world, bound=150, address="connect host:1 s u", running={"*": True})
    lease = world.lease()

    def waits_and_loses(_table: Any, _sql: str) -> None:
        world.clock.now += 40
        lease.renew()
        raise EngineError("no answer", unanswered=True)

    world.before = waits_and_loses
    run = world.run(world.plan(isolation="Serializable"), lease=lease)
    assert run.outcome is RunOutcome.UNKNOWN
    lease.release()
    bounds = [each.running.until for each in records(world) if each.running]
    assert bounds == [150, 150, 150 - 60 / 1.25]


def test_an_engine_that_ends_quick_statements_makes_their_bound_short(world: World) -> None:
    engines(world, bound=3600, commit_bound=60, address="thrift")
    seen: dict[str, float] = {}

    def look(_table: Any, sql: str) -> None:
        last = tail(world.store)
        assert last is not None
        assert last.running is not None
        seen[" ".join(sql.split()[3:5])] = last.running.until

    world.before = look
    run = world.run(world.plan(isolation="Serializable", constraints={"positive": "id > 0"}))
    assert run.outcome is RunOutcome.APPLIED
    assert seen == {"SET TBLPROPERTIES": 60, "ADD CONSTRAINT": 3600}


def test_without_a_bound_nothing_runs_but_with_a_reason(world: World) -> None:
    engines(world, bound=None)
    plan = world.plan(isolation="Serializable")
    run = world.run(plan)
    assert (run.outcome, world.sent) == (RunOutcome.REFUSED, [])
    assert "engine.statement_bound" in run.hint
    world.proceed = "no one writes tonight"
    assert world.run(plan, "ben").outcome is RunOutcome.APPLIED


# What a run before left


def killed(world: World, until: float = 20) -> str:
    """A run that was killed while its statement ran; the tag of that."""
    lease = world.lease("ben")
    lease.gate(Gate.CLOSED)
    lease.announce(RunningStatement("connect host:1 s u", f"{TAG}run-of-ben-1", until))
    return f"{TAG}run-of-ben-1"


def test_the_statement_of_a_killed_run_is_ended_before_the_table_is_read(world: World) -> None:
    """The second commit of a statement that ran on, such as row tracking's, is not needed then."""
    plan = world.plan(isolation="Serializable")
    tag = killed(world)
    made = engines(world, running={tag: True})
    read: list[str] = []
    world.lake.on_read = lambda _table: read.append("read")
    lease = world.lease()

    def lands() -> None:
        assert read == [], "nothing is read while it runs"
        stamp = '{"tablectl":{"plan":"d1","run":"ben"}}'
        world.table.commit("SET", "apply", stamp, properties={"delta.isolationLevel": "Serializable"})
        made[0].running[tag] = False

    world.clock.later(3, lands)
    run = world.run(plan, lease=lease)
    assert (run.outcome, world.sent, world.table.live.version) == (RunOutcome.ALREADY, [], 1)
    assert made[0].interrupted[0] == (tag, "connect host:1 s u")
    assert tail(world.store).running is None  # type: ignore[union-attr]


def test_where_the_engine_cannot_end_it_its_bound_is_waited_for(world: World) -> None:
    plan = world.plan(isolation="Serializable")
    tag = killed(world, until=20)
    engines(world, running={tag: None})
    lease = world.lease()
    started = world.clock.now
    assert world.run(plan, lease=lease).outcome is RunOutcome.APPLIED
    assert world.clock.now - started == pytest.approx(25, abs=1.5)


def test_that_wait_says_what_it_waits_for_and_for_how_long_at_most(world: World) -> None:
    plan = world.plan(isolation="Serializable")
    tag = killed(world, until=360)
    engines(world, running={tag: None})
    world.run(plan, lease=world.lease())
    told = [event for event in world.told if event.step == "statement left"]
    assert len(told) > 100, "it repeats while it lasts"
    assert {(event.words, event.most) for event in told} == {
        ("a dead apply left a statement that may still run: ending it, or waiting for at most 8 min", 450.0)
    }
    assert told[-1].waited == pytest.approx(450, abs=1.5)


def test_an_engine_that_died_ends_that_wait_with_the_exit_code_of_a_closed_window(world: World) -> None:
    plan = world.plan(isolation="Serializable")
    tag = killed(world, until=600)
    made = engines(world, running={tag: None})
    lease = world.lease()
    started = world.clock.now

    def dies() -> None:
        made[0].is_alive = False

    world.clock.later(10, dies)
    run = world.run(plan, lease=lease)
    assert (run.outcome, run.code, world.sent) == (RunOutcome.NO_WINDOW, ExitCode.WINDOW, [])
    assert "does not answer" in run.message
    assert world.clock.now - started <= 12
    left = tail(world.store)
    assert left is not None
    assert left.running is not None, "the next run waits for it"


def test_a_reason_to_proceed_ends_that_wait(world: World) -> None:
    world.proceed = "the cluster is gone"
    plan = world.plan(isolation="Serializable")
    tag = killed(world, until=600)
    engines(world, running={tag: None})
    lease = world.lease()
    started = world.clock.now
    run = world.run(plan, lease=lease)
    assert (run.outcome, world.clock.now - started) == (RunOutcome.APPLIED, 0)
    assert run.notes == ("a statement of an earlier run was not waited for: the cluster is gone",)


def test_a_tag_that_is_not_ours_is_never_interrupted(world: World) -> None:
    """Whoever can write next to a table can write lease records."""
    plan = world.plan(isolation="Serializable")
    lease = world.lease("ben")
    lease.announce(RunningStatement("connect host:1 s u", "nightly-load", 5))
    made = engines(world)
    assert world.run(plan, lease=world.lease()).outcome is RunOutcome.APPLIED
    assert made[0].interrupted == []


def test_one_that_runs_on_after_its_bound_keeps_the_table_as_it_is(world: World) -> None:
    plan = world.plan(isolation="Serializable")
    tag = killed(world, until=20)
    engines(world, running={tag: True})
    run = world.run(plan, lease=world.lease())
    assert (run.outcome, world.sent) == (RunOutcome.FAILED, [])
    assert "still runs in the engine" in run.message


# A lease that was lost


def test_a_run_whose_lease_was_taken_over_is_never_applied_and_names_who_has_it(world: World) -> None:
    plan = world.plan(isolation="Serializable")

    def takes_over(_table: FakeTable) -> None:
        world.clock.now += 200
        assert isinstance(world.lease("ben"), Lease)

    world.after = at(1, takes_over)
    run = world.run(plan)
    assert (run.outcome, len(run.commits)) == (RunOutcome.FAILED, 1)
    assert "ben on ben-laptop" in run.message


def test_where_the_successor_finished_the_same_plan_the_table_is_as_declared(world: World) -> None:
    world.table.set_property("debug", "on")
    plan = world.plan(**settle())

    def successor(_table: FakeTable) -> None:
        world.clock.now += 200
        lease = world.lease("ben")
        world.table.set_property("debug", None)
        lease.release()

    world.after = at(1, successor)
    run = world.run(plan)
    assert (run.outcome, run.code) == (RunOutcome.ALREADY, 0)
    assert "which ran the same plan: the table is as declared" in run.message


def test_a_successor_of_another_plan_is_not_believed(world: World) -> None:
    plan = world.plan(isolation="Serializable")

    def successor(_table: FakeTable) -> None:
        world.clock.now += 200
        first = world.lease("ben")
        first.release()
        other = try_acquire(world.store, replace(claim("cleo"), digest="d2"), world.clock)
        assert isinstance(other, Lease)
        other.release()

    world.after = at(1, successor)
    assert world.run(plan).outcome is RunOutcome.FAILED


def test_a_kill_between_announcement_and_end_leaves_the_announcement(world: World) -> None:
    engines(world, bound=450, address="e")
    plan = world.plan(isolation="Serializable")

    def kill(_table: FakeTable, _sql: str) -> None:
        raise Kill

    world.before = kill
    with pytest.raises(Kill):
        world.run(plan)
    assert tail(world.store).running is not None  # type: ignore[union-attr]


# A rewrite of the whole table


@pytest.mark.parametrize(
    ("policy", "tries"),
    [(DAY, 1), ({"isolation": "Serializable"}, 5)],
    ids=["an overwrite", "a SET"],
)
def test_a_rewrite_of_the_whole_table_is_tried_once(world: World, policy: dict[str, Any], tries: int) -> None:
    def busy(table: FakeTable, _sql: str) -> None:
        table.commit("WRITE", "stream")
        raise EngineError("files were added", "", "DELTA_CONCURRENT_APPEND")

    world.before = busy
    assert world.run(world.plan(**policy)).outcome is RunOutcome.FAILED
    assert len(world.sent) == tries
