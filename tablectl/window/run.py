"""A whole apply: waves of tables, leases all or none, tables side by side, leases given back on every way out."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace

from tablectl.model.errors import EngineError, PlanFileError, WindowError
from tablectl.model.names import canonical_location
from tablectl.model.plan import Plan, TablePlan
from tablectl.window.acquire import Blocked, Claim, acquire_all
from tablectl.window.again import tries
from tablectl.window.commits import check_commits
from tablectl.window.events import Event
from tablectl.window.lease import Lease, Renewer
from tablectl.window.lease_log import PATIENCE, tail
from tablectl.window.records import RecordStore, real_place
from tablectl.window.report import Outcome, RunReport, TableRun
from tablectl.window.setting import EndError, Window
from tablectl.window.settle import Place, settle
from tablectl.window.table import preflight, run_table, unexpected
from tablectl.window.watch import watch

_AGAIN = "run the same command again"
ON_DISK = (
    "on a local disk two drivers can overwrite each other's commits: let no other process write these tables meanwhile"
)


@dataclass(frozen=True, slots=True)
class Wave:
    """How tables are taken: how many at once, on whose behalf, and where their lease records lie."""

    parallel: int
    claim: Claim
    records: Callable[[str], RecordStore]
    """The record store of a table, by its location."""


def run_plan(window: Window, wave: Wave, plan: Plan, unchanged: Sequence[Place] = ()) -> RunReport:
    """Apply a plan. One table's trouble never stops the others; all leases are released on every way out.

    ``unchanged`` are tables as declared, which a run that died may owe after-hooks.
    """
    planned = [table for table in plan.tables if table.applies]
    _check_places(planned)
    barred, notes = _check_commits(window, planned)
    todo = [table for table in planned if table.name not in barred]
    runs = {run.name: run for run in _run_once(window, wave, todo)}
    for again in tries(window, todo, runs):
        runs |= {run.name: run.following(runs[run.name]) for run in _run_once(window, wave, again)}
    left = [Place(table.name, table.location) for table in todo if runs[table.name].outcome is Outcome.OUTSIDE]
    for name, settled in settle(window, wave.claim, wave.records, [*left, *unchanged]).items():
        run = runs.get(name, settled)
        runs[name] = replace(run, owed=settled.owed, notes=(*run.notes, *settled.notes))
    runs |= watch(window, todo, runs)
    refused = [_left_out(table) for table in plan.tables if table.refusals]
    return RunReport(
        run=window.stamp.run,
        plan=window.stamp.plan,
        env=plan.env,
        tables=tuple(sorted([*runs.values(), *barred.values(), *refused], key=lambda run: run.name)),
        failures=plan.failures,
        proceed=window.stamp.proceed,
        override=window.stamp.override,
        notes=notes,
    )


def _check_commits(window: Window, tables: Sequence[TablePlan]) -> tuple[dict[str, TableRun], tuple[str, ...]]:
    """The tables on which commits could be lost, before any is begun; and a warning where it is only possible."""
    barred: dict[str, TableRun] = {}
    warn = False
    for table in tables:
        try:
            warn |= check_commits(window.engine, table.location, exclusive=window.terms.exclusive_commits)
        except EndError as end:
            barred[table.name] = _plain(table, end.outcome, end.message, end.hint)
        except EngineError as error:
            barred[table.name] = _plain(table, Outcome.FAILED, error.message, error.hint)
    if warn:
        window.notify(Event("", "note", ON_DISK))
    return barred, (ON_DISK,) if warn else ()


def _run_once(window: Window, wave: Wave, tables: Sequence[TablePlan]) -> list[TableRun]:
    done: list[TableRun] = []
    for some in _waves(tables, wave.parallel):
        if window.stop.is_set():
            done += [_plain(table, Outcome.INTERRUPTED, "stopped before its turn", _AGAIN) for table in some]
        else:
            done += _run_guarded(window, wave, some)
    return done


def _waves(tables: Sequence[TablePlan], size: int) -> Iterable[Sequence[TablePlan]]:
    ordered = sorted(tables, key=lambda table: canonical_location(table.location))
    return (ordered[start : start + size] for start in range(0, len(ordered), size))


def _check_places(tables: Sequence[TablePlan]) -> None:
    """Two names of one table would fight over its lease, and each would undo the other's checks."""
    names: dict[str, str] = {}
    for table in tables:
        key = real_place(table.location)
        if key in names:
            raise PlanFileError(
                f"{names[key]} and {table.name} are one table: both lie in {table.location}",
                "declare the table under one name, and plan again",
            )
        names[key] = table.name


def _run_guarded(window: Window, wave: Wave, tables: Sequence[TablePlan]) -> list[TableRun]:
    """A wave whose unforeseen errors are its tables' outcome, or what earlier waves committed would go unreported."""
    try:
        return _run_wave(window, wave, tables)
    except Exception as error:  # noqa: BLE001  # see above
        return [_plain(table, Outcome.FAILED, *unexpected(table.name, error)) for table in tables]


def _run_wave(window: Window, wave: Wave, tables: Sequence[TablePlan]) -> list[TableRun]:
    checked = [(table, preflight(window, table)) for table in tables]
    missing = [run for _, run in checked if run is not None]
    by_key = {canonical_location(table.location): table for table, run in checked if run is None}
    with ExitStack() as stack:
        try:
            leases, left = _take(window, wave, by_key)
        except WindowError as error:
            return [*missing, *_not_opened(window, wave, list(by_key.values()), error)]
        for lease in leases.values():
            stack.callback(lease.release)
        for lease in leases.values():
            stack.enter_context(Renewer(lease))
        for key in leases:
            window.notify(Event(by_key[key].name, "leased"))
        runs = _side_by_side(window, [(by_key[key], lease) for key, lease in leases.items()])
    for run in runs:
        # What is done is done: whoever watches cannot change it by failing.
        with suppress(Exception):
            window.notify(Event(run.name, "released"))
    return [*missing, *runs, *left]


def _not_opened(window: Window, wave: Wave, tables: Sequence[TablePlan], error: WindowError) -> list[TableRun]:
    """What comes of tables whose leases could not be asked for."""
    if window.stop.is_set():
        return [_plain(table, Outcome.INTERRUPTED, "stopped before its turn", _AGAIN) for table in tables]
    if len(tables) == 1:
        return [_plain(tables[0], Outcome.FAILED, error.message, error.hint)]
    # One table's records are out of reach, and none may wait for it: each gets a wave of its own.
    return [run for table in tables for run in _run_guarded(window, wave, [table])]


def _take(window: Window, wave: Wave, tables: Mapping[str, TablePlan]) -> tuple[Mapping[str, Lease], list[TableRun]]:
    """The leases that can be had, all or none at each try; tables that others hold are left out and named."""
    left: list[TableRun] = []
    waiting = dict(tables)
    while waiting:
        stores = {key: wave.records(table.location) for key, table in waiting.items()}
        _tell_held(window, waiting, stores)
        taken = acquire_all(stores, wave.claim, window.clock)
        if not isinstance(taken, Blocked):
            return taken, left
        for key, held in taken.holders.items():
            table = waiting.pop(key)
            left.append(_plain(table, Outcome.HELD, str(held), f"run again later, or see {_show(table)}"))
    return {}, left


def _tell_held(window: Window, tables: Mapping[str, TablePlan], stores: Mapping[str, RecordStore]) -> None:
    """A dead holder is waited out for longer than a minute: silence would look like a hang."""
    for key, store in stores.items():
        last = tail(store)
        if last is not None and last.held:
            patience = round(last.ttl * PATIENCE)
            words = f"held by {last}; taken over if silent for {patience} s"
            window.notify(Event(tables[key].name, "held", words))


def _show(table: TablePlan) -> str:
    return f"`tablectl window show {shlex.quote(table.name)}`"


def _side_by_side(window: Window, tasks: Sequence[tuple[TablePlan, Lease]]) -> list[TableRun]:
    """One thread a table. A signal in the waiting thread stops further statements and still waits for those running."""
    if not tasks:
        return []
    with ThreadPoolExecutor(max_workers=len(tasks), thread_name_prefix="tablectl-table") as pool:
        futures: list[Future[TableRun]] = [pool.submit(run_table, window, plan, lease) for plan, lease in tasks]
        try:
            pending = set(futures)
            while pending:
                # A bounded wait, so that the main thread gets its signals.
                _, pending = wait(pending, timeout=0.5, return_when=FIRST_COMPLETED)
        except BaseException:
            window.stop.set()
            raise
    return [future.result() for future in futures]


def _left_out(table: TablePlan) -> TableRun:
    first = table.refusals[0]
    run = _plain(table, Outcome.REFUSED, f"{first.change}: {first.reason}", first.way_out)
    return replace(run, refusals=table.refusals)


def _plain(table: TablePlan, outcome: Outcome, message: str, hint: str = "") -> TableRun:
    return TableRun(name=table.name, outcome=outcome, message=message, hint=hint)
