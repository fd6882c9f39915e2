"""Limits on the cost of reading one table's log. Logs are written by others, and a few bytes can unpack to gigabytes.

Every limit is checked before the bytes are parsed or unpacked. Delta stays far below each limit: the state of a table
with 10,000 columns takes a few megabytes, regardless of its number of files.
"""

from __future__ import annotations

from tablectl.storage.table_log import LINE_BYTES

WIDE_BYTES = LINE_BYTES // 2
"""The maximum size of text that is not pure ASCII: Python takes up to four bytes for each of its characters."""
VALUES = 500_000
"""The maximum number of values in one JSON text. Python takes about 100 bytes for an empty value; JSON takes three."""
ACTION_BYTES = 32 << 20
"""The maximum size of all actions in one commit that do not concern files."""
DOMAINS = 10_000
"""The maximum number of domains of one table."""
FEATURES = 1_000
"""The maximum number of table features in a protocol, which reports list; Delta has about thirty."""
FEATURE_LENGTH = 200
"""The maximum length of a feature's name in characters."""
PATH_LENGTH = 1 << 16
"""The maximum length of a data file's path, in characters."""
HINT_BYTES = 1 << 20
"""The maximum size of ``_last_checkpoint``. A real one has at most a few kilobytes."""
STATE_BYTES = 32 << 20
"""The maximum size of the protocol, the metadata and the domains in a checkpoint, unpacked and decoded."""
STATE_VALUES = 500_000
"""The maximum number of values in each of their columns."""

_SMALL = 1 << 16
"""Texts up to this size are not checked: their cost is low in every case."""


class BudgetError(ValueError):
    """A part of a log exceeds a limit."""


def check_json(text: bytes) -> None:
    """Raises ``BudgetError`` if a JSON text has more bytes or values than any action needs.

    Every value except the first follows a comma, a brace or a bracket. Occurrences inside strings are counted too. This
    avoids a parser, and a schema is a JSON text inside a string.
    """
    size = len(text)
    if size <= _SMALL:
        return
    if size > LINE_BYTES or (size > WIDE_BYTES and not (text.isascii() and b"\\u" not in text)):
        raise BudgetError(f"the text has {size:,} bytes, more than any action has")
    values = text.count(b",") + text.count(b"{") + text.count(b"[")
    if values > VALUES:
        raise BudgetError(f"the text has about {values:,} values, more than any action has")
