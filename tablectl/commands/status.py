"""``tablectl status``: the state of every table, as a report, or as rows appended to a Delta table."""

from __future__ import annotations

from functools import partial
from time import time

from tablectl.commands.output import Output
from tablectl.commands.plan_reports import selection_of
from tablectl.commands.report_files import ReportFiles
from tablectl.commands.report_origin import context_here
from tablectl.commands.request import CommandRequest
from tablectl.commands.status_rows import append_rows
from tablectl.commands.table_reports import report_of
from tablectl.frozen import frozen
from tablectl.lake_status import StatusDepth, collect_status
from tablectl.model.errors import ExitCode
from tablectl.reports.documents import document_of_status


@frozen
class StatusRequest:
    """The options of ``status``."""

    tables: tuple[str, ...]
    """Further tables and patterns, which need no policy."""
    everything: bool
    debt: bool
    look_back: int
    delta: str | None


def status_command(request: CommandRequest, out: Output, reports: ReportFiles, asked: StatusRequest) -> ExitCode:
    """Returns the exit code: 1 if a table cannot be read, otherwise 0."""
    with request.open(out) as project, out.progress() as on_read:
        reports.check()
        others = project.requested(asked.tables, everything=asked.everything)
        options = StatusDepth(look_back=asked.look_back, debt=asked.debt, now=int(time() * 1000))
        policies = project.any_policies(request.paths)
        status = collect_status(project, policies, others, selection_of(request), options, on_read)
    context = context_here()
    report = report_of(status, partial(document_of_status, mask=project.mask), context)
    if asked.delta:
        append_rows(project.mask.status(status), asked.delta)
        out.note(f"appended {len(status.tables)} rows to {asked.delta}")
    reports.write(report, out)
    return status.exit_code
