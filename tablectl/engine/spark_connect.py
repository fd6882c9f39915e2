"""A Spark Connect session of our own: opened, kept alive, interrupted by tag, and released. Never call ``stop()``. On
Databricks a cluster or serverless compute runs it, with the unified login of databricks-sdk.

``SparkSession.stop`` of a Connect session also stops the user's local Connect server, if there is one
(``pyspark/sql/connect/session.py``). So sessions are released and their channels closed.
"""

from __future__ import annotations

import copy
import re
import sys
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from tablectl.delta.credentials import server_text
from tablectl.engine.databricks_login import LOGIN, check_host
from tablectl.engine.errors import engine_error
from tablectl.engine.interface import MaySend, always
from tablectl.engine.liveness import DriverPort, Heartbeat, find_driver
from tablectl.model.errors import EngineError

_T = TypeVar("_T")

CLOSE_LIMIT = 10.0
"""Seconds that the release of a session may take: the server drops an abandoned session anyway."""
_COMPUTE = ("x-databricks-cluster-id", "x-databricks-session-id")
"""The headers by which databricks-connect names the compute within a workspace: a cluster, or serverless compute. A
session of one is not known to the others, so an address without them would find nothing where something runs.
"""
_ADDRESS = re.compile(r"connect ([^ ]{1,300}) ([0-9a-f-]{36}) ([^ ]{0,200})")
_GONE = ("INVALID_HANDLE.SESSION_CHANGED", "INVALID_HANDLE.SESSION_NOT_FOUND", "INVALID_HANDLE.SESSION_CLOSED")
"""The conditions with which a server says that a session does not exist any more: none of its operations runs."""
_OVER = frozenset({"TERMINATING", "SUCCEEDED", "FAILED", "CANCELLED", "UNKNOWN"})
"""States in which nothing of an operation runs. TERMINATING: it has finished, failed or was cancelled, and its client
has not taken the result (``SparkConnectGetStatusHandler.scala``); of a client that is gone the server keeps that for
minutes. UNKNOWN: the server has forgotten the operation; it keeps all that runs.
"""
SCHEME = "databricks"
PYTHON = (3, 12)
"""The only Python for which databricks-connect 17 and newer exist."""
_LOGIN = f"{LOGIN}; and `engine.cluster`"


def is_connect(session: Any) -> bool:
    """Whether a session is a Spark Connect session, by its class: databricks-connect has its own ``newSession``."""
    return any(base.__module__.startswith("pyspark.sql.connect.") for base in type(session).__mro__)


def open_remote(url: str) -> Any:
    """A new private session on a server: neither the default nor the active session changes."""
    from pyspark.sql.connect.session import SparkSession  # noqa: PLC0415, TID251  # only if Connect is used

    return SparkSession(connection=url)


def clone(session: Any) -> Any:
    """A new session on the server of a session that was passed in. Raises ``EngineError``."""
    try:
        if not hasattr(session, "cloneSession"):
            return _like(session)
        # A server makes a session with the first request of its client, and clones only those that it has.
        _ask(session)
        cloned = session.cloneSession()
    except Exception as error:  # whatever Spark or gRPC raise is the engine's answer
        raise engine_error(error) from error
    # PySpark 4.2 creates the clone without running __init__, and garbage collection reads this attribute.
    cloned.release_session_on_close = True
    return cloned


def _ask(session: Any) -> None:
    """The cheapest request that a server answers."""
    session.conf.get("spark.sql.session.timeZone", None)


def _like(session: Any) -> Any:
    """A new session on the same server, for clients of Spark 4.0, which cannot clone one: databricks-connect 17. It
    inherits no settings.
    """
    from pyspark.sql.connect.session import SparkSession  # noqa: PLC0415, TID251  # only if Connect is used

    builder = copy.deepcopy(session.client._builder)
    getattr(builder, "_params", {}).pop("session_id", None)
    return SparkSession(connection=builder, userId=session.client._user_id)


class _CheckedStub:
    """A client's stub that asks in the sending thread, directly before each ``ExecutePlan``, whether it may be sent.

    The client sends it again by itself if the server does not know the operation (``reattach.py``).
    """

    def __init__(self, stub: Any, may_send: Callable[[], None]) -> None:
        self._stub = stub
        self._may_send = may_send

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stub, name)

    def ExecutePlan(self, *args: Any, **more: Any) -> Any:  # noqa: N802  # as gRPC names it
        self._may_send()
        return self._stub.ExecutePlan(*args, **more)


class ConnectLink:
    """A Connect session beyond SQL: its address, its heartbeat, its operations."""

    def __init__(self, session: Any, every: float, dead_after: float) -> None:
        self._session = session
        self._client = session.client
        self._interrupted: dict[str, set[str]] = {}
        self._others: dict[str, Any] = {}
        self._sending = threading.local()
        self._driver: DriverPort | None = None
        self.gone = False
        """Whether the server does not know the session any more, because it was started again: none of the session's
        statements runs, and it can run no other.
        """
        self._client._stub = _CheckedStub(self._client._stub, self._check)
        self.heartbeat = Heartbeat(self._ping, every, dead_after)
        self._client.set_retry_policies([_policy(self.heartbeat.alive)])
        self.heartbeat.start()

    def checked(self, may_send: MaySend, work: Callable[[], _T]) -> _T:
        """Run a function that sends statements in this thread, each only if ``may_send`` allows it."""
        self._sending.check = may_send
        try:
            return work()
        finally:
            self._sending.check = always

    def _check(self) -> None:
        getattr(self._sending, "check", always)()

    def find_driver(self) -> None:
        """Find the port of the server's own process, which tells later whether the process is gone."""
        host = _server(self._client).partition("#")[0].rpartition(":")[0].strip("[]")
        self._driver = find_driver(lambda key: self._session.conf.get(key, None), host)

    def alive(self) -> bool:
        """Whether the server answered recently, and knows the session."""
        return not self.gone and self.heartbeat.alive()

    def why_dead(self) -> str:
        """Why ``alive`` is false, as a sentence."""
        if self.gone:
            return "the engine was started again, and does not know the session of this run any more"
        return f"the engine has not answered for {self.heartbeat.dead_after:g} s (`engine.dead_after`)"

    @property
    def address(self) -> str:
        """Where another run finds this session's operations; contains no credentials."""
        return address_of(self._client)

    def interrupt(self, tag: str, address: str) -> bool | None:
        """Ask the server to end the operations with a tag, in this session or in that of a run that died.

        Returns whether any of them still runs; ``None`` if the server does not say, and for a session of another server
        or user: an address comes from a lease record, so no other server is ever called because of it.
        """
        mine = not address or address == self.address
        client = self._client if mine else self._attached(address)
        if client is None:
            return None
        if mine and self.gone:
            return False
        try:
            known = self._interrupted.setdefault(f"{address} {tag}", set())
            known.update(client.interrupt_tag(tag) or ())
            if mine and not known:
                return False
            # All operations of a run that died are waited for; of our own session only those that were interrupted.
            return any_running(client, sorted(known) if mine else [])
        except Exception as error:  # noqa: BLE001  # whatever gRPC raises is the engine's answer
            ended = engine_error(error).condition in _GONE or (
                mine and self._driver is not None and self._driver.gone()
            )
            return False if ended else None

    def _attached(self, address: str) -> Any:
        """A client for the session with this address, if it belongs to our own server and user."""
        parsed = _ADDRESS.fullmatch(address)
        server = _server(self._client)
        if parsed is None or (parsed[1], parsed[3]) != (server, _user(self._client)) or server == "unknown":
            return None
        if address not in self._others:
            from pyspark.sql.connect.client import SparkConnectClient  # noqa: PLC0415, TID251  # as above

            builder = copy.deepcopy(self._client._builder)
            builder.set("session_id", parsed[2])
            client = SparkConnectClient(connection=builder, user_id=self._client._user_id)
            client._session_id = parsed[2]
            client.set_retry_policies([_policy(self.heartbeat.alive)])
            self._others[address] = client
        return self._others[address]

    def close(self) -> None:
        """Release the session within ``CLOSE_LIMIT`` seconds. A server that does not answer is not called."""
        alive = self.alive()
        self.heartbeat.stop()
        clients = [self._client, *self._others.values()]

        def give_back() -> None:
            if alive:
                _quietly(self._client.release_session)
            for client in clients:
                _quietly(client.close)

        thread = threading.Thread(target=give_back, name="tablectl-close", daemon=True)
        thread.start()
        thread.join(CLOSE_LIMIT)

    def _ping(self) -> None:
        try:
            _ask(self._session)
        except Exception as error:
            found = engine_error(error)
            self.gone = self.gone or found.condition in _GONE
            if not found.unanswered or found.condition:
                return  # an error is an answer, too: the server is alive
            raise


def address_of(client: Any) -> str:
    """The address of a client's session: its server and compute, its id, its user."""
    return f"connect {_server(client)} {client._session_id} {_user(client)}"


def _server(client: Any) -> str:
    # The builder's ``host`` is host and port; a custom builder may have neither.
    builder = client._builder
    url = getattr(builder, "endpoint", "") or getattr(builder, "host", "")
    headers = getattr(builder, "_params", {})
    compute = "".join(f"#{headers[name]}" for name in _COMPUTE if name in headers)
    return f"{url}{compute}".replace(" ", "") if url else "unknown"


def _user(client: Any) -> str:
    return (client._user_id or "").replace(" ", "")


def any_running(client: Any, operations: list[str]) -> bool | None:
    """Whether any of the operations runs, by ``GetStatus``, which servers have since Spark 4.2; ``None`` if unknown."""
    statuses = getattr(client, "_get_operation_statuses", None)
    if statuses is None:
        return None
    found = statuses(operations or None).operation_statuses
    names = (str(type(each).OperationState.Name(each.state)).removeprefix("OPERATION_STATE_") for each in found)
    states = set(names)
    return bool(states - _OVER)


def _policy(alive: Callable[[], bool]) -> Any:
    """Retry while the engine counts as alive, instead of for PySpark's ten minutes, and without PySpark's warnings."""
    from pyspark.sql.connect.client.retries import DefaultPolicy  # noqa: PLC0415, TID251  # as above

    class WhileAlive(DefaultPolicy):
        def __init__(self) -> None:
            super().__init__(max_retries=None, max_backoff=1000, max_server_retry_delay=5000)

        def can_retry(self, e: BaseException) -> bool:
            return bool(super().can_retry(e)) and alive()

    return WhileAlive()


def _quietly(act: Callable[[], object]) -> None:
    try:
        act()
    except Exception:  # noqa: BLE001  # nothing is left to do about it
        return


def check_answers(url: str, session: Any) -> None:
    """Send the first request to a server. Raises ``EngineError`` if it gives no answer."""
    try:
        session.version  # noqa: B018
    except Exception as error:
        raise EngineError(
            f"no Spark Connect server answers at {server_text(url)}: {engine_error(error).message}"
        ) from error


def is_databricks(remote: str) -> bool:
    """Whether ``engine.remote`` names Databricks Connect, and not a Spark Connect server by its address."""
    return remote == SCHEME or remote.startswith(f"{SCHEME}://")


def profile_of(remote: str) -> str:
    """The profile that ``engine.remote`` names; empty for the default login."""
    return remote.partition("://")[2].strip("/")


def why_not_installed(version: tuple[int, int] = sys.version_info[:2]) -> EngineError:
    """The error for a Python without databricks-connect."""
    wanted, found = (".".join(map(str, each)) for each in (PYTHON, version))
    if version != PYTHON:
        return EngineError(
            f"databricks-connect for today's runtimes exists for Python {wanted} only, and this is Python {found}",
            f"make an environment with Python {wanted}, and install databricks-connect and tablectl there",
        )
    hint = "install it with `pip install 'databricks-connect>=17.3,<20'`"
    return EngineError("databricks-connect is not installed", hint)


def open_databricks(remote: str, *, serverless: bool, cluster: str = "") -> Any:
    """A new session. Raises ``EngineError`` if Databricks Connect is missing, or if the login or the compute fails."""
    try:
        from databricks.connect import DatabricksSession  # noqa: PLC0415  # only where it is installed
    except ImportError as error:
        raise why_not_installed() from error
    profile = profile_of(remote)
    check_host(profile)
    builder = DatabricksSession.builder
    if profile:
        builder = builder.profile(profile)
    if cluster:
        builder = builder.clusterId(cluster)
    if serverless:
        builder = builder.serverless(True)  # noqa: FBT003  # as databricks-connect names it
    try:
        return builder.create()
    except Exception as error:  # whatever the client and the SDK raise says why
        text = " ".join(str(error).split())[:300]
        raise EngineError(f"databricks-connect opens no session: {text}", _LOGIN) from error
