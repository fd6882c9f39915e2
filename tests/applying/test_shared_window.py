"""``window.together``: tables that share one window."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import pytest

from tablectl.applying import shared_window as together_module
from tablectl.applying.run import MOST_TOGETHER
from tablectl.leases.guards import GuardMode
from tablectl.model.calendar import Rule
from tablectl.model.errors import EngineError, PlanFileError
from tablectl.policies.config import WindowConfig
from tests.applying.fake_lake import FakeTable
from tests.applying.lake_run import Run, only, outcomes
from tests.applying.writers import FakeGuard

CLUSTERED: dict[str, Any] = {"clustering": (("id",),)}


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(together_module, "_LOOK_EVERY", 0.01)


def group(names: str = "ab", others: str = "", **more: Any) -> Run:
    """Tables that share a window, by a tag, next to others that do not."""
    facts = more.pop("facts", {})
    run = Run(together=("ledger",), **more).tables(names + others, **facts)
    run.tags = dict.fromkeys(names, ("ledger",))
    return run


def gates_at(run: Run, step: str, others: str = "") -> list[dict[str, str]]:
    """The gates of all tables at each step of that name, but for those of ``others``."""
    found: list[dict[str, str]] = []

    def look(table: FakeTable, _sql: str) -> None:
        if table.live.location[-1] not in others:
            found.append({key[-1]: run.gate(key[-1]) for key in run.stores})

    setattr(run.engine, step, look)
    return found


def test_all_gates_are_closed_before_the_first_closed_statement_and_until_the_last() -> None:
    run = group("abc", others="z")
    before, after = gates_at(run, "before", "z"), gates_at(run, "after", "z")
    report = run.apply()
    assert (set(outcomes(report).values()), report.exit_code) == ({"applied"}, 0)
    shared = [(each["a"], each["b"], each["c"]) for each in (*before, *after)]
    assert shared == [("closed",) * 3] * 6
    assert all(run.gate(name) == "open" for name in "abcz")


def test_names_are_globs() -> None:
    run = Run(together=("delta.`/lake/[ab]`",)).tables("abz")
    before = gates_at(run, "before", "z")
    run.apply()
    assert [(each["a"], each["b"]) for each in before] == [("closed", "closed")] * 2


def test_a_statement_that_need_not_be_closed_runs_while_no_gate_is_open_or_closed() -> None:
    run = group("ab", facts=CLUSTERED)
    _first, second = run.lake.tables.values()
    plan = run.plan(clustering=("day",), isolation="Serializable")
    second.set_property("delta.isolationLevel", "Serializable")  # so b has nothing left to close for
    before = gates_at(run, "before")
    assert run.apply(plan).exit_code == 0
    assert {(each["a"], each["b"]) for each in before[:2]} == {("no-schema", "no-schema")}
    assert (before[2]["a"], before[2]["b"]) == ("closed", "no-schema")


def test_all_leases_or_none() -> None:
    run = group("ab", others="z")
    ben = run.hold("b")
    report = run.apply()
    assert outcomes(report) == {"a": "no window", "b": "no window", "z": "applied"}
    assert only(report, "a").message.startswith(
        "stopped with delta.`/lake/b` (no window), with which it shares a window"
    )
    assert run.kinds("a") == []
    ben.prove(1)


def test_hooks_run_once_for_all_and_the_after_hooks_when_all_gates_are_open() -> None:
    ran: list[tuple[str, dict[str, str]]] = []

    def hook(command: Sequence[str], *_: Any, **__: Any) -> str:
        ran.append((command[0], {name: run.gate(name) for name in "abc"}))
        return ""

    run = group("abc", config=WindowConfig(before=(("pause",),), after=(("unpause",),)), run_hook=hook)
    assert run.apply().exit_code == 0
    assert [command for command, _ in ran] == ["pause", "unpause"]
    assert "closed" not in ran[0][1].values()
    assert set(ran[1][1].values()) == {"open"}


def test_the_rest_stops_after_a_failure_and_every_gate_opens() -> None:
    run = group("abc")

    def fail(table: FakeTable, _sql: str) -> None:
        if not failed:
            failed.append(table.live.location[-1])
            raise EngineError("no", "", "SOME_CLASS")

    failed: list[str] = []
    run.engine.before = fail
    report = run.apply()
    (first,) = failed
    assert outcomes(report) == {name: "failed" if name == first else "interrupted" for name in "abc"}
    assert [len(table.stamped) for table in run.lake.tables.values()] == [0, 0, 0]
    assert all(run.gate(name) == "open" for name in "abc")
    assert run.released()
    run.engine.before = lambda _table, _sql: None
    assert run.apply().exit_code == 0


def test_a_writer_that_does_not_end_leaves_all_of_them_as_they_are_and_others_alone() -> None:
    run = group("abc", others="z", config=WindowConfig(drain=5))
    FakeGuard(run.stores["/lake/b"], mode=GuardMode.APPEND, ttl=80_000)
    report = run.apply()
    assert outcomes(report) == {"a": "no window", "b": "no window", "c": "no window", "z": "applied"}
    assert run.lake.tables["/lake/a"].stamped == []
    assert all(run.gate(name) == "open" for name in "abc")


def test_one_that_is_tried_again_is_tried_with_the_others() -> None:
    run = group("ab", config=WindowConfig(drain=0), wait=3600)
    run.clock.later(30, FakeGuard(run.stores["/lake/b"], mode=GuardMode.APPEND, ttl=80_000).end)
    report = run.apply()
    assert (outcomes(report), report.exit_code) == ({"a": "applied", "b": "applied"}, 0)
    assert [len(table.stamped) for table in run.lake.tables.values()] == [1, 1]


def test_outside_the_calendar_of_one_none_is_begun() -> None:
    from datetime import timedelta

    never = Rule(cron="* * * * *", duration=timedelta(days=1), tables=("delta.`/lake/b`",))
    run = group("ab", config=WindowConfig(deny=(never,)))
    report = run.apply()
    assert (set(outcomes(report).values()), report.exit_code) == ({"no window"}, 4)
    assert run.engine.sent == []


def test_one_that_the_plan_refuses_leaves_out_the_others() -> None:
    run = group("a", others="z")
    run.lake.add("delta.`/lake/p`", partition_columns=("day",))
    run.stores["/lake/p"] = type(run.stores["/lake/a"])()
    run.tags["p"] = ("ledger",)
    a, z, p = run.lake.tables.values()
    policy = {"isolation": "Serializable"}
    from tests.applying.lake_run import plan_of

    plan = plan_of(run._table(a, policy), run._table(p, {**policy, "partitioning": "none"}), run._table(z, policy))
    report = run.apply(plan)
    assert outcomes(report) == {"a": "refused", "p": "refused", "z": "applied"}
    assert "shares a window" in only(report, "a").message


def test_too_many_are_refused_before_anything_is_taken() -> None:
    run = group("a")
    for number in range(MOST_TOGETHER):
        run.lake.add(f"delta.`/lake/{number:03}/a`")
    run.together = ("delta.`*`",)
    with pytest.raises(PlanFileError, match="at most 64 can share a window"):
        run.apply()
    assert run.kinds("a") == []


class Gone(BaseException):
    pass


@pytest.mark.parametrize("step", ["leased", "fresh", "gate closed", "before closed-set", "after closed-set", "verify"])
@pytest.mark.parametrize("error", [Gone, ZeroDivisionError])
def test_whatever_is_raised_no_one_waits_for_it(step: str, error: type[BaseException]) -> None:
    run, others = group("abc"), set(threading.enumerate())
    plan = run.plan()

    def raises(event: Any) -> None:
        if event.step == step and "/b" in event.table:
            raise error

    run.notify = raises
    if error is Gone:
        with pytest.raises(Gone):
            run.apply(plan)
    else:
        run.apply(plan)
    assert run.released()
    assert all(run.gate(name) == "open" for name in "abc")
    assert all(not thread.name.startswith("tablectl") for thread in set(threading.enumerate()) - others)


def test_a_stop_ends_all_of_them() -> None:
    run = group("abc")
    run.notify = lambda event: run.stop.set() if event.step == "gate closed" else None
    report = run.apply()
    assert set(outcomes(report).values()) == {"interrupted"}
    assert run.engine.sent == []
    assert run.released()
