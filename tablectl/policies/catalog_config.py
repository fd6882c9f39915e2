"""``catalogs`` in ``tablectl.yaml``: how the tables of a catalog are looked up, and whose credentials read them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from tablectl.policies.value_kinds import FileSection, Parsed, Words, matching

_ACCOUNT = re.compile(r"[0-9]{12}")
_REGION = re.compile(r"[a-z]{2}[a-z0-9-]{1,40}")
_TOKEN = "UNITY_CATALOG_TOKEN"  # noqa: S105  # the name of a variable
_VARIABLE = re.compile(rf"{_TOKEN}(_[A-Z0-9_]+)?")
"""The variables that may be sent to a catalog: only those that were set for one. A branch names the variable and the
server, and must not send another secret of the environment there.
"""


def _line(given: str) -> str:
    if not given or not given.isprintable():
        raise ValueError("needs text without control characters")
    return given


Line = Annotated[str, Parsed(_line)]


@dataclass(frozen=True, kw_only=True)
class CatalogConfig(FileSection):
    """One catalog."""

    type: Annotated[
        str,
        Words(
            ("spark", "unity", "glue"),
            others="known are spark, unity and glue. A Hive metastore is Spark's own (engine.conf); tables of other "
            "catalogs go by their location, or by the name of a catalog that Spark has: docs/catalogs.md",
        ),
        Field(description="`spark` asks the engine, `unity` the REST API of Unity Catalog, `glue` AWS Glue."),
    ]
    url: Annotated[
        Line,
        Field(description="The address of the REST API; for `glue`, an endpoint that is not that of the region."),
    ] = ""
    name: Annotated[
        Line, Field(description="The catalog's name on its server, if it is not the key of this entry.")
    ] = ""
    login: Annotated[
        str,
        Words(("token", "databricks")),
        Field(description="`databricks` is the unified authentication of databricks-sdk."),
    ] = "token"
    # Without a value of the variable, requests are anonymous.
    token_variable: Annotated[
        str,
        Parsed(
            matching(_VARIABLE, f"needs {_TOKEN}, or that with a suffix such as {_TOKEN}_PROD: never the token itself")
        ),
        Field(description="The variable with the token: UNITY_CATALOG_TOKEN, or that with _SUFFIX."),
    ] = _TOKEN
    profile: Annotated[
        Line,
        Field(description="A profile of ~/.databrickscfg for `login: databricks`, of ~/.aws for `glue`."),
    ] = ""
    region: Annotated[
        str,
        Parsed(matching(_REGION, "needs the name of a region, such as eu-west-1")),
        Field(description="The region of AWS Glue; default: that of the environment or the profile."),
    ] = ""
    account: Annotated[
        str,
        Parsed(matching(_ACCOUNT, "needs the twelve digits of an AWS account")),
        Field(description="The AWS account whose catalog is read, in quotes; default: that of the login."),
    ] = ""
    # Those that the catalog vends for each table, or those of the environment.
    credentials: Annotated[
        str, Words(("vended", "environment")), Field(description="Whose credentials read the storage.")
    ] = "vended"


CONNECTOR = "io.unitycatalog.spark.UCSingleCatalog"
"""The Spark catalog of Unity Catalog, which an apply needs: the server knows no SQL."""


def why_not(made: CatalogConfig) -> str:
    """What is wrong with an entry as a whole; empty if nothing is."""
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
    default = CatalogConfig(type="glue")
    if made.credentials != default.credentials:
        return "has `credentials`: AWS Glue vends none, and storage is read with those of the environment"
    if (made.login, made.token_variable, made.name) != (default.login, default.token_variable, default.name):
        return "has a `login`, `token_variable` or `name`, which `type: glue` does not use: boto3 logs in"
    return ""


def why_no_catalog(name: str) -> str:
    """What is wrong with the key of an entry; empty if nothing is."""
    return "" if name and name.isprintable() and "." not in name else "is not the name of a catalog"
