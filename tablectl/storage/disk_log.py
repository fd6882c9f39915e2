"""Logs on the local file system, read with Python's own calls: obstore's threads cost ten times what the disk does.

obstore's threads are also missing in a forked process, which would then wait for them forever.
"""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from difflib import get_close_matches
from itertools import islice
from typing import TypeVar

from tablectl.delta.names import LOG
from tablectl.model.errors import LiveError, MissingError
from tablectl.storage.folders import Folder, LinkError, refused_link
from tablectl.storage.read_budget import OversizeError, ReadBudget
from tablectl.storage.table_log import DENIED, LINE_BYTES, STAGED, DataFile, FirstNames, VanishedError, counts, is_data
from tablectl.support.files import TooLargeError

_BUFFER = 1 << 16
_DELTAS = ("_", *"0123456789")
"""How names of a log begin: versions, ``_last_checkpoint``, ``_sidecars``, ``_staged_commits``."""
_COMPARED = 500
"""How many entries of a folder are compared with a name that it does not have."""
_Result = TypeVar("_Result")
_Item = TypeVar("_Item")


def _meant(location: str) -> str:
    """The folder that is probably meant by one that does not exist; empty if none is near."""
    above, name = os.path.split(location.rstrip("/"))
    while above and above != "/" and not os.path.isdir(above):  # noqa: PTH112  # as in `identity`
        above, name = os.path.split(above)
    try:
        with os.scandir(above) as entries:
            near = get_close_matches(name, [each.name for each in islice(entries, _COMPARED)], n=1)
    except (OSError, ValueError):
        return ""
    return f"did you mean {above}/{near[0]}?" if near else ""


class DiskLog:
    """A ``TableLog`` in a directory. Only files are listed. A link is an error if its name can be one of Delta's: a
    commit that is left out would be an older version of the table.
    """

    def __init__(self, location: str, folder: str = LOG) -> None:
        self.location = location
        self._below = folder
        self._path = f"{location}/{folder}".rstrip("/")
        self._folder: Folder | None = None
        """The directory that was listed last, so that what is read is what was listed."""
        self.budget = ReadBudget(location)
        self._unchecked: list[str] = []

    @property
    def parallel(self) -> bool:
        """Always false: the disk answers faster than threads can switch."""
        return False

    def file(self, name: str) -> str:
        return f"{self._path}/{name}"

    def names(self, after: str = "") -> list[str]:
        self._folder = None
        names, folders = self._listed("")
        for folder in folders.intersection(STAGED):
            names += [f"{folder}/{name}" for name in self._listed(folder)[0]]
        return [name for name in names if name > after]

    def _listed(self, below: str) -> tuple[list[str], set[str]]:
        """The files and the directories in a directory of the log."""
        names, folders = list[str](), set[str]()
        try:
            folder = self._opened().below(below) if below else self._opened()
            with folder.entries() as entries:
                for entry in entries:
                    if entry.is_file(follow_symlinks=False):
                        if ".checkpoint." not in entry.name or counts(entry.name, _size(entry)):
                            names.append(entry.name)
                    elif entry.is_dir(follow_symlinks=False):
                        folders.add(entry.name)
                    elif entry.is_symlink() and entry.name.startswith(_DELTAS):
                        raise LinkError(self.file(f"{below}/{entry.name}".lstrip("/")), folder.target(entry.name))
        except (FileNotFoundError, NotADirectoryError):
            pass
        except (OSError, ValueError) as error:
            raise self._explained(error, below) from error
        return names, folders

    def _opened(self) -> Folder:
        """The log's directory. Raises ``OSError`` and ``ValueError``."""
        folder = self._folder
        if folder is None:
            table = Folder.at(self.location)
            folder = self._folder = table.below(self._below) if self._below else table
        return folder

    def _place(self, name: str) -> tuple[Folder, str]:
        """The directory of a file, and its name there. Raises as ``_opened``."""
        folder, (*above, file) = self._opened(), name.split("/")
        for each in above:
            folder = folder.below(each)
        return folder, file

    def first_names(self) -> FirstNames:
        """As ``TableLog.first_names``. A directory is listed whole in any case."""
        return FirstNames(tuple(self.names()))

    def check_sizes(self, names: Iterable[str]) -> None:
        """As ``TableLog.check_sizes``, but raises when the first large file is read. The size of a small one costs as
        much as its contents, and each is counted when it is read.
        """
        self._unchecked = list(names)

    def _check_sizes(self) -> None:
        sizes = dict[str, int]()
        for name in self._unchecked:
            with suppress(OSError, ValueError):
                folder, file = self._place(name)
                sizes[name] = folder.stat(file).st_size
        self._unchecked.clear()
        self.budget.check(sizes)

    def size(self, name: str) -> int | None:
        """Always ``None``: a listing of a directory has no sizes."""
        return None

    def identity(self, name: str) -> str:
        try:
            folder, file = self._place(name)
            found = folder.stat(file)
        except (OSError, ValueError):
            return ""
        return f"{found.st_size}/{found.st_mtime_ns}/{found.st_ino}"

    def exists(self) -> bool:
        """As ``TableLog.exists``. Raises ``MissingError`` if the location does not exist."""
        try:
            table = Folder.at(self.location)
        except (FileNotFoundError, NotADirectoryError, ValueError) as error:
            raise MissingError(f"{self.location}: no such directory", _meant(self.location)) from error
        except OSError as error:
            raise self._explained(error, "") from error
        try:
            if self._below:
                table.below(self._below)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise self._explained(error, "") from error
        return True

    def read(self, name: str, limit: int = LINE_BYTES) -> bytes:
        try:
            folder, file = self._place(name)
            return folder.read(file, limit)
        except (OSError, ValueError) as error:
            raise self._explained(error, name) from error

    def lines(self, name: str) -> Generator[bytes, None, None]:
        small = self._small(name)
        if small is not None:
            yield from small.removesuffix(b"\n").split(b"\n") if small else ()
            return
        try:
            self._check_sizes()
            folder, last = self._place(name)
            with io.BufferedReader(folder.open(last), _BUFFER) as file:
                self.budget.take_file(name, os.fstat(file.fileno()).st_size)
                while line := file.readline(LINE_BYTES + 1):
                    if len(line) > LINE_BYTES:
                        raise OversizeError(f"{self.file(name)}: a line is longer than {LINE_BYTES >> 20} MiB")
                    yield line.removesuffix(b"\n")
        except (OSError, ValueError) as error:
            raise self._explained(error, name) from error

    def _small(self, name: str) -> bytes | None:
        """The contents of a file that fits into the buffer, as most commits do; ``None`` for a larger one."""
        try:
            folder, file = self._place(name)
            found = folder.read(file, _BUFFER)
        except TooLargeError:
            return None
        except (OSError, ValueError) as error:
            raise self._explained(error, name) from error
        self.budget.take_file(name, len(found))
        return found

    def open(self, name: str) -> io.BufferedReader:
        try:
            folder, file = self._place(name)
            return io.BufferedReader(folder.open(file), _BUFFER)
        except (OSError, ValueError) as error:
            raise self._explained(error, name) from error

    def start(self, call: Callable[[], _Result]) -> Future[_Result] | None:
        """Always ``None``: the disk answers faster than threads can switch."""
        return None

    def each(self, call: Callable[[_Item], _Result], items: Iterable[_Item]) -> Iterator[_Result]:
        """Sequential, because threads gain nothing here (see ``start``)."""
        return map(call, items)

    def _explained(self, error: OSError | ValueError, name: str) -> LiveError:
        """The error for a file that cannot be read."""
        file = self.file(name)
        if isinstance(error, LinkError):
            return refused_link(error, self.location)
        if isinstance(error, (FileNotFoundError, NotADirectoryError)):
            return VanishedError(f"{file}: listed, but gone when it was opened")
        if isinstance(error, TooLargeError):
            return OversizeError(f"{file}: cannot be read: {_reason(error)}")
        return LiveError(
            f"{file}: cannot be read: {_reason(error)}", DENIED if isinstance(error, PermissionError) else ""
        )


def _size(entry: os.DirEntry[str]) -> int:
    """The size of a file; 0 for one that is gone since the directory was read."""
    try:
        return entry.stat(follow_symlinks=False).st_size
    except FileNotFoundError:
        return 0


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def free_bytes(location: str) -> int | None:
    """The free bytes on the disk of a local path; ``None`` if unknown."""
    try:
        return shutil.disk_usage(location).free
    except (OSError, ValueError):
        return None


def each_data_file(log: DiskLog) -> Iterator[DataFile]:
    """The Parquet files below a table on a disk. Links are not followed. Raises ``LiveError``."""
    log.exists()  # raises for a location that does not exist
    return _walk(log.location)


def _walk(location: str) -> Iterator[DataFile]:
    waiting = [""]
    while waiting:
        below = waiting.pop()
        try:
            folder = Folder.at(location)
            for name in below.split("/")[:-1]:
                folder = folder.below(name)
            with folder.entries() as entries:
                for entry in entries:
                    path = below + entry.name
                    if entry.is_dir(follow_symlinks=False) and is_data(f"{path}/any.parquet"):
                        waiting.append(f"{path}/")
                    elif is_data(path) and entry.is_file(follow_symlinks=False):
                        with suppress(FileNotFoundError):  # removed since it was listed
                            status = entry.stat(follow_symlinks=False)
                            yield DataFile(path, status.st_size, status.st_mtime)
        except LinkError as error:
            raise refused_link(error, location) from error
        except FileNotFoundError:  # as above
            continue
        except OSError as error:
            raise LiveError(f"{location}/{below}: cannot be listed: {error.strerror}", DENIED) from error
