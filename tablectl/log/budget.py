"""Limits on the cost of reading one table's log. Logs are written by others, and a few bytes can unpack to gigabytes.

Every limit is checked before the bytes are parsed or unpacked. Delta stays far below each limit: the state of a table
with 10,000 columns takes a few megabytes, regardless of its number of files.
"""

from __future__ import annotations

from tablectl.json_text import JsonBudgetError

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


class BudgetError(JsonBudgetError):
    """A part of a log exceeds a limit."""
