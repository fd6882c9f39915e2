"""The text of a statement as lines of SQL or Python. Callers print the lines and never split the text themselves.

A line break inside a name is part of its line. SQL can contain such a name, because column mapping allows any column
name and a backtick has no escapes. In Python every name is a literal made by ``ascii()``, which never breaks a line.
"""

from __future__ import annotations

import re
from typing import Literal

from tablectl.frozen import frozen
from tablectl.model.text import printable

_PYTHON = "(spark."
"""The start of each DataFrame write that ``operations`` renders. No SQL statement starts like this."""
_SQL = re.compile(r"'(?:[^'\\]|\\.)*(?:'|\\?\Z)|`[^`]*`|(?P<end>\n)", re.DOTALL)


@frozen
class Code:
    """A statement. ``lines`` hold the statement unchanged: a name in a line can contain control characters."""

    language: Literal["sql", "python", "yaml", "diff", "text"]
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        """The text for the engine, or for readers if it is Python."""
        return "\n".join(self.lines)

    def shown(self) -> tuple[str, ...]:
        """The lines for people: printable, with a semicolon after SQL."""
        *first, last = map(printable, self.lines)
        return (*first, last + ";" * (self.language == "sql"))


def read_code(text: str) -> Code:
    """Parses the text of a statement in a plan file or a report. The inverse of ``Code.text``."""
    if text.startswith(_PYTHON):
        return Code("python", tuple(text.split("\n")))
    lines, start = list[str](), 0
    for token in _SQL.finditer(text):
        if token["end"]:
            lines.append(text[start : token.start()])
            start = token.end()
    return Code("sql", (*lines, text[start:]))
