"""The debug log of the command line (``TABLECTL_DEBUG=1``): what went wrong, with tracebacks, on standard error."""

from __future__ import annotations

import logging

from tablectl.delta.credentials import scrub
from tablectl.model.text import escape_output


class _Escaped(logging.Formatter):
    """Tracebacks can contain foreign text."""

    def format(self, record: logging.LogRecord) -> str:
        """The record without credentials and without commands of a terminal."""
        return escape_output(scrub(super().format(record)))


def print_debug_log() -> None:
    """Prints it. Only tablectl's own: other libraries log headers, which contain tokens."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Escaped("%(name)s: %(message)s"))
    log = logging.getLogger("tablectl")
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
