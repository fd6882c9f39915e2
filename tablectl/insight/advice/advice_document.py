"""The advice for tables as a document: one card for each table that has any."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tablectl.documents.document import (
    Block,
    Card,
    Cell,
    CommentEnd,
    Document,
    Facts,
    Grid,
    Heading,
    Listing,
    Names,
    Row,
    Verdict,
    unread_title,
)
from tablectl.documents.style import plural
from tablectl.insight.advice.facts import Advice, LakeAdvice, TableAdvice
from tablectl.model.text import Code, size_text, time_text

_HEAD = ("Table", "Advice", "Benefit", "Confidence")


def document_of_advice(advice: LakeAdvice) -> Document:
    """The document of some advice. It contains no values of properties, so there is nothing to mask."""
    total = sum(len(each.advice) for each in advice.tables)
    given = [each for each in advice.tables if each.advice or each.untold or each.error]
    unread = sum(bool(each.error) for each in advice.tables) + len(advice.failures)
    parts = [
        f"{plural(total, 'recommendation') if total else 'no recommendation'} for {plural(len(advice.tables), 'table')}"
    ]
    if unread:
        verdict = Verdict("bad", unread_title(advice.tables), tuple(parts))
    elif total:
        verdict = Verdict("pending", "Recommendations", tuple(parts))
    else:
        verdict = Verdict("good", "Nothing to advise", tuple(parts))
    rows = tuple(_row(each, one, card) for card, each in enumerate(given) for one in each.advice)
    return Document(
        subject="Advice",
        verdict=verdict,
        overview=Grid("All advice", _HEAD, rows, sortable=True) if rows else None,
        cards=tuple(map(_card, given)),
        tail=tuple(_tail(advice)),
        summary=tuple(map(Cell, parts)),
        record=advice,
        comment=lambda: CommentEnd(
            "<!-- tablectl advice -->", "<code>tablectl advise --report FILE.html</code> writes all of it."
        ),
    )


def benefit_text(advice: Advice) -> str:
    """``1,204 writer-seconds a week``."""
    if advice.benefit == "bytes a week":
        return f"{size_text(int(advice.amount))} a week"
    return f"{advice.amount:,.0f} {advice.benefit}"


def _row(table: TableAdvice, advice: Advice, card: int) -> Row:
    cells = (
        (Cell(table.table, code=True),),
        (Cell(f"{advice.code} {advice.title}"),),
        (Cell(benefit_text(advice)),),
        (Cell(f"{advice.confidence}, {plural(advice.observations, 'observation')}"),),
    )
    return Row(cells, target=card)


def _card(table: TableAdvice) -> Card:
    if table.error:
        return Card((table.table,), "not readable", "bad", "!", effects=(Cell(table.error, tone="bad"),))
    count = len(table.advice)
    since = f" since {time_text(table.since)}" if table.since else ""
    return Card(
        (table.table,),
        plural(count, "recommendation") if count else "unknown",
        "pending" if count else "quiet",
        "*" if count else "?",
        brief=tuple(_blocks(table, f"from {plural(table.commits, 'commit')}{since}")),
    )


def _blocks(table: TableAdvice, read: str) -> Iterator[Block]:
    yield Facts((("read", read),))
    for each in table.advice:
        yield Heading(f"{each.code} {each.title}")
        yield Facts(tuple(_facts(each)))
    if table.yaml:
        yield Heading("Declare it")
        yield Listing((Code("yaml", tuple(table.yaml.rstrip("\n").split("\n"))),))
    if table.untold:
        yield Heading("Unknown, or not possible")
        yield Facts(tuple(("note", text) for text in table.untold))


def _facts(advice: Advice) -> Iterator[tuple[str, str]]:
    left = "" if advice.leaves is None else f", and leaves {benefit_text(replace(advice, amount=advice.leaves))}"
    yield "saves", f"{benefit_text(advice)}{left}, as computed from {advice.computed}"
    yield from (("because", each) for each in advice.evidence)
    yield from (("costs", each) for each in advice.cost)
    if advice.do:
        yield "do", advice.do
    yield "trust", f"{advice.confidence}: {plural(advice.observations, 'observation')}; docs/advise.md, {advice.code}"


def _tail(advice: LakeAdvice) -> Iterator[Block]:
    if advice.unmatched:
        yield Names(f"{plural(len(advice.unmatched), 'pattern')} without a table", advice.unmatched, warns=True)
    if advice.failures:
        yield Facts(tuple(("not looked up", f"{each.name}: {each.message}") for each in advice.failures))
