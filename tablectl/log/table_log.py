"""What the reader asks of a table's log, wherever it lies."""

from __future__ import annotations

import io
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future
from typing import Protocol, TypeVar

from tablectl.log.budget import LINE_BYTES
from tablectl.model.errors import LiveError

AHEAD = 32
"""Commits of one table that are read side by side."""
DENIED = "the reader needs to list and to get objects below the table"

_Result = TypeVar("_Result")
_Item = TypeVar("_Item")


class VanishedError(LiveError):
    """A listed file was gone when it was opened: someone cleans the log. A fresh listing helps."""


class OversizeError(LiveError):
    """A file of the log is larger than tablectl reads."""


class TableLog(Protocol):
    """One table's ``_delta_log``, read only. Names are relative to it; failures are a ``LiveError`` with the file."""

    @property
    def location(self) -> str:
        """Where the table lies, in its canonical form."""
        ...

    def file(self, name: str) -> str:
        """A file as messages name it."""
        ...

    def names(self, after: str = "") -> list[str]:
        """The files that sort behind ``after``, in no order; those in folders may be left out where no commit is."""
        ...

    def exists(self) -> bool:
        """Whether the table has a log directory. Only a local one can exist empty."""
        ...

    def read(self, name: str, limit: int = LINE_BYTES) -> bytes:
        """A small file whole. Raises ``OversizeError`` where it has more bytes than the limit."""
        ...

    def lines(self, name: str) -> Generator[bytes, None, None]:
        """The lines of a file of any size, without their ends; none may be longer than ``LINE_BYTES``.

        Close it before another file is read: a store reads one large file of a table at a time.
        """
        ...

    def open(self, name: str) -> io.RawIOBase | io.BufferedIOBase:
        """A seekable file for a Parquet reader, which asks for the ranges it needs."""
        ...

    def start(self, call: Callable[[], _Result]) -> Future[_Result] | None:
        """Run a reading of this log beside others; ``None`` where that gains nothing, and nothing was started."""
        ...

    def each(self, call: Callable[[_Item], _Result], items: Iterable[_Item]) -> Iterator[_Result]:
        """The result for each item, in order, the next few being read meanwhile where that gains anything."""
        ...
