"""How far a run is."""

from __future__ import annotations

from tablectl.applying.events import PROGRESS, Progress, RunEvent, Tally, progress_text
from tests.applying.lake_run import Run


def test_the_text_counts_what_is_waited_for() -> None:
    progress = Progress(done=12, running=4, waiting=2, queued=22)
    words = progress_text(progress, {"for a lease": 2, "for writers": 1})
    assert words == "12 of 40 tables done, 3 running, 3 waiting (2 for a lease, 1 for writers)"
    assert progress_text(Progress(1, 0, 0, 1), {}) == "1 of 2 tables done"
    assert progress_text(Progress(0, 1, 0, 0), {}) == ""


def test_an_event_that_is_no_wait_ends_the_wait() -> None:
    told: list[RunEvent] = []
    tally = Tally(told.append)
    tally.tell(Progress(0, 2, 0, 0))
    tally(RunEvent("a", "draining", "waiting for etl", 1.0))
    tally(RunEvent("a", "draining", "waiting for etl", 2.0))
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
