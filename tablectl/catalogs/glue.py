"""The AWS Glue Data Catalog, read by boto3. Needs no Spark.

Spark keeps the location of a table in ``SerdeInfo.Parameters.path``, because Hive's own field may hold a placeholder
(``HiveExternalCatalog.scala`` of Spark 4.2, ``createDataSourceTable``). Athena and Glue's crawlers mark Delta tables by
the parameters ``table_type`` or ``classification``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from tablectl.catalogs.http_client import why_no_url
from tablectl.catalogs.registry import CatalogReader, CatalogTable, Listed, entry_name, matching
from tablectl.delta.credentials import without_credentials
from tablectl.delta.locations import is_absolute
from tablectl.delta.names import TableName
from tablectl.model.errors import LiveError, MissingError, UsageError
from tablectl.policies.catalog_config import CatalogConfig

MOST_NAMES = 200_000
"""The maximum number of databases in a catalog, and of tables in a database."""
_MOST_PAGES = 10_000
"""A page may be empty and still be followed by another one."""
_PLACEHOLDER = "-__PLACEHOLDER__"
_MANIFEST = "/_symlink_format_manifest"
_RIGHTS = "the login needs glue:GetDatabases, glue:GetTables and glue:GetTable"


@dataclass(frozen=True, slots=True)
class GlueCatalog(CatalogReader):
    """``CatalogReader`` on AWS Glue. Storage is read with the credentials of the environment. Glue has no settings of
    Databricks, and AWS decides on rights by the policies of IAM.
    """

    client: Any
    """boto3's client ``glue``."""
    account: str = ""
    """The account whose catalog is read; empty for that of the login."""
    resolves = True

    def schemas(self, catalog: str) -> tuple[str, ...]:
        found = self._pages(self.client.get_databases, "DatabaseList", f"the catalog {catalog}")
        return tuple(entry_name(entry, "Name", "a database") for entry in found)

    def tables(self, catalog: str, schema: str, like: str = "*") -> Listed:
        """As ``CatalogReader.tables``. A few literal names are loaded one by one."""
        what = f"the schema {catalog}.{schema}"
        found = self._pages(self.client.get_tables, "TableList", what, DatabaseName=schema.lower())
        entries = ((entry_name(entry, "Name", "a table"), entry) for entry in found)
        return matching(self, catalog, schema, like, entries, _read)

    def load(self, name: TableName) -> CatalogTable:
        """As ``CatalogReader.load``. Glue keeps names in lower case."""
        schema, table = name.parts
        answer = self._asked(self.client.get_table, name.text, DatabaseName=schema.lower(), Name=table.lower())
        entry = answer.get("Table")
        if not isinstance(entry, dict):
            raise LiveError(f"{name.text}: the catalog's answer has another form than expected")
        return _read(name, entry)

    def _pages(self, call: Callable[..., Mapping[str, Any]], key: str, what: str, **request: str) -> Iterator[Any]:
        token, count, seen = "", 0, set[str]()
        for _ in range(_MOST_PAGES):
            answer = self._asked(call, what, **request, **({"NextToken": token} if token else {}))
            entries = answer.get(key) or []
            if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
                raise LiveError(f"{what}: the catalog's list has another form than expected")
            yield from entries
            count += len(entries)
            token = answer.get("NextToken") or ""
            if not token:
                return
            if token in seen:
                raise LiveError(f"{what}: the catalog's pages do not end: it sends the same page token again")
            seen.add(token)
            if count > MOST_NAMES:
                break
        raise LiveError(f"{what}: the catalog's list is too long ({count:,} entries so far)", "write narrower patterns")

    def _asked(self, call: Callable[..., Mapping[str, Any]], what: str, **request: str) -> Mapping[str, Any]:
        """One request. boto3 repeats those that a busy service refuses."""
        try:
            return call(**request, **({"CatalogId": self.account} if self.account else {}))
        except ClientError as error:
            code = str(error.response.get("Error", {}).get("Code", ""))
            if code == "EntityNotFoundException":
                raise MissingError(f"{what} does not exist", "check the name and `catalogs` in tablectl.yaml") from None
            hint = _RIGHTS if "AccessDenied" in code else ""
            raise LiveError(f"{what}: AWS Glue answers: {str(error)[:400]}", hint) from None
        except BotoCoreError as error:
            hint = "log in (AWS_PROFILE, environment, role) and set `region` of the catalog in tablectl.yaml"
            raise LiveError(f"{what}: AWS Glue cannot be asked: {str(error)[:400]}", hint) from None


def open_glue(key: str, settings: CatalogConfig, environ: Mapping[str, str]) -> CatalogReader:
    """The catalog with the key in ``catalogs``. Makes no request. Raises ``UsageError``."""
    if settings.url and (wrong := why_no_url(settings.url, token=True)):
        raise UsageError(f"`catalogs.{key}.url` {wrong}", "set the endpoint of AWS Glue, or leave it out")
    bounds = Config(connect_timeout=10, read_timeout=60, max_pool_connections=16, retries={"mode": "standard"})
    try:
        session = boto3.Session(
            profile_name=settings.profile or None,
            region_name=settings.region or environ.get("AWS_REGION") or None,
        )
        client = session.client("glue", endpoint_url=settings.url or None, config=bounds)
    except (BotoCoreError, ValueError) as error:
        hint = "set `region` and, for a profile of ~/.aws, `profile`"
        raise UsageError(f"`catalogs.{key}`: AWS Glue cannot be opened: {error}", hint) from error
    return GlueCatalog(client, settings.account)


def _read(name: TableName, entry: Mapping[str, Any]) -> CatalogTable:
    """A table in the form of Glue's lists. Raises ``LiveError`` for anything else than a Delta table."""
    kind, target = entry.get("TableType"), entry.get("TargetTable")
    if isinstance(kind, str) and "VIEW" in kind.upper():
        raise LiveError(f"{name.text} is a view", "policies are for tables: name the tables under the view")
    if isinstance(target, dict):
        leads = ".".join(str(target.get(key) or "?")[:255] for key in ("DatabaseName", "Name"))
        raise LiveError(
            f"{name.text} is a link to the table {leads} of the account {_text(target, 'CatalogId') or '?'}",
            "name that table: `catalogs: {NAME: {type: glue, account: …}}` reads another account's catalog",
        )
    storage = _section(entry, "StorageDescriptor")
    path = _text(_section(_section(storage, "SerdeInfo"), "Parameters"), "path")
    given = _text(storage, "Location")
    location = path or ("" if given.endswith(_PLACEHOLDER) else given)
    # The format of a table: ``delta`` if anything that writes to Glue marks it so
    parameters = _section(entry, "Parameters")
    said = [_text(parameters, key).casefold() for key in ("spark.sql.sources.provider", "table_type", "classification")]
    form = "delta" if "delta" in said else next((each for each in said if each), "")
    if form != "delta":
        raise LiveError(f"{name.text} is not a Delta table (its format is {form[:40] or 'unknown'})")
    if location.rstrip("/").endswith(_MANIFEST):
        raise LiveError(
            f"{name.text} lists the manifest of a Delta table, not the table",
            "let the crawler make native Delta tables, or name the table by its path",
        )
    if not is_absolute(location):
        raise LiveError(f"{name.text}: the catalog has no location for it")
    return CatalogTable(name, without_credentials(location))


def _section(entry: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = entry.get(key)
    return found if isinstance(found, dict) else {}


def _text(entry: Mapping[str, Any], key: str) -> str:
    found = entry.get(key)
    return found if isinstance(found, str) else ""
