"""Spark as an engine: a local session, Spark Connect, or a session passed in. Uses ``sql`` and DataFrames only."""

from __future__ import annotations

import logging
import os
import socket
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any, TypeVar
from urllib.parse import urlsplit

from tablectl.delta.credentials import server_text
from tablectl.delta.dialects import DEFAULT_DIALECT, dialect_of
from tablectl.delta.names import TableName, quote_name
from tablectl.engine.describe import UNGUARDED, rows_of
from tablectl.engine.errors import engine_error
from tablectl.engine.interface import EngineOptions, MaySend, RemoteWork, TableCopy, always
from tablectl.engine.liveness import answer_of, watched
from tablectl.engine.local_spark import INSTALL, OURS, start_local
from tablectl.engine.spark_connect import (
    ConnectLink,
    check_answers,
    clone,
    is_connect,
    is_databricks,
    open_databricks,
    open_remote,
)
from tablectl.engine.spark_executors import map_parts
from tablectl.engine.sql_catalog import NEVER_INHERITED, SETTINGS, STAMP_KEY, SqlCatalog
from tablectl.engine.table_copy import open_table_copy
from tablectl.model.errors import EngineError, TablectlError

_T = TypeVar("_T")

_CONNECT_PORT = 15002
_JVM_FIRST = "PYSPARK_GATEWAY_PORT"
"""Set by a JVM that starts Python (``spark-submit``, a notebook's cluster): it may continue when Python has exited."""
_ABANDONED = 450.0
"""Seconds after which a Connect server has ended the operations of a client that is gone, by default: it abandons a
stream after 2 minutes and an operation without a client after 5, and checks every 30 s (Spark's
``ExecuteGrpcResponseSender.scala``, ``SparkConnectExecutionManager.scala``, ``Connect.scala``). Databricks documents no
such time."""


_DEFAULTS = EngineOptions()


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFacts:
    """What is known about a session that an engine uses."""

    shared: bool
    """Whether it runs in a driver that the tables' writers also use."""
    stated: bool = True
    """Whether the caller stated that, as in ``Engine``."""
    link: ConnectLink | None = None
    """Of a Connect session."""
    context: Any = None
    """The session whose Spark was started here."""
    bound: float | None = None
    """As in ``Engine``; if ``None``, the known behaviour of the engine applies."""


class SparkEngine(SqlCatalog):
    """``Engine`` and ``Catalog`` on a Spark session that is used for nothing else."""

    rewrites = True

    def __init__(self, session: Any, dialect: str, facts: SessionFacts) -> None:
        self.dialect = dialect
        self.shared = facts.shared
        self.stated = facts.stated
        self._bound = facts.bound
        self._session = session
        setattr(session, UNGUARDED, True)
        self._link = facts.link
        self._context = facts.context
        self._closed = False

    @property
    def address(self) -> str:
        """Where another run can end this engine's statements. Empty for classic Spark: only Connect lets another client
        do so.
        """
        return self._link.address if self._link else ""

    @property
    def bound(self) -> float | None:
        """Seconds for which a statement may still run once this process is gone; ``None`` if there is no bound, or none
        is known. An open-source Connect server continues for some minutes; for how long Databricks does is not
        documented. A JVM ends with the Python process that started it, and may continue forever if it started Python.
        """
        if self._bound is not None:
            return self._bound
        if self._link is not None:
            return _ABANDONED if dialect_of(self.dialect).abandons_statements else None
        return None if _JVM_FIRST in os.environ else 0

    commit_bound: float | None = None
    """Spark has no time limit of a single statement."""

    @property
    def timeout(self) -> tuple[str, str] | None:
        """The setting that makes a configured bound true, and its value; ``None`` if nothing sets it."""
        key = dialect_of(self.dialect).statement_timeout
        return (key, f"{self._bound:.0f}") if key and self._bound and self._link is not None else None

    def alive(self) -> bool:
        """Whether the engine answers, by the heartbeat of a Connect session. Calls to a local JVM fail at once when it
        is gone.
        """
        return self._link is None or self._link.alive()

    def interrupt(self, tag: str, address: str = "") -> bool | None:
        """End the operations with a tag: on Connect through the server, on classic Spark by the session's own tags.

        Returns whether any of them may still run; ``None`` if that is unknown.
        """
        if self._link is not None:
            return answer_of(partial(self._link.interrupt, tag, address))
        if not address:
            with suppress(Exception):  # an older Spark has no tags; a broken gateway accepts no call
                self._session.interruptTag(tag)
        return None

    def setting(self, key: str) -> str:
        return str(self._run(partial(self._session.conf.get, key, None)) or "")

    def opens(self, scheme: str) -> bool | None:
        """As ``Engine.opens``. A Connect server does not tell."""
        if self._link is not None or is_connect(self._session):
            return None
        return self._run(lambda: _has_file_system(self._session, scheme))

    def execute(self, sql: str, tag: str = "", may_send: MaySend = always, *, quick: bool = False) -> None:
        """Run one statement to its end, under a tag if one is given. Raises ``EngineError``."""
        self._run(lambda: self._session.sql(sql), tag, may_send)

    def overwrite(
        self,
        table: TableName,
        columns: Sequence[tuple[str, Mapping[str, Any]]],
        partitions: Sequence[str],
        tag: str = "",
        may_send: MaySend = always,
    ) -> None:
        """Rewrite the whole table from itself, as one DataFrame write. Delta reads the table at the version that the
        commit replaces, and fails if another commit comes in between: a table that is read and overwritten is the
        transaction's own (docs/partitioning.md).
        """
        self._run(lambda: self._overwrite(table, columns, partitions), tag, may_send)

    def _overwrite(
        self, table: TableName, columns: Sequence[tuple[str, Mapping[str, Any]]], partitions: Sequence[str]
    ) -> None:
        # Never a fixed version: Delta would take the rows from the old version, but remove the files of the current
        # one.
        frame = (
            self._session.read.format("delta").load(table.parts[0]) if table.is_path else self._session.table(table.sql)
        )
        others = {name.lower() for name in frame.columns} ^ {name.lower() for name, _ in columns}
        if others:
            listed = ", ".join(sorted(others))
            raise EngineError(f"the columns of {table.text} are not those that were decided on: {listed}", "plan again")
        # Sessions share their caches, and a cached copy of the table may be older than the table.
        frame.unpersist()
        kept = [frame[quote_name(name)].alias(name, metadata=dict(metadata)) for name, metadata in columns]
        writer = frame.select(*kept).write.format("delta").mode("overwrite").option("overwriteSchema", "true")
        # Optimized writes: otherwise each task would write a file of its own into each partition.
        writer = writer.option("partitionOverwriteMode", "static").option("optimizeWrite", "true")
        # A write to a path takes names verbatim, one to a catalog table takes names that Spark parses.
        names = partitions if table.is_path else [quote_name(each) for each in partitions]
        writer = writer.partitionBy(*names) if names else writer
        if table.is_path:
            writer.save(table.parts[0])
        else:
            writer.saveAsTable(table.sql)

    def _run(self, work: Callable[[], _T], tag: str = "", may_send: MaySend = always) -> _T:
        """Run a function on the session, under a tag if one is given. Raises ``EngineError``."""
        link = self._link
        if link is None:
            may_send()
            return _tagged(self._session, tag, work)
        # PySpark's call may hang for as long as a dead server's connection: it gets a thread of its own.
        asked = partial(link.checked, may_send, lambda: _tagged(self._session, tag, work))
        return watched(asked, self.alive, link.why_dead)

    def count(self, sql: str) -> int:
        """The number of rows of a statement."""
        return self._run(lambda: int(self._session.sql(sql).count()))

    def rows(self, sql: str) -> list[Any]:
        """All rows of a query."""
        return self._run(lambda: rows_of(self._session, sql))

    @property
    def copies(self) -> bool:
        """As ``CopiesTables.copies``: only classic Spark gives access to its driver."""
        return self._link is None and not is_connect(self._session)

    def table_copy(self, location: str, partitions: Sequence[str], tag: str = "") -> TableCopy:
        return open_table_copy(self._session, location, partitions, lambda work: self._run(work, tag))

    def on_executors(self, work: RemoteWork, parts: Sequence[str]) -> tuple[str, ...]:
        """As ``Executors.on_executors``, by ``mapInPandas``."""
        return self._run(lambda: map_parts(self._session, work, parts))

    def close(self) -> None:
        """Release a Connect session within a bounded time, and stop Spark if it was started here."""
        link, context = self._link, self._context
        self._context = None
        if link is not None and not self._closed:
            self._closed = True
            link.close()
        if context is not None:
            with suppress(Exception):
                context.stop()


def _has_file_system(session: Any, scheme: str) -> bool | None:
    """Whether Hadoop finds a class for a scheme; ``None`` if it does not tell. Its error says what is missing."""
    try:
        hadoop = session._jsparkSession.sessionState().newHadoopConf()
        session._jvm.org.apache.hadoop.fs.FileSystem.getFileSystemClass(scheme, hadoop)
    except Exception as error:  # noqa: BLE001  # of py4j; what is not certain must not stop an apply
        missing = ("UnsupportedFileSystemException", "ClassNotFoundException")
        return False if any(each in str(error) for each in missing) else None
    return True


def _tagged(session: Any, tag: str, work: Callable[[], _T]) -> _T:
    try:
        if tag:
            session.addTag(tag)
        try:
            return work()
        finally:
            if tag:
                session.removeTag(tag)
    except TablectlError:
        raise
    except Exception as error:  # whatever Spark, py4j or gRPC raise is the engine's answer
        raise engine_error(error) from error


def open_spark(options: EngineOptions, stamp: str = "") -> SparkEngine:
    """An engine on a new session.

    Raises ``EngineError`` with the install command if Spark is missing, and with one sentence if Java is.
    """
    _import_spark()
    remote = options.remote or _remote_of(os.environ)
    if remote:
        _register_errors("delta.connect")
        session = _on_databricks(options) if is_databricks(remote) else _connect(remote)
        link = ConnectLink(session, options.heartbeat, options.dead_after)
        try:
            check_answers(remote, session)
        except EngineError:
            link.close()
            raise
        link.find_driver()
        facts = SessionFacts(shared=True, link=link, bound=options.statement_bound)
        return _own(SparkEngine(session, options.dialect, facts), session, stamp)
    base, started = start_local(options.conf, options.stores)
    _register_errors("delta.exceptions")
    shared = base.conf.get(OURS, None) is None
    session = base.newSession()
    engine = SparkEngine(session, options.dialect, SessionFacts(shared=shared, context=base if started else None))
    return _own(engine, session, stamp)


def wrap_spark(
    session: Any,
    dialect: str = DEFAULT_DIALECT,
    stamp: str = "",
    options: EngineOptions = _DEFAULTS,
    *,
    stated: bool = False,
) -> SparkEngine:
    """An engine on a clone of a session that was passed in: the user's session gets neither the stamp nor the settings.

    ``stated`` says that its driver is the one that the tables' writers use.
    """
    bound = options.statement_bound
    _import_spark()
    if not is_connect(session):
        _register_errors("delta.exceptions")
        own = session.newSession()
        return _own(SparkEngine(own, dialect, SessionFacts(shared=True, stated=stated, bound=bound)), own, stamp)
    _register_errors("delta.connect")
    own = clone(session)
    link = ConnectLink(own, options.heartbeat, options.dead_after)
    link.find_driver()
    return _own(SparkEngine(own, dialect, SessionFacts(shared=True, stated=stated, link=link, bound=bound)), own, stamp)


def _own(engine: SparkEngine, session: Any, stamp: str) -> SparkEngine:
    """Give a session the settings that our statements need, and remove those that a clone inherits from the user's
    session.
    """
    try:
        for key in NEVER_INHERITED:
            if session.conf.get(key, None) is not None:
                session.conf.unset(key)
        for key, value in SETTINGS.items():
            # Only if it differs: Spark Connect warns about some of them whenever they are set.
            if session.conf.get(key, None) != value:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    session.conf.set(key, value)
        if stamp:
            session.conf.set(STAMP_KEY, stamp)
        if engine.timeout:
            session.conf.set(*engine.timeout)
    except Exception as error:  # whatever Spark, py4j or gRPC raise is the engine's answer
        engine.close()
        raise engine_error(error) from error
    return engine


def _import_spark() -> None:
    try:
        import pyspark  # noqa: F401, PLC0415, TID251  # only here, and only if an engine is used
    except ImportError as error:
        raise EngineError("this command needs Spark, which is not installed", INSTALL) from error


def _register_errors(module: str) -> None:
    """Delta's errors are typed only once one of its modules has registered them (delta-0)."""
    with suppress(ImportError):
        import_module(module)


def _on_databricks(options: EngineOptions) -> Any:
    return open_databricks(options.remote or "", serverless=options.serverless, cluster=options.cluster)


def _remote_of(environ: Mapping[str, str]) -> str:
    """The server that PySpark itself would take from the environment, if one is set."""
    named = environ.get("SPARK_REMOTE", "")
    return named if named.startswith("sc://") else ""


def _connect(url: str) -> Any:
    try:
        address = urlsplit(url)
        if address.hostname:  # if nothing listens, PySpark would retry for many minutes
            socket.create_connection((address.hostname, address.port or _CONNECT_PORT), timeout=10).close()
        session = open_remote(url)
    except Exception as error:
        message = f"no Spark Connect server answers at {server_text(url)}: {engine_error(error).message}"
        raise EngineError(message) from error
    _print_no_errors()
    return session


def _print_no_errors() -> None:
    """PySpark prints each error that it raises to standard error, with the stack of the JVM (``_log_exception`` in
    ``pyspark/errors/exceptions/base.py``, 4.0 and later). What tablectl makes of it says what is wrong.
    """
    with suppress(ImportError):
        loggers = import_module("pyspark.logger").PySparkLogger
        for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
            loggers.getLogger(name).setLevel(logging.CRITICAL)
