"""After-hooks that a dead run owes. They run before all else, also on tables that this run does not change: they may
start what it waits for, such as a stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial

from tablectl.applying.context import RunContext, StopTableError
from tablectl.applying.events import RunEvent
from tablectl.applying.hooks import HookStreams, TableHooks, distinct
from tablectl.applying.retry import longest_watch, wait_text
from tablectl.applying.run_report import RunOutcome, TableRun
from tablectl.applying.scheduler import Later, QueuedJob, Rules, Scheduler
from tablectl.applying.shared_window import shares_window
from tablectl.delta.names import parse_table
from tablectl.frozen import frozen
from tablectl.leases.acquire import LONGEST_PAUSE, Blocked, Claim, Sighting, acquire_all
from tablectl.leases.lease import Renewer
from tablectl.leases.lease_records import tail
from tablectl.model.errors import BrokenTableError, TablectlError
from tablectl.one_table import of_table
from tablectl.storage.records import RecordStore


@frozen
class OwedHookTable:
    """A table by name and location."""

    name: str
    location: str
    streams: Callable[[], tuple[str, ...]] = tuple
    """Returns the names of its declared streams. Called only if a table owes hooks."""
    tags: Callable[[], tuple[str, ...]] = tuple
    """Returns its tags. Called only if a table owes hooks."""


def with_shared_streams(places: Sequence[OwedHookTable], together: Sequence[str]) -> Sequence[OwedHookTable]:
    """The tables, those that share a window with the streams of all of them: the hooks of one stop the streams of all.

    ``together`` has names (globs) and tags.
    """
    if not together:
        return places

    @cache
    def group() -> tuple[OwedHookTable, ...]:
        return tuple(each for each in places if shares_window(parse_table(each.name), each.tags(), together))

    def streams(place: OwedHookTable) -> tuple[str, ...]:
        return distinct(each.streams() for each in (group() if place in group() else (place,)))

    return [replace(place, streams=partial(streams, place)) for place in places]


def run_owed_hooks(
    window: RunContext,
    claim: Claim,
    records: Callable[[str], RecordStore],
    places: Iterable[OwedHookTable],
    parallel: int = 1,
) -> dict[str, TableRun]:
    """Run what is owed on these tables, each under its lease. Returns a run by name for each table that owed hooks.

    A table that cannot be read, or that another apply holds, is left to the next apply. ``parallel`` is the number of
    tables at a time. Waiting for a dead holder does not occupy a worker.
    """
    if not window.terms.after:
        return {}
    by_name = {place.name: place for place in places}
    seen: dict[str, Mapping[str, Sighting]] = {}

    def step(job: QueuedJob) -> TableRun | Later[TableRun | None] | None:
        place = by_name[job.key]
        found = of_table(place.name, lambda: _settle(window, claim, records(place.location), place, seen))
        if isinstance(found, BrokenTableError):
            return TableRun(name=place.name, outcome=RunOutcome.FAILED, message=found.message, hint=found.hint)
        return None if isinstance(found, TablectlError) else found

    def tell_wait(job: QueuedJob, later: Later[TableRun | None], since: float) -> None:
        window.notify(RunEvent(job.key, "held", later.words, window.clock.monotonic() - since))

    rules: Rules[TableRun | None] = Rules(left_out=lambda _job, _reason: None, on_wait=tell_wait)
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
        pause = min(LONGEST_PAUSE, holder.record.ttl / 12)
        return Later(
            window.clock.monotonic() + pause,
            result=None,
            words=f"a run before owes its after-hooks: {wait_text(holder)}",
        )
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
