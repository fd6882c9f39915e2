"""``--canary``: which tables start first, what is seen of them, and what stops the others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tablectl.applying.canary import choose
from tablectl.applying.events import RunEvent
from tablectl.model.commit import AppTransaction
from tablectl.model.errors import ExitCode
from tablectl.model.plan import Plan
from tablectl.model.run_report import CanaryRun, CanaryTable, RunReport
from tablectl.model.stream_progress import StreamPosition, StreamWriter, UnknownStream
from tablectl.policies.config import WindowConfig
from tablectl.storage.table_log import DataFile
from tests.applying.fake_lake import FakeTable
from tests.applying.lake_run import Run, outcomes

MINUTE = 60
NAMES = {name: f"delta.`/lake/{name}`" for name in "abcdef"}


def config(tables: int = 1, minutes: float = 30, failed: int = 1, silent: int = 0) -> WindowConfig:
    return WindowConfig(canary=tables, soak=minutes, stop_if_failed=failed, stop_if_silent=silent)


def grouped(groups: str) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(NAMES[name] for name in group) for group in groups.split())


@pytest.fixture
def run() -> Run:
    """Three tables with equal changes, each written every five minutes by a job; the table ``a`` is the first."""
    made = Run(config=config(), table_groups=grouped("abc")).tables("abc")
    for table in made.lake.tables.values():
        wall = made.clock.utc().timestamp()
        past = [wall - (6 - number) * 5 * MINUTE for number in range(6)]
        table.at = lambda version, past=past: round(1000 * (past[version] if version < 6 else now(made)))  # type: ignore[misc]
        for _ in range(5):
            table.commit("WRITE", "etl")
    return made


def now(run: Run) -> float:
    return float(run.clock.utc().timestamp())


def table(run: Run, name: str) -> FakeTable:
    return run.lake.tables[f"/lake/{name}"]


def writes(run: Run, name: str, every: float, until: float) -> None:
    """A job that commits again and again after the run has begun."""
    for step in range(1, int(until / every) + 1):
        run.clock.later(step * every, lambda: table(run, name).commit("WRITE", "etl"))


def canary(report: RunReport) -> CanaryRun:
    assert report.canary is not None
    return report.canary


def test_the_others_start_once_the_first_table_was_watched(run: Run) -> None:
    began, started = run.clock.now, dict[str, float]()

    def note(event: RunEvent) -> None:
        started.setdefault(event.table[-2:-1], run.clock.now)

    run.notify = note
    writes(run, "a", 5 * MINUTE, 30 * MINUTE)
    report = run.apply()
    assert outcomes(report) == {"a": "applied", "b": "applied", "c": "applied"}
    assert started["b"] - began == pytest.approx(30 * MINUTE, abs=MINUTE)
    (seen,) = canary(report).tables
    assert (seen.table, seen.orphans, seen.silent, seen.stopped, seen.notes) == (NAMES["a"], 0, (), (), ())
    assert seen.writes
    assert not canary(report).reason
    assert report.exit_code is ExitCode.DONE


def test_files_of_failed_writes_stop_the_others(run: Run) -> None:
    writes(run, "a", 5 * MINUTE, 30 * MINUTE)
    run.clock.later(120, lambda: table(run, "a").unnamed.append(DataFile("part-1.parquet", 10, now(run))))
    report = run.apply()
    assert outcomes(report) == {"a": "applied", "b": "no window", "c": "no window"}
    assert report.exit_code is ExitCode.PARTIAL
    assert canary(report).reason.startswith("`--stop-if-failed 1` is reached, by 1: ")
    assert "1 data file that no commit names" in canary(report).reason
    assert canary(report).not_started == (NAMES["b"], NAMES["c"])
    assert canary(report).watched_ms < 10 * MINUTE * 1000


def test_a_file_of_a_write_that_still_runs_stops_nothing(run: Run) -> None:
    writes(run, "a", 5 * MINUTE, 30 * MINUTE)
    run.clock.later(29.9 * MINUTE, lambda: table(run, "a").unnamed.append(DataFile("part-1.parquet", 10, now(run))))
    report = run.apply()
    assert not canary(report).reason
    assert canary(report).tables[0].notes == (
        "1 data file without a commit is younger than 1 min, and may be of writes that still run",
    )


def test_a_writer_that_does_not_come_back_stops_the_others(run: Run) -> None:
    report = run.apply()
    assert canary(report).tables[0].silent == ("WRITE by etl",)
    assert outcomes(report)["b"] == "no window"
    assert canary(report).watched_ms <= 11 * MINUTE * 1000  # twice its gap of five minutes, and one look


def test_a_stream_that_does_not_come_back_has_stopped(run: Run) -> None:
    for number, commit in enumerate(table(run, "a").history[1:], 1):
        table(run, "a").history[number] = replace(commit, transactions=(AppTransaction("query", number),))
    run.config = config(failed=0, silent=1)
    report = run.apply()
    assert canary(report).tables[0].stopped == ("WRITE of query",)
    assert canary(report).tables[0].silent == ()
    assert canary(report).not_started


def test_a_table_that_nothing_writes_is_not_called_well() -> None:
    run = Run(config=config(), table_groups=grouped("abc")).tables("abc")
    report = run.apply()
    (seen,) = canary(report).tables
    assert seen.notes == ("nothing observed: no write was committed since the change",)
    assert outcomes(report)["b"] == "applied"


def test_a_writer_that_was_late_before_is_not_blamed_on_the_change(run: Run) -> None:
    table(run, "a").at = lambda version: round(
        1000 * (now(run) - (90 - 5 * version) * MINUTE if version < 6 else now(run))
    )
    table(run, "a").history = [
        replace(each, timestamp=table(run, "a").at(each.version)) for each in table(run, "a").history
    ]
    report = run.apply()
    assert canary(report).tables[0].silent == ()
    assert outcomes(report)["b"] == "applied"


def test_what_cannot_be_listed_is_unknown_and_stops_the_others_at_the_end(run: Run) -> None:
    writes(run, "a", 5 * MINUTE, 30 * MINUTE)
    table(run, "a").unlisted = "access is denied"
    report = run.apply()
    (seen,) = canary(report).tables
    assert seen.orphans is None
    assert seen.unknown == ("its files cannot be listed: /lake/a: access is denied",)
    assert canary(report).reason == (
        "whether `--stop-if-failed 1` is reached is unknown: delta.`/lake/a`: its files cannot be listed: "
        "/lake/a: access is denied"
    )
    assert canary(report).watched_ms == pytest.approx(30 * MINUTE * 1000, abs=1000)


@pytest.mark.parametrize("ahead", [-700, 0, 3600])
def test_a_wrong_clock_of_the_log_neither_shortens_the_soak_nor_hides_files(ahead: float) -> None:
    run = Run(config=config(minutes=10), table_groups=grouped("abc")).tables("abc")
    for each in run.lake.tables.values():
        each.at = lambda _version: round(1000 * (now(run) + ahead))
    run.clock.later(120, lambda: table(run, "a").unnamed.append(DataFile("part-1.parquet", 10, now(run))))
    report = run.apply()
    assert outcomes(report) == {"a": "applied", "b": "no window", "c": "no window"}
    assert canary(report).watched_ms < 5 * MINUTE * 1000


@pytest.mark.parametrize("ahead", [-700, 3600])
def test_a_wrong_clock_of_the_log_does_not_hide_a_silent_writer(run: Run, ahead: float) -> None:
    for each in run.lake.tables.values():
        each.history = [replace(commit, timestamp=commit.timestamp + 1000 * round(ahead)) for commit in each.history]
        each.at = lambda _version: round(1000 * (now(run) + ahead))
    report = run.apply()
    assert canary(report).tables[0].silent == ("WRITE by etl",)


def test_a_log_that_cannot_be_read_at_first_is_looked_at_again(run: Run) -> None:
    writes(run, "a", 5 * MINUTE, 30 * MINUTE)

    def fail(event: RunEvent) -> None:
        if event.table == NAMES["a"]:
            table(run, "a").broken = "503" if event.step == "done" else ""

    run.notify = fail
    report = run.apply()
    assert outcomes(report) == {"a": "applied", "b": "applied", "c": "applied"}
    assert canary(report).watched_ms == pytest.approx(30 * MINUTE * 1000, abs=1000)
    assert canary(report).tables[0].unknown == ()


def test_a_condition_that_needs_no_listing_does_not_need_the_right_to_list(run: Run) -> None:
    writes(run, "a", 5 * MINUTE, 30 * MINUTE)
    table(run, "a").unlisted = "access is denied"
    run.config = config(failed=0, silent=1)
    assert outcomes(run.apply())["b"] == "applied"


def test_a_first_table_that_cannot_be_changed_stops_the_others_at_once(run: Run) -> None:
    run.hold("a")
    report = run.apply()
    assert outcomes(report) == {"a": "no window", "b": "no window", "c": "no window"}
    assert report.exit_code is ExitCode.WINDOW
    assert canary(report).watched_ms == 0


def test_neither_lease_nor_gate_is_held_while_the_table_is_watched(run: Run) -> None:
    writes(run, "a", 5 * MINUTE, 30 * MINUTE)
    kept = set[tuple[str, str]]()
    before = run.clock.on_sleep

    def look() -> None:
        before()
        kept.update((run.kinds(name)[0], run.gate(name)) for name in "abc" if run.kinds(name))

    run.clock.on_sleep = look
    run.apply()
    assert kept == {("release", "open")}


def test_another_apply_may_finish_the_rest_meanwhile(run: Run) -> None:
    writes(run, "a", 5 * MINUTE, 30 * MINUTE)
    plan = run.plan()
    for name in "bc":
        other = table(run, name)
        run.clock.later(60, lambda other=other: other.set_property("delta.isolationLevel", "Serializable"))
    assert outcomes(run.apply(plan)) == {"a": "applied", "b": "already", "c": "already"}


def test_the_same_command_goes_on_after_it_was_stopped_while_it_watched(run: Run) -> None:
    writes(run, "a", 5 * MINUTE, 40 * MINUTE)
    plan, began = run.plan(), run.clock.now
    run.clock.later(10 * MINUTE, run.stop.set)
    first = run.apply(plan)
    assert outcomes(first) == {"a": "applied", "b": "interrupted", "c": "interrupted"}
    assert not canary(first).reason
    run.stop.clear()
    second = run.apply(plan)
    assert outcomes(second) == {"a": "already", "b": "applied", "c": "applied"}
    assert run.clock.now - began == pytest.approx(30 * MINUTE, abs=MINUTE)  # not thirty minutes more


def test_the_same_command_stops_again_while_the_condition_holds(run: Run) -> None:
    plan = run.plan()
    run.clock.later(60, lambda: table(run, "a").unnamed.append(DataFile("part-1.parquet", 10, now(run))))
    assert canary(run.apply(plan)).reason
    again = run.apply(plan)
    assert outcomes(again) == {"a": "already", "b": "no window", "c": "no window"}
    assert canary(again).watched_ms == 0
    table(run, "a").unnamed.clear()
    run.config = config(failed=0, silent=2)
    assert outcomes(run.apply(plan)) == {"a": "already", "b": "applied", "c": "applied"}


def test_a_stop_among_the_first_tables_starts_no_other(run: Run) -> None:
    run.notify = lambda event: run.stop.set() if event.step == "leased" else None
    assert set(outcomes(run.apply()).values()) == {"interrupted"}


def declared(run: Run) -> Plan:
    """The plan of tables whose policy declares a stream."""
    plan = run.plan()
    streams = (("fraud", "/c"),)
    tables = (
        replace(each, basis=replace(each.basis, options=replace(each.basis.options, streams=streams)))
        for each in plan.tables
    )
    return replace(plan, tables=tuple(tables))


@pytest.mark.parametrize(("gap", "stopped"), [(2 * MINUTE, ("the stream fraud",)), (60 * MINUTE, ()), (None, ())])
def test_a_declared_stream_that_leaves_rows_unread_has_stopped(
    run: Run, gap: float | None, stopped: tuple[str, ...]
) -> None:
    writes(run, "a", 5 * MINUTE, 30 * MINUTE)
    run.lake.positions["fraud"] = lambda place: StreamPosition("fraud", place, "q", 7, 0, 5, gap)
    report = run.apply(declared(run))
    (seen,) = canary(report).tables
    assert seen.stopped == stopped
    assert bool(canary(report).reason) is bool(stopped)
    assert ("the stream fraud has finished too few batches to have a usual gap" in seen.notes) is (gap is None)


def test_a_declared_stream_that_writes_is_watched_by_its_commits(run: Run) -> None:
    writes(run, "a", 5 * MINUTE, 30 * MINUTE)
    run.lake.positions["fraud"] = lambda place: StreamWriter("fraud", place, "q", 7, 5, 0)
    run.config = config(failed=0, silent=1)
    report = run.apply(declared(run))
    assert (canary(report).reason, canary(report).tables[0].unknown) == ("", ())


def test_a_declared_stream_that_cannot_be_read_is_unknown(run: Run) -> None:
    writes(run, "a", 5 * MINUTE, 30 * MINUTE)
    run.lake.positions["fraud"] = lambda place: UnknownStream("fraud", place, "access is denied")
    run.config = config(failed=0, silent=1)
    report = run.apply(declared(run))
    assert canary(report).reason.startswith("whether `--stop-if-silent 1` is reached is unknown: ")


# The choice


def chosen(run: Run, asked: int, groups: str, together: str = "") -> tuple[set[str], tuple[str, ...]]:
    found = choose(run.plan().tables, asked, grouped(groups), frozenset(NAMES[name] for name in together))
    return {name[-2] for name in found.names}, found.notes


def test_each_group_of_equal_changes_has_a_table() -> None:
    run = Run().tables("abcdef")
    assert chosen(run, 3, "abcd ef") == ({"a", "e", "b"}, ())


def test_more_groups_than_tables_asked_for_raise_the_number() -> None:
    names, notes = chosen(Run().tables("abcdef"), 1, "ab cd ef")
    assert names == {"a", "c", "e"}
    assert notes == ("3 tables are changed first instead of 1: one of each group of equal changes",)


def test_more_than_all_tables_leave_none_to_stop(run: Run) -> None:
    run.config = config(9)
    report = run.apply()
    assert outcomes(report) == {"a": "applied", "b": "applied", "c": "applied"}
    assert canary(report).notes == ("all 3 tables are changed first, so no table is left to stop: nothing was watched",)
    assert canary(report).tables[0] == CanaryTable(table=NAMES["a"])
    assert run.clock.now == 1000


def test_tables_of_one_window_are_chosen_all_or_none() -> None:
    run = Run().tables("abcdef")
    assert chosen(run, 1, "abcdef", together="ab") == ({"c"}, ())
    names, notes = chosen(run, 2, "ab cdef", together="ab")
    assert names == {"a", "b", "c"}
    assert notes == ("3 tables are changed first instead of 2: some share a window (`window.together`)",)


def test_a_table_that_is_written_goes_before_one_that_is_not() -> None:
    run = Run().tables("a", clients=()).tables("b")
    assert chosen(run, 1, "ab")[0] == {"b"}
