"""``--watch``: after the run, once its gates are open, wait for earlier writers to commit again (docs/window.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tablectl.applying.context import RunContext
from tablectl.applying.events import RunEvent
from tablectl.applying.observed_writers import expected, is_writer, name_of
from tablectl.applying.run_report import TableRun
from tablectl.leases.clock import StoppedError
from tablectl.model.errors import TablectlError
from tablectl.model.plan import TablePlan
from tablectl.one_table import of_table

_LOOK_EVERY = 5.0


def watch(window: RunContext, tables: Sequence[TablePlan], runs: Mapping[str, TableRun]) -> dict[str, TableRun]:
    """The runs of the tables with commits, updated with the writers that committed again within ``terms.watch``
    seconds.

    Returns early once every expected writer is back or the run is stopped. A table that cannot be read is read again at
    the next poll.
    """
    watched = {table.name: runs[table.name] for table in tables if runs[table.name].commits}
    started = window.clock.monotonic()
    while window.terms.watch:
        watched = {table.name: _look(window, table, watched[table.name]) for table in tables if table.name in watched}
        waited = window.clock.monotonic() - started
        silent = {name: missing for name, run in watched.items() if (missing := _missing(run))}
        if not silent or window.terms.watch - waited < _LOOK_EVERY / 100 or window.stop.is_set():
            break
        for name, missing in silent.items():
            words = f"done, watching for writers to come back: {', '.join(missing)}"
            window.notify(RunEvent(name, "watch", words, waited))
        try:
            window.clock.sleep(min(_LOOK_EVERY, window.terms.watch - waited))
        except StoppedError:
            break
    return {name: replace(run, watched=True) for name, run in watched.items()} if window.terms.watch else {}


def _look(window: RunContext, table: TablePlan, run: TableRun) -> TableRun:
    def seen() -> TableRun:
        commits = window.reader.commits(table.location, after=run.commits[-1].version)
        back = {name_of(commit) for commit in commits if is_writer(commit)}
        return replace(run, writers=tuple(replace(each, back=each.back or each.name in back) for each in run.writers))

    found = of_table(table.name, seen)
    return run if isinstance(found, TablectlError) else found


def _missing(run: TableRun) -> list[str]:
    return [writer.name for writer in expected(run.writers) if not writer.back]
