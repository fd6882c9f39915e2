"""``tablectl advise``: what to declare, from the logs of tables."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from tablectl.cli.output import Output
from tablectl.cli.plan_reports import context_here, selection_of
from tablectl.cli.report_files import ReportFiles
from tablectl.cli.request import CommandRequest
from tablectl.lake_advice import AdviceDepth, collect_advice, policies_text
from tablectl.model.errors import ExitCode, UsageError
from tablectl.model.json_form import json_form
from tablectl.policies.requested_tables import requested_tables, whole_catalog
from tablectl.reports.advice_document import advice_document
from tablectl.reports.document_html import document_html
from tablectl.reports.document_markdown import document_markdown
from tablectl.reports.document_text import document_text
from tablectl.reports.formats import ReportFormat
from tablectl.reports.style import Style
from tablectl.written_files import check_writable, write_file

_WHERE = "<code>tablectl advise --report FILE.html</code> writes all of it."


@dataclass(frozen=True, slots=True)
class AdviseOptions:
    """The options of ``advise``."""

    tables: tuple[str, ...]
    """Further tables and patterns, which need no policy."""
    everything: bool
    days: int
    list_files: bool
    write: Path | None
    """The policy file to write."""


def advise_command(request: CommandRequest, out: Output, reports: ReportFiles, asked: AdviseOptions) -> ExitCode:
    """Returns the exit code: 1 if a table cannot be read, otherwise 0."""
    with request.open(out) as project, out.progress() as on_read:
        reports.check()
        if asked.write:
            if asked.write.exists():
                raise UsageError(f"{asked.write} exists", "name a new file, and move what you want into your policies")
            check_writable(asked.write)
        texts = [*asked.tables, *([whole_catalog(project.catalog)] if asked.everything else [])]
        others = requested_tables(texts, project.catalog, project.variables) if texts else None
        policies = project.any_policies(request.paths)
        depth = AdviceDepth(days=asked.days, list_files=asked.list_files)
        found = collect_advice(project, policies, others, selection_of(request), depth, on_read)
        text = policies_text(project, found)
    document, context = advice_document(found), context_here()

    def render(form: ReportFormat, style: Style) -> str:
        match form:
            case ReportFormat.JSON:
                return json.dumps(json_form(found), indent=1, default=json_form) + "\n"
            case ReportFormat.MARKDOWN:
                return document_markdown(document, "<!-- tablectl advice -->", _WHERE)
            case ReportFormat.HTML:
                return document_html(document, context)
            case _:
                return document_text(document, style)

    reports.write(render, out)
    if asked.write and any(each.yaml for each in found.tables):
        write_file(asked.write, text.encode())
        out.note(f"wrote {asked.write}: review it, then run `tablectl plan`")
    elif asked.write:
        out.note("there is nothing to declare: no file was written")
    return found.exit_code
