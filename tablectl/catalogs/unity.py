"""Unity Catalog through its open REST API: ``/api/2.1/unity-catalog`` and, for Delta tables, ``…/delta/v1``.

The paths and shapes are those of ``api/all.yaml`` and ``api/delta.yaml`` of unitycatalog/unitycatalog 0.6.0. Answers of
that server are in ``tests/recordings``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from tablectl.catalogs.http_client import AnswerError, HttpClient, OversizeAnswerError, segment
from tablectl.catalogs.registry import CatalogReader, CatalogTable, Listed, Operation, entry_name, matching
from tablectl.catalogs.unity_answers import (
    catalog_entry,
    identities,
    managed_table,
    privileges,
    through_catalog,
)
from tablectl.delta.credentials import without_credentials
from tablectl.delta.locations import canonical_location, is_absolute
from tablectl.delta.names import TableName
from tablectl.model.catalog_answers import CatalogEntry, TableRights
from tablectl.model.errors import LiveError, MissingError, TablectlError
from tablectl.storage.object_stores import TemporaryCredentials

API = "/api/2.1/unity-catalog"
ME = "/api/2.0/preview/scim/v2/Me"
"""The login and its groups, of a workspace of Databricks (``CurrentUserAPI`` of databricks-sdk)."""
_AT_ONCE = 8
"""How many tables are asked about at the same time."""
MOST_NAMES = 200_000
"""The maximum number of schemas in a catalog, and of tables in a schema."""
_EMPTY_PAGES = 1_000
"""The maximum number of pages in a row without an entry. Paging may end in an empty page, and the catalog may filter
what the caller must not see after it made the pages.
"""
_LISTING_SECONDS = 900.0
_PAGE_SIZES = (100, 10, 1)
"""The entries to request per page: entries of wide tables have hundreds of kilobytes."""
_NO_DELTA_API = frozenset({404, 405, 501})
_OTHER_FORMAT = "UnsupportedTableFormatException"
_NO_TABLE = frozenset({"NoSuchTableException", "TABLE_NOT_FOUND", "NOT_FOUND"})
_NO_SCHEMA = frozenset({"NoSuchSchemaException", "SCHEMA_NOT_FOUND", "SCHEMA_DOES_NOT_EXIST"})
_NO_CATALOG = frozenset({"NoSuchCatalogException", "CATALOG_NOT_FOUND", "CATALOG_DOES_NOT_EXIST"})


@dataclass(frozen=True, slots=True)
class UnityCatalog(CatalogReader):
    """``CatalogReader`` on Unity Catalog. ``names`` maps the keys of ``catalogs:`` to names on the server."""

    http: HttpClient
    names: Mapping[str, str]
    vends: bool = True
    clock: Callable[[], float] = time.monotonic

    def schemas(self, catalog: str) -> tuple[str, ...]:
        path = f"{API}/schemas"
        found = self._pages(path, "schemas", f"the catalog {catalog}", catalog_name=self._server_name(catalog))
        return tuple(entry_name(entry, "name", "a schema") for entry in found)

    def tables(self, catalog: str, schema: str, like: str = "*") -> Listed:
        """As ``CatalogReader.tables``. A few literal names are loaded one by one."""
        found = self._pages(
            f"{API}/tables",
            "tables",
            f"the schema {catalog}.{schema}",
            catalog_name=self._server_name(catalog),
            schema_name=schema,
        )
        entries = ((entry_name(entry, "name", "a table"), entry) for entry in found)
        return matching(self, catalog, schema, like, entries, _read)

    def load(self, name: TableName) -> CatalogTable:
        """As ``CatalogReader.load``: the Delta API's one answer, else the entry of the list API."""
        try:
            answer = self.http.get(self._delta_path(name))
        except AnswerError as error:
            if error.status not in _NO_DELTA_API and error.kind != _OTHER_FORMAT:
                raise LiveError(f"{name.text}: {error.message}", error.hint) from None
            if error.kind in _NO_TABLE | _NO_SCHEMA | _NO_CATALOG:
                raise _missing(name) from None
            return _read(name, self._list_entry(name))
        table = managed_table(answer, name.text)
        location = _location(name, answer["metadata"]["location"])
        return CatalogTable(name, location, table.table_id, table if table.managed else None, table.managed)

    def entry(self, name: TableName) -> CatalogEntry:
        """As ``CatalogReader.entry``: the entry of the list API. The answer of the Delta API has no settings."""
        return catalog_entry(self._list_entry(name))

    def rights(self, names: Sequence[TableName]) -> Mapping[TableName, TableRights]:
        """As ``CatalogReader.rights``: the effective permissions of Databricks, which the open-source server does not
        have.
        """
        try:
            principal, groups = identities(self.http.get(ME))
        except TablectlError:
            return {}
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            asked = pool.map(lambda name: self._rights(name, principal, groups), names)
            return {name: found for name, found in zip(names, asked, strict=True) if found is not None}

    def _rights(self, name: TableName, principal: str, groups: frozenset[str]) -> TableRights | None:
        """``None`` if the catalog does not tell."""
        path = f"{API}/effective-permissions/table/{segment('.'.join((self._server_name(name.catalog), *name.parts)))}"
        held: set[str] = set()
        seen = [""]
        try:
            owner = self._list_entry(name).get("owner")
            owns = isinstance(owner, str) and owner.casefold() in groups
            while len(seen) <= _EMPTY_PAGES:
                answer = self.http.get(path, max_results="0", **({"page_token": seen[-1]} if seen[-1] else {}))
                held |= privileges(answer, groups)
                token = answer.get("next_page_token")
                if not token:
                    return TableRights(principal, frozenset(held), owns)
                if token in seen:
                    return None
                seen.append(str(token))
        except (TablectlError, TypeError):
            return None
        return None

    def credentials(self, table: CatalogTable, operation: Operation) -> TemporaryCredentials:
        """As ``CatalogReader.credentials``: of the Delta API, else of the older API by the table's id."""
        try:
            path = f"{self._delta_path(table.name)}/credentials"
            return self._vended(self.http.get(path, operation=operation), table)
        except AnswerError as error:
            if error.status not in _NO_DELTA_API or error.kind in _NO_TABLE or not table.table_id:
                raise _not_vended(table, error) from None
        body = {"table_id": table.table_id, "operation": operation}
        try:
            return self._vended_before(self.http.post(f"{API}/temporary-table-credentials", body), table)
        except AnswerError as error:
            raise _not_vended(table, error) from None

    def _list_entry(self, name: TableName) -> dict[str, Any]:
        catalog = self._server_name(name.catalog)
        try:
            return self.http.get(f"{API}/tables/{segment('.'.join((catalog, *name.parts)))}")
        except AnswerError as error:
            if error.status == 404 and error.kind:
                raise _missing(name) from None
            raise LiveError(f"{name.text}: {error.message}", error.hint or _no_unity(error)) from None

    def _pages(self, path: str, key: str, what: str, **query: str) -> Iterator[dict[str, Any]]:
        """The entries of all pages. A page may be empty and still be followed by another one."""
        token, count, empty, end = "", 0, 0, self.clock() + _LISTING_SECONDS
        sizes = list(_PAGE_SIZES)
        seen: set[str] = set()
        while True:
            answer = self._page(path, what, {**query, **({"page_token": token} if token else {})}, sizes)
            entries = answer.get(key) or []
            if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
                raise LiveError(f"{what}: the catalog's list has another form than expected")
            yield from entries
            count, empty = count + len(entries), 0 if entries else empty + 1
            token = answer.get("next_page_token") or ""
            if not token:
                return
            if not isinstance(token, str) or token in seen:
                raise LiveError(f"{what}: the catalog's pages do not end: it sends the same page token again")
            seen.add(token)
            if count > MOST_NAMES or empty > _EMPTY_PAGES or self.clock() > end:
                hint = "write narrower patterns, or name the tables"
                raise LiveError(f"{what}: the catalog's list is too long ({count:,} entries so far)", hint)

    def _page(self, path: str, what: str, query: Mapping[str, str], sizes: list[int]) -> dict[str, Any]:
        """One page, with the first of the sizes whose answer is small enough. Sizes that are too large are dropped."""
        while True:
            try:
                return self.http.get(path, **query, max_results=str(sizes[0]))
            except OversizeAnswerError:
                if len(sizes) == 1:
                    raise
                sizes.pop(0)
            except AnswerError as error:
                if error.status == 404 and error.kind:
                    raise MissingError(
                        f"{what} does not exist", "check the name and `catalogs` in tablectl.yaml"
                    ) from None
                raise LiveError(f"{what}: {error.message}", error.hint or _no_unity(error)) from None

    def _vended(self, answer: Mapping[str, Any], table: CatalogTable) -> TemporaryCredentials:
        """The credentials of the Delta API: those whose prefix is the longest one that covers the table."""
        given = answer.get("storage-credentials")
        place = canonical_location(table.location)
        found = [each for each in given if isinstance(each, dict)] if isinstance(given, list) else []
        covering = [each for each in found if _covers(each.get("prefix"), place)]
        if not covering:
            raise LiveError(f"{table.name.text}: the catalog vended no credentials for {table.location}")
        best = max(covering, key=lambda each: len(str(each["prefix"])))
        config = best.get("config")
        config = config if isinstance(config, dict) else {}
        values = {key: value for key, value in config.items() if isinstance(value, str) and value}
        self.http.secrets.add(*values.values())
        prefix = canonical_location(str(best["prefix"]))
        return _credentials(
            s3=(values.get("s3.access-key-id"), values.get("s3.secret-access-key"), values.get("s3.session-token")),
            sas=values.get("azure.sas-token"),
            oauth=values.get("gcs.oauth-token"),
            expires=best.get("expiration-time-ms"),
            prefix=prefix,
        )

    def _vended_before(self, answer: Mapping[str, Any], table: CatalogTable) -> TemporaryCredentials:
        """The credentials of ``temporary-table-credentials``."""

        def text(section: str, key: str) -> str | None:
            held = answer.get(section)
            value = held.get(key) if isinstance(held, dict) else None
            if isinstance(value, str) and value:
                self.http.secrets.add(value)
                return value
            return None

        aws = "aws_temp_credentials"
        return _credentials(
            s3=(text(aws, "access_key_id"), text(aws, "secret_access_key"), text(aws, "session_token")),
            sas=text("azure_user_delegation_sas", "sas_token"),
            oauth=text("gcp_oauth_token", "oauth_token"),
            expires=answer.get("expiration_time"),
            prefix=canonical_location(table.location),
        )

    def _delta_path(self, name: TableName) -> str:
        schema, table = name.parts
        catalog = segment(self._server_name(name.catalog))
        return f"{API}/delta/v1/catalogs/{catalog}/schemas/{segment(schema)}/tables/{segment(table)}"

    def _server_name(self, catalog: str) -> str:
        return self.names.get(catalog) or catalog


def _read(name: TableName, entry: Mapping[str, Any]) -> CatalogTable:
    """A table in the form of the list API. Raises ``LiveError`` for anything else than a Delta table."""
    kind, form = entry.get("table_type"), entry.get("data_source_format")
    if isinstance(kind, str) and "VIEW" in kind:
        raise LiveError(f"{name.text} is a view", "policies are for tables: name the tables under the view")
    if form != "DELTA":
        shown = form if isinstance(form, str) else "unknown"
        raise LiveError(f"{name.text} is not a Delta table (its format is {shown[:40]})")
    where, table_id = _location(name, entry.get("storage_location")), entry.get("table_id")
    properties = entry.get("properties")
    managed = through_catalog(properties if isinstance(properties, dict) else {})
    known = table_id if isinstance(table_id, str) else ""
    return CatalogTable(name, where, known, None, managed, catalog_entry(entry))


def _credentials(
    *,
    s3: tuple[str | None, str | None, str | None],
    sas: str | None,
    oauth: str | None,
    expires: object,
    prefix: str,
) -> TemporaryCredentials:
    key, secret, token = s3
    if key and secret:
        values = {"access_key_id": key, "secret_access_key": secret, **({"token": token} if token else {})}
        return TemporaryCredentials("s3", values, _time(expires), (prefix,))
    if sas:
        return TemporaryCredentials("az", {"sas_token": sas.lstrip("?")}, _time(expires), (prefix,))
    if oauth:
        return TemporaryCredentials("gs", {"token": oauth}, _time(expires), (prefix,))
    return TemporaryCredentials("", {}, _time(expires), (prefix,))


def _time(milliseconds: object) -> datetime | None:
    if not isinstance(milliseconds, int) or isinstance(milliseconds, bool) or milliseconds <= 0:
        return None
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _covers(prefix: object, place: str) -> bool:
    if not isinstance(prefix, str) or not prefix:
        return False
    top = canonical_location(prefix)
    return place == top or place.startswith(top.rstrip("/") + "/")


def _location(name: TableName, location: object) -> str:
    if not isinstance(location, str) or not is_absolute(location):
        raise LiveError(f"{name.text}: the catalog has no location for it")
    return without_credentials(location)


def _no_unity(error: AnswerError) -> str:
    """A hint for a server that knows no path of the API: Unity Catalog names the kind of each of its errors."""
    return "" if error.kind or error.status != 404 else "this server is not a Unity Catalog: check `url`"


def _missing(name: TableName) -> LiveError:
    return MissingError(f"{name.text} does not exist", "check the name and `catalogs` in tablectl.yaml")


def _not_vended(table: CatalogTable, error: AnswerError) -> LiveError:
    hint = error.hint or (
        "the catalog must allow credentials for external programs (EXTERNAL USE SCHEMA on Databricks), or set "
        "`credentials: environment` for it in tablectl.yaml"
    )
    return LiveError(f"{table.name.text}: the catalog vends no credentials: {error.message}", hint)
