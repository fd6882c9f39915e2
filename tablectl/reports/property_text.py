"""The explanation of a property, as text and JSON."""

from __future__ import annotations

from typing import Any

from tablectl.delta.databricks_runtimes import Capability
from tablectl.delta.dialects import dialect_of
from tablectl.model.text import printable
from tablectl.planning.explain_property import PropertyExplanation
from tablectl.reports.style import Style, wrapped


def about_key_text(about: PropertyExplanation, style: Style) -> str:
    """The values that it accepts, and what a change of it does."""
    lines = [style.paint(printable(about.key), "bold")]
    for text in _facts(about):
        lines += wrapped(text, 2, style)
    if about.changes:
        lines += ["", style.paint("On a plain table, among writers with the newest Delta Spark", "bold")]
    for what, verdict in about.changes:
        lines += wrapped(f"to {what} it is a {verdict.phase.word} commit: {verdict.reason}", 2, style)
        if verdict.fails:
            lines += wrapped(f"impact: {verdict.fails}", 4, style)
    if about.codes:
        codes = ", ".join(about.codes)
        lines += ["", *wrapped(f"Findings about it: {codes} (`tablectl explain {about.codes[0]}`).", 0, style)]
    return "\n".join(lines) + "\n"


def _facts(about: PropertyExplanation) -> list[str]:
    if about.refused:
        reason, hint = about.refused
        return [f"No policy can name it: {reason}.", *([f"How to fix: {hint}."] if hint else [])]
    if about.attribute:
        declared = f"Declared by the attribute `{about.attribute}:`. {about.description}"
        return [declared, *map(_runtime, about.runtimes)]
    facts = [f"Declared under `properties:`. {about.description}"]
    if len(about.dialects) == 1:
        facts.append(f"Only {dialect_of(about.dialects[0]).title} knows it.")
    if about.default is not None:
        facts.append(f"Where it is not set, every engine takes {about.default}.")
    facts += map(_runtime, about.runtimes)
    if about.feature:
        facts.append(f"It brings the protocol feature {about.feature}, which stays when it is unset.")
    return facts


def _runtime(known: Capability) -> str:
    if known.since is None:
        return f"No source says which Databricks Runtime has {known.form} ({known.cited})."
    return f"On Databricks: {known.form}, since Runtime {known.first} ({known.cited})."


def about_key_json(about: PropertyExplanation) -> dict[str, Any]:
    """The same as plain values."""
    return {
        "property": about.key,
        "attribute": about.attribute or None,
        "description": about.description,
        "refused": {"reason": about.refused[0], "fix": about.refused[1]} if about.refused else None,
        "dialects": list(about.dialects),
        "default": about.default,
        "feature": about.feature or None,
        "changes": {
            what: {"phase": verdict.phase, "reason": verdict.reason, "fails": verdict.fails}
            for what, verdict in about.changes
        },
        "findings": list(about.codes),
        "runtimes": [
            {"sql": each.form, "since": each.first or None, "evidence": each.evidence, "source": each.source}
            for each in about.runtimes
        ],
    }
