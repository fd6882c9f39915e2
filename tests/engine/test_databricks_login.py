"""The login of databricks-sdk against hosts that do not answer, and one that refuses."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("databricks.sdk")

from tablectl.engine import databricks_login
from tablectl.engine.databricks_login import check_host
from tablectl.model.errors import EngineError
from tests.catalogs.unity_server import UnityServer, serving


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("DATABRICKS_TOKEN", "a token")
    monkeypatch.setattr(databricks_login, "PATIENCE", 1)


@pytest.fixture
def silent() -> Iterator[str]:
    """A host that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def test_a_host_that_refuses_connections_is_given_up(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """By itself, the SDK tries its first request for 5 minutes, and says nothing."""
    monkeypatch.setenv("DATABRICKS_HOST", "http://127.0.0.1:1")
    with pytest.raises(EngineError, match=r"http://127\.0\.0\.1:1 does not answer") as caught:
        check_host()
    assert "DATABRICKS_HOST" in caught.value.hint
    assert logging.getLogger("databricks").handlers, "else the SDK logs to standard error"


def test_every_request_has_a_bound(monkeypatch: pytest.MonkeyPatch, silent: str) -> None:
    monkeypatch.setenv("DATABRICKS_HOST", silent)
    monkeypatch.setattr(databricks_login, "REQUEST", 0.2)
    with pytest.raises(EngineError, match="does not answer"):
        check_host()


def test_a_refusal_is_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(UnityServer(token="another")) as server:
        monkeypatch.setenv("DATABRICKS_HOST", server.url)
        check_host()
        assert any("scim" in each for each in server.asked)


def test_without_a_login_databricks_connect_itself_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DATABRICKS_TOKEN")
    monkeypatch.delenv("DATABRICKS_HOST", raising=False)
    check_host()
