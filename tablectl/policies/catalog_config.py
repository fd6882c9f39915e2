"""``catalogs`` in ``tablectl.yaml``: how the tables of a catalog are looked up, and whose credentials read them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tablectl.policies.fields import Section, Text, Word

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TOKEN = "UNITY_CATALOG_TOKEN"  # noqa: S105  # the name of a variable


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogConfig:
    """One catalog."""

    type: str = "spark"
    """``spark``: the engine's own catalog of this name. ``unity``: Unity Catalog's REST API, without Spark."""
    url: str = ""
    """The address of the REST API."""
    name: str = ""
    """The catalog's name on its server; empty if it is the key of this entry."""
    login: str = "token"
    """``token``, or ``databricks`` for the unified authentication of ``databricks-sdk``."""
    token_variable: str = _TOKEN
    """The environment variable that holds the token. Without a value, requests are anonymous."""
    profile: str = ""
    """A profile of ``~/.databrickscfg``, for ``login: databricks``."""
    credentials: str = "vended"
    """Whose credentials read the storage: ``vended`` by the catalog, or those of the ``environment``."""


def _line(given: str) -> str:
    if not given or not given.isprintable():
        raise ValueError("needs text without control characters")
    return given


def _variable(given: str) -> str:
    if _VARIABLE.fullmatch(given) is None:
        raise ValueError("needs the name of an environment variable, never the token itself")
    return given


def _why_not(made: CatalogConfig) -> str:
    if made.type == "unity" and not made.url and made.login == "token":
        return "needs `url`, the address of the Unity Catalog server"
    if made.profile and made.login != "databricks":
        return "has a `profile`, which only `login: databricks` uses"
    if made.type == "spark" and (made.url or made.profile):
        return "has `type: spark`, which is configured under engine.conf, as spark.sql.catalog.NAME"
    return ""


def why_no_catalog(name: str) -> str:
    """What is wrong with the key of an entry; empty if nothing is."""
    return "" if name and name.isprintable() and "." not in name else "is not the name of a catalog"


CATALOG = Section(
    make=CatalogConfig,
    keys={
        "type": Word(
            words=("spark", "unity"), description="`spark` asks the engine, `unity` the REST API of Unity Catalog."
        ),
        "url": Text(parse=_line, description="The address of the REST API."),
        "name": Text(parse=_line, description="The catalog's name on its server, if it is not the key of this entry."),
        "login": Word(
            words=("token", "databricks"),
            description="`databricks` is the unified authentication of databricks-sdk.",
        ),
        "token_variable": Text(parse=_variable, description="The environment variable that holds the token."),
        "profile": Text(parse=_line, description="A profile of ~/.databrickscfg, for `login: databricks`."),
        "credentials": Word(words=("vended", "environment"), description="Whose credentials read the storage."),
    },
    required=("type",),
    short="type",
    check=_why_not,
)
