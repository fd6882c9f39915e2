"""Drift as a comment on an issue or a pull request."""

from __future__ import annotations

from tablectl.planning.drift import Drift
from tablectl.reports.context import Context
from tablectl.reports.document_markdown import document_markdown
from tablectl.reports.drift_document import drift_document
from tablectl.reports.plan_markdown import foot

_WHERE = "<code>tablectl drift --verbose</code> prints all of it."


def drift_markdown(drift: Drift, context: Context) -> str:
    """All drift that fits the length of a comment. Tables that cannot be read come first."""
    return document_markdown(drift_document(drift, context), foot("drift", [], context), _WHERE)
