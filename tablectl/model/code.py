"""The text of a statement as lines in a language, so that whoever shows it splits nothing himself.

A line break inside a name is part of its line. SQL can hold such a name (Delta maps columns, so a column may be called
anything), and a backtick has no escapes. In Python every name is a literal of ``ascii()``, which never breaks a line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from tablectl.model.text import printable

_PYTHON = "(spark."
"""How ``operations`` opens each DataFrame write. No statement of SQL begins so."""
_SQL = re.compile(r"'(?:[^'\\]|\\.)*'|`[^`]*`|(?P<end>\n)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Code:
    """A statement. ``lines`` are as the statement holds them: a name in a line may hold control characters."""

    language: Literal["sql", "python"]
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        """What an engine is given, or for Python what a reader is shown."""
        return "\n".join(self.lines)

    def shown(self) -> tuple[str, ...]:
        """The lines for people: printable, and a semicolon behind SQL."""
        *first, last = map(printable, self.lines)
        return (*first, last + ";" * (self.language == "sql"))


def read_code(text: str) -> Code:
    """The statement that a plan file or a report keeps as text: the inverse of ``Code.text``."""
    if text.startswith(_PYTHON):
        return Code("python", tuple(text.split("\n")))
    lines, start = list[str](), 0
    for token in _SQL.finditer(text):
        if token["end"]:
            lines.append(text[start : token.start()])
            start = token.end()
    return Code("sql", (*lines, text[start:]))
