"""A run as a comment on a pull request: the verdict in one line, then what needs attention, details folded."""

from __future__ import annotations

from tablectl.applying.run_report import RunReport
from tablectl.reports.context import Context
from tablectl.reports.document_markdown import document_markdown
from tablectl.reports.markdown import code
from tablectl.reports.plan_markdown import foot, plan_name
from tablectl.reports.run_document import run_document

_WHERE = "The log of the run has them all, and so has its report in another format (<code>--report FILE</code>)."


def run_markdown(report: RunReport, context: Context) -> str:
    """The whole run within the length of a comment. Failures come first."""
    facts = [f"run {code(report.run)}", *plan_name(report.plan)]
    return document_markdown(run_document(report, context), foot("run", facts, context), _WHERE)
