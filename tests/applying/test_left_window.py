"""Jobs stay paused while a statement of the window that they were paused for may commit, whichever of its tables a
later apply names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from tablectl.leases.lease import Lease
from tablectl.leases.lease_records import Gate, RunningStatement, tail
from tablectl.model.errors import MissingError, WindowError
from tablectl.model.plan import Plan
from tablectl.model.stamp import Stamp
from tablectl.policies.config import WindowConfig
from tests.applying.lake_run import Run, only, plan_of
from tests.leases.lease_fakes import claim, try_acquire

BOUND = 400.0
NAMES = ("delta.`/lake/a`", "delta.`/lake/b`")


@dataclass
class Left:
    """A run over a and b was killed: a's record owes the hooks, and a statement may run on b."""

    run: Run = field(init=False)
    ran: list[tuple[str, str, float]] = field(default_factory=list)
    """Each hook that ran: which, for which table, and when."""
    began: float = 0.0
    plan: Plan = field(init=False)

    def __post_init__(self) -> None:
        config = WindowConfig(before=(("pause",),), after=(("resume",),))
        self.run = Run(config=config, run_hook=self.hook).tables("ab")
        self.began, self.plan = self.run.clock.now, self.run.plan()

    def hook(
        self,
        command: Sequence[str],
        environ: Mapping[str, str],
        said: Callable[[str], None],
        stopped: Callable[[], bool],
    ) -> str:
        self.ran.append((command[0], environ["TABLECTL_TABLE"][-2], self.run.clock.now - self.began))
        return ""

    def dies(self, name: str, *, owed: bool, runs: bool, names: tuple[str, ...] = NAMES) -> None:
        lease = try_acquire(self.run.stores[f"/lake/{name}"], claim("ben"), self.run.clock)
        assert isinstance(lease, Lease)
        lease.owe(("resume",) if owed else (), names)
        if runs:
            lease.gate(Gate.CLOSED)
            lease.announce(RunningStatement("elsewhere", f"tablectl-r0-{name}", BOUND, "r0", 0))
        lease.release()

    def apply(self, name: str) -> Any:
        return only(self.run.apply(plan_of(*(each for each in self.plan.tables if each.name[-2] == name))), name)

    def resumed(self) -> list[float]:
        return [at for command, _, at in self.ran if command == "resume"]

    def together(self, name: str) -> tuple[str, ...]:
        last = tail(self.run.stores[f"/lake/{name}"])
        return last.together if last else ()


def test_the_record_of_each_table_names_the_tables_of_the_window_until_it_is_over() -> None:
    case, seen = Left(), list[tuple[str, ...]]()
    case.run.together = NAMES
    case.run.engine.before = lambda _table, _sql: seen.append(case.together("a") + case.together("b"))
    case.run.apply()
    assert seen == [(*NAMES, *NAMES)] * 2
    assert (case.together("a"), case.together("b")) == ((), ())
    assert [command for command, _, _ in case.ran] == ["pause", "resume"]


def test_an_apply_of_the_table_that_owes_the_hooks_waits_for_the_statement_of_the_other() -> None:
    case = Left()
    case.dies("a", owed=True, runs=False)
    case.dies("b", owed=False, runs=True)
    assert case.apply("a").outcome == "applied"
    assert min(case.resumed()) >= BOUND * 1.25
    assert case.together("a") == ()


def test_an_apply_of_the_table_whose_statement_was_ended_leaves_the_jobs_paused_for_the_other() -> None:
    case = Left()
    case.dies("a", owed=True, runs=True)
    case.dies("b", owed=False, runs=False)
    run = case.apply("b")
    assert case.resumed() == []
    assert run.owed == ("resume",)
    assert "a statement may still run on delta.`/lake/a`, which shared the window: 'resume' is left to" in run.notes[0]
    assert case.apply("b").outcome == "already"
    assert min(case.resumed()) >= BOUND * 1.25


def test_the_commit_of_the_statement_ends_the_wait() -> None:
    case = Left()
    case.dies("a", owed=True, runs=False)
    case.dies("b", owed=False, runs=True)
    table = case.run.lake.tables["/lake/b"]
    case.run.clock.later(
        30, lambda: table.commit("SET TBLPROPERTIES", "apply", Stamp("r0", "d1").text(), properties={})
    )
    case.apply("a")
    assert 30 <= min(case.resumed()) < 40


def test_an_apply_that_is_at_work_on_the_other_table_is_not_waited_for() -> None:
    """It can take hours. The jobs stay paused meanwhile."""
    case = Left()
    case.dies("a", owed=True, runs=False)
    live = case.run.hold("b")
    live.gate(Gate.CLOSED)
    live.announce(RunningStatement("elsewhere", "tablectl-r9-b", BOUND, "r9", 0))
    run = case.apply("a")
    assert case.run.clock.now - case.began < 60
    assert (case.resumed(), run.owed) == ([], ("resume",))
    assert len([note for note in run.notes if "on delta.`/lake/b`, which shared the window" in note]) == 1


def test_a_statement_of_a_window_that_was_not_shared_is_not_waited_for() -> None:
    case = Left()
    case.dies("a", owed=True, runs=False, names=())
    case.dies("b", owed=False, runs=True, names=())
    case.apply("a")
    assert min(case.resumed()) < 10


def test_nothing_is_written_to_a_table_that_a_record_names() -> None:
    """Whoever can write to the folder of one table can name any other in its record."""
    case = Left()
    case.dies("a", owed=True, runs=False)
    case.dies("b", owed=False, runs=True)
    before = dict(case.run.stores["/lake/b"].kept)
    case.apply("a")
    assert case.run.stores["/lake/b"].kept == before


@pytest.mark.parametrize("error", [WindowError("the store is down"), MissingError("no such table")])
def test_a_table_that_cannot_be_looked_at_keeps_the_jobs_paused_unless_it_is_gone(error: Exception) -> None:
    case = Left()
    case.dies("a", owed=True, runs=False, names=(*NAMES, "lake.sales.orders"))

    def where(_table: object) -> str:
        raise error

    case.run.engine.location = where  # type: ignore[method-assign,assignment]
    run = case.apply("a")
    gone = isinstance(error, MissingError)
    assert bool(case.resumed()) == gone
    assert (run.owed, int(run.code)) == (() if gone else ("resume",), 0 if gone else 4)


@pytest.mark.parametrize("name", ["", "a.b.c.d.e.f", "delta.``", "'; DROP", "x" * 4000])
def test_a_record_that_names_what_is_not_a_table_resumes_nothing_and_breaks_nothing(name: str) -> None:
    case = Left()
    case.dies("a", owed=True, runs=False, names=(name,))
    run = case.apply("a")
    assert run.outcome in {"applied", "already", "failed"}
    assert "unexpected error" not in run.message
