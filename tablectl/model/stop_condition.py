"""``--stop-if``: the condition on what was observed of the first tables, under which an apply starts no further table.

``failed > 0 or silent > 2``: comparisons of a count with a whole number, joined by ``or``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, get_args

from tablectl.frozen import frozen

Term = Literal["failed", "orphans", "silent", "stopped"]
TERMS: tuple[Term, ...] = get_args(Term)
OPERATORS = (">", ">=")
LONGEST_SOAK = 10_080
"""The maximum number of minutes for which tables are watched: a week."""
_MOST_COMPARISONS = 8
_LONGEST = 200
_DIGITS = 6
_COMPARISON = re.compile(r"\s*([^\s<>=!]+)\s*([<>=!]+)\s*(\S+)\s*", re.ASCII)
_OR = re.compile(r"\s+or\s+", re.ASCII)
_EXAMPLE = "for example `failed > 0 or silent > 2`"


@frozen
class Count:
    """How many of something were observed."""

    number: int
    unknown: bool = False
    """Whether there may be more, because something could not be observed."""


Counts = Mapping[Term, Count]


@frozen
class CountComparison:
    """One count against a limit."""

    term: Term
    operator: str
    limit: int

    @property
    def text(self) -> str:
        """``failed > 0``."""
        return f"{self.term} {self.operator} {self.limit}"

    def holds(self, counts: Counts) -> bool | None:
        """Whether it holds; ``None`` if that cannot be told. A count can only be higher than what was observed."""
        count = counts[self.term]
        reached = count.number > self.limit if self.operator == ">" else count.number >= self.limit
        return True if reached else None if count.unknown else False


@frozen
class StopCondition:
    """Comparisons, one of which must hold."""

    comparisons: tuple[CountComparison, ...]

    @property
    def text(self) -> str:
        """As a user writes it."""
        return " or ".join(each.text for each in self.comparisons)

    def holding(self, counts: Counts) -> tuple[CountComparison, ...]:
        """The comparisons that hold."""
        return tuple(each for each in self.comparisons if each.holds(counts))

    def untold(self, counts: Counts) -> tuple[CountComparison, ...]:
        """The comparisons of which it cannot be told whether they hold."""
        return tuple(each for each in self.comparisons if each.holds(counts) is None)


def parse_stop_condition(text: str) -> StopCondition:
    """Reads a condition. Raises ``ValueError`` with what is allowed instead."""
    if len(text) > _LONGEST:
        raise ValueError(f"at most {_LONGEST} characters are read")
    if not text.strip():
        raise ValueError(_EXAMPLE)
    parts = _OR.split(text.strip())
    if len(parts) > _MOST_COMPARISONS:
        raise ValueError(f"at most {_MOST_COMPARISONS} comparisons are read")
    return StopCondition(tuple(map(_comparison, parts)))


def _comparison(text: str) -> CountComparison:
    match = _COMPARISON.fullmatch(text)
    if match is None:
        raise ValueError(
            f"write one of {', '.join(TERMS)}, then {' or '.join(OPERATORS)}, then a whole number, {_EXAMPLE}"
        )
    word, operator, number = match.groups()
    term = next((each for each in TERMS if each == word), None)
    if term is None:
        raise ValueError(f"the words are {', '.join(TERMS)}: {word!r} is none of them")
    if operator not in OPERATORS:
        raise ValueError(f"the operators are {' and '.join(OPERATORS)}: {operator!r} is none of them")
    if not (number.isascii() and number.isdigit() and len(number) <= _DIGITS):
        raise ValueError(f"{term} is compared with a whole number below {10**_DIGITS:,}: {number!r} is none")
    if operator == ">=" and int(number) == 0:
        raise ValueError(f"`{text.strip()}` always holds: write `{term} > 0`")
    return CountComparison(term, operator, int(number))


ANY_FAILURE = StopCondition((CountComparison("failed", ">", 0),))
"""The condition without ``--stop-if``."""
