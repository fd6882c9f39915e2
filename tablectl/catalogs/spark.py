"""Spark's own catalogs: the session catalog and those under ``spark.sql.catalog.NAME``. Starts Spark on first use."""

from __future__ import annotations

from collections.abc import Callable

from tablectl.catalogs.port import CatalogTable, Listed, Operation
from tablectl.delta.names import TableName
from tablectl.engine.port import Catalog
from tablectl.frozen import frozen
from tablectl.model.errors import LiveError
from tablectl.model.managed_table import CatalogEntry
from tablectl.storage.access import TemporaryCredentials


@frozen
class SparkCatalog:
    """``CatalogReader`` on the engine's ``SHOW`` and ``DESCRIBE`` statements. Spark vends nothing to other programs."""

    open: Callable[[], Catalog]
    """Opens the engine. Raises ``EngineError`` if it does not start."""
    vends = False
    resolves = False

    def schemas(self, catalog: str) -> tuple[str, ...]:
        """As ``CatalogReader.schemas``, by one statement."""
        return self.open().schemas(catalog)

    def tables(self, catalog: str, schema: str, like: str = "*") -> Listed:
        """As ``CatalogReader.tables``, by one statement."""
        found = self.open().tables(catalog, schema, like)
        return {name: CatalogTable(name, where) if isinstance(where, str) else where for name, where in found.items()}

    def load(self, name: TableName) -> CatalogTable:
        """As ``CatalogReader.load``, by one statement."""
        return CatalogTable(name, self.open().location(name))

    def entry(self, name: TableName) -> CatalogEntry:
        """As ``CatalogReader.entry``. Spark's catalogs are not asked: they have no predictive optimization."""
        del name
        return CatalogEntry()

    def credentials(self, table: CatalogTable, operation: Operation) -> TemporaryCredentials:
        """Always raises ``LiveError``."""
        raise LiveError(f"{table.name.text}: Spark's catalogs vend no credentials")
