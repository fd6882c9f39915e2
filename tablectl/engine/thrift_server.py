"""The Hive protocol of Spark's Thrift server and of Kyuubi, by impyla: PyHive's last release is of 2023, and it cannot
send a statement without waiting for its end.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from tablectl.engine.interface import LOGIN, EngineOptions, MaySend
from tablectl.engine.liveness import DriverPort, find_driver
from tablectl.model.errors import EngineError

INSTALL = "pip install impyla==0.24.0, the extra `thrift` (docs/install.md)"
USER, PASSWORD = LOGIN
LOGINS: Mapping[str, str] = {"plain": "PLAIN", "kerberos": "GSSAPI", "none": "NOSASL"}
"""The words of ``engine.thrift_login``, and impyla's for them. ``plain`` is SASL with a user and a password: the
servers' own default, also for LDAP."""
_TIMEOUT = "spark.sql.thriftServer.queryTimeout"
"""Spark ends a statement of a session that takes longer (``SparkExecuteStatementOperation.scala``). It does so sooner
if the client is gone: the server closes a session with its connection (``ThriftCLIService.java``,
``deleteContext``)."""
# The states of ``TOperationState`` (``TCLIService.thrift``); impyla has no name for the last one.
_RUNNING = frozenset({0, 1, 7})
_FINISHED, _FAILED, _TIMED_OUT = 2, 5, 8
_LONG_POLL = 10.0
"""Seconds that a server may keep the answer about a running statement back: 5 by default
(``hive.server2.long.polling.timeout``)."""


class ThriftServer:
    """``Endpoint`` on a Thrift server."""

    hint = "see whether the server runs, and `engine.thrift`, `engine.thrift_login`, `engine.thrift_tls`"
    address = ""
    """No other client can end a statement: the protocol has no list of sessions."""

    def __init__(self, place: str, options: EngineOptions, bound: float, environ: Mapping[str, str]) -> None:
        """``place`` is ``HOST:PORT``, ``bound`` the seconds that a statement may take."""
        host, _, port = place.rpartition(":")
        self._host, self._port = host.strip("[]"), int(port)
        self._options = options
        self._user, self._password = environ.get(USER, ""), environ.get(PASSWORD, "")
        self._pinging: ThriftConnection | None = None
        self._driver: DriverPort | None = None
        self.name = f"thrift://{self._host}:{self._port}"
        self.bound = bound
        self.timeout = _TIMEOUT

    def connect(self) -> ThriftConnection:
        """A new connection. Raises ``EngineError`` without impyla, else what impyla raises."""
        try:
            from impala import dbapi  # noqa: PLC0415  # only if it is used
        except ImportError as error:
            raise EngineError("a SQL endpoint of the Hive protocol needs impyla", INSTALL) from error
        given = self._options
        for each in ("impala", "thrift"):  # they log the errors that they raise; without a handler, to standard error
            logging.getLogger(each).addHandler(logging.NullHandler())
        # Without retries: impyla would open a second connection, in which the server does not know the statement.
        connection = dbapi.connect(
            host=self._host,
            port=self._port,
            timeout=given.dead_after + _LONG_POLL,
            auth_mechanism=LOGINS[given.thrift_login],
            user=self._user or None,
            password=self._password or None,
            use_ssl=given.thrift_tls,
            verify_cert=given.thrift_tls,
            kerberos_service_name="hive",
            retries=1,
        )
        return ThriftConnection(connection, self._user or "tablectl")

    def ping(self) -> None:
        """Raise if the server does not answer."""
        pinging, self._pinging = self._pinging or self.connect(), None
        if not pinging.ready():
            pinging.close()
            raise EngineError("the server does not answer", unanswered=True)
        self._pinging = pinging

    def interrupt(self, connection: ThriftConnection, tag: str) -> bool | None:
        """Cancel the statement of a connection, over a new one. As ``Engine.interrupt``."""
        return connection.cancel(self.connect)

    def interrupt_at(self, address: str, tag: str) -> bool | None:
        """Nothing is known of the statements of others."""
        return None

    def tags_of(self, statement: str) -> Mapping[str, str] | None:
        """There is no history."""
        return None

    def find_driver(self, setting: Callable[[str], str | None]) -> None:
        """The driver is that of the engine: of Kyuubi, another process than the server."""
        self._driver = find_driver(setting, self._host)

    def gone(self) -> bool:
        """Whether the engine's process is gone."""
        return self._driver is not None and self._driver.gone()

    def close(self) -> None:
        """End the connection of the pings."""
        if self._pinging is not None:
            self._pinging.close()


class ThriftConnection:
    """``Connection`` by impyla."""

    statement = ""

    def __init__(self, connection: Any, user: str) -> None:
        self.limit = 0.0
        self._connection = connection
        self._cursor = connection.cursor(user=user, convert_types=False)

    def ready(self) -> bool:
        """Whether the server still knows the session."""
        try:
            self._cursor.close_operation()
            return bool(self._cursor.session.ping())
        except Exception:  # noqa: BLE001  # whatever it is, the connection cannot be used
            return False

    def send(self, sql: str, tags: Mapping[str, str], may_send: MaySend) -> None:
        """Send a statement; impyla sends none a second time (``HS2Session.execute``)."""
        may_send()
        self._cursor.execute_async(sql)

    def runs(self) -> bool:
        """Whether the statement still runs."""
        told = self._operation.get_state()
        state = told.operationState
        if state in _RUNNING:
            return True
        if state == _FAILED:
            raise ThriftStatementError(told.errorMessage or "the server does not say why the statement failed")
        if state != _FINISHED:
            why = (
                "it took too long (`engine.statement_bound`, `engine.commit_bound`)"
                if state == _TIMED_OUT
                else "it was cancelled there"
            )
            # The thread of a cancelled statement may go on for a moment (``SparkExecuteStatementOperation.scala``).
            raise EngineError(f"the server ended the statement: {why}", unanswered=True)
        return False

    def rows(self) -> list[tuple[Any, ...]]:
        """The rows of the statement that ended."""
        return list(self._cursor.fetchall())

    def cancel(self, connect: Any) -> bool | None:
        """Cancel the statement. False if it had ended before."""
        if self._cursor._last_operation is None:
            return None  # its answer did not arrive
        from impala.hiveserver2 import Operation  # noqa: PLC0415  # as above

        other = connect()
        try:
            operation = Operation(other._cursor.session, self._operation.handle, retries=1)
            operation.cancel()  # nothing, if it has ended
            ended = operation.get_state().operationState in {_FINISHED, _FAILED}
        finally:
            other.close()
        return False if ended else None

    def close(self) -> None:
        """End the connection, and with it the session: to ask for the end of a session can take as long as the server's
        metastore does.
        """
        self._cursor._closed = True  # else it would connect again to close its session
        with suppress(Exception):
            self._connection.close()

    @property
    def _operation(self) -> Any:
        return self._cursor._last_operation


class ThriftStatementError(Exception):
    """What the server says of a statement that failed."""
