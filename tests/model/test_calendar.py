"""When an apply may work: cron windows in a time zone, against what a clock on the wall says minute by minute."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablectl.delta.names import parse_table
from tablectl.model.calendar import Calendar, Rule, check_cron, check_zone

MINUTE = timedelta(minutes=1)


def rule(cron: str, hours: float = 1, timezone: str = "UTC", **about: tuple[str, ...]) -> Rule:
    return Rule(cron=cron, duration=timedelta(hours=hours), timezone=timezone, **about)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def berlin(text: str, fold: int = 0) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo("Europe/Berlin"), fold=fold).astimezone(UTC)


# One rule


@pytest.mark.parametrize(
    ("now", "active"),
    [
        ("2026-11-21T21:59:59", False),
        ("2026-11-21T22:00:00", True),
        ("2026-11-22T05:59:59.999999", True),
        ("2026-11-22T06:00:00", False),
        ("2026-11-22T22:30:00", False),
    ],
)
def test_a_window_holds_from_its_begin_up_to_its_end(now: str, active: bool) -> None:
    assert rule("0 22 * * 6", 8).active(utc(now)) is active


def test_windows_that_overlap_are_one() -> None:
    every = rule("0 * * * *", 1.5)
    assert all(every.active(utc("2026-11-21T00:00:00") + 7 * each * MINUTE) for each in range(500))
    assert every.end(utc("2026-11-21T10:10:00")) == utc("2026-11-21T11:30:00")


def test_a_rule_is_read_in_its_time_zone() -> None:
    late = rule("0 22 * * *", 1, "America/New_York")
    assert late.active(utc("2026-07-02T02:30:00"))
    assert not late.active(utc("2026-07-02T03:30:00"))
    assert late.active(utc("2026-12-02T03:30:00"))
    assert not late.active(utc("2026-12-02T02:30:00"))


def test_a_time_that_daylight_saving_skips_begins_after_the_gap() -> None:
    """On 29 March 2026 the clocks in Berlin went from 02:00 to 03:00."""
    night = rule("30 2 * * *", 1, "Europe/Berlin")
    assert not night.active(berlin("2026-03-29T01:59:00"))
    assert night.active(berlin("2026-03-29T03:00:00"))
    assert night.active(berlin("2026-03-29T03:59:00"))
    assert not night.active(berlin("2026-03-29T04:00:00"))


def test_a_time_that_comes_twice_begins_once() -> None:
    """On 25 October 2026 the hour from 02:00 to 03:00 came twice in Berlin."""
    night = rule("30 2 * * *", 0.5, "Europe/Berlin")
    assert night.active(berlin("2026-10-25T02:30:00"))
    assert night.active(berlin("2026-10-25T02:59:00"))
    assert not night.active(berlin("2026-10-25T02:30:00", fold=1))
    assert not night.active(berlin("2026-10-25T02:59:00", fold=1))


def test_a_window_lasts_its_duration_in_real_time() -> None:
    night = rule("0 0 * * *", 4, "Europe/Berlin")
    assert night.end(berlin("2026-03-29T00:30:00")) == berlin("2026-03-29T05:00:00")
    assert night.end(berlin("2026-10-25T00:30:00")) == berlin("2026-10-25T03:00:00")


@pytest.mark.parametrize(
    ("tables", "tags", "name", "given", "about"),
    [
        ((), (), "lake.sales.orders", (), True),
        (("lake.*",), (), "lake.sales.orders", (), True),
        (("LAKE.sales.*",), (), "lake.sales.orders", (), True),
        (("lake.pay.*", "*orders"), (), "lake.sales.orders", (), True),
        (("lake.pay.*",), (), "lake.sales.orders", (), False),
        (("/lake/*",), (), "delta.`/lake/orders`", (), True),
        ((), ("ledger",), "lake.sales.orders", ("ledger", "web"), True),
        ((), ("ledger",), "lake.sales.orders", ("web",), False),
        (("lake.*",), ("ledger",), "lake.sales.orders", (), False),
    ],
)
def test_the_tables_a_rule_is_about(
    tables: tuple[str, ...], tags: tuple[str, ...], name: str, given: tuple[str, ...], about: bool
) -> None:
    assert rule("0 0 * * *", tables=tables, tags=tags).about(parse_table(name), given) is about


# A calendar

NIGHTS = rule("0 22 * * *", 8)
FREEZE = rule("0 0 20 12 *", 14 * 24)


@pytest.mark.parametrize(
    ("calendar", "now", "permits"),
    [
        (Calendar(), "2026-12-24T12:00:00", True),
        (Calendar(allow=(NIGHTS,)), "2026-11-21T12:00:00", False),
        (Calendar(allow=(NIGHTS,)), "2026-11-21T23:00:00", True),
        (Calendar(deny=(FREEZE,)), "2026-11-21T12:00:00", True),
        (Calendar(deny=(FREEZE,)), "2026-12-24T12:00:00", False),
        (Calendar(allow=(NIGHTS,), deny=(FREEZE,)), "2026-12-24T23:00:00", False),
        (Calendar(allow=(NIGHTS, rule("0 12 * * *")), deny=(FREEZE,)), "2026-11-21T12:30:00", True),
    ],
)
def test_deny_wins_and_an_allow_must_be_open(calendar: Calendar, now: str, permits: bool) -> None:
    assert calendar.permits(utc(now)) is permits


def test_only_rules_about_the_table_count() -> None:
    calendar = Calendar(allow=(rule("0 22 * * *", tags=("ledger",)),), deny=(rule("* * * * *", tables=("lake.hr.*",)),))
    noon = utc("2026-11-21T12:00:00")
    assert calendar.of(parse_table("lake.sales.orders"), ("web",)).permits(noon)
    assert not calendar.of(parse_table("lake.sales.orders"), ("ledger",)).permits(noon)
    assert not calendar.of(parse_table("lake.hr.pay"), ()).permits(noon)


@pytest.mark.parametrize(
    ("calendar", "now", "opening", "closing"),
    [
        (Calendar(), "2026-11-21T12:00:00", "2026-11-21T12:00:00", None),
        (Calendar(allow=(NIGHTS,)), "2026-11-21T12:00:00", "2026-11-21T22:00:00", "2026-11-22T06:00:00"),
        (Calendar(allow=(NIGHTS,)), "2026-11-21T23:00:00", "2026-11-21T23:00:00", "2026-11-22T06:00:00"),
        (
            Calendar(allow=(NIGHTS, rule("0 5 * * *", 3))),
            "2026-11-21T23:00:00",
            "2026-11-21T23:00:00",
            "2026-11-22T08:00:00",
        ),
        (
            Calendar(allow=(NIGHTS,), deny=(rule("0 1 * * *", 2),)),
            "2026-11-21T23:00:00",
            "2026-11-21T23:00:00",
            "2026-11-22T01:00:00",
        ),
        (
            Calendar(allow=(NIGHTS,), deny=(FREEZE,)),
            "2026-12-21T00:00:00",
            "2027-01-03T00:00:00",
            "2027-01-03T06:00:00",
        ),
        (Calendar(deny=(FREEZE,)), "2026-11-21T12:00:00", "2026-11-21T12:00:00", "2026-12-20T00:00:00"),
        (Calendar(deny=(FREEZE,)), "2026-12-24T12:00:00", "2027-01-03T00:00:00", "2027-12-20T00:00:00"),
        (Calendar(deny=(rule("* * * * *"),)), "2026-12-24T12:00:00", None, None),
        (Calendar(allow=(NIGHTS,), deny=(rule("0 21 * * *", 23),)), "2026-12-24T12:00:00", None, None),
        (Calendar(allow=(rule("* * * * *"),)), "2026-12-24T12:00:00", "2026-12-24T12:00:00", None),
        (Calendar(allow=(rule("0 0 29 2 *", 24),)), "2024-03-01T12:00:00", None, None),
    ],
)
def test_when_it_opens_and_closes(calendar: Calendar, now: str, opening: str | None, closing: str | None) -> None:
    opens = calendar.opening(utc(now))
    assert opens == (utc(opening) if opening else None)
    assert (calendar.closing(opens) if opens else None) == (utc(closing) if closing else None)


# Against the clock on the wall


def matches(field: str, value: int, first: int) -> bool:
    """One field of a cron expression, of the forms that ``CRONS`` makes."""
    if field.startswith("*"):
        return (value - first) % int(field[2:] or 1) == 0
    return value in {int(each) for each in field.split(",")}


def fires(cron: str, local: datetime) -> bool:
    minute, hour, day, month, weekday = cron.split()
    dates = matches(day, local.day, 1), matches(weekday, local.isoweekday() % 7, 0)
    both = day.startswith("*") or weekday.startswith("*")
    return (
        matches(minute, local.minute, 0)
        and matches(hour, local.hour, 0)
        and matches(month, local.month, 1)
        and (all(dates) if both else any(dates))
    )


def begins(one: Rule, start: datetime, end: datetime) -> Iterator[datetime]:
    """Every begin between two instants, by looking at every minute."""
    zone = ZoneInfo(one.timezone)
    minute, hour = one.cron.split()[:2]
    if minute.startswith("*") or hour.startswith("*"):
        instant = start
        while instant <= end:
            if fires(one.cron, instant.astimezone(zone)):
                yield instant
            instant += MINUTE
        return
    wall = start.astimezone(zone).replace(tzinfo=None, fold=0) - timedelta(hours=3)
    while wall <= end.astimezone(zone).replace(tzinfo=None) + timedelta(hours=3):
        if fires(one.cron, wall):
            there = wall.replace(tzinfo=zone)
            while there.astimezone(UTC).astimezone(zone).replace(fold=0) != there.replace(fold=0):
                there += MINUTE  # a time that the gap skips
            yield there.astimezone(UTC)
        wall += MINUTE


def listed(least: int, most: int) -> st.SearchStrategy[str]:
    return st.lists(st.integers(least, most), min_size=1, max_size=3).map(lambda each: ",".join(map(str, each)))


def field(least: int, most: int) -> st.SearchStrategy[str]:
    return st.just("*") | listed(least, most)


CRONS = st.tuples(
    st.sampled_from(["*", "*/15", "*/7"]) | listed(0, 59),
    st.sampled_from(["*", "*/2", "*/5"]) | listed(0, 4),
    st.just("*") | listed(24, 30),
    st.just("*") | listed(3, 11),
    st.just("*") | listed(0, 6),
).map(" ".join)
ZONES = st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "America/Sao_Paulo"])
# Around the changes of the clocks, and elsewhere.
DAYS = st.sampled_from([date(2026, 3, 8), date(2026, 3, 29), date(2026, 10, 25), date(2026, 11, 1), date(2026, 7, 5)])


@settings(max_examples=150, deadline=None)
@given(cron=CRONS, zone=ZONES, minutes=st.integers(1, 300), day=DAYS, after=st.integers(-600, 900))
def test_a_rule_is_active_when_a_look_at_every_minute_says_so(
    cron: str, zone: str, minutes: int, day: date, after: int
) -> None:
    one = Rule(cron=cron, duration=minutes * MINUTE, timezone=zone)
    now = datetime(day.year, day.month, day.day, tzinfo=UTC) + after * MINUTE
    open_since = [begin for begin in begins(one, now - one.duration, now) if now - one.duration < begin <= now]
    assert one.active(now) is bool(open_since)
    if open_since:
        assert one.end(now) == max(open_since) + one.duration


@settings(max_examples=40, deadline=None)
@given(
    allow=st.lists(st.tuples(CRONS, ZONES, st.integers(1, 300)), max_size=2),
    deny=st.lists(st.tuples(CRONS, ZONES, st.integers(1, 300)), max_size=2),
    day=DAYS,
    after=st.integers(0, 1439),
)
def test_openings_and_closings_are_where_the_answer_changes(
    allow: list[tuple[str, str, int]], deny: list[tuple[str, str, int]], day: date, after: int
) -> None:
    def made(given: list[tuple[str, str, int]]) -> tuple[Rule, ...]:
        return tuple(Rule(cron=cron, timezone=zone, duration=minutes * MINUTE) for cron, zone, minutes in given)

    calendar = Calendar(allow=made(allow), deny=made(deny))
    now = datetime(day.year, day.month, day.day, tzinfo=UTC) + after * MINUTE
    opening = calendar.opening(now)
    if opening is None:
        assert not calendar.permits(now)
        return
    assert opening >= now
    assert calendar.permits(opening)
    looked = [now + each * MINUTE for each in range(0, min(1000, int((opening - now) / MINUTE)), 7)]
    assert not any(calendar.permits(each) for each in looked)
    closing = calendar.closing(opening)
    if closing is not None:
        assert not calendar.permits(closing)
        assert calendar.permits(closing - MINUTE / 60)


# What is refused


@pytest.mark.parametrize("text", ["* * * * *", "0 22 * * 6", "*/5 0-6 1,15 * MON-FRI", "0 0 L * *", "0 0 29 2 *"])
def test_crons(text: str) -> None:
    assert check_cron(text) == text


@pytest.mark.parametrize(
    "text",
    ["", "0", "* * * *", "* * * * * *", "60 * * * *", "x * * * *", "0 0 30 2 *", "@daily", "1," * 200, "9" * 5000],
)
def test_what_is_not_a_cron(text: str) -> None:
    with pytest.raises(ValueError, match="needs the five fields of cron"):
        check_cron(text)


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="0123456789*/,-#LW MONSUJAN", max_size=30) | st.text(max_size=30))
def test_any_text_is_a_cron_or_a_value_error(text: str) -> None:
    try:
        checked = check_cron(text)
    except ValueError:
        return
    Rule(cron=checked, duration=MINUTE, timezone="Europe/Berlin").active(utc("2026-11-21T12:00:00"))


@pytest.mark.parametrize("text", ["", "Mars/Base", "../../etc/passwd", "/etc/localtime", "Europe", "\0", "x" * 5000])
def test_what_is_not_a_time_zone(text: str) -> None:
    with pytest.raises(ValueError, match="needs the name of a time zone"):
        check_zone(text)
