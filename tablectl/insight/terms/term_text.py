"""The explanation of a conflict term, as text and JSON."""

from __future__ import annotations

from typing import Any

from tablectl.conflicts.transactions import ConflictResult
from tablectl.insight.matrix.conflicts_text import in_words, pairs_lines
from tablectl.insight.matrix.matrix import CellVerdict, matrix
from tablectl.insight.terms.explain_term import AnomalyExample, TermContext, TermExplanation
from tablectl.model.text import printable
from tablectl.reports.style import Style, wrapped


def term_text(view: TermExplanation, style: Style) -> str:
    """What it means, what causes it, an example where it has one, and how to fix it."""
    term = view.term
    lines = [style.paint(term.title, "bold"), *wrapped(term.detail, 2, style)]
    lines += wrapped(f"{term.meaning} ({term.source})", 2, style)
    if view.places:
        where = f" on {view.live.name.text}" if view.live else ""
        lines += ["", style.paint(printable(f"What causes it{where}"), "bold")]
        for place in view.places:
            lines += _place(place, style)
    if view.example:
        lines += ["", *_example(view.example, style)]
    if term.ways:
        lines += ["", style.paint("How to fix" if term.level is None else "Notes", "bold")]
    for way in term.ways:
        first, *rest = wrapped(way, 4, style)
        lines += [f"  - {first.strip()}", *rest]
    return "\n".join(lines) + "\n"


def _place(place: TermContext, style: Style) -> list[str]:
    lines = wrapped(f"{place.title}, at {place.setting.level}:", 2, style)
    for verdict, what in ((CellVerdict.FAILS, ""), (CellVerdict.DEPENDS, ", on the same data")):
        pairs: dict[Any, list[Any]] = {}
        for cell in place.cells:
            if cell.verdict is verdict:
                pairs.setdefault(cell.current, []).append(cell.committed)
        lines += pairs_lines(pairs, in_words(matrix(place.setting)), style, what)
    return lines if len(lines) > 1 else [*lines, "    nothing"]


def _example(example: AnomalyExample, style: Style) -> list[str]:
    now, next_ = example.version + 1, example.version + 2
    steps = (
        (f"the first statement begins and reads version {example.version}:", example.delete),
        (f"a second statement commits version {now}:", example.insert),
    )
    lines = [style.paint(f"An order that the history cannot explain, with {example.client.text()}", "bold")]
    for number, (what, sql) in enumerate(steps, 1):
        lines += [f"  {number}  {what}", f"     {style.paint(printable(sql), 'cyan')}"]
    lines.append(f"  3  the first statement tries to commit version {next_}")
    for level, outcome in example.outcomes:
        lines += [f"     {style.paint(f'at {level}', 'bold')}"]
        if outcome.succeeds:
            text = (
                f"it commits. The history says INSERT ({now}), then DELETE ({next_}): no row with "
                f"{example.condition} could be left. The table has one: as if the DELETE had run before the INSERT."
            )
        else:
            exception = outcome.conflict.exception if outcome.conflict else "an error"
            verb = "fails" if outcome.result is ConflictResult.FAILS else "can fail"
            text = (
                f"it {verb} with {exception}: {outcome.reason} ({outcome.source}). Run again, it deletes the row too."
            )
        lines += wrapped(text, 7, style)
    return lines


def term_json(view: TermExplanation) -> dict[str, Any]:
    """The same as plain values."""
    term = view.term
    made: dict[str, Any] = {
        "name": term.name,
        "exception": term.conflict.exception if term.conflict else None,
        "meaning": term.meaning,
        "detail": term.detail or None,
        "source": term.source,
        "ways": list(term.ways),
        "table": view.live.name.text if view.live else None,
        "causes": [
            {
                "where": place.title,
                "isolation": place.setting.level,
                "pairs": [
                    {"current": cell.current.key, "committed": cell.committed.key, "verdict": cell.verdict}
                    for cell in place.cells
                ],
            }
            for place in view.places
        ],
        "example": None,
    }
    if view.example:
        outcomes = {
            level.value: {"result": each.result, "exception": each.conflict.exception if each.conflict else None}
            for level, each in view.example.outcomes
        }
        made["example"] = {"delete": view.example.delete, "insert": view.example.insert}
        made["example"] |= {"client": view.example.client.text(), "outcomes": outcomes}
    return made
