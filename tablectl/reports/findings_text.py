"""Findings as lines, and their counts. Light to load: `validate` needs no other part of the reports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from tablectl.documents.style import Style, plural
from tablectl.model.plan import Finding, Severity
from tablectl.model.text import printable
from tablectl.planning.lint import LintedTable

_ORDER: Sequence[Severity] = ("error", "warning", "note")


def findings_lines(tables: Iterable[LintedTable], style: Style) -> list[str]:
    """Each table with findings."""
    lines: list[str] = []
    for table in tables:
        shown = _shown(table.findings)
        if shown:
            lines.append(style.paint(printable(table.name), "bold"))
            for each in shown:
                lines += style.prose(each.code, f"{each.severity}: {each.message}", 2)
            lines.append("")
    return lines


def counted(findings: Sequence[Finding]) -> str:
    """``1 error, 2 warnings``, and how many are ignored."""
    counts = Counter(each.severity for each in findings)
    parts = [plural(counts[name], name) for name in _ORDER if counts[name]]
    return ", ".join([*parts, *([f"{counts['ignored']} ignored"] if counts["ignored"] else [])])


def _shown(findings: Sequence[Finding]) -> list[Finding]:
    """The findings by severity, the most severe first."""
    return sorted(
        (each for each in findings if each.severity != "ignored"), key=lambda each: _ORDER.index(each.severity)
    )
