"""``--wait``: tables whose window could not be opened are tried again."""

from __future__ import annotations

from datetime import timedelta

from tablectl.leases.clock import StoppedError
from tablectl.leases.guards import GuardMode
from tablectl.model.calendar import Rule
from tablectl.model.run_report import RunOutcome
from tablectl.policies.config import WindowConfig
from tests.applying.lake_run import Run, only, outcomes
from tests.applying.writers import FakeGuard

HOUR = 3600.0


def run(names: str = "a", wait: float = HOUR, drain: int = 0, allow: tuple[Rule, ...] = ()) -> Run:
    return Run(config=WindowConfig(drain=drain, allow=allow), wait=wait).tables(names)


def leased(run: Run) -> list[float]:
    """When leases will have been taken, in seconds from the start."""
    times: list[float] = []
    run.notify = lambda event: times.append(round(run.clock.now - 1000)) if event.step == "leased" else None
    return times


def test_without_a_wait_there_is_one_try() -> None:
    one = run(wait=0)
    FakeGuard(one.stores["/lake/a"], ttl=600).lives(one.clock)
    times = leased(one)
    report = one.apply()
    assert (outcomes(report), times) == ({"a": "no window"}, [1])


def test_the_pauses_grow_and_the_last_try_is_at_the_end() -> None:
    one = run(wait=3 * HOUR)
    FakeGuard(one.stores["/lake/a"], ttl=80_000).lives(one.clock)
    times = leased(one)
    report = one.apply()
    assert outcomes(report) == {"a": "no window"}
    assert [round(each / 60) for each in times] == [0, 1, 6, 16, 46, 106, 166, 180]


def test_it_ends_with_the_first_that_succeeds() -> None:
    one = run()
    one.clock.later(200, FakeGuard(one.stores["/lake/a"], ttl=600).lives(one.clock).end)
    times = leased(one)
    report = one.apply()
    assert (outcomes(report), report.exit_code) == ({"a": "applied"}, 0)
    assert times == [1, 62, 362]
    assert one.released()


def test_no_lease_is_kept_in_between() -> None:
    one = run()
    FakeGuard(one.stores["/lake/a"], ttl=80_000).lives(one.clock)
    kept: list[str] = []
    one.notify = lambda event: kept.append(one.kinds("a")[0]) if event.step == "again" else None
    one.apply()
    assert set(kept) == {"release"}


def test_held_tables_are_tried_again_and_the_others_are_not() -> None:
    one = run("ab")
    ben = one.hold("b")
    one.clock.later(100, ben.release)
    one.clock.on_sleep, renew = (lambda: None), one.clock.on_sleep
    one.clock.on_sleep = lambda: None if ben._released else renew()
    report = one.apply()
    assert outcomes(report) == {"a": "applied", "b": "applied"}
    assert [len(table.stamped) for table in one.lake.tables.values()] == [1, 1]


def test_what_failed_is_not_tried_again() -> None:
    one = run("ab")
    one.stores["/lake/b"].down = True
    assert outcomes(one.apply()) == {"a": "applied", "b": "failed"}
    assert one.clock.now == 1000


def test_outside_the_calendar_it_wakes_when_that_opens() -> None:
    """Rather than at the end of a pause. The tests' day begins at 10:16:40."""
    noon = Rule(cron="0 12 * * *", duration=timedelta(hours=1))
    one = run(wait=3 * HOUR, allow=(noon,))
    times = leased(one)
    report = one.apply()
    assert outcomes(report) == {"a": "applied"}
    assert times == [12 * HOUR - 10 * HOUR - 1000]


def test_a_calendar_that_opens_too_late_is_not_waited_for() -> None:
    noon = Rule(cron="0 12 * * *", duration=timedelta(hours=1))
    one = run(wait=HOUR, allow=(noon,))
    assert outcomes(one.apply()) == {"a": "no window"}
    assert one.clock.now == 1000


def test_a_stop_ends_the_waiting() -> None:
    one = run()
    FakeGuard(one.stores["/lake/a"], ttl=80_000).lives(one.clock)
    one.clock.later(90, one.stop.set)
    report = one.apply()
    assert outcomes(report) == {"a": "no window"}
    assert one.clock.now < 1093
    assert one.released()


def test_so_does_an_interrupted_clock() -> None:
    one = run()
    FakeGuard(one.stores["/lake/a"], ttl=80_000).lives(one.clock)

    def stop() -> None:
        raise StoppedError("stopped while waiting")

    one.clock.later(30, stop)
    assert outcomes(one.apply()) == {"a": "no window"}


def test_a_waiting_run_names_what_it_waits_for() -> None:
    one = run(wait=91)
    FakeGuard(one.stores["/lake/a"], ttl=80_000).lives(one.clock)
    one.apply()
    words = [event.words for event in one.told if event.step == "again"]
    assert set(words) == {
        "writers did not finish in time: trying again in 1 min",
        "writers did not finish in time: trying again in 30 s",
    }
    assert len(words) >= 60


def test_the_report_tells_of_all_tries() -> None:
    """The first one made a commit that fails no one, and its writer ended only for the second."""
    one = Run(config=WindowConfig(drain=0), wait=HOUR).tables("a", clustering=(("id",),))
    writer = FakeGuard(one.stores["/lake/a"], mode=GuardMode.APPEND, ttl=80_000).lives(one.clock)
    one.clock.later(30, writer.end)
    one.clock.later(40, lambda: one.lake.tables["/lake/a"].commit("WRITE", "stream"))
    report = one.apply(one.plan(clustering=("day",), isolation="Serializable"))
    table = only(report, "a")
    assert (table.outcome, report.exit_code) == (RunOutcome.APPLIED, 0)
    assert set(table.changed) == {"clustering", "isolation"}
    assert (table.already, len(table.commits), len(table.statements)) == ((), 2, 2)
    assert table.epoch == 3  # the second lease after a look at whether the writer is alive


def test_a_second_try_that_finds_all_done_is_still_applied() -> None:
    one = Run(config=WindowConfig(drain=0), wait=HOUR).tables("a", clustering=(("id",),))
    FakeGuard(one.stores["/lake/a"], mode=GuardMode.APPEND, ttl=80_000).lives(one.clock)
    one.clock.later(30, lambda: one.lake.tables["/lake/a"].set_property("delta.isolationLevel", "Serializable"))
    table = only(one.apply(one.plan(clustering=("day",), isolation="Serializable")), "a")
    assert (table.outcome, len(table.commits)) == (RunOutcome.APPLIED, 1)
