"""Reads and writes JSON. All of tablectl does it here.

Each text is bounded in bytes and in values before it is parsed: three bytes of JSON can be a value, for which Python
takes about 100 bytes. Logs, plans, manifests, comments, records and answers of catalogs are written by others.

``typed_json`` does it for records, as far as jobs on Python 3.9 need not import them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from json.encoder import encode_basestring, encode_basestring_ascii
from types import MappingProxyType
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
            return json.loads(found)  # it also skips blanks around the value; logs usually have none there
        return value if end == len(found) else json.loads(found)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


_WORDS: Mapping[object, str] = MappingProxyType({None: "null", True: "true", False: "false"})


def _text_of(value: object) -> str:
    if not isinstance(value, datetime):
        raise TypeError(f"{type(value).__name__} is not JSON")
    return value.isoformat().replace("+00:00", "Z")


def write_json(
    value: object,
    *,
    indent: int | None = None,
    sort: bool = False,
    ascii: bool = True,  # noqa: A002
    spaces: bool = False,
) -> str:
    """The JSON of a plain value, or of a time. Raises ``TypeError`` for other objects.

    Without ``indent`` it is one line, as short as possible unless ``spaces`` follow commas and colons. ``sort`` sorts
    keys; with ``ascii`` off, characters are not escaped.
    """
    if indent is None:
        separators = (", ", ": ") if spaces else (",", ":")
        return json.dumps(value, default=_text_of, sort_keys=sort, ensure_ascii=ascii, separators=separators)
    quote = encode_basestring_ascii if ascii else encode_basestring

    # `json.dumps` leaves its C encoder as soon as it indents: this takes a third of its time.
    def lines(value: Any, outer: str) -> str:
        kind = type(value)
        if kind is str:
            return quote(value)
        if kind is tuple or kind is list:
            inner = outer + " " * indent
            return f"[{inner}{f',{inner}'.join([lines(each, inner) for each in value])}{outer}]" if value else "[]"
        if value is None or kind is bool:
            return _WORDS[value]
        if kind is int:
            return str(value)
        if isinstance(value, (str, int, float)):
            return json.dumps(value, ensure_ascii=ascii)
        if kind is not dict:
            return quote(_text_of(value))
        inner = outer + " " * indent
        parts = [f"{quote(key)}: {lines(value[key], inner)}" for key in (sorted(value) if sort else value)]
        return f"{{{inner}{f',{inner}'.join(parts)}{outer}}}" if parts else "{}"

    return lines(value, "\n")
