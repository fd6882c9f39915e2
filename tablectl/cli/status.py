"""``tablectl status``: the state of every table, as a report, as rows in a file, or appended to a Delta table."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from time import time

from tablectl.cli.output import Output
from tablectl.cli.plan_reports import context_here, selection_of
from tablectl.cli.report_files import ReportFiles
from tablectl.cli.request import CommandRequest
from tablectl.cli.status_rows import append_rows, parquet_bytes
from tablectl.lake_status import StatusDepth, collect_status
from tablectl.model.errors import ExitCode
from tablectl.model.json_form import json_form
from tablectl.policies.requested_tables import requested_tables, whole_catalog
from tablectl.reports.document import Document
from tablectl.reports.document_html import document_html
from tablectl.reports.document_markdown import document_markdown
from tablectl.reports.document_text import document_text
from tablectl.reports.formats import ReportFormat
from tablectl.reports.status import LakeStatus
from tablectl.reports.status_document import status_document
from tablectl.reports.style import Style
from tablectl.written_files import check_writable, write_file

_WHERE = "<code>tablectl status --html FILE</code> writes all rows."


@dataclass(frozen=True, slots=True)
class StatusRequest:
    """The options of ``status``."""

    tables: tuple[str, ...]
    """Further tables and patterns, which need no policy."""
    everything: bool
    debt: bool
    look_back: int
    parquet: Path | None
    delta: str | None


def status_command(request: CommandRequest, out: Output, reports: ReportFiles, asked: StatusRequest) -> ExitCode:
    """Returns the exit code: 1 if a table cannot be read, otherwise 0."""
    with request.open(out) as project, out.progress() as on_read:
        reports.check()
        if asked.parquet:
            check_writable(asked.parquet)
        texts = [*asked.tables, *([whole_catalog(project.catalog)] if asked.everything else [])]
        others = requested_tables(texts, project.catalog, project.variables) if texts else None
        options = StatusDepth(look_back=asked.look_back, debt=asked.debt, now=int(time() * 1000))
        policies = project.any_policies(request.paths)
        status = collect_status(project, policies, others, selection_of(request), options, on_read)
    shown = project.mask.status(status)
    document = status_document(shown)
    context = context_here()

    def render(form: ReportFormat, style: Style) -> str:
        return _rendered(shown, document, form, style)

    def render_here(form: ReportFormat, style: Style) -> str:
        return document_html(document, context) if form is ReportFormat.HTML else render(form, style)

    if asked.parquet:
        write_file(asked.parquet, parquet_bytes(shown))
        out.note(f"wrote {len(shown.tables)} rows to {asked.parquet}")
    if asked.delta:
        append_rows(shown, asked.delta)
        out.note(f"appended {len(shown.tables)} rows to {asked.delta}")
    reports.write(render_here, out)
    return status.exit_code


def _rendered(status: LakeStatus, document: Document, form: ReportFormat, style: Style) -> str:
    match form:
        case ReportFormat.JSON:
            return json.dumps(status, default=json_form, indent=1) + "\n"
        case ReportFormat.MARKDOWN:
            return document_markdown(document, "<!-- tablectl status -->", _WHERE)
        case _:
            return document_text(document, style)
