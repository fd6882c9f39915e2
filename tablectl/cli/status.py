"""``tablectl status``: the state of every table, as a report, as rows in a file, or appended to a Delta table."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from time import time

from tablectl.cli.output import Output
from tablectl.cli.plan_reports import selection_of
from tablectl.cli.report_files import ReportFiles, report_of
from tablectl.cli.report_origin import context_here
from tablectl.cli.request import CommandRequest
from tablectl.cli.status_rows import append_rows, parquet_bytes
from tablectl.frozen import frozen
from tablectl.lake_status import StatusDepth, collect_status
from tablectl.model.errors import ExitCode
from tablectl.reports.documents import document_of_status
from tablectl.written_files import check_writable, write_file


@frozen
class StatusRequest:
    """The options of ``status``."""

    tables: tuple[str, ...]
    """Further tables and patterns, which need no policy."""
    everything: bool
    debt: bool
    look_back: int
    parquet: Path | None
    delta: str | None
    rows: bool = False
    """Whether to print the rows as Parquet, in place of a report."""


def status_command(request: CommandRequest, out: Output, reports: ReportFiles, asked: StatusRequest) -> ExitCode:
    """Returns the exit code: 1 if a table cannot be read, otherwise 0."""
    if asked.rows:
        out.check_binary("--parquet FILE")
    with request.open(out) as project, out.progress() as on_read:
        reports.check()
        if asked.parquet:
            check_writable(asked.parquet)
        others = project.requested(asked.tables, everything=asked.everything)
        options = StatusDepth(look_back=asked.look_back, debt=asked.debt, now=int(time() * 1000))
        policies = project.any_policies(request.paths)
        status = collect_status(project, policies, others, selection_of(request), options, on_read)
    context = context_here()
    report = report_of(status, partial(document_of_status, mask=project.mask), context)
    shown = project.mask.status(status) if asked.rows or asked.parquet or asked.delta else status
    if asked.rows:
        out.binary_result(parquet_bytes(shown))
    if asked.parquet:
        write_file(asked.parquet, parquet_bytes(shown))
        out.note(f"wrote {len(shown.tables)} rows to {asked.parquet}")
    if asked.delta:
        append_rows(shown, asked.delta)
        out.note(f"appended {len(shown.tables)} rows to {asked.delta}")
    reports.write(report, out)
    return status.exit_code
