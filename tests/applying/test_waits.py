"""What tables wait for: one question with three answers, in one list."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from threading import Event

import pytest

from tablectl.applying import run as run_module
from tablectl.applying.events import PROGRESS, RunEvent
from tablectl.applying.hooks import OwedHookTable
from tablectl.applying.run_context import TableJob
from tablectl.applying.waits import GO, Answer, Awaited, End, Later, Wait
from tablectl.leases.acquire import Blocked, Sighting, acquire_all
from tablectl.leases.lease import Lease
from tablectl.leases.lease_records import PATIENCE, Gate, RunningStatement, tail
from tablectl.model.calendar import Rule
from tablectl.model.run_report import CommitRun, RunOutcome, TableRun
from tablectl.policies.config import WindowConfig
from tests.applying.fake_lake import FakeTable
from tests.applying.lake_run import Run, only, outcomes, plan_of
from tests.applying.writers import FakeGuard
from tests.leases.lease_fakes import claim, try_acquire

FULL_MOON = Awaited("moon", "for the full moon")


@dataclass
class MoonWait(Wait):
    """A wait that a developer adds: one class, and one entry in the list."""

    job: TableJob
    rises: float = 1120.0
    gives_up: float = 1e9

    def check(self, now: float) -> Answer:
        if now >= self.rises:
            return GO
        if now >= self.gives_up:
            return End(RunOutcome.NO_WINDOW, "the moon did not rise", "wait for the next one")
        return Later(now + 30, FULL_MOON, "the moon has not risen", most=self.rises - now)


def test_a_new_kind_of_wait_is_one_class_and_one_entry_in_the_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_module, "WAITS", (*run_module.WAITS, MoonWait))
    run = Run().tables("ab")
    report = run.apply()
    assert outcomes(report) == {"a": "applied", "b": "applied"}
    assert run.clock.now >= 1120
    told = [event for event in run.told if event.step == "moon"]
    assert {event.words for event in told} == {"the moon has not risen"}
    assert any("2 waiting (2 for the full moon up to 120 s)" in e.words for e in run.told if e.step == PROGRESS)


def test_its_end_is_the_outcome_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_module, "WAITS", (*run_module.WAITS, lambda job: MoonWait(job, gives_up=1060)))
    table = only(Run().tables("a").apply(), "a")
    assert (table.outcome, table.message, table.hint) == (
        RunOutcome.NO_WINDOW,
        "the moon did not rise",
        "wait for the next one",
    )


def test_a_stop_names_what_was_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_module, "WAITS", (*run_module.WAITS, MoonWait))
    run = Run().tables("a")
    run.clock.later(10, run.stop.set)
    table = only(run.apply(), "a")
    assert (table.outcome, table.message) == (RunOutcome.INTERRUPTED, "stopped while it waited for the full moon")


def test_the_events_of_waits_under_a_lease_say_what_is_awaited_too() -> None:
    run = Run(config=WindowConfig(drain=60)).tables("a")
    FakeGuard(run.stores["/lake/a"], ttl=600).lives(run.clock)
    run.apply()
    told = [event for event in run.told if event.step == "draining"]
    assert {(event.awaited, event.most) for event in told} == {("for writers", 60.0)}


# Tables that wait for the statement of a dead apply

BOUND = 400.0


def dies(run: Run, name: str, *, released: bool = False) -> None:
    """A run ended, or was killed, while its statement ran on a table with its gate closed."""
    lease = try_acquire(run.stores[f"/lake/{name}"], claim("ben"), run.clock)
    assert isinstance(lease, Lease)
    lease.gate(Gate.CLOSED)
    lease.announce(RunningStatement("elsewhere", f"tablectl-r0-{name}", BOUND))
    if released:
        lease.release()


def killed_on(names: str) -> Run:
    run = Run(parallel=1).tables(names)
    run.engine.running = {f"tablectl-r0-{name}": None for name in names}
    for name in names:
        dies(run, name)
    return run


def test_tables_wait_for_dead_statements_side_by_side_with_one_worker() -> None:
    run = killed_on("abc")
    report = run.apply()
    assert outcomes(report) == dict.fromkeys("abc", "applied")
    assert run.clock.now - 1000 < 75 + BOUND * PATIENCE + 10
    assert run.released()


def test_meanwhile_the_worker_is_free_for_other_tables() -> None:
    run = Run(parallel=1).tables("ab")
    run.engine.running = {"tablectl-r0-a": None}
    dies(run, "a", released=True)
    times: dict[str, float] = {}
    run.notify = lambda event: times.update({event.table[-2:-1]: run.clock.now}) if event.step == "verify" else None
    assert outcomes(run.apply()) == {"a": "applied", "b": "applied"}
    assert (times["b"], times["a"] - 1000 >= BOUND * PATIENCE) == (1000, True)


def test_a_run_that_is_stopped_while_it_waits_releases_the_leases_and_says_that_the_gates_are_shut() -> None:
    run = killed_on("ab")
    run.clock.later(200, run.stop.set)
    report = run.apply()
    assert {(each.outcome, each.message) for each in report.tables} == {
        (RunOutcome.INTERRUPTED, "stopped while it waited for the statement of a dead apply")
    }
    assert all(each.shut_ms > 300_000 and each.epoch == 2 for each in report.tables)
    assert run.released()


def test_a_wait_that_raises_an_error_leaves_no_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    run = killed_on("a")

    def breaks(tag: str, address: str = "") -> bool | None:
        raise RuntimeError(f"{tag} at {address}")

    run.clock.later(100, lambda: monkeypatch.setattr(run.engine, "interrupt", breaks))
    report = run.apply()
    assert outcomes(report) == {"a": "failed"}
    assert only(report, "a").message.startswith("unexpected error: RuntimeError")
    assert (run.released(), only(report, "a").shut != "") == (True, True)


def released_dead(names: str) -> Run:
    """Runs ended while their statements ran, and released their leases."""
    run = Run().tables(names)
    run.engine.running = {f"tablectl-r0-{name}": None for name in names}
    for name in names:
        dies(run, name, released=True)
    return run


def test_the_rights_are_looked_at_once_for_each_lease() -> None:
    run = released_dead("a")
    deleted: list[str] = []
    store, delete = run.stores["/lake/a"], run.stores["/lake/a"].delete

    def counted(name: str) -> None:
        deleted.append(name)
        delete(name)

    store.delete = counted  # type: ignore[method-assign]
    assert outcomes(run.apply()) == {"a": "applied"}
    assert deleted.count("lease/none") <= 2


def test_a_run_that_lost_its_lease_is_not_applied_by_what_an_earlier_try_committed() -> None:
    commit = CommitRun(version=1, operation="SET TBLPROPERTIES", user="ann", at=0)
    earlier = TableRun(name="a", outcome=RunOutcome.NO_WINDOW, epoch=1, commits=(commit,))
    lost = TableRun(name="a", outcome=RunOutcome.ALREADY, epoch=3, message="the lease was taken over by ben")
    assert lost.following(earlier).outcome is RunOutcome.ALREADY


def test_an_unexpected_error_in_the_wait_for_a_dead_statement_of_owed_hooks_reports_the_gate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = released_dead("ab")

    def breaks(tag: str, address: str = "") -> bool | None:
        if tag.endswith("-a") and run.clock.now > 1050:
            raise RuntimeError(f"{tag} at {address}")
        return None

    monkeypatch.setattr(run.engine, "interrupt", breaks)
    held: list[str] = []
    run.clock.later(200, lambda: held.append(run.kinds("a")[0]))
    report = run.apply(plan_of(), tuple(OwedHookTable(f"delta.`/lake/{name}`", f"/lake/{name}") for name in "ab"))
    assert held == ["release"]
    table = only(report, "a")
    assert (str(table.outcome), table.shut_ms > 300_000) == ("failed", True)
    assert outcomes(report)["b"] == "already"


def test_owed_hooks_need_no_engine() -> None:
    ran: list[str] = []

    def hook(command: object, environ: object, said: object, stopped: object) -> str:
        ran.append(str(command))
        return ""

    run = Run(config=WindowConfig(after=(("./resume.sh",),)), run_hook=hook).tables("a")
    lease = try_acquire(run.stores["/lake/a"], claim("ben"), run.clock)
    assert isinstance(lease, Lease)
    lease.owe(("./resume.sh",))
    run.engine.is_alive = False
    run.apply(plan_of(), (OwedHookTable("delta.`/lake/a`", "/lake/a"),))
    assert len(ran) == 1


def test_a_statement_is_waited_for_from_the_moment_of_the_lease_however_long_the_reads_before_it_took() -> None:
    run = Run().tables("a")
    run.engine.running = {"tablectl-r0-a": None}
    plan, commits, first = run.plan(), run.lake.commits, [True]

    def slow(location: str, *, after: int) -> object:
        if first:
            first.clear()
            run.clock.now += 300
            dies(run, "a", released=True)  # another run ends meanwhile
        return commits(location, after=after)

    run.lake.commits = slow  # type: ignore[method-assign,assignment]
    times: list[float] = []
    run.notify = lambda event: times.append(run.clock.now) if event.step == "fresh" else None
    assert outcomes(run.apply(plan)) == {"a": "applied"}
    assert times[0] >= 1300 + BOUND


def taken_over(run: Run, name: str) -> Lease:
    """A run of the same plan takes the lease over, as if the holder had counted as dead."""
    store, seen = run.stores[f"/lake/{name}"], tail(run.stores[f"/lake/{name}"])
    assert seen is not None
    found = acquire_all({"": store}, claim("ben"), run.clock, {"": Sighting(seen, run.clock.now - 75)})
    assert not isinstance(found, Blocked)
    return found[""]


@pytest.mark.parametrize("done", [True, False])
def test_a_lease_lost_in_a_wait_is_reported_as_one_lost_at_work(done: bool) -> None:
    """docs/window.md: `already` if a finished run of the same plan took it over, else `failed` with the holder."""
    run = released_dead("a")
    plan = run.plan()

    def other() -> None:
        ben = taken_over(run, "a")
        ben.statement_ended()
        if done:
            run.lake.tables["/lake/a"].set_property("delta.isolationLevel", "Serializable")
        ben.release()

    run.clock.later(50, other)
    report = run.apply(plan)
    table = only(report, "a")
    assert (str(table.outcome), int(report.exit_code)) == (("already", 0) if done else ("failed", 1))
    assert "ben" in table.message
    assert table.epoch == 2


def test_a_stop_during_a_second_try_reports_the_gate_that_stays_shut() -> None:
    run = Run(config=WindowConfig(drain=0), wait=3600).tables("a")
    guard = FakeGuard(run.stores["/lake/a"], ttl=600).lives(run.clock)

    def another_run_dies() -> None:
        guard.end()
        run.engine.running = {"tablectl-r0-a": None}
        dies(run, "a", released=True)

    run.clock.later(30, another_run_dies)
    run.clock.later(100, run.stop.set)
    report = run.apply()
    table = only(report, "a")
    assert run.gate("a") == "closed"
    assert table.shut_ms > 300_000
    assert int(report.exit_code) in {1, 5}
    assert table.outcome is RunOutcome.INTERRUPTED


def test_what_ends_the_process_releases_its_lease_before_other_tables_end() -> None:
    run = Run().tables("ab")
    released, sending = Event(), Event()
    store, create = run.stores["/lake/a"], run.stores["/lake/a"].create

    def noticed(name: str, data: bytes) -> bool:
        made = create(name, data)
        last = tail(store)
        if last is not None and last.kind == "release":
            released.set()
        return made

    store.create = noticed  # type: ignore[method-assign]
    seen: list[bool] = []

    def slow(_table: FakeTable, _sql: str) -> None:
        seen.append(released.wait(60))

    def raises(event: RunEvent) -> None:
        if "/b" in event.table and event.step == "before closed-set":
            sending.set()
        if "/a" in event.table and event.step == "leased":
            assert sending.wait(60)
            raise KeyboardInterrupt

    run.notify = raises
    run.engine.before = slow
    with pytest.raises(KeyboardInterrupt):
        run.apply()
    assert seen == [True]


# The bounds that are told


def test_no_wait_lasts_longer_than_the_bound_that_it_tells() -> None:
    late = Rule(cron="30 17 * * *", duration=timedelta(hours=1))
    run = Run(config=WindowConfig(drain=0, allow=(late,)), wait=8 * 3600).tables("a")
    FakeGuard(run.stores["/lake/a"], ttl=80_000).lives(run.clock)
    run.apply()
    soaks = Run(config=WindowConfig(canary=1, soak=30), table_groups=(("delta.`/lake/a`", "delta.`/lake/b`"),))
    soaks.tables("ab").apply()
    told = [event for event in (*run.told, *soaks.told) if event.most]
    assert {event.step for event in told} >= {"calendar", "silent writers", "again", "soak"}
    assert [event for event in told if event.waited is not None and event.waited > event.most] == []
    assert {event.most for event in told if event.step == "again"} >= {60.0, 300.0}
