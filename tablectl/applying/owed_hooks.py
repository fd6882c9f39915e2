"""After-hooks that a dead run owes. They run before all else, also on tables that this run does not change: they may
start what it waits for, such as a stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cache, partial

from tablectl.applying.context import RunContext, StopTableError
from tablectl.applying.events import RunEvent
from tablectl.applying.gate import with_gate
from tablectl.applying.hooks import HookStreams, TableHooks, distinct
from tablectl.applying.retry import longest_watch, wait_text
from tablectl.applying.run_report import RunOutcome, TableRun
from tablectl.applying.scheduler import Later, QueuedJob, Rules, Scheduler
from tablectl.applying.shared_window import shares_window
from tablectl.applying.statement import end_inherited
from tablectl.delta.names import parse_table
from tablectl.frozen import frozen
from tablectl.leases.acquire import LONGEST_PAUSE, Blocked, Claim, Sighting, acquire_all
from tablectl.leases.guards import APPLYING
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
    by_name = {place.name: place for place in places if window.terms.after or not place.applied}
    seen: dict[str, Mapping[str, Sighting]] = {}

    def step(job: QueuedJob) -> TableRun | Later[TableRun | None] | None:
        place = by_name[job.key]
        found = of_table(place.name, lambda: _settle(window, claim, records, place, seen))
        if isinstance(found, BrokenTableError):
            return TableRun(name=place.name, outcome=RunOutcome.FAILED, message=found.message, hint=found.hint)
        return None if isinstance(found, TablectlError) else found

    def tell_wait(job: QueuedJob, later: Later[TableRun | None], since: float) -> None:
        window.notify(RunEvent(job.key, "held", later.words, window.clock.monotonic() - since))

    rules: Rules[TableRun | None] = Rules(left_out=lambda _job, _reason: None, on_wait=tell_wait)
    runs = Scheduler(window.clock, parallel, window.stop, rules).run(map(QueuedJob, by_name), step)
    return {name: run for name, run in runs.items() if run is not None}


def _settle(
    window: RunContext,
    claim: Claim,
    records: Callable[[str], RecordStore],
    place: OwedHookTable,
    seen: dict[str, Mapping[str, Sighting]],
) -> TableRun | Later[TableRun | None] | None:
    last = tail(records(place.location))
    if last is None or not (last.owed or (last.statement_bound and not place.applied)):
        return None
    group = place.sharing() or (place,)
    # The jobs stay paused while a statement may run on any of these tables.
    needed = [each for each in group if each.name == place.name or _runs(records(each.location))]
    stores = {each.name: records(each.location) for each in needed}
    taken = acquire_all(stores, claim, window.clock, seen.get(place.name, {}))
    if isinstance(taken, Blocked):
        holder = next(iter(taken.holders.values()))
        if holder.alive or holder.patience > longest_watch(claim.ttl):
            return None
        seen[place.name] = taken.holders
        left = "owes its after-hooks" if last.owed else "left a statement that may still run"
        pause = min(LONGEST_PAUSE, holder.record.ttl / 12)
        return Later(
            window.clock.monotonic() + pause,
            result=None,
            words=f"a run before {left}: {wait_text(holder)}",
        )
    lease, streams = taken[place.name], distinct(each.streams() for each in group)
    hooks = TableHooks(window, place.name, place.location, lease, HookStreams(declared=streams))
    with ExitStack() as stack:
        stack.callback(APPLYING.reset, APPLYING.set(claim.run))
        for held in taken.values():
            stack.callback(held.release)
            stack.enter_context(Renewer(held))
        try:
            for each in needed:
                end_inherited(window, taken[each.name], each.name, each.location, hooks.notes)
            hooks.settle()
        except (StopTableError, TablectlError) as end:  # the store, the log, or a stop while it waited, among others
            hooks.owed = lease.record.owed
            hooks.notes.append(f"{end.message}: {end.hint}")
    run = TableRun(
        name=place.name,
        outcome=RunOutcome.ALREADY,
        epoch=lease.record.epoch,
        owed=hooks.owed,
        notes=tuple(hooks.notes),
    )
    # The statement that keeps a gate shut may be that of a table which shares the window.
    gates = [with_gate(replace(run, name=each.name), taken[each.name]) for each in needed]
    shut = max(gates, key=lambda gate: gate.shut_ms)
    return replace(run, shut_ms=shut.shut_ms, shut=shut.shut)


def _runs(store: RecordStore) -> bool:
    last = tail(store)
    return last is not None and last.statement_bound > 0
