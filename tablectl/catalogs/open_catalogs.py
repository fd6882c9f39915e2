"""Opens the catalogs of a configuration. Only what a command uses is loaded and asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

from tablectl.catalogs.http_client import HttpClient, token_of, why_no_url
from tablectl.catalogs.registry import CatalogReader, Catalogs, SparkCatalog
from tablectl.catalogs.unity import UnityCatalog
from tablectl.engine.databricks_login import LOGIN, log_in
from tablectl.engine.interface import Catalog
from tablectl.model.errors import UsageError
from tablectl.policies.catalog_config import CONNECTOR, CatalogConfig

INSTALL_BOTO3 = "install it with `pip install boto3`"
INSTALL_SDK = "install it with `pip install databricks-sdk`"
_HINTS = {
    401: "the catalog wants a login: see docs/unity-catalog.md, section Login",
    403: "the token's user lacks a right in the catalog: USE CATALOG, USE SCHEMA and SELECT are needed to plan",
}


def open_catalogs(
    settings: Mapping[str, CatalogConfig], engine: Callable[[], Catalog], environ: Mapping[str, str]
) -> Catalogs:
    """The catalogs of a configuration. Makes no request and starts no engine.

    Raises ``UsageError`` for an entry that cannot be used, such as a token that would be sent unencrypted.
    """
    spark = SparkCatalog(engine)
    readers: dict[str, CatalogReader] = {
        key.casefold(): WITHOUT_SPARK[each.type](key, each, environ)
        for key, each in settings.items()
        if each.type in WITHOUT_SPARK
    }
    return Catalogs(readers, spark)


def connector_conf(
    conf: Mapping[str, str], catalogs: Mapping[str, CatalogConfig], environ: Mapping[str, str]
) -> dict[str, str]:
    """``engine.conf`` with the address and the token of each catalog whose connector it sets and no more: a file holds
    no token, and a token goes to the address of its catalog alone. Raises ``UsageError`` as ``open_catalogs``.
    """
    found = dict(conf)
    for name, each in catalogs.items():
        key = f"spark.sql.catalog.{name}"
        if each.type == "unity" and each.login == "token" and conf.get(key) == CONNECTOR and f"{key}.uri" not in conf:
            found |= {f"{key}.uri": each.url, f"{key}.token": _token(name, each, environ)}
    return found


def _unity(key: str, settings: CatalogConfig, environ: Mapping[str, str]) -> CatalogReader:
    http = _databricks(key, settings) if settings.login == "databricks" else _by_token(key, settings, environ)
    return UnityCatalog(http, {key: settings.name or key}, vends=settings.credentials == "vended")


def _glue(key: str, settings: CatalogConfig, environ: Mapping[str, str]) -> CatalogReader:
    try:
        from tablectl.catalogs.glue import open_glue  # noqa: PLC0415  # it needs boto3, which is slow to load
    except ImportError as error:
        raise UsageError(f"`catalogs.{key}.type: glue` needs boto3", INSTALL_BOTO3) from error
    return open_glue(key, settings, environ)


WITHOUT_SPARK: Mapping[str, Callable[[str, CatalogConfig, Mapping[str, str]], CatalogReader]] = {
    "unity": _unity,
    "glue": _glue,
}
"""The reader of each type of catalog that needs no Spark. A new type is one function here and one word in
``policies/config.py``.
"""


def _by_token(key: str, settings: CatalogConfig, environ: Mapping[str, str]) -> HttpClient:
    token = _token(key, settings, environ)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return HttpClient(settings.url.rstrip("/"), lambda: headers, hints=_HINTS)


def _token(key: str, settings: CatalogConfig, environ: Mapping[str, str]) -> str:
    """The token for the server of a catalog; empty without one. Raises ``UsageError`` if it must not be sent there."""
    token = token_of(environ, settings.token_variable)
    if wrong := why_no_url(settings.url, token=bool(token)):
        raise UsageError(f"`catalogs.{key}.url` {wrong}", "set the address of the Unity Catalog server")
    allowed = environ.get(f"{settings.token_variable}_HOST", "").lower()
    if token and allowed not in {"", host := urlsplit(settings.url).hostname}:
        message = f"`catalogs.{key}.url` names {host}, and {settings.token_variable}_HOST allows {allowed} alone"
        raise UsageError(message, "see who changed the address: the token is sent there")
    return token


def _databricks(key: str, settings: CatalogConfig) -> HttpClient:
    try:
        config = log_in(settings.profile)
        config.authenticate()
    except ImportError as error:
        raise UsageError(f"`catalogs.{key}.login: databricks` needs databricks-sdk", INSTALL_SDK) from error
    except Exception as error:  # whatever the SDK raises says why the login failed
        message = f"`catalogs.{key}`: databricks-sdk cannot log in: {error}"
        raise UsageError(message[:500], LOGIN) from error
    host = str(config.host).rstrip("/")
    if wrong := why_no_url(host, token=True):
        raise UsageError(f"the host of `catalogs.{key}` {wrong}", "set DATABRICKS_HOST, or the host of the profile")
    if settings.url and urlsplit(settings.url).hostname != urlsplit(host).hostname:
        hint = "set DATABRICKS_HOST, or name the profile of that host: a login is for one host"
        raise UsageError(f"`catalogs.{key}.url` is not the host of the login, {host}", hint)
    return HttpClient(host, config.authenticate, hints=_HINTS)
