"""``tablectl status``: the state of every table, as a report, as rows in a file, or appended to a Delta table."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from time import time

from tablectl.api import Engines
from tablectl.cli.commands import configuration, context_here
from tablectl.cli.output import Output, check_writable, write_file
from tablectl.cli.report_files import ReportFiles
from tablectl.cli.request import CommandRequest
from tablectl.cli.status_rows import append_rows, parquet_bytes
from tablectl.lake_status import StatusOptions, collect_status
from tablectl.model.errors import ExitCode
from tablectl.model.plain import plain
from tablectl.policies.repository import load_any, variables_for
from tablectl.policies.requested_tables import requested_tables, whole_catalog
from tablectl.reports.document import Document
from tablectl.reports.document_html import document_html
from tablectl.reports.document_markdown import document_markdown
from tablectl.reports.document_text import document_text
from tablectl.reports.formats import ReportFormat
from tablectl.reports.mask import Mask
from tablectl.reports.status import LakeStatus
from tablectl.reports.status_document import status_document
from tablectl.reports.style import Style
from tablectl.selection import Selection
from tablectl.workflow import store_options

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
    config = configuration(request)
    reports.check()
    if asked.parquet:
        check_writable(asked.parquet)
    specs = load_any(request.paths, config, ".", request.variables, os.environ)
    texts = [*asked.tables, *([whole_catalog(config.engine.catalog)] if asked.everything else [])]
    given = variables_for(config, request.variables, os.environ)
    others = requested_tables(texts, config.engine.catalog, given) if texts else None
    options = StatusOptions(
        stores=store_options(config),
        dialect=config.engine.dialect,
        env=config.environment,
        severities=config.severities,
        look_back=asked.look_back,
        debt=asked.debt,
        now=int(time() * 1000),
    )
    selection = Selection(request.select, request.tags, request.excluded)
    with Engines(config, on_start=out.note) as engines, out.progress() as on_read:
        status = collect_status(specs, others, selection, engines.start, options, on_read)
    shown = Mask(config.reports.mask).status(status)
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
            return json.dumps(plain(status), indent=1) + "\n"
        case ReportFormat.MARKDOWN:
            return document_markdown(document, "<!-- tablectl status -->", _WHERE)
        case _:
            return document_text(document, style)
