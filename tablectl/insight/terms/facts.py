"""The facts behind conflict rules in full, for ``tablectl explain``: ``D37``, ``delta-2.2``.

``facts.json`` holds the texts of ``docs/reference``, which an installation does not have; a test compares them.
"""

from __future__ import annotations

from functools import cache
from pkgutil import get_data

from tablectl.frozen import frozen
from tablectl.insight.terms.sources import SECTIONS, page_of
from tablectl.json_text import read_json


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
    name = next((each for each in _texts() if each.casefold() == id.strip().casefold()), "")
    if not name:
        return None
    if name.startswith("D"):
        return Fact(name, _texts()[name], page_of(name), f"docs/reference/databricks.md#{name}")
    section = SECTIONS.get(name)
    said = f"{section.text[:1].upper()}{section.text[1:]}" if section else _texts()[name]
    return Fact(name, f"{said}.", section.page if section else "", f"docs/reference/delta.md#{name}")


def fact_ids() -> tuple[str, ...]:
    """All ids."""
    return tuple(_texts())


@cache
def _texts() -> dict[str, str]:
    data = get_data("tablectl.insight.terms", "facts.json")
    assert data is not None  # part of the package
    found = read_json(data)
    assert isinstance(found, dict)
    return found
