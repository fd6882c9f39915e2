"""``partitioning``: the partition columns, in order, which determines the directories.

No ALTER changes them (delta-1.5): one overwrite rewrites the whole table, and only if the policy says ``rewrite:
allowed`` (docs/partitioning.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tablectl.attributes.base import Attribute, ChangeTarget, Needs, PlannedOperation
from tablectl.attributes.value_types import Declared, ValueType, no_column
from tablectl.delta import keys
from tablectl.delta.databricks_runtimes import capability
from tablectl.delta.dialects import dialect_of
from tablectl.delta.names import NameSyntaxError, column_text, fold_column, parse_column
from tablectl.delta.properties import parse_columns
from tablectl.delta.schema import Column, columns_of
from tablectl.model.operations import ClusterBy, Operation, Repartition, ReplacePartitions
from tablectl.model.plan import Basis, Change, Reason, Value
from tablectl.model.table import LiveTable
from tablectl.model.table_options import TableOptions

_TYPES = frozenset(
    {"byte", "short", "integer", "long", "float", "double", "boolean", "date", "timestamp", "timestamp_ntz", "string"}
)
_KEPT = frozenset(
    {
        "allowColumnDefaults",
        "appendOnly",
        "changeDataFeed",
        "checkConstraints",
        "checkpointProtection",
        "clustering",
        "columnMapping",
        "deletionVectors",
        "domainMetadata",
        "generatedColumns",
        "identityColumns",
        "inCommitTimestamp",
        "invariants",
        "rowTracking",
        "timestampNtz",
        "typeWidening",
        "v2Checkpoint",
        "vacuumProtocolCheck",
    }
)
"""Features whose effects the rewrite was measured to keep (docs/partitioning.md)."""
_COMPUTED = ("delta.generationExpression", "delta.identity.")
"""The metadata of generated and identity columns."""
_MASKED = "masked_rewrite"
_STORES_SEEN = "a rewrite stores only what its user can see"
_EXPLICIT = "delta.identity.allowExplicitInsert"
_HARMLESS = "declare the current partitioning"


class Partitioning(Attribute):
    """The attribute ``partitioning``."""

    name = "partitioning"
    value_type = ValueType(
        name=name,
        description="Partition columns, in order. A change rewrites the table: refused without `rewrite: allowed`.",
        words=("none",),
        columns=True,
        top_level=True,
    )

    def read(self, live: LiveTable, key: str) -> Value:
        return tuple(column_text((column,)) for column in live.partition_columns) or "none"

    def refusals(self, change: Change, live: LiveTable, target: ChangeTarget) -> Iterable[Reason]:
        return _problems(change, live, target)

    def act(self, change: Change, basis: Basis) -> Iterable[PlannedOperation]:
        back = Repartition(_names(change.before))
        needs = [keys.APPEND_ONLY, keys.ROW_TRACKING]  # an overwrite needs both of them off
        if basis.options.rewrite == "copy":
            needs.append(keys.MANIFEST)
        return (PlannedOperation(change.id, Repartition(_names(change.after)), needs=tuple(needs), undo=back),)

    def born(self, declared: Declared) -> Iterable[Operation]:
        """The partition columns. Without them, a new table has no partitions."""
        return (Repartition(_names(declared)),) if isinstance(declared, tuple) else ()

    def birth_refusals(self, change: Change, live: LiveTable, target: ChangeTarget) -> Iterable[Reason]:
        """A new table has no data to rewrite: only its columns count."""
        return _bad_columns(change, live)

    def imported(self, live: LiveTable) -> Iterator[tuple[str, Value] | str]:
        if live.partition_columns:
            yield "", self.read(live, "")

    def needs(self, key: str, value: Value, options: TableOptions, live: LiveTable | None) -> Needs:
        """A change rewrites the whole table, also what its catalog hides from readers."""
        if live is None:
            return Needs(size=True, rewrite=True, entry=True)
        return Needs(entry=not self.agrees(self.read(live, ""), value, ""))


def _problems(change: Change, live: LiveTable, target: ChangeTarget) -> Iterator[Reason]:
    if any(isinstance(each, ReplacePartitions) for each in target.operations):
        return  # no data is rewritten
    if not dialect_of(target.dialect).rewrite_measured:
        yield from _hidden_from_reader(change, live, target)
        yield from _undocumented(live)
    yield from _bad_columns(change, live)
    yield from _lost_by_rewrite(change, live, target)


def _hidden_from_reader(change: Change, live: LiveTable, target: ChangeTarget) -> Iterator[Reason]:
    """Rows and values that the rewrite would not read, and so would not write again.

    Row filters and column masks apply to whoever reads a table (docs.databricks.com, "Row filters and column masks").
    Those of the table are in its entry; those of policies for tags (ABAC) are not.
    """
    filtered = live.entry.filtered if live.entry else None
    if filtered is None:
        reason = f"no catalog tells whether the table has row filters or column masks, and {_STORES_SEEN}"
        yield Reason(reason, f"configure its catalog as `type: unity`; {_in_place(change)}")
    if filtered:
        yield Reason(f"the table has row filters or column masks, and {_STORES_SEEN}", _in_place(change))
    if _MASKED not in target.options.allow:
        reason = f"{_STORES_SEEN}, and policies of Unity Catalog for tags (ABAC) are not in a table's entry"
        consent = "if no such policy hides rows or values from the user of the apply, consent with"
        yield Reason(reason, f"{consent} `allow: [{_MASKED}]`; {_in_place(change)}")


def _undocumented(live: LiveTable) -> Iterator[Reason]:
    """Columns of which no source says that an overwrite on Databricks keeps them."""
    try:
        described = columns_of(live.schema.text)
    except ValueError:
        return  # reported by ``_lost_by_rewrite``
    for column in described:
        if any(key.startswith(_COMPUTED) for key in column.metadata):
            name = column_text(column.path)
            reason = f"{name} is a generated or identity column, which Databricks may lose in a rewrite"
            yield Reason(reason, _HARMLESS)


def _in_place(change: Change) -> str:
    """How a table can lose its partitions without a rewrite."""
    known = capability("clustering", "replace partitions in place")
    if change.after != "none":
        return f"{_HARMLESS}, or rewrite it yourself"
    return (
        f"{_HARMLESS}, or rewrite it yourself; from Databricks Runtime {known.first} on ({known.evidence}) partitions "
        "become clustering columns in place: set `engine.runtime`, and declare `clustering` too"
    )


def _bad_columns(change: Change, live: LiveTable) -> Iterator[Reason]:
    names = _names(change.after)
    for name in names:
        found = live.schema.find((name,))
        if found is None:
            yield no_column(name, live.schema)
        elif not (found[1].type in _TYPES or found[1].type.startswith(("decimal", "char", "varchar"))):
            kind = found[1].type
            yield Reason(f"Delta cannot partition by column {name} of type {kind}", "choose a column of a plain type")
    if len({name.lower() for name in names}) < len(names):
        yield Reason("a column is named twice", "name each column once")
    if len(names) == len(live.schema.fields):
        condition = "DELTA_CANNOT_USE_ALL_COLUMNS_FOR_PARTITION"
        yield Reason("no column would remain besides the partition columns", "name fewer columns", condition)


def _lost_by_rewrite(change: Change, live: LiveTable, target: ChangeTarget) -> Iterator[Reason]:
    """What the rewrite would lose or change although no policy declares it (docs/partitioning.md)."""
    if live.clustering and not any(isinstance(each, ClusterBy) for each in target.operations):
        columns = ", ".join(column_text(path) for path in live.clustering)
        reason = f"the table is clustered by {columns}, which a rewrite removes"
        yield Reason(reason, "declare `clustering: none` too")
    yield from _against_statistics(change, live)
    yield from _left_undone(live, target)
    if (target.property(live, keys.APPEND_ONLY) or "").lower() == "true":
        condition = "DELTA_CANNOT_MODIFY_APPEND_ONLY"
        if (live.property(keys.APPEND_ONLY) or "").lower() == "true":
            fix = f"declare {keys.APPEND_ONLY}: null under `properties`"
            yield Reason("the table is append-only: Delta takes no overwrite", fix, condition)
        else:
            fix = f"apply `partitioning` first, and declare {keys.APPEND_ONLY} after that"
            reason = "the same policy makes the table append-only: Delta takes no overwrite then"
            yield Reason(reason, fix, condition)
    if (target.property(live, keys.ROW_TRACKING) or "").lower() == "true":
        reason = "row tracking is on, and the rewritten rows would get new row ids"
        yield Reason(reason, "turn row tracking off first")
    unknown = sorted((live.protocol.reader_features | live.protocol.writer_features) - _KEPT)
    if unknown:
        reason = f"it is unknown whether a rewrite preserves {unknown[0]}"
        yield Reason(reason, f"{_HARMLESS}, or drop it first")
    try:
        described = columns_of(live.schema.text)
    except ValueError as error:
        yield Reason(str(error), _HARMLESS)
        return
    for column in described:
        yield from _lost_of(column)


def _left_undone(live: LiveTable, target: ChangeTarget) -> Iterator[Reason]:
    """What Delta does after a commit of its own statement, and not after that of a copy (``commitLarge`` of Delta 4.4.0
    runs no hooks; it makes the checkpoint itself).
    """
    if target.options.rewrite != "copy":
        return
    if (target.property(live, keys.MANIFEST) or "").lower() == "true":
        reason = "the table has symlink manifests, and a copy would leave those of the old partition columns"
        yield Reason(reason, f"declare `rewrite: allowed`, or unset {keys.MANIFEST} and GENERATE them after the copy")
    if target.property(live, keys.UNIFORM_FORMATS):
        reason = "the table is written in other formats too (UniForm), which a copy would not write"
        yield Reason(reason, "declare `rewrite: allowed`")


def _against_statistics(change: Change, live: LiveTable) -> Iterator[Reason]:
    """The overwrite runs before the list of columns with statistics changes, so the stored list counts."""
    try:
        named = parse_columns(live.property(keys.STATISTICS_COLUMNS) or "")
    except ValueError:
        return
    for name in _names(change.after):
        if fold_column((name,)) in named:
            yield Reason(
                reason=f"{name} is among the columns with statistics, and Delta keeps none of a partition column",
                fix=f"leave {name} out of `data_skipping` and apply that first",
                condition="DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_PARTITIONED_COLUMN",
            )


def _lost_of(column: Column) -> Iterator[Reason]:
    name = column_text(column.path)
    if not column.nullable and column.reachable:
        fix = f"DROP NOT NULL and add a constraint CHECK ({name} IS NOT NULL), which a rewrite keeps"
        yield Reason(f"column {name} is NOT NULL, which Delta drops in a rewrite and cannot set again", fix)
    elif not column.nullable:
        yield Reason(f"{name} is NOT NULL by its type, which a rewrite drops", _HARMLESS)
    if "delta.identity.start" in column.metadata and column.metadata.get(_EXPLICIT) is not True:
        reason = f"column {name} is GENERATED ALWAYS AS IDENTITY: Delta does not allow writing its values again"
        yield Reason(reason, _HARMLESS, "DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED")


def _names(value: Value) -> tuple[str, ...]:
    return tuple(map(_name, value)) if isinstance(value, tuple) else ()


def _name(text: str) -> str:
    """The name of a top-level column. Other text is returned unchanged and matches no column."""
    try:
        path = parse_column(text)
    except NameSyntaxError:
        return text
    return path[0] if len(path) == 1 else text
