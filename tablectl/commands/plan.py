"""``tablectl plan``: the changes that the policies require."""

from __future__ import annotations

import shlex
from dataclasses import replace
from functools import partial
from pathlib import Path

from tablectl.commands.output import Output
from tablectl.commands.plan_reports import (
    Started,
    limit_exceeded,
    lines_of_plan,
    plan_context,
    plan_with_progress,
    policies_and_selection,
)
from tablectl.commands.report_files import ReportFiles
from tablectl.commands.request import CommandRequest
from tablectl.commands.table_reports import report_of
from tablectl.delta.dialects import dialect_of
from tablectl.frozen import frozen
from tablectl.model.errors import ExitCode, UsageError
from tablectl.model.plan import Plan
from tablectl.model.text import listed
from tablectl.planning.plan_file import dump_plan
from tablectl.policies.spec import Specs
from tablectl.project import Project
from tablectl.reports.context import Context
from tablectl.reports.documents import document_of_plan
from tablectl.reports.formats import ReportFormat
from tablectl.support.written_files import check_writable, write_file

_SHOWN = 5


def plan_command(
    request: CommandRequest,
    out: Output,
    save: Path | None,
    reports: ReportFiles,
    *,
    detailed_exitcode: bool,
) -> ExitCode:
    """Show the plan, and save it unless it is too large. Returns the exit code."""
    if request.shown_as and save:
        raise UsageError("--as shows a plan for another dialect, which cannot be saved", "set engine.dialect instead")
    with request.open(out) as opened:
        project = opened.in_dialect(request.shown_as) if request.shown_as else opened
        _check_files(save, reports)
        specs, selection = policies_and_selection(request, project)
        started = Started()
        plan = plan_with_progress(project, specs, selection, request, out)
        sources = lines_of_plan(plan, specs) if reports.names_lines else {}
        context = started.timed(Context(pending_fails=detailed_exitcode, sources=sources))
        if request.shown_as:
            _note_default_levels(specs, project.dialect, opened.dialect, out)
    if request.shard:
        out.note(f"shard {request.shard}: {len(plan.tables) + len(plan.unchanged)} tables; `--merge` joins all shards")
    return _shown(plan, project, request, out, _Target(save, reports, context))


def merge_command(
    request: CommandRequest, out: Output, save: Path | None, reports: ReportFiles, *, detailed_exitcode: bool
) -> ExitCode:
    """Show the plan that the plans of all shards make together, and save it. Returns the exit code of ``plan``."""
    from tablectl.planning.merge_plans import merge_plans  # noqa: PLC0415  # a plan of tables needs neither
    from tablectl.saved_plan import read_plan  # noqa: PLC0415

    if not request.paths:
        raise UsageError(
            "--merge needs the plans of all shards", "for example: plan --merge shards/*.json --out p.json"
        )
    plan = merge_plans([(str(path), read_plan(path)) for path in request.paths])
    with replace(request, paths=(), env=plan.env).open(out) as project:
        _check_files(save, reports)
    context = Context(pending_fails=detailed_exitcode)
    return _shown(plan, project, replace(request, paths=()), out, _Target(save, reports, context))


def _check_files(save: Path | None, reports: ReportFiles) -> None:
    """Raise ``TablectlError`` if a file cannot be written, before tables are read."""
    reports.check()
    if save:
        check_writable(save)


@frozen
class _Target:
    """Where a plan goes."""

    save: Path | None
    reports: ReportFiles
    context: Context


def _shown(plan: Plan, project: Project, request: CommandRequest, out: Output, target: _Target) -> ExitCode:
    """Writes the reports of a plan, and saves it unless it is too large. Returns the exit code."""
    save, reports, context = target.save, target.reports, target.context
    over = limit_exceeded(request, plan)
    if save and not over:
        context = replace(context, dumped=dump_plan(plan))
        write_file(save, context.dumped, private=project.mask.plan(plan) != plan)
    context = plan_context(plan, project, request, out, reports, context)
    if over:
        # Without the tables, which the report lists anyway: a verdict contains no foreign text.
        refused, _, _ = over.message.partition(": ")
        context, reports = replace(context, refused=refused), reports.without(ReportFormat.JSON)
    make = partial(document_of_plan, mask=project.mask, context=context)
    reports.write(report_of(plan, make, context, verbose=request.verbose), out)
    if over:
        raise over
    if save:
        todo = any(table.applies for table in plan.tables)
        how = f"; to apply exactly this plan, run `tablectl apply {shlex.quote(str(save))}`" if todo else ""
        out.note(f"saved to {save}{how}")
    return plan_exit_code(plan, detailed=target.context.pending_fails)


def _note_default_levels(specs: Specs, shown: str, own: str, out: Output) -> None:
    """Says for which tables ``isolation: default`` means another level in the other dialect."""
    there, here = dialect_of(shown), dialect_of(own)
    names = [spec.name.text for spec in specs.tables if spec.policy.isolation == "default"]
    if names and there.default_level != here.default_level:
        out.note(
            f"`isolation: default` means {there.default_level} on {there.title} and {here.default_level} on "
            f"{here.title}: {listed(names, _SHOWN)}"
        )


def plan_exit_code(plan: Plan, *, detailed: bool) -> ExitCode:
    """1 if tables cannot be read, 3 with refusals, 2 (if ``detailed``) with changes, else 0."""
    codes = [ExitCode.ERROR] if plan.failures else []
    if any(table.refusals for table in plan.tables):
        codes.append(ExitCode.REFUSED)
    if detailed and plan.tables:
        codes.append(ExitCode.CHANGES)
    return ExitCode.worst(*codes)
