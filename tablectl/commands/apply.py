"""``tablectl apply``: run a plan in one protected window."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from tablectl.applying.run_report import RunReport
from tablectl.commands.notify import send_notification
from tablectl.commands.output import Output
from tablectl.commands.plan_reports import check_limits, plan_context, plan_with_progress, selection_of, streams_of
from tablectl.commands.report_files import IncompleteReportError, Render, ReportFiles
from tablectl.commands.report_origin import context_here
from tablectl.commands.request import ApplyCommandOptions, CommandRequest
from tablectl.commands.table_reports import report_of
from tablectl.leases.clock import SystemClock
from tablectl.model.errors import ExitCode, TablectlError, UsageError
from tablectl.model.plan import Plan
from tablectl.policies.spec import Specs
from tablectl.project import Project
from tablectl.reports.context import Context
from tablectl.reports.documents import document_of_plan, document_of_run
from tablectl.reports.formats import ReportFormat
from tablectl.reports.notification import error_notification, run_notification
from tablectl.reports.style import Style
from tablectl.reports.wording import outcome_text
from tablectl.saved_plan import read_plan
from tablectl.workflow.apply import NO_CANARY, Control, approval_of, run


def apply_command(
    request: CommandRequest, out: Output, saved: Path | None, reports: ReportFiles, options: ApplyCommandOptions
) -> ExitCode:
    """Plan if no plan is given, ask, run. Returns the exit code."""
    ready = read_plan(saved) if saved else None
    with request.open(out, ready) as project, _failures_told(project, out):
        reports.check()
        if ready is None:
            specs: Specs | None = project.policies(request.paths)
            assert specs is not None
            plan = plan_with_progress(project, specs, selection_of(request), request, out)
        else:
            plan, specs = ready, _policies_of_plan(project, request, out, options)
        check_limits(request, plan)
        approve = approval_of(project, plan, specs, request.max_bytes)
        plan, agreed = (plan, True) if saved else _agreed(plan, out, reports.form, project, request, yes=options.yes)
        if not agreed:
            out.note("nothing was changed")
            return ExitCode.ERROR
        context = replace(plan_context(plan, project, request, out, reports), plan=plan)
        with out.display() as notify:
            control = Control(
                notify=notify,
                proceed=options.proceed,
                override=options.override,
                wait=options.wait,
                quiet=options.quiet,
                canary=options.canary or NO_CANARY,
            )
            with _signals(control, out) as install_handlers:
                report = run(project, plan, replace(control, on_engine=install_handlers), approve)
    make = partial(document_of_run, mask=project.mask, context=context)
    try:
        return _reported(report, out, reports, report_of(report, make, context, verbose=request.verbose))
    finally:
        owners = {table.name: table.owner for table in plan.tables}
        send_notification(
            lambda: run_notification(project.mask.run(report), owners), project.config, context_here(), out, os.environ
        )


@contextmanager
def _failures_told(project: Project, out: Output) -> Iterator[None]:
    """Notifies about an apply that ends without a report. Wrong usage is the business of its user alone."""
    try:
        yield
    except TablectlError as error:
        if error.exit_code is not ExitCode.USAGE:
            told = partial(error_notification, "Apply", error, project.config.environment)
            send_notification(told, project.config, context_here(), out, os.environ)
        raise


def _policies_of_plan(
    project: Project, request: CommandRequest, out: Output, options: ApplyCommandOptions
) -> Specs | None:
    """The policies that a saved plan must agree with; ``None`` if the user applies it without policies."""
    if options.without_policies:
        out.note(
            "warning: without policies, the plan file alone decides which tables change, to which values, with which "
            "consent and calendar rules: make sure that only trusted users can write it"
        )
        return None
    return project.policies_of_plan(request.paths)


def _reported(report: RunReport, out: Output, reports: ReportFiles, render: Render) -> ExitCode:
    """The exit code, once the report is written. Committed changes count and are reported even if the report fails."""
    before = out.results
    try:
        reports.write(render, out)
    except BrokenPipeError:
        return report.exit_code
    except (TablectlError, KeyboardInterrupt) as error:
        code = ExitCode.PARTIAL if report.committed else ExitCode.ERROR
        told = out.results > before
        out.fail(error if isinstance(error, TablectlError) else TablectlError("interrupted"), code)
        if not told or isinstance(error, IncompleteReportError):
            _tell(report, out)
        return code
    return report.exit_code


def _tell(report: RunReport, out: Output) -> None:
    """Print the outcome of each table on a line of its own, because no report did."""
    for table in report.tables:
        versions = ", ".join(str(commit.version) for commit in table.commits)
        out.note(f"{table.name}: {outcome_text(table)}{f'; committed as version {versions}' if versions else ''}")


def _agreed(
    plan: Plan, out: Output, form: ReportFormat, project: Project, request: CommandRequest, *, yes: bool
) -> tuple[Plan, bool]:
    """The plan without tables that cannot be shown, to which nothing can be agreed, and whether to apply it."""
    context = Context(now=SystemClock().utc(), streams=streams_of(plan, project))
    report = report_of(
        plan, partial(document_of_plan, mask=project.mask, context=context), context, verbose=request.verbose
    )
    asks = not yes and any(table.applies for table in plan.tables)
    if form is ReportFormat.TEXT or asks:
        try:
            text = report(ReportFormat.TEXT, out.style if form is ReportFormat.TEXT else Style())
        except IncompleteReportError as error:
            text, plan = error.text, error.rest
        (out.result if form is ReportFormat.TEXT else out.note)(text + "\n")
    if not asks:
        return plan, True
    if not out.interactive:
        raise UsageError(
            "cannot ask for confirmation: standard input is not a terminal",
            "add --yes, or save a plan with `tablectl plan --out FILE` and apply that",
        )
    return plan, out.ask("Apply these changes?")


@contextmanager
def _signals(control: Control, out: Output) -> Iterator[Callable[[], None]]:
    """On the first SIGINT, SIGTERM or SIGHUP, end the run cleanly: no further statement starts, and leases are
    released.

    The next signal ends the process at once, as it would without our handlers. Ignored signals stay ignored
    (``nohup``). Yields a function that restores our handlers after another library has replaced them.
    """
    before: dict[int, Any] = {}

    def stop(_number: int, _frame: FrameType | None) -> None:
        control.stop.set()
        if isinstance(control.clock, SystemClock):
            control.clock.interrupt()
        for each in before:
            signal.signal(each, signal.SIG_DFL)
        with suppress(RuntimeError):  # the signal came while the same stream was being written
            out.note("stopping: waiting for running statements, starting no more; repeat the signal to exit at once")

    def install_handlers() -> None:
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)  # Windows has no SIGHUP
            now = signal.getsignal(number) if number else None
            if number and now not in {None, signal.SIG_IGN, stop} and not control.stop.is_set():
                before.setdefault(number, now)
                signal.signal(number, stop)

    install_handlers()
    try:
        yield install_handlers
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
