"""What one table's log may cost to read. Logs are written by others, and a few bytes can unpack to gigabytes.

Every limit is checked before the bytes are parsed or unpacked. What Delta writes stays far below each: the state of a
table with 10,000 columns is a few megabytes, however many files it has.
"""

from __future__ import annotations

LINE_BYTES = 16 << 20
"""Of one line of JSON, and of a file that is read whole."""
WIDE_BYTES = LINE_BYTES // 2
"""Of text that is not ASCII only: Python takes up to four bytes for each of its characters."""
VALUES = 500_000
"""Values in one JSON text: Python takes about 100 bytes for an empty one, which JSON writes with three."""
ACTION_BYTES = 32 << 20
"""Of all actions in one commit that are not about files."""
DOMAINS = 10_000
"""Domains of one table."""
PATH_LENGTH = 1 << 16
"""Characters of the path of one data file."""
HINT_BYTES = 1 << 20
"""Of ``_last_checkpoint``, which is at most a few kilobytes."""
STATE_BYTES = 32 << 20
"""Of the protocol, the metadata and the domains in a checkpoint, unpacked and decoded."""
STATE_VALUES = 500_000
"""Values of each column of these."""

_SMALL = 1 << 16
"""What is not counted at all: it is cheap whatever it holds."""


class BudgetError(ValueError):
    """A part of a log is larger than tablectl reads."""


def check_json(text: bytes) -> None:
    """Raises ``BudgetError`` where a JSON text holds more bytes or values than any action does.

    A value other than the first has a comma, a brace or a bracket before it. Those inside strings are counted too:
    it takes no parser then, and a schema is a text inside a text.
    """
    size = len(text)
    if size <= _SMALL:
        return
    if size > LINE_BYTES or (size > WIDE_BYTES and not (text.isascii() and b"\\u" not in text)):
        raise BudgetError(f"the text has {size:,} bytes, more than any action has")
    values = text.count(b",") + text.count(b"{") + text.count(b"[")
    if values > VALUES:
        raise BudgetError(f"the text has about {values:,} values, more than any action has")
