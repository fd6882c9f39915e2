"""Reads and writes JSON. All of tablectl does it here.

Each text is bounded in bytes and in values before it is parsed: three bytes of JSON can be a value, for which Python
takes about 100 bytes. Logs, plans, manifests, comments, records and answers of catalogs are written by others.

A record (a dataclass) is its own JSON: an object with its fields, and with the properties that ``in_json`` marks.
``model/json_records.py`` reads records.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import datetime
from functools import cache
from json.encoder import encode_basestring, encode_basestring_ascii
from types import MappingProxyType
from typing import Any, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., object])

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
OMITTED: Mapping[str, object] = MappingProxyType({"written": "if not the default"})
"""The metadata of a field that is not written if it has its default value."""
UNWRITTEN: Mapping[str, object] = MappingProxyType({"written": "never"})
"""The metadata of a field that is not part of the JSON: ``in_json`` properties say what of it is."""


def in_json(function: _Function) -> _Function:
    """Marks the function of a property that belongs to the JSON of its record: ``@property``, then ``@in_json``."""
    function.__dict__["in_json"] = True
    return function


def json_properties(kind: type[Any]) -> Mapping[str, property]:
    """The properties of a record type that belong to its JSON, by name."""
    found = {name: each for base in reversed(kind.__mro__) for name, each in vars(base).items()}
    return {
        name: each
        for name, each in found.items()
        if isinstance(each, property) and getattr(each.fget, "in_json", False)
    }


def json_form(record: object) -> Any:
    """The JSON object of a record, whose values may be records; the text of a time.

    A record whose class names a property as ``WRITTEN_AS`` is written as that property.
    """
    if isinstance(record, datetime):
        return record.isoformat().replace("+00:00", "Z")
    kind: Any = type(record)
    names, omitted = _keys_of(kind)
    if names is None:
        return getattr(record, kind.WRITTEN_AS) if hasattr(kind, "WRITTEN_AS") else dict(record)  # type: ignore[call-overload]
    found = {name: getattr(record, name) for name in names}
    for name, default in omitted:
        if found[name] == default:
            del found[name]
    return found


@cache
def _keys_of(kind: type[Any]) -> tuple[tuple[str, ...] | None, tuple[tuple[str, object], ...]]:
    """The keys of a type, ``None`` if it is not written as an object, and those that are omitted with a default."""
    if issubclass(kind, Mapping) or hasattr(kind, "WRITTEN_AS"):
        return None, ()
    known = [each for each in fields(kind) if each.metadata != UNWRITTEN]  # or ``TypeError``: not a record
    omitted = tuple((each.name, each.default) for each in known if each.metadata == OMITTED)
    return (*json_properties(kind), *(each.name for each in known)), omitted


def write_json(
    value: object,
    *,
    indent: int | None = None,
    sort: bool = False,
    ascii: bool = True,  # noqa: A002
    spaces: bool = False,
) -> str:
    """The JSON of a value, a record, or both within each other. Raises ``TypeError`` for other objects.

    Without ``indent`` it is one line, as short as possible unless ``spaces`` follow commas and colons. ``sort`` sorts
    keys; with ``ascii`` off, characters are not escaped.
    """
    if indent is None:
        separators = (", ", ": ") if spaces else (",", ":")
        return json.dumps(value, default=json_form, sort_keys=sort, ensure_ascii=ascii, separators=separators)
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
        found = value if kind is dict else json_form(value)
        if type(found) is str:
            return quote(found)
        inner = outer + " " * indent
        parts = [f"{quote(key)}: {lines(found[key], inner)}" for key in (sorted(found) if sort else found)]
        return f"{{{inner}{f',{inner}'.join(parts)}{outer}}}" if parts else "{}"

    return lines(value, "\n")
