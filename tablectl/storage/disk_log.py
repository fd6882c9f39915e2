"""Logs on the local file system, read with Python's own calls: obstore's threads cost ten times what the disk does.

obstore's threads are also missing in a forked process, which would then wait for them forever.
"""

from __future__ import annotations

import io
import os
import shutil
import stat
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import TypeVar

from tablectl.delta.layout import LOG
from tablectl.files import TooLargeError, open_regular, read_regular
from tablectl.model.errors import LiveError
from tablectl.storage.read_budget import OversizeError, ReadBudget
from tablectl.storage.table_log import DENIED, LINE_BYTES, STAGED, VanishedError

_BUFFER = 1 << 16
_Result = TypeVar("_Result")
_Item = TypeVar("_Item")


class DiskLog:
    """A ``TableLog`` in a directory. Links are followed. Only files are listed."""

    def __init__(self, location: str, folder: str = LOG) -> None:
        """Raises ``LiveError`` if the location does not exist."""
        self.location = location
        self._folder = f"{location}/{folder}".rstrip("/")
        self.budget = ReadBudget(location)
        if not self._is_folder(location):
            raise LiveError(f"{location}: no such directory")

    @property
    def parallel(self) -> bool:
        """Always false: the disk answers faster than threads can switch."""
        return False

    def file(self, name: str) -> str:
        """As ``TableLog.file``."""
        return f"{self._folder}/{name}"

    def names(self, after: str = "") -> list[str]:
        """As ``TableLog.names``."""
        names, folders = self._listed("")
        for folder in folders.intersection(STAGED):
            names += [f"{folder}/{name}" for name in self._listed(folder)[0]]
        return [name for name in names if name > after]

    def _listed(self, folder: str) -> tuple[list[str], set[str]]:
        """The files and the directories in a directory of the log."""
        names, folders = list[str](), set[str]()
        try:
            with self._explained_errors(folder), os.scandir(self.file(folder)) as entries:
                for entry in entries:
                    if entry.is_file():
                        names.append(entry.name)
                    elif entry.is_dir():
                        folders.add(entry.name)
        except VanishedError:
            pass
        return names, folders

    def few_names(self) -> list[str]:
        """As ``TableLog.few_names``. A directory is listed whole in any case."""
        return self.names()

    def check_sizes(self, names: Iterable[str]) -> None:
        """As ``TableLog.check_sizes``."""
        sizes = dict[str, int]()
        for name in names:
            with suppress(OSError, ValueError):
                sizes[name] = os.stat(self.file(name)).st_size  # noqa: PTH116  # as in `identity`
        self.budget.check(sizes)

    def identity(self, name: str) -> str:
        """As ``TableLog.identity``."""
        try:
            found = os.stat(self.file(name))  # noqa: PTH116  # for each table; a Path costs as much as the call
        except (OSError, ValueError):
            return ""
        return f"{found.st_size}/{found.st_mtime_ns}/{found.st_ino}"

    def exists(self) -> bool:
        """As ``TableLog.exists``."""
        return self._is_folder(self.file(""))

    def _is_folder(self, path: str) -> bool:
        try:
            return stat.S_ISDIR(os.stat(path).st_mode)  # noqa: PTH116  # as in `identity`
        except (FileNotFoundError, NotADirectoryError, ValueError):
            return False
        except PermissionError as error:
            raise LiveError(f"{path}: cannot be read: {_reason(error)}", DENIED) from error
        except OSError as error:
            raise LiveError(f"{path}: cannot be read: {_reason(error)}") from error

    def read(self, name: str, limit: int = LINE_BYTES) -> bytes:
        """As ``TableLog.read``."""
        with self._explained_errors(name):
            return read_regular(self.file(name), limit)

    def lines(self, name: str) -> Generator[bytes, None, None]:
        """As ``TableLog.lines``."""
        with self._explained_errors(name), io.BufferedReader(open_regular(self.file(name)), _BUFFER) as file:
            self.budget.take_file(name, os.fstat(file.fileno()).st_size)
            while line := file.readline(LINE_BYTES + 1):
                if len(line) > LINE_BYTES:
                    raise OversizeError(f"{self.file(name)}: a line is longer than {LINE_BYTES >> 20} MiB")
                yield line.removesuffix(b"\n")

    def open(self, name: str) -> io.BufferedReader:
        """As ``TableLog.open``."""
        with self._explained_errors(name):
            return io.BufferedReader(open_regular(self.file(name)), _BUFFER)

    def start(self, call: Callable[[], _Result]) -> Future[_Result] | None:
        """Always ``None``: the disk answers faster than threads can switch."""
        return None

    def each(self, call: Callable[[_Item], _Result], items: Iterable[_Item]) -> Iterator[_Result]:
        """Sequential, because threads gain nothing here (see ``start``)."""
        return map(call, items)

    @contextmanager
    def _explained_errors(self, name: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError as error:
            raise VanishedError(f"{self.file(name)}: listed, but gone when it was opened") from error
        except PermissionError as error:
            raise LiveError(f"{self.file(name)}: cannot be read: {_reason(error)}", DENIED) from error
        except TooLargeError as error:
            raise OversizeError(f"{self.file(name)}: cannot be read: {_reason(error)}") from error
        except (OSError, ValueError) as error:
            raise LiveError(f"{self.file(name)}: cannot be read: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def free_bytes(location: str) -> int | None:
    """The free bytes on the disk of a local path; ``None`` if unknown."""
    try:
        return shutil.disk_usage(location).free
    except (OSError, ValueError):
        return None
