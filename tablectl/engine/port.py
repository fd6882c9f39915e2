"""The small protocols through which an engine is reached: what runs statements, and what knows tables by name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from tablectl.model.errors import TablectlError
from tablectl.model.names import TableName

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

    def log_store(self, scheme: str) -> str:
        """The class of Delta's log store that is set for a scheme (``s3a``, ``file``, …); empty for Delta's default."""
        ...

    def location(self, table: TableName) -> str:
        """Where a catalog table lies, by one cheap statement. ``LiveError`` where there is no such Delta table."""
        ...

    def execute(self, sql: str) -> None:
        """Run one statement to its end. Every commit it makes carries the session's stamp."""
        ...

    def overwrite(
        self, table: TableName, columns: Sequence[tuple[str, Mapping[str, Any]]], partitions: Sequence[str]
    ) -> None:
        """Write the whole table anew from itself, in one stamped commit: its columns in order, each with the metadata
        that it shall keep, under these partition columns.
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
