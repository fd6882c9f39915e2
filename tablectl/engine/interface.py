"""The protocols of an engine: one runs statements, the other finds tables by name. Its options, and whether it knows
Delta's SQL.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from tablectl.delta.dialects import DEFAULT_DIALECT, dialect_of
from tablectl.delta.keys import NOTHING_SET
from tablectl.delta.names import TableName
from tablectl.model.errors import EngineError, TablectlError
from tablectl.model.store_options import NO_STORES

LOGIN = ("TABLECTL_THRIFT_USER", "TABLECTL_THRIFT_PASSWORD")
"""The variables that hold the user and the password of a Thrift server."""

SIMPLE_NAME = re.compile(r"[A-Za-z0-9_]+")
"""A name that matches only itself in ``like``. In other names some character may be a wildcard."""


MaySend = Callable[[], None]
"""Called directly before the request of a statement is sent; what it raises ends the call. An engine that sends a
request again calls it again.
"""


def always() -> None:
    """A request may be sent at any time."""


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """What the configuration says of an engine. Each kind of engine reads what concerns it."""

    dialect: str = DEFAULT_DIALECT
    remote: str | None = None
    """An address of ``EngineConfig.server``: ``sc://…``, ``databricks``, ``thrift://…``, ``warehouse://…``. ``None``
    for a local session."""
    conf: Mapping[str, str] = field(default_factory=lambda: NOTHING_SET)
    """The Spark settings of a local session."""
    heartbeat: float = 5.0
    """Seconds between two pings of a server."""
    dead_after: float = 20.0
    """Seconds without an answer after which it counts as dead."""
    commit_bound: float = 60.0
    """Seconds for which a SQL endpoint lets a statement run that only commits metadata."""
    statement_bound: float | None = None
    """Seconds for which the engine lets a statement run whose client is gone, and a SQL endpoint any statement;
    ``None`` if not configured."""
    stores: Mapping[str, Mapping[str, str]] = field(default_factory=lambda: NO_STORES)
    """The options of ``stores:`` by store kind, for a local session."""
    serverless: bool = False
    """Whether Databricks Connect uses serverless compute."""
    cluster: str = ""
    """The id of its cluster; empty for that of the login."""
    thrift_login: str = "plain"
    """How a Thrift server knows its clients: ``plain``, ``kerberos`` or ``none``."""
    thrift_tls: bool = False
    """Whether it is reached by TLS."""


class CommitDriver(Protocol):
    """Where commits are made, as far as it decides whether another driver can overwrite them."""

    @property
    def dialect(self) -> str:
        """The engine's SQL dialect: ``oss`` or ``databricks``."""
        ...

    @property
    def shared(self) -> bool:
        """Whether it runs in the driver that the tables' writers also use: a session passed in, or a server."""
        ...

    @property
    def stated(self) -> bool:
        """Whether the caller stated that this is the writers' driver: ``driver="shared"``, ``engine.remote``."""
        ...

    def log_store(self, scheme: str) -> str:
        """The class of Delta's log store configured for a scheme (``s3a``, ``file``, …); empty for Delta's default."""
        ...


class Engine(CommitDriver, Protocol):
    """Runs SQL in a session of its own. Thread-safe.

    Its methods raise ``EngineError``, with the engine's own error class if there is one.
    """

    def opens(self, scheme: str) -> bool | None:
        """Whether the engine has a file system for locations with a scheme; ``None`` if it does not tell."""
        ...

    def location(self, table: TableName) -> str:
        """The location of a catalog table, by one cheap statement. ``LiveError`` if there is no such Delta table."""
        ...

    @property
    def address(self) -> str:
        """Where another run can find this engine's statements to end them; empty if no other process can."""
        ...

    @property
    def bound(self) -> float | None:
        """Seconds for which a statement may still run once this process is gone; ``None`` if there is no bound.

        0 if the engine ends with the process.
        """
        ...

    @property
    def commit_bound(self) -> float | None:
        """Seconds after which it ends a ``quick`` statement, whether its client is there or not; ``None`` if it does
        not.
        """
        ...

    @property
    def rewrites(self) -> bool:
        """Whether ``overwrite`` works. If not, it raises ``no_overwrite``."""
        ...

    def alive(self) -> bool:
        """Whether the engine answered recently. Never waits."""
        ...

    def execute(self, sql: str, tag: str = "", may_send: MaySend = always, *, quick: bool = False) -> None:
        """Run one statement to its end. Every commit it makes carries the session's stamp, and its operation the tag.

        An ``unanswered`` ``EngineError`` does not say how the statement ended: it may still run.
        """
        ...

    def overwrite(
        self,
        table: TableName,
        columns: Sequence[tuple[str, Mapping[str, Any]]],
        partitions: Sequence[str],
        tag: str = "",
        may_send: MaySend = always,
    ) -> None:
        """Rewrite the whole table from itself, in one stamped commit: its columns in order, each with the metadata that
        it keeps, under these partition columns. ``table`` is a path on engines that accept one.

        Raises ``EngineError`` if the table has other columns by now: a column that is not listed would be dropped.
        """
        ...

    def interrupt(self, tag: str, address: str = "") -> bool | None:
        """Ask the engine to end the operations with a tag, here or, by its ``address``, in the session of a run that
        died.

        Returns whether any of them may still run; ``None`` if the engine does not say.
        """
        ...

    def row(self, sql: str) -> tuple[str | None, ...]:
        """The first row of a query, with its values as strings."""
        ...

    def count(self, sql: str) -> int:
        """The number of rows of a statement."""
        ...

    def close(self) -> None:
        """Release the session. Idempotent."""
        ...


class Catalog(Protocol):
    """Finds the locations of named tables with statements that read no table. Thread-safe.

    All methods raise ``EngineError``, and ``LiveError`` for what does not exist.
    """

    def location(self, table: TableName) -> str:
        """The location of a catalog table, by one cheap statement. ``LiveError`` if there is no such Delta table."""
        ...

    def schemas(self, catalog: str) -> tuple[str, ...]:
        """The schemas of a catalog, by one statement."""
        ...

    def tables(self, catalog: str, schema: str, like: str = "*") -> Mapping[TableName, str | TablectlError]:
        """The location of each table of a schema, by one statement; a ``LiveError`` for a table that is not a Delta
        table.

        ``like`` filters the names: a ``SIMPLE_NAME`` in which ``*`` matches any characters, with ``|`` between several.
        It is case-insensitive.
        """
        ...


@runtime_checkable
class KnowsStatements(Protocol):
    """An engine whose commits may carry no stamp, and that knows its statements by the ids in their commits."""

    def stamp_of(self, statement: str) -> str:
        """The stamp of the run that sent a statement; empty if no run of tablectl did. Raises an unanswered
        ``EngineError`` if that is not known yet.
        """
        ...


@dataclass(frozen=True, slots=True)
class RemoteWork:
    """A function of tablectl that takes two texts and returns one. Executors import it by its name."""

    module: str
    name: str
    common: str
    """The first argument, the same for all calls."""


@runtime_checkable
class Executors(Protocol):
    """An engine that runs Python on other machines."""

    def on_executors(self, work: RemoteWork, parts: Sequence[str]) -> tuple[str, ...]:
        """What the function returns for each part, in order. Raises ``EngineError``."""
        ...


@dataclass(frozen=True, slots=True)
class FollowedFile:
    """A data file of a table as it was followed."""

    key: str
    """Its path and its deletion vector: what a key stands for never changes."""
    size: int
    """In bytes."""


@dataclass(frozen=True, slots=True)
class FollowedTable:
    """A table at the version to which its copy has followed it."""

    version: int
    table_id: str
    layout: str
    """Its columns, properties, features and domains, and the session's rules for values. Files that were copied under
    another layout are of no use.
    """
    schema: str
    """The schema of the log, as JSON."""
    files: tuple[FollowedFile, ...]
    properties: Mapping[str, str]
    partition_keys: tuple[str, ...]
    """The names under which the log has the values of the new partition columns. One that was dropped is left out."""


class TableCopy(Protocol):
    """New files for the rows of a table, under other partition columns, and the one commit that puts them in place.

    Nothing is committed before ``commit``: a copy that is given up leaves files that VACUUM removes. All methods raise
    ``EngineError``.
    """

    def follow(self) -> FollowedTable:
        """The newest version of the table. The other methods mean this version."""
        ...

    def write(self, keys: Sequence[str]) -> tuple[str, ...]:
        """Write the rows of some files to new files. Returns their ``add`` actions as JSON."""
        ...

    def compare(self, keys: Sequence[str], adds: Sequence[str], sums: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        """The values of some aggregates over the rows of files of the table, and over those of copied files."""
        ...

    def measure(self, adds: Sequence[str]) -> tuple[str, ...]:
        """Copied files whose ``add`` actions come from a record, with statistics from the files themselves: a reader
        skips files by them.
        """
        ...

    def use(self, adds: Sequence[str]) -> None:
        """Let the commit add these files."""
        ...

    def drop(self, adds: Sequence[str]) -> None:
        """Do not let the commit add these files any more."""
        ...

    def prepare(self) -> None:
        """Make the part of the commit that is known already, so that less is left to do behind the gate."""
        ...

    def commit(self) -> int:
        """Replace all files of the table by the copied ones, in the version after the followed one. Returns it.

        A conflict (``is_conflict``) means that this version exists: another writer has committed.
        """
        ...

    def exchange(self, old: Sequence[str], new: Sequence[str]) -> int:
        """After ``commit``: replace files that it added by others with the same rows, in a version of its own, which is
        returned. Raises ``EngineError`` if the newest version does not have all of the old ones as they were added.
        """
        ...


@runtime_checkable
class CopiesTables(Protocol):
    """An engine that can copy a table while others write it."""

    @property
    def copies(self) -> bool:
        """Whether ``table_copy`` works: it needs access to the JVM of the driver."""
        ...

    def table_copy(self, location: str, partitions: Sequence[str], tag: str = "") -> TableCopy:
        """A copy of the table at a location. Raises ``EngineError``."""
        ...


def no_overwrite(table: TableName, dialect: str) -> EngineError:
    """Why an engine that takes only SQL does not rewrite a table, and what does where its dialect runs."""
    hint = "apply it through Spark or Spark Connect"
    if dialect_of(dialect).runtime:
        hint = (
            "apply it through Spark, Spark Connect or databricks-connect; since Databricks Runtime 18.1, partitions "
            "can become clustering columns (`partitioning: none` with `clustering`): "
            f"ALTER TABLE {table.sql} REPLACE PARTITIONED BY WITH CLUSTER BY (…)"
        )
    message = f"a SQL endpoint cannot rewrite {table.text} under other partition columns: that takes a DataFrame"
    return EngineError(message, hint)
