"""The tokens of Spark's SQL (``SqlBaseLexer.g4`` of Spark 4), for texts that tablectl reads itself."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tablectl.support.frozen import frozen

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<comment>--[^\n]*|/\*.*?\*/)
    | (?P<text>[rR]?'(?:[^'\\]|\\.)*'|[rR]?"(?:[^"\\]|\\.)*")
    | (?P<name>`(?:[^`]|``)+`)
    | (?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[A-Za-z]{0,2}(?![A-Za-z0-9_]))
    | (?P<word>[A-Za-z0-9_]+)
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
        return self.text if self.kind == "word" else ""

    @property
    def string(self) -> str:
        """The value of a ``text``: Spark drops the backslash before a character without a meaning of its own."""
        if self.text[0] in "rR":
            return self.text[2:-1]
        return _ESCAPE.sub(lambda found: _CONTROLS.get(found[1], found[1]), self.text[1:-1])


_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "0": "\0", "Z": "\x1a", "%": "\\%", "_": "\\_"}


def sql_tokens(text: str) -> Iterator[SqlToken]:
    """The tokens of a text, without comments. Raises ``ValueError`` at what is none."""
    at, end, line, counted = 0, len(text.rstrip()), 1, 0
    while at < end:
        found = _TOKEN.match(text, at)
        if found is None or found.lastgroup is None:
            line += text.count("\n", counted, at)
            raise ValueError(f"line {line}: {text[at : at + 10].strip()!r} is not part of SQL")
        start = found.start(found.lastgroup)
        line, counted = line + text.count("\n", counted, start), start
        if found.lastgroup != "comment":
            yield SqlToken(found.lastgroup, found[found.lastgroup], line)
        at = found.end()
