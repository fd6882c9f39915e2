"""``catalogs`` in ``tablectl.yaml``: how the tables of a catalog are looked up, and whose credentials read them."""

from __future__ import annotations

import re

from tablectl.policies.field_types import Section, Text, Word
from tablectl.support.frozen import frozen

_ACCOUNT = re.compile(r"[0-9]{12}")
_REGION = re.compile(r"[a-z]{2}[a-z0-9-]{1,40}")
_TOKEN = "UNITY_CATALOG_TOKEN"  # noqa: S105  # the name of a variable
_VARIABLE = re.compile(rf"{_TOKEN}(_[A-Z0-9_]+)?")
"""The variables that may be sent to a catalog: only those that were set for one. A branch names the variable and the
server, and must not send another secret of the environment there.
"""


@frozen(kw_only=True)
class CatalogConfig:
    """One catalog."""

    type: str = "spark"
    """``spark``: the engine's own catalog of this name. ``unity``: Unity Catalog's REST API. ``glue``: the AWS Glue
    Data Catalog. The last two need no Spark.
    """
    url: str = ""
    """The address of the REST API."""
    name: str = ""
    """The catalog's name on its server; empty if it is the key of this entry."""
    login: str = "token"
    """``token``, or ``databricks`` for the unified authentication of ``databricks-sdk``."""
    token_variable: str = _TOKEN
    """The environment variable that holds the token. Without a value, requests are anonymous."""
    profile: str = ""
    """A profile of ``~/.databrickscfg`` for ``login: databricks``, of ``~/.aws`` for ``type: glue``."""
    region: str = ""
    """The region of AWS Glue; empty for that of the environment or the profile."""
    account: str = ""
    """The AWS account whose catalog is read; empty for that of the login."""
    credentials: str = "vended"
    """Whose credentials read the storage: ``vended`` by the catalog, or those of the ``environment``."""


CONNECTOR = "io.unitycatalog.spark.UCSingleCatalog"
"""The Spark catalog of Unity Catalog, which an apply needs: the server knows no SQL."""


def _line(given: str) -> str:
    if not given or not given.isprintable():
        raise ValueError("needs text without control characters")
    return given


def _variable(given: str) -> str:
    if _VARIABLE.fullmatch(given) is None:
        raise ValueError(f"needs {_TOKEN}, or that with a suffix such as {_TOKEN}_PROD: never the token itself")
    return given


def _why_not(made: CatalogConfig) -> str:
    if made.type == "unity" and not made.url and made.login == "token":
        return "needs `url`, the address of the Unity Catalog server"
    if made.type == "glue":
        return _why_no_glue(made)
    if made.region or made.account:
        return "has a `region` or an `account`, which only `type: glue` uses"
    if made.profile and made.login != "databricks":
        return "has a `profile`, which only `login: databricks` uses"
    if made.type == "spark" and (made.url or made.profile):
        return "has `type: spark`, which is configured under engine.conf, as spark.sql.catalog.NAME"
    return ""


def _why_no_glue(made: CatalogConfig) -> str:
    default = CatalogConfig()
    if made.credentials != default.credentials:
        return "has `credentials`: AWS Glue vends none, and storage is read with those of the environment"
    if (made.login, made.token_variable, made.name) != (default.login, default.token_variable, default.name):
        return "has a `login`, `token_variable` or `name`, which `type: glue` does not use: boto3 logs in"
    return ""


def _account(given: str) -> str:
    if _ACCOUNT.fullmatch(given) is None:
        raise ValueError("needs the twelve digits of an AWS account")
    return given


def _region(given: str) -> str:
    if _REGION.fullmatch(given) is None:
        raise ValueError("needs the name of a region, such as eu-west-1")
    return given


def why_no_catalog(name: str) -> str:
    """What is wrong with the key of an entry; empty if nothing is."""
    return "" if name and name.isprintable() and "." not in name else "is not the name of a catalog"


CATALOG = Section(
    make=CatalogConfig,
    keys={
        "type": Word(
            words=("spark", "unity", "glue"),
            others="known are spark, unity and glue. A Hive metastore is Spark's own (engine.conf); tables of other "
            "catalogs go by their location, or by the name of a catalog that Spark has: docs/catalogs.md",
            description="`spark` asks the engine, `unity` the REST API of Unity Catalog, `glue` AWS Glue.",
        ),
        "url": Text(
            parse=_line,
            description="The address of the REST API; for `glue`, an endpoint that is not that of the region.",
        ),
        "name": Text(parse=_line, description="The catalog's name on its server, if it is not the key of this entry."),
        "login": Word(
            words=("token", "databricks"),
            description="`databricks` is the unified authentication of databricks-sdk.",
        ),
        "token_variable": Text(
            parse=_variable, description="The variable with the token: UNITY_CATALOG_TOKEN, or that with _SUFFIX."
        ),
        "profile": Text(
            parse=_line, description="A profile of ~/.databrickscfg for `login: databricks`, of ~/.aws for `glue`."
        ),
        "region": Text(
            parse=_region, description="The region of AWS Glue; default: that of the environment or the profile."
        ),
        "account": Text(
            parse=_account,
            description="The AWS account whose catalog is read, in quotes; default: that of the login.",
        ),
        "credentials": Word(words=("vended", "environment"), description="Whose credentials read the storage."),
    },
    required=("type",),
    short="type",
    check=_why_not,
)
