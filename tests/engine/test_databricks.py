"""Databricks Connect: which Python it needs, and how its session is asked for."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

from tablectl.engine import spark_connect
from tablectl.engine.spark_connect import is_databricks, open_databricks, profile_of, why_not_installed
from tablectl.model.errors import EngineError


@pytest.mark.parametrize(
    ("remote", "databricks", "profile"),
    [("databricks", True, ""), ("databricks://DEV", True, "DEV"), ("sc://databricks:15002", False, "databricks:15002")],
)
def test_the_remote_names_the_client_and_the_profile(remote: str, databricks: bool, profile: str) -> None:
    assert (is_databricks(remote), profile_of(remote)) == (databricks, profile)


def test_the_error_says_which_python_it_needs() -> None:
    error = why_not_installed((3, 11))
    assert error.message == (
        "databricks-connect for today's runtimes exists for Python 3.12 only, and this is Python 3.11"
    )
    assert "Python 3.12" in error.hint
    assert why_not_installed((3, 12)).hint == "install it with `pip install 'databricks-connect>=17.3,<20'`"


class Builder:
    def __init__(self, fails: str = "") -> None:
        self.asked: list[tuple[str, Any]] = []
        self.fails = fails

    def profile(self, name: str) -> Builder:
        self.asked.append(("profile", name))
        return self

    def clusterId(self, given: str) -> Builder:  # noqa: N802  # as databricks-connect names it
        self.asked.append(("cluster", given))
        return self

    def serverless(self, on: bool) -> Builder:
        self.asked.append(("serverless", on))
        return self

    def create(self) -> str:
        if self.fails:
            raise RuntimeError(self.fails)
        return "session"


@pytest.fixture(autouse=True)
def _answering(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_connect, "check_host", lambda _profile: None)


def installed(monkeypatch: pytest.MonkeyPatch, builder: Builder) -> None:
    for name in ("databricks", "databricks.connect"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    sys.modules["databricks.connect"].DatabricksSession = type("DatabricksSession", (), {"builder": builder})  # type: ignore[attr-defined]


def test_a_session_is_opened_by_the_unified_login(monkeypatch: pytest.MonkeyPatch) -> None:
    builder = Builder()
    installed(monkeypatch, builder)
    assert open_databricks("databricks", serverless=False) == "session"
    assert builder.asked == []
    assert open_databricks("databricks://DEV", serverless=True) == "session"
    assert builder.asked == [("profile", "DEV"), ("serverless", True)]
    builder.asked.clear()
    assert open_databricks("databricks", serverless=False, cluster="0710-abc") == "session"
    assert builder.asked == [("cluster", "0710-abc")]


def test_a_login_that_fails_says_where_to_look(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, Builder("Cluster id or serverless are required\nbut were not specified."))
    with pytest.raises(EngineError, match="Cluster id or serverless are required but were not") as raised:
        open_databricks("databricks", serverless=False)
    assert "engine.cluster" in raised.value.hint


def test_without_the_package_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "databricks.connect", None)
    with pytest.raises(EngineError, match="databricks-connect"):
        open_databricks("databricks", serverless=False)
