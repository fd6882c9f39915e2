"""Reports of results in a notebook or a script: values that ``reports.mask`` of ``tablectl.yaml`` names are hidden."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from tablectl.commands.user_files import write_file
from tablectl.documents.document import Document
from tablectl.documents.style import Style
from tablectl.insight.advice.advice_records import LakeAdvice
from tablectl.insight.advice.advise import document_of_advice
from tablectl.insight.advice.risks import LakeRisks, document_of_risks
from tablectl.leases.clock import SystemClock
from tablectl.model.errors import TablectlError, UsageError
from tablectl.model.plan import Plan
from tablectl.model.run_report import RunReport
from tablectl.model.safe_text import escape_output
from tablectl.planning.drift import Drift
from tablectl.planning.plan_file import digest_of, dump_plan
from tablectl.policies.read_config import load_config, repository_above
from tablectl.reports.document_html import fragment_html
from tablectl.reports.mask import Mask
from tablectl.reports.plan_report import document_of_plan
from tablectl.reports.render import ReportFormat, format_of, render, suffixes
from tablectl.reports.report_context import Context
from tablectl.reports.result_documents import document_of_drift, document_of_run
from tablectl.reports.status_document import LakeStatus, document_of_status
from tablectl.reports.upkeep_document import LakeUpkeep, document_of_upkeep

Result = Plan | RunReport | Drift | LakeStatus | LakeAdvice | LakeRisks | LakeUpkeep
_OF_A_LAKE = (ReportFormat.TEXT, ReportFormat.MARKDOWN, ReportFormat.HTML, ReportFormat.JSON)
_WHAT: Mapping[type, str] = MappingProxyType(
    {LakeStatus: "a status", LakeAdvice: "advice", LakeRisks: "a check", LakeUpkeep: "upkeep"}
)
_WITH_DIGEST = (ReportFormat.MARKDOWN, ReportFormat.HTML)


def report(result: Result, form: str) -> str:
    """A result as a report in a format. Raises ``UsageError`` for a format that it does not have.

    Scripts print it, also in CI, so it is escaped as the output of commands is.
    """
    wanted = ReportFormat(form)
    what = _WHAT.get(type(result))
    if what and wanted not in _OF_A_LAKE:
        raise UsageError(f"{what} has no format {form}", f"its formats are {', '.join(_OF_A_LAKE)}")
    digest = digest_of(result) if isinstance(result, Plan) and wanted in _WITH_DIGEST else ""
    context = Context(digest=digest, now=SystemClock().utc())
    return escape_output(render(_document(result, context), wanted, Style(), context))


def fragment(result: Result) -> str:
    """The verdict and the table of a result, for a notebook's cell."""
    return escape_output(fragment_html(_document(result, Context(now=SystemClock().utc()))))


def save(result: Result, where: str | Path) -> None:
    """Write a report. A plan as JSON is the plan file itself, with all its values: others may not read hidden ones."""
    path = Path(where)
    form = format_of(path.name)
    if form is None:
        raise UsageError(f"{path} has no known format", f"use a name that ends in {suffixes()}")
    private = False
    if isinstance(result, Plan) and form is ReportFormat.JSON:
        data, private = dump_plan(result), _mask().plan(result) != result
    else:
        data = report(result, form).encode(errors="backslashreplace")
    write_file(path, data, private=private)


def _document(result: Result, context: Context) -> Document:
    mask = _mask()
    match result:
        case Plan():
            return document_of_plan(result, mask, context)
        case RunReport():
            return document_of_run(result, mask, context)
        case Drift():
            return document_of_drift(result, mask, context)
        case LakeStatus():
            return document_of_status(result, mask)
        case LakeAdvice():
            return document_of_advice(result)
        case LakeRisks():
            return document_of_risks(result)
        case LakeUpkeep():
            return document_of_upkeep(result, mask)


def _mask() -> Mask:
    """The mask of the current folder; everything is hidden if its configuration cannot be read."""
    try:
        return Mask(load_config(repository_above(), os.environ).reports.mask)
    except TablectlError:
        return Mask(("*",))
