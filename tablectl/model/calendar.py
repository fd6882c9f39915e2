"""When an apply may change a table: rules that allow or deny, each a cron time and a duration (docs/window.md).

A window begins at each time of its cron expression, read as Debian's cron does: a time that daylight saving skips
begins when the gap ends, one that comes twice begins once, and with ``*`` as hour or minute every one counts. It then
lasts its duration in real time. All instants here are aware.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import takewhile

from tablectl.delta.names import TableName, matches

LONGEST = timedelta(days=31)
"""The longest window; a longer one is several rules."""
_FIELDS = 5
_LONGEST_CRON = 200
_HORIZON = timedelta(days=366)
_STEPS = 1000
_SPANS = (timedelta(minutes=30), timedelta(days=1))
"""How far back to look for the latest begin, first: a window may have begun every minute for a month."""
_FIRST = datetime(2024, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Times at which windows begin, how long each lasts, and the tables it is about."""

    cron: str
    duration: timedelta
    timezone: str = "UTC"
    tables: tuple[str, ...] = ()
    """Globs, as ``--select`` takes them; none is every table."""
    tags: tuple[str, ...] = ()
    """Any of these tags; none is every table. With ``tables``, both must hold."""

    def about(self, table: TableName, tags: Iterable[str]) -> bool:
        """Whether the rule is about a table."""
        named = not self.tables or any(matches(table, glob) for glob in self.tables)
        return named and (not self.tags or not set(self.tags).isdisjoint(tags))

    def begins(self, after: datetime) -> Iterator[datetime]:
        """When windows begin after an instant, in order, without end."""
        from zoneinfo import ZoneInfo  # noqa: PLC0415  # loaded only where there is a calendar

        from cronsim import CronSim  # noqa: PLC0415

        for begin in CronSim(self.cron, after.astimezone(ZoneInfo(self.timezone))):
            instant = begin.astimezone(UTC)
            if instant > after:  # an hour that comes twice is not walked twice
                yield instant

    def next_begin(self, after: datetime) -> datetime:
        """When the next window begins after an instant."""
        return next(self.begins(after), after + 2 * _HORIZON)

    def active(self, now: datetime) -> bool:
        """Whether a window of the rule is open: from its begin on, up to its end."""
        return self.next_begin(now - self.duration) <= now

    def end(self, now: datetime) -> datetime:
        """When the latest of the windows that are open ends. Only while ``active``."""
        for span in (*(each for each in _SPANS if each < self.duration), self.duration):
            latest = max(takewhile(lambda begin: begin <= now, self.begins(now - span)), default=None)
            if latest is not None:
                return latest + self.duration
        raise ValueError(f"no window of {self.cron} is open at {now}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Calendar:
    """Deny wins; where a rule allows, it must be open; without any rule an apply may always run."""

    allow: tuple[Rule, ...] = ()
    deny: tuple[Rule, ...] = ()

    def of(self, table: TableName, tags: Iterable[str]) -> Calendar:
        """What of it is about a table."""
        known = frozenset(tags)
        return Calendar(
            allow=tuple(rule for rule in self.allow if rule.about(table, known)),
            deny=tuple(rule for rule in self.deny if rule.about(table, known)),
        )

    def permits(self, now: datetime) -> bool:
        """Whether work may begin now."""
        allowed = not self.allow or any(rule.active(now) for rule in self.allow)
        return allowed and not any(rule.active(now) for rule in self.deny)

    def opening(self, now: datetime) -> datetime | None:
        """When work may begin, now or later; ``None`` where not within a year."""
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
        """Until when work may begin, from an instant at which it may; ``None`` where it may for a year, or where so
        many windows follow each other that nobody counts them.
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


ALWAYS = Calendar()
"""No rule at all."""


def check_cron(text: str) -> str:
    """A cron expression of five fields whose times come. Raises ``ValueError`` that says what it needs."""
    from cronsim import CronSim, CronSimError  # noqa: PLC0415

    if len(text) > _LONGEST_CRON or len(text.split()) != _FIELDS:
        raise ValueError("needs the five fields of cron, such as '0 22 * * 6'")
    try:
        next(CronSim(text, _FIRST))
    except (CronSimError, StopIteration) as error:
        raise ValueError(f"needs the five fields of cron ({str(error).lower() or 'its time never comes'})") from None
    return text


def check_zone(text: str) -> str:
    """The name of a time zone. Raises ``ValueError`` where it is none that this machine knows."""
    from zoneinfo import ZoneInfo  # noqa: PLC0415

    try:
        ZoneInfo(text)
    except (ValueError, OSError, KeyError):  # that it is not found is a KeyError
        raise ValueError("needs the name of a time zone, such as Europe/Berlin") from None
    return text
