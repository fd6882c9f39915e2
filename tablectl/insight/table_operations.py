"""The operations on a table, each as the transactions that it makes: both as committed and as current transactions.

An operation works at one of two *places*: two partitions of a partitioned table, two files of any other table. Two
operations at one place touch the same data. At two places they touch different data as far as possible.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Literal

from tablectl.conflicts.transactions import NOTHING, CurrentTransaction, Reads
from tablectl.delta import keys
from tablectl.delta.keys import CLUSTERING_DOMAIN
from tablectl.insight.conflict_context import VECTORS, ConflictContext
from tablectl.model.commit_contents import LIVE, NEW, CommittedTransaction, File, Kind, MetadataChange, settings_commit
from tablectl.model.operations import (
    AddConstraint,
    ClusterBy,
    DropConstraint,
    Operation,
    RemoveMapping,
    Repartition,
    SetProperties,
    UnsetProperties,
    UpgradeUniform,
)
from tablectl.model.operations.drop_feature import drop_feature_commits

Place = Literal["a", "b"]
_PLACES: tuple[Place, ...] = ("a", "b")
_QUERIES: Mapping[Place, str] = MappingProxyType({"a": "the same query", "b": "another query"})


class OperationGroup(StrEnum):
    """The subject of an operation."""

    ROWS = "rows"
    FILES = "files"
    """Rows are unchanged; their files are not."""
    WHOLE = "the whole table"
    SETTINGS = "settings"


@dataclass(frozen=True, slots=True)
class Transaction:
    """A commit and what it read: enough to be the committed or the current transaction."""

    committed: CommittedTransaction
    reads: Reads = NOTHING
    automatic: bool = False
    """Whether Delta adds the commit to a write, if there are enough small files. Its failure is not that of the write.
    """

    def current(self, setting: ConflictContext) -> CurrentTransaction:
        """The same transaction before its commit."""
        made = self.committed
        return CurrentTransaction(
            kind=made.kind,
            client=setting.client,
            level=setting.level,
            partitioned=setting.partitioned,
            reads=self.reads,
            removes=tuple(file.path for file in made.removed),
            data_change=made.data_change,
            metadata=made.metadata is not None,
            protocol=made.protocol is not None,
            drops=made.protocol.removes if made.protocol else (),
            domains=made.domains,
            app_ids=made.app_ids,
            zorder=made.zorder,
            platform=setting.platform,
        )


Transactions = Callable[[ConflictContext, Place], tuple[Transaction, ...]]


@dataclass(frozen=True, slots=True)
class TableOperation:
    """An operation: a row and a column of the matrices."""

    key: str
    """For the command line and tests: ``vectors-on``."""
    name: str
    """For people; SQL where SQL has a statement for it."""
    group: OperationGroup
    transactions: Transactions
    """Its transactions at a place of a table, in the order of their commits."""
    fits: Callable[[ConflictContext], bool] = lambda _setting: True
    """Whether such a table supports it and is changed by it."""


def _file(setting: ConflictContext, place: Place, name: str = "") -> File:
    return File(f"{place}{name}", (place,) if setting.partitioned else ())


def _all_files(setting: ConflictContext, name: str = "") -> tuple[File, ...]:
    return tuple(_file(setting, place, name) for place in _PLACES)


def _reads(setting: ConflictContext, place: Place) -> Reads:
    """An explicit condition on the partition if the table has partitions; else files are skipped by statistics."""
    return Reads(partitions=((place,),) if setting.partitioned else None, files=(place,))


_READS_ALL = Reads(partitions=None, files=_PLACES)


def _compacted(write: Transactions) -> Transactions:
    """A write and the automatic compaction of the files of the same place (``AutoCompact.scala``)."""

    def transactions(setting: ConflictContext, place: Place) -> tuple[Transaction, ...]:
        made = write(setting, place)
        if not setting.compacts or not any(each.committed.added for each in made):
            return made
        (compaction,) = _rewrite(Kind.OPTIMIZE)(setting, place)
        return (*made, replace(compaction, automatic=True))

    return transactions


def _append(setting: ConflictContext, place: Place) -> tuple[Transaction, ...]:
    added = (_file(setting, place, "-new"),)
    # On a table with identity columns it draws ids, and commits metadata for them (delta-1.12).
    drawn = MetadataChange(schema="other", tag="identity") if setting.identity else None
    return (Transaction(CommittedTransaction(kind=Kind.APPEND, metadata=drawn, added=added, blind=setting.blind)),)


def _append_with_ids(setting: ConflictContext, place: Place) -> tuple[Transaction, ...]:
    """An INSERT that gives the values of identity columns draws none."""
    return _append(replace(setting, identity=False), place)


def _stream(setting: ConflictContext, place: Place) -> tuple[Transaction, ...]:
    """Two streams at one place are the same query, run twice."""
    (append,) = _append(setting, place)
    return (
        replace(append, committed=replace(append.committed, kind=Kind.STREAMING_APPEND, app_ids=(_QUERIES[place],))),
    )


def _reading_insert(setting: ConflictContext, place: Place) -> tuple[Transaction, ...]:
    (append,) = _append(setting, place)
    made = replace(append.committed, kind=Kind.READING_INSERT, blind=False)
    return (Transaction(made, _reads(setting, place)),)


def _rewrite(kind: Kind, *, zorder: bool = False) -> Transactions:
    """The files of one place are read and rewritten."""
    data_change = kind not in {Kind.OPTIMIZE, Kind.REORG}

    def transactions(setting: ConflictContext, place: Place) -> tuple[Transaction, ...]:
        marks = data_change and setting.vectors
        made = CommittedTransaction(
            kind=kind,
            added=(_file(setting, place, "-new"),),
            removed=(_file(setting, place),),
            data_change=data_change,
            traces=("deletionVectors",) if marks else (),
            zorder=zorder,
        )
        return (Transaction(made, _reads(setting, place)),)

    return transactions


def _delete_files(setting: ConflictContext, place: Place) -> tuple[Transaction, ...]:
    """A DELETE of all rows of the files of one place adds none."""
    (rewrite,) = _rewrite(Kind.DELETE)(setting, place)
    return (replace(rewrite, committed=replace(rewrite.committed, added=(), traces=())),)


def _dynamic_overwrite(setting: ConflictContext, place: Place) -> tuple[Transaction, ...]:
    """It reads the partitions that it writes, but none of their files."""
    (rewrite,) = _rewrite(Kind.DYNAMIC_OVERWRITE)(setting, place)
    return (replace(rewrite, reads=Reads(partitions=((place,),))),)


def _overwrite(setting: ConflictContext, _place: Place) -> tuple[Transaction, ...]:
    """It clears the clustering of a clustered table (delta-1.4)."""
    made = CommittedTransaction(
        kind=Kind.OVERWRITE,
        added=_all_files(setting, "-new"),
        removed=_all_files(setting),
        domains=(CLUSTERING_DOMAIN,) if setting.clustered else (),
    )
    return (Transaction(made, _READS_ALL),)


def _evolving(write: Transactions) -> Transactions:
    """The same write, adding a column that the table does not have yet."""

    def transactions(setting: ConflictContext, place: Place) -> tuple[Transaction, ...]:
        (made,) = write(setting, place)
        return (replace(made, committed=replace(made.committed, metadata=MetadataChange(schema="other"))),)

    return transactions


def _replace_table(setting: ConflictContext, place: Place) -> tuple[Transaction, ...]:
    (overwrite,) = _overwrite(setting, place)
    change = MetadataChange(beyond=True, schema="other")
    made = replace(overwrite.committed, kind=Kind.REPLACE_TABLE, metadata=change)
    return (Transaction(made, replace(_READS_ALL, whole=True)),)


def _restore(setting: ConflictContext, place: Place) -> tuple[Transaction, ...]:
    """It always writes metadata. At place ``a`` the restored version has another schema."""
    made = CommittedTransaction(
        kind=Kind.RESTORE,
        metadata=MetadataChange(schema="other" if place == "a" else "same"),
        domains=(CLUSTERING_DOMAIN,) if setting.clustered else (),
        added=(_file(setting, place, "-old"),),
        removed=(_file(setting, place),),
    )
    return (Transaction(made, _READS_ALL),)


def _ours(operation: Operation, *, nested: bool = True) -> Transactions:
    """A statement that tablectl itself may send. One function defines what it commits, for the matrix and for plans.

    ``nested``: a column of the table is a struct.
    """

    def transactions(setting: ConflictContext, _place: Place) -> tuple[Transaction, ...]:
        basis = replace(setting.basis, nested=nested)
        scans = operation.effect(basis).scans
        return tuple(_on_files(committed, setting, scans=scans) for committed in operation.commits(basis))

    return transactions


def _on_files(committed: CommittedTransaction, setting: ConflictContext, *, scans: bool = False) -> Transaction:
    names = {LIVE: _all_files(setting), NEW: _all_files(setting, "-new")}
    added = tuple(file for each in committed.added for file in names[each])
    removed = tuple(file for each in committed.removed for file in names[each])
    reads = _READS_ALL if scans or added or removed else NOTHING
    return Transaction(replace(committed, added=added, removed=removed), reads)


def _alter(kind: Kind, change: MetadataChange | None = None, *, scans: bool = False) -> Transactions:
    made = settings_commit(kind, change or MetadataChange(schema="other"), scans=scans)
    return lambda _setting, _place: (Transaction(made, _READS_ALL if scans else NOTHING),)


def _upgrade(kind: Kind, *, metadata: bool) -> Transactions:
    """A feature becomes supported, and nothing uses it."""
    made = settings_commit(kind, MetadataChange() if metadata else None, ("vacuumProtocolCheck",))
    return lambda _setting, _place: (Transaction(made),)


_DROPPABLE = (
    "deletionVectors",
    "typeWidening",
    "v2Checkpoint",
    "inCommitTimestamp",
    "vacuumProtocolCheck",
    "columnMapping",
    "checkConstraints",
)
"""Of the features that can be dropped, those that tables use on purpose (delta-1.15)."""


def _dropped(setting: ConflictContext) -> str:
    return next((feature for feature in _DROPPABLE if setting.protocol.has(feature)), "")


def _drop_feature(setting: ConflictContext, _place: Place) -> tuple[Transaction, ...]:
    """Several commits, of which the last one drops the feature (delta-1.3)."""
    return tuple(
        _on_files(each, setting) for each in drop_feature_commits(_dropped(setting), setting.protocol, setting.value)
    )


_MAPPING = keys.COLUMN_MAPPING
_ROW_TRACKING = keys.ROW_TRACKING
_POLICY = keys.CHECKPOINT_POLICY
_TIMESTAMPS = keys.IN_COMMIT_TIMESTAMPS
_ANY_OTHER = "any other property"
"""Stands for a key that no transaction adopts, also in reasons."""


def _set(key: str, value: str) -> Transactions:
    return _ours(SetProperties(((key, value),)))


def _is(key: str, *values: str) -> Callable[[ConflictContext], bool]:
    return lambda setting: setting.value(key) in values


def _is_not(key: str, *values: str) -> Callable[[ConflictContext], bool]:
    return lambda setting: setting.value(key) not in values


_ROWS, _FILES, _WHOLE, _SETTINGS = OperationGroup

OPERATIONS: tuple[TableOperation, ...] = (
    TableOperation("insert", "INSERT", _ROWS, _compacted(_append)),
    TableOperation("stream", "streaming append", _ROWS, _compacted(_stream)),
    TableOperation(
        "insert-ids",
        "INSERT with identity values",
        _ROWS,
        _compacted(_append_with_ids),
        lambda setting: setting.identity,
    ),
    TableOperation("self-insert", "INSERT that reads the table", _ROWS, _compacted(_reading_insert)),
    TableOperation("update", "UPDATE", _ROWS, _compacted(_rewrite(Kind.UPDATE))),
    TableOperation("delete", "DELETE", _ROWS, _compacted(_rewrite(Kind.DELETE))),
    TableOperation("delete-files", "DELETE of whole files", _ROWS, _delete_files),
    TableOperation("merge", "MERGE", _ROWS, _compacted(_rewrite(Kind.MERGE))),
    TableOperation("replace-where", "replaceWhere", _ROWS, _compacted(_rewrite(Kind.REPLACE_WHERE))),
    TableOperation(
        "dynamic-overwrite",
        "dynamic partition overwrite",
        _ROWS,
        _compacted(_dynamic_overwrite),
        lambda setting: setting.partitioned,
    ),
    TableOperation("overwrite", "full overwrite", _ROWS, _compacted(_overwrite)),
    TableOperation("evolving-insert", "INSERT that adds a column", _ROWS, _evolving(_append)),
    TableOperation("evolving-merge", "MERGE that adds a column", _ROWS, _evolving(_rewrite(Kind.MERGE))),
    TableOperation("optimize", "OPTIMIZE", _FILES, _rewrite(Kind.OPTIMIZE)),
    TableOperation(
        "zorder",
        "OPTIMIZE … ZORDER BY",
        _FILES,
        _rewrite(Kind.OPTIMIZE, zorder=True),
        lambda setting: not setting.clustered,
    ),
    TableOperation("purge", "REORG … APPLY (PURGE)", _FILES, _rewrite(Kind.REORG)),
    TableOperation("replace", "REPLACE TABLE", _WHOLE, _replace_table),
    TableOperation(
        "repartition",
        "overwrite with new partitions",
        _WHOLE,
        _ours(Repartition(("c",))),
        lambda setting: not setting.clustered,
    ),
    TableOperation("restore", "RESTORE", _WHOLE, _restore),
    TableOperation("set", "SET of any other property", _SETTINGS, _set(_ANY_OTHER, "x")),
    TableOperation(
        "set-same", "SET of the value already there", _SETTINGS, _alter(Kind.SET_PROPERTIES, MetadataChange())
    ),
    TableOperation("unset", "UNSET", _SETTINGS, _ours(UnsetProperties((_ANY_OTHER,)))),
    TableOperation("isolation", "SET delta.isolationLevel", _SETTINGS, _set(keys.ISOLATION_LEVEL, "Serializable")),
    TableOperation("vectors-on", "deletion vectors on", _SETTINGS, _set(VECTORS, "true"), _is_not(VECTORS, "true")),
    TableOperation(
        "vectors-on-more",
        "deletion vectors and another key in one SET",
        _SETTINGS,
        _ours(SetProperties(((VECTORS, "true"), (_ANY_OTHER, "x")))),
        _is_not(VECTORS, "true"),
    ),
    TableOperation("vectors-off", "deletion vectors off", _SETTINGS, _set(VECTORS, "false"), _is(VECTORS, "true")),
    TableOperation(
        "row-tracking-on",
        "row tracking on",
        _SETTINGS,
        _set(_ROW_TRACKING, "true"),
        _is_not(_ROW_TRACKING, "true"),
    ),
    TableOperation(
        "row-tracking-off", "row tracking off", _SETTINGS, _set(_ROW_TRACKING, "false"), _is(_ROW_TRACKING, "true")
    ),
    TableOperation("checkpoints-v2", "checkpoint policy v2", _SETTINGS, _set(_POLICY, "v2"), _is_not(_POLICY, "v2")),
    TableOperation(
        "checkpoints-classic", "checkpoint policy classic", _SETTINGS, _set(_POLICY, "classic"), _is(_POLICY, "v2")
    ),
    TableOperation(
        "timestamps-on",
        "in-commit timestamps on",
        _SETTINGS,
        _set(_TIMESTAMPS, "true"),
        _is_not(_TIMESTAMPS, "true"),
    ),
    TableOperation(
        "timestamps-off", "in-commit timestamps off", _SETTINGS, _set(_TIMESTAMPS, "false"), _is(_TIMESTAMPS, "true")
    ),
    TableOperation(
        "mapping-on",
        "column mapping on (no structs)",
        _SETTINGS,
        _ours(SetProperties(((_MAPPING, "name"),)), nested=False),
        _is(_MAPPING, "", "none"),
    ),
    TableOperation(
        "mapping-on-nested",
        "column mapping on (structs)",
        _SETTINGS,
        _set(_MAPPING, "name"),
        _is(_MAPPING, "", "none"),
    ),
    TableOperation("mapping-off", "column mapping off", _SETTINGS, _ours(RemoveMapping()), _is(_MAPPING, "name")),
    TableOperation(
        "cluster", "CLUSTER BY", _SETTINGS, _ours(ClusterBy(("c",))), lambda setting: not setting.partitioned
    ),
    TableOperation("add-columns", "ADD COLUMNS", _SETTINGS, _alter(Kind.ADD_COLUMNS)),
    TableOperation("alter-column", "RENAME or DROP COLUMN", _SETTINGS, _alter(Kind.CHANGE_COLUMN)),
    TableOperation("widen-column", "ALTER COLUMN … TYPE (widening)", _SETTINGS, _alter(Kind.WIDEN_COLUMN)),
    TableOperation("comment-column", "COMMENT on a column", _SETTINGS, _alter(Kind.COMMENT_COLUMN)),
    TableOperation(
        "comment-table", "COMMENT ON TABLE", _SETTINGS, _alter(Kind.SET_PROPERTIES, MetadataChange(described=True))
    ),
    TableOperation("set-not-null", "SET NOT NULL", _SETTINGS, _alter(Kind.SET_NOT_NULL, scans=True)),
    TableOperation("add-constraint", "ADD CONSTRAINT", _SETTINGS, _ours(AddConstraint("positive", "v > 0"))),
    TableOperation(
        "drop-constraint",
        "DROP CONSTRAINT",
        _SETTINGS,
        _ours(DropConstraint("positive")),
        lambda setting: any(key.lower().startswith(keys.CONSTRAINTS) for key in setting.properties),
    ),
    TableOperation(
        "feature", "SET delta.feature.… = supported", _SETTINGS, _upgrade(Kind.SET_PROPERTIES, metadata=True)
    ),
    TableOperation(
        "feature-row-tracking",
        "SET delta.feature.rowTracking = supported",
        _SETTINGS,
        _set("delta.feature.rowTracking", "supported"),
        lambda setting: not setting.protocol.has("rowTracking"),
    ),
    TableOperation("upgrade-protocol", "UPGRADE PROTOCOL", _SETTINGS, _upgrade(Kind.UPGRADE_PROTOCOL, metadata=False)),
    TableOperation("drop-feature", "DROP FEATURE", _SETTINGS, _drop_feature, lambda setting: bool(_dropped(setting))),
    TableOperation(
        "uniform",
        "REORG … UPGRADE UNIFORM",
        _SETTINGS,
        _ours(UpgradeUniform(2)),
        _is_not(keys.iceberg_compat(2), "true"),
    ),
)


def operation(key: str) -> TableOperation:
    """The operation with a key. Raises ``KeyError`` for an unknown key."""
    for each in OPERATIONS:
        if each.key == key:
            return each
    raise KeyError(key)


def operations_of(setting: ConflictContext) -> tuple[TableOperation, ...]:
    """The operations that such a table supports."""
    return tuple(each for each in OPERATIONS if each.fits(setting))
