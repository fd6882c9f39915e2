"""``--watch``: who comes back after the run."""

from __future__ import annotations

import pytest

from tablectl.applying.context import WindowSettings
from tablectl.leases.clock import StoppedError
from tests.applying.fake_lake import FakeTable
from tests.applying.lake_run import Run, only


@pytest.fixture
def run() -> Run:
    """Two tables that a stream writes again and again, and someone wrote once."""
    made = Run(terms=WindowSettings(watch=600)).tables("ab")
    for table in made.lake.tables.values():
        for user in ("stream", "someone", "stream"):
            table.commit("WRITE", user)
    return made


def table(run: Run, name: str) -> FakeTable:
    return run.lake.tables[f"/lake/{name}"]


def back(run: Run, name: str) -> dict[str, bool]:
    return {writer.name: writer.back for writer in only(run.apply(), name).writers}


def test_it_ends_as_soon_as_all_are_back_that_may_be_expected(run: Run) -> None:
    run.clock.later(20, lambda: table(run, "a").commit("WRITE", "stream"))
    run.clock.later(40, lambda: table(run, "b").commit("WRITE", "stream"))
    assert back(run, "a") == {"WRITE by stream": True, "WRITE by someone": False}
    assert 1040 <= run.clock.now <= 1046
    assert run.released()


def test_who_does_not_come_back_is_reported(run: Run) -> None:
    report = run.apply()
    assert run.clock.now == pytest.approx(1600)
    assert {writer.back for writer in only(report, "a").writers} == {False}
    assert [only(report, name).watched for name in "ab"] == [True, True]
    words = {event.words for event in run.told if event.step == "watch"}
    assert words == {"done, watching for writers to come back: WRITE by stream"}
    assert report.exit_code == 0


def test_the_leases_are_given_back_before(run: Run) -> None:
    kept: set[str] = set()
    run.clock.on_sleep = lambda: kept.add(run.kinds("a")[0])
    run.apply()
    assert kept == {"release"}


def test_without_watch_no_one_waits(run: Run) -> None:
    run.terms = WindowSettings()
    report = run.apply()
    assert run.clock.now == 1000
    assert [only(report, name).watched for name in "ab"] == [False, False]
    assert [writer.name for writer in only(report, "a").writers] == ["WRITE by someone", "WRITE by stream"]


def test_a_table_without_a_commit_of_ours_is_not_watched(run: Run) -> None:
    plan = run.plan()
    for each in run.lake.tables.values():
        each.set_property("delta.isolationLevel", "Serializable")
    report = run.apply(plan)
    assert run.clock.now == 1000
    assert only(report, "a").watched is False


def test_a_stop_ends_it(run: Run) -> None:
    run.clock.later(10, run.stop.set)
    run.apply()
    assert run.clock.now < 1020


def test_so_does_an_interrupted_clock(run: Run) -> None:
    def stop() -> None:
        raise StoppedError("stopped while waiting")

    run.clock.on_sleep = stop
    assert only(run.apply(), "a").watched


def test_a_table_that_cannot_be_read_for_a_while_is_looked_at_again(run: Run) -> None:
    real, broken = run.lake.commits, {"/lake/a"}

    def commits(location: str, *, after: int) -> object:
        if run.clock.now > 1000 and location in broken:
            run.lake.tables[location].broken = "the disk is gone"
        try:
            return real(location, after=after)
        finally:
            run.lake.tables[location].broken = ""

    run.lake.commits = commits  # type: ignore[assignment,method-assign]
    run.clock.later(20, lambda: table(run, "b").commit("WRITE", "stream"))
    run.clock.later(30, lambda: table(run, "a").commit("WRITE", "stream"))
    run.clock.later(60, broken.clear)
    assert back(run, "a")["WRITE by stream"]
    assert 1060 <= run.clock.now <= 1070
