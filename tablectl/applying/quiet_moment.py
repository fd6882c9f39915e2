"""``--when quiet``: when a table may start, by its past writes and by what was committed last (docs/forecast.md)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial

from tablectl.applying.calendar_check import opening_of
from tablectl.applying.run_context import RunContext, StopTableError, TableJob, interrupted
from tablectl.applying.table_session import TableSession
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
    failed_text,
    hour_of_week,
    hour_text,
)
from tablectl.model.plan import TablePlan
from tablectl.model.rhythm import common
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
"""Seconds between two moments that are compared."""
_DAY = 86_400.0
_LONGEST_HELD = 900.0
"""Seconds for which a lease is held for a moment between two runs."""
_LONGEST_SHUT = 30.0
"""Seconds for which the gate is shut for it, so that guarded writers wait."""
NEEDED = 2.0
"""Seconds that statements need before the next run may begin."""
_DEEP = Depth(LOOK_BACK, losses=lambda _live: True)
_HINT = "wait longer (`--within`), set a higher `window.quiet`, or leave out `--when quiet`"


@dataclass(frozen=True, slots=True)
class QuietForecast:
    """What a table's window is expected to cost."""

    week: WeekOfLoss
    """For each hour of the week, by the writers without a rhythm; empty if unknown."""
    recent: ExpectedLoss
    """By the writes of such writers in the last ten minutes."""
    unknown: str = ""
    """Why the loss is unknown; empty if it is known."""
    jobs: tuple[KnownJob, ...] = ()
    """The writers with a rhythm: the window opens between two of their runs."""
    whole: WeekOfLoss = ()
    """As ``week``, by all writers; empty if there are no ``jobs``."""
    busiest: str = ""
    """The writer without a rhythm that has the most writes in flight."""

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
class WaitUntil:
    """A later moment may be quiet."""

    moment: datetime
    words: str


@dataclass(frozen=True, slots=True)
class FreeTime:
    """A time in which no run is expected."""

    start: float
    """In seconds since the epoch."""
    end: float
    after: str = ""
    """The writer whose run ends last before it; empty if none runs."""

    @property
    def text(self) -> str:
        """``10:04:10 to 10:12:00 UTC, after MERGE by etl_orders``."""
        first, last = (datetime.fromtimestamp(each, UTC) for each in (self.start, self.end))
        day = f"{first:%Y-%m-%d} " if self.after == "" or last - first > timedelta(hours=12) else ""
        over = f"{last:%H:%M:%S}" if first.date() == last.date() else f"{last:%Y-%m-%d %H:%M:%S}"
        return f"{day}{first:%H:%M:%S} to {over} UTC" + (f", after {self.after}" if self.after else "")


def free_times(forecasts: Sequence[QuietForecast], now: float, until: float) -> Iterator[FreeTime]:
    """The times between the runs of all known jobs, long enough for statements. The first begins at ``now`` if no run
    is in flight.
    """
    jobs = [job for each in forecasts for job in each.jobs]
    series = [each.rhythm.windows(now, until + NEEDED) for each in jobs]
    for start, end in common([[(now, until + NEEDED)], *series]):
        if end - start >= NEEDED:
            last = [max((at for at, _ in own if at <= start), default=now) for own in series]
            yield FreeTime(start, end, jobs[last.index(max(last))].name if start > now else "")


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
        job, context, within = self._job, self._job.context, self._job.context.within
        if within is None or now - self._quiet_at < _STILL_QUIET:
            return GO
        last = job.began + within
        try:
            found = {table.name: forecast_of(context, table, context.records(table.location)) for table in job.tables}
        except TablectlError as error:
            # Tables that cannot be read are read again for a while
            self._unread_since = now if self._unread_since is None else self._unread_since
            left = min(self._unread_since + _LONGEST_UNREAD, last) - now
            if left <= 0:
                return End(RunOutcome.FAILED, error.message, error.hint)
            words = f"whether this moment is quiet is unknown: {one_line(error)}"
            return Later(now + min(_POLL, left), _QUIET, words, last - self._job.began)
        self._unread_since = None
        utc, limit = context.clock.utc(), context.config.quiet
        until = utc + timedelta(seconds=last - now)
        answer = decide(tuple(found.values()), utc, until, within, limit, partial(opening_of, context, job.tables))
        if isinstance(answer, WaitUntil):
            at = now + (answer.moment - utc).total_seconds()
            return Later(at, _QUIET, answer.words, within)
        if isinstance(answer, Go):
            waited, self._quiet_at = round((now - job.began) * 1000), now
            free = next(free_times(tuple(found.values()), utc.timestamp(), utc.timestamp() + _DAY), None)
            said = free.text if free and any(each.jobs for each in found.values()) else ""
            self._starts = {name: _quiet_start(each, utc, waited, limit, said) for name, each in found.items()}
        return answer

    def note(self, run: TableRun) -> TableRun:
        """What was expected of the run, and what it may have cost."""
        start = self._starts.get(run.name)
        if start is None or not run.epoch:
            return run
        failing = any(each.fails and not each.error for each in run.statements)
        return replace(run, quiet=replace(start, actual=len(run.possible_failures) if failing else None))


def between_runs(session: TableSession) -> bool:
    """Whether no run of a known job is in flight now. Called under the lease, after everything slow: the next thing is
    a blocking statement. If a run is, waits for its commit and returns False: the table is then read again. The gate
    stays shut for a short wait only.

    Raises ``StopTableError`` if no such moment comes in time.
    """
    context, clock = session.context, session.context.clock
    if context.within is None or context.together is not None or session.copying is not None:
        return True
    forecast, now = forecast_of(context, session.plan, session.lease.store, session.guarded), clock.utc().timestamp()
    until = session.begun.timestamp() + min(context.within, _LONGEST_HELD)
    free = next(free_times((forecast,), now, max(until, now)), None)
    if not forecast.jobs or (free is not None and free.start <= now):
        session.shut_since = None
        return True
    if free is None or free.start > until:
        jobs = "; ".join(each.text for each in forecast.jobs)
        message = f"no moment between two runs came within {duration_text(until - session.begun.timestamp())}: {jobs}"
        raise StopTableError(RunOutcome.NO_WINDOW, message, f"run the same command again; or {_HINT}")
    session.tell("quiet", f"the next free moment is {free.text}")
    session.shut_since = now if session.shut_since is None else session.shut_since
    ends = free.start
    if ends - session.shut_since > _LONGEST_SHUT:
        session.gate.reopen()
        session.shut_since, ends = None, ends - NEEDED
    while (left := ends - clock.utc().timestamp()) > 0:
        if context.stop.is_set():
            raise interrupted()
        session.lease.prove(context.budget)
        clock.sleep(min(left, 1.0))
    return False


def _quiet_start(forecast: QuietForecast, now: datetime, waited: int, limit: float, free: str) -> QuietStart:
    expected = forecast.now(now)
    known = not forecast.unknown
    return QuietStart(
        waited_ms=waited,
        limit=limit,
        failed=round(expected.failed, 3) if known else None,
        seconds=round(expected.seconds, 1) if known else None,
        unknown=forecast.unknown,
        free=free if forecast.jobs else "",
    )


def forecast_of(
    context: RunContext, plan: TablePlan, records: RecordStore, guarded: frozenset[str] = frozenset()
) -> QuietForecast:
    """The forecast of a planned table, from its log and the guards of its writers, now and before (``guarded``).
    Raises ``TablectlError`` if the log cannot be read.
    """
    if isinstance(plan, UpkeepTable):
        made = plan.made
    else:
        made = derive_table(plan.changes, plan.basis, plan.table, context.engine.dialect).commits()
    failing = [made[each.id] for each in plan.statements if each.fails and each.id in made]
    if not failing:
        return HARMLESS
    live = context.reader.read(plan.table, plan.location, _DEEP)
    history, now = live.writes or live.past, context.clock.utc().timestamp()
    past = past_writers(history.commits if history else (), plan.basis, context.engine.dialect, now)
    names = guarded_names(records) | guarded
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
    recent = loss_within(rest, failing, Period(now - RECENT, now))
    busiest = max(rest.writers, key=lambda each: sum(one.seconds for one in each.writes), default=None)
    return QuietForecast(
        loss_of(rest, failing), recent, new, jobs, loss_of(others, failing), busiest.name if busiest else ""
    )


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
    found = _first_quiet(forecasts, now, until, limit, opening)
    if found is None:
        return _no_quiet_moment(forecasts, now, until, within, limit, opening)
    moment, free = found
    if moment > now:
        if any(each.jobs for each in forecasts):
            return WaitUntil(moment, f"the next free moment is {replace(free, start=moment.timestamp()).text}")
        why = f"; now: {_expected(forecasts, now, now).text()}"
        return WaitUntil(moment, f"the next quiet moment is {_text(moment)}{why}")
    if _is_calm(forecasts, now, limit):
        return GO
    again = now + timedelta(seconds=_POLL)
    if again > until:
        # The hour is quiet by the past writes, and the last writes contradict it until the end
        said = f"no quiet moment within {duration_text(within)}: "
        unknown = next((each.unknown for each in forecasts if each.unknown and each.recent.failed), "")
        if unknown:
            return End(
                RunOutcome.NO_WINDOW, f"{said}there were always writes in the last ten minutes ({unknown})", _HINT
            )
        loss = _expected(forecasts, now, now)
        return End(
            RunOutcome.NO_WINDOW,
            f"{said}the hours are quiet by the past writes, but by those of the last ten minutes it would cost "
            f"{loss.text()}, and the limit is {limit:g}",
            _HINT,
        )
    return WaitUntil(again, f"writes were committed in the last {RECENT / 60:.0f} minutes")


def _moments(start: datetime, until: datetime, opening: Opening) -> Iterator[datetime]:
    """The first moment of each ten minutes that the calendar permits."""
    moment = start
    while moment <= until:
        opens = opening(moment)
        if opens is None or opens > until:
            return
        yield opens
        moment = datetime.fromtimestamp((opens.timestamp() // _STEP + 1) * _STEP, UTC)


def _past_loss(forecasts: Sequence[QuietForecast], moment: datetime) -> ExpectedLoss:
    return sum((each.at(moment) for each in forecasts), ExpectedLoss())


def _expected(forecasts: Sequence[QuietForecast], moment: datetime, now: datetime) -> ExpectedLoss:
    """Of a moment; what was committed last counts for now."""
    if moment > now:
        return _past_loss(forecasts, moment)
    return sum((each.now(now) for each in forecasts), ExpectedLoss())


def _first_quiet(
    forecasts: Sequence[QuietForecast], now: datetime, until: datetime, limit: float, opening: Opening
) -> tuple[datetime, FreeTime] | None:
    """The first moment between the runs of the known jobs that is quiet by the past writes of the others."""
    for free in free_times(forecasts, now.timestamp(), until.timestamp()):
        start = max(now, datetime.fromtimestamp(free.start, UTC))
        last = min(until, datetime.fromtimestamp(free.end - NEEDED, UTC))
        for moment in _moments(start, last, opening):
            if _past_loss(forecasts, moment).failed < limit:
                return moment, free
    return None


def _is_calm(forecasts: Sequence[QuietForecast], now: datetime, limit: float) -> bool:
    """Whether the last writes allow it, too. Where the loss is unknown, there must be none in ten minutes."""
    if any(each.unknown and each.recent.failed for each in forecasts):
        return False
    return _expected(forecasts, now, now).failed < limit


def _no_quiet_moment(
    forecasts: Sequence[QuietForecast],
    now: datetime,
    until: datetime,
    within: float,
    limit: float,
    opening: Opening,
) -> End:
    """No moment in time is quiet by the past writes, so that waiting cannot help: the best hour, and what to set."""
    said = f"no quiet moment within {duration_text(within)}: "
    reachable = list(_moments(now, until, opening))
    if not reachable:
        return End(RunOutcome.NO_WINDOW, f"{said}the calendar permits none of them", _HINT)
    best = min(reachable, key=lambda moment: _expected(forecasts, moment, now).failed)
    least = _expected(forecasts, best, now)
    if least.failed < limit:
        jobs = "; ".join(job.text for each in forecasts for job in each.jobs)
        why = f"none is free of the runs of known jobs ({jobs})"
        hour = hour_of_week(best.timestamp())
        least = sum((each.whole[hour] if each.whole else each.at(best) for each in forecasts), ExpectedLoss())
    else:
        busiest = next((each.busiest for each in forecasts if each.busiest and each.at(best).failed), "")
        why = f"in no hour are fewer than {limit:g} failed writes expected"
        why += f", and {busiest} leaves no time between two writes" if busiest else ""
    message = f"{said}{why}; the best is {_hour(best)} with {least.text()}"
    start = until - timedelta(seconds=within)
    later = _first_quiet(forecasts, until, start + _WEEK, limit, opening)
    others = f"set `window.quiet: {_above(least.failed)}` in tablectl.yaml, or leave out `--when quiet`"
    if later is None:
        return End(
            RunOutcome.NO_WINDOW,
            message,
            f"no hour of the week is below the limit: guard the writers, so that they wait; give a stream a longer "
            f"trigger; {others}",
        )
    hours = (later[0] - start) // timedelta(hours=1) + 1
    loss = _past_loss(forecasts, later[0]).failed
    return End(
        RunOutcome.NO_WINDOW,
        message,
        f"wait until {_hour(later[0])} ({failed_text(loss)}) with `--within {hours}h`; {others}",
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
