"""Markdown for comments on GitHub and GitLab, in which foreign text has no special meaning.

Most of it is HTML in Markdown. Within an HTML block (which begins a line and contains no empty line) Markdown is not
interpreted, so escaping HTML is enough. In ``<code>`` and in fenced blocks, mentions, references and links are not
interpreted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import groupby

from tablectl.model.code_block import read_code
from tablectl.model.output_escapes import escape_markup
from tablectl.model.text import printable
from tablectl.reports.style import plural, printable_lines

LIMIT = 65_536
"""The length of a comment on GitHub, in characters. It is applied to bytes of UTF-8, which are never fewer."""
_FOR_NOTICE = 4_000
"""Bytes reserved for the notice of what is left out and where to read it."""
_TO_DEFUSE = re.compile(r"(?:[@#!~%$&^]|(?<!\d):|\bGH-|\bwww)(?=[\w/\".\[+])|\b[0-9a-f]{7,40}\b", re.IGNORECASE)
"""What the sites turn into links if a word follows: people, issues, merge requests, labels, addresses, commits,
emoji."""
_NOTHING = "\u200b"
_LONG_NAME = re.compile(r"[A-Z0-9]+(?:_[A-Z0-9]+){3,}")
_CODE = re.compile(r"`([^`]+)`")
_BACKTICKS = re.compile(r"`+")


def words(text: str) -> str:
    """Prose that may contain foreign text, as HTML. Parts in backticks become code."""
    made = []
    for index, part in enumerate(_CODE.split(printable(text))):
        made.append(code(part) if index % 2 else _broken(escape(_TO_DEFUSE.sub(_defused, part))))
    return "".join(made)


def _broken(text: str) -> str:
    """HTML in which long names of errors may be broken at their underscores: one would widen its column for all rows."""
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


def fence(*statements: str) -> str:
    """Statements as fenced blocks, one for each run of statements in the same language. They need an empty line before
    them.
    """
    codes = groupby(map(read_code, statements), key=lambda each: each.language)
    return "\n\n".join(fenced(name, [line for each in group for line in each.shown()]) for name, group in codes)


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


def fitted(head: str, blocks: Iterable[str], names: Sequence[str], foot: str, where: str, limit: int = LIMIT) -> str:
    """A comment of at most ``limit`` bytes.

    Each of ``blocks`` is about the table at the same position in ``names``. The blocks are generated one by one. If the
    comment gets too long, whole blocks are left out from the end. ``where`` says, as HTML, where the rest can be read.
    """
    room = limit - _size(head) - _size(foot) - 8
    kept: list[str] = []
    sizes: list[int] = []
    for block in blocks:
        kept.append(block)
        sizes.append(_size(block) + 2 + (sizes[-1] if sizes else 0))
        if sizes[-1] > room:
            break
    if sizes and sizes[-1] > room:
        notice = _size(where) + _FOR_NOTICE
        while sizes and sizes[-1] > room - notice:
            sizes.pop()
            kept.pop()
        kept.append(_left_out(names[len(kept) :], where, notice))
    return "\n\n".join([head, *kept, foot]) + "\n"


def _left_out(names: Sequence[str], where: str, room: int) -> str:
    count = plural(len(names), "table")
    verb = "is" if len(names) == 1 else "are"
    said = f"<p><b>{count} {verb} left out here</b>, or this comment would be too long. {where}</p>"
    listed = list(_as_fit(names, room - _size(said) - 200))
    more = f" and {len(names) - len(listed)} more" if len(listed) < len(names) else ""
    if not listed:
        return said
    return f"{said}\n\n<details>\n<summary>{count}</summary>\n<p>{', '.join(listed)}{more}</p>\n</details>"


def _as_fit(names: Iterable[str], room: int) -> Iterator[str]:
    for name in names:
        room -= _size(code(name)) + 2
        if room < 0:
            return
        yield code(name)


def _size(text: str) -> int:
    return len(text.encode(errors="backslashreplace"))
