"""Render a plan, a run or drift in any format, from the same records. Each format's module is loaded when used."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tablectl.applying.run_report import RunReport
from tablectl.model.json_form import json_form
from tablectl.model.plan import Plan
from tablectl.planning.drift import Drift
from tablectl.planning.plan_file import digest_of, dump_plan
from tablectl.reports.context import Context
from tablectl.reports.formats import ReportFormat
from tablectl.reports.mask import Mask
from tablectl.reports.style import Style

if TYPE_CHECKING:  # see above
    from tablectl.reports.drift_json import AdoptionFact


def render_plan(
    plan: Plan, form: ReportFormat, style: Style, mask: Mask, context: Context, *, verbose: bool = False
) -> str:
    """A plan as a report. As JSON it is the plan file itself, unless values are masked; no apply accepts a masked
    plan.
    """
    masked = mask.plan(plan)
    if form is ReportFormat.TEXT:
        from tablectl.reports.plan_text import plan_text  # noqa: PLC0415  # see above

        return plan_text(masked, style, verbose=verbose, now=context.now)
    if form is ReportFormat.JSON and masked == plan:
        return dump_plan(plan).decode()
    about = replace(context, digest=digest_of(plan))  # a digest of all its bytes: only for reports that show it
    match form:
        case ReportFormat.JSON:
            return _json({**json_form(masked), "sha256": about.digest, "masked": mask.patterns}, indent=1)
        case ReportFormat.MARKDOWN:
            from tablectl.reports.plan_markdown import plan_markdown  # noqa: PLC0415

            return plan_markdown(masked, about)
        case ReportFormat.JUNIT:
            from tablectl.reports.junit import plan_junit  # noqa: PLC0415

            return plan_junit(masked, about)
        case ReportFormat.SARIF:
            from tablectl.reports.sarif import plan_sarif  # noqa: PLC0415

            return plan_sarif(masked, about)
        case ReportFormat.HTML:
            from tablectl.reports.html import plan_html  # noqa: PLC0415

            return plan_html(masked, about)


def render_run(
    report: RunReport, form: ReportFormat, style: Style, mask: Mask, context: Context, *, verbose: bool = False
) -> str:
    """A run as a report."""
    masked = mask.run(report)
    context = replace(context, plan=mask.plan(context.plan) if context.plan else None)
    match form:
        case ReportFormat.TEXT:
            from tablectl.reports.run_text import run_text  # noqa: PLC0415

            return run_text(masked, style, verbose=verbose)
        case ReportFormat.JSON:
            return _json({**json_form(masked), "exit_code": int(report.exit_code)}, indent=2)
        case ReportFormat.MARKDOWN:
            from tablectl.reports.run_markdown import run_markdown  # noqa: PLC0415

            return run_markdown(masked, context)
        case ReportFormat.JUNIT:
            from tablectl.reports.junit import run_junit  # noqa: PLC0415

            return run_junit(masked, context)
        case ReportFormat.SARIF:
            from tablectl.reports.sarif import run_sarif  # noqa: PLC0415

            return run_sarif(masked, context)
        case ReportFormat.HTML:
            from tablectl.reports.html import run_html  # noqa: PLC0415

            return run_html(masked, context)


def render_drift(
    drift: Drift,
    form: ReportFormat,
    style: Style,
    context: Context,
    adoption: AdoptionFact | None = None,
    *,
    verbose: bool = False,
) -> str:
    """Drift as a report; its values must already be masked. Only JSON contains the result of ``--adopt``."""
    match form:
        case ReportFormat.TEXT:
            from tablectl.reports.drift_text import drift_text  # noqa: PLC0415

            return drift_text(drift, style, verbose=verbose)
        case ReportFormat.JSON:
            from tablectl.reports.drift_json import drift_json  # noqa: PLC0415

            return drift_json(drift, adoption)
        case ReportFormat.MARKDOWN:
            from tablectl.reports.drift_markdown import drift_markdown  # noqa: PLC0415

            return drift_markdown(drift, context)
        case ReportFormat.JUNIT:
            from tablectl.reports.junit import drift_junit  # noqa: PLC0415

            return drift_junit(drift, context)
        case ReportFormat.SARIF:
            from tablectl.reports.sarif import drift_sarif  # noqa: PLC0415

            return drift_sarif(drift, context)
        case ReportFormat.HTML:
            from tablectl.reports.html import drift_html  # noqa: PLC0415

            return drift_html(drift, context)


def _json(body: dict[str, Any], indent: int) -> str:
    return json.dumps(body, default=json_form, indent=indent, sort_keys=True) + "\n"
