"""The formats of reports, and the names of files that ask for them."""

from __future__ import annotations

from enum import StrEnum


class Form(StrEnum):
    """The formats of reports."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"
    SARIF = "sarif"
    JUNIT = "junit"
    HTML = "html"


_SUFFIXES = {
    ".txt": Form.TEXT,
    ".json": Form.JSON,
    ".md": Form.MARKDOWN,
    ".sarif": Form.SARIF,
    ".xml": Form.JUNIT,
    ".html": Form.HTML,
}
SUFFIXES = ", ".join(_SUFFIXES)


def form_of(name: str) -> Form | None:
    """The format that a file's name asks for: ``plan.md``, ``plan.sarif`` or ``plan.sarif.json``."""
    lower = name.lower()
    if lower.endswith(".sarif.json"):
        return Form.SARIF
    return next((form for suffix, form in _SUFFIXES.items() if lower.endswith(suffix)), None)
