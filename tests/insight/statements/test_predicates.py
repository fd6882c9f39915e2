"""What a condition may be true for, against SQLite, and what Delta registers for it."""

from __future__ import annotations

from datetime import date

from hypothesis import given, settings
from sqlglot import parse_one

from tablectl.insight.statements.disjoint_partitions import Interval, Region, Value, Values, disjoint
from tablectl.insight.statements.predicates import admits
from tests.insight.statements.sql_rows import COLUMNS, CONDITIONS, ROWS, SUBJECT, Row, Rows

_ALL = Rows()
_SCOPE = SUBJECT.scope(("s", "t"), "")


def region(condition: str) -> Region:
    return admits(parse_one(condition, dialect="databricks"), _SCOPE)


def holds(within: Region, row: Row) -> bool:
    values = dict(zip(COLUMNS, map(_of_domain, row), strict=True))
    return any(all(_has(allowed, values[column]) for column, allowed in box) for box in within.boxes)


def _of_domain(value: object) -> Value:
    if isinstance(value, str) and value[:2] == "20":
        return (date.fromisoformat(value) - date(1970, 1, 1)).days
    return value


def _has(values: Values, value: Value) -> bool:
    if value is None:
        return values.null
    return any(each.meet(Interval(value, value)) == Interval(value, value) for each in values.intervals)


@settings(max_examples=200, deadline=None)
@given(CONDITIONS)
def test_a_region_holds_every_row_that_satisfies_its_condition(condition: str) -> None:
    found, true = region(condition), _ALL.satisfying(condition)
    for row in true:
        assert holds(found, row), f"{row} satisfies {condition} and lies not in {found}"
    if found.exact:
        assert {row for row in ROWS if holds(found, row)} == true


@settings(max_examples=200, deadline=None)
@given(CONDITIONS, CONDITIONS)
def test_two_conditions_are_never_disjoint_where_a_row_satisfies_both(one: str, other: str) -> None:
    if disjoint(region(one), region(other)):
        assert not _ALL.satisfying(one) & _ALL.satisfying(other)
