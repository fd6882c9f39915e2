"""The small protocols through which an engine is reached: what runs statements, and what knows tables by name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from tablectl.delta.names import TableName
from tablectl.model.errors import TablectlError

SIMPLE_NAME = re.compile(r"[A-Za-z0-9_]+")
"""A name that stands for itself in ``like``; in any other some character may mean something."""


class Engine(Protocol):
    """Runs SQL in a session of its own. Safe to use from several threads.

    Its methods raise ``EngineError`` with the engine's own error class where it gives one.
    """

    @property
    def dialect(self) -> str:
        """``oss`` or ``databricks``: whose SQL it takes."""
        ...

    @property
    def shared(self) -> bool:
        """Whether it runs in the driver that the tables' writers use too: a session handed in, or a server."""
        ...

    @property
    def stated(self) -> bool:
        """Whether somebody said that this is the writers' driver: ``driver="shared"``, ``engine.remote``."""
        ...

    def log_store(self, scheme: str) -> str:
        """The class of Delta's log store that is set for a scheme (``s3a``, ``file``, …); empty for Delta's default."""
        ...

    def location(self, table: TableName) -> str:
        """Where a catalog table lies, by one cheap statement. ``LiveError`` where there is no such Delta table."""
        ...

    @property
    def address(self) -> str:
        """Where another run can find this engine's statements to end them; empty where no other process can."""
        ...

    @property
    def bound(self) -> float | None:
        """Seconds for which a statement may go on at most when this process is gone; ``None`` where there is no bound.

        0 where the engine ends with the process.
        """
        ...

    def alive(self) -> bool:
        """Whether the engine answered lately; never waits."""
        ...

    def execute(self, sql: str, tag: str = "") -> None:
        """Run one statement to its end. Every commit it makes carries the session's stamp, its operation the tag.

        An ``EngineError`` that is ``unanswered`` says nothing of the statement: it may still run.
        """
        ...

    def overwrite(
        self,
        table: TableName,
        columns: Sequence[tuple[str, Mapping[str, Any]]],
        partitions: Sequence[str],
        tag: str = "",
    ) -> None:
        """Write the whole table again from itself, in one stamped commit: its columns in order, each with the metadata
        that it keeps, under these partition columns. ``table`` is a path, wherever the engine takes one.

        Raises ``EngineError`` where the table has other columns by now: a column that is not listed would be dropped.
        """
        ...

    def interrupt(self, tag: str, address: str = "") -> bool | None:
        """Asks the engine to end what carries a tag, here or, by its ``address``, in the session of a run that died.

        Whether something of it may still run; ``None`` where the engine cannot tell.
        """
        ...

    def row(self, sql: str) -> tuple[str | None, ...]:
        """The first row of a query, its values as texts."""
        ...

    def close(self) -> None:
        """Give the session back; harmless to call twice."""
        ...


class Catalog(Protocol):
    """Knows where named tables lie, by statements that read no table. Safe to use from several threads.

    All methods raise ``EngineError``, and ``LiveError`` for what does not exist.
    """

    def location(self, table: TableName) -> str:
        """As ``Engine.location``."""
        ...

    def schemas(self, catalog: str) -> tuple[str, ...]:
        """The schemas of a catalog, by one statement."""
        ...

    def tables(self, catalog: str, schema: str, like: str = "*") -> Mapping[TableName, str | TablectlError]:
        """Where each table of a schema lies, by one statement; ``LiveError`` for what is no Delta table.

        ``like`` narrows it: a ``SIMPLE_NAME``, ``*`` in it for any characters, ``|`` between several; letter case does
        not count.
        """
        ...
