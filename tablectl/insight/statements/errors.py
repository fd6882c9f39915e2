"""The error of texts that are no statements whose conflicts can be determined."""

from __future__ import annotations

from tablectl.model.errors import TablectlError
from tablectl.model.text import printable

_MOST_SHOWN = 50


class StatementError(TablectlError):
    """A text that is not a statement whose conflicts can be determined."""


def shown_start(sql: str) -> str:
    """The beginning of a statement, in quotes and on one line."""
    text = printable(" ".join(sql.split()))
    return f"'{text if len(text) <= _MOST_SHOWN else f'{text[: _MOST_SHOWN - 1]}…'}'"
