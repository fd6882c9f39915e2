"""A report as a document: its parts, without a format. Each result becomes one ``Document``, which formats render.

Text is prose in which backticks mark code, or a value that is code as a whole. Code is a ``Code``: lines, a language.
No renderer splits text into lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from tablectl.documents.style import plural
from tablectl.model.plan import TableFailure
from tablectl.model.safe_text import Code
from tablectl.policies.yaml_nodes import SourceFile

Kind = Literal["good", "pending", "bad"]
Tone = Kind | Literal["", "quiet"]
"""The colour of a text; empty for none."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict that a report starts with."""

    kind: Kind
    title: str
    """Two or three words."""
    parts: tuple[str, ...]
    """The counts that it is based on."""

    @property
    def sentence(self) -> str:
        """One line of our own words and numbers; it contains no foreign text."""
        return f"{self.title}: {'; '.join(self.parts)}."


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


def name_lines(table: str, policy: str, owner: str) -> Lines:
    """The name of a table, the place of its policy, and its owner."""
    yours = (Cell(each, tone="quiet") for each in (policy, f"owner {owner}" if owner else "") if each)
    return (Cell(table, code=True), *yours)


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
    brief: tuple[int, ...] = ()
    """The columns that text shows in one line for each row, by the first text of each; empty for all columns."""
    below: int | None = None
    """The column that text shows below such a line."""


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
class Bar:
    """An interval. Positions and widths are percentages of the picture."""

    left: float
    width: float
    kind: str
    title: str


@dataclass(frozen=True, slots=True)
class Mark:
    """A commit."""

    left: float
    ours: bool
    label: str
    """Its version; empty if it would overlap another label."""
    title: str


@dataclass(frozen=True, slots=True)
class TimelineEvent:
    """A row of the table with the same events."""

    at: int
    """Milliseconds since the epoch; 0 if unknown."""
    when: str
    kind: Literal["gate", "statement", "commit of this run", "commit of others"]
    text: str


@dataclass(frozen=True, slots=True)
class Timeline:
    """A picture and the same events as a table."""

    start: str
    end: str
    length: str
    gates: tuple[Bar, ...]
    statements: tuple[Bar, ...]
    marks: tuple[Mark, ...]
    events: tuple[TimelineEvent, ...]

    @property
    def drawn(self) -> bool:
        """Whether the picture shows more than the table."""
        return bool(self.gates or self.statements) or len(self.marks) > 1


@dataclass(frozen=True, slots=True)
class Picture:
    """The timeline of a run. Only HTML draws it; a table with the same events comes after it."""

    line: Timeline
    name: str


Shade = Literal["good", "some", "high", "bad", "unknown"]


@dataclass(frozen=True, slots=True)
class Square:
    """One square of a ``ColourGrid``."""

    shade: Shade
    title: str
    """What it says, for who points at it or hears it."""
    mark: str = ""
    """One character for text."""


@dataclass(frozen=True, slots=True)
class ColourGrid:
    """A picture of coloured squares. Text shows the marks, and nothing without marks."""

    caption: str
    corner: str
    """What the rows are."""
    columns: tuple[str, ...]
    """Short; empty texts for columns without a label."""
    rows: tuple[tuple[str, tuple[Square, ...]], ...]
    legend: tuple[tuple[Shade, str], ...]
    joined: int = 1
    """So many squares of a row are one in a comment, which shows the worst of them."""

    def grid(self) -> Grid:
        """The same as a table of marks."""
        rows = (
            Row(((Cell(name),), *((Cell(each.mark, tone=_OF_SHADES.get(each.shade, "pending")),) for each in squares)))
            for name, squares in self.rows
        )
        return Grid(self.caption, (self.corner, *self.columns), tuple(rows))


_OF_SHADES: dict[Shade, Tone] = {"good": "good", "bad": "bad"}


@dataclass(frozen=True, slots=True)
class BarChart:
    """A picture with a bar for each row. Pages alone show it: the overview says the same."""

    caption: str
    rows: tuple[tuple[str, str, tuple[tuple[Shade, float], ...]], ...]
    """The name, what the bar says, and its parts, each as percent of the whole width."""
    legend: tuple[tuple[Shade, str], ...]


SHADES: tuple[Shade, ...] = ("good", "some", "high", "unknown", "bad")
"""From the best to the worst."""


Block = Picture | Paragraph | Facts | Changes | Listing | Names | Heading | Fold | Grid | ColourGrid | BarChart


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
    """What it does to others, as clauses; the worst first. If there are lasting ones, these are the passing ones."""
    lasting: tuple[Cell, ...] = ()
    """What it does to others for good, as clauses; the worst first."""
    every_name: bool = False
    """Whether text names each of its tables, up to a limit."""
    brief: tuple[Block, ...] = ()
    """What everybody reads."""
    details: tuple[Block, ...] = ()
    """What is folded."""
    about: Lines = ()
    """What the overview says below its names."""
    row: tuple[Lines, ...] = ()
    """Its cells in the overview, after that of its names; empty in a report without an overview."""


Level = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True)
class Result:
    """A refusal, a failure or a finding, for tools that annotate lines."""

    rule: str
    """The id of a rule, such as ``refused`` or ``L004``."""
    table: str
    change: str
    """The id of the change; empty if the result is about the whole table."""
    message: str
    level: Level | None = None
    """Overrides the level of the rule."""
    source: SourceFile | None = None
    """The line, if it is known without looking up the declaration."""
    ignored: str = ""
    """Why the repository ignores it; empty if it does not."""


@dataclass(frozen=True, slots=True)
class Case:
    """One table as a test case."""

    name: str
    result: Literal["passed", "failure", "error", "skipped"] = "passed"
    kind: str = ""
    message: str = ""
    body: tuple[str, ...] = ()
    """Lines: why it did not pass, or the output of a passing test case."""
    card: Card | None = None
    """The part of the table in full, in place of ``body``."""
    seconds: float | None = None
    """How long it took; ``None`` if that is not known of a single table."""
    source: SourceFile | None = None
    """The line, if it is known without looking up the declaration."""


@dataclass(frozen=True, slots=True)
class ForPrograms:
    """What formats for programs need beyond the parts that people read. Made when such a format is rendered."""

    results: Callable[[], Iterable[Result]] = tuple
    """What SARIF holds."""
    cases: Callable[[], Iterable[Case]] = tuple
    """What JUnit holds."""
    failed: bool = False
    """Whether the command could not do all of its work."""
    seconds: float | None = None
    """How long the work took, if known."""
    at: int = 0
    """When it began, in milliseconds since the epoch; 0 if unknown."""


@dataclass(frozen=True, slots=True)
class CommentEnd:
    """The end of a comment on a pull request. All of it is HTML."""

    foot: str = ""
    where: str = ""
    """Where the rest can be read if something is left out."""
    reserved: int = 0
    """Bytes to leave free for what a CI job adds."""

    @classmethod
    def of(cls, command: str) -> CommentEnd:
        """The end of what a command prints."""
        return cls(f"<!-- tablectl {command} -->", f"<code>tablectl {command}</code> prints all of it.")


@dataclass(frozen=True, slots=True)
class Document:
    """A whole report."""

    subject: str
    """``Plan``, ``Status`` …"""
    verdict: Verdict | None
    """``None`` for what is only shown, such as an explanation."""
    env: str = ""
    folder: str = ""
    """The folder of all tables by path, if their names are shown without it."""
    counts: tuple[Cell, ...] = ()
    """How many tables are in which state, the worst first: a number, a word, and its colour. Takes the place of the
    verdict's parts where there is room for it.
    """
    notes: tuple[str, ...] = ()
    """Sentences below the verdict."""
    everywhere: str = ""
    """What applies to every row, as a clause. Notes say the same; text has no notes above the cards."""
    facts: tuple[tuple[str, Cell], ...] = ()
    """Where the report comes from."""
    overview: Grid | None = None
    refusal: str = ""
    """Why all of it is refused, whatever the counts say."""
    head: tuple[Names, ...] = ()
    """Names that no reader of a comment may miss; they come right after the overview. Pages have them in the cards."""
    cards: tuple[Card, ...] = ()
    tail: tuple[Block, ...] = ()
    """What comes after the cards, such as tables without changes."""
    summary: tuple[Cell, ...] = field(default=())
    """The entries of the last line of text; without any, the verdict is the last line."""
    hint: str = ""
    """How text says where the folded details are."""
    in_full: Callable[[], Document] | None = None
    """The same with a part for each table, for ``--verbose``; without it, the parts are the same."""
    record: object = None
    """The result, without masked values. It is its own JSON."""
    json: Callable[[], str] | None = None
    """The JSON of a result that has a file of its own, such as a plan."""
    programs: ForPrograms = field(default_factory=ForPrograms)
    comment: Callable[[], CommentEnd] = CommentEnd

    @property
    def title(self) -> str:
        """The verdict in two or three words, or the subject."""
        return self.verdict.title if self.verdict else self.subject


def page(name: str, *blocks: Block, record: object, state: str = "") -> Document:
    """A document about one thing, without a verdict."""
    card = Card(names=(name,), state=state, tone="", mark="", brief=blocks)
    return Document(subject=name, verdict=None, cards=(card,), record=record)


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


def group_names(names: Sequence[str], state: str, tone: Tone) -> Lines:
    """The cell with the names of a group: the state, three or four names, and the number of the others."""
    most = 4 if len(names) == 4 else 3  # a line for one more name says no less than that there is one
    shown = [Cell(each, code=True) for each in names[:most]]
    more = [Cell(f"and {len(names) - most:,} more")] if len(names) > most else []
    return (Cell(state, tone=tone, badge=True), *shown, *more)


def overview_of(cards: Sequence[Card], caption: str, head: tuple[str, ...]) -> Grid | None:
    """The overview with a row for each card: the names of its tables, then its own cells. ``None`` without cards."""
    rows = tuple(_overview_row(card, index) for index, card in enumerate(cards))
    return Grid(caption, head, rows) if rows else None


def _overview_row(card: Card, index: int) -> Row:
    names = group_names(card.names, card.state, card.tone)
    return Row(((*names, *card.about), *card.row), index, card.names)


def without_tables(patterns: Sequence[str], failures: Iterable[TableFailure] = ()) -> Iterator[Block]:
    """The patterns that match no table, and those that could not be looked up."""
    if patterns:
        yield Names(f"{plural(len(patterns), 'pattern')} without a table", tuple(patterns), warns=True)
    if missing := tuple(("not looked up", f"{each.name}: {each.message}") for each in failures):
        yield Facts(missing)


def unread_title(looked_at: object) -> str:
    """The title of a report with failures. One that looked at no table at all must not pass for a small trouble."""
    return "Not all tables can be read" if looked_at else "⚠ No table was looked at"
