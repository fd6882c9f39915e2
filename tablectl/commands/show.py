"""``tablectl show``: a saved plan."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

from tablectl.commands.output import Output
from tablectl.commands.plan_reports import plan_context
from tablectl.commands.report_files import ReportFiles
from tablectl.commands.request import CommandRequest
from tablectl.commands.table_reports import report_of
from tablectl.model.errors import ExitCode, UsageError
from tablectl.model.plan import Plan
from tablectl.project import Project
from tablectl.reports.documents import document_of_plan
from tablectl.saved_plan import read_plan
from tablectl.version import __version__


def show_command(path: Path, request: CommandRequest, out: Output, reports: ReportFiles) -> ExitCode:
    """Show a plan file; also one of another tool version, if it is undamaged."""
    plan = read_plan(path, to_apply=False)
    with _project_of(plan, request, out) as project:
        reports.check()
        if plan.tool != __version__:
            out.note(f"made by tablectl {plan.tool}: its SQL could not be derived again by this version, {__version__}")
        context = plan_context(plan, project, request.paths, out, reports)
        make = partial(document_of_plan, mask=project.mask, context=context)
        reports.write(report_of(plan, make, context, verbose=request.verbose), out)
    return ExitCode.DONE


def _project_of(plan: Plan, request: CommandRequest, out: Output) -> Project:
    """The repository in the plan's own environment, whatever the options name; in none if it no longer exists."""
    try:
        return replace(request, env=plan.env).open(out)
    except UsageError as error:
        out.note(f"shown as without an environment: {error.message}")
        return replace(request, env="").open(out)
