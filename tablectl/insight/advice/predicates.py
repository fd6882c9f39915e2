"""Reads the conditions of past writes from ``operationParameters.predicate``.

Delta writes them as Spark prints expressions: ``["((region#12 = r1) AND (id#13L > 0))"]``. Attributes have ids, and
literals have no quotes. ``replaceWhere`` has the user's own text. What cannot be read counts as no condition.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from tablectl.frozen import frozen
from tablectl.json_text import read_json

Shape = Literal["equals", "range", "join", "other"]

_LONGEST = 10_000
_DEEPEST = 50
_MOST = 100
_MOST_VALUES = 1_000
_ATTRIBUTE = re.compile(r"(?<![\w.])([A-Za-z_][\w.]*)#\d+L?")
_NAME = re.compile(r"`?([A-Za-z_][\w.]*)`?")
_COMPARISON = re.compile(r"(?P<left>\S+)\s+(?P<sign><=>|>=|<=|=|>|<|IN)\s+(?P<right>\S.*)", re.IGNORECASE | re.DOTALL)
_EQUAL = frozenset({"=", "<=>"})


@frozen
class Condition:
    """A part of a conjunction: one column, and how it is restricted."""

    column: str
    shape: Shape
    """``equals`` a literal or one of some, a ``range``, a ``join`` with another column, or any ``other`` condition."""
    values: frozenset[str] = frozenset()
    """The literals of ``equals``, as the log spells them. They are data: no report shows them."""


def read_predicate(text: str) -> tuple[Condition, ...]:
    """The conditions of a predicate that all hold; ``()`` for a text that cannot be read. Bounded."""
    if len(text) > _LONGEST or text.endswith("…"):
        return ()
    found = [each for part in _expressions(text) for each in _conjuncts(part, 0)]
    return tuple(dict.fromkeys(found[:_MOST]))


def _expressions(text: str) -> list[str]:
    """The expressions of a JSON list of texts, or the text itself."""
    if not text.lstrip().startswith("["):
        return [text]
    try:
        parts = read_json(text)
    except ValueError:
        return []
    return [each for each in parts if isinstance(each, str)] if isinstance(parts, list) else []


def _conjuncts(text: str, depth: int) -> Iterator[Condition]:
    inner = _unwrapped(text.strip())
    if inner is None or depth > _DEEPEST:
        return
    parts = _split(inner, " AND ")
    if len(parts) > 1:
        for part in parts:
            yield from _conjuncts(part, depth + 1)
    elif len(_split(inner, " OR ")) > 1:
        yield from (Condition(name, "other") for name in _attributes(inner))
    else:
        yield from _condition(inner)


def _unwrapped(text: str) -> str | None:
    """The text without parentheses around it; ``None`` if they are not balanced, or too many."""
    for _ in range(_DEEPEST):
        closed = _closes(text)
        if closed is None:
            return None
        if not (text.startswith("(") and closed == len(text) - 1):
            return text
        text = text[1:-1].strip()
    return None


def _closes(text: str) -> int | None:
    """Where the first parenthesis closes, -1 if there is none; ``None`` if they are not balanced."""
    depth, first = 0, -1
    for place, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if depth < 0:
            return None
        if char == ")" and depth == 0 and first < 0:
            first = place
    return first if depth == 0 else None


def _split(text: str, word: str) -> list[str]:
    """The parts between a word outside of parentheses."""
    parts, depth, start, upper = [], 0, 0, text.upper()
    if len(upper) != len(text):
        return [text]
    for place, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if depth == 0 and place >= start and upper.startswith(word, place):
            parts.append(text[start:place])
            start = place + len(word)
    return [*parts, text[start:]]


def _condition(text: str) -> Iterator[Condition]:
    found = _COMPARISON.fullmatch(text)
    if found is None:
        yield from (Condition(name, "other") for name in _attributes(text) if not text.lower().startswith("isnotnull"))
        return
    sign, left, right = found["sign"].upper(), found["left"], found["right"].strip()
    column, other = _column(left, text), _ATTRIBUTE.fullmatch(right)
    if other is not None and sign in _EQUAL and column:
        yield from (Condition(name, "join") for name in dict.fromkeys((column, other[1])))
    elif column and not _ATTRIBUTE.search(right):
        yield _compared(column, sign, right)
    elif other is not None and not _ATTRIBUTE.search(left):
        yield _compared(other[1], sign, left)
    else:
        yield from (Condition(name, "other") for name in _attributes(text))


def _compared(column: str, sign: str, literal: str) -> Condition:
    if sign in _EQUAL:
        return Condition(column, "equals", frozenset({_literal(literal)}))
    if sign == "IN":
        listed = _unwrapped(literal) if literal.startswith("(") else literal
        values = frozenset(_literal(each) for each in (listed or "").split(","))
        return Condition(column, "equals", values) if 0 < len(values) <= _MOST_VALUES else Condition(column, "other")
    return Condition(column, "range")


def _column(text: str, whole: str) -> str:
    """The column that a side of a comparison is; a plain name only in text without attribute ids."""
    found = _ATTRIBUTE.fullmatch(text)
    if found is None and not _ATTRIBUTE.search(whole):
        found = _NAME.fullmatch(text)
    return found[1] if found else ""


def _attributes(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_ATTRIBUTE.findall(text)))


def _literal(text: str) -> str:
    bare = text.strip()
    return bare[1:-1] if len(bare) > 1 and bare[0] == bare[-1] and bare[0] in "'\"" else bare
