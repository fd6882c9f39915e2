"""``tablectl lint``: the findings on live tables."""

from __future__ import annotations

from pathlib import Path

from tablectl.cli.output import Output, ValidateFormat
from tablectl.cli.plan_reports import selection_of, warn_unmatched
from tablectl.cli.report_files import below_root
from tablectl.cli.request import CommandRequest
from tablectl.model.errors import ExitCode
from tablectl.policies.policy_lines import policy_lines_of
from tablectl.reports.lint_text import lint_json, lint_text
from tablectl.workflow import lint_tables


def lint_command(request: CommandRequest, out: Output, form: ValidateFormat) -> ExitCode:
    """``tablectl lint``. Returns the exit code."""
    with request.open(out) as project, out.progress() as on_read:
        specs = project.policies(request.paths)
        linted = project.mask.lint(lint_tables(project, specs, selection_of(request), on_read))
    match form:
        case ValidateFormat.JSON:
            out.json_result(lint_json(linted))
        case ValidateFormat.SARIF:
            from tablectl.reports.context import Context  # noqa: PLC0415  # loads many modules, needed only here
            from tablectl.reports.sarif import lint_sarif  # noqa: PLC0415

            sources = policy_lines_of(specs, [table.name for table in linted.tables])
            out.result(lint_sarif(linted, Context(root=below_root(Path().absolute()), sources=sources)))
        case ValidateFormat.TEXT:
            out.result(lint_text(linted, out.style))
    warn_unmatched(specs, linted.unmatched, out)
    return linted.exit_code
