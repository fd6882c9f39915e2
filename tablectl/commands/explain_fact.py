"""``tablectl explain`` for the id of a fact: ``D37``, ``delta-2.2``."""

from __future__ import annotations

from tablectl.commands.output import Output
from tablectl.insight.terms.facts import fact_ids, find_fact
from tablectl.model.errors import ExitCode, UsageError
from tablectl.policies.suggestions import nearest, shown
from tablectl.reports.formats import ReportFormat


def explain_fact_command(id: str, out: Output, form: ReportFormat) -> ExitCode:  # noqa: A002
    """Print a fact with its public page. Returns the exit code."""
    fact = find_fact(id)
    if fact is None:
        near = nearest(id, fact_ids())
        raise UsageError(f"there is no fact {shown(id)}", f"did you mean {near}?" if near else "see docs/reference")
    if form is ReportFormat.JSON:
        out.json_result({"id": fact.id, "text": fact.text, "source": fact.source or None, "page": fact.page})
        return ExitCode.DONE
    lines = [out.style.paint(fact.id, "bold"), *out.style.prose("", fact.text, 1, 0)]
    lines += [f"  {each}" for each in (fact.source, fact.page) if each]
    out.result("\n".join(lines) + "\n")
    return ExitCode.DONE
