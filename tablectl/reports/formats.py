"""The formats of reports, and the file names that select them."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum


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
