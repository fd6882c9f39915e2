"""``tablectl window``: show or release the lease on a table."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from datetime import timedelta
from typing import Annotated

import typer

from tablectl.applying.copy_records import copy_text, delete_parts
from tablectl.commands.output import Output
from tablectl.commands.parameters import Env, Place, Remote, TableArgument, TextOrJson
from tablectl.leases.acquire import break_lease
from tablectl.leases.clock import SystemClock, today
from tablectl.leases.lease_records import LARGEST_NUMBER, UNREADABLE, LeaseRecord, tail
from tablectl.leases.owner import current_owner
from tablectl.log.reader import newest_version
from tablectl.model.errors import ExitCode, UsageError
from tablectl.reports.render import ReportFormat
from tablectl.storage.records import RecordStore
from tablectl.version import __version__
from tablectl.writers.guard_traces import traces

_DAYS = 7


def window_show_command(
    ctx: typer.Context,
    table: TableArgument,
    *,
    env: Env = None,
    remote: Remote = None,
    form: TextOrJson = ReportFormat.TEXT,
) -> ExitCode:
    """Show who holds the lease on a table, and since when.

    Example: tablectl window show 'delta.`/lake/orders`'
    """
    out: Output = ctx.obj
    store, must_exist = _records(table, Place(env=env, remote=remote), out)
    record = tail(store)
    if record is None:
        must_exist()  # distinguishes a misspelt name from a table that was never leased
    if form is ReportFormat.JSON:
        out.json_result(record)
    elif record is None:
        out.result(f"{table}: no apply has ever held it\n")
    elif record.held:
        out.result(f"{table}: held by {record}\n")
        if record.kind == UNREADABLE:
            out.note(
                f"its last record cannot be read: {record.reason}; applies and writers wait for it, and then take the "
                "holder for dead"
            )
        out.note(_way_out(table, record))
    else:
        how = "broken" if record.kind == "break" else "released"
        when = f"{record.at:%Y-%m-%d %H:%M:%S} UTC"
        out.result(f"{table}: free; last held (epoch {record.epoch}) by {record.owner}, {how} {when}\n")
        if record.shut_for:
            out.note(f"a statement of that run may still run, so writers wait for {record.shut_for:.0f} s at most")
            out.note(_way_out(table, record))
    if form is not ReportFormat.JSON:
        out.result(_writers_text(store))
        if left := copy_text(store):
            out.result(f"what is left of a copy beside it: {left}\n")
    return ExitCode.DONE


def window_clean_command(
    ctx: typer.Context,
    table: TableArgument,
    *,
    env: Env = None,
    remote: Remote = None,
    form: TextOrJson = ReportFormat.TEXT,
) -> ExitCode:
    """Give up what is left of a copy beside a table. Its files are in no version of the table: VACUUM removes them.

    Example: tablectl window clean 'delta.`/lake/orders`'
    """
    out: Output = ctx.obj
    store, must_exist = _records(table, Place(env=env, remote=remote), out)
    held = tail(store)
    if held is not None and held.held:
        raise UsageError(f"{table} is held by {held}", "wait until that apply has ended, or stop it")
    parts = delete_parts(store)
    if not parts:
        must_exist()
    if form is ReportFormat.JSON:
        out.json_result({"parts": parts})
    elif parts:
        out.result(f"{table}: a copy of {parts:,} part{'s' * (parts != 1)} is given up\n")
        out.note("VACUUM removes its files when they are older than the retention time")
    else:
        out.result(f"{table}: there is no copy beside it\n")
    return ExitCode.DONE


def _way_out(table: str, record: LeaseRecord) -> str:
    return f"to free it: tablectl window break {shlex.quote(table)} --epoch {record.epoch} --reason …"


def _writers_text(store: RecordStore) -> str:
    """The writers that came with a guard of a guarded session in the last days; empty if there were none."""
    found = traces(store, today() - timedelta(days=_DAYS))
    lines = "".join(f"  {each.day}  {each.mode:<7}  {each.writer}\n" for each in found)
    return f"writers that came with a guard in the last {_DAYS} days:\n{lines}" if lines else ""


def window_break_command(
    ctx: typer.Context,
    table: TableArgument,
    *,
    reason: Annotated[
        str, typer.Option("--reason", metavar="TEXT", help="Reason; recorded for the current and the next holder.")
    ],
    epoch: Annotated[
        int | None,
        typer.Option("--epoch", metavar="INTEGER", min=0, max=LARGEST_NUMBER, help="Epoch printed by `window show`."),
    ] = None,
    env: Env = None,
    remote: Remote = None,
    form: TextOrJson = ReportFormat.TEXT,
) -> ExitCode:
    """Release the lease on a table by force. Its holder starts no further statement; a running one is not stopped.

    Example: tablectl window break 'delta.`/lake/orders`' --epoch 3 --reason "CI job cancelled"
    """
    out: Output = ctx.obj
    store, must_exist = _records(table, Place(env=env, remote=remote), out)
    held = tail(store)
    if held is None:
        must_exist()
    if epoch is None:
        if held is None or not (held.held or held.shut_for):
            raise UsageError(f"the lease on {table} is free", "there is nothing to break: apply may run")
        raise UsageError(f"{table} is held by {held}", f"to break this lease, add --epoch {held.epoch}")
    if not reason.strip():
        raise UsageError("--reason is empty", "give a reason; it is recorded for the current and the next holder")
    record = break_lease(store, epoch, reason, current_owner(os.environ, __version__), SystemClock())
    if form is ReportFormat.JSON:
        out.json_result(record)
    else:
        out.result(f"{table}: epoch {record.epoch} is broken; apply may run\n")
    return ExitCode.DONE


def _records(text: str, place: Place, out: Output) -> tuple[RecordStore, Callable[[], object]]:
    """The record store of a table's lease, and a function that raises ``LiveError`` if the table does not exist."""
    with place.open(out.note) as project:
        table = project.named(text)
        location = table.parts[0] if table.is_path else project.open_catalog().location(table)
    return project.records(location), lambda: newest_version(location, options=project.stores)
