"""``data_skipping``: the columns for which Delta collects the statistics by which scans skip files (delta-1.9).

The property holds a set of columns; a struct stands for all its fields. It takes precedence over
``delta.dataSkippingNumIndexedCols``, which counts columns in the order of the schema. ``default`` is a table without
the property. A change concerns new files only: Delta computes no statistics for existing ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tablectl.attributes.base import Attribute, ChangeTarget, PlannedOperation, put_back, set_or_unset
from tablectl.attributes.value_types import Declared, ValueType, folded, has_order, has_statistics, no_column
from tablectl.delta import keys
from tablectl.delta.dialects import dialect_of
from tablectl.delta.names import ColumnPath, column_text, fold_column, parse_column
from tablectl.delta.properties import columns_text, split_columns
from tablectl.model.operations import PARTITIONS, ClusterBy, Repartition
from tablectl.model.plan import Basis, Change, Reason, Value
from tablectl.model.table import LiveTable

_STAYS = "the statistics of files written in between"


class DataSkipping(Attribute):
    """The attribute ``data_skipping``."""

    name = "data_skipping"
    value_type = ValueType(
        name=name,
        description="Columns with statistics, by which scans skip files; a struct stands for all its fields. "
        "`default`: the first columns of the schema.",
        words=("default",),
        columns=True,
    )
    keys = (keys.STATISTICS_COLUMNS,)

    def read(self, live: LiveTable, key: str) -> Value:
        """The columns as stored, or ``default``. A text that is not a list of columns is returned unchanged."""
        stored = live.property(keys.STATISTICS_COLUMNS)
        if stored is None:
            return "default"
        try:
            return tuple(map(column_text, split_columns(stored))) or stored
        except ValueError:
            return stored

    def agrees(self, found: Value, declared: Value, key: str) -> bool:
        """Compares sets of columns: their order has no effect."""
        one, other = folded(found), folded(declared)
        return set(one) == set(other) if isinstance(one, tuple) and isinstance(other, tuple) else one == other

    def refusals(self, change: Change, live: LiveTable, target: ChangeTarget) -> Iterable[Reason]:
        """Refuses columns that Delta rejects, and a list that leaves clustering columns without statistics."""
        return _problems(change, live, target)

    def act(self, change: Change, basis: Basis) -> Iterable[PlannedOperation]:
        """Sets or unsets one property. Files are not read again."""
        operation = set_or_unset(keys.STATISTICS_COLUMNS, _stored(change.after))
        undo = put_back(keys.STATISTICS_COLUMNS, basis)
        return (PlannedOperation(change.id, operation, needs=(PARTITIONS,), undo=undo, undo_note=_STAYS),)

    def imported(self, live: LiveTable) -> Iterator[tuple[str, Value] | str]:
        if live.property(keys.STATISTICS_COLUMNS) is not None:
            yield "", self.read(live, "")

    def planned(self, declared: Declared) -> Mapping[str, str | None]:
        return {keys.STATISTICS_COLUMNS: _stored(declared)}


def _stored(value: Declared | None) -> str | None:
    """The text of the property; ``None`` for ``default``."""
    return columns_text(map(parse_column, value)) if isinstance(value, tuple) else None


def _problems(change: Change, live: LiveTable, target: ChangeTarget) -> Iterator[Reason]:
    columns = change.after if isinstance(change.after, tuple) else ()
    partitions = {name.lower() for name in _partitions(live, target)}
    variants = dialect_of(target.dialect).variant_statistics
    seen: set[ColumnPath] = set()
    for path in map(parse_column, columns):
        text = column_text(path)
        found = live.schema.find(path)
        if found is None:
            yield no_column(text, live.schema)
            continue
        if len(path) == 1 and path[0].lower() in partitions:
            yield Reason(
                reason=f"{text} is a partition column, and Delta skips partitions without statistics",
                fix=f"leave {text} out of `data_skipping`",
                condition="DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_PARTITIONED_COLUMN",
            )
        below = [(leaf, field) for leaf, field in live.schema.leaves() if leaf[: len(found[0])] == found[0]]
        for leaf, field in below:
            # Delta takes such fields of a struct, and counts their nulls (validateDataSkippingType in
            # StatisticsCollection.scala, Delta 4.0.1 to 4.4.0).
            if len(leaf) == 1 and not has_order(field) and not (field.type == "variant" and variants):
                reason = f"Delta keeps no statistics of {column_text(leaf)}, which is of type {field.type}"
                fix = "name columns of a number, date, timestamp or string type"
                yield Reason(reason, fix, "DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_TYPE")
            if fold_column(leaf) in seen:
                reason = f"{column_text(leaf)} is named twice: by itself and by its struct"
                yield Reason(reason, "name one of them", "DELTA_DUPLICATE_DATA_SKIPPING_COLUMNS")
            seen.add(fold_column(leaf))
    yield from _clustering(live, target)


def _partitions(live: LiveTable, target: ChangeTarget) -> tuple[str, ...]:
    planned = [each.columns for each in target.operations if isinstance(each, Repartition)]
    return planned[-1] if planned else live.partition_columns


def _clustering(live: LiveTable, target: ChangeTarget) -> Iterator[Reason]:
    """Clustering columns need statistics, which Delta does not check. ``clustering`` checks those of the same plan."""
    if any(isinstance(each, ClusterBy) for each in target.operations):
        return
    for path in live.clustering or ():
        if not has_statistics(path, live.schema, lambda key: target.property(live, key)):
            text = column_text(path)
            yield Reason(
                reason=f"the table is clustered by {text}, which would be left without statistics",
                fix=f"add {text} to `data_skipping`, or change `clustering` too",
            )
