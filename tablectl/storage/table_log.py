"""The interface to a table's log, independent of its storage."""

from __future__ import annotations

import io
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Protocol, TypeVar

from tablectl.model.errors import LiveError
from tablectl.storage.read_budget import ReadBudget

LINE_BYTES = 16 << 20
"""The maximum size of one line of JSON, and of a file that is read whole."""
STAGED = ("_staged_commits", "_commits")
"""Directories of the log in which a catalog keeps commits that it has not published yet."""
AHEAD = 128
"""The number of commits of one table that are read in parallel."""
PAGE = 1000
"""The number of files that a store lists with one request."""
DENIED = "the reader needs to list and to get objects below the table"

_Result = TypeVar("_Result")
_Item = TypeVar("_Item")


class RangeFile(io.RawIOBase):
    """A file of which each read is one call of ``fetch`` with a start and a number of bytes, both inside the file."""

    def __init__(self, size: int, fetch: Callable[[int, int], bytes]) -> None:
        super().__init__()
        self.size = size
        self._fetch = fetch
        self._at = 0

    def seekable(self) -> bool:
        """Always true."""
        return True

    def readable(self) -> bool:
        """Always true."""
        return True

    def tell(self) -> int:
        """The position of the next read."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self.size}[whence]
        self._at = max(start + offset, 0)
        return self._at

    def read(self, size: int = -1, /) -> bytes:
        """As in ``io.RawIOBase``. Raises what ``fetch`` raises."""
        left = max(self.size - self._at, 0)
        size = left if size < 0 else min(size, left)
        data = self._fetch(self._at, size) if size else b""
        self._at += len(data)
        return data


class VanishedError(LiveError):
    """A listed file was gone when it was opened, because the log is being cleaned up. A new listing helps."""


@dataclass(frozen=True)
class FirstNames:
    """The first files of a log, unordered."""

    names: tuple[str, ...]
    last: str | None = None
    """The name after which all others sort; ``None`` if there are no others."""


@dataclass(frozen=True)
class DataFile:
    """A file in the folder of a table."""

    path: str
    """Relative to the table."""
    size: int
    modified: float
    """Seconds since the epoch, by the clock of the store."""


def counts(name: str, size: int) -> bool:
    """Whether a file in a listing of a log counts. A killed writer leaves empty checkpoints, and Delta leaves them out
    of its listings (``SnapshotManagement.listFromFileSystemInternal`` and ``Checkpoints.findLastCompleteCheckpoint``,
    Delta 4.4.0). An empty commit counts: it changes nothing.
    """
    return size > 0 or ".checkpoint." not in name


def is_data(path: str) -> bool:
    """Whether a path below a table is that of a data file. Delta and Spark hide names that begin with _ or a dot; a
    partition folder such as ``_day=1`` is not hidden.
    """
    *folders, name = path.split("/")
    hidden = any(each.startswith(".") or (each.startswith("_") and "=" not in each) for each in folders)
    return not hidden and not name.startswith(("_", ".")) and name.endswith(".parquet")


class TableLog(Protocol):
    """One table's ``_delta_log``, read only. Names are relative to it. Failures raise ``LiveError`` with the file."""

    @property
    def location(self) -> str:
        """The table's location in canonical form."""
        ...

    @property
    def budget(self) -> ReadBudget:
        """What was read of this log, and may be."""
        ...

    @property
    def parallel(self) -> bool:
        """Whether reads in parallel gain anything."""
        ...

    def file(self, name: str) -> str:
        """A file's name for messages."""
        ...

    def names(self, after: str = "") -> list[str]:
        """The files that sort after ``after``, unordered, without empty checkpoints (``counts``). Files in
        subdirectories may be left out if they are not commits.
        """
        ...

    def first_names(self) -> FirstNames:
        """The files that one request lists."""
        ...

    def check_sizes(self, names: Iterable[str]) -> None:
        """Raises ``OversizeError`` if files whose lines will be read exceed the budget together, now or before a large
        one is read. Files of unknown size count when they are opened.
        """
        ...

    def size(self, name: str) -> int | None:
        """The size of a listed file in bytes; ``None`` if only the file itself tells."""
        ...

    def identity(self, name: str) -> str:
        """A text that differs for every content that a listed file can have had: of a disk its size, time and inode, of
        a store its tag. Empty if the file is unknown.
        """
        ...

    def exists(self) -> bool:
        """Whether the table has a log directory. Only a local directory can exist and be empty."""
        ...

    def read(self, name: str, limit: int = LINE_BYTES) -> bytes:
        """The contents of a small file. Raises ``OversizeError`` if it has more bytes than the limit."""
        ...

    def lines(self, name: str) -> Generator[bytes, None, None]:
        """The lines of a file of any size, without line ends, each at most ``LINE_BYTES`` long.

        Close the generator before reading another file: a store reads one large file of a table at a time.
        """
        ...

    def open(self, name: str) -> io.RawIOBase | io.BufferedIOBase:
        """A seekable file for a Parquet reader, which reads the ranges it needs."""
        ...

    def start(self, call: Callable[[], _Result]) -> Future[_Result] | None:
        """Runs a read of this log in parallel. ``None`` if that gains nothing; the read is then not started."""
        ...

    def each(self, call: Callable[[_Item], _Result], items: Iterable[_Item]) -> Iterator[_Result]:
        """The results for the items, in order. The next few items are read in parallel if that gains anything."""
        ...
