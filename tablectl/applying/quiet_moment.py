"""``--when quiet``: when a table may start, by its past writes and by what was committed last (docs/forecast.md)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial

from tablectl.applying.calendar_check import opening_of
from tablectl.applying.run_context import RunContext, TableJob
from tablectl.applying.waits import GO, Answer, Awaited, End, Go, Later, Wait
from tablectl.conflicts.past_writers import KnownJob, PastWriters, known_jobs, loss_of, loss_within, past_writers
from tablectl.leases.guards import read_guards
from tablectl.model.commit_contents import CommittedTransaction
from tablectl.model.errors import TablectlError, WindowError, one_line
from tablectl.model.expected_loss import (
    DAYS,
    HOUR,
    ExpectedLoss,
    Period,
    WeekOfLoss,
    hour_of_week,
    hour_text,
)
from tablectl.model.plan import TablePlan
from tablectl.model.run_report import QuietStart, RunOutcome, TableRun
from tablectl.model.table import LOOK_BACK, Depth
from tablectl.planning.derive_statements import derive_table
from tablectl.planning.plan_upkeep import UpkeepTable
from tablectl.storage.records import RecordStore
from tablectl.writers.guard_traces import KEPT, traces

RECENT = 600.0
"""Seconds: the commits of the last ten minutes show what happens right now."""
_QUIET = Awaited("quiet", "for a quiet moment")
_POLL = 60.0
"""Seconds between two looks at the writes of the last minutes."""
_STILL_QUIET = 60.0
"""Seconds for which a moment counts as quiet once it was found to be, while a lease is polled for example."""
_LONGEST_UNREAD = 600.0
"""Seconds for which tables that cannot be read are read again."""
_WEEK = timedelta(days=7)
_FEW = 3
_STEP = 600.0
"""Seconds between two moments that are compared. Usual times begin and end at any minute."""
_DEEP = Depth(LOOK_BACK, losses=lambda _live: True)
_HINT = "wait longer (`--within`), set a higher `window.quiet`, or leave out `--when quiet`"


@dataclass(frozen=True, slots=True)
class QuietForecast:
    """What a table's window is expected to cost."""

    week: WeekOfLoss
    """For each hour of the week; empty if unknown."""
    recent: ExpectedLoss
    """By the writes of the last ten minutes."""
    unknown: str = ""
    """Why the loss is unknown; empty if it is known."""
    jobs: tuple[KnownJob, ...] = ()
    """The writers with usual times of the day."""
    rest: WeekOfLoss = ()
    """For each hour of the week, without these writers; empty if there are none."""

    def running(self, moment: datetime, now: datetime) -> KnownJob | None:
        """A job of which a run may be in flight at a moment."""
        return next((each for each in self.jobs if each.may_run(moment.timestamp(), now.timestamp())), None)

    def at(self, moment: datetime, now: datetime) -> ExpectedLoss:
        """By the past writes alone."""
        week = self.rest if self.rest and not self.running(moment, now) else self.week
        return week[hour_of_week(moment.timestamp())] if week else ExpectedLoss()

    def now(self, now: datetime) -> ExpectedLoss:
        """By the past writes or by the last ones: the higher loss."""
        past = self.at(now, now)
        return past if past.failed >= self.recent.failed else self.recent


HARMLESS = QuietForecast((ExpectedLoss(),) * 168, ExpectedLoss())
"""The forecast of statements that fail no write."""


@dataclass(frozen=True, slots=True)
class WaitUntil:
    """A later moment may be quiet."""

    moment: datetime
    words: str


class QuietWait(Wait):
    """With ``--when quiet``: the tables start at a moment at which few writes are expected to fail."""

    def __init__(self, job: TableJob) -> None:
        self._job = job
        self._quiet_at = float("-inf")
        self._starts: Mapping[str, QuietStart] = {}
        """What was expected of each table when the moment was found to be quiet."""
        self._unread_since: float | None = None
        """Since when tables cannot be read."""

    def check(self, now: float) -> Answer:
        """Whether this moment is quiet."""
        job, window, within = self._job, self._job.window, self._job.window.within
        if within is None or now - self._quiet_at < _STILL_QUIET:
            return GO
        last = job.began + within
        try:
            found = {table.name: forecast_of(window, table, window.records(table.location)) for table in job.tables}
        except TablectlError as error:
            return self._wait_to_read(error, now, last)
        self._unread_since = None
        utc, limit = window.clock.utc(), window.config.quiet
        until = utc + timedelta(seconds=last - now)
        answer = decide(tuple(found.values()), utc, until, within, limit, partial(opening_of, window, job.tables))
        if isinstance(answer, WaitUntil):
            at = now + (answer.moment - utc).total_seconds()
            return Later(at, _QUIET, answer.words, within)
        if isinstance(answer, Go):
            waited, self._quiet_at = round((now - job.began) * 1000), now
            self._starts = {name: _quiet_start(each, utc, waited, limit) for name, each in found.items()}
        return answer

    def _wait_to_read(self, error: TablectlError, now: float, last: float) -> Answer:
        """Tables that cannot be read are read again for a while."""
        self._unread_since = now if self._unread_since is None else self._unread_since
        left = min(self._unread_since + _LONGEST_UNREAD, last) - now
        if left <= 0:
            return End(RunOutcome.FAILED, error.message, error.hint)
        words = f"whether this moment is quiet is unknown: {one_line(error)}"
        return Later(now + min(_POLL, left), _QUIET, words, last - self._job.began)

    def note(self, run: TableRun) -> TableRun:
        """What was expected of the run, and what it may have cost."""
        start = self._starts.get(run.name)
        if start is None or not run.epoch:
            return run
        failing = any(each.fails and not each.error for each in run.statements)
        return replace(run, quiet=replace(start, actual=len(run.possible_failures) if failing else None))


def _quiet_start(forecast: QuietForecast, now: datetime, waited: int, limit: float) -> QuietStart:
    expected = forecast.now(now)
    known = not forecast.unknown
    return QuietStart(
        waited_ms=waited,
        limit=limit,
        failed=round(expected.failed, 3) if known else None,
        seconds=round(expected.seconds, 1) if known else None,
        unknown=forecast.unknown,
    )


def forecast_of(window: RunContext, plan: TablePlan, records: RecordStore) -> QuietForecast:
    """The forecast of a planned table, from its log and the guards of its writers. Raises ``TablectlError`` if the log
    cannot be read.
    """
    if isinstance(plan, UpkeepTable):
        made = plan.made
    else:
        made = derive_table(plan.changes, plan.basis, plan.table, window.engine.dialect).commits()
    failing = [made[each.id] for each in plan.statements if each.fails and each.id in made]
    if not failing:
        return HARMLESS
    live = window.reader.read(plan.table, plan.location, _DEEP)
    history, now = live.writes or live.past, window.clock.utc().timestamp()
    past = past_writers(history.commits if history else (), plan.basis, window.engine.dialect, now)
    names = guarded_names(records)
    if isinstance(plan, UpkeepTable) and (names := names | traced_names(records, now)) and past is not None:
        past = past.named()  # where writers use guards, commits without a name count as theirs
    return judged(past, failing, now, names)


def judged(
    past: PastWriters | None, failing: Sequence[Sequence[CommittedTransaction]], now: float, guarded: frozenset[str]
) -> QuietForecast:
    """The forecast from past writes. Writers with one of the names in ``guarded`` do not count."""
    if past is None:
        return QuietForecast((), ExpectedLoss(), f"no commit of the last {DAYS} days has a usable time")
    others = past.without(guarded)
    recent = loss_within(others, failing, Period(now - RECENT, now))
    if not past.writes:
        return QuietForecast((), recent, f"no writes in {DAYS} days")
    jobs, new = known_jobs(others, failing), _new_writers(others, now)
    usual = {id(each.writer) for each in jobs}
    rest = replace(others, writers=tuple(each for each in others.writers if id(each) not in usual))
    return QuietForecast(loss_of(others, failing), recent, new, jobs, loss_of(rest, failing) if jobs else ())


def _new_writers(past: PastWriters, now: float) -> str:
    """Why the loss is unknown if a writer began to write just now: it may be a long load."""
    new = [
        each for each in past.writers if len(each.writes) < _FEW and max(one.end for one in each.writes) > now - RECENT
    ]
    count = sum(len(each.writes) for each in new)
    return (
        f"a writer made {count} write{'' if count == 1 else 's'} in {DAYS} days, the last one just now" if new else ""
    )


def guarded_names(records: RecordStore) -> frozenset[str]:
    """The names of the writers that have a guard on a table now; none if they cannot be read."""
    try:
        texts = [each.writer for each in read_guards(records)]
    except WindowError:
        return frozenset()
    return frozenset(filter(None, (*texts, *(text.split(", ")[0] for text in texts))))


def traced_names(records: RecordStore, now: float) -> frozenset[str]:
    """The names of the writers that came with a guard in the last days; none if they cannot be read."""
    try:
        found = traces(records, datetime.fromtimestamp(now, UTC).date() - timedelta(days=KEPT))
    except WindowError:
        return frozenset()
    return frozenset(name for each in found for name in (each.writer, each.writer.split(", ")[0]) if name)


Opening = Callable[[datetime], datetime | None]
"""The first moment from a moment on at which the calendar permits work on some tables."""


def decide(
    forecasts: Sequence[QuietForecast], now: datetime, until: datetime, within: float, limit: float, opening: Opening
) -> Go | WaitUntil | End:
    """When the window of some tables may open. ``until`` is the last moment, ``within`` seconds after the start of the
    run. ``limit`` is the expected number of failed writes below which a moment is quiet.
    """
    until = max(now, until)
    reachable = list(_moments(now, until, opening))
    moment = _first_quiet(forecasts, reachable, now, limit)
    if moment is None:
        return _no_quiet_hour(forecasts, reachable, (now, until), within, limit, opening)
    if moment > now:
        job = _running(forecasts, now, now)
        why = f"; {job.text}" if job else f"; now: {_expected(forecasts, now, now).text()}"
        return WaitUntil(moment, f"the next quiet moment is {_text(moment)}{why}")
    if _is_calm(forecasts, now, limit):
        return GO
    again = now + timedelta(seconds=_POLL)
    if again > until:
        return _no_calm_moment(forecasts, now, within, limit)
    return WaitUntil(again, f"writes were committed in the last {RECENT / 60:.0f} minutes")


def _moments(now: datetime, until: datetime, opening: Opening) -> Iterator[datetime]:
    """The first moment of each ten minutes that the calendar permits."""
    moment = now
    while moment <= until:
        opens = opening(moment)
        if opens is None or opens > until:
            return
        yield opens
        moment = datetime.fromtimestamp((opens.timestamp() // _STEP + 1) * _STEP, UTC)


def _running(forecasts: Sequence[QuietForecast], moment: datetime, now: datetime) -> KnownJob | None:
    return next(filter(None, (each.running(moment, now) for each in forecasts)), None)


def _past_loss(forecasts: Sequence[QuietForecast], moment: datetime, now: datetime) -> ExpectedLoss:
    return sum((each.at(moment, now) for each in forecasts), ExpectedLoss())


def _expected(forecasts: Sequence[QuietForecast], moment: datetime, now: datetime) -> ExpectedLoss:
    """Of a moment; what was committed last counts for now."""
    if moment > now:
        return _past_loss(forecasts, moment, now)
    return sum((each.now(now) for each in forecasts), ExpectedLoss())


def _first_quiet(
    forecasts: Sequence[QuietForecast], moments: Iterable[datetime], now: datetime, limit: float
) -> datetime | None:
    """The first of some moments at which no known job runs, and that is quiet by the past writes."""
    quiet = (each for each in moments if _past_loss(forecasts, each, now).failed < limit)
    return next((each for each in quiet if not _running(forecasts, each, now)), None)


def _is_calm(forecasts: Sequence[QuietForecast], now: datetime, limit: float) -> bool:
    """Whether the last writes allow it, too. Where the loss is unknown, there must be none in ten minutes."""
    if any(each.unknown and each.recent.failed for each in forecasts):
        return False
    return _expected(forecasts, now, now).failed < limit


def _no_quiet_hour(
    forecasts: Sequence[QuietForecast],
    reachable: Sequence[datetime],
    between: tuple[datetime, datetime],
    within: float,
    limit: float,
    opening: Opening,
) -> End:
    """No moment in time is quiet by the past writes, so that waiting cannot help: the best hour, and what to set."""
    said = f"no quiet moment within {duration_text(within)}: "
    if not reachable:
        return End(RunOutcome.NO_WINDOW, f"{said}the calendar permits none of them", _HINT)
    now, until = between
    best = min(reachable, key=lambda moment: _expected(forecasts, moment, now).failed)
    least = _expected(forecasts, best, now)
    job = _running(forecasts, best, now)
    why = f"in no hour are fewer than {limit:g} failed writes expected"
    if job:
        why = f"a run may always be in flight ({job.text})"
    message = f"{said}{why}; the best is {_hour(best)} with {least.text()}"
    start = until - timedelta(seconds=within)
    later = _first_quiet(forecasts, _moments(until, start + _WEEK, opening), now, limit)
    others = f"set `window.quiet: {_above(least.failed)}` in tablectl.yaml, or leave out `--when quiet`"
    if later is None:
        return End(
            RunOutcome.NO_WINDOW,
            message,
            f"no hour of the week is below the limit: guard the writers, so that they wait; {others}",
        )
    hours = (later - start) // timedelta(hours=1) + 1
    loss = _past_loss(forecasts, later, now).failed
    return End(
        RunOutcome.NO_WINDOW, message, f"wait until {_hour(later)} ({loss:.1f}) with `--within {hours}h`; {others}"
    )


def _no_calm_moment(forecasts: Sequence[QuietForecast], now: datetime, within: float, limit: float) -> End:
    """The hour is quiet by the past writes, and the last writes contradict it until the end."""
    said = f"no quiet moment within {duration_text(within)}: "
    unknown = next((each.unknown for each in forecasts if each.unknown and each.recent.failed), "")
    if unknown:
        return End(RunOutcome.NO_WINDOW, f"{said}there were always writes in the last ten minutes ({unknown})", _HINT)
    loss = _expected(forecasts, now, now)
    return End(
        RunOutcome.NO_WINDOW,
        f"{said}the hours are quiet by the past writes, but by those of the last ten minutes it would cost "
        f"{loss.text()}, and the limit is {limit:g}",
        _HINT,
    )


def _above(failed: float) -> str:
    """A limit that permits a loss, with a tenth more for what differs until the next run."""
    return f"{math.floor(failed * 11) / 10 + 0.1:.1f}"


def _hour(moment: datetime) -> str:
    return hour_text(hour_of_week(moment.timestamp()))


def duration_text(seconds: float) -> str:
    """``6 h``, ``90 min``."""
    return f"{seconds / HOUR:g} h" if seconds >= HOUR and not seconds % HOUR else f"{seconds / 60:g} min"


def _text(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"
