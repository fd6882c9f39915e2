"""``tablectl explain`` for the id of a fact: ``D37``, ``delta-2.2``."""

from __future__ import annotations

from tablectl.commands.output import Output
from tablectl.insight.terms.facts import fact_ids, find_fact
from tablectl.insight.terms.term_document import document_of_fact
from tablectl.model.errors import ExitCode, UsageError
from tablectl.policies.suggestions import nearest, shown
from tablectl.reports.formats import ReportFormat


def explain_fact_command(id: str, out: Output, form: ReportFormat) -> ExitCode:  # noqa: A002
    """Print a fact with its public page. Returns the exit code."""
    fact = find_fact(id)
    if fact is None:
        near = nearest(id, fact_ids())
        raise UsageError(f"there is no fact {shown(id)}", f"did you mean {near}?" if near else "see docs/reference")
    out.document(document_of_fact(fact), form)
    return ExitCode.DONE
