"""The catalogs of a command, by name, and what each is asked: list tables, load one, vend credentials.

There is one implementation of ``CatalogReader`` per ``type`` of ``catalogs:`` in ``tablectl.yaml``. One object,
``Catalogs``, looks up tables and opens their storage, so that what a catalog said when a table was found also serves
when it is read.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, Literal

from tablectl.delta.locations import canonical_location, location_fault
from tablectl.delta.names import TableName
from tablectl.engine.interface import SIMPLE_NAME, Catalog
from tablectl.model.catalog_answers import CatalogEntry, ManagedTable, TableRights
from tablectl.model.errors import BrokenTableError, LiveError, TablectlError, of_table
from tablectl.storage.object_stores import Provider, TemporaryCredentials

Operation = Literal["READ", "READ_WRITE"]
_Entry = Mapping[str, Any]
"""A table, or something else, as a catalog lists it."""
_ONE_BY_ONE = 20
"""Up to this many tables are loaded one by one. For more, the whole schema is listed."""


@dataclass(frozen=True, slots=True)
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


class CatalogReader(ABC):
    """Reads one kind of catalog. Thread-safe. Nothing here changes a table. The defaults are what most catalogs say.

    Methods raise ``LiveError`` for what does not exist or cannot be read, ``EngineError`` if they need an engine that
    does not answer. Names in answers are a stranger's text.
    """

    vends: bool = False
    """Whether tables are read with credentials of the catalog, and with no others."""
    resolves: bool = False
    """Whether an apply asks this catalog, and not the engine, where a name leads: the engine need not know it."""

    @abstractmethod
    def schemas(self, catalog: str) -> tuple[str, ...]:
        """The schemas of a catalog."""

    @abstractmethod
    def tables(self, catalog: str, schema: str, like: str = "*") -> Listed:
        """The tables of a schema. ``like`` as in ``engine.port.Catalog``; an implementation may ignore it."""

    @abstractmethod
    def load(self, name: TableName) -> CatalogTable:
        """One table, by one request if possible. ``LiveError`` if there is no such Delta table."""

    def entry(self, name: TableName) -> CatalogEntry:
        """What the catalog says about a table besides its state. Most say nothing."""
        return CatalogEntry()

    def rights(self, names: Sequence[TableName]) -> Mapping[TableName, TableRights]:
        """The rights of the login on tables; without those of which the catalog does not tell. Most do not tell."""
        return {}

    def credentials(self, table: CatalogTable, operation: Operation) -> TemporaryCredentials:
        """Fresh credentials for a table's storage. Called only where ``vends``."""
        raise NotImplementedError


def matching(
    reader: CatalogReader,
    catalog: str,
    schema: str,
    like: str,
    entries: Iterable[tuple[str, _Entry]],
    read: Callable[[TableName, _Entry], CatalogTable],
) -> Listed:
    """The tables of a schema whose names match ``like``. A few literal names are loaded one by one. Otherwise all
    ``entries`` of the schema are asked for, and the matching ones are ``read``.
    """
    globs = like.split("|")
    if len(globs) <= _ONE_BY_ONE and all(SIMPLE_NAME.fullmatch(glob) for glob in globs):
        literal = [TableName(catalog, (schema, glob)) for glob in globs]
        return {name: of_table(name.text, partial(reader.load, name)) for name in literal}
    folded = [glob.casefold() for glob in globs]
    named = ((TableName(catalog, (schema, name)), entry) for name, entry in entries)
    return {
        name: of_table(name.text, partial(read, name, entry))
        for name, entry in named
        if any(fnmatchcase(name.parts[1].casefold(), glob) for glob in folded)
    }


def entry_name(entry: _Entry, key: str, what: str) -> str:
    """The name in an entry of a catalog's list. Raises ``LiveError`` if it has none."""
    name = entry.get(key)
    if not isinstance(name, str) or not name:
        raise LiveError(f"the catalog lists {what} without a name")
    return name


_MARGIN = timedelta(minutes=2)
"""Credentials are renewed this long before they expire, so that a request that was just sent is still answered."""
_UNKNOWN_LIFE = timedelta(minutes=10)
"""How long to use credentials without a time of expiry."""


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(slots=True)
class Catalogs:
    """``engine.port.Catalog`` and ``StorageAccess`` over all configured catalogs. Thread-safe."""

    readers: Mapping[str, CatalogReader]
    """By folded catalog name."""
    default: CatalogReader
    """The catalogs that are not configured: Spark's own."""
    now: Callable[[], datetime] = _now
    _tables: dict[str, CatalogTable] = field(default_factory=dict)
    """By canonical location."""
    _unreachable: dict[str, TablectlError] = field(default_factory=dict)
    """Why a location must not be read, by canonical location."""
    _held: dict[tuple[str, Operation], TemporaryCredentials] = field(default_factory=dict)
    """Credentials by location and operation."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _renewals: dict[tuple[str, Operation], threading.Lock] = field(default_factory=dict)

    def reader(self, catalog: str) -> CatalogReader:
        """The reader of a catalog."""
        return self.readers.get(catalog.casefold(), self.default)

    def schemas(self, catalog: str) -> tuple[str, ...]:
        return self.reader(catalog).schemas(catalog)

    def tables(self, catalog: str, schema: str, like: str = "*") -> Mapping[TableName, str | TablectlError]:
        reader = self.reader(catalog)
        found = reader.tables(catalog, schema, like)

        def known(table: CatalogTable) -> str | TablectlError:
            return of_table(table.name.text, lambda: self._known(table, reader))

        return {name: known(each) if isinstance(each, CatalogTable) else each for name, each in found.items()}

    def location(self, table: TableName) -> str:
        reader = self.reader(table.catalog)
        return self._known(reader.load(table), reader)

    def expect(self, table: TableName, location: str) -> None:
        """Looks up a table that is known from a plan. If that fails, or the name leads elsewhere now, reading the
        location raises the reason: it is never read with other credentials instead.
        """
        if not self.directs(table):
            return
        place = canonical_location(location)
        known = self._tables.get(place)
        if known is not None and known.name.key == table.key:
            return
        try:
            found = canonical_location(self.location(table))
        except TablectlError as error:
            reason: TablectlError = LiveError(error.message, error.hint)
        else:
            if found == place:
                return
            reason = _moved(table, location, found)
        with self._lock:
            self._unreachable[place] = reason

    def directs(self, table: TableName) -> bool:
        """Whether a table's storage or state comes from its catalog, so that its location alone does not reach it."""
        return not table.is_path and self.reader(table.catalog) is not self.default

    def resolves(self, table: TableName) -> bool:
        """Whether an apply asks the table's catalog, and not the engine, where the name leads."""
        return not table.is_path and self.reader(table.catalog).resolves

    def provider(self, location: str, *, write: bool = False) -> Provider | None:
        self._check(location)
        table = self._tables.get(canonical_location(location))
        if table is None or not self.reader(table.name.catalog).vends:
            return None
        operation: Operation = "READ_WRITE" if write else "READ"
        return lambda: self._provided(table, operation)

    def managed(self, location: str) -> ManagedTable | None:
        """As ``StorageAccess.managed``. The first call takes the answer that found the table; each later call asks
        the catalog again.
        """
        self._check(location)
        place = canonical_location(location)
        with self._lock:
            table = self._tables.get(place)
            if table is None or not table.through_catalog:
                return None
            answered = table.managed
            self._tables[place] = replace(table, managed=None)
        if answered is not None:
            return answered
        again = self.reader(table.name.catalog).load(table.name)
        if again.managed is None:
            if again.through_catalog or canonical_location(again.location) == place:
                raise LiveError(
                    f"{table.name.text}: the catalog manages its commits and does not tell its state",
                    "the server needs the Delta API (…/delta/v1) of Unity Catalog",
                )
            raise _moved(table.name, table.location, again.location)
        if again.managed.location != place:
            raise _moved(table.name, table.location, again.location)
        return again.managed

    def entry(self, location: str) -> CatalogEntry | None:
        """As ``StorageAccess.entry``. The answer of a list serves once, as in ``managed``. The name is asked, and not
        the location: a table that becomes a managed one moves.
        """
        self._check(location)
        place = canonical_location(location)
        with self._lock:
            table = self._tables.get(place)
            if table is None:
                return None
            listed = table.entry
            self._tables[place] = replace(table, entry=None)
        return listed if listed is not None else self.reader(table.name.catalog).entry(table.name)

    def rights(self, names: Sequence[TableName]) -> Mapping[TableName, TableRights]:
        """The rights of each catalog's login on tables; without those of which no catalog tells."""
        found: dict[TableName, TableRights] = {}
        for catalog in {name.catalog for name in names if not name.is_path}:
            found |= self.reader(catalog).rights([each for each in names if each.catalog == catalog])
        return found

    def _check(self, location: str) -> None:
        reason = self._unreachable.get(canonical_location(location))
        if reason is not None:
            raise reason

    def _known(self, table: CatalogTable, reader: CatalogReader) -> str:
        """The location, remembered. Raises ``BrokenTableError`` for one that no table can have."""
        fault = location_fault(table.location)
        if fault:
            message = f"{table.name.text}: the location in its catalog {fault}"
            raise BrokenTableError(message, "correct the entry in the catalog")
        if reader is not self.default:
            with self._lock:
                self._tables[canonical_location(table.location)] = table
        return table.location

    def _provided(self, table: CatalogTable, operation: Operation) -> dict[str, Any]:
        """Credentials in obstore's form, which keeps the message of an error alone."""
        try:
            found = self._credentials(table, operation)
        except TablectlError as error:
            message = f"{error.message}; {error.hint}" if error.hint else error.message
            raise LiveError(message, error.hint) from error
        return {**found.values, "expires_at": (found.expires or self.now() + _UNKNOWN_LIFE) - _MARGIN}

    def _credentials(self, table: CatalogTable, operation: Operation) -> TemporaryCredentials:
        """Held credentials, or new ones if those expire soon. One request at a time for each table and operation."""
        key = (canonical_location(table.location), operation)
        with self._lock:
            renewal = self._renewals.setdefault(key, threading.Lock())
        with renewal:
            held = self._held.get(key)
            if held is None or held.expires is None or held.expires - self.now() <= _MARGIN:
                held = self.reader(table.name.catalog).credentials(table, operation)
                if not held.family:
                    raise LiveError(
                        f"{table.name.text}: the catalog vends no credentials for {table.location}",
                        "set `credentials: environment` for this catalog in tablectl.yaml to use your own",
                    )
                if held.expires is not None and held.expires <= self.now():
                    raise LiveError(f"{table.name.text}: the catalog vends credentials that have expired already")
                self._held[key] = held
            return held


def _moved(table: TableName, before: str, now: str) -> LiveError:
    return LiveError(f"{table.text}: the name leads to another table now: {now} instead of {before}", "plan again")


@dataclass(frozen=True, slots=True)
class SparkCatalog(CatalogReader):
    """``CatalogReader`` on the engine's ``SHOW`` and ``DESCRIBE`` statements. Spark vends nothing to other programs,
    and its catalogs have no predictive optimization and tell of no rights.
    """

    open: Callable[[], Catalog]
    """Opens the engine. Raises ``EngineError`` if it does not start."""

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
