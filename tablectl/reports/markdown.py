"""Markdown for comments on GitHub and GitLab, in which foreign text has no special meaning.

Most of it is HTML in Markdown. Within an HTML block (which begins a line and contains no empty line) Markdown is not
interpreted, so escaping HTML is enough. In ``<code>`` and in fenced blocks, mentions, references and links are not
interpreted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape

from tablectl.documents.style import printable_lines
from tablectl.model.text import escape_markup, printable

LIMIT = 65_536
"""The length of a comment on GitHub, in characters. It is applied to bytes of UTF-8, which are never fewer."""
_TO_DEFUSE = re.compile(r"(?:[@#!~%$&^]|(?<!\d):|\bGH-|\bwww)(?=[\w/\".\[+])|\b[0-9a-f]{7,40}\b", re.IGNORECASE)
"""What the sites turn into links if a word follows: people, issues, merge requests, labels, addresses, commits,
emoji."""
_NOTHING = "\u200b"
_LONG_NAME = re.compile(r"(?<![A-Z0-9])[A-Z0-9]+(?:_[A-Z0-9]+){3,}")
_CODE = re.compile(r"`([^`]+)`")
_BACKTICKS = re.compile(r"`+")


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
