"""Rows that violate a constraint which a plan adds, as far as the statistics of the table's files prove it.

Only what is certain counts: a file whose least or greatest value, or number of nulls, does not fit. Delta fails
``ADD CONSTRAINT`` if any row violates it, and a row for which the condition is NULL does (``Constraints.scala`` of
Delta 4.4.0).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from tablectl.attributes.constraints import NONE, NOT_NULL, NULLABLE, Constraints, violated_by
from tablectl.delta.expressions import condition_of
from tablectl.delta.names import column_text, parse_column
from tablectl.delta.schema import Field
from tablectl.model.file_layout import ColumnRange, FileRanges, exact_text, exact_value
from tablectl.model.plan import Change, Refusal
from tablectl.model.table import LiveTable

Ranges = Callable[[Sequence[Field]], Sequence[FileRanges]]
"""Reads the ranges of some columns in each file."""
_MIRRORED = {"GT": "LT", "GTE": "LTE", "LT": "GT", "LTE": "GTE"}


def violations(changes: Sequence[Change], live: LiveTable, ranges: Ranges) -> tuple[Refusal, ...]:
    """A refusal of each constraint that rows violate. ``ranges`` raises ``LiveError``."""
    tests = {each.id: (each, tuple(_tests(each, live))) for each in changes if each.attribute == Constraints.name}
    columns = {test.column.name: test.column for _, found in tests.values() for test in found}
    if not columns:
        return ()
    files = ranges(tuple(columns.values()))
    return tuple(refusal for change, found in tests.values() for refusal in [_refusal(change, found, files)] if refusal)


def _refusal(change: Change, tests: Sequence[_Test], files: Sequence[FileRanges]) -> Refusal | None:
    for test in tests:
        found = [(file.rows, part) for file in files if (part := file.columns.get(test.column.name))]
        wrong = [(rows, part) for rows, part in found if test.found_in(rows, part)]
        if wrong:
            return Refusal(
                change=change.id,
                reason=f"rows violate it, by the statistics of {_told(test.column, wrong, len(files))}",
                fix=f"correct or delete the rows where `{violated_by(change)}`, or declare what all rows meet",
                condition="DELTA_NEW_CHECK_CONSTRAINT_VIOLATION",
            )
    return None


def _told(column: Field, wrong: Sequence[tuple[int, ColumnRange]], files: int) -> str:
    """``1 of 4 files (1,000 rows): `amount` goes from 0 to 4, 3 rows have none``."""
    least = [each.least for _, each in wrong if each.least is not None]
    greatest = [each.greatest for _, each in wrong if each.greatest is not None]
    nulls = sum(each.nulls for _, each in wrong)
    said = []
    if least and greatest:
        said.append(f"goes from {exact_text(column.type, min(least))} to {exact_text(column.type, max(greatest))}")
    if nulls:
        said.append(f"is NULL in {nulls:,} row{'s' * (nulls != 1)}")
    rows = sum(rows for rows, _ in wrong)
    return (
        f"{len(wrong):,} of {files:,} file{'s' * (files != 1)} with {rows:,} rows: `{column.name}` {' and '.join(said)}"
    )


@dataclass(frozen=True, slots=True)
class _Test:
    """One part of a condition that every row must meet, about one column."""

    column: Field
    fails: Callable[[Decimal, Decimal], bool] = lambda _least, _greatest: False
    """Whether one of the least and the greatest value of a file does not meet it."""
    wants_null: bool = False

    def found_in(self, rows: int, part: ColumnRange) -> bool:
        """Whether a file certainly has a row that does not meet it."""
        if self.wants_null:
            return part.nulls < rows
        known = part.least is not None and part.greatest is not None
        return part.nulls > 0 or (known and self.fails(part.least, part.greatest))  # type: ignore[arg-type]


def _tests(change: Change, live: LiveTable) -> Iterator[_Test]:
    if change.after in {NONE, NULLABLE}:
        return
    if change.after == NOT_NULL:
        found = live.schema.find(parse_column(change.key))
        if found and len(found[0]) == 1:
            yield _Test(found[1])
        return
    condition = condition_of(str(change.after))
    if condition is not None:
        yield from _parts(condition, live)


def _parts(node: Any, live: LiveTable) -> Iterator[_Test]:
    """The parts that are joined by AND. What is none of the forms below proves nothing."""
    kind = type(node).__name__
    if kind == "Paren":
        yield from _parts(node.this, live)
    elif kind == "And":
        yield from _parts(node.left, live)
        yield from _parts(node.right, live)
    elif kind == "Not" and type(node.this).__name__ == "Is" and type(node.this.expression).__name__ == "Null":
        if column := _column(node.this.this, live):
            yield _Test(column)
    elif kind == "Is" and type(node.expression).__name__ == "Null":
        if column := _column(node.this, live):
            yield _Test(column, wants_null=True)
    else:
        yield from _compared(kind, node, live)


def _compared(kind: str, node: Any, live: LiveTable) -> Iterator[_Test]:
    """A column compared with one literal, or with several."""
    if kind == "Between":
        column = _column(node.this, live)
        low, high = _literal(node.args["low"], column), _literal(node.args["high"], column)
        if column and low is not None and high is not None:
            yield _Test(column, lambda least, greatest: least < low or greatest > high)
    elif kind == "In":
        column = _column(node.this, live)
        values = [_literal(each, column) for each in node.expressions]
        if column and values and None not in values:
            yield _Test(column, lambda least, greatest: least not in values or greatest not in values)
    if kind not in {*_MIRRORED, "EQ", "NEQ"}:
        return
    column, other = _column(node.left, live), node.right
    if column is None:
        column, other, kind = _column(node.right, live), node.left, _MIRRORED.get(kind, kind)
    value = _literal(other, column)
    if column is None or value is None:
        return
    tests: dict[str, Callable[[Decimal, Decimal], bool]] = {
        "GT": lambda least, _: least <= value,
        "GTE": lambda least, _: least < value,
        "LT": lambda _, greatest: greatest >= value,
        "LTE": lambda _, greatest: greatest > value,
        "EQ": lambda least, greatest: not least == greatest == value,
        "NEQ": lambda least, greatest: value in {least, greatest},
    }
    yield _Test(column, tests[kind])


def _column(node: Any, live: LiveTable) -> Field | None:
    """A column at the top of the schema, outside of the partition columns: these have no statistics."""
    if type(node).__name__ != "Column" or len(node.parts) != 1:
        return None
    found = live.schema.find((node.parts[0].name,))
    partitions = {each.lower() for each in live.partition_columns}
    return found[1] if found and column_text(found[0]).lower() not in partitions else None


def _literal(node: Any, column: Field | None) -> Decimal | None:
    """A literal that Spark compares with the column's values as they are; ``None`` for any other expression."""
    sign = ""
    if type(node).__name__ == "Neg":
        sign, node = "-", node.this
    if type(node).__name__ == "Cast" and column is not None and column.type == "date" and node.to.this.name == "DATE":
        node = node.this
    if type(node).__name__ != "Literal" or column is None or node.is_string is not (column.type == "date"):
        return None
    try:
        return exact_value(column.type, f"{sign}{node.this}")
    except ValueError:
        return None
