"""Render a document in any format."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum

from tablectl.documents.document import Document
from tablectl.documents.style import Style
from tablectl.reports.document_html import document_html
from tablectl.reports.document_markdown import document_markdown
from tablectl.reports.document_text import document_text
from tablectl.reports.junit import document_junit
from tablectl.reports.report_context import Context
from tablectl.reports.sarif import document_sarif
from tablectl.support.json_text import write_json
from tablectl.support.typed_json import json_form


class ReportFormat(StrEnum):
    """The formats of reports."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"
    SARIF = "sarif"
    JUNIT = "junit"
    HTML = "html"


_SUFFIXES = {
    ".txt": ReportFormat.TEXT,
    ".json": ReportFormat.JSON,
    ".md": ReportFormat.MARKDOWN,
    ".sarif": ReportFormat.SARIF,
    ".xml": ReportFormat.JUNIT,
    ".html": ReportFormat.HTML,
}


def suffixes(known: Collection[ReportFormat] = tuple(ReportFormat)) -> str:
    """The ends of file names that select these formats, for people."""
    return ", ".join(suffix for suffix, form in _SUFFIXES.items() if form in known)


def format_of(name: str) -> ReportFormat | None:
    """The format selected by a file's name: ``plan.md``, ``plan.sarif`` or ``plan.sarif.json``."""
    lower = name.lower()
    if lower.endswith(".sarif.json"):
        return ReportFormat.SARIF
    return next((form for suffix, form in _SUFFIXES.items() if lower.endswith(suffix)), None)


def render(document: Document, form: ReportFormat, style: Style, context: Context, *, verbose: bool = False) -> str:
    """A document as a report. ``style`` and ``verbose`` are for text."""
    match form:
        case ReportFormat.TEXT:
            return document_text(document, style, verbose=verbose)
        case ReportFormat.JSON:
            return document.json() if document.json else write_json(json_form(document.record), indent=2) + "\n"
        case ReportFormat.MARKDOWN:
            return document_markdown(document)
        case ReportFormat.JUNIT:
            return document_junit(document, context)
        case ReportFormat.SARIF:
            return document_sarif(document, context)
        case ReportFormat.HTML:
            return document_html(document, context)
