"""What patterns match, and how literal they are."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablectl.delta.locations import canonical_location
from tablectl.delta.names import NameSyntaxError, TableName
from tablectl.model.patterns import (
    CatalogPattern,
    PathPattern,
    check_glob,
    count_literals,
    escape_glob,
    literal_text,
    make_catalog_pattern,
    make_path_pattern,
    step_matches,
)

SALES = CatalogPattern("lake", "sales", "*")


def table(*parts: str) -> TableName:
    return TableName(parts[0], parts[1:])


def path(location: str) -> TableName:
    return TableName("", (location,))


def path_pattern(glob: str) -> PathPattern:
    made = make_path_pattern(glob)
    assert isinstance(made, PathPattern)
    return made


@pytest.mark.parametrize(
    ("glob", "literal", "count"),
    [
        ("orders", "orders", 6),
        ("*", None, 0),
        ("o?d*", None, 2),
        ("[ab]c", None, 1),
        ("[a]c", "ac", 2),
        ("[*][?][[]", "*?[", 3),
        ("[!a]", None, 0),
        ("a]b", "a]b", 3),
    ],
)
def test_literal_characters(glob: str, literal: str | None, count: int) -> None:
    assert (literal_text(glob), count_literals(glob)) == (literal, count)


@settings(deadline=None)
@given(st.text())
def test_an_escaped_text_is_literal_and_matches_itself(text: str) -> None:
    assert literal_text(escape_glob(text)) == text
    check_glob(escape_glob(text))


@pytest.mark.parametrize("glob", ["a[b", "[]", "[!]", "a**", "***"])
def test_what_is_not_a_glob(glob: str) -> None:
    with pytest.raises(NameSyntaxError):
        check_glob(glob)


@pytest.mark.parametrize(
    ("name", "matches"),
    [
        (table("lake", "sales", "orders"), True),
        (table("LAKE", "Sales", "ORDERS"), True),
        (table("lake", "sales", "a.b c"), True),
        (table("lake", "sales2", "orders"), False),
        (table("other", "sales", "orders"), False),
        (path("/lake/sales/orders"), False),
    ],
)
def test_catalog_patterns_fold_case(name: TableName, matches: bool) -> None:
    assert SALES.matches(name) is matches


@pytest.mark.parametrize(
    ("schema", "found"),
    [("*", "a1 a2 b1 _x"), ("a?", "a1 a2"), ("[ab]1", "a1 b1"), ("[!a]?", "b1 _x"), ("A*", "a1 a2")],
)
def test_globs_inside_one_part(schema: str, found: str) -> None:
    pattern = CatalogPattern("lake", schema, "t")
    assert [name for name in ("a1", "a2", "b1", "_x") if pattern.matches(table("lake", name, "t"))] == found.split()


@pytest.mark.parametrize(
    ("glob", "location", "matches"),
    [
        ("/lake/*", "/lake/orders", True),
        ("/lake/*", "/lake", False),
        ("/lake/*", "/lake/a/b", False),
        ("/lake/*", "/lakes/a", False),
        ("/lake/*/raw/*", "/lake/x/raw/y", True),
        ("/*", "/a", True),
        ("s3://b/*", "s3a://b/x", True),
        ("s3a://b//x/*/", "s3://b/x/y", True),
        ("s3://b/*", "s3://b2/x", False),
        ("s3://b/*", "s3://b/X", True),
        ("s3://b/x*", "s3://b/X", False),
        ("file:///lake/*", "/lake/a", True),
        ("/lake/*", "/lake/_delta_log", False),
        ("/lake/*", "/lake/.hidden", False),
        ("/lake/_*", "/lake/_tmp", True),
        ("/lake/[_]t*", "/lake/_tmp", True),
        ("/lake/?tmp", "/lake/_tmp", False),
    ],
)
def test_path_patterns_match_step_by_step(glob: str, location: str, matches: bool) -> None:
    assert path_pattern(glob).matches(path(location)) is matches


def test_a_pattern_spells_the_tables_that_it_finds_as_it_is_spelled() -> None:
    pattern = path_pattern("s3a://lake/[[]x]/*")
    assert (pattern.base, pattern.steps) == ("s3a://lake/[x]", ("*",))
    assert pattern.table(("orders",)) == path("s3a://lake/[x]/orders")
    assert path_pattern("/*").table(("a",)) == path("/a")


@pytest.mark.parametrize(
    ("glob", "location"), [("/lake/[a]/[*]", "/lake/a/*"), ("s3://b/[[]1]/", "s3://b/[1]"), ("/lake/a", "/lake/a")]
)
def test_a_literal_glob_is_one_table(glob: str, location: str) -> None:
    assert make_path_pattern(glob) == path(location)
    assert make_catalog_pattern("c", "[a]", "b[*]") == table("c", "a", "b*")


@pytest.mark.parametrize(
    ("glob", "words"),
    [
        ("lake/*", "is relative"),
        ("/lake/../*", "step"),
        ("s3://*/x", "where its store is named"),
        ("s3://b*", "where its store is named"),
        ("/a/**/b", "inside one part"),
        ("/a/[/]b", "never closed"),
    ],
)
def test_what_is_not_a_path_pattern(glob: str, words: str) -> None:
    with pytest.raises(NameSyntaxError, match=words):
        make_path_pattern(glob)


def test_more_literal_characters_weigh_more() -> None:
    patterns = [CatalogPattern("lake", "*", "*"), CatalogPattern("lake", "*", "orders"), SALES]
    assert [pattern.literals for pattern in patterns] == [4, 10, 9]
    assert path_pattern("/lake/raw/*").literals == path_pattern("file:///lake/raw/*").literals


@pytest.mark.parametrize(
    ("stronger", "weaker", "literals"),
    [
        ("/lake/*/orders", "/lake/sales/*", (13, 12)),
        ("/l/*/*/abcd", "/l/ab/c/*", (9, 8)),
        ("/*/ab", "/a/*", (4, 3)),
        ("s3://b/lake/ra?", "s3://b/*/raw/x[0-9]", (14, 13)),
    ],
)
def test_every_slash_of_a_path_pattern_is_a_literal_character(
    stronger: str, weaker: str, literals: tuple[int, int]
) -> None:
    assert (path_pattern(stronger).literals, path_pattern(weaker).literals) == literals


@pytest.mark.parametrize(
    ("pattern", "text", "key"),
    [
        (SALES, "lake.sales.*", "lake.sales.*"),
        (CatalogPattern("spark_catalog", "Sales", "O*"), "Sales.O*", "spark_catalog.sales.o*"),
        (CatalogPattern("spark_catalog", "delta", "*"), "spark_catalog.delta.*", "spark_catalog.delta.*"),
        (CatalogPattern("my.cat", "a b", "[[]*"), "`my.cat`.`a b`.[[]*", "`my.cat`.`a b`.[[]*"),
        (path_pattern("s3a://b/x/*"), "delta.`s3a://b/x/*`", "s3://b/x/*"),
        (path_pattern("/a`b/*"), "delta.`/a``b/*`", "/a`b/*"),
        (path_pattern("/*"), "delta.`/*`", "/*"),
    ],
)
def test_texts_and_keys(pattern: CatalogPattern | PathPattern, text: str, key: str) -> None:
    assert (pattern.text, pattern.key) == (text, key)


_PARTS = st.sampled_from(["a", "B", "delta", "a b", "a.b", "spark_catalog", "a`", "[x]", "_t", "*", "ß"])
_GLOBS = st.lists(st.sampled_from(["*", "?", "[a-z]"]) | _PARTS.map(escape_glob), min_size=1, max_size=3).map("".join)


@settings(deadline=None)
@given(catalog=_PARTS, schema=_GLOBS, glob=_GLOBS, name=st.tuples(_PARTS, _PARTS))
def test_a_catalog_table_that_matches_begins_as_the_pattern_says(
    catalog: str, schema: str, glob: str, name: tuple[str, str]
) -> None:
    if "**" in schema + glob:
        return
    pattern, found = make_catalog_pattern(catalog, schema, glob), table(catalog, *name)
    if isinstance(pattern, CatalogPattern) and pattern.matches(found):
        for text in (found.text.casefold(), found.key):
            assert text.startswith(pattern.prefixes)


@settings(deadline=None)
@given(base=st.sampled_from(["/", "/l/", "s3a://b/", "file:///x`/"]), steps=st.lists(_GLOBS, min_size=1, max_size=2))
def test_and_so_does_a_path(base: str, steps: list[str]) -> None:
    if any("**" in step for step in steps):
        return
    pattern = make_path_pattern(base + "/".join(steps))
    if isinstance(pattern, TableName):
        return
    for names in (("a",), ("aa",), ("a b",), ("a", "a"), ("B", "aB")):
        found = pattern.table(names)
        if pattern.matches(found):
            for text in (found.text, found.parts[0], canonical_location(found.parts[0])):
                assert text.startswith(pattern.prefixes)


def test_many_stars_are_matched_in_no_time() -> None:
    assert not step_matches("a" * 5000, "*a" * 100 + "b")
