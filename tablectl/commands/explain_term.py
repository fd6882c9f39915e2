"""``tablectl explain`` for a conflict term: an exception, an error class, an isolation level."""

from __future__ import annotations

from tablectl.commands.output import Output
from tablectl.commands.request import CommandRequest
from tablectl.insight.terms.explain_term import explain_term
from tablectl.insight.terms.glossary import find_term, term_names, tool_terms
from tablectl.insight.terms.term_document import document_of_term
from tablectl.lint_rules import RULES
from tablectl.model.errors import ExitCode, UsageError
from tablectl.policies.suggestions import nearest, shown
from tablectl.reports.formats import ReportFormat


def explain_word_command(
    word: str, table: str | None, request: CommandRequest, out: Output, form: ReportFormat
) -> ExitCode:
    """Explain a term, with or without a live table."""
    term = find_term(word)
    if term is None:
        near = nearest(word, (*tool_terms(), *term_names(), *RULES))
        hint = f"did you mean {near}?" if near else f"such as gate, L004, D37, {', '.join(term_names()[:2])}"
        table_too = ", and no table, whose names have two or three parts" if "." not in word else ""
        raise UsageError(f"{shown(word)} is not a known term{table_too}", hint)
    with request.open(out) as project:
        live = project.read(*project.find(table, request.paths)) if table is not None else None
    view = explain_term(term, live, project.dialect)
    out.document(document_of_term(view), form)
    return ExitCode.DONE
