"""The values of a column, as far as the statistics of the files tell: how many there are at most, and whether an UPDATE
changed them.

Delta cuts long texts in statistics: a minimum to its beginning, a maximum to a text that is not smaller. So the values
of a file lie between them all the same (``StatisticsCollection.scala``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import islice

from tablectl.delta.schema import Field
from tablectl.log.catalog_managed import open_log
from tablectl.log.file_facts import live_files
from tablectl.log.history import read_commit
from tablectl.log.listing import commit_name
from tablectl.log.open_version import with_version
from tablectl.log.parse_action import FileAction, parse_json
from tablectl.model.commit_contents import ColumnValues
from tablectl.model.file_layout import ColumnRange, FileRanges, exact_value
from tablectl.storage.log_stores import Stores
from tablectl.storage.table_log import TableLog, VanishedError

MOST_FILES = 200_000
"""The maximum number of files whose statistics are read."""
_BOOLEANS = 2
_WHOLE = frozenset({"byte", "short", "integer", "long"})
_Value = int | str


@dataclass(frozen=True, slots=True)
class _Range:
    """The values of one file."""

    least: _Value | None
    """``None`` if all are null."""
    greatest: _Value | None
    rows: int
    """The values that are not null."""
    nulls: bool
    """Whether there are nulls, or may be."""


def file_ranges(stores: Stores, location: str, version: int, columns: Sequence[Field]) -> list[FileRanges]:
    """The ranges of some top-level columns in each file of a version; empty for a file whose statistics are missing, or
    may be of rows that a deletion vector has removed. Raises ``LiveError`` if the log cannot be read.
    """
    log = open_log(stores, location, stores.managed(location))
    found = with_version(
        log, version, 0, lambda segment: [*islice(live_files(log, segment, statistics=True), MOST_FILES + 1)]
    )
    return [_ranges_of(each, columns) for each in found] if len(found) <= MOST_FILES else []


def _ranges_of(file: FileAction, columns: Sequence[Field]) -> FileRanges:
    try:
        told = parse_json(file.statistics.encode())
        rows = _whole(told["numRecords"])
        if file.key[1] or told.get("tightBounds") is False:  # bounds of all rows that were ever in the file
            return FileRanges(rows=rows)
    except (ValueError, TypeError, AttributeError, KeyError):
        return FileRanges()
    return FileRanges(
        rows=rows, columns={each.name: found for each in columns if (found := _range_of(told, rows, each))}
    )


def _range_of(told: dict[str, object], rows: int, column: Field) -> ColumnRange | None:
    name = column.physical or column.name
    try:
        nulls = min(_whole(_of(told, "nullCount")[name]), rows)
    except (TypeError, KeyError):
        return None
    try:
        least, greatest = (exact_value(column.type, _of(told, each)[name]) for each in ("minValues", "maxValues"))
    except (TypeError, KeyError, ValueError):
        return ColumnRange(nulls=nulls)
    return ColumnRange(nulls=nulls, least=least, greatest=greatest) if least <= greatest else None


def column_values(
    stores: Stores, location: str, version: int, column: Field, updates: Mapping[int, frozenset[str]]
) -> ColumnValues:
    """The values of a top-level column at a version. ``updates`` holds the versions of UPDATE commits whose condition
    restricts the column to these literals. Raises ``LiveError`` if the log cannot be read.
    """
    log = open_log(stores, location, stores.managed(location))
    if column.type == "boolean":
        most: int | None = _BOOLEANS + 1
    else:
        found = with_version(
            log, version, 0, lambda segment: list(_ranges(live_files(log, segment, statistics=True), column))
        )
        most = None if None in found or len(found) > MOST_FILES else _bound([each for each in found if each], column)
    return ColumnValues(most, changed=any(_moved(log, each, values, column) for each, values in updates.items()))


def _ranges(files: Iterable[FileAction], column: Field) -> Iterator[_Range | None]:
    """The range of each file; ``None`` for one without statistics of the column."""
    for file in islice(files, MOST_FILES + 1):
        try:
            yield _range(parse_json(file.statistics.encode()), column)
        except (ValueError, TypeError, AttributeError, KeyError):
            yield None


def _range(statistics: dict[str, object], column: Field) -> _Range:
    """Raises one of the errors above for statistics that do not say it."""
    name = column.physical or column.name
    rows, nulls = _whole(statistics["numRecords"]), _whole(_of(statistics, "nullCount")[name])
    if rows == nulls:
        return _Range(None, None, 0, nulls=bool(rows))
    least, greatest = (_value(_of(statistics, each)[name], column) for each in ("minValues", "maxValues"))
    return _Range(least, greatest, rows - nulls, nulls=nulls > 0)


def _of(statistics: dict[str, object], key: str) -> dict[str, object]:
    found = statistics[key]
    if not isinstance(found, dict):
        raise TypeError(key)
    return found


def _whole(value: object) -> int:
    if not isinstance(value, int) or value < 0:
        raise TypeError(f"{value!r:.50} is not a count")
    return value


def _value(value: object, column: Field) -> _Value:
    """Dates count as days, so that the length of a range is the number of its values."""
    if column.type == "date" and isinstance(value, str):
        return date.fromisoformat(value).toordinal()
    if isinstance(value, int if column.type in _WHOLE else str):
        return value
    raise TypeError(f"{value!r:.50} is not a value of type {column.type}")


def _bound(ranges: list[_Range], column: Field) -> int:
    """At most so many values: one for each file with a single one, and one for each row of the others; of whole numbers
    and dates no more than lie between the least and the greatest.
    """
    single = {each.least for each in ranges if each.least == each.greatest and each.least is not None}
    most = len(single) + sum(each.rows for each in ranges if each.least != each.greatest)
    ends = [end for each in ranges for end in (each.least, each.greatest) if isinstance(end, int)]
    if ends and (column.type == "date" or column.type in _WHOLE):
        most = min(most, max(ends) - min(ends) + 1)
    return most + any(each.nulls for each in ranges)


def _moved(log: TableLog, version: int, literals: frozenset[str], column: Field) -> bool:
    """Whether an UPDATE of the rows with one of these literals left none of them in the files that it wrote: then it
    changed the column.
    """
    try:
        files = read_commit(log, commit_name(version), version, with_files=True, statistics=True).files
        sought = [_value(int(each) if column.type in _WHOLE else each, column) for each in literals]
    except (VanishedError, ValueError, TypeError):
        return False
    marked = {file.key[0] for file in files if not file.added}
    written = list(_ranges((file for file in files if file.added and file.key[0] not in marked), column))
    return bool(written and sought) and not any(each is None or _holds(each, sought) for each in written)


def _holds(values: _Range, sought: list[_Value]) -> bool:
    least, greatest = values.least, values.greatest
    if least is None or greatest is None:
        return False
    return any(least <= each <= greatest for each in sought)  # type: ignore[operator]
