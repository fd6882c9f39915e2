"""``tablectl lint``: the findings on live tables."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

from tablectl.commands.output import Output
from tablectl.commands.plan_reports import policies_and_selection
from tablectl.commands.report_files import ReportFiles
from tablectl.commands.report_origin import context_here
from tablectl.commands.request import CommandRequest
from tablectl.commands.table_reports import report_of
from tablectl.model.errors import ExitCode
from tablectl.policies.dbt_manifest import read_manifest
from tablectl.policies.effective_policy import policy_lines_of
from tablectl.reports.documents import document_of_lint
from tablectl.reports.formats import ReportFormat
from tablectl.workflow.lint import lint_tables


def lint_command(request: CommandRequest, out: Output, form: ReportFormat, manifest: Path | None = None) -> ExitCode:
    """``tablectl lint``. ``manifest`` is that of a dbt project. Returns the exit code."""
    with request.open(out) as project, out.progress() as on_read:
        specs, selection = policies_and_selection(request, project)
        dbt = () if manifest is None else read_manifest(manifest, project.catalog)
        linted = lint_tables(project, specs, selection, on_read, dbt)
    sources = policy_lines_of(specs, [table.name for table in linted.tables])
    context = replace(context_here(), sources=sources)
    make = partial(document_of_lint, mask=project.mask, context=context)
    ReportFiles(form).write(report_of(linted, make, context), out)
    return linted.exit_code
