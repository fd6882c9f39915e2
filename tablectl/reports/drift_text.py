"""Drift as text, and the changes that ``drift --adopt`` makes to policy files."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import unified_diff

from tablectl.model.text import printable
from tablectl.planning.drift import Drift, TableDrift
from tablectl.policies.adopt import Adoption
from tablectl.policies.yaml_nodes import SourceFile
from tablectl.reports.context import Context
from tablectl.reports.document_text import card_lines, document_text
from tablectl.reports.drift_document import drift_document, table_drift_card
from tablectl.reports.style import Style


def drift_text(drift: Drift, style: Style, *, verbose: bool = False) -> str:
    """Every group of equal differences, followed by the summary; with ``verbose``, every table."""
    return document_text(drift_document(drift, Context(), each_table=verbose), style, verbose=verbose)


def table_drift_text(table: TableDrift, style: Style) -> str:
    """The drift of one table, in full."""
    return "\n".join(card_lines(table_drift_card(table), style, verbose=True)) + "\n"


def adoption_text(adoption: Adoption, before: Mapping[str, str], style: Style) -> str:
    """The changes to the files as a unified diff, and what stays different and why."""
    lines: list[str] = []
    for file in sorted(adoption.texts):
        old, new = (text.splitlines(keepends=True) for text in (before[file], adoption.texts[file]))
        lines += [_diff_line(line.rstrip("\r\n"), style) for line in unified_diff(old, new, file, file)]
    for wish, why in adoption.left:
        lines += style.prose("skipped", f"{wish.id} of {wish.table.text} ({_at(wish.source)}): {why}", 0)
    return "\n".join(lines) + "\n"


def _diff_line(line: str, style: Style) -> str:
    colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
    return style.paint(printable(line), colour) if colour else printable(line)


def _at(source: SourceFile) -> str:
    return f"{source.file}:{source.line}"
