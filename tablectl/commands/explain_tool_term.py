"""``tablectl explain`` for the tool's own words and for the ids of facts."""

from __future__ import annotations

from tablectl.commands.output import Output
from tablectl.insight.terms.glossary import ToolTerm
from tablectl.insight.terms.term_document import document_of_word
from tablectl.model.errors import ExitCode
from tablectl.reports.formats import ReportFormat


def explain_tool_term_command(word: ToolTerm, out: Output, form: ReportFormat) -> ExitCode:
    """Explain a word. Returns the exit code."""
    out.document(document_of_word(word), form)
    return ExitCode.DONE
