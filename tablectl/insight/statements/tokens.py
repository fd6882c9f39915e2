"""The tokens of the statements that sqlglot does not read.

The lexical rules are those of Spark (``SqlBaseLexer.g4``): names in backticks, texts in single or double quotes with
backslash escapes, comments with ``--`` or ``/* */``.
"""

from __future__ import annotations

import re
from enum import Enum, auto

from tablectl.insight.statements.actions import StatementError, shown_start
from tablectl.support.frozen import frozen


class TokenKind(Enum):
    """The kinds that parsing distinguishes."""

    WORD = auto()
    NAME = auto()
    """In backticks."""
    TEXT = auto()
    """In quotes."""
    SYMBOL = auto()


@frozen
class Token:
    """One token with its place in the statement."""

    kind: TokenKind
    text: str
    """Without quotes and escapes."""
    start: int
    end: int
    """The place after its last character."""


_TOKEN = re.compile(
    r"""
    (?P<space>\s+|--[^\n]*|/\*.*?\*/)
    |(?P<name>`(?:[^`]|``)*`)
    |(?P<text>[rR]?'(?:[^'\\]|\\.|'')*'|[rR]?"(?:[^"\\]|\\.|"")*")
    |(?P<word>\d+\.\d+(?!\w)|\w+)
    |(?P<symbol>\S)
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "0": "\0"}


def first_word(sql: str) -> str:
    """The first word of a text in upper case; empty if it begins with something else."""
    at = 0
    while (match := _TOKEN.match(sql, at)) is not None:
        if match.lastgroup != "space":
            return match.group().upper() if match.lastgroup == "word" else ""
        at = match.end()
    return ""


def tokens_of(sql: str) -> tuple[Token, ...]:
    """The tokens of a text, without comments. Raises ``StatementError`` for quotes and comments without an end."""
    found: list[Token] = []
    for match in _TOKEN.finditer(sql):
        group, text = str(match.lastgroup), match.group()
        if group == "symbol" and (text in "`'\"" or sql.startswith("/*", match.start())):
            raise StatementError(f"the statement {shown_start(sql)} cannot be read: {text} has no end", "close it")
        if group != "space":
            found.append(Token(TokenKind[group.upper()], _plain(group, text), match.start(), match.end()))
    return tuple(found)


def _plain(group: str, text: str) -> str:
    if group == "name":
        return text[1:-1].replace("``", "`")
    if group == "text":
        raw = text[0] in "rR"
        inner = text[2 if raw else 1 : -1].replace(text[-1] * 2, text[-1])
        return inner if raw else _ESCAPE.sub(lambda match: _CONTROLS.get(match.group(1), match.group(1)), inner)
    return text
