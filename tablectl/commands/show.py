"""``tablectl show``: a saved plan."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tablectl.commands.command import command
from tablectl.commands.options import Place, Shown
from tablectl.commands.output import Output
from tablectl.commands.project import Project
from tablectl.commands.report_facts import plan_context
from tablectl.commands.report_files import report_of
from tablectl.commands.user_files import read_plan, saved_plan
from tablectl.model.errors import ExitCode, UsageError
from tablectl.model.plan import Plan
from tablectl.policies.declare_setting import REQUIRED, setting
from tablectl.policies.field_types import Text
from tablectl.reports.plan_report import document_of_plan
from tablectl.version import __version__


@dataclass(frozen=True, kw_only=True)
class ShowOptions(Place, Shown):
    """The options of ``show``."""

    plan: Path = setting(
        REQUIRED, Text(parse=Path, description="Plan file written by `tablectl plan --out`."), metavar="PLAN"
    )


@command(ShowOptions, without=("cache", "env", "remote"))
def show_command(options: ShowOptions, out: Output) -> ExitCode:
    """Show a saved plan.

    Example: tablectl show plans/today.json
    """
    file = saved_plan(options.plan)
    reports = options.reports(file)
    plan = read_plan(file, to_apply=False)
    with _project_of(plan, options, out) as project:
        reports.check()
        if plan.tool != __version__:
            out.note(f"made by tablectl {plan.tool}: its SQL could not be derived again by this version, {__version__}")
        context = plan_context(plan, project, None, out, reports)
        make = partial(document_of_plan, mask=project.mask, context=context)
        reports.write(report_of(plan, make, context, verbose=options.verbose), out)
    return ExitCode.DONE


def _project_of(plan: Plan, options: ShowOptions, out: Output) -> Project:
    """The repository in the plan's own environment, whatever the variable names; in none if it no longer exists."""
    try:
        return options.open(out.note, env=plan.env)
    except UsageError as error:
        out.note(f"shown as without an environment: {error.message}")
        return options.open(out.note, env="")
