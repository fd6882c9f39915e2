"""The index of patterns finds every pattern that matches, and asks few of the others."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablectl.delta.names import NameSyntaxError, TableName, parse_table
from tablectl.model.patterns import TablePattern, index_patterns, make_catalog_pattern, make_path_pattern

_PART = st.text("abAß*?[]!", min_size=1, max_size=6)
_NAME = st.text("abAßsS", min_size=1, max_size=6)


def _patterns(globs: list[tuple[str, str]]) -> list[TablePattern]:
    made: list[TablePattern | TableName] = []
    for one, other in globs:
        for make in (
            lambda a, b: make_catalog_pattern("Lake", a, b),
            lambda a, b: make_path_pattern(f"s3a://x/{a}/{b}"),
        ):
            try:
                made.append(make(one, other))
            except NameSyntaxError:
                continue
    return [each for each in made if not isinstance(each, TableName)]


@settings(max_examples=500, deadline=None)
@given(st.lists(st.tuples(_PART, _PART), max_size=8), _NAME, _NAME)
def test_every_pattern_that_matches_is_found(globs: list[tuple[str, str]], one: str, other: str) -> None:
    patterns = _patterns(globs)
    index = index_patterns(patterns)
    for name in (TableName("laKe", (one, other)), TableName("", (f"s3://x/{one}/{other}",))):
        matching = [place for place, each in enumerate(patterns) if each.matches(name)]
        found = index.candidates(name)
        assert set(matching) <= set(found)
        assert list(found) == sorted(set(found))


@pytest.mark.parametrize("shape", ["p{}*", "*{}x", "a*b{}c*", "?{}*", "[ab]*{}"])
def test_of_a_thousand_patterns_few_are_asked_about_a_name(shape: str) -> None:
    patterns = _patterns([("s", shape.format(f"{number:05d}")) for number in range(500)])
    index = index_patterns(patterns)
    asked = [len(index.candidates(parse_table(f"lake.s.t{number:05d}"))) for number in range(500)]
    assert sum(asked) / len(asked) < 25
