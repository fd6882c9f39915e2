"""``clustering``: the liquid clustering columns, in order (delta-1.4), or ``auto``.

The order matters in open-source Delta: OPTIMIZE compares it with the file tags. On Databricks it has no meaning. With
``auto``, Databricks chooses the columns and changes them, so the mode is compared and never the columns. Once enabled,
clustering stays in the table's protocol. ``none`` means clustering without columns; for a table that never had
clustering, declaring it changes nothing.

New columns rewrite no data. If the option ``optimize`` requires it, the data follows them. This is a second fact of the
attribute, ``data``, with the values ``outdated`` and ``clustered``. Outdated data is what an OPTIMIZE of that kind
would cluster and what is not newer than the columns: unclustered files that existed when the columns were declared, and
for ``full`` also files clustered by other columns. New data does not count: its arrival requires no OPTIMIZE.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tablectl.attributes.base import (
    NO_NEEDS,
    Attribute,
    ChangeTarget,
    Needs,
    PlannedOperation,
    is_true,
    why_no_catalog_setting,
)
from tablectl.attributes.value_types import (
    STATS_KEYS,
    Declared,
    ValueType,
    folded,
    has_order,
    has_statistics,
    no_column,
    resolved,
)
from tablectl.delta import keys
from tablectl.delta.dialects import dialect_of
from tablectl.delta.names import (
    column_text,
    parse_column,
)
from tablectl.model.file_layout import ClusteringState, FileGroup
from tablectl.model.operations import PARTITIONS, ClusterBy, Operation, OptimizeData, Repartition, ReplacePartitions
from tablectl.model.plan import Basis, Change, Reason, Rewrite, Value
from tablectl.model.table import LiveTable
from tablectl.model.table_options import TableOptions

DATA = "data"
"""The key of the attribute's second fact."""
AUTO = "auto"
CLUSTERED_DATA = f"clustering.{DATA}"
"""The id of the change that makes the data follow the clustering columns."""


class Clustering(Attribute):
    """The attribute ``clustering``."""

    name = "clustering"
    in_clear = False
    value_type = ValueType(
        name=name,
        description="Liquid clustering columns, in order; nested as a.b, a literal dot in backticks. "
        "`auto`: Databricks chooses them.",
        words=("none", AUTO),
        columns=True,
        most_columns=4,
    )
    exclusive_with = "partitioning"
    keys = (keys.CLUSTERING_COLUMNS, keys.CLUSTER_BY_AUTO)

    def read(self, live: LiveTable, key: str) -> Value:
        """The columns in the table's spelling, ``auto`` or ``none``. For the key ``data``, whether the data follows."""
        if key == DATA:
            return "outdated" if live.marks and _left(live, live.marks, _names(live)).files else "clustered"
        if is_true(live.property(keys.CLUSTER_BY_AUTO)):
            return AUTO
        return tuple(column_text(path) for path in live.clustering) if live.clustering else "none"

    def normalized(self, declared: Declared, live: LiveTable, dialect: str) -> Declared:
        """The columns in the table's order, where the order has no meaning and the columns are the same."""
        names = _names(live)
        if not isinstance(declared, tuple) or dialect_of(dialect).ordered_clustering:
            return declared
        mine, theirs = folded(resolved(declared, live.schema)[0]), folded(names)
        same = isinstance(mine, tuple) and isinstance(theirs, tuple) and sorted(mine) == sorted(theirs)
        return names if same else declared

    def diff(self, declared: Declared, live: LiveTable) -> Iterable[Change]:
        """Yields at most one change of the columns, in the table's spelling, and one of ``data``."""
        found = self.read(live, "")
        if not isinstance(declared, str | tuple):
            return
        spelled, facts = resolved(declared, live.schema)
        if not self.agrees(found, declared, ""):
            yield Change(attribute=self.name, before=found, after=spelled, columns=facts)
        if isinstance(spelled, tuple) and live.marks and _left(live, live.marks, spelled).files:
            yield Change(attribute=self.name, key=DATA, before="outdated", after="clustered", columns=facts)

    def refusals(self, change: Change, live: LiveTable, target: ChangeTarget) -> Iterable[Reason]:
        if change.key != DATA and isinstance(change.after, tuple):
            yield from filter(None, (_check_column(text, live, target) for text in change.after))
        yield from super().refusals(change, live, target)

    def check(self, change: Change, live: LiveTable, target: ChangeTarget) -> Reason | None:
        if change.key == DATA:
            return _check_data(change, live, target)
        if change.after == AUTO and (wrong := why_no_catalog_setting(change, live, target, "CLUSTER BY AUTO")):
            return wrong
        if live.partition_columns and not _unpartitioned(target):
            columns = ", ".join(live.partition_columns)
            return Reason(
                reason=f"the table is partitioned by {columns}; Delta clusters only tables without partitions",
                fix="drop `clustering`, or declare `partitioning: none`, which rewrites the table "
                "(`rewrite: allowed`) or, on newer versions of Databricks Runtime, changes it in place",
                condition="DELTA_ALTER_TABLE_CLUSTER_BY_ON_PARTITIONED_TABLE_NOT_ALLOWED",
            )
        return None

    def act(self, change: Change, basis: Basis) -> Iterable[PlannedOperation]:
        """One ``CLUSTER BY``, which does not change data files; for ``data`` one ``OPTIMIZE``."""
        if change.key == DATA:
            return (_optimize(change, basis),)
        note = "" if basis.clustered else "writer protocol 7 with the features clustering and domainMetadata"
        undo, needs = _cluster_by(change.before), (*STATS_KEYS, PARTITIONS)
        return (PlannedOperation(change.id, _cluster_by(change.after), needs=needs, undo=undo, undo_note=note),)

    def imported(self, live: LiveTable) -> Iterator[tuple[str, Value] | str]:
        found = self.read(live, "")
        if found != "none":
            yield "", found

    def planned(self, declared: Declared) -> Mapping[str, str | None]:
        """The mode AUTO. Named columns end it."""
        return {keys.CLUSTER_BY_AUTO: "true" if declared == AUTO else None}

    def born(self, declared: Declared) -> Iterable[Operation]:
        """``CLUSTER BY``. Without it, no new table is clustered."""
        return (_cluster_by(declared),) if isinstance(declared, tuple) or declared == AUTO else ()

    def needs(self, key: str, value: Value, options: TableOptions, live: LiveTable | None) -> Needs:
        """How the data is clustered, if it must follow the columns or if they change."""
        follows = options.optimize != "never"
        if key == DATA:
            return Needs(size=value == "clustered", clustering=follows)
        if value == AUTO:
            return Needs(entry=live is None or self.read(live, "") != AUTO)
        if live is None or not isinstance(value, tuple):
            return NO_NEEDS
        differs = not self.agrees(self.read(live, ""), value, "")
        left = live.entry is not None and live.entry.optimized is True
        return Needs(clustering=(follows or differs) and not left, entry=follows)

    def check_declarable(self, change: Change) -> None:
        """The second fact follows from an option, and has one direction."""
        if change.key != DATA:
            super().check_declarable(change)
        elif (change.before, change.after) != ("outdated", "clustered"):
            raise ValueError(f"no policy can ask for {change.id}")


def _cluster_by(value: object) -> ClusterBy:
    """The statement that makes a value of the attribute."""
    return ClusterBy(value if isinstance(value, tuple) else (), automatic=value == AUTO)


def _unpartitioned(target: ChangeTarget) -> bool:
    """Whether the same plan removes the partitions."""
    return any(each == Repartition(()) or isinstance(each, ReplacePartitions) for each in target.operations)


def _check_data(change: Change, live: LiveTable, target: ChangeTarget) -> Reason | None:
    """Refuses if the table's columns are no longer the declared ones, because the data would follow the wrong
    columns.
    """
    if change.attribute in target.changes or _names(live) == tuple(fact.column for fact in change.columns):
        return None
    return Reason(
        reason=f"the table is clustered by other columns now: {', '.join(_names(live)) or 'none'}",
        fix="plan again",
    )


def _names(live: LiveTable) -> tuple[str, ...]:
    return tuple(column_text(path) for path in live.clustering or ())


def _left(live: LiveTable, marks: ClusteringState, columns: tuple[str, ...]) -> FileGroup:
    """The files that an OPTIMIZE has to cluster by ``columns`` (see the module docstring)."""
    if live.optimize == "never":
        return FileGroup()
    unclustered = marks.older if columns == _names(live) else marks.unclustered()
    others = marks.others(columns) if live.optimize == "full" else FileGroup()
    return FileGroup(files=unclustered.files + others.files, bytes=unclustered.bytes + others.bytes)


def _optimize(change: Change, basis: Basis) -> PlannedOperation:
    """The OPTIMIZE, with its cost. It also rewrites data that it clustered before, if that is little. The upper bound
    is therefore all files, except those clustered by other columns without ``full``.
    """
    if basis.options.optimize == "never":
        raise ValueError(f"{change.id} is not asked for")
    full = basis.options.optimize == "full"
    marks = basis.marks or ClusteringState()
    total, others = marks.total(), marks.others(tuple(fact.column for fact in change.columns))
    shielded = FileGroup() if full else others
    cost = Rewrite(
        clusters=True,
        vectors=None,
        everything=full,
        files_at_most=total.files - shielded.files,
        bytes_at_most=total.bytes - shielded.bytes,
    )
    note = "the rewritten files, with the same rows"
    return PlannedOperation(
        change.id,
        OptimizeData(full),
        needs=(keys.CLUSTERING_DOMAIN,),
        undo_note=note,
        rewrite=cost if basis.marks else None,
    )


def _check_column(text: str, live: LiveTable, target: ChangeTarget) -> Reason | None:
    found = live.schema.find(parse_column(text))
    if found is None:
        return no_column(text, live.schema)
    path, field = found
    if not has_order(field):
        return Reason(
            reason=f"column {text} is of type {field.type}, which has no order that clustering could use",
            fix="choose columns of a number, date, timestamp or string type; fields of a struct as `struct.field`",
            condition="DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED",
        )
    variants = (inner for inner, kind in live.schema.every_type() if kind == "variant" and inner[:1] == path[:1])
    if (variant := next(variants, None)) is not None:
        # ``ClusteringColumn.scala`` of Delta 4.4.0 asks this of every struct on the way to the field.
        return Reason(
            reason=f"column {text} lies in a struct with {column_text(variant)} of type variant, and Delta clusters by "
            "no field of such a struct",
            fix="choose another column",
            condition="DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED",
        )
    if not has_statistics(path, live.schema, lambda key: target.property(live, key)):
        return Reason(
            reason=f"Delta collects no statistics for column {text}, and clustering needs them",
            fix=f"name {text} in `data_skipping`, or declare a larger {keys.INDEXED_COLUMNS} under `properties`",
            condition="DELTA_CLUSTERING_COLUMN_MISSING_STATS",
        )
    return None
