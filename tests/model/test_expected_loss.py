"""The expected loss by the hour of the week."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablectl.model.expected_loss import (
    DAYS,
    HOUR,
    HOURS,
    LONGEST_WRITE,
    CommitWindow,
    ExpectedLoss,
    PastWrite,
    Period,
    hour_of_week,
    hour_text,
    quietest_hour,
    summed,
    week_of_loss,
)

MONDAY = datetime(2026, 11, 2, tzinfo=UTC).timestamp()
WEEK = HOURS * HOUR
FOUR_WEEKS = Period(MONDAY, MONDAY + 4 * WEEK)
ONE = CommitWindow()


def nightly(hour: int, seconds: float, weeks: int = 4) -> list[PastWrite]:
    """A write each day that ends at the end of an hour."""
    return [PastWrite(MONDAY + (day * 24 + hour + 1) * HOUR - 1, seconds) for day in range(7 * weeks)]


def test_hour_0_is_monday_midnight_in_utc() -> None:
    assert hour_of_week(MONDAY) == 0
    assert hour_of_week(MONDAY - 1) == HOURS - 1
    assert hour_of_week(datetime(2026, 11, 22, 4, 30, tzinfo=UTC).timestamp()) == 6 * 24 + 4


def test_the_last_hour_of_a_day_ends_at_midnight() -> None:
    assert (hour_text(148), hour_text(167)) == ("Sunday 04:00–05:00 UTC", "Sunday 23:00–00:00 UTC")


def test_a_job_of_half_an_hour_is_in_flight_half_of_its_hour() -> None:
    week = week_of_loss(nightly(2, 1800), FOUR_WEEKS, ONE)
    assert week[2].failed == pytest.approx(0.5)
    assert week[2].seconds == pytest.approx(900)
    assert week[4] == ExpectedLoss()


def test_a_job_that_began_an_hour_earlier_is_in_flight_then() -> None:
    week = week_of_loss(nightly(2, 5399), FOUR_WEEKS, ONE)
    assert week[1].failed == pytest.approx(0.5, abs=0.001)
    assert week[2].failed == pytest.approx(1, abs=0.001)


def test_more_commits_also_fail_the_writes_that_begin_between_them() -> None:
    writes = [PastWrite(MONDAY + second * 10, 2) for second in range(360)]
    period = Period(MONDAY, MONDAY + HOUR)
    assert week_of_loss(writes, period, CommitWindow(1))[0].failed == pytest.approx(0.2, abs=0.01)
    assert week_of_loss(writes, period, CommitWindow(3, spacing=1))[0].failed == pytest.approx(0.4, abs=0.01)
    # distant commits fail other writes
    assert week_of_loss(writes, period, CommitWindow(3, spacing=60))[0].failed == pytest.approx(0.6, abs=0.01)


def test_no_commit_costs_nothing() -> None:
    assert set(week_of_loss(nightly(2, 1800), FOUR_WEEKS, CommitWindow(0))) == {ExpectedLoss()}


def test_an_hour_that_was_not_observed_is_like_that_hour_of_other_days() -> None:
    two_days = Period(MONDAY, MONDAY + 48 * HOUR)
    week = week_of_loss(nightly(2, 1800), two_days, ONE)
    assert week[6 * 24 + 2].failed == pytest.approx(0.5)
    assert week[6 * 24 + 5].failed == 0


def test_less_than_a_day_has_one_mean() -> None:
    week = week_of_loss([PastWrite(MONDAY + 100, 90)], Period(MONDAY, MONDAY + 900), ONE)
    assert {each.failed for each in week} == {0.1}


def test_the_quietest_hour_is_the_first_that_is_far_from_busy_ones() -> None:
    busy = {hour for hour in range(HOURS) if hour % 24 in range(8, 20)} - set(range(144, 168))
    week = tuple(ExpectedLoss(float(hour in busy), 1) for hour in range(HOURS))
    assert quietest_hour(week, start=5 * 24 + 12) == 5 * 24 + 23  # three hours after the last busy one
    assert quietest_hour(week, start=6 * 24 + 1) == 6 * 24 + 1


def test_a_week_without_writes_is_quiet_from_now_on() -> None:
    assert quietest_hour((ExpectedLoss(),) * HOURS, start=17) == 17


# Properties

TIMES = st.floats(MONDAY, MONDAY + DAYS * 24 * HOUR)
WRITES = st.lists(st.builds(PastWrite, TIMES, st.floats(0, LONGEST_WRITE)), max_size=20)
PERIODS = st.builds(lambda start, days: Period(start, start + days * 24 * HOUR), TIMES, st.floats(0, DAYS))
WINDOWS = st.builds(CommitWindow, st.integers(0, 10), st.floats(0, 1000))


@given(WRITES, PERIODS, WINDOWS)
def test_a_loss_is_finite_and_never_negative(writes: list[PastWrite], period: Period, window: CommitWindow) -> None:
    week = week_of_loss(writes, period, window)
    assert len(week) == HOURS
    most = len(writes) * window.commits * LONGEST_WRITE
    assert all(0 <= each.failed <= each.failed + 1 and 0 <= each.seconds < float("inf") for each in week)
    assert sum(each.failed for each in week) <= max(most, 1) * HOURS


@given(WRITES, WRITES, PERIODS, WINDOWS)
def test_the_loss_of_two_writers_is_the_sum_of_their_losses(
    one: list[PastWrite], other: list[PastWrite], period: Period, window: CommitWindow
) -> None:
    both = week_of_loss([*one, *other], period, window)
    apart = summed([week_of_loss(one, period, window), week_of_loss(other, period, window)])
    for left, right in zip(both, apart, strict=True):
        assert left.failed == pytest.approx(right.failed, abs=1e-9)
        assert left.seconds == pytest.approx(right.seconds, rel=1e-9, abs=1e-6)


@given(WRITES, st.builds(PastWrite, TIMES, st.floats(0, LONGEST_WRITE)), PERIODS, WINDOWS)
def test_more_writes_never_cost_less(
    writes: list[PastWrite], more: PastWrite, period: Period, window: CommitWindow
) -> None:
    before, after = week_of_loss(writes, period, window), week_of_loss([*writes, more], period, window)
    assert all(left.failed <= right.failed + 1e-9 for left, right in zip(before, after, strict=True))
    assert all(left.seconds <= right.seconds + 1e-6 for left, right in zip(before, after, strict=True))


@given(WRITES, PERIODS, WINDOWS, st.integers(0, 5), st.floats(0, 100))
def test_a_longer_window_never_costs_less(
    writes: list[PastWrite], period: Period, window: CommitWindow, commits: int, spacing: float
) -> None:
    longer = CommitWindow(window.commits + commits, window.spacing + spacing)
    before, after = week_of_loss(writes, period, window), week_of_loss(writes, period, longer)
    assert all(left.failed <= right.failed + 1e-9 for left, right in zip(before, after, strict=True))
    assert all(left.seconds <= right.seconds + 1e-6 for left, right in zip(before, after, strict=True))


@given(WRITES, PERIODS, WINDOWS, st.integers(0, HOURS - 1))
def test_no_hour_is_quieter_than_the_quietest(
    writes: list[PastWrite], period: Period, window: CommitWindow, start: int
) -> None:
    week = week_of_loss(writes, period, window)
    assert week[quietest_hour(week, start)].failed <= min(each.failed for each in week) + 0.001
