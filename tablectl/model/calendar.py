"""The apply calendar: rules that allow or deny changes, each a cron expression and a duration (docs/window.md).

A window begins at each time of its cron expression, read as Debian's cron does. A time that daylight saving skips
begins when the gap ends. A time that occurs twice begins once. With ``*`` as hour or minute, every occurrence counts.
The window then lasts its duration in real time. All datetimes here are timezone-aware.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from tablectl.delta.names import TableName, matches

LONGEST = timedelta(days=31)
"""The longest window. Several rules can express a longer one."""
_FIELDS = 5
_LONGEST_CRON = 200
_HORIZON = timedelta(days=366)
_STEPS = 1000
_SPANS = (timedelta(minutes=30), timedelta(days=1))
"""The first spans to search for the latest begin. Short ones come first, because a window can begin every minute for a
month.
"""
_FIRST = datetime(2024, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Recurring windows: when they begin, how long each lasts, and which tables they cover."""

    cron: str
    duration: timedelta
    timezone: str = "UTC"
    tables: tuple[str, ...] = ()
    """Globs as in ``--select``; empty means every table."""
    tags: tuple[str, ...] = ()
    """The rule covers tables with any of these tags; empty means every table. With ``tables``, both must match."""

    @property
    def text(self) -> str:
        """The rule without its tables and tags, as ``parse_rule`` reads it: ``0 22 * * 6 for 8h in Europe/Berlin``."""
        minutes = int(self.duration.total_seconds()) // 60
        units = ((minutes // 1440, "d"), (minutes // 60 % 24, "h"), (minutes % 60, "m"))
        length = "".join(f"{number}{unit}" for number, unit in units if number)
        return f"{' '.join(self.cron.split())} for {length} in {self.timezone}"

    def about(self, table: TableName, tags: Iterable[str]) -> bool:
        """Whether the rule covers a table with these tags."""
        named = not self.tables or any(matches(table, glob) for glob in self.tables)
        return named and (not self.tags or not set(self.tags).isdisjoint(tags))

    def begins(self, after: datetime) -> Iterator[datetime]:
        """The begins of windows after ``after``, in order. The iterator is infinite."""
        for begin in CronSim(self.cron, after.astimezone(ZoneInfo(self.timezone))):
            instant = begin.astimezone(UTC)
            if instant > after:  # an hour that occurs twice is not visited twice
                yield instant

    def next_begin(self, after: datetime) -> datetime:
        """The begin of the next window after ``after``."""
        return next(self.begins(after), after + 2 * _HORIZON)

    def active(self, now: datetime) -> bool:
        """Whether a window of the rule is open at ``now``. The begin belongs to the window, the end does not."""
        return self.next_begin(now - self.duration) <= now

    def end(self, now: datetime) -> datetime:
        """The end of the latest open window. Raises ``ValueError`` if no window is open."""
        for span in (*(each for each in _SPANS if each < self.duration), self.duration):
            latest = max(takewhile(lambda begin: begin <= now, self.begins(now - span)), default=None)
            if latest is not None:
                return latest + self.duration
        raise ValueError(f"no window of {self.cron} is open at {now}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Calendar:
    """The rules of a repository. Deny takes precedence. If allow rules exist, one must be open. Without rules an apply
    may always run.
    """

    allow: tuple[Rule, ...] = ()
    deny: tuple[Rule, ...] = ()

    def of(self, table: TableName, tags: Iterable[str]) -> Calendar:
        """The calendar reduced to the rules that cover a table."""
        known = frozenset(tags)
        return Calendar(
            allow=tuple(rule for rule in self.allow if rule.about(table, known)),
            deny=tuple(rule for rule in self.deny if rule.about(table, known)),
        )

    def permits(self, now: datetime) -> bool:
        """Whether an apply may begin at ``now``."""
        allowed = not self.allow or any(rule.active(now) for rule in self.allow)
        return allowed and not any(rule.active(now) for rule in self.deny)

    def opening(self, now: datetime) -> datetime | None:
        """The first time at or after ``now`` at which an apply may begin; ``None`` if there is none within a year."""
        then = now
        for _ in range(_STEPS):
            if self.permits(then):
                return then
            ends = [rule.end(then) for rule in self.deny if rule.active(then)]
            then = max(ends) if ends else min(rule.next_begin(then) for rule in self.allow)
            if then - now > _HORIZON:
                break
        return None

    def closing(self, now: datetime) -> datetime | None:
        """The time until which an apply may begin, if it may at ``now``. ``None`` if it may for a year, or if too many
        windows follow each other to count.
        """
        denied = min((rule.next_begin(now) for rule in self.deny), default=now + _HORIZON)
        then = now if self.allow else denied
        for _ in range(_STEPS):
            ends = [rule.end(then) for rule in self.allow if rule.active(then)]
            if not ends or then >= denied:
                break
            then = max(ends)
        else:
            return None
        closed = min(then, denied)
        return closed if closed - now < _HORIZON else None


_DURATION = re.compile(r"(?:(?P<days>[0-9]{1,4})d)? ?(?:(?P<hours>[0-9]{1,4})h)? ?(?:(?P<minutes>[0-9]{1,5})m)?")
_RULE = re.compile(r"(?P<cron>.+) for (?P<duration>[0-9dhm]+) in (?P<timezone>\S+)")


TIME = re.compile(r"(?=.)(?:([0-9]{1,4})d)?(?:([0-9]{1,4})h)?(?:([0-9]{1,5})m)?(?:([0-9]{1,7})s)?")
"""A length of time as settings and options take it: ``30m``, ``1h30m``, ``90s``."""


def seconds_of(text: str) -> int | None:
    """The seconds of a length of time; ``None`` for other text, such as a number alone."""
    found = TIME.fullmatch(text)
    return (
        sum(int(each or 0) * unit for each, unit in zip(found.groups(), (86_400, 3600, 60, 1), strict=True))
        if found
        else None
    )


def read_minutes(given: object, most: float) -> float:
    """The minutes of a length of time, or of a number, which counts minutes. Raises ``ValueError``."""
    seconds = seconds_of(str(given))
    try:
        minutes = float(str(given)) if seconds is None else seconds / 60
    except ValueError:
        raise ValueError("needs a length of time, such as 30m, or a number of minutes") from None
    if not 0 <= minutes <= most:
        raise ValueError(f"needs at least 0 and at most {most} minutes")
    return minutes


def parse_duration(text: str, most: timedelta = LONGEST) -> timedelta:
    """Parses days, hours and minutes: ``2h30m``. Raises ``ValueError`` for other text and above ``most``."""
    found = _DURATION.fullmatch(text)
    if found is None or not text:
        raise ValueError("needs a duration, such as 2h30m or 1d")
    length = timedelta(**{unit: int(number) for unit, number in found.groupdict().items() if number})
    if not length:
        raise ValueError("needs a duration longer than nothing")
    if length > most:
        raise ValueError(f"needs a duration of at most {most.days}d")
    return length


def parse_rule(text: str) -> Rule:
    """Parses ``Rule.text``. Raises ``ValueError`` for other text."""
    found = _RULE.fullmatch(text)
    if found is None:
        raise ValueError("needs a rule, such as '0 22 * * 6 for 8h in UTC'")
    duration = parse_duration(found["duration"])
    return Rule(cron=check_cron(found["cron"]), duration=duration, timezone=check_zone(found["timezone"]))


ALWAYS = Calendar()
"""A calendar without rules."""


def check_cron(text: str) -> str:
    """Returns a valid cron expression of five fields unchanged. Raises ``ValueError`` if it is malformed or never
    occurs.
    """
    if len(text) > _LONGEST_CRON or len(text.split()) != _FIELDS:
        raise ValueError("needs the five fields of cron, such as '0 22 * * 6'")
    try:
        next(CronSim(text, _FIRST))
    except (CronSimError, StopIteration) as error:
        raise ValueError(f"needs the five fields of cron ({str(error).lower() or 'its time never comes'})") from None
    return text


def check_zone(text: str) -> str:
    """Returns the name of a time zone unchanged. Raises ``ValueError`` if this machine does not know it."""
    try:
        ZoneInfo(text)
    except (ValueError, OSError, KeyError):  # an unknown name is a KeyError
        raise ValueError("needs the name of a time zone, such as Europe/Berlin") from None
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class TableWindow:
    """How the protected window of one table differs from the configuration's."""

    drain: int | None = None
    """Seconds that writers have to finish each time the gate becomes stricter; ``None`` for the configuration's."""
    allow: tuple[str, ...] | None = None
    """The periods in which the window may open, as ``parse_rule`` reads them. They replace the allow rules of the
    configuration; ``None`` keeps these.
    """
    deny: tuple[str, ...] = ()
    """Periods in which the window may not open, in addition to the deny rules of the configuration."""

    def over(self, calendar: Calendar) -> Calendar:
        """The calendar of the table, from that of the configuration."""
        allow = calendar.allow if self.allow is None else tuple(map(parse_rule, self.allow))
        return Calendar(allow=allow, deny=(*calendar.deny, *map(parse_rule, self.deny)))
