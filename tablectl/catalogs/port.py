"""What tablectl asks a catalog: list tables, load one, vend credentials. One implementation per ``type`` of
``catalogs:`` in ``tablectl.yaml``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

from tablectl.delta.names import TableName
from tablectl.model.errors import TablectlError
from tablectl.model.managed_table import CatalogEntry, ManagedTable
from tablectl.model.rights import TableRights
from tablectl.storage.object_stores import TemporaryCredentials
from tablectl.support.frozen import frozen

Operation = Literal["READ", "READ_WRITE"]


@frozen
class CatalogTable:
    """A Delta table as its catalog lists it."""

    name: TableName
    location: str
    """Without credentials."""
    table_id: str = ""
    """The catalog's id of the table; empty if it has none."""
    managed: ManagedTable | None = None
    """The state, if the catalog told it with this answer and manages the table's commits."""
    through_catalog: bool = False
    """Whether commits go through the catalog, so that the log alone does not say what the table is."""
    entry: CatalogEntry | None = None
    """What the catalog says about the table itself, if this answer has it."""


Listed = Mapping[TableName, CatalogTable | TablectlError]
"""The tables of a schema; for one that is not a Delta table, or whose entry cannot be used, the error."""


class CatalogReader(Protocol):
    """Reads one kind of catalog. Thread-safe. Nothing here changes a table.

    Methods raise ``LiveError`` for what does not exist or cannot be read, ``EngineError`` if they need an engine that
    does not answer. Names in answers are a stranger's text.
    """

    @property
    def vends(self) -> bool:
        """Whether tables are read with credentials of the catalog, and with no others."""
        ...

    @property
    def resolves(self) -> bool:
        """Whether an apply asks this catalog, and not the engine, where a name leads: the engine need not know it."""
        ...

    def schemas(self, catalog: str) -> tuple[str, ...]:
        """The schemas of a catalog."""
        ...

    def tables(self, catalog: str, schema: str, like: str = "*") -> Listed:
        """The tables of a schema. ``like`` as in ``engine.port.Catalog``; an implementation may ignore it."""
        ...

    def load(self, name: TableName) -> CatalogTable:
        """One table, by one request if possible. ``LiveError`` if there is no such Delta table."""
        ...

    def entry(self, name: TableName) -> CatalogEntry:
        """What the catalog says about a table besides its state."""
        ...

    def rights(self, names: Sequence[TableName]) -> Mapping[TableName, TableRights]:
        """The rights of the login on tables; without those of which the catalog does not tell."""
        ...

    def credentials(self, table: CatalogTable, operation: Operation) -> TemporaryCredentials:
        """Fresh credentials for a table's storage. Called only where ``vends``."""
        ...
