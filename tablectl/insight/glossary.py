"""The terms of conflicts that ``tablectl explain`` knows: exceptions, error classes, isolation levels, and conditions
that stop a stream. ``docs/conflict-terms.md`` explains them.

Which operations cause an exception is not stated there: the matrix of a table states it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache

from pydantic import computed_field

from tablectl.conflicts.transactions import Conflict, Level
from tablectl.delta.client_families import DELTA_RS
from tablectl.insight.explain_word import PageRow, conflict_rows, key_of

_NAMED = re.compile(r"(?<!_)DELTA_[A-Z_.]{4,200}|\b[A-Z]\w{2,60}Exception\b")
"""An error class or an exception in a text that someone pasted."""
_WHAT_TO_DO = "what to do"
"""The column that the tables of terms have."""
_WHAT_IT_ADDS = "what it adds"
"""The column of the table of parts of error classes."""


@dataclass(frozen=True, slots=True)
class Term:
    """One explained term."""

    name: str
    """An error class or an isolation level."""
    meaning: str
    ways: tuple[str, ...]
    source: str
    conflict: Conflict | None = None
    level: Level | None = None
    detail: str = ""
    """The meaning of the part of the error class that was asked for: ``ROW_LEVEL_CHANGES``."""

    @computed_field
    @property
    def exception(self) -> str:
        """What Spark raises for it; empty for an isolation level."""
        return self.conflict.exception if self.conflict else ""

    @property
    def title(self) -> str:
        """The name, and the exception."""
        return f"{self.name} ({self.exception})" if self.exception else self.name


def find_term(text: str) -> Term | None:
    """The term of an exception, an error class with or without its part, or an isolation level; else ``None``.

    The usual spellings do not matter, nor do packages before an exception and the text around a class. Of
    ``deltalake``, whose exception is the same for every conflict, the text tells which one it is.
    """
    told = _of_message(text)
    quoted = _NAMED.search(text)
    word = told.value if told else quoted[0].strip(".") if quoted else text.strip().strip("[]")
    class_, _, part = word.partition(".")
    for term in _terms():
        names = {key_of(term.name), *([key_of(term.conflict.exception)] if term.conflict else [])}
        if names & {key_of(word), key_of(word.rpartition(".")[2])}:
            return term
        if key_of(class_) == key_of(term.name) and part.upper() in _parts() and term.conflict:
            return replace(term, name=f"{term.name}.{part.upper()}", detail=_parts()[part.upper()])
        if key_of(class_) == key_of(term.name) and term.level is None and not term.conflict:
            return term
    return None


def _of_message(text: str) -> Conflict | None:
    """The conflict that a text of delta-rs reports."""
    for condition, message in DELTA_RS.commit_messages:
        if message.rpartition(": ")[2].rstrip(".").casefold() in text.casefold():
            return Conflict(condition)
    return None


def looks_like_a_term(text: str) -> bool:
    """Whether a text can only be an error class, an exception or its message, and not a table name."""
    if _of_message(text):
        return True
    word = text.strip().strip("[]").casefold()
    return word.startswith(("delta_", "io.delta.exceptions.")) or (word.endswith("exception") and "." not in word)


def term_names() -> tuple[str, ...]:
    """All names that ``find_term`` knows, for suggestions."""
    exceptions = (term.conflict.exception for term in _terms() if term.conflict)
    return tuple(dict.fromkeys((*(term.name for term in _terms()), *exceptions)))


@cache
def _terms() -> tuple[Term, ...]:
    return tuple(_term(row) for row in conflict_rows(_WHAT_TO_DO))


def _term(row: PageRow) -> Term:
    name = row.words[0]
    return Term(
        name,
        row.cell("meaning"),
        tuple(each.removeprefix("• ") for each in row.cell(_WHAT_TO_DO).split("<br>")),
        row.cell("facts"),
        conflict=next((each for each in Conflict if each == name), None),
        level=next((each for each in Level if each == name), None),
    )


@cache
def _parts() -> Mapping[str, str]:
    """What each part of an error class says."""
    return {row.words[0]: row.cell(_WHAT_IT_ADDS) for row in conflict_rows(_WHAT_IT_ADDS)}
