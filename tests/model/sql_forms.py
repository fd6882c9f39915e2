"""Which form a statement's SQL has: regular expressions made from the templates of the operations' forms."""

from __future__ import annotations

import re
from functools import cache

from tablectl.model.operations import OPERATIONS, StatementForm

FORMS = tuple(dict.fromkeys(form for each in OPERATIONS for form in each.forms))

_NAME = r"`(?:[^`]|``)+`"
_PATH = rf"{_NAME}(?:\.{_NAME})*"
_TEXT = r"'(?:[^'\\]|\\.)*'"
_PAIR = rf"{_TEXT}\s*=\s*{_TEXT}"
_SLOTS = {
    "table": _PATH,
    "columns": rf"{_PATH}(?:,\s*{_PATH})*",
    "pairs": rf"{_PAIR}(?:,\s*{_PAIR})*",
    "keys": rf"{_TEXT}(?:,\s*{_TEXT})*",
    "feature": _NAME,
    "name": _NAME,
    "column": _PATH,
    "expression": r".+",
    "number": r"[0-9]+",
}
"""Slot → the text that it may hold. Names and texts are always quoted. ``tests/delta/test_expressions.py`` says what an
expression may hold."""


def form_of(sql: str) -> StatementForm:
    """The form of a statement. Raises ``ValueError`` if it has none, or several."""
    found = [form for form in FORMS if _pattern(form.template).fullmatch(sql.strip())]
    if len(found) != 1:
        raise ValueError(f"the statement has {len(found)} forms: {sql[:200]}")
    return found[0]


@cache
def _pattern(template: str) -> re.Pattern[str]:
    parts = re.split(r"(\{\w+\}|\s+|\(|\)|,)", template)
    return re.compile("".join(map(_part, parts)), re.DOTALL)


def _part(part: str) -> str:
    if part.startswith("{"):
        return _SLOTS[part[1:-1]]
    if part in {"(", ")"}:
        return rf"\s*\{part}" if part == ")" else r"\s*\(\s*"
    return r"\s+" if part.isspace() else re.escape(part)
