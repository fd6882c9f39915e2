"""Results in one format each, without masked values: what the commands print."""

from __future__ import annotations

from datetime import datetime

from tablectl.documents.style import Style
from tablectl.model.plan import Plan
from tablectl.model.run_report import RunReport
from tablectl.planning.drift import Drift
from tablectl.reports.mask import Mask
from tablectl.reports.plan_report import document_of_plan
from tablectl.reports.render import ReportFormat, render
from tablectl.reports.report_context import Context
from tablectl.reports.result_documents import document_of_drift, document_of_run

_SHOWN = Mask(())


def render_plan(
    plan: Plan, form: ReportFormat, style: Style, mask: Mask, context: Context, *, verbose: bool = False
) -> str:
    return render(document_of_plan(plan, mask, context), form, style, context, verbose=verbose)


def render_run(
    report: RunReport, form: ReportFormat, style: Style, mask: Mask, context: Context, *, verbose: bool = False
) -> str:
    return render(document_of_run(report, mask, context), form, style, context, verbose=verbose)


def render_drift(drift: Drift, form: ReportFormat, style: Style, context: Context, *, verbose: bool = False) -> str:
    return render(document_of_drift(drift, _SHOWN, context), form, style, context, verbose=verbose)


def plan_text(plan: Plan, style: Style, *, verbose: bool = False, now: datetime | None = None) -> str:
    return render_plan(plan, ReportFormat.TEXT, style, _SHOWN, Context(now=now), verbose=verbose)


def plan_markdown(plan: Plan, context: Context) -> str:
    return render_plan(plan, ReportFormat.MARKDOWN, Style(), _SHOWN, context)


def plan_html(plan: Plan, context: Context) -> str:
    return render_plan(plan, ReportFormat.HTML, Style(), _SHOWN, context)


def plan_sarif(plan: Plan, context: Context) -> str:
    return render_plan(plan, ReportFormat.SARIF, Style(), _SHOWN, context)


def plan_junit(plan: Plan, context: Context) -> str:
    return render_plan(plan, ReportFormat.JUNIT, Style(), _SHOWN, context)


def run_text(report: RunReport, style: Style, *, verbose: bool = False) -> str:
    return render_run(report, ReportFormat.TEXT, style, _SHOWN, Context(), verbose=verbose)


def run_markdown(report: RunReport, context: Context) -> str:
    return render_run(report, ReportFormat.MARKDOWN, Style(), _SHOWN, context)


def run_html(report: RunReport, context: Context) -> str:
    return render_run(report, ReportFormat.HTML, Style(), _SHOWN, context)


def run_sarif(report: RunReport, context: Context) -> str:
    return render_run(report, ReportFormat.SARIF, Style(), _SHOWN, context)


def run_junit(report: RunReport, context: Context) -> str:
    return render_run(report, ReportFormat.JUNIT, Style(), _SHOWN, context)


def drift_text(drift: Drift, style: Style, *, verbose: bool = False) -> str:
    return render_drift(drift, ReportFormat.TEXT, style, Context(), verbose=verbose)
