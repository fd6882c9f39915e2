"""``tablectl apply``: run a plan in one protected window."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from tablectl.commands.notify import send_notification
from tablectl.commands.output import Output
from tablectl.commands.parameters import (
    WHEN,
    AnyFormat,
    AnyReports,
    Cache,
    Choice,
    Env,
    Exclude,
    MaxBytes,
    MaxTables,
    Place,
    PlanSize,
    Remote,
    Select,
    Tags,
    VarValues,
    Verbose,
    Yes,
    function,
    path_list,
    read_as,
)
from tablectl.commands.plan import make_plan
from tablectl.commands.project import SHARED, Project
from tablectl.commands.read_tables import OnRead, ignore_progress
from tablectl.commands.report_facts import context_here, plan_context, streams_of
from tablectl.commands.report_files import IncompleteReportError, Render, ReportFiles, report_of
from tablectl.commands.run_plan import Control, Override, Proceed, RunOptions, Wait, When, Within, approval_of, run
from tablectl.commands.signals import stop_on_signals
from tablectl.commands.user_files import read_plan, saved_plan
from tablectl.documents.style import Style
from tablectl.leases.clock import SystemClock
from tablectl.model.calendar import read_minutes
from tablectl.model.errors import ExitCode, TablectlError, UsageError
from tablectl.model.plan import Plan
from tablectl.model.run_report import RunReport
from tablectl.policies.config import LONGEST_SOAK
from tablectl.policies.declared_tables import Specs
from tablectl.policies.repository import Paths
from tablectl.reports.notification import error_notification, run_notification
from tablectl.reports.plan_report import document_of_plan
from tablectl.reports.render import ReportFormat
from tablectl.reports.report_context import Context
from tablectl.reports.result_documents import document_of_run
from tablectl.reports.wording import outcome_text

Canary = Annotated[
    int | None,
    typer.Option(
        "--canary",
        metavar="N",
        min=0,
        help="How many tables an apply changes before the others, at least one of each group of equal changes; 0 "
        "starts all alike. Default: `window.canary`, else 0.",
        rich_help_panel=WHEN,
    ),
]
Soak = Annotated[
    float | None,
    typer.Option(
        "--soak",
        metavar="30m",
        parser=read_as(partial(read_minutes, most=LONGEST_SOAK)),
        min=0,
        max=LONGEST_SOAK,
        help="How long the logs of these tables are watched before the others start: 30m, 2h. Default: `window.soak`, "
        "else 10m.",
        rich_help_panel=WHEN,
    ),
]
StopIfFailed = Annotated[
    int | None,
    typer.Option(
        "--stop-if-failed",
        metavar="N",
        min=0,
        help="How many failed tables keep the others from starting; 0 is not a limit. Default: "
        "`window.stop_if_failed`, else 1.",
        rich_help_panel=WHEN,
    ),
]
StopIfSilent = Annotated[
    int | None,
    typer.Option(
        "--stop-if-silent",
        metavar="N",
        min=0,
        help="How many silent writers keep the others from starting; 0 is not a limit. Default: "
        "`window.stop_if_silent`, else 0.",
        rich_help_panel=WHEN,
    ),
]
WithoutPolicies = Annotated[
    bool,
    typer.Option(
        "--without-policies",
        help="Apply a saved plan without comparing it with the policies. Whoever can write the plan file decides.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class _Asked(Place):
    """What to apply, and how."""

    plan_or_paths: Plan | Paths
    choice: Choice
    size: PlanSize
    run: RunOptions
    policies: Paths = None
    """The policies that a ready plan was made from, by default those of ``tablectl.yaml``."""
    without_policies: bool


def apply_command(
    ctx: typer.Context,
    plan_or_paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[PLAN] [PATHS]",
            help="A saved plan (*.json) and the policies it was made from; or policies to plan and apply.",
        ),
    ] = None,
    *,
    yes: Yes = False,
    without_policies: WithoutPolicies = False,
    select: Select = None,
    exclude: Exclude = None,
    tags: Tags = None,
    canary: Canary = None,
    soak: Soak = None,
    stop_if_failed: StopIfFailed = None,
    stop_if_silent: StopIfSilent = None,
    wait: Wait = 0,
    when: When = None,
    within: Within = None,
    proceed: Proceed = None,
    override: Override = None,
    max_tables: MaxTables = None,
    max_bytes: MaxBytes = None,
    variables: VarValues = None,
    env: Env = None,
    remote: Remote = None,
    form: AnyFormat = ReportFormat.TEXT,
    report: AnyReports = None,
    verbose: Verbose = False,
) -> ExitCode:
    """Run a plan in one protected window.

    A saved plan is compared with the policies; tables with changes that the policies do not declare are refused.
    Without a saved plan, apply makes a plan, shows it and asks for confirmation. After an interruption, run the same
    command again to finish the rest.

    Example: tablectl apply plans/today.json
    """
    out: Output = ctx.obj
    asked = _Asked(
        plan_or_paths=plan_or_paths,
        choice=Choice(None, select, exclude, tags),
        size=PlanSize(max_tables, max_bytes),
        run=RunOptions(proceed=proceed or "", override=override or "", wait=wait, when=when, within=within),
        without_policies=without_policies,
        settings={
            "canary": canary,
            "soak": soak,
            "stop_if_failed": stop_if_failed,
            "stop_if_silent": stop_if_silent,
        },
        variables=variables,
        env=env,
        remote=remote,
    )
    target = _target(asked, saved_plan)
    reports = ReportFiles.of(form, report, target.file)
    with asked.open(out.note, plan=target.plan) as project, _failures_told(project, out):
        reports.check()
        if without_policies:
            out.note(
                "warning: without policies, the plan file alone decides which tables change, to which values, with "
                "which consent and calendar rules: make sure that only trusted users can write it"
            )
        with out.progress() as on_read:
            plan, specs = _plan_to_apply(project, target, asked, on_read)
        approve = approval_of(project, plan, specs, max_bytes)
        if target.plan is None:
            plan, agreed = _agreed(plan, out, project, form, yes=yes, verbose=verbose)
            if not agreed:
                out.note("nothing was changed")
                return ExitCode.ERROR
        context = replace(plan_context(plan, project, target.paths, out, reports), plan=plan)
        done = watched(out, lambda control: run(project, plan, control, asked.run, approve))
    return report_run(project, plan, done, reports, context, out, verbose=verbose)


@function
def apply(
    plan_or_paths: Plan | Paths = None,
    *,
    policies: Paths = None,
    without_policies: WithoutPolicies = False,
    select: Sequence[str] | None = None,
    exclude: Sequence[str] | None = None,
    tags: Sequence[str] | None = None,
    max_tables: MaxTables = None,
    max_bytes: MaxBytes = None,
    canary: Canary = None,
    soak: Soak = None,
    stop_if_failed: StopIfFailed = None,
    stop_if_silent: StopIfSilent = None,
    proceed: Proceed = None,
    override: Override = None,
    wait: Wait = 0,
    when: When = None,
    within: Within = None,
    variables: Mapping[str, str] | None = None,
    env: str | None = None,
    remote: Remote = None,
    cache: Cache = True,
    directory: str | Path = ".",
    spark: Any = None,
    driver: str | None = None,
    control: Control | None = None,
) -> RunReport:
    """Applies a plan in one protected window: a ``Plan``, the path of a plan file (``*.json``), or policies to plan
    first.

    A ready plan is compared with the policies it was made from: those at ``policies``, by default those of
    ``tablectl.yaml`` in ``directory``, with ``variables``. It is refused (``PlanFileError``) if it contains anything
    that they do not declare, and each table is planned again under its lease.

    ``RunReport.exit_code`` is the result. Raises ``PlanFileError`` for a plan that was edited or comes from another
    version, and ``UsageError`` if a ready plan comes with a selection, which would have no effect, or without policies.
    A plan is applied in its own environment, and refused (``PlanFileError``) if ``env`` names another. Raises
    ``LimitError`` for a plan that changes more than ``max_tables`` tables or rewrites more than ``max_bytes``.

    ``driver="shared"`` states that the tables' writers commit in the driver of ``spark``: without it, nothing is
    changed on S3 without exclusive commits. ``control`` lets the caller follow the run and stop it.
    """
    asked = _Asked(
        plan_or_paths=plan_or_paths,
        choice=Choice(None, select, exclude, tags),
        size=PlanSize(max_tables, max_bytes),
        run=RunOptions(proceed=proceed or "", override=override or "", wait=wait, when=when, within=within),
        policies=policies,
        without_policies=without_policies,
        settings={
            "canary": canary,
            "soak": soak,
            "stop_if_failed": stop_if_failed,
            "stop_if_silent": stop_if_silent,
        },
        variables=variables,
        env=env,
        remote=remote,
        cache=cache,
        directory=directory,
        spark=spark,
    )
    target = _target(asked)
    check_driver(driver, spark)
    with asked.open(plan=target.plan, driver=driver) as project:
        plan, specs = _plan_to_apply(project, target, asked)
        approve = approval_of(project, plan, specs, max_bytes)
        return run(project, plan, control or Control(), asked.run, approve)


def check_driver(driver: str | None, spark: object) -> None:
    """Raise ``UsageError`` if what a caller says of the driver makes no sense."""
    if driver is not None and (driver != SHARED or spark is None):
        hint = 'with the session of the writers: driver="shared"'
        raise UsageError(f"driver={driver!r} makes no sense here", hint)


@dataclass(frozen=True)
class _Target:
    """What is applied."""

    plan: Plan | None
    """A ready plan; ``None`` to make one."""
    file: Path | None
    """The file of the ready plan."""
    paths: Paths
    """The policies to plan, or to compare the ready plan with."""


def _target(asked: _Asked, find: Callable[[Path], Path] = Path) -> _Target:
    """What the options name. ``find`` returns the place of a plan file. Raises ``UsageError``, and as ``read_plan``."""
    given = asked.plan_or_paths
    names = () if isinstance(given, Plan) else path_list(given, "plan_or_paths")
    files = [name for name in names if name.suffix == ".json"]
    paths = [name for name in names if name not in files]
    ready = isinstance(given, Plan) or bool(files)
    if len(files) > 1 or (ready and (asked.choice.select or asked.choice.exclude or asked.choice.tags)):
        raise UsageError("a ready plan is applied as it is", "give one plan alone, and select when planning")
    if asked.without_policies and (not ready or paths or asked.policies):
        hint = "for example: apply p.json --without-policies"
        raise UsageError("--without-policies (`without_policies`) is for a ready plan alone", hint)
    if asked.policies and not ready:
        raise UsageError("`policies` are for a ready plan", "name the policies to plan first")
    asked.run.quiet  # noqa: B018  # raises for wrong usage, before anything is read
    if isinstance(given, Plan):
        return _Target(given, None, asked.policies)
    file = find(files[0]) if files else None
    return _Target(read_plan(file) if file else None, file, paths or asked.policies)


def _plan_to_apply(
    project: Project, target: _Target, asked: _Asked, on_read: OnRead = ignore_progress
) -> tuple[Plan, Specs | None]:
    """The plan, and the policies that it must agree with; ``None`` for those if the caller trusts the plan. Raises as
    ``make_plan``, and ``LimitError`` and ``UsageError``.
    """
    of_a_canary = {name for name, value in asked.settings.items() if value is not None} - {"canary"}
    if of_a_canary and not project.config.window.canary:
        raise UsageError("--soak and --stop-if-… are for --canary", "for example --canary 3 --soak 15m")
    specs = None
    if target.plan is None:
        specs = project.policies(target.paths)
        plan = make_plan(project, specs, asked.choice.selection, on_read)
    else:
        plan = target.plan
        specs = None if asked.without_policies else project.policies_of_plan(target.paths)
    asked.size.check(plan, project.config)
    return plan, specs


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


def watched(out: Output, work: Callable[[Control], RunReport]) -> RunReport:
    """The report of a run that is shown while it goes on, and that signals stop."""
    with out.display() as notify:
        control = Control(notify=notify)
        with stop_on_signals(control, out) as install_handlers:
            return work(replace(control, on_engine=install_handlers))


def report_run(  # what a report is made of
    project: Project,
    plan: Plan,
    report: RunReport,
    reports: ReportFiles,
    context: Context,
    out: Output,
    *,
    verbose: bool,
) -> ExitCode:
    """Writes the report of a run of a plan, and notifies about it. Returns the exit code."""
    make = partial(document_of_run, mask=project.mask, context=context)
    try:
        return _write(report, out, reports, report_of(report, make, context, verbose=verbose))
    finally:
        owners = {table.name: table.owner for table in plan.tables}
        send_notification(
            lambda: run_notification(project.mask.run(report), owners), project.config, context_here(), out, os.environ
        )


def _write(report: RunReport, out: Output, reports: ReportFiles, render: Render) -> ExitCode:
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
    plan: Plan, out: Output, project: Project, form: ReportFormat, *, yes: bool, verbose: bool
) -> tuple[Plan, bool]:
    """The plan without tables that cannot be shown, to which nothing can be agreed, and whether to apply it."""
    context = Context(now=SystemClock().utc(), streams=streams_of(plan, project))
    report = report_of(plan, partial(document_of_plan, mask=project.mask, context=context), context, verbose=verbose)
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
