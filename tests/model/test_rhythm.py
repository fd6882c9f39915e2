"""The rhythm of a writer: when the next run comes, to the second."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from tablectl.model.expected_loss import DAYS, HOUR, LONGEST_WRITE, PastWrite, Period
from tablectl.model.rhythm import Span, common, rhythm_of

MINUTE, DAY = 60.0, 24 * HOUR
MONDAY = 20_000 * DAY - (20_000 * DAY - 4 * DAY) % (7 * DAY)
NOW = MONDAY + 28 * DAY
TRIES = 8


def every(
    period: float, lasts: float, seed: int, *, days: float = 8, late: float = 2, spread: float = 0.1
) -> list[Span]:
    """The runs of a timetable until two days from now: a few seconds late, each about as long."""
    chosen, found, at = random.Random(seed), [], NOW - days * DAY
    while at < NOW + 2 * DAY:
        start = at + chosen.uniform(0, late)
        found.append((start, start + lasts * chosen.uniform(1 - spread, 1 + spread)))
        at += period
    return found


def waited(series: Sequence[Sequence[Span]], begin: float) -> float | None:
    """For how long an apply waits for a moment between the runs; ``None`` if it finds none within a day. It reads the
    log until then, and asserts that no run is in flight.
    """
    now = begin
    while now < begin + DAY:
        known = [[PastWrite(end, end - start) for start, end in runs if end <= now] for runs in series]
        rhythms = [rhythm_of(each, Period(NOW - DAYS * DAY, now)) for each in known]
        free = [
            span for span in common([each.windows(now, now + DAY) for each in rhythms if each]) if span[1] > span[0] + 2
        ]
        if None in rhythms or not free:
            return None
        if free[0][0] <= now:
            assert not any(start <= now < end for runs in series for start, end in runs), "inside a run"
            return now - begin
        now = free[0][0]
    return None


@pytest.mark.parametrize(
    ("series", "gap"),
    [
        pytest.param([every(HOUR, 20 * MINUTE, 1)], HOUR, id="20 min of each hour"),
        pytest.param([every(HOUR / 2, 10 * MINUTE, 2)], HOUR / 2, id="10 min of each half"),
        pytest.param([every(15 * MINUTE, 4 * MINUTE, 3, days=4)], 15 * MINUTE, id="4 min of each quarter"),
        pytest.param([every(HOUR, 50 * MINUTE, 4, spread=0.05)], HOUR, id="50 min of each hour"),
        pytest.param([every(10, 3, 5, days=0.1, late=0.2)], 10, id="a stream each 10 s"),
        pytest.param(
            [every(10, 3, 6, days=0.1, late=0.2), every(40, 10, 7, days=0.1), every(25, 1, 8, days=0.1)], 40, id="three"
        ),
        pytest.param(
            [sorted(every(15 * MINUTE, 4 * MINUTE, 9) + [(a + 300, b + 300) for a, b in every(HOUR, 1100, 10)])],
            HOUR,
            id="two jobs that the log does not tell apart",
        ),
    ],
)
def test_a_free_moment_comes_within_two_gaps_and_is_in_no_run(series: list[list[Span]], gap: float) -> None:
    chosen = random.Random(0)
    found = [waited(series, NOW + chosen.uniform(0, DAY)) for _ in range(TRIES)]
    assert sum(each is not None and each <= 2 * gap for each in found) >= TRIES, found


def test_random_writes_have_no_rhythm() -> None:
    chosen, at, runs = random.Random(1), NOW - 14 * DAY, []
    while at < NOW:
        at += chosen.expovariate(1 / 1800)
        runs.append(PastWrite(at, 100))
    assert rhythm_of(runs, Period(NOW - DAYS * DAY, NOW)) is None


def test_a_stream_that_is_always_in_flight_has_none() -> None:
    runs = [PastWrite(NOW - number * 60, 60) for number in range(1000)]
    assert rhythm_of(runs, Period(NOW - DAYS * DAY, NOW)) is None


def test_the_steps_of_one_night_are_one_run() -> None:
    steps = [PastWrite(MONDAY + (day * 24 + 2 + step / 6) * HOUR, 560) for day in range(28) for step in range(6)]
    found = rhythm_of(steps, Period(MONDAY, NOW))
    assert found is not None
    assert found.windows(MONDAY + (27 * 24 + 3) * HOUR, NOW + DAY)[0][1] > NOW


def test_a_run_over_midnight_is_one_run() -> None:
    runs = [PastWrite(MONDAY + (day * 24 + 25) * HOUR, 2 * HOUR) for day in range(20)]
    found = rhythm_of(runs, Period(MONDAY, MONDAY + 21 * DAY - HOUR))
    assert found is not None
    assert found.text == "runs on 20 days, each between 23:00 and 01:00 UTC"


def test_times_of_hostile_logs_break_nothing() -> None:
    wild = [PastWrite(NOW - number % 3, LONGEST_WRITE * (number % 2)) for number in range(50)]
    found = rhythm_of(wild, Period(NOW - DAYS * DAY, NOW))
    assert found is None or found.windows(NOW, NOW + DAY) is not None
