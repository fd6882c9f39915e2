"""``tablectl show``: a saved plan."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from tablectl.commands.output import Output
from tablectl.commands.parameters import AnyFormat, AnyReports, Place, VarValues, Verbose
from tablectl.commands.project import Project
from tablectl.commands.report_facts import plan_context
from tablectl.commands.report_files import ReportFiles, report_of
from tablectl.commands.user_files import read_plan, saved_plan
from tablectl.model.errors import ExitCode, UsageError
from tablectl.model.plan import Plan
from tablectl.reports.plan_report import document_of_plan
from tablectl.reports.render import ReportFormat
from tablectl.version import __version__


def show_command(
    ctx: typer.Context,
    plan: Annotated[Path, typer.Argument(metavar="PLAN", help="Plan file written by `tablectl plan --out`.")],
    *,
    variables: VarValues = None,
    form: AnyFormat = ReportFormat.TEXT,
    report: AnyReports = None,
    verbose: Verbose = False,
) -> ExitCode:
    """Show a saved plan.

    Example: tablectl show plans/today.json
    """
    out: Output = ctx.obj
    file = saved_plan(plan)
    reports = ReportFiles.of(form, report, file)
    saved = read_plan(file, to_apply=False)
    with _project_of(saved, Place(variables=variables), out) as project:
        reports.check()
        if saved.tool != __version__:
            out.note(
                f"made by tablectl {saved.tool}: its SQL could not be derived again by this version, {__version__}"
            )
        context = plan_context(saved, project, None, out, reports)
        make = partial(document_of_plan, mask=project.mask, context=context)
        reports.write(report_of(saved, make, context, verbose=verbose), out)
    return ExitCode.DONE


def _project_of(plan: Plan, place: Place, out: Output) -> Project:
    """The repository in the plan's own environment, whatever the variable names; in none if it no longer exists."""
    try:
        return place.open(out.note, env=plan.env)
    except UsageError as error:
        out.note(f"shown as without an environment: {error.message}")
        return place.open(out.note, env="")
