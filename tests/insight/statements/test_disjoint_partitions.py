"""Sets of values and of partitions: their algebra, and the proof that two share nothing."""

from __future__ import annotations

from itertools import product

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from sqlglot import parse_one

from tablectl.insight.statements.disjoint_partitions import (
    ANYWHERE,
    EVERY_VALUE,
    MOST_BOXES,
    NOT_NULL,
    NOWHERE,
    NULL,
    Interval,
    Region,
    Values,
    both,
    covers,
    disjoint,
    either,
    values_of,
    where,
)
from tablectl.insight.statements.predicates import admits
from tests.insight.statements.sql_rows import SUBJECT, Rows

_SCOPE = SUBJECT.scope(("s", "t"), "")
_POINTS = [each / 2 for each in range(-1, 12)]
"""Whole numbers are bounds, those between them tell open bounds from closed ones."""


def has(values: Values, point: float | None) -> bool:
    return (
        values.null if point is None else any(not each.meet(Interval(point, point)).empty for each in values.intervals)
    )


def points(values: Values) -> set[float | None]:
    return {point for point in (None, *_POINTS) if has(values, point)}


_BOUND = st.one_of(st.none(), st.integers(0, 5))


def interval(low: int | None, high: int | None, opens: tuple[bool, bool]) -> Interval:
    return Interval(low, high, low is not None and opens[0], high is not None and opens[1])


_INTERVALS = st.builds(interval, _BOUND, _BOUND, st.tuples(st.booleans(), st.booleans()))
_SETS = st.builds(
    lambda intervals, null: values_of(intervals, null=null), st.lists(_INTERVALS, max_size=4), st.booleans()
)
_BOXES = st.dictionaries(st.sampled_from("abc"), _SETS.filter(lambda each: not each.empty), max_size=2)
_REGIONS = st.lists(_BOXES, max_size=4).map(lambda boxes: Region(tuple(tuple(sorted(box.items())) for box in boxes)))


@given(_SETS, _SETS)
def test_sets_of_values(one: Values, other: Values) -> None:
    assert points(one.meet(other)) == points(one) & points(other)
    assert points(one.join(other)) == points(one) | points(other)
    assert points(one.complement()) == set(_POINTS) - points(one)
    assert not one.within(other) or points(one) <= points(other)


@given(_SETS)
def test_a_set_is_within_itself_and_no_larger_when_joined_with_itself(one: Values) -> None:
    assert one.within(one)
    assert one.join(one) == one
    assert one.meet(EVERY_VALUE) == one


def lies(region: Region, at: dict[str, float | None]) -> bool:
    return any(all(has(values, at[column]) for column, values in box) for box in region.boxes)


_PLACES = [dict(zip("abc", each, strict=True)) for each in product((None, 0, 1.5, 3), repeat=3)]


@settings(max_examples=200, deadline=None)
@given(_REGIONS, _REGIONS)
def test_regions(one: Region, other: Region) -> None:
    for place in _PLACES:
        assert lies(both(one, other), place) == (lies(one, place) and lies(other, place))
        assert lies(either([one, other]), place) == (lies(one, place) or lies(other, place))
        assert not (disjoint(one, other) and lies(one, place) and lies(other, place))
        assert not (covers(one, other) and lies(other, place) and not lies(one, place))


def test_regions_that_would_grow_too_large_become_larger_sets() -> None:
    diagonal = either([both(where("a", _one(each)), where("b", _one(each))) for each in range(MOST_BOXES + 1)])
    assert diagonal.everywhere
    assert not diagonal.exact
    some = either([both(where("a", _one(each)), where("b", _one(each))) for each in range(100)])
    met = both(some, either([both(where("c", _one(each)), where("d", _one(each))) for each in range(50)]))
    assert not met.exact
    assert len(met.boxes) == 50


def test_a_long_list_of_alternatives_is_one_box() -> None:
    found = either([where("a", _one(each)) for each in range(1000)])
    assert len(found.boxes) == 1
    assert disjoint(found, where("a", _one(1000)))


def test_null_is_a_value_of_its_own() -> None:
    assert disjoint(where("a", NULL), where("a", NOT_NULL))
    assert not disjoint(where("a", NULL), ANYWHERE)
    assert disjoint(NOWHERE, ANYWHERE)


def _one(value: int) -> Values:
    return Values((Interval(value, value),))


_NUMBERS = st.integers(-2, 3)
_SIMPLE = st.one_of(
    st.tuples(st.sampled_from(("=", "<", "<=", ">", ">=")), _NUMBERS).map(lambda each: f"n {each[0]} {each[1]}"),
    st.tuples(_NUMBERS, _NUMBERS).map(lambda each: f"n BETWEEN {min(each)} AND {max(each)}"),
    st.lists(_NUMBERS, min_size=1, max_size=3).map(lambda each: f"n IN ({', '.join(map(str, each))})"),
    st.sampled_from(("d = '2026-01-01'", "d > DATE '2026-01-01'", "d <= '2026-01-01'", "d IS NULL")),
    st.lists(st.sampled_from("abc"), min_size=1, max_size=2).map(lambda each: f"p IN ({str(each)[1:-1]})"),
)
_ALTERNATIVES = st.lists(st.lists(_SIMPLE, min_size=1, max_size=2), min_size=1, max_size=2).map(
    lambda each: " OR ".join(f"({' AND '.join(parts)})" for parts in each)
)
_WIDE = Rows(
    product(
        (None, "a", "b", "c", "d"), (None, *range(-4, 6)), (None, "2025-12-31", "2026-01-01", "2026-01-02"), (0,), (0,)
    )
)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(_ALTERNATIVES, _ALTERNATIVES)
def test_simple_conditions_that_share_no_partition_are_all_proven_disjoint(one: str, other: str) -> None:
    assume(not _WIDE.satisfying(one) & _WIDE.satisfying(other))
    regions = [admits(parse_one(each, dialect="databricks"), _SCOPE) for each in (one, other)]
    assert disjoint(*regions)
