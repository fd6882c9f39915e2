"""An engine behind a SQL endpoint: statements by a driver of the DB-API, each on a connection of its own. No session in
Python, no JVM. ``thrift_server`` and ``databricks_warehouse`` say how to connect.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Protocol, TypeVar

from tablectl.delta.names import TableName, quote_name, quote_text
from tablectl.engine.databricks_warehouse import Warehouse
from tablectl.engine.errors import engine_error
from tablectl.engine.interface import EngineOptions, MaySend, always, no_overwrite
from tablectl.engine.liveness import Heartbeat, answer_of, watched
from tablectl.engine.sql_catalog import SETTINGS, STAMP_KEY, SqlCatalog
from tablectl.engine.thrift_server import ThriftServer
from tablectl.model.errors import EngineError, TablectlError
from tablectl.model.stamp import Stamp, read_stamp

_T = TypeVar("_T")

DEFAULT_BOUND = 3600.0
"""Seconds after which an endpoint ends a statement, if ``engine.statement_bound`` does not say: more than a rewrite of
some terabytes takes, and much less than what the products allow (a warehouse: 2 days; Spark: no limit)."""
_IDLE_LIMIT = 60.0
"""Seconds after which an unused connection is not used again: load balancers drop idle connections silently."""
TAG, _RUN_TAG, _PLAN_TAG = "tablectl", "tablectl_run", "tablectl_plan"
"""The keys of the query tags of a statement: its own tag, and its run and plan, as in a stamp."""
_FIRST_LOOK = 0.01
_LONGEST_LOOK = 0.5
"""Seconds between two looks at a running statement, at first and at most."""
_SHARED = "spark.tablectl.session"
"""A setting that shows whether two connections have one session."""
_NOT_SETTABLE = "CONFIG_NOT_AVAILABLE"
"""The condition of a setting that a SQL warehouse lets no one change (docs.databricks.com, "Error classes")."""
_TEXT = "${env:HOME} \\n 'x'"
"""A text that an endpoint with other settings than ours would change."""
_UNDEFINED = "<undefined>"
"""What ``SET key`` answers for a key without a value."""


class Connection(Protocol):
    """One connection with a session of its own, for one thread at a time; ``cancel`` may be called from another one.

    Its methods raise what the driver raises, and ``EngineError`` for what the driver does not say.
    """

    def ready(self) -> bool:
        """Whether it can run another statement."""
        ...

    limit: float
    """Seconds after which the endpoint ends its statements, as it was told last; 0 if it was not told yet."""
    statement: str
    """The id of the last statement in the endpoint's history; empty before its answer arrived, and without one."""

    def send(self, sql: str, tags: Mapping[str, str], may_send: MaySend) -> None:
        """Send a statement, and return when the endpoint has accepted it. It is never sent a second time."""
        ...

    def runs(self) -> bool:
        """Whether the statement still runs. Raises if it failed."""
        ...

    def rows(self) -> list[tuple[Any, ...]]:
        """The rows of the statement that ended."""
        ...

    def close(self) -> None:
        """End the session and the connection."""
        ...


class Endpoint(Protocol):
    """How to reach an endpoint."""

    name: str
    """For messages, without credentials."""
    address: str
    """As ``Engine.address``."""
    bound: float
    """Seconds after which it ends a statement."""
    timeout: str
    """The setting of a session that limits its statements, in seconds."""
    hint: str
    """What to look at if it does not answer."""

    def connect(self) -> Connection:
        """A new connection, whose session has no settings yet."""
        ...

    def ping(self) -> None:
        """Raise if the endpoint does not answer."""
        ...

    def interrupt(self, connection: Any, tag: str) -> bool | None:
        """Cancel the statement of a connection, which may be broken. As ``Engine.interrupt``."""
        ...

    def interrupt_at(self, address: str, tag: str) -> bool | None:
        """Cancel the statements with a tag of a run that died. As ``Engine.interrupt``."""
        ...

    def tags_of(self, statement: str) -> Mapping[str, str] | None:
        """The tags of a statement in its history; ``None`` if the history does not show the statement."""
        ...

    def find_driver(self, setting: Callable[[str], str | None]) -> None:
        """Find the port of its Spark driver, by the settings of a session."""
        ...

    def gone(self) -> bool:
        """Whether its process is known to be gone, and with it every statement."""
        ...

    def close(self) -> None:
        """Release what ``ping`` uses."""
        ...


class SqlEndpoint(SqlCatalog):
    """``Engine`` and ``Catalog`` on a SQL endpoint."""

    shared = True
    stated = True
    rewrites = False

    def __init__(self, endpoint: Endpoint, options: EngineOptions, stamp: str = "") -> None:
        self.dialect = options.dialect
        self._endpoint = endpoint
        self._stamp = stamp
        self._commit_bound = options.commit_bound
        read = read_stamp(stamp)
        self._run_tags = {_RUN_TAG: read.run, _PLAN_TAG: read.plan} if read else {}
        self._idle: list[tuple[Connection, float]] = []
        self._sent: dict[str, Connection] = {}
        """By tag, the connections of statements whose end is not known."""
        self._stamps: dict[str, str] = {}
        """By the id of a statement, the stamp of its run; empty if it is of no run."""
        self._lock = threading.Lock()
        self._closed = False
        self._heartbeat = Heartbeat(endpoint.ping, options.heartbeat, options.dead_after)

    def open(self) -> SqlEndpoint:
        """Check that the endpoint answers, and that no one else gets the settings of our sessions. Raises
        ``EngineError``.
        """
        try:
            self._ping()
            first, other = self._connect(), self._connect()
        except EngineError as error:
            self.close()
            message = f"no SQL endpoint answers at {self._endpoint.name}: {error.message}"
            raise EngineError(message, error.hint, error.condition) from error
        self._give_back(first)
        self._give_back(other)
        self._heartbeat.start()
        try:
            # A setting may be refused, or the server has its own.
            if self.row(f"SELECT {quote_text(_TEXT)}") != (_TEXT,):
                raise EngineError(
                    "the endpoint changes the texts of statements",
                    "set `spark.sql.variable.substitute=false` and "
                    "`spark.sql.parser.escapedStringLiterals=false` there",
                )
            self._check_private()
            self._endpoint.find_driver(self.setting)
        except Exception as error:  # whatever the driver raises is the endpoint's answer
            self.close()
            raise engine_error(error) from error
        return self

    def _ping(self) -> None:
        """Ask the endpoint for an answer, within seconds: a session of a warehouse that starts may take minutes, and
        its driver tries to open one for a quarter of an hour. Raises ``EngineError``.
        """
        try:
            self._endpoint.ping()
        except Exception as error:  # whatever the driver raises is the endpoint's answer
            known = engine_error(error)
            raise EngineError(known.message, known.hint or self._endpoint.hint, known.condition) from error

    def _check_private(self) -> None:
        """Raise ``EngineError`` if others get the settings of our sessions."""
        (first, _), (other, _) = self._idle
        if _set(first, _SHARED, "tablectl") and _setting(other, _SHARED) is not None:
            raise EngineError(
                "its connections share one session: the commits of others would carry the stamp of this run",
                "set `spark.sql.hive.thriftServer.singleSession=false` there (Kyuubi: "
                "`kyuubi.engine.single.spark.session=false`)",
            )

    @property
    def address(self) -> str:
        """Where another run can end this engine's statements; empty if the endpoint lets no other client do so."""
        return self._endpoint.address

    @property
    def bound(self) -> float | None:
        """Seconds after which the endpoint ends a statement, whether its client is there or not."""
        return self._endpoint.bound

    @property
    def commit_bound(self) -> float:
        """Seconds after which the endpoint ends a quick statement."""
        return min(self._commit_bound, self._endpoint.bound)

    def alive(self) -> bool:
        """Whether the endpoint answered recently."""
        return self._heartbeat.alive()

    def setting(self, key: str) -> str:
        return self._on_connection(partial(_setting, key=key)) or ""

    def opens(self, scheme: str) -> bool | None:  # an endpoint does not tell
        return None

    def execute(self, sql: str, tag: str = "", may_send: MaySend = always, *, quick: bool = False) -> None:
        """Run one statement to its end."""
        tags = {TAG: tag, **self._run_tags} if tag else {}

        def work(connection: Connection) -> None:
            connection.send(sql, tags, may_send)
            if connection.statement and tag:
                self._stamps[connection.statement] = self._stamp
            _wait(connection)

        self._on_connection(work, tag, self.commit_bound if quick else self._endpoint.bound)

    def stamp_of(self, statement: str) -> str:
        """As ``KnowsStatements.stamp_of``: by the ids of this engine's statements, else by the tags in the history."""
        if statement not in self._stamps:
            try:
                tags = self._endpoint.tags_of(statement)
            except Exception as error:  # whatever the SDK raises: the history does not answer
                message = f"the history does not answer who sent the statement {statement}: {error}"[:300]
                raise EngineError(message, self._endpoint.hint, unanswered=True) from error
            if tags is None:
                if any(not each.statement for each in [*self._sent.values()]):
                    message = f"the history does not show yet who sent the statement {statement}"
                    raise EngineError(message, unanswered=True)
                return ""
            known = tags.get(TAG, "") in self._sent
            self._stamps[statement] = self._stamp if known else _stamp(tags)
        return self._stamps[statement]

    def overwrite(
        self,
        table: TableName,
        columns: Sequence[tuple[str, Mapping[str, Any]]],
        partitions: Sequence[str],
        tag: str = "",
        may_send: MaySend = always,
    ) -> None:
        """Refuse: SQL has no statement that rewrites a table from itself and keeps the metadata of its columns."""
        raise no_overwrite(table, self.dialect)

    def interrupt(self, tag: str, address: str = "") -> bool | None:
        if not address and tag not in self._sent:
            return False

        def ask() -> bool | None:
            with suppress(Exception):  # whatever the driver raises: the endpoint does not say
                if address:
                    return self._endpoint.interrupt_at(address, tag)
                return self._endpoint.interrupt(self._sent[tag], tag)
            return None

        answer = answer_of(ask)
        return False if answer is None and not address and self._endpoint.gone() else answer

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """All rows of a query."""

        def ask(connection: Connection) -> list[tuple[Any, ...]]:
            _run(connection, sql)
            return connection.rows()

        return self._on_connection(ask)

    def count(self, sql: str) -> int:
        """The number of rows of a statement."""
        return len(self.rows(sql))

    def close(self) -> None:
        """Release the connections within a bounded time. Idempotent."""
        self._heartbeat.stop()
        with self._lock:
            idle, self._idle, self._closed = self._idle, [], True
        alive = self.alive()

        def release() -> None:
            for connection, _ in idle:
                _close(connection)
            with suppress(Exception):
                self._endpoint.close()

        if alive:
            answer_of(release)

    def _on_connection(self, work: Callable[[Connection], _T], tag: str = "", limit: float = 0.0) -> _T:
        """Do some work on a connection of its own, in a thread of its own: a driver may wait for as long as the
        connection of a dead server lasts. The endpoint ends each statement after ``limit`` seconds, or its bound.
        """
        unsettled = False
        try:
            return watched(partial(self._work, work, tag, limit or self._endpoint.bound), self.alive, self._why_dead)
        except EngineError as error:
            unsettled = error.unanswered
            raise
        finally:
            if not unsettled:
                self._sent.pop(tag, None)

    def _work(self, work: Callable[[Connection], _T], tag: str, limit: float) -> _T:
        connection = self._take()
        broken = False
        try:
            self._limit(connection, limit)
            if tag:
                self._sent[tag] = connection
            return work(connection)
        except TablectlError as error:
            broken = isinstance(error, EngineError) and error.unanswered
            raise
        except Exception as error:  # whatever the driver raises is the endpoint's answer
            known = engine_error(error)
            broken = known.unanswered
            if broken:
                message = f"the connection to {self._endpoint.name} broke: {known.message}"
                known = EngineError(message, self._endpoint.hint, unanswered=True)
            raise known from error
        finally:
            if not broken:
                self._give_back(connection)

    def _take(self) -> Connection:
        while True:
            with self._lock:
                if not self._idle:
                    break
                connection, since = self._idle.pop()
            if time.monotonic() - since < _IDLE_LIMIT and connection.ready():
                return connection
            _close(connection)
        return self._connect()

    def _give_back(self, connection: Connection) -> None:
        with self._lock:
            if not self._closed:
                self._idle.append((connection, time.monotonic()))
                return
        _close(connection)

    def _connect(self) -> Connection:
        """A connection whose session has our settings. Raises ``EngineError``."""
        try:
            connection = self._endpoint.connect()
            try:
                for key, value in SETTINGS.items():
                    _set(connection, key, value)
                self._limit(connection, self._endpoint.bound)
                if self._stamp:  # if it is refused, the ids of statements are in the commits: see ``stamp_of``
                    _set(connection, STAMP_KEY, self._stamp)
            except BaseException:
                _close(connection)
                raise
        except Exception as error:  # whatever the driver raises is the endpoint's answer
            known = engine_error(error)
            # Not unanswered: the statement that needs the connection was not sent.
            raise EngineError(known.message, known.hint or self._endpoint.hint, known.condition) from error
        return connection

    def _limit(self, connection: Connection, seconds: float) -> None:
        """Make the endpoint end the statements of a connection after some seconds."""
        if connection.limit != seconds:
            _run(connection, f"SET {self._endpoint.timeout} = {seconds:.0f}")
            connection.limit = seconds

    def _why_dead(self) -> str:
        return f"the engine has not answered for {self._heartbeat.dead_after:g} s (`engine.dead_after`)"


def open_endpoint(remote: str, options: EngineOptions, environ: Mapping[str, str], stamp: str = "") -> SqlEndpoint:
    """The SQL endpoint at an address of ``EngineConfig.server``: ``thrift://HOST:PORT`` or ``warehouse://ID``. The
    user and the password of a Thrift server are in the environment. Raises ``EngineError``.
    """
    kind, _, place = remote.partition("://")
    bound = options.statement_bound or DEFAULT_BOUND
    endpoint: Endpoint = ThriftServer(place, options, bound, environ) if kind == "thrift" else Warehouse(place, bound)
    return SqlEndpoint(endpoint, options, stamp).open()


def _stamp(tags: Mapping[str, str]) -> str:
    """The stamp of the run that sent a statement with these tags; empty if none did. Reasons of operators are not in
    tags.
    """
    run, plan = tags.get(_RUN_TAG), tags.get(_PLAN_TAG)
    return Stamp(run, plan).text() if run and plan else ""


def _run(connection: Connection, sql: str) -> None:
    """Run a statement of no run to its end."""
    connection.send(sql, {}, always)
    _wait(connection)


def _wait(connection: Connection) -> None:
    """Wait for the end of the statement that was sent."""
    pause = _FIRST_LOOK
    while connection.runs():
        time.sleep(pause)
        pause = min(pause * 1.5, _LONGEST_LOOK)


def _set(connection: Connection, key: str, value: str) -> bool:
    """Give a session a setting. False if the endpoint lets no client set it."""
    try:
        _run(connection, f"SET {quote_name(key)}={quote_name(value)}")
    except Exception as error:  # whatever the driver raises is the endpoint's answer
        if engine_error(error).condition == _NOT_SETTABLE:
            return False
        raise
    return True


def _setting(connection: Connection, key: str) -> str | None:
    """The value of a setting in a session; ``None`` if it has none."""
    _run(connection, f"SET {quote_name(key)}")
    value = str(connection.rows()[0][1])
    return None if value == _UNDEFINED else value


def _close(connection: Connection) -> None:
    with suppress(Exception):  # the endpoint ends the session of a connection that ends
        connection.close()
