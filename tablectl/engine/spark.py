"""Spark behind the port: a local session, Spark Connect, or a session handed in. ``sql`` and DataFrames only."""

from __future__ import annotations

import os
import socket
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from typing import IO, Any, cast
from urllib.parse import urlsplit

from tablectl.engine.errors import engine_error
from tablectl.engine.facts import delta_location, described_facts, not_found, schema_name, shown_facts
from tablectl.engine.java import java_problem
from tablectl.engine.port import SIMPLE_NAME
from tablectl.model.errors import EngineError, LiveError, TablectlError
from tablectl.model.live import NOTHING_SET
from tablectl.model.names import TableName, find_name, split_parts
from tablectl.model.sql import quote_name, quote_text

INSTALL = "pip install 'tablectl[spark]'"
_CONNECT_PORT = 15002
STAMP_KEY = "spark.databricks.delta.commitInfo.userMetadata"
_OURS = "spark.tablectl.driver"
"""Set in a driver that tablectl started: no writer of a table uses it."""


@dataclass(frozen=True, slots=True)
class SparkOptions:
    """Where the session comes from: ``remote`` (``sc://…``), else a local one with the settings of ``conf``."""

    dialect: str = "oss"
    remote: str | None = None
    conf: Mapping[str, str] = field(default_factory=lambda: NOTHING_SET)


class SparkEngine:
    """``Engine`` and ``Catalog`` over a Spark session that nobody else uses."""

    def __init__(self, session: Any, dialect: str, *, stop: bool, shared: bool) -> None:
        self._session = session
        self._stop = stop
        self._dialect = dialect
        self._shared = shared

    @property
    def dialect(self) -> str:
        """Whose SQL it takes."""
        return self._dialect

    @property
    def shared(self) -> bool:
        """Whether it runs in the driver that the tables' writers use too."""
        return self._shared

    def log_store(self, scheme: str) -> str:
        """The class of Delta's log store that is set for a scheme; the one for all schemes goes first, as in Delta."""
        for key in ("spark.delta.logStore.class", f"spark.delta.logStore.{scheme}.impl"):
            try:
                found = self._session.conf.get(key, None)
            except Exception as error:  # whatever Spark, py4j or gRPC raise is the engine's answer
                raise engine_error(error) from error
            if found:
                return str(found)
        return ""

    def execute(self, sql: str) -> None:
        """Run one statement to its end."""
        try:
            self._session.sql(sql)
        except Exception as error:  # whatever Spark, py4j or gRPC raise is the engine's answer
            raise engine_error(error) from error

    def overwrite(
        self, table: TableName, columns: Sequence[tuple[str, Mapping[str, Any]]], partitions: Sequence[str]
    ) -> None:
        """One DataFrame write. Delta reads the table at the version that the commit replaces, and fails if another
        commit comes in between: a table that is read and overwritten is the transaction's own (docs/partitioning.md).
        """
        try:
            frame = self._session.table(table.sql)
            # Sessions share their caches, and what somebody cached of the table may be older than the table.
            frame.unpersist()
            kept = [frame[quote_name(name)].alias(name, metadata=dict(metadata)) for name, metadata in columns]
            writer = frame.select(*kept).write.format("delta").mode("overwrite").option("overwriteSchema", "true")
            # Optimized writes: else each task would write a file of its own into each partition.
            writer = writer.option("partitionOverwriteMode", "static").option("optimizeWrite", "true")
            # A path is written with names as they are, a catalog table with names that Spark parses.
            names = partitions if table.is_path else [quote_name(each) for each in partitions]
            writer = writer.partitionBy(*names) if names else writer
            if table.is_path:
                writer.save(table.parts[0])
            else:
                writer.saveAsTable(table.sql)
        except Exception as error:  # whatever Spark, py4j or gRPC raise is the engine's answer
            raise engine_error(error) from error

    def row(self, sql: str) -> tuple[str | None, ...]:
        """The first row of a query."""
        return tuple(None if value is None else str(value) for value in self._rows(sql)[0])

    def location(self, table: TableName) -> str:
        """By what the catalog itself says, else by ``DESCRIBE TABLE``, which loads the table's log for its answer."""
        schema, name = table.parts
        if SIMPLE_NAME.fullmatch(name):
            where = find_name(self.tables(table.catalog, schema, name), table)
            if isinstance(where, TablectlError):
                raise where
            if where:
                return where
        return self._described(table)

    def schemas(self, catalog: str) -> tuple[str, ...]:
        """One ``SHOW SCHEMAS``."""
        try:
            rows = self._rows(f"SHOW SCHEMAS IN {quote_name(catalog)}")
        except EngineError as error:
            raise not_found(f"the catalog {catalog}", error) or error from error
        return tuple(name for row in rows if (name := schema_name(row[0])))

    def tables(self, catalog: str, schema: str, like: str = "*") -> Mapping[TableName, str | TablectlError]:
        """One ``SHOW TABLE EXTENDED``, which asks the catalog alone; a ``DESCRIBE TABLE`` for each whose facts cannot
        be told from it, and for all where a catalog knows only ``SHOW TABLES``.
        """
        within = f"IN {quote_name(catalog)}.{quote_name(schema)} LIKE {quote_text(like)}"
        try:
            rows = self._rows(f"SHOW TABLE EXTENDED {within}")
        except EngineError as error:
            missing = not_found(f"the schema {catalog}.{schema}", error)
            if missing:
                raise missing from error
            rows = self._rows(f"SHOW TABLES {within}")
        names = ((TableName(catalog, (schema, row[1])), row) for row in rows if not row[2])  # [2]: a temporary view
        return {name: self._where(name, row[3] if len(row) > 3 else "") for name, row in names}

    def _where(self, table: TableName, information: str) -> str | TablectlError:
        facts = shown_facts(information)
        try:
            return delta_location(table.text, facts) if facts else self._described(table)
        except (LiveError, EngineError) as error:
            return error

    def _described(self, table: TableName) -> str:
        return _describe(self._session, table.sql, table.text)

    def _rows(self, sql: str) -> list[Any]:
        return _rows(self._session, sql)

    def close(self) -> None:
        """Stop the session if it was made here."""
        if self._stop:
            self._stop = False
            with suppress(Exception):
                self._session.stop()


def locate(session: Any, name: str) -> str:
    """Where the table lies that a name means in a session, as its own statements would find it. Changes nothing there.

    Raises ``LiveError`` where there is no such Delta table, ``EngineError`` where the session cannot tell.
    """
    return _describe(session, ".".join(quote_name(part) for part in split_parts(name)), name)


def open_spark(options: SparkOptions, stamp: str = "") -> SparkEngine:
    """An engine on a session made for the purpose.

    Raises ``EngineError`` with the install line where Spark is missing, and with one sentence where Java is.
    """
    _import_spark()
    if options.remote:
        _register_errors("delta.connect")
        return _own(_connect(options.remote), options.dialect, stamp, stop=True, shared=True)
    session, started = _local(options.conf)
    _register_errors("delta.exceptions")
    shared = session.conf.get(_OURS, None) is None
    return _own(session if started else session.newSession(), options.dialect, stamp, stop=started, shared=shared)


def wrap_spark(session: Any, dialect: str = "oss", stamp: str = "") -> SparkEngine:
    """An engine beside a session handed in: the stamp and the settings never reach the user's own (DESIGN 5)."""
    _import_spark()
    if hasattr(session, "newSession"):
        _register_errors("delta.exceptions")
        return _own(session.newSession(), dialect, stamp, stop=False, shared=True)
    _register_errors("delta.connect")
    clone = session.cloneSession()
    # PySpark 4.2 makes the clone without running __init__, and both stop() and garbage collection read this.
    clone.release_session_on_close = True
    return _own(clone, dialect, stamp, stop=True, shared=True)


def _own(session: Any, dialect: str, stamp: str, *, stop: bool, shared: bool) -> SparkEngine:
    # Spark would expand ${…} inside our literals before parsing, and the other changes what a backslash means.
    session.conf.set("spark.sql.variable.substitute", "false")
    session.conf.set("spark.sql.parser.escapedStringLiterals", "false")
    # A file that cannot be read for a moment would be left out of whatever is written anew.
    session.conf.set("spark.sql.files.ignoreMissingFiles", "false")
    session.conf.set("spark.sql.files.ignoreCorruptFiles", "false")
    if stamp:
        session.conf.set(STAMP_KEY, stamp)
    return SparkEngine(session, dialect, stop=stop, shared=shared)


def _import_spark() -> None:
    try:
        import pyspark  # noqa: F401, PLC0415, TID251  # only here, and only when an engine is asked for
    except ImportError as error:
        raise EngineError("this command needs Spark, which is not installed", INSTALL) from error


def _register_errors(module: str) -> None:
    """Delta's errors are typed only once one of its modules registered them (delta.md 0)."""
    with suppress(ImportError):
        import_module(module)


def _connect(url: str) -> Any:
    from pyspark.sql import SparkSession  # noqa: PLC0415, TID251  # as above

    try:
        _knock(url)
        session = cast("Any", SparkSession.builder).remote(url).create()
        session.version  # noqa: B018  # the first question to the server
    except Exception as error:
        raise EngineError(f"no Spark Connect server answers at {url}: {engine_error(error).message}") from error
    return session


def _knock(url: str) -> None:
    """Raises ``OSError`` where nobody listens: PySpark itself would go on trying for many minutes."""
    address = urlsplit(url)
    if address.hostname:
        socket.create_connection((address.hostname, address.port or _CONNECT_PORT), timeout=10).close()


def packages() -> str:
    """Maven coordinates of Delta for the installed pyspark and delta-spark."""
    from importlib import metadata  # noqa: PLC0415  # slow to load, and most commands start no session

    try:
        spark, delta = metadata.version("pyspark"), metadata.version("delta-spark")
    except metadata.PackageNotFoundError as error:
        raise EngineError("a local session needs pyspark and delta-spark", INSTALL) from error
    return delta_coordinates(spark, delta)


def delta_coordinates(spark: str, delta: str) -> str:
    """The jar of a version of Delta for a version of Spark: since 4.1 its name carries Spark's minor version."""
    before = tuple(int(part) for part in delta.split(".")[:2] if part.isdigit()) < (4, 1)
    suffix = "" if before else f"_{'.'.join(spark.split('.')[:2])}"
    return f"io.delta:delta-spark{suffix}_2.13:{delta}"


def local_conf(conf: Mapping[str, str]) -> dict[str, str]:
    """The settings of a local session: Delta on, few partitions, no web page; the user's own win."""
    ours = {
        _OURS: "true",
        "spark.app.name": "tablectl",
        "spark.master": "local[*]",
        "spark.jars.packages": packages(),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.ui.enabled": "false",
        "spark.log.level": "ERROR",
        "spark.sql.shuffle.partitions": "4",
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
    }
    merged = {**ours, **conf}
    theirs = conf.get("spark.jars.packages")
    if theirs and "io.delta:" not in theirs:
        merged["spark.jars.packages"] = f"{ours['spark.jars.packages']},{theirs}"
    return merged


def _local(conf: Mapping[str, str]) -> tuple[Any, bool]:
    from pyspark.sql import SparkSession  # noqa: PLC0415, TID251  # as above

    running = SparkSession.getActiveSession()
    if running is not None:
        return running, False
    problem = java_problem(os.environ)
    if problem:
        raise EngineError(problem)
    builder = SparkSession.builder
    for key, value in local_conf(conf).items():
        builder = builder.config(key, value)
    with tempfile.NamedTemporaryFile("w+", prefix="tablectl-spark-", suffix=".log") as log:
        try:
            with _stderr_to(log):
                return builder.getOrCreate(), True
        except Exception as error:
            log.seek(0)
            raise EngineError(_why_not_started(log.read(), error), "see the requirements in the README") from error


def _why_not_started(log: str, error: Exception) -> str:
    unresolved = [
        line.strip(" :") for line in log.splitlines() if "not found" in line or "unresolved dependency" in line
    ]
    reason = unresolved[0] if unresolved else engine_error(error).message
    return f"the local Spark session did not start: {reason}"


@contextmanager
def _stderr_to(log: IO[str]) -> Iterator[None]:
    """While Spark starts, its JVM inherits a file as standard error: what Ivy and log4j print is not for users."""
    sys.stderr.flush()
    saved = os.dup(2)
    os.dup2(log.fileno(), 2)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(saved, 2)
        os.close(saved)


def _describe(session: Any, sql: str, text: str) -> str:
    try:
        rows = _rows(session, f"DESCRIBE TABLE EXTENDED {sql}")
    except EngineError as error:
        raise not_found(text, error) or error from error
    return delta_location(text, described_facts(rows))


def _rows(session: Any, sql: str) -> list[Any]:
    try:
        return list(session.sql(sql).collect())
    except Exception as error:  # whatever Spark, py4j or gRPC raise is the engine's answer
        raise engine_error(error) from error
