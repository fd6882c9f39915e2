"""``ADD`` and ``DROP CONSTRAINT``, ``SET`` and ``DROP NOT NULL`` (delta-1.12)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from tablectl.delta import keys
from tablectl.delta.names import TableName, column_sql, parse_column, quote_name
from tablectl.model.catalog_answers import Right
from tablectl.model.commit_contents import CommittedTransaction, Kind, MetadataChange, settings_commit
from tablectl.model.operations.base import NOWHERE, SQL_REFERENCE, Operation, StatementForm, alter
from tablectl.model.plan import Basis, CommitEffect, Verb

_PAGE = "https://docs.delta.io/delta-constraints/"
_ADD = StatementForm(
    id="add constraint",
    template="ALTER TABLE {table} ADD CONSTRAINT {name} CHECK ({expression})",
    source=_PAGE,
    example="ALTER TABLE `lake`.`sales`.`orders` ADD CONSTRAINT `positive` CHECK (amount > 0)",
)
_DROP = StatementForm(
    id="drop constraint",
    template="ALTER TABLE {table} DROP CONSTRAINT IF EXISTS {name}",
    source=SQL_REFERENCE + "sql-ref-syntax-ddl-alter-table-drop-constraint",
    example="ALTER TABLE `lake`.`sales`.`orders` DROP CONSTRAINT IF EXISTS `positive`",
)
_SET_NOT_NULL = StatementForm(
    id="set not null",
    template="ALTER TABLE {table} ALTER COLUMN {column} SET NOT NULL",
    source=_PAGE,
    example="ALTER TABLE `lake`.`sales`.`orders` ALTER COLUMN `customer_id` SET NOT NULL",
    run_on=NOWHERE,
)
_DROP_NOT_NULL = StatementForm(
    id="drop not null",
    template="ALTER TABLE {table} ALTER COLUMN {column} DROP NOT NULL",
    source=_PAGE,
    example="ALTER TABLE `lake`.`sales`.`orders` ALTER COLUMN `customer_id` DROP NOT NULL",
)


@dataclass(frozen=True, slots=True)
class AddConstraint(Operation):
    """Reads all rows, and fails if one of them does not satisfy the expression."""

    name: str
    expression: str
    """As ``delta.expressions`` admits it: its parentheses are balanced, so that it cannot end the clause."""
    verb: ClassVar[Verb] = "ADD CONSTRAINT"
    word: ClassVar[str] = "add-constraint"
    forms: ClassVar[tuple[StatementForm, ...]] = (_ADD,)

    def lines(self, table: TableName) -> tuple[str, ...]:
        return alter(table, f"ADD CONSTRAINT {quote_name(self.name)} CHECK ({self.expression})")

    def effect(self, basis: Basis) -> CommitEffect:
        return CommitEffect(sets=((self._key, self.expression),), features=self._features(basis), scans=True)

    def commits(self, basis: Basis) -> tuple[CommittedTransaction, ...]:
        change = MetadataChange(sets=((self._key, self.expression),))
        return (settings_commit(Kind.ADD_CONSTRAINT, change, self._features(basis), scans=True),)

    @property
    def _key(self) -> str:
        return f"{keys.CONSTRAINTS}{self.name.lower()}"

    def _features(self, basis: Basis) -> tuple[str, ...]:
        return () if basis.protocol.protocol().has(_FEATURE) else (_FEATURE,)


_FEATURE = "checkConstraints"


@dataclass(frozen=True, slots=True)
class DropConstraint(Operation):
    """Without an error for a constraint that is gone."""

    name: str
    verb: ClassVar[Verb] = "DROP CONSTRAINT"
    word: ClassVar[str] = "drop-constraint"
    forms: ClassVar[tuple[StatementForm, ...]] = (_DROP,)
    turn: ClassVar[int] = 0

    def lines(self, table: TableName) -> tuple[str, ...]:
        return alter(table, f"DROP CONSTRAINT IF EXISTS {quote_name(self.name)}")

    def effect(self, basis: Basis) -> CommitEffect:
        return CommitEffect(removes=tuple(self.properties))

    def commits(self, basis: Basis) -> tuple[CommittedTransaction, ...]:
        return (settings_commit(Kind.DROP_CONSTRAINT, MetadataChange(removes=tuple(self.properties))),)

    @property
    def properties(self) -> Mapping[str, str | None]:
        return {f"{keys.CONSTRAINTS}{self.name.lower()}": None}


@dataclass(frozen=True, slots=True)
class SetNotNull(Operation):
    """Reads all rows, and fails if the column is null in one of them."""

    column: str
    verb: ClassVar[Verb] = "SET NOT NULL"
    right: ClassVar[Right] = "MODIFY"
    word: ClassVar[str] = "set-not-null"
    forms: ClassVar[tuple[StatementForm, ...]] = (_SET_NOT_NULL,)

    def lines(self, table: TableName) -> tuple[str, ...]:
        return alter(table, f"ALTER COLUMN {column_sql(parse_column(self.column))} SET NOT NULL")

    def effect(self, basis: Basis) -> CommitEffect:
        return CommitEffect(features=self._features(basis), scans=True)

    def commits(self, basis: Basis) -> tuple[CommittedTransaction, ...]:
        change = MetadataChange(schema="other")
        return (settings_commit(Kind.SET_NOT_NULL, change, self._features(basis), scans=True),)

    def _features(self, basis: Basis) -> tuple[str, ...]:
        return () if basis.protocol.protocol().has(_INVARIANTS) else (_INVARIANTS,)


_INVARIANTS = "invariants"
"""The feature of NOT NULL (``InvariantsTableFeature`` in ``TableFeature.scala``)."""


@dataclass(frozen=True, slots=True)
class DropNotNull(Operation):
    """Reads no row."""

    column: str
    verb: ClassVar[Verb] = "DROP NOT NULL"
    right: ClassVar[Right] = "MODIFY"
    word: ClassVar[str] = "drop-not-null"
    forms: ClassVar[tuple[StatementForm, ...]] = (_DROP_NOT_NULL,)

    def lines(self, table: TableName) -> tuple[str, ...]:
        return alter(table, f"ALTER COLUMN {column_sql(parse_column(self.column))} DROP NOT NULL")

    def effect(self, basis: Basis) -> CommitEffect:
        return CommitEffect()

    def commits(self, basis: Basis) -> tuple[CommittedTransaction, ...]:
        return (settings_commit(Kind.CHANGE_COLUMN, MetadataChange(schema="other")),)
