"""A document as a comment on GitHub or GitLab: the verdict, a table of groups, and folded details, within the limit.

The most important groups come first, so what is left out of a comment that would be too long matters least.

Most of it is HTML in Markdown, in which foreign text has no special meaning. Within an HTML block (which begins a line
and contains no empty line) Markdown is not interpreted, so escaping HTML is enough. In ``<code>`` and in fenced blocks,
mentions, references and links are not interpreted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from itertools import groupby

from tablectl.documents.document import (
    SHADES,
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
    Lines,
    Listing,
    Names,
    Paragraph,
    Picture,
    Row,
    Shade,
)
from tablectl.documents.style import plural, printable_lines, titled
from tablectl.model.safe_text import Code, escape_markup, printable
from tablectl.reports.short_names import with_short_names

LIMIT = 65_536
"""The length of a comment on GitHub, in characters. It is applied to bytes of UTF-8, which are never fewer."""
_TO_DEFUSE = re.compile(r"(?:[@#!~%$&^]|(?<!\d):|\bGH-|\bwww)(?=[\w/\".\[+])|\b[0-9a-f]{7,40}\b", re.IGNORECASE)
"""What the sites turn into links if a word follows: people, issues, merge requests, labels, addresses, commits,
emoji."""
_NOTHING = "\u200b"
_LONG_NAME = re.compile(r"(?<![A-Z0-9])[A-Z0-9]+(?:_[A-Z0-9]+){3,}")
_CODE = re.compile(r"`([^`]+)`")
_BACKTICKS = re.compile(r"`+")
_MARKS = {"good": "✅", "pending": "🟡", "bad": "⛔"}
_STATES = {"refused": "⛔", "not readable": "⛔", "irreversible": "🟠"}
_TONES = {"bad": "🔴", "pending": "🟡", "good": "🟢", "quiet": "", "": ""}
_OVERVIEW = 26_000
"""The maximum size of the table of groups, in bytes: what is left is for the details."""
_LONGEST_ROW = 6_000
_NOTICE = 600
"""Bytes for the notice of what is left out."""
_MOST_ROWS = 50
_MOST_COLUMNS = 3
_PAIRS = ("Change", "Effect")
_OPEN_NAMES = 30
"""More names are folded."""
_NAMES = 9_000
"""The maximum size of names that no reader may miss, in bytes."""
_MOST_NAMES = 300
_LONGEST = 1_000
"""The maximum length of one text in the table of groups."""


def document_markdown(document: Document, limit: int = LIMIT) -> str:
    """A comment of at most ``limit`` bytes, some of which the document's ``comment`` may reserve."""
    end = document.comment()
    document = with_short_names(document)
    foot, where = end.foot, end.where
    limit -= end.reserved
    notes = [*([f"Tables in `{document.folder}`"] if document.folder else []), *document.notes]
    head = [_verdict(document), *(f"<p>{words(note)}</p>" for note in notes)]
    if document.overview:
        head.append(_overview(document.overview, where))
    head += [_every_name(each, where) for each in document.head]
    room = limit - _size("\n\n".join([*head, foot])) - _NOTICE - _size(where)
    kept: list[str] = []
    for block in _details(document):
        room -= _size(block) + 2
        if room < 0:
            kept.append(f"<p>The details of some groups are left out here. {where}</p>")
            break
        kept.append(block)
    return "\n\n".join([*head, *kept, foot]) + "\n"


def _details(document: Document) -> Iterator[str]:
    """The folded parts, one by one: those that do not fit are never made."""
    for card in document.cards:
        parts = [_block(block) for block in (*card.brief, *card.details)]
        if document.verdict:
            yield details(_summary(card), *parts)
        else:
            if card.names != (document.subject,):
                yield f"<p><b>{words(' '.join([*card.names, card.state]))}</b></p>"
            yield from parts
    yield from map(_block, document.tail)


def _verdict(document: Document) -> str:
    verdict = document.verdict
    subject = words(titled(document.subject, document.env))
    if not verdict:
        return f"**{subject}**"
    if not document.counts:
        return f"**{_MARKS[verdict.kind]} {subject}: {words(verdict.title)}** · {'; '.join(map(words, verdict.parts))}"
    parts = [*([words(document.refusal)] if document.refusal else []), *map(_count, document.counts)]
    worst = _mark(_state(document.counts[0].text), document.counts[0])
    mark = worst if verdict.kind == "pending" else _MARKS[verdict.kind]
    return f"**{mark} {subject}: {words(verdict.title)}** · {' · '.join(parts)}"


def _count(cell: Cell) -> str:
    """``🟠 25 irreversible``."""
    mark = _mark(_state(cell.text), cell) if cell.badge else ""
    return f"{mark} <b>{words(cell.text)}</b>" if mark else words(cell.text)


def _state(count: str) -> str:
    return count.partition(" ")[2]


def _every_name(names: Names, where: str) -> str:
    """As many names as have room; a few without a fold."""
    kept, size = [], 0
    for each in map(code, names.names):
        size += _size(each) + 2
        if size > _NAMES:
            break
        kept.append(each)
    left = len(names.names) - len(kept)
    more = f" and {left:,} more. {where}" if left else ""
    shown = f"<p>{', '.join(kept)}{more}</p>"
    if len(kept) <= _OPEN_NAMES:
        return f"<p>🟠 <b>{escape(names.title)}</b>: {', '.join(kept)}{more}</p>"
    return details(f"🟠 <b>{escape(names.title)}</b>", shown)


def _overview(grid: Grid, where: str) -> str:
    """The rows that fit, and how many do not."""
    rows: list[list[str]] = []
    size = 0
    for row in grid.rows:
        cells = _narrow(grid.head, [_lines(lines) for lines in row.cells])
        size += sum(map(_size, cells)) + 40
        if size > _OVERVIEW and rows:
            break
        rows.append(cells)
    left = grid.rows[len(rows) :]
    made = table(list(map(escape, grid.head)) if len(grid.head) <= _MOST_COLUMNS else _PAIRS, rows)
    return f"{made}\n{_more(left, where)}" if left else made


def _narrow(head: Sequence[str], cells: list[str]) -> list[str]:
    """The cells of a row for the width of a phone: of four columns two, the last two with their titles."""
    if len(head) <= _MOST_COLUMNS:
        return cells
    titled = (f"<i>{escape(title)}</i><br>{cell}" for title, cell in zip(head[2:], cells[2:], strict=True) if cell)
    return ["<br><br>".join(filter(None, cells[:2])), "<br>".join(titled)]


def _more(left: Sequence[Row], where: str) -> str:
    names = sum(len(row.words) for row in left)
    what = f"{plural(len(left), 'group')} with {plural(names, 'table')}" if names else plural(len(left), "row")
    return f"<p><b>{what} of less weight are left out here</b>, or this comment would be too long. {where}</p>"


def _lines(lines: Lines) -> str:
    """The lines of a cell, with a bullet before each of several clauses. The texts of one cell are bounded together."""
    kept, size = [], 0
    clauses = [not (each.code or each.badge or each.href) for each in lines]
    bullet = "• " * (sum(clauses) > 1)
    for line in (bullet * clause + _cell(each) for each, clause in zip(lines, clauses, strict=True)):
        size += _size(line)
        if size > _LONGEST_ROW:
            kept.append("…")
            break
        kept.append(line)
    return "<br>".join(kept)


def _cell(cell: Cell) -> str:
    text = cell.text if len(cell.text) <= _LONGEST else f"{cell.text[: _LONGEST - 1]}…"
    if cell.badge:
        return f"{_mark(text, cell)} <b>{words(text)}</b>".strip()
    shown = code(text) if cell.code else words(text)
    if cell.href:
        return f'<a href="{escape(cell.href)}">{shown}</a>'
    return f"<b>{shown}</b>" if cell.tone == "bad" else shown


def _mark(state: str, cell: Cell) -> str:
    return _STATES.get(state) or _TONES[cell.tone]


def _summary(card: Card) -> str:
    mark = _mark(card.state, Cell("", tone=card.tone))
    name = (
        code(card.names[0])
        if len(card.names) == 1
        else f"{len(card.names):,} {escape(card.noun)}s like {code(card.names[0])}"
    )
    return f"{mark} {name}{': ' if card.state else ''}{words(card.state)}".strip()


def _block(block: Block) -> str:
    match block:
        case Paragraph(text):
            return f"<p>{words(text)}</p>"
        case Facts(pairs):
            return items(pairs)
        case Changes():
            return _changes(block)
        case Listing():
            return _listing(block)
        case Heading(title, text, style):
            said = f" - {words(text)}" if text else ""
            shown = escape(title) if style else code(title)
            return f"<p><b>{shown}</b>{said}</p>"
        case Names(title, names):
            shown = ", ".join(map(code, names[:_MOST_NAMES]))
            more = f" and {len(names) - _MOST_NAMES:,} more" if len(names) > _MOST_NAMES else ""
            return details(escape(title), f"<p>{shown}{more}</p>")
        case Fold(title, blocks):
            return details(escape(title), *map(_block, blocks))
        case Grid():
            return _grid(block)
        case ColourGrid():
            return _squares(block)
        case Picture() | BarChart():
            return ""


_SQUARES: Mapping[Shade, str] = {"good": "🟩", "some": "🟨", "high": "🟧", "bad": "🟥", "unknown": "⬜"}


def _squares(grid: ColourGrid) -> str:
    """A picture of emoji: a comment can hold no other."""
    rows = []
    for name, squares in grid.rows:
        parts = [squares[start : start + grid.joined] for start in range(0, len(squares), grid.joined)]
        worst = (max((each.shade for each in part), key=SHADES.index) for part in parts)
        rows.append([words(name), "".join(_SQUARES[each] for each in worst)])
    legend = " · ".join(f"{_SQUARES[shade]} {words(text)}" for shade, text in grid.legend)
    joined = f", {grid.joined} in a square" if grid.joined > 1 else ""
    made = table([words(grid.corner), words(f"{grid.columns[0]} to {grid.columns[-1]}{joined}")], rows)
    return f"<p>{words(grid.caption)}</p>\n{made}\n<p>{legend}</p>"


def _grid(grid: Grid) -> str:
    rows = [[_lines(lines) for lines in row.cells] for row in grid.rows[:_MOST_ROWS]]
    more = len(grid.rows) - _MOST_ROWS
    made = table(list(map(escape, grid.head)), rows)
    return f"{made}\n<p>and {more:,} more</p>" if more > 0 else made


def _changes(block: Changes) -> str:
    places, results = any(row.places for row in block.rows), any(row.result for row in block.rows)
    head = ["Setting", *block.labels, *(["Policy"] if places else []), *(["Result"] if results else [])]
    return table(head, (_change(row, places=places, results=results) for row in block.rows))


def _change(row: ChangeRow, *, places: bool, results: bool) -> list[str]:
    cells = [code(row.id), code(row.before), code(row.after)]
    cells += [_lines(row.places)] if places else []
    return cells + ([words(row.result)] if results else [])


def _listing(block: Listing) -> str:
    facts = items((*block.facts, *block.after))
    shown = _fences(block.code)
    parts = [f"{shown}\n{facts}" if facts else shown]
    parts += [details("undo", _fences(block.undo))] if block.undo else []
    return "\n\n".join(parts)


def _fences(codes: Iterable[Code]) -> str:
    """A fenced block for each run of code in one language."""
    runs = groupby(codes, key=lambda each: each.language)
    return "\n\n".join(fenced(language, [line for each in run for line in each.shown()]) for language, run in runs)


def _size(text: str) -> int:
    return len(text.encode(errors="backslashreplace"))


def words(text: str) -> str:
    """Prose that may contain foreign text, as HTML. Parts in backticks become code."""
    made = []
    for index, part in enumerate(_CODE.split(printable(text))):
        made.append(code(part) if index % 2 else _broken(escape(_TO_DEFUSE.sub(_defused, part))))
    return "".join(made)


def _broken(text: str) -> str:
    """HTML in which long names of errors may be broken at their underscores, or one would widen its column."""
    return _LONG_NAME.sub(lambda match: match[0].replace("_", "_<wbr>"), text)


def _defused(match: re.Match[str]) -> str:
    """Splits the digits of a commit into pieces that are too short for one."""
    text = match[0]
    return (
        _NOTHING.join(text[start : start + 6] for start in range(0, len(text), 6)) if len(text) > 6 else text + _NOTHING
    )


def code(text: str) -> str:
    """A name or a value as HTML."""
    return f"<code>{escape_markup(escape(printable(text)))}</code>"


def said(text: str) -> str:
    """The output of a program as a fenced block. It needs an empty line before it."""
    return fenced("text", printable_lines(text))


def fenced(language: str, lines: Sequence[str]) -> str:
    """Lines as a fenced block. It needs an empty line before it."""
    body = "\n".join(lines)
    marks = "`" * max(3, 1 + max((len(run) for run in _BACKTICKS.findall(body)), default=0))
    return f"{marks}{language}\n{body}\n{marks}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose cells are already HTML."""
    lines = ["<table>", _row("th", head), *(_row("td", row) for row in rows), "</table>"]
    return "\n".join(lines)


def _row(tag: str, cells: Sequence[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{cell}</{tag}>' for cell in cells)}</tr>"


def items(pairs: Iterable[tuple[str, str]]) -> str:
    """A list of labels and prose; empty without any."""
    lines = [f"<li><b>{words(label)}</b> {words(text)}</li>" for label, text in pairs]
    return "\n".join(["<ul>", *lines, "</ul>"]) if lines else ""


def details(summary: str, *parts: str) -> str:
    """Folded details; the summary is HTML."""
    body = "\n\n".join(part.strip("\n") for part in parts if part)
    return f"<details>\n<summary>{summary}</summary>\n\n{body}\n\n</details>"
