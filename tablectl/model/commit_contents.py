"""The contents of a commit that other transactions see: its metadata, protocol, domains and files, as differences from
the version before it.

A partition is the values of a file in the order of the table's partition columns, ``()`` on a table without partitions.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from tablectl.model.commit import Commit

Partition = tuple[str | None, ...]


class Kind(StrEnum):
    """What a transaction does, as far as conflicts depend on it. The value is text for people."""

    APPEND = "INSERT"
    """Reads nothing of the table."""
    STREAMING_APPEND = "streaming append"
    READING_INSERT = "INSERT … SELECT from the table itself"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    MERGE = "MERGE"
    OVERWRITE = "full overwrite"
    DYNAMIC_OVERWRITE = "dynamic partition overwrite"
    REPLACE_WHERE = "replaceWhere"
    OPTIMIZE = "OPTIMIZE"
    REORG = "REORG"
    BACKFILL = "row tracking backfill"
    UNBACKFILL = "row tracking unbackfill"
    SET_PROPERTIES = "SET TBLPROPERTIES"
    UNSET_PROPERTIES = "UNSET TBLPROPERTIES"
    CLUSTER_BY = "CLUSTER BY"
    ADD_COLUMNS = "ADD COLUMNS"
    CHANGE_COLUMN = "ALTER COLUMN"
    COMMENT_COLUMN = "COMMENT on a column"
    WIDEN_COLUMN = "ALTER COLUMN … TYPE"
    SET_NOT_NULL = "SET NOT NULL"
    ADD_CONSTRAINT = "ADD CONSTRAINT"
    DROP_CONSTRAINT = "DROP CONSTRAINT"
    DROP_FEATURE = "DROP FEATURE"
    TOMBSTONES = "Deletion Vector Tombstones"
    """Protects deletion vector files that are no longer used from a VACUUM by clients that do not know them."""
    EMPTY = "Empty Commit"
    UPGRADE_PROTOCOL = "UPGRADE PROTOCOL"
    REMOVE_MAPPING = "REMOVE COLUMN MAPPING"
    UPGRADE_UNIFORM = "REORG … UPGRADE UNIFORM"
    REPLACE_PARTITIONS = "REPLACE PARTITIONED BY"
    REPLACE_TABLE = "REPLACE TABLE"
    RESTORE = "RESTORE"
    CLONE = "CLONE"
    VACUUM = "VACUUM"
    """An empty commit that records the begin or the end of a VACUUM."""
    COPY_INTO = "COPY INTO"
    """An append of files, on Databricks."""


@dataclass(frozen=True, slots=True)
class File:
    """A data file."""

    path: str
    partition: Partition = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataChange:
    """A ``metaData`` action, as its differences from the version before it. All empty: it repeats the previous one."""

    sets: tuple[tuple[str, str], ...] = ()
    """Properties with their new values."""
    renews: tuple[str, ...] = ()
    """Those of ``sets`` that had another value before. This matters for keys that Delta itself writes."""
    removes: tuple[str, ...] = ()
    schema: Literal["same", "mapping", "other"] = "same"
    """``mapping``: only the column mapping of top-level fields is new."""
    beyond: bool = False
    """Whether the table's id, name or partition columns differ."""
    described: bool = False
    """Whether the table's description differs."""
    tag: Literal["", "identity", "row tracking"] = ""
    """Delta's tag on the commit: only identity high-water marks moved, or only row tracking was enabled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolChange:
    """A ``protocol`` action, as its differences from the version before it."""

    adds: tuple[str, ...] = ()
    removes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedTransaction:
    """A commit that took its version before the current transaction could."""

    kind: Kind
    metadata: MetadataChange | None = None
    protocol: ProtocolChange | None = None
    domains: tuple[str, ...] = ()
    app_ids: tuple[str, ...] = ()
    """The app ids of its ``txn`` actions: streams and idempotent writes."""
    added: tuple[File, ...] = ()
    removed: tuple[File, ...] = ()
    """A file that gets a deletion vector is removed and added again under the same path."""
    blind: bool = False
    """Its ``isBlindAppend``. Delta Kernel and ``deltalake`` never set it to true, even for a blind append."""
    data_change: bool = True
    """Whether its file actions change rows; false if they only rearrange them."""
    traces: tuple[str, ...] = ()
    """Features that it used: a transaction that drops one of them finds it in use."""
    repartitions: bool = False
    """Whether it changed the table's partition columns."""
    zorder: bool = False
    """Whether an OPTIMIZE orders by ``ZORDER BY``."""


LIVE = File("live")
"""Stands for each file of the table that a statement may rewrite and a writer may have read."""
NEW = File("new")
"""Stands for each file that a rewrite adds."""


def settings_commit(
    kind: Kind,
    change: MetadataChange | None = None,
    adds: tuple[str, ...] = (),
    *,
    domains: tuple[str, ...] = (),
    scans: bool = False,
) -> CommittedTransaction:
    """The commit of an ALTER, which has no files. Delta records it as a blind append unless it reads rows (delta-2.4).

    ``adds`` are the features that the protocol gets. ``scans``: the ALTER reads all rows.
    """
    return CommittedTransaction(
        kind=kind,
        metadata=change,
        protocol=ProtocolChange(adds=adds) if adds else None,
        domains=domains,
        blind=not scans,
        data_change=False,
    )


def rearranging_commit(kind: Kind, change: MetadataChange | None = None) -> CommittedTransaction:
    """The commit of a rewrite of files that changes no row."""
    return CommittedTransaction(kind=kind, metadata=change, added=(NEW,), removed=(LIVE,), data_change=False)


PartitionValues = tuple[tuple[str, str | None], ...]
"""The values of a file's partition columns, sorted by physical name; ``()`` without partitions."""


@dataclass(frozen=True, slots=True)
class CommitFiles:
    """A commit with the files that it adds and removes."""

    commit: Commit
    added: frozenset[PartitionValues] = frozenset()
    """The partitions of the files that it adds."""
    removed: frozenset[PartitionValues] = frozenset()
    added_files: int = 0
    added_bytes: int = 0
    removed_files: int = 0
    removed_bytes: int = 0


@dataclass(frozen=True, slots=True)
class UnnamedFiles:
    """Data files that no commit names, of a time in which all commits are known. Failed writes leave them behind."""

    files: int
    bytes: int
    seconds: float
    """The length of that time."""
    newer: tuple[int, int] = (0, 0)
    """The files, and their bytes, that are newer than the newest commit: a write may be running."""


@dataclass(frozen=True, slots=True)
class PastCommits:
    """The commits of a table, newest first, with their files."""

    commits: tuple[CommitFiles, ...]
    cut: bool = False
    """Whether older commits of the requested days were not read."""
    unnamed: UnnamedFiles | None = None
    """``None`` if the table was not listed."""


@dataclass(frozen=True, slots=True)
class ColumnValues:
    """What the statistics of the files tell about the values of a column."""

    most: int | None = None
    """There are at most so many; ``None`` if some file has no statistics."""
    changed: bool = False
    """Whether an UPDATE is known to have changed it."""
