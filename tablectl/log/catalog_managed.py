"""Tables whose commits go through a catalog: the state from the catalog's answer, and the log with the commits that the
catalog has not published yet (Delta protocol, "Catalog-managed tables").
"""

from __future__ import annotations

import io
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TypeVar

from tablectl.delta.names import TableName
from tablectl.log.listing import commit_name
from tablectl.log.parse_action import Metadata
from tablectl.log.state import check_protocol, frozen_properties, logical_columns, read_schema
from tablectl.model.catalog_answers import ManagedTable
from tablectl.model.table import CatalogDifference, CatalogFacts, LiveTable
from tablectl.storage.log_stores import Stores
from tablectl.storage.read_budget import ReadBudget
from tablectl.storage.table_log import LINE_BYTES, STAGED, FirstNames, TableLog, VanishedError

_Result = TypeVar("_Result")
_Item = TypeVar("_Item")
_STAGED = STAGED[0]


def managed_live_table(name: TableName, managed: ManagedTable) -> LiveTable:
    """The table as its catalog describes it, without a history. Reads no storage. Raises ``LiveError`` if the answer
    cannot be interpreted.
    """
    check_protocol(managed.protocol, managed.location, through_catalog=True)
    metadata = Metadata(managed.table_id, managed.schema, managed.partition_columns, managed.properties)
    schema = read_schema(metadata, managed.location)
    clustering = None
    if managed.protocol.has("clustering"):
        clustering = logical_columns(managed.clustering or (), metadata, schema, managed.location)
    return LiveTable(
        name=name,
        location=managed.location,
        version=managed.version,
        table_id=managed.table_id,
        protocol=managed.protocol,
        schema=schema,
        partition_columns=managed.partition_columns,
        clustering=clustering,
        properties=frozen_properties(metadata),
        vectors=None if managed.protocol.has("deletionVectors") else 0,
        catalog=CatalogFacts(managed.metadata_version, managed.etag),
    )


def differences(catalog: LiveTable, log: LiveTable) -> tuple[CatalogDifference, ...]:
    """Where a catalog and the log of its table disagree at the same version. Pure."""
    keys = sorted(catalog.properties.keys() | log.properties.keys())
    found = [
        CatalogDifference(f"property {key}", catalog.properties.get(key), log.properties.get(key))
        for key in keys
        if catalog.properties.get(key) != log.properties.get(key)
    ]
    facts: tuple[tuple[str, Callable[[LiveTable], str]], ...] = (
        ("protocol", lambda table: table.protocol.text()),
        ("partition columns", lambda table: ", ".join(table.partition_columns)),
        ("clustering", lambda table: ", ".join(".".join(path) for path in table.clustering or ())),
    )
    if catalog.schema != log.schema:
        found.append(CatalogDifference("schema", _columns(catalog), _columns(log)))
    for what, text in facts:
        if text(catalog) != text(log):
            found.append(CatalogDifference(what, text(catalog), text(log)))
    return tuple(found)


def _columns(table: LiveTable) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in table.schema.fields)


@dataclass(frozen=True, slots=True)
class CatalogLog:
    """A ``TableLog`` with the commits that only the catalog knows. A staged file that the catalog does not list was
    never ratified, and is not part of the log.
    """

    log: TableLog
    managed: ManagedTable

    @property
    def location(self) -> str:
        return self.log.location

    @property
    def budget(self) -> ReadBudget:
        return self.log.budget

    @property
    def parallel(self) -> bool:
        return self.log.parallel

    def file(self, name: str) -> str:
        return self.log.file(name)

    def names(self, after: str = "") -> list[str]:
        """As ``TableLog.names``, with each ratified commit under its published name."""
        return self._with_ratified(self.log.names(after), after)

    def first_names(self) -> FirstNames:
        first = self.log.first_names()
        names = self._with_ratified(list(first.names), "")
        return FirstNames(tuple(name for name in names if first.last is None or name <= first.last), first.last)

    def _with_ratified(self, listed: list[str], after: str) -> list[str]:
        published = [name for name in listed if not name.startswith(tuple(f"{each}/" for each in STAGED))]
        known = set(published)
        staged = (commit_name(version) for version in self.managed.commits)
        return [*published, *(name for name in staged if name > after and name not in known)]

    def check_sizes(self, names: Iterable[str]) -> None:
        self.log.check_sizes(map(self._stored, names))

    def size(self, name: str) -> int | None:
        return self.log.size(self._stored(name))

    def identity(self, name: str) -> str:
        return self.log.identity(name)

    def exists(self) -> bool:
        return self.log.exists()

    def read(self, name: str, limit: int = LINE_BYTES) -> bytes:
        return self.log.read(name, limit)

    def lines(self, name: str) -> Generator[bytes, None, None]:
        staged = self._stored(name)
        if staged != name:
            try:
                yield from self.log.lines(staged)
            except VanishedError:  # published, and cleaned up since the catalog answered
                pass
            else:
                return
        yield from self.log.lines(name)

    def open(self, name: str) -> io.RawIOBase | io.BufferedIOBase:
        return self.log.open(name)

    def start(self, call: Callable[[], _Result]) -> Future[_Result] | None:
        return self.log.start(call)

    def each(self, call: Callable[[_Item], _Result], items: Iterable[_Item]) -> Iterator[_Result]:
        return self.log.each(call, items)

    def _stored(self, name: str) -> str:
        """The staged file of a commit that may not be published. If both exist, the catalog's one counts."""
        stem, dot, kind = name.partition(".")
        if kind != "json" or not dot or not stem.isdigit():
            return name
        staged = self.managed.commits.get(int(stem))
        return f"{_STAGED}/{staged}" if staged else name


def open_log(stores: Stores, location: str, managed: ManagedTable | None) -> TableLog:
    """The log at a location, with the catalog's commits if its catalog manages them."""
    log = stores.open(location)
    return log if managed is None else CatalogLog(log, managed)
