"""A whole apply: a queue of tables, each with its own lease and window, both released on every exit path.

Tables do not wait for each other. A table takes what it needs in one order: a worker, its leases (all or none, and it
never waits for one while it holds another), its turn on the driver, its gate. Each of these waits is either for someone
outside of the run and bounded (a lease is polled without a worker, writers get ``window.drain`` seconds), or for a
turn, whose holder releases it without a further wait. So there is no cycle of waits between tables or between applies,
and no deadlock.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial

from tablectl.applying.calendar_check import CalendarWait
from tablectl.applying.canary import STOPPED_HINT, choose, soak
from tablectl.applying.copy_beside import copies_beside
from tablectl.applying.events import DONE, RELEASED, RunEvent, Tally
from tablectl.applying.first_checks import Preflight, Rights, check_commit_drivers, check_places
from tablectl.applying.hooks import HookFacts, OwedHookTable, run_owed_hooks
from tablectl.applying.lease_wait import STATEMENT_LEFT, DeadStatements, LeaseWait
from tablectl.applying.quiet_moment import QuietWait
from tablectl.applying.remaining_statements import nothing_remains
from tablectl.applying.run_context import RunContext, TableJob, table_key
from tablectl.applying.run_table import run_table, unexpected
from tablectl.applying.scheduler import QueuedJob, Rules, Scheduler
from tablectl.applying.shared_window import SharedWindow, shares_window
from tablectl.applying.silent_writers import SILENT, SilentWriters
from tablectl.applying.stopped_streams import Positions, StreamWait, continued_streams, positions_of
from tablectl.applying.table_session import looked_again
from tablectl.applying.waits import GO, KEEP, Answer, Awaited, End, Go, Later, Wait, first_answer
from tablectl.leases.clock import milliseconds
from tablectl.leases.guards import APPLYING
from tablectl.leases.lease import Lease, LeaseLost
from tablectl.model.errors import ExitCode, PlanFileError, TablectlError, no_panic, of_table
from tablectl.model.plan import Plan, TablePlan
from tablectl.model.run_report import CanaryRun, RunOutcome, RunReport, TableRun
from tablectl.model.safe_text import minutes_text
from tablectl.storage.mounts import own_place

PAUSES = (60.0, 300.0, 600.0, 1800.0, 3600.0)
"""Seconds between retries; the last one repeats. A window that fails to open also makes writers wait."""
_ANOTHER_TRY = Awaited("again", "for another try")
_AGAIN = "run the same command again"
_SOON = 0.001
_LOOKS = 8
MOST_TOGETHER = 64
"""How many tables may share a window: each needs a thread, and its gate is shut for as long as all of them take."""

Runs = Mapping[str, TableRun]
"""The runs of a job's tables by name."""


class StartMoment(Wait):
    """When statements may start: at a quiet moment, after the streams that they stop, inside the calendar. Tables that
    are as planned already, because a run of the same plan changed them before, wait for none of these.
    """

    def __init__(self, job: TableJob) -> None:
        self._job = job
        self._waits = (QuietWait(job), StreamWait(job), CalendarWait(job))

    def check(self, now: float) -> Answer:  # each of the waits is asked about its own moment
        """The answer of the first that does not say ``Go``."""
        context = self._job.context
        answer = first_answer(self._waits, context.clock)
        if not isinstance(answer, Go) and all(nothing_remains(context, table) for table in self._job.tables):
            return GO
        return answer

    def note(self, run: TableRun) -> TableRun:
        for wait in self._waits:
            run = wait.note(run)
        return run


WAITS: tuple[Callable[[TableJob], Wait], ...] = (StartMoment, Preflight)
"""What tables wait for before their leases are taken, in this order. A new kind of wait is one more entry."""


def run_plan(context: RunContext, plan: Plan, unchanged: Sequence[OwedHookTable] = ()) -> RunReport:
    """Apply a plan. A failure on one table does not stop the others; all leases are released on every exit path.

    What a run that died owes is run first, on all tables: those that are applied, those that cannot be, and
    ``unchanged``, those without changes.
    """
    at, began = milliseconds(context.clock.utc()), context.clock.monotonic()
    applying = APPLYING.set(context.claim.run)
    try:
        # Which tables can be changed: not one whose commits could be lost, or that cannot be read.
        planned = [table for table in plan.tables if table.applies]
        looks = {table.name: of_table(table.name, partial(_first_look, context, table)) for table in planned}
        failed = {name: _failed(name, found) for name, found in looks.items() if isinstance(found, TablectlError)}
        known = {name: found for name, found in looks.items() if not isinstance(found, TablectlError)}
        check_places([(table, known[table.name][0]) for table in planned if table.name in known])
        unsafe, notes = check_commit_drivers(context, [each for each in planned if each.name in known])
        barred = {name: end.run(name) for name, end in unsafe.items()} | failed
        barred |= _barred_together(context.config.together, plan.tables, barred)
        todo = [table for table in planned if table.name not in barred]
        positions = {table.name: known[table.name][1] for table in todo}
        # What a run before owes, then the tables, then what can be said of them only afterwards.
        settled = run_owed_hooks(context, [*map(_with_owed_hooks, plan.tables), *unchanged])
        runs, canary = _run_in_stages(context, todo)
        runs |= continued_streams(context, todo, runs, positions)
        runs |= _last_looks(context, todo, runs)
    finally:
        APPLYING.reset(applying)
    for table in plan.tables:
        if table.refusals:
            first = table.refusals[0]
            end = End(RunOutcome.REFUSED, f"{first.change}: {first.reason}", first.fix)
            barred[table.name] = replace(end.run(table.name), refusals=table.refusals)
    runs |= barred
    runs = settled | {name: _after_settled(run, settled.get(name)) for name, run in runs.items()}
    return RunReport(
        run=context.stamp.run,
        plan=context.stamp.plan,
        env=plan.env,
        tables=tuple(sorted(runs.values(), key=lambda run: run.name)),
        failures=plan.failures,
        proceed=context.stamp.proceed,
        override=context.stamp.override,
        notes=notes,
        canary=canary,
        at=at,
        took_ms=round((context.clock.monotonic() - began) * 1000),
    )


def _last_looks(context: RunContext, tables: Sequence[TablePlan], runs: Runs) -> dict[str, TableRun]:
    """The runs after a last look at each table, several at a time: each takes a request or two."""

    def look(table: TablePlan) -> TableRun:
        return _noted(partial(looked_again, context, table), runs[table.name])

    with ThreadPoolExecutor(_LOOKS, thread_name_prefix="tablectl-look") as pool:
        return {run.name: run for run in pool.map(look, tables)}


def _with_owed_hooks(table: TablePlan) -> OwedHookTable:
    facts = HookFacts(table.basis.options.stream_names, table.tags)
    return OwedHookTable(table.name, table.location, lambda: facts, applied=table.applies)


def _after_settled(run: TableRun, settled: TableRun | None) -> TableRun:
    """The run of a table with what became of the hooks that were owed on it before: a run without a lease knows nothing
    of them.
    """
    if settled is None:
        return run
    notes = tuple(dict.fromkeys((*settled.notes, *run.notes)))
    if run.epoch:
        return replace(run, notes=notes)
    return replace(run, owed=settled.owed, notes=notes, shut_ms=settled.shut_ms, shut=settled.shut)


def _first_look(context: RunContext, table: TablePlan) -> tuple[str, Positions]:
    """Where a table really lies, and how far its declared streams are."""
    return own_place(table.location), positions_of(context, table)


def _barred_together(together: Sequence[str], tables: Sequence[TablePlan], barred: Runs) -> dict[str, TableRun]:
    """Tables that share a window with a table that cannot be changed: all of them are changed, or none."""
    group = [table for table in tables if shares_window(table.table, table.tags, together)]
    out = next((table.name for table in group if table.refusals or table.name in barred), "")
    others = [table for table in group if table.applies and table.name not in barred]
    if len(others) > MOST_TOGETHER:
        raise PlanFileError(
            f"`window.together` names {len(others)} tables of this plan; at most {MOST_TOGETHER} can share a window",
            "select fewer tables, or name fewer of them",
        )
    copied = next((table.name for table in others if any(map(copies_beside, table.statements))), "")
    if out:
        message = f"it shares a window (`window.together`) with {out}, which cannot be changed"
        hint = f"see {out}"
    elif copied and len(others) > 1:
        message = (
            f"{copied} is copied beside itself, which may take hours, and tables that share a window "
            "(`window.together`) wait for each other"
        )
        hint = f"take {copied} out of `window.together`"
    else:
        return {}
    return {table.name: End(RunOutcome.REFUSED, message, hint).run(table.name) for table in others}


def _run_in_stages(context: RunContext, tables: Sequence[TablePlan]) -> tuple[dict[str, TableRun], CanaryRun | None]:
    """All tables at once; or with ``--canary`` some first, and the others if these show no failure for a while.

    Nothing is held in between: neither a lease nor a gate nor a worker.
    """
    config = context.config
    if not config.canary or not tables:
        return _run_all(context, tables), None
    group = frozenset(table.name for table in tables if shares_window(table.table, table.tags, config.together))
    chosen = choose(tables, config.canary, context.table_groups, group)
    first = [table for table in tables if table.name in chosen.names]
    rest = [table for table in tables if table.name not in chosen.names]
    runs = _run_all(context, first)
    canary = soak(context, first, runs, rest)
    canary = replace(canary, notes=(*chosen.notes, *canary.notes))
    if not canary.reason:
        return runs | _run_all(context, rest), canary
    end = End(RunOutcome.NO_WINDOW, canary.reason, STOPPED_HINT)
    return runs | {table.name: end.run(table.name) for table in rest}, canary


def _run_all(context: RunContext, tables: Sequence[TablePlan]) -> dict[str, TableRun]:
    group = sorted(
        (table for table in tables if shares_window(table.table, table.tags, context.config.together)), key=table_key
    )
    alone = [(table,) for table in tables if table not in group]
    tally = Tally(context.notify, context.clock.monotonic)
    context = replace(context, notify=tally)
    groups = {table_key(some[0]): some for some in (tuple(group), *alone) if some}
    began = context.clock.monotonic()
    tasks = {key: _Task(TableJob(context, some, began)) for key, some in groups.items()}
    rules: Rules[Runs] = Rules(
        left_out=lambda job, later, reason: tasks[job.key].left_out(later, reason),
        on_wait=lambda job, later, since: tasks[job.key].tell_wait(later, since),
        on_progress=tally.tell,
        rewrote=lambda job: job.size > 0 and tasks[job.key].sent,
    )
    scheduler = Scheduler(context.clock, context.config.parallel, context.stop, rules, context.pace)
    queue = [QueuedJob(key, size=_size(some, context.pace.limit)) for key, some in groups.items()]
    with ExitStack() as stack:
        for task in tasks.values():
            stack.callback(task.leases.close)
        results = scheduler.run(queue, lambda job: tasks[job.key].step())
    return {
        name: replace(run, paced_ms=round(scheduler.paced_for(key) * 1000))
        for key, runs in results.items()
        for name, run in runs.items()
    }


def paced_bytes(table: TablePlan) -> int | None:
    """The bytes that the statements of a table rewrite at most, each by itself; 0 if none rewrites, ``None`` if that is
    unknown. A limit on a plan counts rewrites of the same files once (``rewritten_bytes`` of ``planning.plan_file``).
    """
    rewrites = [each.rewrite for each in table.statements if each.rewrite is not None]
    sizes = [each.bytes_at_most for each in rewrites if each.bytes_at_most is not None]
    return sum(sizes) if len(sizes) == len(rewrites) else None


def _size(tables: Sequence[TablePlan], limit: int | None) -> int:
    """The bytes that a job rewrites. An unknown size counts as the whole limit, so that the job runs alone."""
    sizes = [paced_bytes(table) for table in tables]
    return sum((limit or 1) if size is None else size for size in sizes)


class _Task:
    """The work on one table, or on the tables that share a window. Any worker takes one step at a time.

    A step asks what the tables wait for. If that is nothing, it makes an attempt: it does the work and releases the
    leases. Then either the next attempt is waited for, or the task is finished.
    """

    def __init__(self, job: TableJob) -> None:
        self.job = job
        self.leases = LeaseWait(job)
        self.dead = DeadStatements(job, self.leases)
        self.before_lease: tuple[Wait, ...] = tuple(wait(job) for wait in WAITS)
        self.silent = SilentWriters(job, self.leases)
        self.under_lease: tuple[Wait, ...] = (self.leases, Rights(job, self.leases), self.dead, self.silent)
        self.runs: dict[str, TableRun] = {}
        """The results of the attempts so far."""
        self.tries = 0
        self.sent = False
        """Whether its last step sent statements."""
        self.first: float | None = None
        """When its first step began."""

    def step(self) -> Runs | Later:
        """Go as far as possible now. An unexpected error becomes the outcome of these tables only."""
        self.first = self.job.context.clock.monotonic() if self.first is None else self.first
        self.sent = False
        try:
            with no_panic(self.job.tables[0].name):
                clock = self.job.context.clock
                answer = first_answer(
                    self.under_lease if self.leases.held else (*self.before_lease, *self.under_lease), clock
                )
                if isinstance(answer, Later):
                    return answer
                if isinstance(answer, End):
                    self._end_attempt(self._ended(answer))
                    return self._finish()
                if self.dead.waited or self.silent.waited:
                    # The leases were held without a worker: by now the moment may be busy, and all workers, too.
                    awaited = STATEMENT_LEFT if self.dead.waited else SILENT
                    words = (
                        "the statement of a dead apply has ended" if self.dead.waited else "no guard is left to watch"
                    )
                    self._release()
                    return Later(clock.monotonic(), awaited, words)
                self._end_attempt(self._work())
                return self._next_attempt() or self._finish()
        except LeaseLost:  # while the leases were held without a worker
            # The end of tables whose leases, or some of them, were lost while they were held without a worker
            context, leased = self.job.context, [(table, self.leases.of(table)) for table in self.job.tables]
            lost = {table.name: run_table(context, table, lease) for table, lease in leased if lease.lost}
            first = next(iter(lost.values()))
            self._end_attempt(
                [lost.get(table.name) or _shares(table.name, first.name, first.outcome) for table in self.job.tables]
            )
        except Exception as error:  # noqa: BLE001  # see above
            self._end_attempt([_failed(table.name, error) for table in self.job.tables])
        except BaseException:
            self.leases.close()  # now: the steps of other tables, which finish first, may take hours
            raise
        return self._finish()

    def _work(self) -> list[TableRun]:
        """Run the statements under the leases."""
        context, tables = self.job.context, self.job.tables
        for table in tables:
            context.notify(RunEvent(table.name, "leased"))
        leased = [(table, self.leases.of(table)) for table in tables]
        runs = [run_table(context, *leased[0])] if len(leased) == 1 else _run_together(context, leased)
        self.sent = any(run.statements for run in runs)
        return runs

    def _release(self) -> None:
        if not self.leases.held:
            return
        self.leases.close()
        self.dead.waited = self.silent.waited = False
        for table in self.job.tables:
            # The work is done: a failing observer cannot change it.
            with suppress(Exception):
                self.job.context.notify(RunEvent(table.name, RELEASED))

    def _next_attempt(self) -> Later | None:
        """The wait for the next attempt, if there is one."""
        now, outcomes = self.job.context.clock.monotonic(), {run.outcome for run in self.runs.values()}
        if RunOutcome.NO_WINDOW not in outcomes:
            return None
        self.tries += 1
        left, calendar = self.job.left(now), CalendarWait(self.job).check(now)
        if isinstance(calendar, End) or left < _SOON:
            return None
        if isinstance(calendar, Later):
            return replace(calendar, otherwise=None)
        pause = min(PAUSES[min(self.tries, len(PAUSES)) - 1], left)
        words = f"writers did not finish in time: trying again in {minutes_text(pause)}"
        return Later(now + pause, _ANOTHER_TRY, words, pause)

    def _finish(self) -> Runs:
        """The result of the task."""
        for run in self.runs.values():
            with suppress(Exception):  # as in ``_release``
                self.job.context.notify(RunEvent(run.name, DONE, str(run.outcome)))
        return self._timed()

    def left_out(self, later: Later | None, reason: str) -> Runs:
        """The result if the run ends before its next step."""
        end = later.otherwise if later else End(RunOutcome.INTERRUPTED, reason, _AGAIN)
        if end is None and later is not None and (self.leases.held or not self.runs):
            end = End(RunOutcome.INTERRUPTED, f"stopped while it waited {later.awaited.what}", _AGAIN)
        self._end_attempt(self._ended(end or KEEP))
        return self._timed()

    def tell_wait(self, later: Later, since: float) -> None:
        """Emit an event for each table with what it waits for."""
        for table in self.job.tables:
            self.job.context.notify(later.event(table.name, self.job.context.clock.monotonic() - since))

    def _ended(self, end: End) -> list[TableRun]:
        if end.outcome is None:
            return []
        return [
            end.run(table.name) if end.table in {"", table.name} else _shares(table.name, end.table, end.outcome)
            for table in self.job.tables
        ]

    def _end_attempt(self, runs: Sequence[TableRun]) -> None:
        """Release the leases, and add the runs of an attempt to those of earlier ones, with what the waits have to
        report of it. Without runs, those of earlier attempts stay.
        """
        self._release()
        self.silent.begin_again()
        notes = [wait.note for wait in (*self.under_lease, *self.before_lease)]
        for note in (*notes, self._after_earlier):
            runs = [_noted(note, run) for run in runs]
        self.runs = {run.name: run for run in runs} or self.runs

    def _after_earlier(self, run: TableRun) -> TableRun:
        return run.following(self.runs[run.name]) if run.name in self.runs else run

    def _timed(self) -> Runs:
        if self.first is None:
            return self.runs
        took = round((self.job.context.clock.monotonic() - self.first) * 1000)
        return {name: replace(run, took_ms=took) for name, run in self.runs.items()}


def _noted(note: Callable[[TableRun], TableRun], run: TableRun) -> TableRun:
    """A run with what ``note`` adds to it; not verified where that failed unexpectedly."""
    found = of_table(run.name, partial(note, run))
    if isinstance(found, TableRun):
        return found
    outcome = run.outcome if run.code is not ExitCode.DONE else RunOutcome.UNVERIFIED
    return replace(run, outcome=outcome, message=run.message or found.message, hint=run.hint or found.hint)


def _run_together(context: RunContext, tasks: Sequence[tuple[TablePlan, Lease]]) -> list[TableRun]:
    """Run tables that share a window, each on its own thread."""
    together = SharedWindow([table for table, _ in tasks], [lease for _, lease in tasks])
    shared = replace(context, together=together)

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
    shares = _shares(run.name, failed.name, failed.outcome)
    return replace(run, outcome=shares.outcome, message=shares.message, hint=shares.hint)


def _shares(table: str, other: str, outcome: RunOutcome) -> TableRun:
    """The run of a table that was not started because of another one in its window."""
    own = {RunOutcome.FAILED, RunOutcome.UNVERIFIED, RunOutcome.APPLIED, RunOutcome.ALREADY, RunOutcome.WAITING}
    shared = RunOutcome.INTERRUPTED if outcome in own else outcome
    message = f"stopped with {other} ({outcome}), with which it shares a window (`window.together`)"
    return End(shared, message, f"see {other}").run(table)


def _failed(table: str, error: Exception) -> TableRun:
    return End(RunOutcome.FAILED, *unexpected(table, error)).run(table)
