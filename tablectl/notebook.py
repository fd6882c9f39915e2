"""Reports of results in a notebook or a script: values that ``reports.mask`` of ``tablectl.yaml`` names are hidden."""

from __future__ import annotations

import json
import os
from pathlib import Path

from tablectl.applying.run_report import RunReport
from tablectl.leases.clock import SystemClock
from tablectl.model.errors import TablectlError, UsageError
from tablectl.model.json_form import json_form
from tablectl.model.output_escapes import escape_output
from tablectl.model.plan import Plan
from tablectl.planning.drift import Drift
from tablectl.planning.plan_file import dump_plan
from tablectl.policies.config import load_config
from tablectl.reports.context import Context
from tablectl.reports.document import Document
from tablectl.reports.document_html import document_html, fragment_html
from tablectl.reports.document_markdown import document_markdown
from tablectl.reports.document_text import document_text
from tablectl.reports.drift_document import drift_document
from tablectl.reports.formats import SUFFIXES, ReportFormat, format_of
from tablectl.reports.mask import Mask
from tablectl.reports.plan_document import plan_document
from tablectl.reports.render import render_drift, render_plan, render_run
from tablectl.reports.run_document import run_document
from tablectl.reports.status import LakeStatus
from tablectl.reports.status_document import status_document
from tablectl.reports.style import Style
from tablectl.written_files import write_file

Result = Plan | RunReport | Drift | LakeStatus
_WHERE = "<code>save</code> writes all of it to a page."


def report(result: Result, form: str) -> str:
    """A result as a report in a format. Raises ``UsageError`` for a format that it does not have.

    Scripts print it, also in CI, so it is escaped as the output of commands is.
    """
    return escape_output(_report(result, ReportFormat(form)))


def _report(result: Result, wanted: ReportFormat) -> str:
    mask, style, context = _mask(), Style(), Context(now=SystemClock().utc())
    match result:
        case Plan():
            return render_plan(result, wanted, style, mask, context)
        case RunReport():
            return render_run(result, wanted, style, mask, context)
        case Drift():
            return render_drift(mask.drift(result), wanted, style, context)
        case LakeStatus():
            return _status(result, wanted, mask)


def fragment(result: Result) -> str:
    """The verdict and the table of a result, for a notebook's cell."""
    return escape_output(fragment_html(_document(result)))


def save(result: Result, where: str | Path) -> None:
    """Write a report. A plan as JSON is the plan file itself, with all its values: others may not read hidden ones."""
    path = Path(where)
    form = format_of(path.name)
    if form is None:
        raise UsageError(f"{path} has no known format", f"use a name that ends in {SUFFIXES}")
    private = False
    if isinstance(result, Plan) and form is ReportFormat.JSON:
        data, private = dump_plan(result), _mask().plan(result) != result
    else:
        data = report(result, form).encode(errors="backslashreplace")
    write_file(path, data, private=private)


def _document(result: Result) -> Document:
    mask, context = _mask(), Context(now=SystemClock().utc())
    match result:
        case Plan():
            return plan_document(mask.plan(result), context)
        case RunReport():
            return run_document(mask.run(result), context)
        case Drift():
            return drift_document(mask.drift(result), context)
        case LakeStatus():
            return status_document(mask.status(result))


def _status(status: LakeStatus, form: ReportFormat, mask: Mask) -> str:
    shown = mask.status(status)
    document = status_document(shown)
    match form:
        case ReportFormat.TEXT:
            return document_text(document, Style())
        case ReportFormat.MARKDOWN:
            return document_markdown(document, "<!-- tablectl status -->", _WHERE)
        case ReportFormat.HTML:
            return document_html(document, Context())
        case ReportFormat.JSON:
            return json.dumps(shown, default=json_form, indent=1) + "\n"
        case _:
            raise UsageError(f"a status has no format {form}", "its formats are text, json, markdown, html")


def _mask() -> Mask:
    """The mask of the current folder; everything is hidden if its configuration cannot be read."""
    try:
        return Mask(load_config(Path(), os.environ).reports.mask)
    except TablectlError:
        return Mask(("*",))
