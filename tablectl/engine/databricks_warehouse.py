"""A Databricks SQL warehouse, by databricks-sql-connector, with the login of databricks-sdk."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from tablectl.engine.databricks_login import LOGIN, log_in
from tablectl.engine.interface import MaySend, always
from tablectl.model.errors import EngineError

INSTALL = (
    "pip install 'databricks-sql-connector>=4.9,<5' 'databricks-sdk>=0.60', the extra `warehouse` (docs/install.md)"
)
_LOGIN = f"{LOGIN}; and `engine.warehouse`"
_TAG = "tablectl"
"""The query tag that only one statement has: by it, the history of queries shows the statements of a dead run."""
_LATEST = 200
"""How many of the warehouse's latest statements are searched for a tag."""
_LOCAL = ("http://127.0.0.1:", "http://localhost:")


class Warehouse:
    """``Endpoint`` on a SQL warehouse."""

    hint = _LOGIN

    def __init__(self, warehouse: str, bound: float) -> None:
        """Log in. ``warehouse`` is an id, ``bound`` the seconds that a statement may take. Raises ``EngineError``."""
        self._id = warehouse
        try:
            from databricks.sdk import WorkspaceClient  # noqa: PLC0415  # only where it is used

            self._config = log_in()
        except ImportError as error:
            raise EngineError("a SQL warehouse needs databricks-sdk", INSTALL) from error
        except Exception as error:  # whatever the SDK raises says why
            raise EngineError(f"the login fails: {' '.join(str(error).split())[:300]}", _LOGIN) from error
        self._client = WorkspaceClient(config=self._config)
        self._host = str(self._config.host).rstrip("/")
        if not self._host.startswith(("https://", *_LOCAL)):
            raise EngineError(f"{self._host} would get the login without encryption", "use https in DATABRICKS_HOST")
        self.name = f"warehouse {warehouse} of {self._host}"
        self.address = f"warehouse {self._host} {warehouse}"
        self.bound = bound
        # docs.databricks.com, "STATEMENT_TIMEOUT": 0 to 172800 s; it ends a statement whose client is gone, too.
        self.timeout = "STATEMENT_TIMEOUT"

    def connect(self) -> WarehouseConnection:
        """A new session. Raises ``EngineError`` without the connector, else what it raises."""
        try:
            from databricks.sql.client import Connection  # noqa: PLC0415  # only where it is used
        except ImportError as error:
            raise EngineError("a SQL warehouse needs databricks-sql-connector", INSTALL) from error
        place = f"/sql/1.0/warehouses/{self._id}"
        # The connector's finalizer ends the session in whatever thread collects garbage, and tries that for 15 minutes
        # if the workspace does not answer. A session that is not ended times out.
        unfinalized = type("Connection", (Connection,), {"__del__": lambda _self: None})
        return WarehouseConnection(
            unfinalized(
                server_hostname=self._host.partition("://")[2],
                http_path=place,
                _connection_uri=f"{self._host}{place}",
                credentials_provider=lambda: self._config.authenticate,
                user_agent_entry="tablectl",
                enable_telemetry=False,
                use_cloud_fetch=False,
            )
        )

    def ping(self) -> None:
        """Raise if the workspace does not answer, or has no such warehouse. A stopped one starts with a statement: to
        ask by a statement would keep it running, and cost money.
        """
        self._client.warehouses.get(self._id)

    def interrupt(self, connection: WarehouseConnection, tag: str) -> bool | None:
        """Cancel the statement of a connection. As ``Engine.interrupt``."""
        return self._cancelled(connection.statement, tag)

    def interrupt_at(self, address: str, tag: str) -> bool | None:
        """Cancel the statements with a tag, found in the history of queries. Only in this warehouse: an address comes
        from a lease record.
        """
        return self._cancelled("", tag) if address == self.address else None

    def _cancelled(self, statement: str, tag: str) -> bool | None:
        """Cancel what is not over. Whether any of it may still run; ``None`` if the history does not show it yet."""
        found = self._history(statement, tag)
        going = [str(each.query_id) for each in found if not each.is_final]
        for each in going:
            self._client.statement_execution.cancel_execution(each)
        return bool(going) if found else None

    def _history(self, statement: str, tag: str) -> list[Any]:
        from databricks.sdk.service.sql import QueryFilter  # noqa: PLC0415  # as above

        known = QueryFilter(statement_ids=[statement]) if statement else QueryFilter(warehouse_ids=[self._id])
        found = self._client.query_history.list(filter_by=known, max_results=_LATEST).res or []
        return [each for each in found if statement or _tags(each).get(_TAG) == tag]

    def tags_of(self, statement: str) -> Mapping[str, str] | None:
        """The tags of a statement in the history of queries; ``None`` if it does not show the statement."""
        found = self._history(statement, "")
        return _tags(found[0]) if found else None

    def find_driver(self, setting: Callable[[str], str | None]) -> None:
        """A warehouse has several, which are out of reach."""

    def gone(self) -> bool:
        """Never known."""
        return False

    def close(self) -> None:
        """Nothing is kept open."""


def _tags(query: Any) -> dict[str, str]:
    return {each.key: each.value or "" for each in query.query_tags or ()}


class WarehouseConnection:
    """``Connection`` by the connector."""

    def __init__(self, connection: Any) -> None:
        self.limit = 0.0
        self._connection = connection
        backend = connection.session.backend
        self._once = _SentOnce(backend._client, backend._transport)
        backend._client = self._once
        self._cursor = connection.cursor()
        self.statement = ""
        """The id of the last statement; empty before its answer arrived."""

    def ready(self) -> bool:
        """Whether it can run another statement: each request has an HTTP connection of its own."""
        return True

    def send(self, sql: str, tags: Mapping[str, str], may_send: MaySend) -> None:
        """Send a statement."""
        self.statement = ""
        self._once.may_send = may_send
        try:
            self._cursor.execute_async(sql, query_tags=dict(tags) or None)
        except Exception:
            if self._once.refused:  # which the connector wraps, as it does errors of the connection
                raise self._once.refused from None
            raise
        finally:
            self._once.may_send, self._once.refused = always, None
        self.statement = self._cursor.query_id or ""

    def runs(self) -> bool:
        """Whether the statement still runs."""
        state = self._cursor.get_query_state().name
        if state in {"PENDING", "RUNNING"}:
            return True
        if state != "SUCCEEDED":
            raise EngineError(f"the warehouse ended the statement: {state.lower()}", unanswered=True)
        return False

    def rows(self) -> list[tuple[Any, ...]]:
        """The rows of the statement that ended."""
        self._cursor.get_async_execution_result()
        return [tuple(row) for row in self._cursor.fetchall()]

    def close(self) -> None:
        """End the session."""
        with suppress(Exception):
            self._connection.close()


class _SentOnce:
    """The connector's client, which asks directly before each ``ExecuteStatement`` whether it may be sent.

    Without this, urllib3 would send it again after a connection that broke: the connector's policy allows that for all
    requests (``DatabricksRetryPolicy.should_retry``). What the server refused with 429 or 503, the connector sends
    again by itself (``ThriftDatabricksClient.make_request``), and so asks again.
    """

    def __init__(self, client: Any, transport: Any) -> None:
        self._client = client
        self._transport = transport
        self.may_send: MaySend = always
        self.refused: Exception | None = None
        """Why the last statement was not sent."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def ExecuteStatement(self, request: Any) -> Any:  # noqa: N802  # as Thrift names it
        try:
            self.may_send()
        except Exception as error:
            self.refused = error
            raise
        policy, self._transport.retry_policy = self._transport.retry_policy, False
        try:
            return self._client.ExecuteStatement(request)
        finally:
            self._transport.retry_policy = policy
