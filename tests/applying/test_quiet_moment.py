"""``--when quiet``: each table starts at a moment when few writes are expected to fail, or not at all."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import MappingProxyType

import pytest

from tablectl.applying.quiet_moment import (
    HARMLESS,
    QuietForecast,
    WaitUntil,
    decide,
    duration_text,
    guarded_names,
    judged,
)
from tablectl.applying.waits import GO, End
from tablectl.conflicts.past_writers import past_writers
from tablectl.delta.protocol import Client
from tablectl.leases.guards import GuardMode
from tablectl.model.calendar import Rule
from tablectl.model.commit import Commit
from tablectl.model.expected_loss import ExpectedLoss
from tablectl.model.run_report import QuietStart, RunOutcome, TableRun
from tablectl.policies.config import WindowConfig
from tests.applying.fake_lake import FakeTable
from tests.applying.lake_run import Run, only, outcomes
from tests.applying.writers import FakeGuard
from tests.conflicts.test_past_writers import BASIS, SET
from tests.leases.lease_fakes import MemoryRecords

HOUR = 3600.0
NOW = datetime(2026, 8, 22, 10, 16, 40, tzinfo=UTC)
"""When the clock of the tests starts: a Saturday."""
AFTER = datetime(2026, 8, 22, 10, 30, tzinfo=UTC)
"""When the run in flight usually commits, as it does with ``going_on``."""
SPARK = Client("delta-spark", (4, 4, 0))


def run(
    names: str = "a", within: float = 6 * HOUR, limit: float = 0.1, allow: tuple[Rule, ...] = (), wait: float = 0
) -> Run:
    config = WindowConfig(quiet=limit, allow=allow, drain=0)
    return Run(config=config, wait=wait, within=within).tables(names)


def writes(table: FakeTable, starts: Callable[[int], bool], minutes: float = 30, days: int = 20) -> None:
    """A MERGE of some minutes in each hour of the day for which ``starts`` holds, for some days until now."""
    first = NOW.replace(minute=0, second=0) - timedelta(days=days)
    hours = (first + timedelta(hours=hour) for hour in range(days * 24 + 1))
    took = MappingProxyType({"executionTimeMs": str(round(minutes * 60_000))})
    for begin in hours:
        at = begin + timedelta(minutes=minutes)
        if starts(begin.hour) and at <= NOW:
            merged(table, at, took)


def merged(table: FakeTable, at: datetime, metrics: MappingProxyType[str, str], user: str = "etl") -> None:
    version = table.live.version + 1
    table.states.append(replace(table.live, version=version))
    table.rows.append(table.rows[-1] + 1)
    table.history.append(
        Commit(
            version,
            round(at.timestamp() * 1000),
            "MERGE",
            user,
            SPARK,
            changes_data=True,
            metrics=metrics,
            read_version=version - 1,
        )
    )


def daytime(hour: int) -> bool:
    return 6 <= hour < 14


def started(run: Run) -> dict[str, datetime]:
    """When leases were taken."""
    times: dict[str, datetime] = {}

    def note(event: object) -> None:
        if getattr(event, "step", "") == "leased":
            times[getattr(event, "table", "")[-2]] = run.clock.utc()

    run.notify = note
    return times


def going_on(run: Run, name: str = "a", busy: Callable[[int], bool] = daytime, minutes: float = 30) -> None:
    """The job goes on while the apply waits."""
    took = MappingProxyType({"executionTimeMs": str(round(minutes * 60_000))})
    done = [NOW]

    def write() -> None:
        now = run.clock.utc()
        first = NOW.replace(minute=0, second=0)
        for hour in range(48):
            at = first + timedelta(hours=hour, minutes=minutes)
            if busy((first + timedelta(hours=hour)).hour) and done[0] < at <= now:
                merged(one(run, name), at, took)
                done[0] = at

    run.clock.on_sleep = write


def one(run: Run, name: str = "a") -> FakeTable:
    return run.lake.tables[f"/lake/{name}"]


# Runs


def test_a_busy_table_waits_for_the_run_in_flight_and_a_quiet_one_does_not() -> None:
    both = run("ab")
    writes(one(both), daytime)
    going_on(both)
    writes(one(both, "b"), lambda hour: not daytime(hour))
    times = started(both)
    report = both.apply()
    assert (outcomes(report), report.exit_code) == ({"a": "applied", "b": "applied"}, 0)
    assert times == {"b": NOW, "a": AFTER}


def test_nothing_is_held_while_a_table_waits() -> None:
    busy = run()
    writes(one(busy), daytime)
    seen: list[tuple[list[str], str]] = []
    busy.clock.on_sleep = lambda: seen.append((busy.kinds("a"), busy.gate("a")))
    busy.apply()
    assert set(map(str, seen)) == {str(([], "open"))}


def test_the_report_tells_expected_and_actual() -> None:
    busy = run()
    writes(one(busy), daytime)
    going_on(busy)
    table = only(busy.apply(), "a")
    assert table.quiet == QuietStart(
        waited_ms=800_000,
        limit=0.1,
        failed=0.0,
        seconds=0.0,
        free="2026-08-22 10:30:00 to 10:58:48 UTC",
        actual=len(table.possible_failures),
    )


def test_what_waits_is_reported() -> None:
    busy = run()
    writes(one(busy), daytime)
    going_on(busy)
    busy.apply()
    words = {event.words for event in busy.told if event.step == "quiet"}
    assert words == {"the next free moment is 10:30:00 to 10:58:48 UTC, after MERGE by etl"}


def test_without_a_quiet_moment_the_table_is_not_started() -> None:
    busy = run(within=600)
    writes(one(busy), daytime)
    report = busy.apply()
    table = only(report, "a")
    assert (outcomes(report), report.exit_code) == ({"a": "no window"}, 4)
    assert table.message == (
        "no quiet moment within 10 min: none is free of the runs of known jobs (MERGE by etl: 160 runs, 30 min each, "
        "every 60 min); the best is Saturday 10:00–11:00 UTC with 0.5 failed writes, 882 s of work"
    )
    assert table.hint.startswith("wait until Saturday 10:00–11:00 UTC (less than 0.1) with `--within 1h`; ")
    assert (busy.engine.sent, busy.kinds("a"), busy.clock.now) == ([], [], 1000)


def test_a_steady_stream_ends_at_once_because_no_hour_is_below_the_limit() -> None:
    steady = run(within=48 * HOUR)
    writes(one(steady), lambda _hour: True, minutes=60)
    report = steady.apply()
    table = only(report, "a")
    assert (outcomes(report), steady.clock.now, steady.engine.sent) == ({"a": "no window"}, 1000, [])
    assert "than 0.1 failed writes expected, and MERGE by etl leaves no time between two writes; " in table.message
    assert table.message.endswith("with 1.0 failed writes, 3,588 s of work")
    assert table.hint == (
        "no hour of the week is below the limit: guard the writers, so that they wait; give a stream a longer trigger; "
        "set `window.quiet: 1.1` in tablectl.yaml, or leave out `--when quiet`"
    )


def test_the_limit_of_the_hint_starts_a_steady_stream() -> None:
    steady = run(limit=1.1)
    writes(one(steady), lambda _hour: True, minutes=60)
    times = started(steady)
    assert (outcomes(steady.apply()), times["a"]) == ({"a": "applied"}, NOW)


def test_the_time_of_the_hint_reaches_the_quiet_hour() -> None:
    busy = run(within=4 * HOUR)
    writes(one(busy), daytime)
    assert outcomes(busy.apply()) == {"a": "applied"}


def test_the_others_are_applied_and_the_run_is_partial() -> None:
    both = run("ab", within=600)
    writes(one(both), daytime)
    report = both.apply()
    assert (outcomes(report), report.exit_code) == ({"a": "no window", "b": "applied"}, 5)


def test_a_burst_in_a_quiet_hour_delays_the_start() -> None:
    calm = run()
    writes(one(calm), lambda hour: hour == 2)
    for minutes in range(1, 9):
        merged(one(calm), NOW - timedelta(minutes=9 - minutes), MappingProxyType({"executionTimeMs": "60000"}))
    times = started(calm)
    assert outcomes(calm.apply()) == {"a": "applied"}
    assert timedelta(minutes=5) < times["a"] - NOW <= timedelta(minutes=10)


def test_a_burst_that_does_not_end_is_waited_for_until_the_limit() -> None:
    calm = run(within=HOUR)
    writes(one(calm), lambda hour: hour == 2)

    def write() -> None:
        merged(one(calm), calm.clock.utc(), MappingProxyType({"executionTimeMs": "60000"}))

    write()
    calm.clock.on_sleep = write
    assert outcomes(calm.apply()) == {"a": "no window"}
    assert 600 < calm.clock.now - 1000 <= HOUR
    assert calm.engine.sent == []


def test_too_short_a_history_starts_once_nothing_was_written_for_ten_minutes() -> None:
    new = run()
    merged(one(new), NOW - timedelta(minutes=4), MappingProxyType({"executionTimeMs": "1000"}))
    times = started(new)
    table = only(new.apply(), "a")
    assert (table.outcome, times["a"] - NOW) == (RunOutcome.APPLIED, timedelta(minutes=6))
    assert new.told[0].words == "writes were committed in the last 10 minutes"
    assert table.quiet is not None
    assert (table.quiet.failed, table.quiet.unknown) == (0.0, "")


def test_the_calendar_bounds_it() -> None:
    nights = (Rule(cron="30 13 * * *", duration=timedelta(hours=2)),)
    busy = run(allow=nights)
    writes(one(busy), daytime)
    going_on(busy)
    times = started(busy)
    assert outcomes(busy.apply()) == {"a": "applied"}
    assert times["a"] == datetime(2026, 8, 22, 13, 30, tzinfo=UTC)


def test_a_calendar_that_never_meets_a_quiet_hour_ends_it() -> None:
    mornings = (Rule(cron="5 7-13 * * *", duration=timedelta(minutes=20)),)
    busy = run(allow=mornings, within=3 * HOUR)
    writes(one(busy), daytime)
    assert outcomes(busy.apply()) == {"a": "no window"}


def test_outside_the_calendar_it_waits_for_the_calendar() -> None:
    nights = (Rule(cron="15 12 * * *", duration=timedelta(hours=2)),)
    calm = run(allow=nights)
    writes(one(calm), lambda hour: hour == 2)
    times = started(calm)
    assert outcomes(calm.apply()) == {"a": "applied"}
    assert times["a"] == datetime(2026, 8, 22, 12, 15, tzinfo=UTC)


def test_a_calendar_that_does_not_open_in_time_is_said() -> None:
    nights = (Rule(cron="0 22 * * *", duration=timedelta(hours=2)),)
    table = only(run(allow=nights, within=HOUR).apply(), "a")
    assert table.message == "no quiet moment within 1 h: the calendar permits none of them"


def test_statements_that_fail_no_write_start_at_once() -> None:
    busy = run()
    writes(one(busy), lambda _hour: True, minutes=59)
    times = started(busy)
    report = busy.apply(busy.plan(deletion_vectors="enabled"))
    assert (outcomes(report), times["a"]) == ({"a": "applied"}, NOW)


def test_a_writer_with_a_guard_does_not_count() -> None:
    busy = run()
    busy.config = replace(busy.config, drain=300)
    writes(one(busy), daytime)
    guard = FakeGuard(busy.stores["/lake/a"], mode=GuardMode.REWRITE, writer="etl, host 7", ttl=60)
    busy.clock.later(1, guard.end)
    times = started(busy)
    assert outcomes(busy.apply()) == {"a": "applied"}
    assert times["a"] == NOW


def test_tables_that_share_a_window_wait_for_a_moment_that_is_quiet_for_all() -> None:
    both = run("ab", within=7 * HOUR)
    both.together = ("/lake/*",)
    writes(one(both), daytime)
    writes(one(both, "b"), lambda hour: hour in {14, 15})
    going_on(both)
    times = started(both)
    assert outcomes(both.apply()) == {"a": "applied", "b": "applied"}
    assert set(times.values()) == {AFTER}


def test_a_table_that_is_as_planned_already_waits_for_no_quiet_moment() -> None:
    busy = run()
    writes(one(busy), daytime)
    plan = busy.plan()
    one(busy).set_property("delta.isolationLevel", "Serializable")
    began = busy.clock.now
    assert outcomes(busy.apply(plan)) == {"a": "already"}
    assert busy.clock.now - began < HOUR


def test_a_stopped_run_changes_nothing() -> None:
    busy = run()
    writes(one(busy), daytime)
    busy.clock.on_sleep = busy.stop.set
    report = busy.apply()
    assert outcomes(report) == {"a": "interrupted"}
    assert only(report, "a").message == "stopped while it waited for a quiet moment"


def test_one_failed_read_starts_no_table_in_a_busy_hour() -> None:
    busy = run()
    writes(one(busy), daytime)
    plan = busy.plan()
    one(busy).broken = "503"
    busy.clock.later(1, lambda: setattr(one(busy), "broken", ""))
    times = started(busy)
    assert outcomes(busy.apply(plan)) == {"a": "applied"}
    assert times["a"] > AFTER
    words = [event.words for event in busy.told if event.step == "quiet"]
    assert words[0] == "whether this moment is quiet is unknown: /lake/a: 503"


@pytest.mark.parametrize(("within", "waited"), [(6 * HOUR, 600), (90, 90)])
def test_a_table_that_stays_unreadable_fails_before_the_time_of_within_is_over(within: float, waited: float) -> None:
    busy = run(within=within)
    plan = busy.plan()
    one(busy).broken = "no such bucket"
    table = only(busy.apply(plan), "a")
    assert (table.outcome, table.message) == (RunOutcome.FAILED, "/lake/a: no such bucket")
    assert busy.clock.now == 1000 + waited


def test_a_lease_that_is_held_for_a_moment_is_polled_without_asking_again() -> None:
    calm = run()
    writes(one(calm), lambda hour: hour == 2)
    ben = calm.hold("a")
    calm.clock.on_sleep = lambda: None
    calm.clock.later(2, ben.release)
    assert outcomes(calm.apply()) == {"a": "applied"}


# Between two runs, under the lease


def stream(run: Run, cycle: float = 10, lasts: float = 3) -> None:
    """A stream without a guard that commits every few seconds, before the apply and while it waits."""
    took = MappingProxyType({"executionTimeMs": str(round(lasts * 1000))})
    at = [NOW - timedelta(seconds=200 * cycle)]

    def write() -> None:
        while at[0] <= run.clock.utc():
            merged(one(run), at[0], took, "stream")
            at[0] += timedelta(seconds=cycle)

    write()
    run.clock.on_sleep = write


def in_flight(run: Run, moment: float, cycle: float = 10, lasts: float = 3) -> bool:
    """Whether a run of the stream is in flight at a moment."""
    return (moment - NOW.timestamp()) % cycle > cycle - lasts


def test_the_blocking_statement_goes_between_two_runs_although_the_drain_took_time() -> None:
    busy = run()
    busy.config = replace(busy.config, drain=300)
    stream(busy)
    plan = busy.plan()
    guard = FakeGuard(busy.stores["/lake/a"], mode=GuardMode.ANY, writer="loader, host 7", ttl=600)
    write = busy.clock.on_sleep
    ends = busy.clock.utc() + timedelta(seconds=48)  # inside a run

    def sleep() -> None:
        write()
        if busy.clock.utc() >= ends and not guard.ended:
            guard.end()

    busy.clock.on_sleep = sleep
    sent: list[float] = []
    busy.engine.before = lambda *_: sent.append(busy.clock.utc().timestamp())
    report = busy.apply(plan)
    assert outcomes(report) == {"a": "applied"}
    assert sent
    assert not any(in_flight(busy, each) for each in sent)


# Decisions

WITHIN = 6 * HOUR
LIMIT = 0.1
UNTIL = NOW + timedelta(hours=6)


def always(moment: datetime) -> datetime:
    return moment


def week(busy: Callable[[int], bool], failed: float = 3.0) -> QuietForecast:
    losses = tuple(ExpectedLoss(failed * busy(hour % 24), 60.0 * busy(hour % 24)) for hour in range(168))
    return QuietForecast(losses, ExpectedLoss())


def test_statements_without_harm_start_now() -> None:
    assert decide([HARMLESS], NOW, UNTIL, WITHIN, LIMIT, always) == GO


def test_the_last_moment_counts_even_if_it_has_passed() -> None:
    assert decide([HARMLESS], NOW, NOW - timedelta(minutes=5), WITHIN, LIMIT, always) == GO


def test_the_first_quiet_hour_is_chosen_not_the_quietest() -> None:
    forecast = QuietForecast(
        tuple(ExpectedLoss({10: 3.0, 11: 0.05}.get(hour % 24, 0.0)) for hour in range(168)), ExpectedLoss()
    )
    found = decide([forecast], NOW, UNTIL, WITHIN, LIMIT, always)
    assert isinstance(found, WaitUntil)
    assert found.moment == datetime(2026, 8, 22, 11, tzinfo=UTC)


def test_two_tables_below_the_limit_may_be_above_it_together() -> None:
    half = week(lambda _hour: True, failed=0.06)
    assert decide([half], NOW, UNTIL, WITHIN, LIMIT, always) == GO
    assert isinstance(decide([half, half], NOW, UNTIL, WITHIN, LIMIT, always), End)


def test_a_moment_after_the_last_one_is_none() -> None:
    found = decide([week(lambda hour: hour == 10)], NOW, NOW + timedelta(minutes=40), WITHIN, LIMIT, always)
    assert isinstance(found, End)
    assert "3.0 failed writes, 60 s of work" in found.message


def test_writes_that_contradict_a_quiet_hour_are_told() -> None:
    burst = replace(week(lambda _hour: False), recent=ExpectedLoss(0.9, 60.0))
    until = NOW + timedelta(seconds=50)
    assert isinstance(decide([burst], NOW, NOW + timedelta(minutes=5), WITHIN, LIMIT, always), WaitUntil)
    assert decide([burst], NOW, until, WITHIN, LIMIT, always) == End(
        RunOutcome.NO_WINDOW,
        "no quiet moment within 6 h: the hours are quiet by the past writes, but by those of the last ten minutes it "
        "would cost 0.9 failed writes, 60 s of work, and the limit is 0.1",
        "wait longer (`--within`), set a higher `window.quiet`, or leave out `--when quiet`",
    )
    new = replace(HARMLESS, week=(), recent=ExpectedLoss(0.9, 60.0), unknown="3 writes in 30 days")
    found = decide([new], NOW, until, WITHIN, LIMIT, always)
    assert isinstance(found, End)
    assert found.message.endswith("there were always writes in the last ten minutes (3 writes in 30 days)")


def test_a_calendar_with_hours_that_are_not_quiet_names_the_best_of_them() -> None:
    forecast = QuietForecast(
        tuple(ExpectedLoss({11: 0.4, 12: 0.2, 13: 0.0}.get(hour % 24, 3.0), 9.0) for hour in range(168)), ExpectedLoss()
    )

    def opening(moment: datetime) -> datetime | None:
        return moment if moment.hour in {10, 11, 12} else None if moment.hour > 12 else moment.replace(hour=10)

    found = decide([forecast], NOW, UNTIL, WITHIN, LIMIT, opening)
    assert isinstance(found, End)
    assert found.message.endswith("the best is Saturday 12:00–13:00 UTC with 0.2 failed writes, 9 s of work")
    assert found.hint.startswith("no hour of the week is below the limit: ")
    assert "`window.quiet: 0.3`" in found.hint


@pytest.mark.parametrize(("seconds", "text"), [(21_600, "6 h"), (5400, "90 min"), (86_400, "24 h")])
def test_durations_are_told_in_hours_or_minutes(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


def test_guards_that_cannot_be_read_exclude_no_writer() -> None:
    records = MemoryRecords()
    FakeGuard(records, writer="nightly merge, ann@host 7")
    assert guarded_names(records) == {"nightly merge, ann@host 7", "nightly merge"}
    records.down = True
    assert guarded_names(records) == frozenset()


def test_a_retried_table_keeps_its_moment() -> None:
    first = TableRun(name="a", outcome=RunOutcome.NO_WINDOW, epoch=1, quiet=QuietStart(waited_ms=5, limit=0.1))
    again = TableRun(name="a", outcome=RunOutcome.NO_WINDOW)
    assert again.following(first).quiet == first.quiet


# The jobs that a quiet moment protects


def asked(history: Sequence[Commit], moment: datetime) -> object:
    """What an apply decides at a moment from the commits until then."""
    commits = tuple(each for each in reversed(history) if each.timestamp <= moment.timestamp() * 1000)
    past = past_writers(commits, BASIS, "oss", moment.timestamp())
    forecast = judged(past, [SET], moment.timestamp(), frozenset())
    return decide([forecast], moment, moment + timedelta(hours=24), 24 * HOUR, LIMIT, always)


def nightly_merge(runs: int, days: Collection[int] = range(7), hours: float = 4) -> list[Commit]:
    """A MERGE from 01:00 on, until the night before a Monday."""
    history: list[Commit] = []
    monday = datetime(2026, 8, 24, tzinfo=UTC)
    for day in range(30, 0, -1):
        start = monday - timedelta(days=day) + timedelta(hours=1)
        if start.weekday() in days and day <= runs * 7 / len(days):
            history.append(merge(start + timedelta(hours=hours), hours * 60))
    return history


def merge(at: datetime, minutes: float) -> Commit:
    """A MERGE that ends at a moment."""
    version = round(at.timestamp())
    took = MappingProxyType({"executionTimeMs": str(round(minutes * 60_000))})
    return Commit(version, version * 1000, "MERGE", "etl", SPARK, changes_data=True, metrics=took)


MONDAY = datetime(2026, 8, 24, tzinfo=UTC)


@pytest.mark.parametrize("runs", [3, 5, 29])
def test_no_apply_starts_while_a_nightly_job_runs(runs: int) -> None:
    job = nightly_merge(runs)
    for quarter in range(4, 20):
        found = asked(job, MONDAY + timedelta(minutes=15 * quarter))
        assert isinstance(found, WaitUntil)
        assert found.moment >= MONDAY + timedelta(hours=5)
        assert found.words.endswith("UTC, after MERGE by etl")
    assert asked(job, MONDAY + timedelta(hours=9)) == GO


def test_a_job_of_weekdays_does_not_block_a_sunday() -> None:
    job = nightly_merge(20, days=range(5))
    sunday = MONDAY - timedelta(days=1)
    assert asked(job, sunday + timedelta(hours=3)) == GO
    assert isinstance(asked(job, MONDAY + timedelta(hours=3)), WaitUntil)


def test_a_late_job_is_waited_for_and_one_that_committed_is_not() -> None:
    job = nightly_merge(10, hours=1)
    late = MONDAY + timedelta(hours=2, minutes=40)
    assert isinstance(asked(job, late), WaitUntil)
    job.append(merge(MONDAY + timedelta(hours=1, minutes=20), 20))
    assert asked(job, MONDAY + timedelta(hours=1, minutes=40)) == GO


def test_a_job_that_stopped_blocks_no_later_start() -> None:
    job = nightly_merge(10)
    assert asked(job, MONDAY + timedelta(days=6, hours=3)) == GO


def test_a_load_that_began_just_now_is_waited_for() -> None:
    new = [merge(MONDAY, 0.1)]
    assert asked(new, MONDAY + timedelta(minutes=3)) == WaitUntil(
        MONDAY + timedelta(minutes=4), "writes were committed in the last 10 minutes"
    )
    assert asked(new, MONDAY + timedelta(minutes=11)) == GO
