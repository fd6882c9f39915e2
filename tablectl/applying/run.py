"""A whole apply: a queue of tables, each with its own lease and window, both released on every exit path.

Tables do not wait for each other. A table takes what it needs in one order: a worker, its leases (all or none, and it
never waits for one while it holds another), its turn on the driver, its gate. Each of these waits is either for someone
outside of the run and bounded (a lease is polled without a worker, writers get ``window.drain`` seconds), or for a
turn, whose holder releases it without a further wait. So there is no cycle of waits between tables or between applies,
and no deadlock.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial

from tablectl.applying.calendar_check import opening_of
from tablectl.applying.canary import STOPPED_HINT, choose, soak
from tablectl.applying.context import QuietTerms, RunContext, StopTableError
from tablectl.applying.drivers import (
    Driver,
    JobDriver,
    MoveTo,
    NoDriver,
    Placement,
    Stay,
    WaitForEnd,
    expected_work,
    paced_bytes,
)
from tablectl.applying.events import DONE, RELEASED, RunEvent, Tally
from tablectl.applying.gate import with_gate
from tablectl.applying.owed_hooks import OwedHookTable, run_owed_hooks, with_shared_windows
from tablectl.applying.preflight import check_commits, check_scheme
from tablectl.applying.quiet_moment import QUIET_POLL, NoMoment, QuietForecast, StartNow, WaitUntil, decide, forecast_of
from tablectl.applying.record_rights import check_rights
from tablectl.applying.retry import RETRIED, LeaseWait, judge, next_try, wait_text
from tablectl.applying.run_report import CanaryRun, QuietStart, RunOutcome, RunReport, TableRun
from tablectl.applying.run_table import preflight, run_table, unexpected
from tablectl.applying.scheduler import STOPPED, Later, QueuedJob, Rules, Scheduler
from tablectl.applying.shared_window import SharedWindow, shares_window
from tablectl.applying.statement import engine_gone, may_renew
from tablectl.applying.streams import STREAM_POLL, Positions, StreamTarget, continued_streams, positions_of, targets_of
from tablectl.delta.dialects import dialect_of
from tablectl.delta.names import canonical_location
from tablectl.frozen import frozen
from tablectl.leases.acquire import Blocked, Claim, Sighting, acquire_all
from tablectl.leases.clock import StoppedError, milliseconds
from tablectl.leases.lease import Lease, Renewer
from tablectl.model.errors import LiveError, PlanFileError, TablectlError, WindowError, one_line
from tablectl.model.plan import Plan, TablePlan
from tablectl.model.text import minutes_text
from tablectl.one_table import no_panic, of_table
from tablectl.storage.failures import MissingRightError
from tablectl.storage.mounts import real_place
from tablectl.storage.records import RecordStore

_AGAIN = "run the same command again"
_NEVER = float("-inf")
_LIMIT = "`window.max_bytes_per_hour`"
_OF_A_DEAD_DRIVER = frozenset({RunOutcome.FAILED, RunOutcome.UNKNOWN, RunOutcome.LEASE_LOST})
"""Outcomes that a driver which does not answer can cause. Such a table continues on another driver."""
_STILL_QUIET = 60.0
"""Seconds for which a moment counts as quiet once it was found to be, while a lease is polled for example."""
_LONGEST_UNREAD = 600.0
"""Seconds for which tables that cannot be read are read again before ``--when quiet`` gives up."""
ON_DISK = (
    "on a local disk two drivers can overwrite each other's commits: let no other process write these tables meanwhile"
)
MOST_TOGETHER = 64
"""How many tables may share a window: each needs a thread, and its gate is shut for as long as all of them take."""

Runs = Mapping[str, TableRun]
"""The runs of a job's tables by name."""


@frozen
class Schedule:
    """How tables are scheduled: how many at a time, for which claim, and where their lease records are."""

    parallel: int
    claim: Claim
    records: Callable[[str], RecordStore]
    """Returns the record store of a table by its location."""
    together: tuple[str, ...] = ()
    """Names (globs) and tags of the tables that share one window."""
    drivers: tuple[Driver, ...] = ()
    """The drivers of the run, if it has several; each takes ``parallel`` tables at a time."""


def run_plan(window: RunContext, schedule: Schedule, plan: Plan, unchanged: Sequence[OwedHookTable] = ()) -> RunReport:
    """Apply a plan. A failure on one table does not stop the others; all leases are released on every exit path.

    What a run that died owes is run first, on all tables: those that are applied, those that cannot be, and
    ``unchanged``, those without changes.
    """
    at, began = milliseconds(window.clock.utc()), window.clock.monotonic()
    planned = [table for table in plan.tables if table.applies]
    looks = {table.name: of_table(table.name, partial(_first_look, window, table)) for table in planned}
    failed = {
        table.name: _failed(table, found) for table in planned if isinstance(found := looks[table.name], TablectlError)
    }
    known = {name: found for name, found in looks.items() if not isinstance(found, TablectlError)}
    _check_places([(table, known[table.name][0]) for table in planned if table.name in known])
    barred, notes = _check_commits(window, schedule, [table for table in planned if table.name in known])
    barred |= failed
    barred |= _barred_together(schedule, plan.tables, barred)
    todo = [table for table in planned if table.name not in barred]
    positions = {table.name: known[table.name][1] for table in todo}
    owing = with_shared_windows([*map(_with_owed_hooks, plan.tables), *unchanged], schedule.together)
    settled = run_owed_hooks(window, schedule.claim, schedule.records, owing, schedule.parallel)
    runs, canary = _run_in_stages(window, schedule, todo)
    runs |= continued_streams(window, todo, runs, positions)
    runs |= barred | {table.name: _left_out(table) for table in plan.tables if table.refusals}
    runs = settled | {name: _after_settled(run, settled.get(name)) for name, run in runs.items()}
    return RunReport(
        run=window.stamp.run,
        plan=window.stamp.plan,
        env=plan.env,
        tables=tuple(sorted(runs.values(), key=lambda run: run.name)),
        failures=plan.failures,
        proceed=window.stamp.proceed,
        override=window.stamp.override,
        notes=notes,
        canary=canary,
        at=at,
        took_ms=round((window.clock.monotonic() - began) * 1000),
    )


def _with_owed_hooks(table: TablePlan) -> OwedHookTable:
    streams = partial(getattr, table.basis.options, "stream_names")
    return OwedHookTable(table.name, table.location, streams, lambda: table.tags, applied=table.applies)


def _after_settled(run: TableRun, settled: TableRun | None) -> TableRun:
    """The run of a table with what became of the hooks that were owed on it before: a run without a lease knows nothing
    of them.
    """
    if settled is None:
        return run
    notes = (*settled.notes, *run.notes)
    if run.epoch:
        return replace(run, notes=notes)
    return replace(run, owed=settled.owed, notes=notes, shut_ms=settled.shut_ms, shut=settled.shut)


def _check_commits(
    window: RunContext, schedule: Schedule, tables: Sequence[TablePlan]
) -> tuple[dict[str, TableRun], tuple[str, ...]]:
    """The tables on which commits could be lost, checked before any table starts, and warnings where that is only
    possible. A table must be safe on every driver, because it may move.
    """
    barred: dict[str, TableRun] = {}
    warn = False
    exclusive, drivers = window.terms.exclusive_commits, schedule.drivers or (Driver("", window.engine),)
    checked: dict[tuple[str, str, bool], bool] = {}
    for table in tables:
        through_catalog = table.basis.metadata_version is not None
        try:
            location = _opened_at(window, table)
            scheme = location.partition(":")[0] if ":" in location else ""
            for driver in drivers:
                key = (driver.name, scheme, through_catalog)
                if key not in checked:
                    check_scheme(driver.engine, location)
                    checked[key] = check_commits(
                        driver.engine,
                        location,
                        exclusive=exclusive or through_catalog,
                        only=not driver.name,
                    )
                warn |= checked[key]
        except StopTableError as end:
            barred[table.name] = _plain(table, end.outcome, end.message, end.hint)
        except Exception as error:  # noqa: BLE001  # see ``run_table``
            barred[table.name] = _failed(table, error)
    if warn:
        window.notify(RunEvent("", "note", ON_DISK))
    return barred, (ON_DISK,) if warn else ()


def _opened_at(window: RunContext, table: TablePlan) -> str:
    """Where the engine opens a table. One that is not there is reported later, as every change since the plan."""
    if dialect_of(window.engine.dialect).exclusive_commits:
        return table.location
    try:
        return window.opened_at(table.table, table.location)
    except LiveError:
        return table.location


def _first_look(window: RunContext, table: TablePlan) -> tuple[str, Positions]:
    """Where a table really lies, and how far its declared streams are."""
    return real_place(table.location), positions_of(window, table)


def _check_places(places: Sequence[tuple[TablePlan, str]]) -> None:
    """Reject two names for one table: they would compete for its lease, and each would fail the other's checks."""
    names: dict[str, str] = {}
    for table, place in places:
        if place in names:
            raise PlanFileError(
                f"{names[place]} and {table.name} are one table: both lie in {table.location}",
                "declare the table under one name, and plan again",
            )
        names[place] = table.name


def _barred_together(schedule: Schedule, tables: Sequence[TablePlan], barred: Runs) -> dict[str, TableRun]:
    """Tables that share a window with a table that cannot be changed: all of them are changed, or none."""
    group = [table for table in tables if shares_window(table.table, table.tags, schedule.together)]
    out = next((table.name for table in group if table.refusals or table.name in barred), "")
    others = [table for table in group if table.applies and table.name not in barred]
    if len(others) > MOST_TOGETHER:
        raise PlanFileError(
            f"`window.together` names {len(others)} tables of this plan; at most {MOST_TOGETHER} can share a window",
            "select fewer tables, or name fewer of them",
        )
    if not out:
        return {}
    message = f"it shares a window (`window.together`) with {out}, which cannot be changed"
    return {table.name: _plain(table, RunOutcome.REFUSED, message, f"see {out}") for table in others}


def _run_in_stages(
    window: RunContext, schedule: Schedule, tables: Sequence[TablePlan]
) -> tuple[dict[str, TableRun], CanaryRun | None]:
    """All tables at once; or with ``--canary`` some first, and the others if these show no failure for a while.

    Nothing is held in between: neither a lease nor a gate nor a worker.
    """
    terms = window.terms.canary
    if terms is None or not tables:
        return _run_all(window, schedule, tables), None
    group = frozenset(table.name for table in tables if shares_window(table.table, table.tags, schedule.together))
    chosen = choose(tables, terms, group)
    first = [table for table in tables if table.name in chosen.names]
    rest = [table for table in tables if table.name not in chosen.names]
    runs = _run_all(window, schedule, first)
    canary = soak(window, terms, first, runs, rest)
    canary = replace(canary, notes=(*chosen.notes, *canary.notes))
    if not canary.reason:
        return runs | _run_all(window, schedule, rest), canary
    left = {table.name: _plain(table, RunOutcome.NOT_STARTED, canary.reason, STOPPED_HINT) for table in rest}
    return runs | left, canary


def _run_all(window: RunContext, schedule: Schedule, tables: Sequence[TablePlan]) -> dict[str, TableRun]:
    group = sorted((table for table in tables if shares_window(table.table, table.tags, schedule.together)), key=_key)
    alone = [(table,) for table in tables if table not in group]
    tally = Tally(window.notify, window.clock.monotonic)
    window = replace(window, notify=tally)
    jobs = {_key(some[0]): some for some in (tuple(group), *alone) if some}
    placement = Placement(
        schedule.drivers or (Driver(window.driver, window.engine),),
        {key: expected_work(some) for key, some in jobs.items()},
    )
    began = window.clock.monotonic()
    tasks = {key: _Task(window, schedule, some, JobDriver(placement, key), began=began) for key, some in jobs.items()}
    rules: Rules[Runs] = Rules(
        left_out=lambda job, reason: tasks[job.key].left_out(reason),
        on_wait=lambda job, later, since: tasks[job.key].tell_wait(later, since),
        on_progress=tally.tell,
        on_paced=lambda job, since: tasks[job.key].tell_paced(since),
        rewrote=lambda job: job.size > 0 and tasks[job.key].sent,
    )
    scheduler = Scheduler(window.clock, schedule.parallel, window.stop, rules, window.pace)
    queue = [
        QueuedJob(key, driver=each.driver.driver.name, size=_size(each.tables, window.pace.limit))
        for key, each in tasks.items()
    ]
    results = scheduler.run(queue, lambda job: tasks[job.key].step())
    return {name: run for runs in results.values() for name, run in runs.items()}


def _size(tables: Sequence[TablePlan], limit: int | None) -> int:
    """The bytes that a job rewrites. An unknown size counts as the whole limit, so that the job runs alone."""
    sizes = [paced_bytes(table) for table in tables]
    return sum((limit or 1) if size is None else size for size in sizes)


def _key(table: TablePlan) -> str:
    return canonical_location(table.location)


@dataclass(slots=True)
class _Task:
    """The work on one table, or on the tables that share a window. Any worker takes one step at a time."""

    window: RunContext
    schedule: Schedule
    tables: tuple[TablePlan, ...]
    driver: JobDriver
    seen: Mapping[str, Sighting] = field(default_factory=dict)
    """The holders of the leases at the last poll."""
    held_since: float = 0.0
    polls: int = 0
    tried_since: float = 0.0
    tries: int = 0
    runs: dict[str, TableRun] = field(default_factory=dict)
    """The results of earlier attempts."""
    step_of_wait: str = ""
    """The step in the events of its current wait."""
    first: float | None = None
    """When its first step began."""
    began: float = 0.0
    """When the run began, on the clock's ``monotonic``."""
    quiet: Mapping[str, QuietStart] = field(default_factory=dict)
    """With ``--when quiet``: what was expected of each table when the moment was found to be quiet."""
    quiet_at: float = _NEVER
    """When that was."""
    unread_since: float | None = None
    """Since when its tables cannot be read, so that it cannot be told whether a moment is quiet."""
    paced_since: float | None = None
    """Since when only ``window.max_bytes_per_hour`` holds it back; ``None`` if it does not."""
    paced_for: float = 0.0
    """Seconds for which it did."""
    sent: bool = False
    """Whether its last step sent statements."""
    moved: tuple[str, ...] = ()
    """Notes about its moves from drivers that do not answer."""
    attempted: bool = False
    """Whether the driver that does not answer was lost during an attempt, whose results are known."""
    streams: tuple[StreamTarget, ...] | None = None
    """What the streams that the statements stop must have read; ``None`` before the first look."""
    streams_since: float = 0.0
    """When that look was."""

    def step(self) -> Runs | Later[Runs]:
        """Go as far as possible now. An unexpected error becomes the outcome of these tables only."""
        now = self.window.clock.monotonic()
        self.first = now if self.first is None else self.first
        self.paced_for += 0.0 if self.paced_since is None else now - self.paced_since
        self.paced_since, self.sent = None, False
        try:
            with no_panic(self.tables[0].name):
                end = self._step()
        except Exception as error:  # noqa: BLE001  # see above
            runs = [_failed(table, error) for table in self.tables]
            end = self._merged(runs)
        if isinstance(end, Later):
            return replace(end, result=self._timed(end.result))
        self.driver.placement.done(self.driver.key)
        for run in end.values():
            # The work is done: a failing observer cannot change it.
            with suppress(Exception):
                self.window.notify(RunEvent(run.name, DONE, str(run.outcome)))
        return self._timed(end)

    def _timed(self, runs: Runs) -> Runs:
        took = round((self.window.clock.monotonic() - (self.first or 0.0)) * 1000)
        driver, paced = self.driver.driver.name, round(self.paced_for * 1000)
        return {name: replace(run, took_ms=took, driver=driver, paced_ms=paced) for name, run in runs.items()}

    def left_out(self, reason: str) -> Runs:
        """The result if the run ends before its first step."""
        words = reason if self.paced_since is None else f"stopped while it waited for {_LIMIT}"
        return self.plain(RunOutcome.INTERRUPTED, words, _AGAIN)

    def plain(self, outcome: RunOutcome, message: str, hint: str) -> Runs:
        """One outcome for all of its tables."""
        return self._merged([_plain(table, outcome, message, hint) for table in self.tables])

    def tell_wait(self, later: Later[Runs], since: float) -> None:
        """Emit an event for each table with what it waits for."""
        waited = self.window.clock.monotonic() - since
        for table in self.tables:
            self.window.notify(RunEvent(table.name, self.step_of_wait, later.words, waited, later.most))

    def tell_paced(self, since: float) -> None:
        """Emit an event for each table that waits for the pace of rewrites."""
        self.paced_since = since
        waited = self.window.clock.monotonic() - since
        for table in self.tables:
            self.window.notify(RunEvent(table.name, "paced", f"waiting for {_LIMIT}", waited))

    def _step(self) -> Runs | Later[Runs]:
        waits = self._leave_dead_driver()
        waits = self._wait_for_quiet() if waits is None else waits
        waits = self._wait_for_streams() if waits is None else waits
        if waits is not None:
            return waits
        self._use_driver()
        checked = {table.name: preflight(self.window, table) for table in self.tables}
        missing = {name: run for name, run in checked.items() if run is not None}
        if missing:
            first = next((name, run.outcome) for name, run in missing.items())
            return self._tried([missing.get(table.name) or _shares(table, *first) for table in self.tables])
        with ExitStack() as stack:
            try:
                stores = {_key(table): self.schedule.records(table.location) for table in self.tables}
                leases = acquire_all(stores, self.schedule.claim, self.window.clock, self.seen)
            except StoppedError:
                return self.plain(RunOutcome.INTERRUPTED, STOPPED, _AGAIN)
            except WindowError as error:
                return self._merged(
                    [_plain(table, RunOutcome.FAILED, error.message, error.hint) for table in self.tables]
                )
            if isinstance(leases, Blocked):
                return self._blocked(leases)
            self.seen, self.polls = {}, 0
            runs = [self._with_quiet(each) for each in self._run(stack, leases)]
            running = [lease.running for lease in leases.values()]
            self.driver.note_running(running, self.window.clock.monotonic())
        runs = [with_gate(run, leases[_key(table)]) for run, table in zip(runs, self.tables, strict=True)]
        for run in runs:
            # The work is done: a failing observer cannot change it.
            with suppress(Exception):
                self.window.notify(RunEvent(run.name, RELEASED))
        return self._tried(runs)

    def _use_driver(self) -> None:
        """Let the next attempt run on the job's driver."""
        driver, others = self.driver.driver, self.driver.placement.others(self.driver.key)
        engines = tuple(each.engine for each in others)
        self.window = replace(
            self.window,
            engine=driver.engine,
            driver=driver.name,
            others=engines,
            over=self.driver.over,
            resumed=self.window.resumed or self.attempted,
        )

    def _leave_dead_driver(self) -> Runs | Later[Runs] | None:
        """The wait for the end of what runs on a driver that does not answer, the move to another one, or the end if
        there is none; ``None`` if the job goes on where it is.
        """
        now, left = self.window.clock.monotonic(), self.driver.driver.name
        decision = self.driver.decide(now)
        stopped = self.runs if self.attempted else self.plain(RunOutcome.INTERRUPTED, STOPPED, _AGAIN)
        self.step_of_wait = "driver"
        match decision:
            case Stay():
                return None
            case WaitForEnd(at, words):
                return Later(at=at, result=stopped, words=words)
            case MoveTo(driver):
                note = f"moved from {left}, which does not answer any more, to {driver.name}"
                self.moved = (*self.moved, note)
                return Later(at=now, result=stopped, words=note, driver=driver.name)
            case NoDriver():
                message = "no server of `engine.remotes` answers"
                return self.runs if self.attempted else self.plain(RunOutcome.FAILED, message, _AGAIN)

    def _wait_for_quiet(self) -> Runs | Later[Runs] | None:
        """With ``--when quiet``: the wait for a quiet moment, or its failure; ``None`` if the tables may start now."""
        window, terms, now = self.window, self.window.terms.quiet, self.window.clock.monotonic()
        if terms is None or now - self.quiet_at < _STILL_QUIET:
            return None
        try:
            forecasts = {
                table.name: forecast_of(window, table, self.schedule.records(table.location)) for table in self.tables
            }
        except TablectlError as error:
            return self._wait_to_read(error, terms)
        self.unread_since = None
        utc = window.clock.utc()
        until = utc + timedelta(seconds=self.began + terms.within - now)
        match decide(
            tuple(forecasts.values()), utc, until, terms, lambda moment: opening_of(window, self.tables, moment)
        ):
            case WaitUntil(moment, words):
                return self._quiet_later(now + (moment - utc).total_seconds(), words)
            case NoMoment(message, hint):
                return self.plain(RunOutcome.NOT_QUIET, message, hint)
            case StartNow():
                waited, self.quiet_at = round((now - self.began) * 1000), now
                self.quiet = {name: _quiet_start(each, utc, waited, terms) for name, each in forecasts.items()}
        return None

    def _wait_to_read(self, error: TablectlError, terms: QuietTerms) -> Runs | Later[Runs]:
        """The wait for tables that cannot be read, so that it cannot be told whether the moment is quiet; or the
        failure.
        """
        now = self.window.clock.monotonic()
        self.unread_since = now if self.unread_since is None else self.unread_since
        left = min(self.unread_since + _LONGEST_UNREAD, self.began + terms.within) - now
        if left <= 0:
            return self.plain(RunOutcome.FAILED, error.message, error.hint)
        words = f"it cannot be told whether this moment is quiet: {one_line(error)}"
        return self._quiet_later(now + min(QUIET_POLL, left), words)

    def _quiet_later(self, at: float, words: str) -> Later[Runs]:
        self.step_of_wait = "quiet"
        result = self.plain(RunOutcome.INTERRUPTED, "stopped while it waited for a quiet moment", _AGAIN)
        within = self.window.terms.quiet.within if self.window.terms.quiet else 0.0
        return Later(at=at, result=result, words=words, most=within)

    def _wait_for_streams(self) -> Runs | Later[Runs] | None:
        """The wait for streams that the statements stop, until they have read what the tables hold; or its failure.
        ``None`` if the tables may start now. No lease is held meanwhile.
        """
        window, now = self.window, self.window.clock.monotonic()
        if window.stamp.proceed:
            return None
        if self.streams is None:
            self.streams, self.streams_since = tuple(targets_of(window, self.tables)), now
        self.streams = tuple(target.looked_at(window) for target in self.streams)
        behind = next((words for target in self.streams if (words := target.behind(window))), "")
        if not behind:
            return None
        limit = max(window.terms.wait, *map(window.terms.drain_of, self.tables))
        left = self.streams_since + limit - now
        if left <= 0:
            hint = "start the stream, wait longer (`--wait`), or go on without it (`--proceed REASON`)"
            return self.plain(RunOutcome.STREAM_BEHIND, f"after {minutes_text(limit)}, {behind}", hint)
        self.step_of_wait = "stream"
        result = self.plain(RunOutcome.INTERRUPTED, f"stopped while it waited for a stream: {behind}", _AGAIN)
        return Later(at=now + min(STREAM_POLL, left), result=result, words=behind, most=limit)

    def _with_quiet(self, run: TableRun) -> TableRun:
        """The run with what was expected of it, and what it may have cost."""
        start = self.quiet.get(run.name)
        if start is None or not run.epoch:
            return run
        failing = any(each.fails and not each.error for each in run.statements)
        return replace(run, quiet=replace(start, actual=len(run.possible_failures) if failing else None))

    def _run(self, stack: ExitStack, leases: Mapping[str, Lease]) -> list[TableRun]:
        for lease in leases.values():
            stack.callback(lease.release)
        for lease in leases.values():
            stack.enter_context(Renewer(lease, may_renew=may_renew(self.window.engine)))
        refused = self._refused(leases)
        if refused:
            first = next((name, run.outcome) for name, run in refused.items())
            return [refused.get(table.name) or _shares(table, *first) for table in self.tables]
        for table in self.tables:
            self.window.notify(RunEvent(table.name, "leased"))
        if len(self.tables) == 1:
            return [run_table(self.window, self.tables[0], leases[_key(self.tables[0])])]
        return _run_together(self.window, [(table, leases[_key(table)]) for table in self.tables])

    def _refused(self, leases: Mapping[str, Lease]) -> dict[str, TableRun]:
        """The tables whose records lack a right, before any gate shuts and any hook runs."""
        refused = {}
        for table in self.tables:
            try:
                check_rights(leases[_key(table)].store)
            except MissingRightError as error:
                refused[table.name] = _plain(table, RunOutcome.FAILED, f"{table.name}: {error.message}", error.hint)
        return refused

    def _blocked(self, blocked: Blocked) -> Runs | Later[Runs]:
        """The run continues with other tables and polls again later."""
        now = self.window.clock.monotonic()
        if not self.polls:
            self.held_since = now
        holders = blocked.holders
        waited, ttl = now - self.held_since, self.schedule.claim.ttl
        poll = judge(holders.values(), waited, self.polls, ttl, self.window.terms.wait)
        self.seen = {**self.seen, **holders}
        self.polls += 1
        self.step_of_wait = "held"
        _, holder = self._held(holders)
        result = self._merged(self._held_runs(holders))
        if engine_gone(self.window):
            return result
        return Later(
            at=now + poll.after,
            result=result,
            ends_when_idle=poll.patience is LeaseWait.WHILE_BUSY,
            words=wait_text(holder),
            most=0.0 if holder.alive else holder.patience,
        )

    def _held(self, holders: Mapping[str, Sighting]) -> tuple[TablePlan, Sighting]:
        """The first of its tables whose lease another run holds, and the holder."""
        return next((table, holders[_key(table)]) for table in self.tables if _key(table) in holders)

    def _held_runs(self, holders: Mapping[str, Sighting]) -> list[TableRun]:
        first, _ = self._held(holders)
        return [
            _held_run(table, holders[_key(table)])
            if _key(table) in holders
            else _shares(table, first.name, RunOutcome.HELD)
            for table in self.tables
        ]

    def _tried(self, runs: Sequence[TableRun]) -> Runs | Later[Runs]:
        """The end of an attempt: the end of the job, or a wait for the next attempt."""
        self.sent = any(run.statements for run in runs)
        self.runs = self._merged(runs)
        now = self.window.clock.monotonic()
        self.attempted = self.driver.lost and any(run.outcome in _OF_A_DEAD_DRIVER for run in runs)
        if self.attempted and not self.window.stop.is_set():
            return Later(at=now, result=self.runs, words=f"{self.driver.driver.name} does not answer")
        self.tries += 1
        if self.tries == 1:
            self.tried_since = now
        then = next_try(self.window, self.tables, self.runs, self.tried_since, self.tries)
        if then is None:
            return self.runs
        self.step_of_wait = "again"
        why = next(run.outcome for run in self.runs.values() if run.outcome in RETRIED)
        return Later(at=then, result=self.runs, words=f"{why}: trying again in {minutes_text(then - now)}")

    def _merged(self, runs: Sequence[TableRun]) -> dict[str, TableRun]:
        runs = [replace(run, notes=(*self.moved, *run.notes)) for run in runs] if self.moved else runs
        return {run.name: run.following(self.runs[run.name]) if run.name in self.runs else run for run in runs}


def _quiet_start(forecast: QuietForecast, now: datetime, waited: int, terms: QuietTerms) -> QuietStart:
    expected = forecast.now(now)
    known = not forecast.unknown
    return QuietStart(
        waited_ms=waited,
        limit=terms.limit,
        failed=round(expected.failed, 3) if known else None,
        seconds=round(expected.seconds, 1) if known else None,
        unknown=forecast.unknown,
    )


def _run_together(window: RunContext, tasks: Sequence[tuple[TablePlan, Lease]]) -> list[TableRun]:
    """Run tables that share a window, each on its own thread."""
    together = SharedWindow([table for table, _ in tasks], [lease for _, lease in tasks])
    shared = replace(window, together=together)

    def run(table: TablePlan, lease: Lease) -> TableRun:
        try:
            return run_table(shared, table, lease)
        finally:
            # Whatever is raised, the others must not wait for this table.
            together.leave(table.name)

    with ThreadPoolExecutor(len(tasks), thread_name_prefix="tablectl-together") as pool:
        futures: list[Future[TableRun]] = [pool.submit(run, *task) for task in tasks]
    runs = [future.result() for future in futures]
    failed = next((run for run in runs if run.name == together.failed), None)
    if failed is None:
        return runs
    return [_stopped_with(run, failed) if run.name in together.stopped else run for run in runs]


def _stopped_with(run: TableRun, failed: TableRun) -> TableRun:
    """The outcome of a table stopped because of another one: the other's outcome, unless that blames a statement."""
    shared = _shares_outcome(failed.outcome)
    return replace(run, outcome=shared, message=_shares_words(failed.name, failed.outcome), hint=f"see {failed.name}")


def _shares(table: TablePlan, other: str, outcome: RunOutcome) -> TableRun:
    """The run of a table that was not started because of another one in its window."""
    return _plain(table, _shares_outcome(outcome), _shares_words(other, outcome), f"see {other}")


def _shares_outcome(outcome: RunOutcome) -> RunOutcome:
    own = {RunOutcome.FAILED, RunOutcome.UNVERIFIED, RunOutcome.APPLIED, RunOutcome.ALREADY, RunOutcome.WAITING}
    return RunOutcome.INTERRUPTED if outcome in own else outcome


def _shares_words(other: str, outcome: RunOutcome) -> str:
    return f"stopped with {other} ({outcome}), with which it shares a window (`window.together`)"


def _held_run(table: TablePlan, holder: Sighting) -> TableRun:
    message, hint = f"held by {holder.record}", f"run again later, or see {_show(table)}"
    if not holder.alive:
        silent = f"counts as dead once it was silent for {holder.patience:.0f} s"
        message += f"; it gave no sign of life, and {silent}"
        hint = f"see {_show(table)}; if it does not run any more, `tablectl window break` frees the table"
    return _plain(table, RunOutcome.HELD, message, hint)


def _show(table: TablePlan) -> str:
    return f"`tablectl window show {shlex.quote(table.name)}`"


def _left_out(table: TablePlan) -> TableRun:
    first = table.refusals[0]
    run = _plain(table, RunOutcome.REFUSED, f"{first.change}: {first.reason}", first.fix)
    return replace(run, refusals=table.refusals)


def _failed(table: TablePlan, error: Exception) -> TableRun:
    return _plain(table, RunOutcome.FAILED, *unexpected(table.name, error))


def _plain(table: TablePlan, outcome: RunOutcome, message: str, hint: str = "") -> TableRun:
    return TableRun(name=table.name, outcome=outcome, message=message, hint=hint)
