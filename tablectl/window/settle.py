"""After-hooks that a dead run owes on tables that this run does not work on: nothing to do, or outside the calendar."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tablectl.model.errors import TablectlError
from tablectl.window.acquire import Claim, Held, acquire
from tablectl.window.hooks import TableHooks
from tablectl.window.lease import Renewer
from tablectl.window.lease_log import tail
from tablectl.window.records import RecordStore
from tablectl.window.report import Outcome, TableRun
from tablectl.window.setting import EndError, Window


@dataclass(frozen=True, slots=True)
class Place:
    """A table by name and location."""

    name: str
    location: str


def settle(
    window: Window, claim: Claim, records: Callable[[str], RecordStore], places: Iterable[Place]
) -> dict[str, TableRun]:
    """Runs what is owed on these tables, each under its lease; what came of it by name, only of tables that owed.

    A table that cannot be asked, or that another apply holds, is left to the next one: nobody asked for it by name.
    """
    if not window.terms.after:
        return {}
    settled: dict[str, TableRun] = {}
    for place in places:
        if window.stop.is_set():
            break
        try:
            run = _settle(window, claim, records(place.location), place)
        except TablectlError:
            continue
        if run is not None:
            settled[place.name] = run
    return settled


def _settle(window: Window, claim: Claim, store: RecordStore, place: Place) -> TableRun | None:
    last = tail(store)
    if last is None or not last.owed:
        return None
    lease = acquire(store, claim, window.clock)
    if isinstance(lease, Held):
        return None
    hooks = TableHooks(window, place.name, place.location, lease)
    try:
        with Renewer(lease):
            hooks.settle()
    except EndError as end:
        hooks.notes.append(f"{end.message}: {end.hint}")
    finally:
        lease.release()
    return TableRun(
        name=place.name,
        outcome=Outcome.ALREADY,
        epoch=lease.record.epoch,
        owed=hooks.owed,
        notes=tuple(hooks.notes),
    )
