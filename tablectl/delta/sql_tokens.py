"""The tokens of Spark's SQL (``SqlBaseLexer.g4`` of Spark 4), for texts that tablectl reads itself; and those of
Delta's own parser, which cuts the same text in other places.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from types import MappingProxyType

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<comment>--[^\n]*|/\*.*?\*/)
    | (?P<text>[rR]'[^']*'|[rR]"[^"]*"|'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
    | (?P<name>`(?:[^`]|``)+`)
    | (?P<open>/\*.*|(?!``)['"`].*)
    | (?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?:[lLsSyYfFdD]|[bB][dD])?(?!\w))
    | (?P<word>\w+)
    | (?P<mark><=>|<=|>=|<>|!=|==|\|\||->|=>|::|[-+*/%<>=!&|^~.,()\[\]:;])
    | (?P<other>``|\S)
    )""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class SqlToken:
    """One token, as it is written."""

    kind: str
    """``text``, ``name`` (in backticks), ``number``, ``word``, ``mark``; or not part of SQL: ``open``, the rest of the
    text after a quote or a comment without an end, and ``other``.
    """
    text: str
    line: int
    start: int
    """Where it begins in the whole text."""

    @property
    def end(self) -> int:
        """The place after its last character."""
        return self.start + len(self.text)

    @property
    def word(self) -> str:
        """A word in upper case; empty for any other token."""
        return self.text.upper() if self.kind == "word" else ""

    @property
    def identifier(self) -> str:
        """The name that it writes; empty if it writes none."""
        digits_first = self.kind == "number" and self.text.isalnum() and not self.text.isdecimal()
        return self.value if digits_first or self.kind in {"name", "word"} else ""

    @property
    def value(self) -> str:
        """A text without its quotes and escapes, a name without its backticks, and any other token as it is written.

        Spark drops the backslash before a character without a meaning of its own, and since 4.0 takes two quotes for
        one (``spark.sql.legacy.consecutiveStringLiterals.enabled``).
        """
        if self.kind == "name":
            return self.text[1:-1].replace("``", "`")
        if self.kind != "text":
            return self.text
        if self.text[0] in "rR":
            return self.text[2:-1]
        escape = _ESCAPES[self.text[0]]
        return escape.sub(_unescaped, self.text[1:-1])


_ESCAPES = MappingProxyType(
    {
        quote: re.compile(
            rf"\\u([0-9a-fA-F]{{4}})|\\U([0-9a-fA-F]{{8}})|\\([01][0-7]{{2}})|\\(.)|({quote}){quote}", re.DOTALL
        )
        for quote in "'\""
    }
)
"""``SparkParserUtils.unescapeSQLString`` of Spark 4.2."""
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "0": "\0", "Z": "\x1a", "%": "\\%", "_": "\\_"}
_LAST_CHARACTER = 0x10FFFF


def _unescaped(found: re.Match[str]) -> str:
    short, long, octal, escaped, doubled = found.groups()
    if escaped or doubled:
        return _CONTROLS.get(escaped, escaped) if escaped else doubled
    number = int(octal, 8) if octal else int(short or long, 16)
    return chr(number) if number <= _LAST_CHARACTER else found[0]


class SqlTextError(ValueError):
    """A text is not SQL of the form that is read."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(f"line {line}: {what}")
        self.line, self.what = line, what


def sql_tokens(text: str) -> Iterator[SqlToken]:
    """The tokens of a text, without comments. Raises ``SqlTextError`` for what is not part of SQL."""
    for token in any_tokens(text):
        if token.kind in {"open", "other"}:
            raise SqlTextError(token.line, f"{text[token.start : token.start + 10].strip()!r} is not part of SQL")
        yield token


def any_tokens(text: str) -> Iterator[SqlToken]:
    """The tokens of any text, without comments. What is not part of SQL is of the kind ``open`` or ``other``."""
    at, line, counted = 0, 1, 0
    while (found := _TOKEN.match(text, at)) is not None:
        kind = str(found.lastgroup)
        start = found.start(kind)
        line, counted = line + text.count("\n", counted, start), start
        if kind != "comment":
            yield SqlToken(kind, found[kind], line, start)
        at = found.end()


_DELTA_HIDDEN = re.compile(r"[ \r\n\t]+")
"""White space. ``why_refused`` of ``expressions.py`` admits no comments."""
_DELTA_TOKENS = tuple(
    re.compile(pattern, re.DOTALL | re.ASCII | re.IGNORECASE)
    for pattern in (
        r"'(?:[^'\\]|\\.)*'",
        r'"(?:[^"\\]|\\.)*"',
        r"`(?:[^`]|``)*`",
        r"[a-z0-9_]+",
        r"[0-9]+e[+-]?[0-9]+(?:bd|d)?",
        r"(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?(?:bd|d)?(?![a-z0-9_])",
        r"<=>|<=|>=|<>|!=|!>|!<|==|\|\|",
        r".",
    )
)
"""The tokens of ``DeltaSqlBase.g4`` of Delta 4.4.0. As in Spark's lexer, the longest one counts."""


def stored_by_delta(text: str) -> str:
    """What Delta stores for the expression of an ``ADD CONSTRAINT``: the tokens of its own lexer with a blank between
    them (``buildCheckConstraintText`` in ``DeltaSqlParser.scala`` of Delta 4.4.0).
    """
    tokens, at = list[str](), 0
    while at < len(text):
        if hidden := _DELTA_HIDDEN.match(text, at):
            at = hidden.end()
        else:
            found = (pattern.match(text, at) for pattern in _DELTA_TOKENS)
            tokens.append(max((each[0] for each in found if each), key=len))
            at += len(tokens[-1])
    return " ".join(tokens)
