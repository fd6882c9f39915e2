"""``tablectl explain`` for the tool's own words and for the ids of facts."""

from __future__ import annotations

from tablectl.commands.output import Output
from tablectl.insight.terms.glossary import ToolTerm
from tablectl.model.errors import ExitCode
from tablectl.reports.formats import ReportFormat


def explain_tool_term_command(word: ToolTerm, out: Output, form: ReportFormat) -> ExitCode:
    """Explain a word. Returns the exit code."""
    if form is ReportFormat.JSON:
        body = {"word": word.name, "also": list(word.also), "meaning": word.meaning, "page": word.page}
        out.json_result(body)
        return ExitCode.DONE
    also = f" (also: {', '.join(word.also)})" if word.also else ""
    lines = [f"{out.style.paint(word.name, 'bold')}{also}", *out.style.prose("", word.meaning, 1, 0), f"  {word.page}"]
    out.result("\n".join(lines) + "\n")
    return ExitCode.DONE
