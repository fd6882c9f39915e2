"""``ALTER TABLE … ENABLE | DISABLE | INHERIT PREDICTIVE OPTIMIZATION``, of Databricks."""

from __future__ import annotations

from typing import ClassVar, Literal

from tablectl.delta.names import TableName
from tablectl.frozen import frozen
from tablectl.model.code_block import Code
from tablectl.model.operations.base import Operation, alter
from tablectl.model.operations.catalog_setting import CatalogSetting
from tablectl.model.plan import Verb

OptimizationWord = Literal["ENABLE", "DISABLE", "INHERIT"]


@frozen
class SetOptimization(CatalogSetting, Operation):
    """A setting in the catalog. The table's log does not have it."""

    setting: OptimizationWord
    verb: ClassVar[Verb] = "PREDICTIVE OPTIMIZATION"
    word: ClassVar[str] = "predictive-optimization"
    turn: ClassVar[int] = 0

    def code(self, table: TableName) -> Code:
        """The statement."""
        return alter(table, f"{self.setting} PREDICTIVE OPTIMIZATION")
