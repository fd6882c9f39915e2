"""After-hooks that a dead run owes on tables that this run does not change: up to date, or outside the calendar."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from tablectl.applying.context import RunContext, StopTableError
from tablectl.applying.hooks import HookStreams, TableHooks
from tablectl.applying.retry import longest_watch
from tablectl.applying.run_report import RunOutcome, TableRun
from tablectl.applying.scheduler import Later, QueuedJob, Rules, Scheduler
from tablectl.frozen import frozen
from tablectl.leases.acquire import LONGEST_PAUSE, Blocked, Claim, Sighting, acquire_all
from tablectl.leases.lease import Renewer
from tablectl.leases.lease_records import tail
from tablectl.model.errors import TablectlError
from tablectl.storage.records import RecordStore


@frozen
class OwedHookTable:
    """A table by name and location."""

    name: str
    location: str
    streams: Callable[[], tuple[str, ...]] = tuple
    """Returns the names of its declared streams. Called only if it owes hooks."""


def run_owed_hooks(
    window: RunContext,
    claim: Claim,
    records: Callable[[str], RecordStore],
    places: Iterable[OwedHookTable],
    parallel: int = 1,
) -> dict[str, TableRun]:
    """Run what is owed on these tables, each under its lease. Returns a run by name for each table that owed hooks.

    A table that cannot be read, or that another apply holds, is left to the next apply: the user did not ask for it by
    name. ``parallel`` is the number of tables at a time. Waiting for a dead holder does not occupy a worker.
    """
    if not window.terms.after:
        return {}
    by_name = {place.name: place for place in places}
    seen: dict[str, Mapping[str, Sighting]] = {}

    def step(job: QueuedJob) -> TableRun | Later[TableRun | None] | None:
        try:
            place = by_name[job.key]
            return _settle(window, claim, records(place.location), place, seen)
        except TablectlError:
            return None

    rules: Rules[TableRun | None] = Rules(left_out=lambda _job, _reason: None)
    runs = Scheduler(window.clock, parallel, window.stop, rules).run(map(QueuedJob, by_name), step)
    return {name: run for name, run in runs.items() if run is not None}


def _settle(
    window: RunContext, claim: Claim, store: RecordStore, place: OwedHookTable, seen: dict[str, Mapping[str, Sighting]]
) -> TableRun | Later[TableRun | None] | None:
    last = tail(store)
    if last is None or not last.owed:
        return None
    taken = acquire_all({"": store}, claim, window.clock, seen.get(place.name, {}))
    if isinstance(taken, Blocked):
        holder = taken.holders[""]
        if holder.alive or holder.patience > longest_watch(claim.ttl):
            return None
        seen[place.name] = taken.holders
        return Later(window.clock.monotonic() + min(LONGEST_PAUSE, holder.record.ttl / 12), result=None)
    lease = taken[""]
    hooks = TableHooks(window, place.name, place.location, lease, HookStreams(declared=place.streams()))
    try:
        with Renewer(lease):
            hooks.settle()
    except StopTableError as end:
        hooks.notes.append(f"{end.message}: {end.hint}")
    finally:
        lease.release()
    return TableRun(
        name=place.name,
        outcome=RunOutcome.ALREADY,
        epoch=lease.record.epoch,
        owed=hooks.owed,
        notes=tuple(hooks.notes),
    )
