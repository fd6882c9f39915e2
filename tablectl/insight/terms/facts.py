"""The facts behind conflict rules, for ``tablectl explain``: ``D37``, documented by Databricks, and ``delta-2.2``, from
Delta's own code.

``facts.json`` holds the texts of ``docs/reference``, which an installation does not have, and the public page behind
each. ``python -m tests.docs.publish_facts`` writes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pkgutil import get_data
from types import MappingProxyType

from tablectl.support.frozen import frozen
from tablectl.support.json_text import read_json

_ABOUT: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "acid": ("D71", "D72", "D73"),
        "snapshot": ("D3", "D11"),
        "row-level concurrency": ("D40", "D41", "D42", "D44", "D46"),
        "blind append": ("D52", "D53", "D55", "D57"),
        "optimistic concurrency": ("D74", "D86", "D88"),
        "liquid clustering": ("D41",),
        "vacuum": ("D82", "D83"),
        "optimize": ("D27", "D28", "D29", "D34", "D35"),
        "reorg": ("D37", "D38"),
        "identity": ("D23", "delta-1.12"),
        "metadata change": ("D15", "D16", "D22"),
        "transaction": ("D73", "D77", "D79", "D78"),
    }
)
"""The facts about the words of the pages on isolation and on ACID guarantees."""
_OTHER_WORDS: Mapping[str, str] = MappingProxyType(
    {
        "rlc": "row-level concurrency",
        "z-order": "optimize",
        "zorder by": "optimize",
        "blind appends": "blind append",
        "identity column": "identity",
        "identity columns": "identity",
        "snapshot isolation": "snapshot",
        "begin atomic": "transaction",
        "transactions": "transaction",
        "occ": "optimistic concurrency",
    }
)


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


def facts_about(word: str) -> tuple[Fact, ...]:
    """The facts about a word in any letter case; ``()`` for a word without facts."""
    folded = " ".join(word.casefold().replace("_", " ").split())
    named = _ABOUT.get(_OTHER_WORDS.get(folded, folded), ())
    return tuple(fact for each in named if (fact := find_fact(each)))


def words_with_facts() -> tuple[str, ...]:
    """The words that ``facts_about`` knows."""
    return tuple(_ABOUT)


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
