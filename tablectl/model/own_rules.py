"""Lint rules of your own (docs/lint-rules.md): functions that packages offer as entry points of ``GROUP``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from tablectl.support.frozen import frozen

GROUP = "tablectl.lint_rules"
FAILED = "R001"
"""The code of the finding that a rule could not be loaded, or did not end as it should."""
OWN_CODE = "^[A-Z]{2,16}[0-9]{1,6}$"
"""The codes that rules can have. Built-in ones have one letter."""


def is_own_code(text: str) -> bool:
    """Whether a rule of your own can have this code."""
    return re.fullmatch(OWN_CODE[1:-1], text) is not None


@frozen(kw_only=True)
class TableToLint:
    """A table and its policy, as a rule sees them."""

    name: str
    """As in reports: ``sales.orders``, ``delta.`/lake/orders```."""
    location: str
    declared: Mapping[str, str | tuple[str, ...] | None]
    """What the policy declares, by attribute or ``properties.<key>``; ``None`` unsets a property."""
    properties: Mapping[str, str]
    """The live table properties."""
    columns: Mapping[str, str]
    """The type of each top-level column, as Delta spells it, in order."""
    partitioned_by: tuple[str, ...]
    clustered_by: tuple[str, ...]
    features: frozenset[str]
    """The features of its protocol."""
    owner: str
    """By the policy; empty if it names none."""
    tags: tuple[str, ...]


Check = Callable[[TableToLint], Iterable[str]]
"""A rule: one message for each problem that it finds on a table."""


@frozen
class OwnRule:
    """One entry point."""

    code: str
    """Its name."""
    package: str
    check: Check | None
    """``None`` if it could not be loaded."""
    trouble: str = ""
    """Why it could not be loaded."""
    text: str = ""
    """The docstring of the function."""
