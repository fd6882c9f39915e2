"""A plan, a run or drift as a self-contained HTML page."""

from __future__ import annotations

from tablectl.applying.run_report import RunReport
from tablectl.model.plan import Plan
from tablectl.planning.drift import Drift
from tablectl.reports.context import Context
from tablectl.reports.document_html import document_html
from tablectl.reports.drift_document import drift_document
from tablectl.reports.plan_document import plan_document
from tablectl.reports.run_document import run_document


def plan_html(plan: Plan, context: Context) -> str:
    """The whole plan. What needs attention comes first."""
    return document_html(plan_document(plan, context), context)


def run_html(report: RunReport, context: Context) -> str:
    """The whole run, each table with its timeline. What needs attention comes first."""
    return document_html(run_document(report, context), context)


def drift_html(drift: Drift, context: Context) -> str:
    """All differences."""
    return document_html(drift_document(drift, context), context)
