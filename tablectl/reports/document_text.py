"""A document as text for a terminal or a log."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest

from tablectl.documents.document import (
    BarChart,
    Block,
    Card,
    Cell,
    ChangeRow,
    Changes,
    ColourGrid,
    Document,
    Facts,
    Fold,
    Grid,
    Heading,
    Listing,
    Names,
    Paragraph,
    Picture,
    Row,
    Tone,
    Verdict,
)
from tablectl.documents.style import Style, titled
from tablectl.model.safe_text import Code, listed, printable
from tablectl.reports.short_names import with_short_names

_COLOURS = {"good": "green", "pending": "yellow", "bad": "red", "quiet": "dim", "": ""}
_FEW_NAMES = 5
_EVERY_NAME = 20
_LABEL = 9
"""Characters of the longest label of effects."""
_FEW_COLUMNS = 3
"""Tables with more columns are shown as a list if they are too wide. Of those with fewer, the last column wraps."""
_LEAST = 20
"""Characters of a column that wraps."""


def document_text(document: Document, style: Style, *, verbose: bool = False) -> str:
    """The cards, then what comes after them, then the summary. Folded details only with ``verbose``.

    A plan of one table is always shown in full.
    """
    verbose = verbose or (document.subject == "Plan" and [len(card.names) for card in document.cards] == [1])
    if verbose and document.in_full:
        document = document.in_full()
    document = with_short_names(document)
    lines = [f"In {printable(document.folder)}:", ""] if document.folder else []
    if document.everywhere:
        said = style.prose("", f"{document.everywhere[:1].upper()}{document.everywhere[1:]}.", 0, 0)
        lines += [*map(str.strip, said), ""]
    for card in document.cards:
        lines += [*card_lines(card, style, verbose=verbose), ""]
    if not document.cards and document.overview:
        lines += [*_grid(document.overview, style, 0), ""]
    for block in document.tail:
        lines += _tail(block, style)
    if document.subject == "Apply":
        lines += [line for note in document.notes for line in style.prose("", note, 0, 0)]
    folded = not verbose and any(card.details for card in document.cards)
    hint = [style.paint(line.strip(), "dim") for line in style.prose("", document.hint, 0, 0)] if folded else []
    if not document.verdict:
        return "\n".join(lines).rstrip("\n") + "\n"
    return "\n".join([*lines, *hint, *_summary(document, document.verdict, style)]) + "\n"


def card_lines(card: Card, style: Style, *, verbose: bool) -> list[str]:
    """One card."""
    colour = _COLOURS[card.tone]
    name = printable(card.names[0]) if len(card.names) == 1 else f"{len(card.names):,} {card.noun}s"
    state = style.paint(card.state.upper(), colour, "bold") if card.effects else style.paint(card.state, colour)
    mark = f"{style.paint(card.mark, colour, 'bold')} " if card.mark else ""
    lines = [f"{mark}{style.paint(name, 'bold')}  {state}".rstrip()]
    if not mark and len(f"{name}  {card.state}") > style.width:
        lines = [style.paint(name, "bold"), *(style.paint(each, colour) for each in style.prose("", card.state, 1, 0))]
    if len(card.names) > 1:
        lines += style.prose("", listed(card.names, _EVERY_NAME if card.every_name else _FEW_NAMES), 1, 0)
    for block in card.brief:
        if not (isinstance(block, Paragraph) and len(card.names) > 1):
            lines += _block(block, style, 4 if card.mark and not isinstance(block, Paragraph) else 2, verbose=False)
    if card.lasting:
        lines += [*_labelled("stays", card.lasting, style), *_labelled("during", card.effects, style)]
    else:
        lines += [line for each in card.effects for line in _clause(each, style)]
    if verbose:
        for block in card.details:
            lines += _block(block, style, 4, verbose=True)
    while not lines[-1]:
        lines.pop()
    return [line for index, line in enumerate(lines) if line or lines[index - 1]]


def block_lines(blocks: Iterable[Block], style: Style) -> Iterator[str]:
    """Blocks outside of a card."""
    return (line for block in blocks for line in _block(block, style, 2, verbose=False))


def _labelled(label: str, cells: Sequence[Cell], style: Style) -> list[str]:
    """Clauses below each other, the first next to the label."""
    lines = []
    for cell in cells:
        colour = _COLOURS[cell.tone]
        text = style.prose(label, cell.text, 2, _LABEL)
        lines += [style.paint(line, *([colour] if colour not in {"", "green"} else [])) for line in text]
        label = ""
    return lines


def _clause(cell: Cell, style: Style) -> list[str]:
    first, *rest = style.prose("-", cell.text, 2, 1)
    colour = _COLOURS[cell.tone]
    return [style.paint(line, *([colour] if colour not in {"", "green"} else [])) for line in (first, *rest)]


def _tail(block: Block, style: Style) -> list[str]:
    if not isinstance(block, Names):
        lines = _block(block, style, 0, verbose=True)
        return [*lines, ""] if lines else []
    mark = style.paint("?", "yellow", "bold")
    return (
        [*(f"{mark} {style.paint(printable(each), 'bold')}  matches no table" for each in block.names), ""]
        if block.warns
        else []
    )


def _block(block: Block, style: Style, indent: int, *, verbose: bool) -> list[str]:
    match block:
        case Paragraph(text, tone):
            lines = style.prose("", text, max(indent - 1, 0), 0)
            return [_painted(line if indent else line.strip(), tone, style) for line in lines]
        case Facts(pairs):
            return ["", *style.facts(pairs, 2)] if verbose and indent == 4 else style.facts(pairs, indent)
        case Changes():
            return _changes(block, style)
        case Listing():
            return [*_listing(block, style, indent), ""]
        case Heading(title, text):
            said = f" - {style.paint(text, 'dim')}" if text else ""
            return ["", f"  {style.paint(printable(title), 'cyan', 'bold')}{said}"]
        case Names(title, names):
            return [f"{'':{indent}}{title}", *(f"{'':{indent}}  {printable(each)}" for each in names)]
        case Fold(title, blocks):
            inner = [line for each in blocks for line in _block(each, style, indent, verbose=verbose)]
            return ["", f"  {style.paint(title, 'cyan', 'bold')}", *inner] if verbose else []
        case Grid():
            return ["", *_grid(block, style, indent), ""] if indent == 2 else _grid(block, style, indent)
        case ColourGrid():
            return _block(block.grid(), style, indent, verbose=verbose) if block.rows[0][1][0].mark else []
        case Picture() | BarChart():
            return []


def _painted(line: str, tone: Tone, style: Style) -> str:
    return style.paint(line, _COLOURS[tone]) if tone else line


def _changes(block: Changes, style: Style) -> list[str]:
    """``name  before → after``, aligned as far as the width permits. A change that does not fit on one line takes
    three.
    """
    before, after = (_COLOURS[each] for each in block.tones)
    if block.labels == ("Declared", "Found"):
        return [line for row in block.rows for line in _compared(row, block, style)]
    room = {row: style.width - 9 - len(row.before) - len(row.after) for row in block.rows}
    fitting = {row for row in block.rows if len(printable(row.id)) <= room[row]}
    widest = max((len(printable(row.id)) for row in fitting), default=0)
    pad = min(widest, min((room[row] for row in fitting), default=0))
    lines = []
    for row in block.rows:
        name, old, new = printable(row.id), style.paint(row.before, before), style.paint(row.after, after)
        if row in fitting:
            lines.append(f"    {name.ljust(pad)}  {old} → {new}")
        else:
            lines += [f"    {name}", f"      {old}", f"      → {new}"]
        lines += _result(row, style)
    return lines


def _compared(row: ChangeRow, block: Changes, style: Style) -> list[str]:
    """``name  declared before, found after  file:line``, and below it what is known of the difference."""
    (first, second), (one, other) = (each.lower() for each in block.labels), (_COLOURS[each] for each in block.tones)
    values = f"{first} {style.paint(row.before, one)}, {second} {style.paint(row.after, other)}"
    places = " ".join(cell.text for cell in row.places)
    plain = f"    {printable(row.id)}  {first} {row.before}, {second} {row.after}  {places}"
    if len(plain) <= style.width:
        return [f"    {printable(row.id)}  {values}  {places}".rstrip(), *_result(row, style)]
    return [
        f"    {printable(row.id)}",
        f"      {values}",
        *([f"      {places}"] if places else []),
        *_result(row, style),
    ]


def _result(row: ChangeRow, style: Style) -> list[str]:
    return style.prose("", row.result, 5, 0) if row.result else []


def _listing(block: Listing, style: Style, indent: int) -> list[str]:
    lines = [f"{'':{indent}}{_code(line, code, style)}" for code in block.code for line in code.shown()]
    pad = max([8, *(len(label) for label, _ in (*block.facts, *block.after))])
    for label, text in block.facts:
        lines += style.prose(label, text, indent + 2, pad)
    lines += _undo(block.undo, indent + 2, pad)
    for label, text in block.after:
        lines += style.prose(label, text, indent + 2, pad)
    return lines


def _code(line: str, code: Code, style: Style) -> str:
    if code.language == "text":  # a page of the documentation
        return line
    if code.language != "diff":
        return style.paint(line, "bold")
    return style.paint(line, {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], ""))


def _undo(codes: Sequence[Code], indent: int, pad: int) -> Iterator[str]:
    label = "undo"
    for code in codes:
        for line in code.shown():
            yield f"{'':{indent}}{label.ljust(pad)} {line}"
            label = ""


def _grid(grid: Grid, style: Style, indent: int) -> list[str]:
    """Columns as wide as their texts. If they do not fit, each row takes several lines."""
    if grid.brief:
        return _one_line_each(grid, style)
    if len(grid.head) <= _FEW_COLUMNS:
        return _narrow(grid, style, indent)
    texts = [tuple("; ".join(printable(cell.text) for cell in lines) for lines in row.cells) for row in grid.rows]
    widths = [max([len(head), *(len(row[index]) for row in texts)]) for index, head in enumerate(grid.head)]
    if indent + sum(widths) + sum(map(_gap, widths[1:])) > style.width:
        return [line for row in grid.rows for line in _stacked(row, grid.head, style, indent)]
    lines = [style.paint(_columns(grid.head, widths, indent), "dim")]
    for row, cells in zip(grid.rows, texts, strict=True):
        tones = [next((_COLOURS[cell.tone] for cell in each if cell.tone), "") for each in row.cells]
        painted = map(style.paint, cells, tones)
        lines.append(_joined(zip(cells, painted, widths, strict=True), indent))
    return lines


def _one_line_each(grid: Grid, style: Style) -> list[str]:
    """One line for each row: as many columns as fit, at least two. No name is cut. Below it come the texts of the
    column ``below``, if it has any.
    """
    firsts = ([row.cells[index][:1] for index in grid.brief] for row in grid.rows)
    rows = [["".join(printable(cell.text) for cell in cells) for cells in row] for row in firsts]
    head = [grid.head[index] for index in grid.brief]
    widths = [max(len(row[index]) for row in [head, *rows]) for index in range(len(head))]
    while len(widths) > 2 and sum(widths) + 2 * len(widths) - 2 > style.width:
        widths.pop()
    lines = [style.paint(_columns(head[: len(widths)], widths, 0), "dim")]
    for row, texts in zip(grid.rows, rows, strict=True):
        tones = [next((_COLOURS[cell.tone] for cell in row.cells[index] if cell.tone), "") for index in grid.brief]
        shown = zip(texts, map(style.paint, texts, ["bold", *tones[1:]]), widths, strict=False)
        lines.append(_joined(shown, 0))
        for cell in row.cells[grid.below] if grid.below is not None else ():
            lines += [style.paint(line, _COLOURS[cell.tone]) for line in style.prose("", cell.text, 3, 0)]
    return lines


def _gap(width: int) -> int:
    """The blanks before a column: a column of marks stands close to the one before it."""
    return 1 if width == 1 else 2


def _stacked(row: Row, head: Sequence[str], style: Style, indent: int) -> Iterator[str]:
    """The first two cells on one line, and each other one that has a text below it, with the name of its column."""
    name, state, *others = row.cells
    title = "; ".join(printable(cell.text) for cell in name[:1])
    badge = "; ".join(cell.text for cell in state)
    tone = next((cell.tone for cell in state), "")
    yield f"{'':{indent}}{style.paint(title, 'bold')}  {style.paint(badge, _COLOURS[tone])}"
    pad = max(len(each) for each in head[2:])
    for label, cells in [(head[0], name[1:]), *zip(head[2:], others, strict=True)]:
        if cells:
            text = "; ".join(cell.text for cell in cells)
            lines = style.prose("policy" if label == head[0] else label.lower(), text, indent + 4, pad)
            bad = any(cell.tone == "bad" for cell in cells)
            yield from (style.paint(line, "red") for line in lines) if bad else lines


def _narrow(grid: Grid, style: Style, indent: int) -> list[str]:
    """The lines of each cell below each other."""
    *others, _ = grid.head
    widths = [
        max([len(head), *(len(printable(cell.text)) for row in grid.rows for cell in row.cells[index])])
        for index, head in enumerate(others)
    ]
    left = indent + sum(widths) + 2 * len(widths)
    lines = [style.paint(_columns(grid.head, [*widths, 0], indent), "dim")]
    for row in grid.rows:
        tone = next((cell.tone for cell_lines in row.cells for cell in cell_lines if cell.tone), "")
        for texts in zip_longest(*(map(_text, cell_lines) for cell_lines in row.cells), fillvalue=""):
            first = _columns((*texts[:-1], ""), [*widths, 0], indent).ljust(left)
            wrapped = textwrap.wrap(
                texts[-1], max(style.width - left, _LEAST), break_long_words=False, break_on_hyphens=False
            )
            shown = [f"{first}{(wrapped or [''])[0]}".rstrip(), *(f"{'':{left}}{line}" for line in wrapped[1:])]
            lines += [style.paint(line, _COLOURS[tone]) if tone in {"bad", "pending"} else line for line in shown]
    return lines


def _text(cell: Cell) -> str:
    return printable(cell.text)


def _columns(cells: Sequence[str], widths: Sequence[int], indent: int) -> str:
    return _joined(zip(cells, cells, widths, strict=True), indent)


def _joined(cells: Iterable[tuple[str, str, int]], indent: int) -> str:
    """Cells next to each other: the text, the text with its colour, and the width of each."""
    parts = [f"{' ' * _gap(width)}{painted}{' ' * (width - len(text))}" for text, painted, width in cells]
    return f"{'':{indent}}{''.join(parts)[2:]}".rstrip()


def _summary(document: Document, verdict: Verdict, style: Style) -> list[str]:
    title = titled(document.subject, document.env)
    if verdict.kind == "good" and len(document.summary) == 1:
        said = document.summary[0].text
        opening = titled(verdict.title, document.env)
        sentence = f". {said[:1].upper()}{said[1:]}" if document.subject == "Plan" else f": {said}"
        return [style.paint(f"{opening}{sentence}.", "green")]
    parts = document.summary or tuple(Cell(text) for text in verdict.parts)
    return style.sentence(title, [style.paint(each.text, _COLOURS[each.tone]) for each in parts])
