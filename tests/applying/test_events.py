"""How far a run is."""

from __future__ import annotations

import pytest

from tablectl.applying.events import (
    DONE,
    PROGRESS,
    Progress,
    RunEvent,
    Tally,
    progress_text,
    seconds_left,
    standing_of,
)
from tablectl.model.errors import ExitCode
from tablectl.model.run_report import RunOutcome
from tests.applying.lake_run import Run


def said(progress: Progress, waits: dict[str, int], elapsed: float = 0.0) -> str:
    standing = standing_of(progress, waits)
    return progress_text(standing, seconds_left(standing, elapsed)) if standing else ""


def test_the_text_counts_what_is_waited_for() -> None:
    progress = Progress(done=12, running=4, waiting=2, queued=22)
    words = said(progress, {"for a lease": 2, "for writers": 1})
    assert words == "12 of 40 tables done, 3 running, 3 waiting (2 for a lease, 1 for writers)"
    assert said(Progress(1, 0, 0, 1), {}) == "1 of 2 tables done"
    assert said(Progress(0, 1, 0, 0), {}) == ""
    assert said(Progress(9_999, 1, 0, 0), {}) == "9,999 of 10,000 tables done, 1 running"


@pytest.mark.parametrize(
    ("done", "elapsed", "left"),
    [
        (2, 60.0, ""),  # too few to tell
        (10, 3.0, ""),  # too soon
        (10, 100.0, ", about 5 min left"),
        (39, 100.0, ", less than a minute left"),
        (4, 3_600.0, ", about 9 h left"),
        (40, 100.0, ""),
    ],
)
def test_the_time_left_follows_from_the_tables_that_are_done(done: int, elapsed: float, left: str) -> None:
    words = said(Progress(done=done, running=0, waiting=0, queued=40 - done), {}, elapsed)
    assert words == f"{done} of 40 tables done{left}"


def test_an_event_that_is_not_a_wait_ends_the_wait() -> None:
    told: list[RunEvent] = []
    tally = Tally(told.append, lambda: 0.0)
    tally.tell(Progress(0, 2, 0, 0))
    tally(RunEvent("a", "draining", "waiting for etl", 1.0, awaited="for writers"))
    tally(RunEvent("a", "draining", "waiting for etl", 2.0, awaited="for writers"))
    tally(RunEvent("a", "drained"))
    words = [event.words for event in told if event.step == PROGRESS]
    assert words == [
        "0 of 2 tables done, 2 running",
        "0 of 2 tables done, 1 running, 1 waiting (1 for writers)",
        "0 of 2 tables done, 2 running",
    ]


def test_a_run_tells_who_is_waited_for_and_how_far_it_is() -> None:
    run = Run(parallel=1).tables("abc")
    run.hold("a")
    run.apply()
    words = [event.words for event in run.told if event.step == PROGRESS]
    assert words[0] == "0 of 3 tables done, 1 running"
    assert "2 of 3 tables done, 1 waiting (1 for a lease)" in words
    assert words[-1] == "3 of 3 tables done"
    held = [event for event in run.told if event.step == "held"]
    assert held[0].words.startswith("held by ben on ben-laptop (pid 7), run run-of-ben")


def test_no_estimate_is_made_while_everything_that_has_begun_waits() -> None:
    stuck = Progress(done=6, running=4, waiting=14, queued=0)
    waits = {"for the statement of a dead apply up to 8 min": 4, "for a lease up to 75 s": 14}
    assert said(stuck, waits, 60.0) == (
        "6 of 24 tables done, 18 waiting (14 for a lease up to 75 s, 4 for the statement of a dead apply up to 8 min)"
    )
    assert said(stuck, {"for a lease": 14}, 60.0).endswith("about 3 min left"), "four of them run"


def test_the_progress_names_the_longest_time_of_each_wait() -> None:
    told: list[RunEvent] = []
    tally = Tally(told.append, lambda: 0.0)
    tally.tell(Progress(0, 2, 0, 0))
    tally(RunEvent("a", "statement left", "ending it", 1.0, 450.0, awaited="for the statement of a dead apply"))
    tally(RunEvent("b", "held", "held by ben", 1.0, 75.0, awaited="for a lease"))
    assert told[-1].words == (
        "0 of 2 tables done, 2 waiting (1 for a lease up to 75 s, 1 for the statement of a dead apply up to 8 min)"
    )


def test_a_run_whose_engine_died_does_not_wait_for_leases() -> None:
    run = Run().tables("ab")
    for name in "ab":
        run.hold(name)
    run.engine.is_alive = False
    run.wait = 3600
    started = run.clock.now
    report = run.apply()
    assert [table.outcome for table in report.tables] == [RunOutcome.NO_WINDOW] * 2
    assert (report.exit_code, run.clock.now - started) == (ExitCode.WINDOW, 0)


def test_the_last_event_of_each_table_is_its_outcome() -> None:
    run = Run(parallel=1).tables("ab")
    run.hold("b")
    run.apply()
    done = {event.table: event.words for event in run.told if event.step == DONE}
    assert done == {"delta.`/lake/a`": "applied"}  # b was left when nothing else was to be done
