"""What a connection of a warehouse makes of the connector's answers, without the connector."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tablectl.engine.databricks_warehouse import WarehouseConnection
from tablectl.model.errors import WindowError


class Cursor:
    """Like the connector's: whatever happens in a request becomes an error of the connection."""

    query_id = "01ef"

    def __init__(self, session: Any) -> None:
        self.session = session

    def execute_async(self, sql: str, query_tags: dict[str, str] | None) -> None:
        try:
            self.session.backend._client.ExecuteStatement(sql)
        except Exception as error:
            raise ConnectionError(f"Error during request to server. {error}") from error


def connection(execute: Any) -> WarehouseConnection:
    backend = SimpleNamespace(
        _client=SimpleNamespace(ExecuteStatement=execute), _transport=SimpleNamespace(retry_policy=None)
    )
    session = SimpleNamespace(backend=backend)
    return WarehouseConnection(SimpleNamespace(session=session, cursor=lambda: Cursor(session)))


def lost() -> None:
    raise WindowError("the lease was lost")


def test_a_statement_that_was_not_sent_is_not_told_as_a_broken_connection() -> None:
    sent: list[str] = []
    made = connection(sent.append)
    with pytest.raises(WindowError, match="the lease was lost"):
        made.send("ALTER TABLE `t`", {}, lost)
    assert sent == []
    made.send("ALTER TABLE `t`", {}, lambda: None)
    assert sent == ["ALTER TABLE `t`"]


def test_a_connection_that_breaks_stays_an_error_of_the_connection() -> None:
    def breaks(_sql: str) -> None:
        raise OSError("reset")

    with pytest.raises(ConnectionError, match="reset"):
        connection(breaks).send("ALTER TABLE `t`", {}, lambda: None)
