"""The catalogs of a configuration, and what must not be sent where."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from tablectl.catalogs.http_client import why_no_url
from tablectl.catalogs.opening import open_catalogs
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
    settings = {"Lake": CatalogConfig(type="unity", url=server.url + "/", name="lake", token_variable="CI_TOKEN")}
    catalogs = open_catalogs(settings, no_spark, {"CI_TOKEN": " t0ken-of-ci\n"})
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
        ("https://x:99999", False, "no URL"),
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


def test_the_login_of_databricks_says_how_to_install_its_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "databricks.sdk.core", None)
    settings = {"lake": CatalogConfig(type="unity", login="databricks", profile="DEV")}
    with pytest.raises(UsageError, match="needs databricks-sdk") as caught:
        open_catalogs(settings, no_spark, {})
    assert "pip install 'tablectl[databricks-sdk]'" in caught.value.hint
