"""A report as a document: its parts, without a format. Each result becomes one ``Document``, which formats render.

Text is prose in which backticks mark code, or a value that is code as a whole. Code is a ``Code``: lines, a language.
No renderer splits text into lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from tablectl.model.code_block import Code
from tablectl.reports.timeline import Timeline
from tablectl.reports.wording import Kind, PlanVerdict

Tone = Kind | Literal["", "quiet"]
"""The colour of a text; empty for none."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A text in a table."""

    text: str
    code: bool = False
    """Whether the text is a name or a value; else it is prose."""
    tone: Tone = ""
    badge: bool = False
    href: str = ""
    """An address that is safe to put into a page."""


Lines = tuple[Cell, ...]
"""The lines of one cell of a table."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table."""

    cells: tuple[Lines, ...]
    target: int | None = None
    """The card that has the details, counted from 0."""
    words: tuple[str, ...] = ()
    """More text by which a search finds the row, such as the names that are not shown."""


@dataclass(frozen=True, slots=True)
class Grid:
    """A table."""

    caption: str
    head: tuple[str, ...]
    rows: tuple[Row, ...]
    sortable: bool = False


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Prose."""

    text: str
    tone: Tone = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """Labels and prose."""

    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """One value before and after."""

    id: str
    before: str
    after: str
    places: Lines = ()
    result: str = ""


@dataclass(frozen=True, slots=True)
class Changes:
    """Values before and after. ``labels`` are the names of the two columns."""

    rows: tuple[ChangeRow, ...]
    labels: tuple[str, str] = ("Current", "Desired")
    caption: str = "Changes"
    tones: tuple[Tone, Tone] = ("bad", "good")


@dataclass(frozen=True, slots=True)
class Listing:
    """Code, facts about it, and the code that undoes it."""

    code: tuple[Code, ...]
    facts: tuple[tuple[str, str], ...] = ()
    undo: tuple[Code, ...] = ()
    after: tuple[tuple[str, str], ...] = ()
    """Facts that come after the undo."""


@dataclass(frozen=True, slots=True)
class Names:
    """A list of names with a title."""

    title: str
    names: tuple[str, ...]
    warns: bool = False
    """Whether text shows it too: a pattern that matches no table may be a typing error."""


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading within a card, such as a phase and its effect."""

    title: str
    text: str = ""
    style: str = ""
    """A word that selects its colour: a phase, or empty."""


@dataclass(frozen=True, slots=True)
class Fold:
    """Blocks that are folded until they are asked for. Text shows them only with ``--verbose``."""

    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Picture:
    """The timeline of a run. Only HTML draws it; a table with the same events comes after it."""

    line: Timeline
    name: str


Block = Picture | Paragraph | Facts | Changes | Listing | Names | Heading | Fold | Grid


@dataclass(frozen=True, slots=True)
class Card:
    """One part of a report: a table, or a group of tables for which the same holds."""

    names: tuple[str, ...]
    """At least one."""
    state: str
    """One or two words by which a reader can filter."""
    tone: Tone
    mark: str
    """One character for text."""
    noun: str = "table"
    effects: tuple[Cell, ...] = ()
    """What it does to others, as clauses; the worst first."""
    brief: tuple[Block, ...] = ()
    """What everybody reads."""
    details: tuple[Block, ...] = ()
    """What is folded."""


@dataclass(frozen=True, slots=True)
class Document:
    """A whole report."""

    subject: str
    """``Plan``, ``Status`` …"""
    verdict: PlanVerdict
    env: str = ""
    grave: bool = False
    """Whether something in it deserves a second look, although nothing failed."""
    notes: tuple[str, ...] = ()
    """Sentences below the verdict."""
    facts: tuple[tuple[str, Cell], ...] = ()
    """Where the report comes from."""
    overview: Grid | None = None
    cards: tuple[Card, ...] = ()
    tail: tuple[Block, ...] = ()
    """What comes after the cards, such as tables without changes."""
    summary: tuple[Cell, ...] = field(default=())
    """The entries of the last line of text; without any, the verdict is the last line."""


def listings(document: Document) -> Iterator[Listing]:
    """Every listing of a document."""
    for card in document.cards:
        yield from _listings((*card.brief, *card.details))
    yield from _listings(document.tail)


def _listings(blocks: tuple[Block, ...]) -> Iterator[Listing]:
    for block in blocks:
        if isinstance(block, Listing):
            yield block
        elif isinstance(block, Fold):
            yield from _listings(block.blocks)
