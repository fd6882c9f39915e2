"""``tablectl lint``: the findings on live tables."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tablectl.cli.output import Output
from tablectl.cli.plan_reports import context_here, selection_of, warn_unmatched
from tablectl.cli.report_files import below_root
from tablectl.cli.request import CommandRequest
from tablectl.model.errors import ExitCode
from tablectl.planning.lint import Linted
from tablectl.policies.dbt_manifest import read_manifest
from tablectl.policies.policy_lines import policy_lines_of
from tablectl.policies.spec import Specs
from tablectl.reports.formats import ReportFormat
from tablectl.reports.lint_text import lint_json, lint_text
from tablectl.workflow import lint_tables


def lint_command(request: CommandRequest, out: Output, form: ReportFormat, manifest: Path | None = None) -> ExitCode:
    """``tablectl lint``. ``manifest`` is that of a dbt project. Returns the exit code."""
    with request.open(out) as project, out.progress() as on_read:
        specs = project.policies(request.paths)
        dbt = () if manifest is None else read_manifest(manifest, project.catalog)
        linted = project.mask.lint(lint_tables(project, specs, selection_of(request), on_read, dbt))
    match form:
        case ReportFormat.JSON:
            out.json_result(lint_json(linted))
        case ReportFormat.SARIF:
            from tablectl.reports.context import Context  # noqa: PLC0415  # loads many modules, needed only here
            from tablectl.reports.sarif import lint_sarif  # noqa: PLC0415

            sources = policy_lines_of(specs, [table.name for table in linted.tables])
            out.result(lint_sarif(linted, Context(root=below_root(Path().absolute()), sources=sources)))
        case ReportFormat.MARKDOWN | ReportFormat.HTML:
            out.result(_document(linted, specs, form))
        case _:
            out.result(lint_text(linted, out.style))
    warn_unmatched(specs, linted.unmatched, out)
    return linted.exit_code


def _document(linted: Linted, specs: Specs, form: ReportFormat) -> str:
    from tablectl.reports.lint_document import lint_document  # noqa: PLC0415  # loads many modules, as above

    sources = policy_lines_of(specs, [table.name for table in linted.tables])
    context = replace(context_here(), sources=sources)
    document = lint_document(linted, context)
    if form is ReportFormat.MARKDOWN:
        from tablectl.reports.document_markdown import document_markdown  # noqa: PLC0415

        where = "<code>tablectl lint</code> prints all of it."
        return document_markdown(document, "<!-- tablectl lint -->", where)
    from tablectl.reports.document_html import document_html  # noqa: PLC0415

    return document_html(document, context)
