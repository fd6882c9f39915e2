"""``ALTER TABLE … SET MANAGED``, of Databricks."""

from __future__ import annotations

from typing import ClassVar

from tablectl.delta.names import TableName
from tablectl.frozen import frozen
from tablectl.model.code_block import Code
from tablectl.model.operations.base import Operation, alter
from tablectl.model.operations.catalog_setting import CatalogSetting
from tablectl.model.plan import Verb


@frozen
class SetManaged(CatalogSetting, Operation):
    """The catalog takes over the storage of an external table, and the table moves there."""

    verb: ClassVar[Verb] = "SET MANAGED"
    word: ClassVar[str] = "set-managed"
    turn: ClassVar[int] = 5
    moves: ClassVar[bool] = True

    def code(self, table: TableName) -> Code:
        """The statement."""
        return alter(table, self.verb)
