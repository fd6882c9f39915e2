"""``ALTER TABLE … UNSET MANAGED``, of Databricks."""

from __future__ import annotations

from typing import ClassVar

from tablectl.delta.names import TableName
from tablectl.frozen import frozen
from tablectl.model.code_block import Code
from tablectl.model.operations.base import Operation, alter
from tablectl.model.operations.catalog_setting import CatalogSetting
from tablectl.model.plan import Verb


@frozen
class UnsetManaged(CatalogSetting, Operation):
    """Back to an external table, where it was before ``SET MANAGED``."""

    verb: ClassVar[Verb] = "UNSET MANAGED"
    word: ClassVar[str] = "unset-managed"
    turn: ClassVar[int] = 5
    moves: ClassVar[bool] = True

    def code(self, table: TableName) -> Code:
        """The statement."""
        return alter(table, self.verb)
