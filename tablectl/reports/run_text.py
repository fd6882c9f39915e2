"""A run as text: what went wrong first, tables with equal results together; with ``verbose``, each table in full."""

from __future__ import annotations

from tablectl.applying.run_report import RunReport, TableRun
from tablectl.reports.context import Context
from tablectl.reports.document_text import card_lines, document_text
from tablectl.reports.run_document import run_document, table_run_card
from tablectl.reports.style import Style


def run_text(report: RunReport, style: Style, *, verbose: bool = False) -> str:
    """The whole run, followed by the summary."""
    return document_text(run_document(report, Context(), each_table=verbose), style, verbose=verbose)


def table_run_text(table: TableRun, style: Style) -> str:
    """The run of one table, in full."""
    return "\n".join(card_lines(table_run_card(table), style, verbose=True)) + "\n"
