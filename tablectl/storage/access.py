"""How storage is reached with what a catalog vends: temporary credentials by location."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:  # writers do without it: only catalogs make such records
    from tablectl.model.managed_table import CatalogEntry, ManagedTable


Provider = Callable[[], Any]
"""A credential provider in obstore's form. obstore calls it again before the credentials expire."""


@dataclass(frozen=True)
class TemporaryCredentials:
    """Credentials for the storage of one table."""

    family: str
    """The kind of store, ``s3``, ``gs`` or ``az``; empty if the storage needs none, as a local disk."""
    values: Mapping[str, str] = field(repr=False, default_factory=dict)
    """As obstore's providers return them: ``access_key_id``, ``secret_access_key``, ``token``; ``sas_token``."""
    expires: datetime | None = None
    """With its time zone; ``None`` if unknown."""
    prefixes: tuple[str, ...] = ()
    """The locations that they open, in canonical form."""


class StorageAccess(Protocol):
    """What catalogs know about locations. Thread-safe."""

    def provider(self, location: str, *, write: bool = False) -> Provider | None:
        """The credentials of a table's location; ``None`` if those of the environment apply.

        The provider raises ``LiveError`` if the catalog vends none.
        """
        ...

    def managed(self, location: str) -> ManagedTable | None:
        """The newest answer about a table whose commits go through its catalog; ``None`` for every other table.

        Raises ``LiveError`` if the catalog does not answer.
        """
        ...

    def entry(self, location: str) -> CatalogEntry | None:
        """What the catalog says about a table besides its state; ``None`` for a table without a configured catalog.

        Raises ``LiveError`` if the catalog does not answer.
        """
        ...
