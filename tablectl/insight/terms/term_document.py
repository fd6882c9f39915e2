"""What ``tablectl explain`` shows of a word, as documents: a conflict term, a fact, a word of the tool."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tablectl.conflicts.transactions import ConflictOutcome, ConflictResult
from tablectl.documents.document import Block, Document, Facts, Heading, Paragraph, page
from tablectl.insight.matrix.conflicts_document import in_words, pairs_texts
from tablectl.insight.matrix.matrix import CellVerdict, matrix
from tablectl.insight.terms.explain_term import AnomalyExample, TermContext, TermExplanation
from tablectl.insight.terms.facts import Fact
from tablectl.insight.terms.page_rows import PageRow


def document_of_fact(fact: Fact) -> Document:
    """A fact with its public page."""
    return page(fact.id, *(Paragraph(each) for each in (fact.text, fact.source, fact.page) if each), record=fact)


def document_of_word(word: str, rows: Sequence[PageRow], facts: Sequence[Fact]) -> Document:
    """A word: what the tables of the pages say of it, or of the keys of a group; then what is documented about it."""
    blocks: list[Block] = []
    keys = dict.fromkeys(row.words[0] for row in rows)
    if len(keys) > 1 and all("." in key for key in keys):
        blocks += [Facts(tuple((row.words[0], row.cells[-1][1]) for row in rows)), Paragraph(rows[0].page)]
        rows = ()
    for row in rows:
        if len(row.cells) <= 2:  # a meaning, and perhaps a page
            blocks += [Paragraph(text) for _, text in row.cells]
        else:
            blocks.append(Facts(row.cells))
        if not any(text.startswith("docs/") for _, text in row.cells):
            blocks.append(Paragraph(row.page))
    if facts:
        blocks.append(Facts(tuple((each.id, f"{each.text} ({each.source or each.page})") for each in facts)))
    name, *also = rows[0].words if rows else (word,)
    known = [{"id": each.id, "text": each.text, "source": each.source, "page": each.page} for each in facts]
    record = {"word": word, "rows": rows, "facts": known}
    return page(name, *blocks, record=record, state=f"(also: {', '.join(also)})" if also else "")


def document_of_term(view: TermExplanation) -> Document:
    """What it means, what causes it, an example where it has one, and how to fix it."""
    return page(view.term.title, *_blocks(view), record=_json(view))


def _blocks(view: TermExplanation) -> Iterator[Block]:
    term = view.term
    yield from (Paragraph(each) for each in (term.detail, f"{term.meaning} ({term.source})") if each)
    if view.places:
        yield Heading(f"What causes it on {view.live.name.text}" if view.live else "What causes it", style="sql")
    for place in view.places:
        yield from _place(place)
    if view.example:
        yield from _example(view.example)
    if term.ways:
        yield Heading("How to fix" if term.level is None else "Notes", style="sql")
        yield Facts(tuple(("-", way) for way in term.ways))


def _place(place: TermContext) -> Iterator[Block]:
    yield Paragraph(f"{place.title}, at {place.setting.level}:")
    said: list[str] = []
    for verdict, what in ((CellVerdict.FAILS, ""), (CellVerdict.DEPENDS, ", on the same data")):
        pairs: dict[Any, list[Any]] = {}
        for cell in place.cells:
            if cell.verdict is verdict:
                pairs.setdefault(cell.current, []).append(cell.committed)
        said += pairs_texts(pairs, in_words(matrix(place.setting)), what)
    yield Facts(tuple(("-", text) for text in said or ["nothing"]))


def _example(example: AnomalyExample) -> Iterator[Block]:
    now, next_ = example.version + 1, example.version + 2
    yield Heading(f"An order that the history cannot explain, with {example.client.text()}", style="sql")
    yield Facts(
        (
            ("1", f"the first statement begins and reads version {example.version}: {example.delete}"),
            ("2", f"a second statement commits version {now}: {example.insert}"),
            ("3", f"the first statement tries to commit version {next_}"),
        )
    )
    yield Facts(tuple((f"at {level}", _outcome(outcome, example, now)) for level, outcome in example.outcomes))


def _outcome(outcome: ConflictOutcome, example: AnomalyExample, now: int) -> str:
    if outcome.succeeds:
        return (
            f"it commits. The history says INSERT ({now}), then DELETE ({now + 1}): no row with {example.condition} "
            "could be left. The table has one: as if the DELETE had run before the INSERT."
        )
    exception = outcome.conflict.exception if outcome.conflict else "an error"
    verb = "fails" if outcome.result is ConflictResult.FAILS else "can fail"
    return f"it {verb} with {exception}: {outcome.reason} ({outcome.source}). Run again, it deletes the row too."


def _json(view: TermExplanation) -> dict[str, Any]:
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
