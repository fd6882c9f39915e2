"""``window.together``: tables that share one window."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tablectl
from tablectl.applying import shared_window as together_module
from tablectl.applying.run import MOST_TOGETHER
from tablectl.leases.clock import SystemClock
from tablectl.leases.guards import GuardMode, newest_beats
from tablectl.leases.lease_records import tail
from tablectl.model.calendar import Rule
from tablectl.model.errors import EngineError, PlanFileError
from tablectl.policies.config import WindowConfig
from tablectl.storage.records import open_records
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


class Job:
    """A job that has a guard of one table and, inside of it, asks for one of another. It acts when the clock moves."""

    def __init__(self, run: Run, outer: str, inner: str, *, outer_first: bool = False) -> None:
        self.run, self.outer, self.inner, self.outer_first = run, outer, inner, outer_first
        self.held = {outer: FakeGuard(run.stores[f"/lake/{outer}"], f"job {outer}{inner}", GuardMode.APPEND)}
        self.passed = False
        self.lock = threading.Lock()
        before = run.clock.on_sleep

        def act() -> None:
            before()
            with self.lock:
                self.act()

        run.clock.on_sleep = act

    def act(self) -> None:
        if not self.passed:
            there, here = (tail(self.run.stores[f"/lake/{each}"]) for each in (self.inner, self.outer))
            assert here is not None
            stopped = there is not None and GuardMode.APPEND.waits(there.shut)
            if stopped and there is not None and here.waited_for(there.window):
                stopped = not (there.waited_for(here.window) and GuardMode.APPEND.waits(here.shut))
            if not stopped:
                self.held[self.inner] = FakeGuard(self.run.stores[f"/lake/{self.inner}"], "inner", GuardMode.APPEND)
                self.passed = True
        elif self.held:
            self.held.pop(min(self.held, key=lambda each: (each == self.outer) is not self.outer_first)).end()


@pytest.mark.parametrize("drain", [1, 5, 60])
def test_a_window_does_not_wait_for_a_job_that_waits_for_it(drain: int) -> None:
    """It holds one of the tables, and waits at the gate of another."""
    run = group("abc", config=WindowConfig(drain=drain))
    job, back = Job(run, "a", "b"), Job(run, "c", "a")
    writes: list[str] = []
    run.engine.before = lambda table, _sql: writes.extend(f"{table.name}: {each}" for each in (*job.held, *back.held))
    report = run.apply()
    assert (set(outcomes(report).values()), report.exit_code) == ({"applied"}, 0)
    assert (job.passed, back.passed, writes) == (True, True, [])
    assert run.clock.now - 1000 < 60


def test_what_was_let_in_and_outlasts_the_guard_around_it_is_waited_for() -> None:
    """A real guard keeps the one around it. The safety of its own table does not depend on that."""
    run = group("ab", config=WindowConfig(drain=60))
    job = Job(run, "a", "b", outer_first=True)
    held: list[bool] = []
    run.engine.before = lambda table, _sql: held.append(table.live.location[-1] in job.held)
    assert run.apply().exit_code == 0
    assert (job.passed, held) == (True, [False, False])


def test_the_gates_of_a_window_let_no_one_in_before_the_first_statement() -> None:
    run = group("ab")
    run.engine.bound, run.engine.address = 30, "connect host:1 s u"
    seen: list[tuple[str, str, bool]] = []

    def look(event: Any) -> None:
        last = tail(run.stores[f"/lake/{event.table[-2]}"])
        if last is not None and event.step in {"gate closed", "drained", "before closed-set"}:
            seen.append((event.step, last.gate, last.window != ""))

    run.notify = look
    assert run.apply().exit_code == 0
    assert set(seen) == {
        ("drained", "no-schema", True),
        ("drained", "no-schema", False),
        ("gate closed", "closed", True),
        ("drained", "closed", True),
        ("drained", "closed", False),
        ("before closed-set", "closed", False),
    }


def test_a_gate_that_opened_for_a_moment_after_all_had_met_is_shut_before_the_first_statement() -> None:
    """For a writer that was let in, and waits at the gate of a table outside of the window."""
    run = group("ab", config=WindowConfig(drain=60))
    gates = gates_at(run, "before")
    put: list[FakeGuard] = []

    def come_late(event: Any) -> None:
        if (event.step, event.table[-2], run.gate("b")) == ("drained", "b", "closed") and not put:
            guard = FakeGuard(run.stores["/lake/b"], mode=GuardMode.APPEND)
            run.stores["/lake/b"].kept[guard.record.name] = replace(guard.record, waits="/lake/z").to_bytes()
            put.append(guard)
            run.clock.later(5, guard.end)

    run.notify = come_late
    assert run.apply().exit_code == 0
    assert ("b", "gate open") in run.steps[: run.steps.index(("b", "before closed-set"))]
    assert [each["b"] for each in gates] == ["closed", "closed"]


@pytest.mark.parametrize("outer_first", [False, True])
def test_a_guard_inside_another_is_let_in_and_keeps_it_until_both_are_left(
    tmp_path: Path, *, outer_first: bool
) -> None:
    run = group("ab")
    run.clock = SystemClock()
    for name in "ab":
        (tmp_path / name / "_delta_log").mkdir(parents=True)
        run.stores[f"/lake/{name}"] = open_records(str(tmp_path / name))  # type: ignore[assignment]
    inside, shut = threading.Event(), threading.Event()
    run.notify = lambda event: shut.set() if (event.step, event.table[-2]) == ("gate closed", "b") else None
    kept: list[list[int]] = []
    sent: list[int] = []
    run.engine.before = lambda _table, _sql: sent.append(len(kept))

    def note() -> None:
        kept.append([len(newest_beats(run.stores[f"/lake/{name}"])) for name in "ab"])

    def job() -> None:
        outer, inner = (tablectl.guard(None, tmp_path / name, "append", timeout=60) for name in "ab")
        with outer if not outer_first else nullcontext():
            if outer_first:
                outer.__enter__()
            inside.set()
            assert shut.wait(60)
            with inner:
                note()
                if outer_first:
                    outer.__exit__(None, None, None)
                    note()

    with ThreadPoolExecutor() as pool:
        working = pool.submit(job)
        assert inside.wait(60)
        report = run.apply()
        working.result(60)
    assert (report.exit_code, kept) == (0, [[1, 1]] * (1 + outer_first))
    assert sent == [1 + outer_first] * 2, "a statement was sent while the job wrote"
