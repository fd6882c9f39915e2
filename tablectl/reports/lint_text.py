"""The findings of lint, on live tables or in policies alone, as text and JSON."""

from __future__ import annotations

from typing import Any

from tablectl.model.json_form import json_form
from tablectl.model.text import printable
from tablectl.planning.lint import Linted
from tablectl.reports.findings_text import counted, findings_lines
from tablectl.reports.plan_text import failure_lines
from tablectl.reports.style import Style, plural


def lint_text(linted: Linted, style: Style) -> str:
    """Tables with findings, then tables that cannot be read, then the totals."""
    lines = findings_lines(linted.tables, style)
    for failure in linted.failures:
        lines += [*failure_lines(failure, style), ""]
    for pattern in linted.unmatched:
        lines += [f"{style.paint('?', 'yellow', 'bold')} {printable(pattern)}  matches no table", ""]
    return "\n".join([*lines, _summary(linted, style)]) + "\n"


def _summary(linted: Linted, style: Style) -> str:
    everything = [each for table in linted.tables for each in table.findings]
    looked = f"{plural(len(linted.tables), 'table')} checked"
    if linted.failures:
        looked += f", {len(linted.failures)} not readable"
    if not everything:
        return style.paint(f"Nothing found: {looked}.", *(() if linted.failures else ("green",)))
    return f"{counted(everything)}; {looked}. `tablectl explain {everything[0].code}` says why and how to fix it."


def lint_json(linted: Linted) -> dict[str, Any]:
    """The same as plain values, including findings that the repository ignores, with the reasons."""
    return {
        "tables": [
            {"table": each.name, "findings": [json_form(found) for found in each.findings]} for each in linted.tables
        ],
        "failures": [json_form(each) for each in linted.failures],
        "unmatched": list(linted.unmatched),
    }
