from __future__ import annotations

import threading
from dataclasses import replace
from itertools import product
from threading import Event
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tablectl.applying.lease_wait as lease_module
from tablectl.applying import scheduler
from tablectl.applying.events import RunEvent as Told
from tablectl.applying.events import no_progress
from tablectl.leases.clock import StoppedError, SystemClock
from tablectl.leases.lease import Lease, Renewer
from tablectl.leases.lease_records import LONGEST_TTL, LeaseRecord, dump_record, record_name
from tablectl.model.errors import EngineError, PlanFileError, WindowError
from tablectl.model.plan import Phase, Plan, Refusal, TableFailure
from tablectl.model.run_report import CommitRun, RunOutcome, RunReport, StatementRun, TableRun
from tablectl.storage.records import RecordStore
from tests.applying.fake_lake import FakeTable
from tests.applying.lake_run import Run, only, outcomes, plan_of
from tests.leases.lease_fakes import Fault, MemoryRecords, acquire, claim, try_acquire

# The queue


def test_all_tables_are_applied_and_all_leases_given_back() -> None:
    run = Run().tables("abc")
    report = run.apply()
    assert outcomes(report) == {"a": "applied", "b": "applied", "c": "applied"}
    assert (report.exit_code, report.run, report.plan) == (0, "r1", "d1")
    assert [run.kinds(name) for name in "abc"] == [["release", "ann"]] * 3


def test_a_lease_record_with_an_impossible_number_is_an_error_of_its_table_alone() -> None:
    run = Run().tables("ab")
    run.stores["/lake/a"].kept[record_name(10**18)] = b"x"
    report = run.apply()
    assert outcomes(report) == {"a": "failed", "b": "applied"}
    found = only(report, "a")
    assert f"{record_name(10**18)} is not a record of tablectl" in found.message
    assert (found.hint, run.clock.now < 1005) == ("remove it", True)


def test_the_report_says_when_the_run_began_and_how_long_each_table_took() -> None:
    run = Run(parallel=1).tables("ab")
    run.notify = lambda event: run.clock.sleep(7) if event.step == "fresh" and "/b" in event.table else None
    report = run.apply()
    assert (only(report, "a").took_ms, only(report, "b").took_ms, report.took_ms) == (0, 7_000, 7_000)
    assert report.at == 1000 * round(run.clock.utc().timestamp() - 7)


def test_the_time_of_a_table_includes_its_wait_for_a_lease() -> None:
    run = Run().tables("a")
    ben = run.hold("a")
    run.clock.on_sleep = lambda: None
    run.clock.later(1.5, ben.release)
    report = run.apply()
    assert only(report, "a").took_ms >= 1_500


def test_one_worker_takes_the_tables_in_the_order_of_their_places() -> None:
    run = Run(parallel=1).tables("ecbad")
    run.apply()
    runs = [step for step in run.steps if step[1] in {"leased", "released"}]
    assert runs == [(name, step) for name in "abcde" for step in ("leased", "released")]


def test_a_worker_that_is_done_takes_the_next_table_and_waits_for_no_other() -> None:
    """Two workers: one table runs until all others have been released."""
    run = Run(parallel=2).tables("abcde")
    others = threading.Semaphore(0)

    def meet(event: Told) -> None:
        if event.step == "released":
            others.release()
        if event.step == "fresh" and "/a" in event.table:
            assert all(others.acquire(timeout=30) for _ in "bcde")

    run.notify = meet
    assert run.apply().exit_code == 0


def test_as_many_tables_as_there_are_workers_run_side_by_side() -> None:
    run = Run().tables("abc")
    together = threading.Barrier(3, timeout=30)

    def meet(event: Told) -> None:
        if event.step == "fresh":
            together.wait()

    run.notify = meet
    assert run.apply().exit_code == 0


def test_a_plan_of_nothing_takes_nothing() -> None:
    run = Run().tables("a")
    report = run.apply(plan_of())
    assert (report.tables, report.exit_code, run.kinds("a")) == ((), 0, [])


# Leases that cannot be had


def test_a_held_table_is_left_out_and_named_and_the_others_are_applied() -> None:
    run = Run().tables("abc")
    ben = run.hold("b")
    report = run.apply()
    assert outcomes(report) == {"a": "applied", "b": "no window", "c": "applied"}
    held = only(report, "b")
    assert held.message.startswith("held by ben on ben-laptop (pid 7), run run-of-ben, epoch 1")
    assert held.hint == "run again later, or see `tablectl window show 'delta.`/lake/b`'`"
    assert report.exit_code == 5
    ben.prove(1)
    assert run.kinds("a") == run.kinds("c") == ["release", "ann"]


def test_where_all_are_held_nothing_was_done() -> None:
    run = Run().tables("ab")
    run.hold("a")
    run.hold("b", "cleo")
    report = run.apply()
    assert (set(outcomes(report).values()), report.exit_code, run.engine.sent) == ({"no window"}, 4, [])


def test_a_dead_holder_is_taken_over() -> None:
    run = Run().tables("ab")
    try_acquire(run.stores["/lake/a"], claim("ben"), run.clock)
    report = run.apply()
    assert outcomes(report) == {"a": "applied", "b": "applied"}
    assert (only(report, "a").epoch, only(report, "b").epoch) == (2, 1)


def test_nothing_is_kept_of_a_table_while_its_holder_is_watched_and_the_others_are_done() -> None:
    run = Run(parallel=1).tables("ab")
    run.hold("a")
    kept: list[tuple[list[str], list[str]]] = []
    renew = run.clock.on_sleep

    def look() -> None:
        renew()
        kept.append((run.kinds("a"), run.kinds("b")))

    run.clock.on_sleep = look
    run.apply()
    assert {holder for (_, holder), _ in kept} == {"ben"}
    assert {tuple(other) for _, other in kept} == {("release", "ann")}


def test_a_table_held_for_moments_is_taken_without_wait() -> None:
    """Another apply asked for it, found another one held, and gave it back."""
    run = Run().tables("a")
    ben = run.hold("a")
    run.clock.on_sleep = lambda: None
    run.clock.later(1.5, ben.release)
    assert outcomes(run.apply()) == {"a": "applied"}
    assert run.clock.now < 1003


def test_a_table_that_the_other_apply_finishes_while_this_one_works_is_already() -> None:
    run = Run(parallel=1).tables("ab")
    ben = run.hold("a")
    run.clock.on_sleep = lambda: None

    def finish(event: Told) -> None:
        if event.step == "verify" and "/b" in event.table:
            run.lake.tables["/lake/a"].set_property("delta.isolationLevel", "Serializable")
            ben.release()

    run.notify = finish
    report = run.apply()
    assert (outcomes(report), report.exit_code) == ({"a": "already", "b": "applied"}, 0)


def test_a_holder_that_lives_is_waited_for_no_longer_than_the_other_tables_take() -> None:
    run = Run().tables("ab")
    run.hold("a")
    report = run.apply()
    assert (outcomes(report), report.exit_code) == ({"a": "no window", "b": "applied"}, 5)
    assert run.clock.now <= 1000 + 10  # a sign of life, which is due every ten seconds


def hostile_record(what: str, honest: LeaseRecord) -> bytes:
    if what == "the longest ttl":
        return dump_record(replace(honest, ttl=LONGEST_TTL))
    if what == "a ttl of a day":
        return dump_record(honest).replace(b'"ttl":60.0', b'"ttl":86400')
    return b"{" if what == "damaged" else dump_record(honest).replace(b'"2026-', b'"0001-')


@pytest.mark.parametrize("what", ["the longest ttl", "a ttl of a day", "damaged", "a time out of range"])
def test_a_hostile_record_delays_only_its_own_table(what: str) -> None:
    run = Run(parallel=1).tables("abcdefgh")
    honest = run.hold("a", "mallory").record
    run.clock.on_sleep = lambda: None
    data = hostile_record(what, honest)
    assert data != dump_record(honest)
    run.stores["/lake/a"].kept[record_name(1)] = data
    done_at: list[float] = []
    run.notify = lambda event: done_at.append(run.clock.now) if event.step == "released" else None
    report = run.apply()
    # What cannot be read counts as dead after a silence of 75 s; a record in order is believed, and not waited for.
    assert outcomes(report).pop("a") == ("no window" if what == "the longest ttl" else "applied")
    assert [outcomes(report)[name] for name in "bcdefgh"] == ["applied"] * 7
    assert done_at[:7] == [1000.0] * 7
    assert run.clock.now <= 1000 + 80


def test_the_report_says_how_to_free_a_table_whose_record_claims_a_long_ttl() -> None:
    run = Run().tables("a")
    lease = run.hold("a", "mallory")
    run.clock.on_sleep = lambda: None
    run.stores["/lake/a"].kept[record_name(1)] = dump_record(replace(lease.record, ttl=LONGEST_TTL))
    held = only(run.apply(), "a")
    assert held.message.endswith(
        f"it gave no sign of life, and counts as dead once it was silent for {LONGEST_TTL * 1.25:.0f} s"
    )
    assert "tablectl window break" in held.hint


def test_a_table_whose_records_cannot_be_written_fails_alone() -> None:
    run = Run().tables("abc")
    run.stores["/lake/b"].faults.extend([Fault.REFUSED] * 9)
    report = run.apply()
    assert outcomes(report) == {"a": "applied", "b": "failed", "c": "applied"}
    assert (only(report, "b").message, report.exit_code) == ("refused", 5)
    assert run.released()


def test_a_gate_that_could_not_be_opened_is_in_the_report_and_an_exit_code() -> None:
    """From the end of the ALTER on the store refuses every put, as with a token that has expired."""
    run = Run().tables("ab")
    run.engine.after = lambda table, _sql: run.stores[table.live.location].faults.extend([Fault.REFUSED] * 99)
    run.engine.bound, run.engine.address = 450, "connect host:1 s u"
    report = run.apply()
    assert (outcomes(report), report.exit_code) == ({"a": "applied", "b": "applied"}, 5)
    table = only(report, "a")
    assert (table.window_ms, table.shut_ms, table.code) == (None, round((60 + 450) * 1.25 * 1000), 5)
    assert table.shut == (
        "writers may wait at its gate for 638 s at most: the record that opens it was not written; "
        "`tablectl window break 'delta.`/lake/a`' --epoch 1 --reason …` opens it at once"
    )


def test_a_gate_that_the_release_opened_is_not_a_failure_but_its_time_is_not_known() -> None:
    run = Run().tables("a")
    # The record that the statement is over, and each try to open the gate; not the release.
    run.engine.after = lambda table, _sql: run.stores[table.live.location].faults.extend([Fault.REFUSED] * 6)
    table = only(run.apply(), "a")
    assert (table.window_ms, table.shut_ms, table.shut, table.code) == (None, 0, "", 0)
    assert run.gate("a") == "open"


def test_a_lease_that_could_not_be_released_with_its_gate_open_is_not_a_failure() -> None:
    """Only the next apply waits for it."""
    run = Run().tables("a")
    fail = lambda event: run.stores["/lake/a"].faults.extend([Fault.REFUSED] * 99) if event.step == "verify" else None  # noqa: E731
    run.notify = fail
    report = run.apply()
    assert (outcomes(report), only(report, "a").shut, report.exit_code) == ({"a": "applied"}, "", 0)


def test_one_whose_store_is_down_does_not_wear_out_the_others_leases() -> None:
    """While a dead holder is watched for 75 s, a lease taken before would run out."""
    run = Run().tables("abc")
    run.stores["/lake/b"].down = True
    try_acquire(run.stores["/lake/c"], claim("ben"), run.clock)
    report = run.apply()
    assert outcomes(report) == {"a": "applied", "b": "failed", "c": "applied"}


def test_where_no_records_can_lie_the_table_fails() -> None:
    run = Run().tables("ab")

    def records(location: str) -> RecordStore:
        if location == "/lake/a":
            raise WindowError("hdfs: is out of reach", "set `state:`")
        return run.stores[location]

    run._records = records  # type: ignore[method-assign]
    report = run.apply()
    assert outcomes(report) == {"a": "failed", "b": "applied"}
    assert (only(report, "a").message, only(report, "a").hint) == ("hdfs: is out of reach", "set `state:`")


# Failing tables


def test_a_failing_table_does_not_stop_the_others() -> None:
    run = Run().tables("abc")

    def fail(table: FakeTable, _sql: str) -> None:
        if table.live.location == "/lake/a":
            raise EngineError("no", "", "SOME_CLASS")

    run.engine.before = fail
    report = run.apply()
    assert outcomes(report) == {"a": "failed", "b": "applied", "c": "applied"}
    assert (only(report, "a").message, report.exit_code) == ("[SOME_CLASS] no", 5)
    assert run.released()


class PanicException(BaseException):
    """As Rust's libraries raise it."""

    __module__ = "pyo3_runtime"


@pytest.mark.parametrize("error", [RuntimeError, PanicException])
def test_an_unforeseen_error_at_one_table_leaves_the_report_of_the_others(
    error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(parallel=1).tables("abc")
    real = Renewer

    def renewer(lease: Lease, **more: Any) -> Any:
        if str(lease.record.epoch) == "1" and run.kinds("b") == ["acquire", "ann"] and not run.kinds("c"):
            raise error("can't start new thread")
        return real(lease, **more)

    monkeypatch.setattr(lease_module, "Renewer", renewer)
    report = run.apply()
    assert outcomes(report) == {"a": "applied", "b": "failed", "c": "applied"}
    assert only(report, "b").message == f"unexpected error: {error.__name__}: can't start new thread"
    assert (report.exit_code, run.released()) == (5, True)


def test_refused_and_unreadable_tables_are_left_out_whole() -> None:
    failures = (TableFailure(name="delta.`/lake/x`", message="gone"),)
    run = Run(failures=failures).tables("a")
    run.lake.add("delta.`/lake/p`", partition_columns=("day",))
    run.stores["/lake/p"] = MemoryRecords()
    report = run.apply(_mixed(run))
    assert outcomes(report) == {"a": "applied", "p": "refused"}
    refused = only(report, "p")
    assert refused.message.startswith("partitioning: it rewrites all data of the table")
    assert (refused.refusals[0].change, refused.commits, run.kinds("p")) == ("partitioning", (), [])
    assert (report.failures, report.exit_code) == (failures, 5)


def _mixed(run: Run) -> Plan:
    first, second = run.lake.tables.values()
    policy = {"isolation": "Serializable"}
    refused = run._table(second, {**policy, "partitioning": "none"})
    return plan_of(run._table(first, policy), refused, failures=run.failures)


def test_one_table_under_two_names_is_refused_before_anything() -> None:
    run = Run().tables("ab")
    first, second = run.plan().tables
    plan = plan_of(first, replace(second, location="file:///lake/a/"))
    with pytest.raises(PlanFileError, match="are one table"):
        run.apply(plan)
    with pytest.raises(PlanFileError, match="are one table"):
        run.apply(plan_of(first, first))
    assert (run.engine.sent, run.kinds("a")) == ([], [])


# Every exit


class Gone(BaseException):
    pass


@pytest.mark.parametrize("step", ["leased", "fresh", "before closed-set", "after closed-set", "verify"])
@pytest.mark.parametrize("error", [Gone, KeyboardInterrupt, ZeroDivisionError])
def test_leases_are_given_back_whatever_is_raised(step: str, error: type[BaseException]) -> None:
    run, others = Run().tables("abc"), set(threading.enumerate())
    plan = run.plan()

    def raises(event: Told) -> None:
        if event.step == step and "/b" in event.table:
            raise error

    run.notify = raises
    if error is ZeroDivisionError:
        assert only(run.apply(plan), "b").outcome is RunOutcome.FAILED
    else:
        with pytest.raises(error):
            run.apply(plan)
    assert run.released()
    assert all(not thread.name.startswith("tablectl") for thread in set(threading.enumerate()) - others)
    # The same command finishes what was left.
    run.notify = no_progress
    run.stop.clear()
    report = run.apply(plan)
    assert set(outcomes(report).values()) <= {"applied", "already"}
    assert [len(table.stamped) for table in run.lake.tables.values()] == [1, 1, 1]


def test_an_interrupt_in_the_waiting_thread_waits_for_what_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run().tables("a")
    run.lake.tables["/lake/a"].set_property("debug", "on")
    plan = run.plan(isolation="Serializable", properties={"debug": None})
    running, interrupted = Event(), Event()

    def slow(_table: FakeTable, _sql: str) -> None:
        running.set()
        assert run.stop.wait(30)
        assert run.kinds("a") == ["statement", "ann"]

    def wait(*_: Any, **__: Any) -> Any:
        assert running.wait(30)
        interrupted.set()
        raise KeyboardInterrupt

    run.engine.before = slow
    monkeypatch.setattr(scheduler, "wait", wait)
    with pytest.raises(KeyboardInterrupt):
        run.apply(plan)
    assert (run.stop.is_set(), len(run.engine.sent), run.released()) == (True, 1, True)
    assert len(run.lake.tables["/lake/a"].stamped) == 1


def test_a_stop_ends_the_run_between_tables_and_says_so() -> None:
    run = Run(parallel=1).tables("abc")
    run.notify = lambda event: run.stop.set() if "/a" in event.table and event.step == "verify" else None
    report = run.apply()
    assert outcomes(report) == {"a": "applied", "b": "interrupted", "c": "interrupted"}
    assert only(report, "b").message == "stopped before its turn"
    assert only(report, "b").hint == "run the same command again"
    assert (report.exit_code, run.released(), run.kinds("b")) == (5, True, [])


def test_a_stop_ends_the_watch_of_a_holder() -> None:
    run = Run().tables("ab")
    try_acquire(run.stores["/lake/b"], claim("ben"), run.clock)

    def stop() -> None:
        run.stop.set()
        raise StoppedError("stopped while waiting")

    run.clock.on_sleep = stop
    report = run.apply()
    assert outcomes(report) == {"a": "applied", "b": "no window"}
    assert (report.exit_code, run.kinds("a"), run.kinds("b")) == (5, ["release", "ann"], ["acquire", "ben"])


def test_the_systems_clock_is_interrupted_the_same_way() -> None:
    run = Run(clock=SystemClock()).tables("a")
    assert isinstance(try_acquire(run.stores["/lake/a"], claim("ben"), run.clock), Lease)
    run.stop.set()
    run.clock.interrupt()
    with pytest.raises(StoppedError):
        acquire(run.stores["/lake/a"], claim("ann"), run.clock)
    assert outcomes(run.apply()) == {"a": "interrupted"}


# Exit codes, by the text of docs/exit-codes.md

COMMIT = CommitRun(version=3, operation="SET TBLPROPERTIES", user="ann", at=0)
SENT = StatementRun(id="closed-set", sql="ALTER …", phase=Phase.CLOSED, milliseconds=3)
REFUSAL = Refusal(change="partitioning", reason="no", fix="none")
FAILURE = TableFailure(name="x", message="cannot be read")
ALONE = {
    RunOutcome.APPLIED: 0,
    RunOutcome.ALREADY: 0,
    RunOutcome.WAITING: 0,
    RunOutcome.STALE: 3,
    RunOutcome.REFUSED: 3,
    RunOutcome.NO_WINDOW: 4,
    RunOutcome.NO_WINDOW: 4,
    RunOutcome.HOOK_FAILED: 4,
    RunOutcome.NO_WINDOW: 4,
    RunOutcome.NO_WINDOW: 4,
    RunOutcome.NO_WINDOW: 4,
    RunOutcome.NO_WINDOW: 4,
    RunOutcome.FAILED: 1,
    RunOutcome.UNVERIFIED: 5,
    RunOutcome.UNVERIFIED: 5,
    RunOutcome.UNKNOWN: 5,
    RunOutcome.FAILED: 1,
    RunOutcome.ALREADY: 0,
    RunOutcome.INTERRUPTED: 1,
}


def table_runs() -> st.SearchStrategy[TableRun]:
    def made(outcome: RunOutcome, committed: bool, planned: bool) -> TableRun:
        makes_commits = outcome is RunOutcome.APPLIED or (
            committed and outcome not in {RunOutcome.ALREADY, RunOutcome.NO_WINDOW} and not planned
        )
        refusals = (REFUSAL,) if planned and outcome is RunOutcome.REFUSED else ()
        commits = (COMMIT,) if makes_commits and not refusals else ()
        return TableRun(name="t", outcome=outcome, commits=commits, refusals=refusals)

    return st.builds(made, st.sampled_from(RunOutcome), st.booleans(), st.booleans())


def report_of(tables: list[TableRun], failures: int = 0) -> RunReport:
    return RunReport(run="r", plan="d", tables=tuple(tables), failures=(FAILURE,) * failures)


@given(st.lists(table_runs(), max_size=5), st.integers(0, 2))
def test_the_exit_code_follows_the_design(tables: list[TableRun], failures: int) -> None:
    code = report_of(tables, failures).exit_code
    good = [table for table in tables if ALONE[table.outcome] == 0]
    bad = [table for table in tables if table not in good]
    if not bad and not failures:
        assert code == 0
    elif any(table.commits for table in tables):
        assert code == 5  # once an apply has committed anything, whatever goes wrong later is 5
    elif good and all(table.refusals for table in bad):
        assert code == 5  # the plan's refusals and unreadable tables, next to others that are as declared
    else:
        holds = {ALONE[table.outcome] for table in bad} | ({1} if failures else set())
        assert code == next(each for each in (1, 5, 4, 3, 2) if each in holds)


@pytest.mark.parametrize("outcome", list(RunOutcome))
def test_the_exit_code_of_one_table(outcome: RunOutcome) -> None:
    assert report_of([TableRun(name="t", outcome=outcome)]).exit_code == ALONE[outcome]


@pytest.mark.parametrize(
    ("outcome", "other"), [pair for pair in product(RunOutcome, [RunOutcome.APPLIED]) if ALONE[pair[0]] != 0]
)
def test_next_to_an_applied_table_every_trouble_is_a_partial_run(outcome: RunOutcome, other: RunOutcome) -> None:
    tables = [TableRun(name="a", outcome=other, commits=(COMMIT,)), TableRun(name="b", outcome=outcome)]
    assert report_of(tables).exit_code == 5


def test_refusals_of_the_plan_alone_are_refused_and_unreadable_tables_alone_an_error() -> None:
    refused = TableRun(name="a", outcome=RunOutcome.REFUSED, refusals=(REFUSAL,))
    assert report_of([refused]).exit_code == 3
    assert report_of([], 1).exit_code == 1
    assert report_of([refused], 1).exit_code == 1
    assert report_of([]).exit_code == 0


def test_a_window_that_could_not_be_opened_is_4_as_long_as_no_commit_was_made() -> None:
    held = TableRun(name="a", outcome=RunOutcome.NO_WINDOW)
    already = TableRun(name="b", outcome=RunOutcome.ALREADY)
    assert report_of([held, already]).exit_code == 4


def test_what_the_engine_took_counts_as_committed_though_the_log_cannot_be_read() -> None:
    failed = TableRun(name="a", outcome=RunOutcome.FAILED, statements=(SENT,))
    assert (report_of([failed]).committed, report_of([failed]).exit_code) == (True, 5)
    lost = replace(failed, statements=(replace(SENT, error="no answer"),))
    assert report_of([lost]).exit_code == 1


def test_a_run_whose_disk_goes_away_after_a_statement_is_partial() -> None:
    run = Run().tables("a")

    def down(table: FakeTable, _sql: str) -> None:
        table.broken = "the disk is gone"

    run.engine.after = down
    report = run.apply()
    assert (outcomes(report), report.exit_code) == ({"a": "failed"}, 5)
