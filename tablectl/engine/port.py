"""The one small protocol through which statements reach an engine."""

from __future__ import annotations

from typing import Protocol

from tablectl.model.names import TableName


class Engine(Protocol):
    """Runs SQL in a session of its own. Safe to use from several threads.

    Both methods raise ``EngineError`` with the engine's own error class where it gives one.
    """

    @property
    def dialect(self) -> str:
        """``oss`` or ``databricks``: whose SQL it takes."""
        ...

    def location(self, table: TableName) -> str:
        """Where a catalog table lies, by one cheap statement. ``LiveError`` where there is no such Delta table."""
        ...

    def execute(self, sql: str) -> None:
        """Run one statement to its end. Every commit it makes carries the session's stamp."""
        ...

    def close(self) -> None:
        """Give the session back; harmless to call twice."""
        ...
