"""After-hooks that a dead run owes. They run before all else, also on tables that this run does not change: they may
start what it waits for, such as a stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cache, partial

from tablectl.applying.context import RunContext, StopTableError, TableJob, interrupted
from tablectl.applying.hooks import HookStreams, TableHooks, distinct
from tablectl.applying.lease_wait import DeadStatements, LeaseWait
from tablectl.applying.scheduler import QueuedJob, Rules, Scheduler
from tablectl.applying.shared_window import shares_window
from tablectl.applying.waits import End, Later
from tablectl.delta.names import parse_table
from tablectl.leases.acquire import Claim
from tablectl.leases.guards import APPLYING
from tablectl.leases.lease_records import tail
from tablectl.model.errors import BrokenTableError, TablectlError, of_table
from tablectl.model.run_report import RunOutcome, TableRun
from tablectl.storage.records import RecordStore
from tablectl.support.frozen import frozen


@frozen
class OwedHookTable:
    """A table by name and location."""

    name: str
    location: str
    streams: Callable[[], tuple[str, ...]] = tuple
    """Returns the names of its declared streams. Called only if a table owes hooks."""
    tags: Callable[[], tuple[str, ...]] = tuple
    """Returns its tags. Called only if a table owes hooks."""
    sharing: Callable[[], tuple[OwedHookTable, ...]] = tuple
    """Returns the tables that share its window, itself included: the hooks of one are those of all. None by itself."""
    applied: bool = False
    """Whether the run applies it afterwards, which ends the statement that a run before may have left."""


def with_shared_windows(places: Sequence[OwedHookTable], together: Sequence[str]) -> Sequence[OwedHookTable]:
    """The tables, each with those that share its window. ``together`` has names (globs) and tags."""
    if not together:
        return places

    @cache
    def group() -> tuple[OwedHookTable, ...]:
        return tuple(each for each in places if shares_window(parse_table(each.name), each.tags(), together))

    def sharing(place: OwedHookTable) -> tuple[OwedHookTable, ...]:
        return group() if place in group() else ()

    return [replace(place, sharing=partial(sharing, place)) for place in places]


def run_owed_hooks(
    window: RunContext,
    claim: Claim,
    records: Callable[[str], RecordStore],
    places: Iterable[OwedHookTable],
    parallel: int = 1,
) -> dict[str, TableRun]:
    """Run what is owed on these tables, each under its lease. Returns a run by name for each table that owed hooks.

    A table that is not applied afterwards, and on which a run before left a statement, opens its gate here, too.
    A table that cannot be read, or that another apply holds, is left to the next apply. ``parallel`` is the number of
    tables at a time. Waiting for a dead holder does not occupy a worker.
    """
    todo = {
        place.name: _Settlement(TableJob(window, (), claim, records), place)
        for place in places
        if window.terms.after or not place.applied
    }

    def step(job: QueuedJob) -> TableRun | Later | None:
        found = of_table(job.key, todo[job.key].step)
        if isinstance(found, BrokenTableError):
            return End(RunOutcome.FAILED, found.message, found.hint).run(job.key)
        return None if isinstance(found, TablectlError) else found

    def tell_wait(job: QueuedJob, later: Later, since: float) -> None:
        window.notify(later.event(job.key, window.clock.monotonic() - since))

    rules: Rules[TableRun | None] = Rules(left_out=lambda job, *_: todo[job.key].left_out(), on_wait=tell_wait)
    with ExitStack() as stack:
        for each in todo.values():
            stack.callback(each.leases.close)
        runs = Scheduler(window.clock, parallel, window.stop, rules).run(map(QueuedJob, todo), step)
    return {name: run for name, run in runs.items() if run is not None}


class _Settlement:
    """What a run before left on one table, and on those that share its window."""

    def __init__(self, job: TableJob, place: OwedHookTable) -> None:
        self._job = job
        self._place = place
        self._group: Sequence[OwedHookTable] = ()
        self._left = ""
        self.leases = LeaseWait(job, from_dead=True)
        self._dead = DeadStatements(job, self.leases)

    def step(self) -> TableRun | Later | None:
        """Take the leases, end the statements, and run the hooks. ``None`` if nothing is owed, or nothing can be
        done.
        """
        if not self.leases.held and not self._find():
            return None
        answer = self.leases.check(self._job.window.clock.monotonic())
        if isinstance(answer, Later):
            return replace(answer, words=f"a run before {self._left}: {answer.words}")
        return None if isinstance(answer, End) else self._settle()

    def left_out(self) -> TableRun | None:
        """The result if the run ends before its next step."""
        return self._run(interrupted()) if self.leases.held else None

    def _find(self) -> bool:
        """Whether anything is owed, and which leases that takes."""
        place, records = self._place, self._job.records
        last = tail(records(place.location))
        if last is None or not (last.owed or (last.statement_bound and not place.applied)):
            return False
        self._left = "owes its after-hooks" if last.owed else "left a statement that may still run"
        self._group = place.sharing() or (place,)
        # The jobs stay paused while a statement may run on any of these tables.
        self.leases.places = [each for each in self._group if each.name == place.name or _runs(records(each.location))]
        return True

    def _settle(self) -> TableRun | Later:
        # Under the leases: what a dead apply left is counted from when its record was read.
        answer = of_table(self._place.name, lambda: self._dead.check(self._job.window.clock.monotonic()))
        if isinstance(answer, TablectlError):
            return self._run(answer)
        if isinstance(answer, Later):
            return answer
        return self._run(StopTableError.of(answer) if isinstance(answer, End) else None)

    def _run(self, end: StopTableError | TablectlError | None) -> TableRun:
        """Run the hooks unless something ended the work before, and release the leases."""
        place, lease = self._place, self.leases.of(self._place)
        streams = HookStreams(declared=distinct(each.streams() for each in self._group))
        hooks = TableHooks(self._job.window, place.name, place.location, lease, streams)
        applying = APPLYING.set(self._job.claim.run)
        try:
            if end is not None:
                raise end
            hooks.settle()
        except (StopTableError, TablectlError) as stop:
            hooks.owed = lease.record.owed
            hooks.notes.append(f"{stop.message}: {stop.hint}")
        finally:
            self.leases.close()
            APPLYING.reset(applying)
        notes = (*self._dead.notes.values(), *hooks.notes)
        run = TableRun(
            name=place.name, outcome=RunOutcome.ALREADY, epoch=lease.record.epoch, owed=hooks.owed, notes=notes
        )
        if isinstance(end, BrokenTableError):
            run = replace(run, outcome=RunOutcome.FAILED, message=end.message, hint=end.hint)
        # The statement that keeps a gate shut may be that of a table which shares the window.
        gates = [self.leases.note(replace(run, name=each.name)) for each in self.leases.places]
        shut = max(gates, key=lambda gate: gate.shut_ms)
        return replace(run, shut_ms=shut.shut_ms, shut=shut.shut)


def _runs(store: RecordStore) -> bool:
    last = tail(store)
    return last is not None and last.statement_bound > 0
