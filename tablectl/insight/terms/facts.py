"""The facts behind conflict rules, for ``tablectl explain``: ``D37``, documented by Databricks, and ``delta-2.2``, from
Delta's own code.

``facts.json`` holds the texts of ``docs/reference``, which an installation does not have, and the public page behind
each. ``python -m tests.docs.publish_facts`` writes it.
"""

from __future__ import annotations

from functools import cache
from pkgutil import get_data

from tablectl.support.frozen import frozen
from tablectl.support.json_text import read_json


@frozen
class Fact:
    """A fact about Databricks, or a section about Delta."""

    id: str
    text: str
    source: str
    """The address of the public page or source file behind it; empty if a section has none of its own."""
    page: str
    """The page of this project's documentation."""


def find_fact(id: str) -> Fact | None:  # noqa: A002
    """A fact by its id in any letter case; ``None`` for an id that does not exist."""
    name = next((each for each in _facts() if each.casefold() == id.strip().casefold()), "")
    page = f"docs/reference/{'databricks' if name.startswith('D') else 'delta'}.md#{name}"
    return Fact(name, **_facts()[name], page=page) if name else None


def fact_ids() -> tuple[str, ...]:
    """All ids."""
    return tuple(_facts())


@cache
def _facts() -> dict[str, dict[str, str]]:
    data = get_data("tablectl.insight.terms", "facts.json")
    assert data is not None  # part of the package
    found = read_json(data)
    assert isinstance(found, dict)
    return found
