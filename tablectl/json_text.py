"""Reads JSON. All of tablectl reads it here: each text is bounded in bytes and in values before it is parsed.

Three bytes of JSON can be a value, for which Python takes about 100 bytes. Logs, plans, manifests, comments, records
and answers of catalogs are written by others.
"""

from __future__ import annotations

import json
from typing import Any

LARGEST = 16 << 20
"""The maximum size of a text in bytes, unless its reader names another."""
VALUES = 500_000
"""The maximum number of values in a text, unless its reader names another."""
MOST_VALUES = 4_000_000
"""The maximum number of values in a file about a whole lake: a plan of 10,000 tables has 1.4 million."""
_SMALL = 1 << 16
"""Texts up to this size are not counted: their cost is low in every case."""
_DECODER = json.JSONDecoder()


class JsonBudgetError(ValueError):
    """A text has more bytes or values than its limit."""


def check_json(text: bytes | str, largest: int = LARGEST, values: int = VALUES) -> None:
    """Raises ``JsonBudgetError`` for a text above its limits. A text that is not pure ASCII counts twice: Python takes
    up to four bytes for each of its characters.

    Every value except the first follows a comma, a brace or a bracket. Occurrences inside strings are counted too: this
    avoids a parser, and a schema is a JSON text inside a string.
    """
    size = len(text)
    if size <= _SMALL:
        return
    wide = not text.isascii() or ("\\u" in text if isinstance(text, str) else b"\\u" in text)
    if size > largest or (size > largest // 2 and wide):
        raise JsonBudgetError(f"the text has {size:,} bytes, too many of its kind")
    if isinstance(text, str):
        found = text.count(",") + text.count("{") + text.count("[")
    else:
        found = text.count(b",") + text.count(b"{") + text.count(b"[")
    if found > values:
        raise JsonBudgetError(f"the text has about {found:,} values, too many of its kind")


def read_json(text: bytes | str, largest: int = LARGEST, values: int = VALUES, **hooks: Any) -> Any:
    """Parses a text. Raises ``ValueError`` if it is not JSON, above its limits, or nested too deeply. ``hooks`` are
    those of ``json.loads``.
    """
    check_json(text, largest, values)
    try:
        if hooks:
            return json.loads(text, **hooks)
        found = text if isinstance(text, str) else text.decode(json.detect_encoding(text), "surrogatepass")
        try:
            value, end = _DECODER.raw_decode(found)
        except json.JSONDecodeError:
            return json.loads(found)  # it also skips blanks around the value; logs have none there, as a rule
        return value if end == len(found) else json.loads(found)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
