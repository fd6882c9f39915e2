"""Statements of Databricks that change only what its catalog stores: the table's log does not have it."""

from __future__ import annotations

from typing import ClassVar, Literal, get_args

from tablectl.delta.databricks_runtimes import capability
from tablectl.delta.names import TableName
from tablectl.model.catalog_answers import Right
from tablectl.model.commits import CommittedTransaction
from tablectl.model.operations.base import DATABRICKS_DOCS, NOWHERE, Operation, StatementForm, TableState, alter
from tablectl.model.plan import Basis, CommitEffect, Verb
from tablectl.support.frozen import frozen

OptimizationWord = Literal["ENABLE", "DISABLE", "INHERIT"]


def _optimization_form(word: str) -> StatementForm:
    return StatementForm(
        id=f"{word.lower()} predictive optimization",
        template=f"ALTER TABLE {{table}} {word} PREDICTIVE OPTIMIZATION",
        source=DATABRICKS_DOCS + "optimizations/predictive-optimization",
        example=f"ALTER TABLE `lake`.`sales`.`orders` {word} PREDICTIVE OPTIMIZATION",
        run_on=NOWHERE,
        capability=capability("predictive_optimization", "enable, disable or inherit"),
    )


_OPTIMIZATION = {word: _optimization_form(word) for word in get_args(OptimizationWord)}
_SET_MANAGED = StatementForm(
    id="set managed",
    template="ALTER TABLE {table} SET MANAGED",
    source=DATABRICKS_DOCS + "tables/convert-external-managed",
    example="ALTER TABLE `lake`.`sales`.`orders` SET MANAGED",
    run_on=NOWHERE,
    capability=capability("managed", "set"),
)
_SET_MANAGED_TRUNCATING = StatementForm(
    id="set managed truncate uniform history",
    template="ALTER TABLE {table} SET MANAGED TRUNCATE UNIFORM HISTORY",
    source=DATABRICKS_DOCS + "tables/convert-external-managed",
    example="ALTER TABLE `lake`.`sales`.`orders` SET MANAGED TRUNCATE UNIFORM HISTORY",
    run_on=NOWHERE,
    capability=capability("managed", "set with Iceberg reads"),
)
_UNSET_MANAGED = StatementForm(
    id="unset managed",
    template="ALTER TABLE {table} UNSET MANAGED",
    source=DATABRICKS_DOCS + "tables/convert-external-managed",
    example="ALTER TABLE `lake`.`sales`.`orders` UNSET MANAGED",
    run_on=NOWHERE,
    capability=capability("managed", "unset"),
)


class _CatalogSetting:
    """Mixed into an operation that changes only what the catalog stores."""

    __slots__ = ()

    moves: ClassVar[bool] = False
    """Whether the table moves to another location."""

    def effect(self, basis: Basis) -> CommitEffect:
        del basis
        return CommitEffect(in_catalog=True, moves=self.moves)

    def commits(self, basis: Basis) -> tuple[CommittedTransaction, ...]:
        """None that a source names."""
        del basis
        return ()

    def applied(self, state: TableState) -> TableState:
        return state


@frozen
class SetOptimization(_CatalogSetting, Operation):
    """A setting in the catalog. The table's log does not have it."""

    setting: OptimizationWord
    verb: ClassVar[Verb] = "PREDICTIVE OPTIMIZATION"
    right: ClassVar[Right] = "MANAGE"
    word: ClassVar[str] = "predictive-optimization"
    forms: ClassVar[tuple[StatementForm, ...]] = tuple(_OPTIMIZATION.values())
    turn: ClassVar[int] = 0

    @property
    def form(self) -> StatementForm:
        return _OPTIMIZATION[self.setting]

    def lines(self, table: TableName) -> tuple[str, ...]:
        return alter(table, f"{self.setting} PREDICTIVE OPTIMIZATION")


@frozen
class SetManaged(_CatalogSetting, Operation):
    """The catalog takes over the storage of an external table, and the table moves there."""

    truncates: bool = False
    """Whether the history of Iceberg reads is given up, without which a table with UniForm is refused."""
    verb: ClassVar[Verb] = "SET MANAGED"
    word: ClassVar[str] = "set-managed"
    forms: ClassVar[tuple[StatementForm, ...]] = (_SET_MANAGED, _SET_MANAGED_TRUNCATING)
    turn: ClassVar[int] = 5
    moves: ClassVar[bool] = True

    @property
    def form(self) -> StatementForm:
        return _SET_MANAGED_TRUNCATING if self.truncates else _SET_MANAGED

    def lines(self, table: TableName) -> tuple[str, ...]:
        return alter(table, f"{self.verb}{' TRUNCATE UNIFORM HISTORY' * self.truncates}")


@frozen
class UnsetManaged(_CatalogSetting, Operation):
    """Back to an external table, where it was before ``SET MANAGED``."""

    verb: ClassVar[Verb] = "UNSET MANAGED"
    word: ClassVar[str] = "unset-managed"
    forms: ClassVar[tuple[StatementForm, ...]] = (_UNSET_MANAGED,)
    turn: ClassVar[int] = 5
    moves: ClassVar[bool] = True

    def lines(self, table: TableName) -> tuple[str, ...]:
        return alter(table, self.verb)
