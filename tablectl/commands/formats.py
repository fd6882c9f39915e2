"""The formats that a command can write: some of those of all reports."""

from __future__ import annotations

from collections.abc import Collection

from tablectl.model.errors import UsageError
from tablectl.reports.formats import ReportFormat

EVERY_FORMAT = frozenset(ReportFormat)
TEXT_AND_JSON = frozenset({ReportFormat.TEXT, ReportFormat.JSON})
OF_VALIDATE = TEXT_AND_JSON | {ReportFormat.SARIF}
OF_LINT = frozenset(ReportFormat) - {ReportFormat.JUNIT}
OF_CONFLICTS = OF_STATUS = frozenset({ReportFormat.TEXT, ReportFormat.MARKDOWN, ReportFormat.HTML, ReportFormat.JSON})


def check_format(command: str, form: ReportFormat, known: Collection[ReportFormat]) -> None:
    """Raise ``UsageError`` for a format that a command does not have."""
    if form not in known:
        names = ", ".join(each for each in ReportFormat if each in known)
        raise UsageError(f"`tablectl {command}` has no format {form}", f"its formats are {names}")
