"""What tables wait for: one question with three answers, in one list."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tablectl.applying import run as run_module
from tablectl.applying.context import TableJob, WindowSettings
from tablectl.applying.events import PROGRESS
from tablectl.applying.owed_hooks import OwedHookTable
from tablectl.applying.run_report import CommitRun, RunOutcome, TableRun
from tablectl.applying.waits import GO, Answer, Awaited, End, Later, Wait
from tablectl.leases.lease import Lease
from tablectl.leases.lease_records import PATIENCE, Gate, RunningStatement
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
    run = Run(terms=WindowSettings(drain=60)).tables("a")
    FakeGuard(run.stores["/lake/a"], ttl=600)
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

    run = Run(terms=WindowSettings(after=(("./resume.sh",),), run_hook=hook)).tables("a")
    lease = try_acquire(run.stores["/lake/a"], claim("ben"), run.clock)
    assert isinstance(lease, Lease)
    lease.owe(("./resume.sh",))
    run.engine.is_alive = False
    run.apply(plan_of(), (OwedHookTable("delta.`/lake/a`", "/lake/a"),))
    assert len(ran) == 1
