"""Finds tables by SQL statements that read no table. Every engine inherits it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from tablectl.delta.names import TableName, find_name, quote_name, quote_text
from tablectl.engine.describe import delta_location, describe, not_found, schema_name, shown_facts
from tablectl.engine.interface import SIMPLE_NAME
from tablectl.model.errors import EngineError, TablectlError, of_table

STAMP_KEY = "spark.databricks.delta.commitInfo.userMetadata"
SETTINGS = {
    # Spark would expand ${…} inside our literals before parsing; the other setting changes what a backslash means.
    "spark.sql.variable.substitute": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    # A file that cannot be read for a moment would be missing from a rewritten table.
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
    # Policies checked each key. A key of another engine is set only where a policy says that it is meant.
    "spark.databricks.delta.allowArbitraryProperties.enabled": "true",
    # Without it no commit carries the stamp.
    "spark.databricks.delta.commitInfo.enabled": "true",
    # It would turn CHAR and VARCHAR columns into plain strings in a rewritten table.
    "spark.sql.legacy.charVarcharAsString": "false",
}
NEVER_INHERITED = (
    # A commit with these counts as the user's own batch, which Delta then skips (``DeltaSQLConf.scala``).
    "spark.databricks.delta.write.txnAppId",
    "spark.databricks.delta.write.txnVersion",
    "spark.databricks.delta.write.txnVersion.autoReset.enabled",
    # A write that replaces less than the whole table, or other columns than the listed ones.
    "spark.databricks.delta.schema.autoMerge.enabled",
    "spark.sql.sources.partitionOverwriteMode",
)


class SqlCatalog(ABC):
    """``Catalog`` on anything that answers queries."""

    @abstractmethod
    def rows(self, sql: str) -> Sequence[Sequence[Any]]:
        """All rows of a query. Raises ``EngineError``."""

    def row(self, sql: str) -> tuple[str | None, ...]:
        """The first row of a query, with its values as strings."""
        return tuple(None if value is None else str(value) for value in self.rows(sql)[0])

    @abstractmethod
    def setting(self, key: str) -> str:
        """A setting of the session; empty if it is not set. Raises ``EngineError``."""

    def log_store(self, scheme: str) -> str:
        """As ``CommitDriver.log_store``. As in Delta, the setting for all schemes takes precedence."""
        return self.setting("spark.delta.logStore.class") or self.setting(f"spark.delta.logStore.{scheme}.impl")

    def location(self, table: TableName) -> str:
        """The location of a table: from the catalog if it tells, else by ``DESCRIBE TABLE``, which loads the table's
        log.
        """
        schema, name = table.parts
        if SIMPLE_NAME.fullmatch(name):
            where = find_name(self.tables(table.catalog, schema, name), table)
            if isinstance(where, TablectlError):
                raise where
            if where:
                return where
        return self._described(table)

    def schemas(self, catalog: str) -> tuple[str, ...]:
        """The schemas of a catalog, by one ``SHOW SCHEMAS``."""
        try:
            rows = self.rows(f"SHOW SCHEMAS IN {quote_name(catalog)}")
        except EngineError as error:
            raise not_found(f"the catalog {catalog}", error) or error from error
        return tuple(name for row in rows if (name := schema_name(row[0])))

    def tables(self, catalog: str, schema: str, like: str = "*") -> Mapping[TableName, str | TablectlError]:
        """The locations of a schema's tables, by one ``SHOW TABLE EXTENDED``, which reads only the catalog. Tables
        whose facts are ambiguous in it take a ``DESCRIBE TABLE`` each, and so do all tables of a catalog that supports
        only ``SHOW TABLES``.
        """
        within = f"IN {quote_name(catalog)}.{quote_name(schema)} LIKE {quote_text(like)}"
        try:
            rows = self.rows(f"SHOW TABLE EXTENDED {within}")
        except EngineError as error:
            missing = not_found(f"the schema {catalog}.{schema}", error)
            if missing:
                raise missing from error
            rows = self.rows(f"SHOW TABLES {within}")
        # [2]: a temporary view; some endpoints send all values as texts
        names = ((TableName(catalog, (schema, row[1])), row) for row in rows if str(row[2]).lower() != "true")
        return {name: self._where(name, row[3] if len(row) > 3 else "") for name, row in names}

    def _where(self, table: TableName, information: str) -> str | TablectlError:
        def where() -> str:
            facts = shown_facts(information)
            return delta_location(table.text, facts) if facts else self._described(table)

        return of_table(table.text, where)

    def _described(self, table: TableName) -> str:
        return describe(self.rows, table.sql, table.text)
