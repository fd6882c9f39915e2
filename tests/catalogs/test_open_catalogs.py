"""The catalogs of a configuration, and what must not be sent where."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from tablectl.catalogs.http_client import why_no_url
from tablectl.catalogs.open_catalogs import connector_conf, open_catalogs
from tablectl.catalogs.unity import UnityCatalog
from tablectl.delta.names import parse_table
from tablectl.model.errors import UsageError
from tablectl.policies.catalog_config import CatalogConfig
from tests.catalogs.unity_server import UnityServer


def no_spark() -> Any:
    pytest.fail("Spark was started")


def test_a_unity_catalog_is_asked_with_the_token_of_its_variable(server: UnityServer) -> None:
    server.token = "t0ken-of-ci"
    server.add_external("sales.orders", "/w/orders")
    settings = {
        "Lake": CatalogConfig(type="unity", url=server.url + "/", name="lake", token_variable="UNITY_CATALOG_TOKEN_CI")
    }
    catalogs = open_catalogs(settings, no_spark, {"UNITY_CATALOG_TOKEN_CI": " t0ken-of-ci\n"})
    assert catalogs.location(parse_table("lake.sales.orders")) == "/w/orders"
    assert catalogs.directs(parse_table("LAKE.sales.orders"))
    assert not catalogs.directs(parse_table("delta.`/w/orders`"))
    assert not catalogs.directs(parse_table("spark_catalog.sales.orders"))


def test_credentials_of_the_environment_can_be_chosen(server: UnityServer) -> None:
    settings = {"lake": CatalogConfig(type="unity", url=server.url, credentials="environment")}
    reader = open_catalogs(settings, no_spark, {}).reader("lake")
    assert isinstance(reader, UnityCatalog)
    assert not reader.vends


@pytest.mark.parametrize(
    ("url", "token", "wrong"),
    [
        ("https://uc.example", True, ""),
        ("http://uc.example:8080", False, ""),
        ("http://localhost:8080", True, ""),
        ("http://127.0.0.1:8080", True, ""),
        ("http://[::1]:8080", True, ""),
        ("http://uc.example:8080", True, "plain http"),
        ("http://127.0.0.1.evil.example", True, "plain http"),
        ("http://localhost@evil.example", True, "user"),
        ("https://user:pass@uc.example", True, "user or a password"),
        ("https://uc.example?x=1", True, "query"),
        ("file:///etc/passwd", False, "http or https"),
        ("uc.example", False, "http or https"),
        ("https://", False, "http or https"),
        ("https://x:99999", False, "not a URL"),
    ],
)
def test_a_token_is_sent_encrypted_or_within_this_machine(url: str, token: bool, wrong: str) -> None:
    found = why_no_url(url, token=token)
    assert wrong in found
    assert bool(found) is bool(wrong)


def test_a_bad_token_is_an_error_without_the_token() -> None:
    settings = {"lake": CatalogConfig(type="unity", url="https://uc.example")}
    with pytest.raises(UsageError, match="UNITY_CATALOG_TOKEN holds no token") as caught:
        open_catalogs(settings, no_spark, {"UNITY_CATALOG_TOKEN": "secret\r\nX: y"})
    assert "secret" not in str(caught.value)


CONNECTOR = {"spark.sql.catalog.lake": "io.unitycatalog.spark.UCSingleCatalog"}


@pytest.mark.parametrize(
    ("conf", "added"),
    [
        (CONNECTOR, {"uri": "https://uc", "token": "secret"}),
        ({}, {}),
        ({"spark.sql.catalog.lake": "org.example.Other"}, {}),
        ({**CONNECTOR, "spark.sql.catalog.lake.uri": "https://elsewhere"}, {}),  # a token goes nowhere else
    ],
)
def test_the_connector_gets_the_address_and_the_token_of_its_catalog(
    conf: dict[str, str], added: dict[str, str]
) -> None:
    catalogs = {"lake": CatalogConfig(type="unity", url="https://uc"), "other": CatalogConfig(type="glue")}
    found = connector_conf(conf, catalogs, {"UNITY_CATALOG_TOKEN": "secret"})
    assert found == {**conf, **{f"spark.sql.catalog.lake.{key}": value for key, value in added.items()}}


@pytest.mark.parametrize(
    ("url", "more", "why"),
    [
        ("https://evil.example", {"UNITY_CATALOG_TOKEN_HOST": "uc.example"}, "allows uc.example alone"),
        ("http://uc.example", {}, "plain http"),
    ],
)
def test_spark_gets_no_token_that_this_process_would_not_send(url: str, more: dict[str, str], why: str) -> None:
    catalogs = {"lake": CatalogConfig(type="unity", url=url)}
    with pytest.raises(UsageError, match=why):
        connector_conf(CONNECTOR, catalogs, {"UNITY_CATALOG_TOKEN": "secret", **more})


def test_the_login_of_databricks_says_how_to_install_its_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "databricks.sdk.core", None)
    settings = {"lake": CatalogConfig(type="unity", login="databricks", profile="DEV")}
    with pytest.raises(UsageError, match="needs databricks-sdk") as caught:
        open_catalogs(settings, no_spark, {})
    assert caught.value.hint == "install it with `pip install databricks-sdk`"


@pytest.mark.parametrize(("url", "profile"), [("https://evil.example", ""), ("https://evil.example", "DEV")])
def test_a_branch_sends_the_login_of_databricks_to_no_other_host(
    monkeypatch: pytest.MonkeyPatch, url: str, profile: str
) -> None:
    """databricks-sdk would send the token of the environment or a profile to a host that the caller gives."""

    class Config:
        host = "https://dbc.example"

        def __init__(self, **given: str) -> None:
            assert "host" not in given

        def authenticate(self) -> dict[str, str]:
            return {}

    monkeypatch.setitem(sys.modules, "databricks.sdk.core", SimpleNamespace(Config=Config))
    settings = CatalogConfig(type="unity", login="databricks", url=url, profile=profile)
    with pytest.raises(UsageError, match=r"`catalogs\.lake\.url` is not the host of the login, https://dbc\.example"):
        open_catalogs({"lake": settings}, no_spark, {})
    same = open_catalogs({"lake": replace(settings, url="https://dbc.example/")}, no_spark, {})
    assert isinstance(same.reader("lake"), UnityCatalog)
