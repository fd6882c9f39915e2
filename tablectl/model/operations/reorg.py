"""``REORG TABLE``: to purge deletion vectors, and to upgrade to Iceberg compatibility."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from tablectl.delta import keys
from tablectl.delta.names import TableName
from tablectl.model.catalog_answers import Right
from tablectl.model.commit_contents import (
    CommittedTransaction,
    Kind,
    MetadataChange,
    rearranging_commit,
    settings_commit,
)
from tablectl.model.operations.base import SQL_REFERENCE, Operation, StatementForm
from tablectl.model.operations.settings import mapped_schema
from tablectl.model.plan import Basis, CommitEffect, Rewrite, Verb

_VACUUM = StatementForm(
    id="vacuum",
    template="VACUUM {table}",
    source=SQL_REFERENCE + "delta-vacuum",
    example="VACUUM `lake`.`sales`.`orders`",
)


@dataclass(frozen=True, slots=True)
class VacuumFiles(Operation):
    """Without RETAIN: the table's own retention holds, and Delta's check of it stays on. Only upkeep sends it."""

    verb: ClassVar[Verb] = "VACUUM"
    right: ClassVar[Right] = "MODIFY"
    word: ClassVar[str] = "vacuum"
    forms: ClassVar[tuple[StatementForm, ...]] = (_VACUUM,)

    def lines(self, table: TableName) -> tuple[str, ...]:
        return (f"VACUUM {table.sql}",)

    def effect(self, basis: Basis) -> CommitEffect:
        return CommitEffect()

    def commits(self, basis: Basis) -> tuple[CommittedTransaction, ...]:
        """Two commits without actions, which record its begin and its end (``VacuumCommand.scala`` of Delta 4.4.0)."""
        made = CommittedTransaction(kind=Kind.VACUUM, data_change=False)
        return (made, made)


_PURGE = StatementForm(
    id="purge",
    template="REORG TABLE {table} APPLY (PURGE)",
    source=SQL_REFERENCE + "delta-reorg-table",
    example="REORG TABLE `lake`.`sales`.`orders` APPLY (PURGE)",
)
_UPGRADE = StatementForm(
    id="upgrade uniform",
    template="REORG TABLE {table} APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = {number}))",
    source=SQL_REFERENCE + "delta-reorg-table",
    example="REORG TABLE `lake`.`sales`.`orders` APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 2))",
)


@dataclass(frozen=True, slots=True)
class Purge(Operation):
    """Merges deletion vectors into their files.

    Delta makes no commit if there is nothing to purge (delta-5).
    """

    verb: ClassVar[Verb] = "REORG"
    right: ClassVar[Right] = "MODIFY"
    word: ClassVar[str] = "reorg"
    forms: ClassVar[tuple[StatementForm, ...]] = (_PURGE,)

    def lines(self, table: TableName) -> tuple[str, ...]:
        return _reorg(table, "APPLY (PURGE)")

    def effect(self, basis: Basis) -> CommitEffect:
        return CommitEffect(rewrites_files=True)

    def commits(self, basis: Basis) -> tuple[CommittedTransaction, ...]:
        return (rearranging_commit(Kind.REORG),)

    def rewrite(self, basis: Basis) -> Rewrite | None:
        """Each vector belongs to one file, so the number of vectors limits the files. The table limits the bytes."""
        known = [count for count in (basis.vectors, basis.files) if count is not None]
        return Rewrite(vectors=basis.vectors, files_at_most=min(known, default=None), bytes_at_most=basis.bytes)


@dataclass(frozen=True, slots=True)
class UpgradeUniform(Operation):
    """Up to three commits (delta-1.10). Run again after an interruption, it continues."""

    version: int
    verb: ClassVar[Verb] = "UPGRADE UNIFORM"
    right: ClassVar[Right] = "MODIFY"
    word: ClassVar[str] = "upgrade"
    forms: ClassVar[tuple[StatementForm, ...]] = (_UPGRADE,)
    turn: ClassVar[int] = 2

    def lines(self, table: TableName) -> tuple[str, ...]:
        return _reorg(table, f"APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = {self.version}))")

    def effect(self, basis: Basis) -> CommitEffect:
        return CommitEffect(
            sets=self._sets(basis),
            features=self._features(basis),
            uniform=self.version,
            rewrites_files=self._rewrites(basis),
        )

    def commits(self, basis: Basis) -> tuple[CommittedTransaction, ...]:
        """First the compatibility version and what it requires, then the rewritten files, then the format."""
        settings = tuple(pair for pair in self._sets(basis) if pair[0] != keys.UNIFORM_FORMATS)
        change = MetadataChange(sets=settings, schema=mapped_schema(settings, basis))
        first = settings_commit(Kind.UPGRADE_UNIFORM, change, self._features(basis))
        files = rearranging_commit(Kind.REORG)
        last = settings_commit(Kind.SET_PROPERTIES, MetadataChange(sets=((keys.UNIFORM_FORMATS, "iceberg"),)))
        return (first, files, last) if self._rewrites(basis) else (first, last)

    @property
    def properties(self) -> Mapping[str, str | None]:
        """The properties after the operation. It does not accept a table with column mapping by ``id``."""
        return dict(self._values)

    def rewrite(self, basis: Basis) -> Rewrite | None:
        """All files, from V2 on."""
        if self.version == 1:
            return None
        return Rewrite(vectors=basis.vectors, everything=True, files_at_most=basis.files, bytes_at_most=basis.bytes)

    def implied(self, basis: Basis) -> tuple[str, ...]:
        """It maps columns by name and disables deletion vectors."""
        mapping = ("column_mapping: name",) if basis.mapping == "none" else ()
        return (*mapping, "deletion_vectors: disabled") if basis.writes_vectors else mapping

    @property
    def _values(self) -> tuple[tuple[str, str], ...]:
        return (
            (keys.iceberg_compat(self.version), "true"),
            (keys.COLUMN_MAPPING, "name"),
            (keys.DELETION_VECTORS, "false"),
            (keys.UNIFORM_ATOMIC, "true"),
            (keys.UNIFORM_FORMATS, "iceberg"),
        )

    def _sets(self, basis: Basis) -> tuple[tuple[str, str], ...]:
        return tuple(pair for pair in self._values if pair[0] != keys.COLUMN_MAPPING or basis.mapping == "none")

    def _features(self, basis: Basis) -> tuple[str, ...]:
        brought = ("columnMapping", f"icebergCompatV{self.version}")
        return tuple(feature for feature in brought if not basis.protocol.protocol().has(feature))

    def _rewrites(self, basis: Basis) -> bool:
        return self.version > 1 and basis.files != 0


def _reorg(table: TableName, line: str) -> tuple[str, ...]:
    return (f"REORG TABLE {table.sql}", line)
