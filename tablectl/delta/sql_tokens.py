"""The tokens of Spark's SQL (``SqlBaseLexer.g4`` of Spark 4), for texts that tablectl reads itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import MappingProxyType

from tablectl.support.frozen import frozen

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<comment>--[^\n]*|/\*.*?\*/)
    | (?P<text>[rR]'(?:[^'\\]|\\.)*'|[rR]"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
    | (?P<name>`(?:[^`]|``)+`)
    | (?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[A-Za-z]{0,2}(?!\w))
    | (?P<word>\w+)
    | (?P<mark><=>|<=|>=|<>|!=|==|\|\||->|[-+*/%<>=!&|^~.,()\[\]:;])
    )""",
    re.VERBOSE | re.DOTALL,
)


@frozen
class SqlToken:
    """One token, as it is written."""

    kind: str
    """``text``, ``name`` (in backticks), ``number``, ``word`` or ``mark``."""
    text: str
    line: int

    @property
    def word(self) -> str:
        """A word in upper case; empty for any other token."""
        return self.text.upper() if self.kind == "word" else ""

    @property
    def identifier(self) -> str:
        """The name that it writes; empty if it writes none."""
        if self.kind == "name":
            return self.text[1:-1].replace("``", "`")
        named = self.kind == "word" or (self.kind == "number" and self.text.isalnum() and not self.text.isdecimal())
        return self.text if named else ""

    @property
    def string(self) -> str:
        """The value of a ``text``: Spark drops the backslash before a character without a meaning of its own, and since
        4.0 takes two quotes for one (``spark.sql.legacy.consecutiveStringLiterals.enabled``).
        """
        if self.text[0] in "rR":
            return self.text[2:-1]
        escape = _ESCAPES[self.text[0]]
        return escape.sub(lambda found: _CONTROLS.get(found[1], found[1] or self.text[0]), self.text[1:-1])


_ESCAPES = MappingProxyType({quote: re.compile(rf"\\(.)|{quote}{quote}", re.DOTALL) for quote in "'\""})
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "0": "\0", "Z": "\x1a", "%": "\\%", "_": "\\_"}


class SqlTextError(ValueError):
    """A text is not SQL of the form that is read."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(f"line {line}: {what}")
        self.line, self.what = line, what


def sql_tokens(text: str) -> Iterator[SqlToken]:
    """The tokens of a text, without comments. Raises ``SqlTextError``."""
    at, end, line, counted = 0, len(text.rstrip()), 1, 0
    while at < end:
        found = _TOKEN.match(text, at)
        if found is None or found.lastgroup is None:
            line += text.count("\n", counted, at)
            raise SqlTextError(line, f"{text[at : at + 10].strip()!r} is not part of SQL")
        start = found.start(found.lastgroup)
        line, counted = line + text.count("\n", counted, start), start
        if found.lastgroup != "comment":
            yield SqlToken(found.lastgroup, found[found.lastgroup], line)
        at = found.end()
