"""``--when quiet``: when a table may start, by its past writes and by what was committed last (docs/forecast.md)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from tablectl.applying.context import QuietTerms, RunContext
from tablectl.conflicts.past_writers import PastWriters, loss_of, past_writers
from tablectl.leases.guards import newest_beats, read_guard
from tablectl.model.commits import CommittedTransaction
from tablectl.model.errors import WindowError
from tablectl.model.expected_loss import (
    DAYS,
    HOUR,
    LEAST_WRITES,
    ExpectedLoss,
    Period,
    WeekOfLoss,
    hour_of_week,
    hour_text,
    quietest_hour,
)
from tablectl.model.plan import TablePlan
from tablectl.model.table import LOOK_BACK, Depth
from tablectl.planning.change_actions import actions_for
from tablectl.planning.order import commits_by_statement
from tablectl.storage.records import RecordStore

RECENT = 600.0
"""Seconds: the commits of the last ten minutes show what happens right now."""
_POLL = timedelta(seconds=60)
_DEEP = Depth(LOOK_BACK, losses=lambda _live: True)
_HINT = "wait longer (`--within`), set a higher `window.quiet`, or leave out `--when quiet`"


@dataclass(frozen=True, slots=True)
class QuietForecast:
    """What a table's window is expected to cost."""

    week: WeekOfLoss
    """For each hour of the week; empty if it cannot be told."""
    recent: ExpectedLoss
    """By the writes of the last ten minutes."""
    unknown: str = ""
    """Why the loss cannot be told; empty if it can."""

    def at(self, moment: datetime) -> ExpectedLoss:
        """By the past writes alone."""
        return self.week[hour_of_week(moment.timestamp())] if self.week else ExpectedLoss()

    def now(self, now: datetime) -> ExpectedLoss:
        """By the past writes or by the last ones: the higher loss."""
        past = self.at(now)
        return past if past.failed >= self.recent.failed else self.recent


HARMLESS = QuietForecast((ExpectedLoss(),) * 168, ExpectedLoss())
"""The forecast of statements that fail no write."""


@dataclass(frozen=True, slots=True)
class StartNow:
    """The moment is quiet."""


@dataclass(frozen=True, slots=True)
class WaitUntil:
    """A later moment may be quiet."""

    moment: datetime
    words: str


@dataclass(frozen=True, slots=True)
class NoMoment:
    """No moment in time is quiet."""

    message: str
    hint: str


def forecast_of(window: RunContext, plan: TablePlan, records: RecordStore) -> QuietForecast:
    """The forecast of a planned table, from its log and the guards of its writers. Raises ``TablectlError`` if the log
    cannot be read.
    """
    made = commits_by_statement(actions_for(plan.changes, plan.basis), plan.basis, window.engine.dialect)
    failing = [made[each.id] for each in plan.statements if each.fails and each.id in made]
    if not failing:
        return HARMLESS
    live = window.reader.read(plan.table, plan.location, _DEEP)
    history, now = live.writes or live.past, window.clock.utc().timestamp()
    past = past_writers(history.commits if history else (), plan.basis, window.engine.dialect, now)
    return judged(past, failing, now, guarded_names(records))


def judged(
    past: PastWriters | None, failing: Sequence[Sequence[CommittedTransaction]], now: float, guarded: frozenset[str]
) -> QuietForecast:
    """The forecast from past writes. Writers with one of the names in ``guarded`` do not count."""
    if past is None:
        return QuietForecast((), ExpectedLoss(), f"no commit of the last {DAYS} days has a usable time")
    others = past.without(guarded)
    recent = loss_of(others.within(Period(now - RECENT, now)), failing)[0]
    if past.writes < LEAST_WRITES:
        counted = f"{past.writes} write{'' if past.writes == 1 else 's'}"
        return QuietForecast((), recent, f"{counted} in {DAYS} days, and at least {LEAST_WRITES} are needed")
    return QuietForecast(loss_of(others, failing), recent)


def guarded_names(records: RecordStore) -> frozenset[str]:
    """The names of the writers that have a guard on a table now; none if they cannot be read."""
    try:
        found = [read_guard(records, guard, beat) for guard, beat in newest_beats(records).items()]
    except WindowError:
        return frozenset()
    texts = [each.writer for each in found if each is not None]
    return frozenset(filter(None, (*texts, *(text.split(", ")[0] for text in texts))))


Opening = Callable[[datetime], datetime | None]
"""The first moment from a moment on at which the calendar permits work on some tables."""


def decide(
    forecasts: Sequence[QuietForecast], now: datetime, until: datetime, terms: QuietTerms, opening: Opening
) -> StartNow | WaitUntil | NoMoment:
    """When the window of some tables may open. ``until`` is the last moment."""
    expected = sum((each.now(now) for each in forecasts), ExpectedLoss())
    moment = _first(forecasts, now, max(now, until), terms.limit, opening)
    if moment is None or (moment > now and moment > until):
        return _none(forecasts, now, terms, opening)
    if moment > now:
        return WaitUntil(moment, f"the next quiet moment is {_text(moment)}; now: {expected.text()}")
    if _is_calm(forecasts, now, terms.limit):
        return StartNow()
    if now + _POLL > until:
        return _none(forecasts, now, terms, opening)
    return WaitUntil(now + _POLL, f"writes were committed in the last {RECENT / 60:.0f} minutes")


def _first(
    forecasts: Sequence[QuietForecast], now: datetime, until: datetime, limit: float, opening: Opening
) -> datetime | None:
    """The first moment in an hour that is quiet by the past writes, and in the calendar."""
    moment = now
    while moment <= until:
        opens = opening(moment)
        if opens is None or opens > until:
            return None
        moment = opens
        if sum(each.at(moment).failed for each in forecasts) < limit:
            return moment
        seconds = (moment.timestamp() // HOUR + 1) * HOUR
        moment = datetime.fromtimestamp(seconds, UTC)
    return None


def _is_calm(forecasts: Sequence[QuietForecast], now: datetime, limit: float) -> bool:
    """Whether the last writes allow it, too. Where the loss cannot be told, there must be none in ten minutes."""
    if any(each.unknown and each.recent.failed for each in forecasts):
        return False
    return sum(each.now(now).failed for each in forecasts) < limit


def _none(forecasts: Sequence[QuietForecast], now: datetime, terms: QuietTerms, opening: Opening) -> NoMoment:
    expected = sum((each.now(now) for each in forecasts), ExpectedLoss())
    said = f"no quiet moment within {duration_text(terms.within)}: "
    if opening(now) != now:
        return NoMoment(f"{said}the calendar permits none of them", _HINT)
    message = f"{said}now it would cost {expected.text()}, and the limit is {terms.limit:g} failed writes"
    weeks = [each.week for each in forecasts if each.week]
    if not weeks:
        return NoMoment(message, _HINT)
    week = tuple(sum(hours, ExpectedLoss()) for hours in zip(*weeks, strict=True))
    hour = quietest_hour(week, hour_of_week(now.timestamp()))
    return NoMoment(message, f"run again in the quietest hour, {hour_text(hour)} ({week[hour].failed:.1f}); or {_HINT}")


def duration_text(seconds: float) -> str:
    """``6 h``, ``90 min``."""
    return f"{seconds / HOUR:g} h" if seconds >= HOUR and not seconds % HOUR else f"{seconds / 60:g} min"


def _text(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"
