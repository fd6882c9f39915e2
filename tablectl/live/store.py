"""Where logs lie: one table's ``_delta_log`` in any object store, behind three calls.

Every failure of a store leaves here as a ``LiveError`` that names the file.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar, cast
from urllib.parse import quote, urlsplit

import obstore
from obstore.exceptions import BaseError, NotFoundError, PermissionDeniedError, UnauthenticatedError
from obstore.store import LocalStore, MemoryStore, ObjectStore, from_url

from tablectl.model.errors import LiveError
from tablectl.model.names import canonical_location

LOG = "_delta_log"
CHUNK = 1 << 20
LINE_LIMIT = 64 << 20
"""Bytes of one line or of one file read whole. Delta's own limits are lower (a JVM string holds 2 GiB of UTF-16)."""

_FAMILIES = {"s3": "s3", "gs": "gs", "az": "az", "azure": "az", "adl": "az", "abfs": "az", "abfss": "az", "wasb": "az"}
_RETRY = {"max_retries": 3, "retry_timeout": timedelta(seconds=30)}
"""obstore's default goes on for three minutes, which a person takes for a hang."""
_Result = TypeVar("_Result")


class VanishedError(LiveError):
    """A listed file was gone when it was opened: someone cleans the log. A fresh listing helps."""


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """How stores are reached. Credentials that are not named here come from each cloud's standard chain."""

    config: Mapping[str, Mapping[str, str]] = field(default_factory=lambda: MappingProxyType({}))
    """obstore's configuration per kind of store: ``{"s3": {"endpoint": …, "region": …}, "gs": …, "az": …}``."""
    client: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    """obstore's options of the HTTP client, such as ``allow_http`` and ``timeout``."""
    memory: MemoryStore | None = None
    """What ``memory:`` locations mean."""


class Stores:
    """One store per bucket, shared by all its tables: connections and credentials are set up once."""

    def __init__(self, options: StoreOptions) -> None:
        self._options = options
        self._buckets: dict[str, ObjectStore] = {}
        self._lock = threading.Lock()

    def open(self, location: str) -> TableLog:
        """The log of the table at a location. Raises ``LiveError`` where no store can be made of it."""
        try:
            place = canonical_location(location)
            if "://" not in place:
                return TableLog(_local(place), "", place, location_exists=True)
            split = urlsplit(place.replace("#", "%23").replace("?", "%3F"))
        except ValueError as error:
            raise LiveError(f"{location!r} is no location: {error}") from error
        prefix = split.path.replace("%23", "#").replace("%3F", "?").strip("/")
        return TableLog(
            self._bucket(split.scheme, f"{split.scheme}://{quote(split.netloc, safe='@.:-_')}"), prefix, place
        )

    def _bucket(self, scheme: str, root: str) -> ObjectStore:
        with self._lock:
            if root not in self._buckets:
                self._buckets[root] = _remote(scheme, root, self._options)
            return self._buckets[root]


def is_local(location: str) -> bool:
    """Whether a location is on this machine's file system."""
    return location.startswith("/") or location[:5].lower() == "file:"


def _local(path: str) -> ObjectStore:
    if not path.startswith("/"):
        raise LiveError(f"{path!r} is a relative path", "write it from the root, or as a URI")
    if not Path(path).is_dir():
        raise LiveError(f"{path}: no such directory")
    try:
        return LocalStore(path)
    except (BaseError, OSError, ValueError) as error:
        raise LiveError(f"{path}: cannot be opened: {_first_line(error)}") from error


def _remote(scheme: str, root: str, options: StoreOptions) -> ObjectStore:
    if scheme == "memory":
        if options.memory is None:
            raise LiveError("memory: locations exist only where a test gives their store")
        return options.memory
    family = _FAMILIES.get(scheme)
    if family is None:
        raise LiveError(f"{root}: unknown kind of store {scheme!r}", "known are local paths, s3, gs, az and abfss")
    try:
        store = from_url(
            root,
            config=cast("Any", dict(options.config.get(family, {}))),
            client_options=cast("Any", dict(options.client)),
            retry_config=cast("Any", _RETRY),
        )
    except (BaseError, OSError, ValueError, TypeError) as error:
        raise LiveError(f"{root}: cannot be opened: {_first_line(error)}", f"check the {family} options") from error
    return store


class TableLog:
    """One table's ``_delta_log``. Names are relative to it; the store is never written."""

    def __init__(self, store: ObjectStore, prefix: str, location: str, *, location_exists: bool = False) -> None:
        self.location = location
        self.location_exists = location_exists
        self._store = store
        self._root = f"{prefix}/{LOG}" if prefix else LOG

    def file(self, name: str) -> str:
        """A file as messages name it."""
        return f"{self.location}/{LOG}/{name}"

    def names(self, after: str = "") -> list[str]:
        """The files, in no order, with the one listing that every store has; ``after`` is left out itself."""
        skip = len(self._root) + 1
        offset = f"{self._root}/{after}" if after else None
        with self._translated(""):
            pages = obstore.list(self._store, self._root, offset=offset)
            return [meta["path"][skip:] for page in pages for meta in page]

    def exists(self) -> bool:
        """Whether the table has a log directory. Only a local one can exist empty."""
        return self.location_exists and (Path(self.location) / LOG).is_dir()

    def read(self, name: str) -> bytes:
        """A small file whole."""
        return self._get(name, _whole)

    def lines(self, name: str) -> Iterator[bytes]:
        """The lines of a file of any size, without their ends; memory is bounded by the longest line."""
        rest = b""
        with self._translated(name):
            result = obstore.get(self._store, f"{self._root}/{name}")
            if result.meta["size"] <= CHUNK:
                yield from bytes(result.bytes()).split(b"\n")
                return
            for chunk in result.stream(min_chunk_size=CHUNK):
                *complete, rest = (rest + bytes(chunk)).split(b"\n")
                yield from complete
                if len(rest) > LINE_LIMIT:
                    raise LiveError(f"{self.file(name)}: a line is longer than {LINE_LIMIT >> 20} MiB")
            if rest:
                yield rest

    def open(self, name: str) -> RangeFile:
        """A seekable file for a Parquet reader, which asks for the ranges it needs."""
        return self._get(name, lambda store, path: RangeFile(store, path, obstore.head(store, path)["size"]))

    def _get(self, name: str, take: Callable[[ObjectStore, str], _Result]) -> _Result:
        with self._translated(name):
            return take(self._store, f"{self._root}/{name}")

    @contextmanager
    def _translated(self, name: str) -> Iterator[None]:
        try:
            yield
        except (NotFoundError, FileNotFoundError) as error:
            raise VanishedError(f"{self.file(name)}: listed, but gone when it was opened") from error
        except (PermissionError, PermissionDeniedError, UnauthenticatedError) as error:
            message = f"{self.file(name)}: permission denied: {_first_line(error)}"
            raise LiveError(message, "the reader needs to list and to get objects below the table") from error
        except (BaseError, OSError, ValueError) as error:
            raise LiveError(f"{self.file(name)}: cannot be read: {_first_line(error)}") from error


class RangeFile(io.RawIOBase):
    """A stored file of which only the ranges that are read are fetched."""

    def __init__(self, store: ObjectStore, path: str, size: int) -> None:
        super().__init__()
        self._store = store
        self._path = path
        self._size = size
        self._at = 0

    def seekable(self) -> bool:
        """Always."""
        return True

    def readable(self) -> bool:
        """Always."""
        return True

    def tell(self) -> int:
        """Where the next read begins."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """As files do."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(start + offset, 0)
        return self._at

    def read(self, size: int = -1, /) -> bytes:
        """One request per call."""
        left = max(self._size - self._at, 0)
        size = left if size < 0 else min(size, left)
        if size == 0:
            return b""
        data = bytes(obstore.get_range(self._store, self._path, start=self._at, length=size))
        self._at += len(data)
        return data


def _whole(store: ObjectStore, path: str) -> bytes:
    result = obstore.get(store, path)
    if result.meta["size"] > LINE_LIMIT:
        raise OSError(f"larger than {LINE_LIMIT >> 20} MiB")
    return bytes(result.bytes())


def _first_line(error: Exception) -> str:
    """Only the first line: obstore appends its own debug output below it."""
    return (str(error).splitlines() or [type(error).__name__])[0]
