"""Logs in object stores, behind the interface ``TableLog``. Import this module only for them: obstore takes as long to
load as to read a hundred tables.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

import obstore
from obstore.exceptions import BaseError, NotFoundError, PermissionDeniedError, PreconditionError
from obstore.store import ObjectStore

from tablectl.delta.names import LOG
from tablectl.model.errors import LiveError
from tablectl.storage.failures import Failure, explain
from tablectl.storage.read_budget import OversizeError, ReadBudget
from tablectl.storage.table_log import (
    DENIED,
    LINE_BYTES,
    PAGE,
    DataFile,
    FirstNames,
    RangeFile,
    VanishedError,
    counts,
    is_data,
)
from tablectl.support.files import size_text

if TYPE_CHECKING:  # obstore has these types for checkers alone
    from obstore import GetOptions, ObjectMeta

_CHUNK = 1 << 20
_FEW = 8
"""The number of files of one table that are read in parallel when each can be large."""
_BLOCK = 1 << 16
"""The minimum number of bytes to fetch: a Parquet reader requests many small adjacent ranges."""
_Result = TypeVar("_Result")
_Item = TypeVar("_Item")


class LogBucket:
    """One store, shared by all its tables. After a lasting failure, further requests fail at once."""

    def __init__(self, store: ObjectStore, family: str, pool: ThreadPoolExecutor) -> None:
        self.store = store
        self.family = family
        self.pool = pool
        """Runs requests in parallel."""
        self.failure: Failure | None = None


class ObjectLog:
    """A ``TableLog`` in an object store."""

    def __init__(self, bucket: LogBucket, prefix: str, location: str, folder: str = LOG) -> None:
        self.location = location
        self._folder = folder
        self._bucket = bucket
        self._store = bucket.store
        self._prefix = prefix
        self._root = "/".join(filter(None, (prefix, folder)))
        self.budget = ReadBudget(location)
        self._listed: dict[str, ObjectMeta] = {}
        """The listed files."""
        self._large = threading.Lock()
        """Held while a large file is read: thirty commits are prefetched, and each can have a line of many MiB."""

    @property
    def parallel(self) -> bool:
        """Always true."""
        return True

    def file(self, name: str) -> str:
        return "/".join((self.location, *filter(None, (self._folder, name))))

    def names(self, after: str = "") -> list[str]:
        """As ``TableLog.names``, with the one listing that every store supports."""
        offset = f"{self._root}/{after}" if after else None
        with self._translated(""):
            pages = obstore.list(self._store, self._root, offset=offset, chunk_size=PAGE)
            return self._kept(meta for page in pages for meta in page)

    def first_names(self) -> FirstNames:
        with self._translated(""):
            page = next(iter(obstore.list(self._store, self._root, chunk_size=PAGE)), ())
            names = self._kept(page)
        if len(page) < PAGE:
            return FirstNames(tuple(names))
        # Directory buckets of S3 list in no order, so their page says nothing about the others.
        paths = [meta["path"] for meta in page]
        last = paths[-1][len(self._root) + 1 :]
        return FirstNames(tuple(names), last) if paths == sorted(paths) else FirstNames((), "")

    def _kept(self, listed: Iterable[ObjectMeta]) -> list[str]:
        """The names of listed files, whose sizes are kept."""
        skip = len(self._root) + 1
        found = {name: meta for meta in listed if counts(name := meta["path"][skip:], meta["size"])}
        self._listed |= found
        return list(found)

    def check_sizes(self, names: Iterable[str]) -> None:
        """As ``TableLog.check_sizes``, from the last listing."""
        self.budget.check({name: self._listed[name]["size"] for name in names if name in self._listed})

    def size(self, name: str) -> int | None:
        meta = self._listed.get(name)
        return None if meta is None else meta["size"]

    def identity(self, name: str) -> str:
        meta = self._listed.get(name)
        return "" if meta is None else f"{meta['e_tag'] or ''}/{meta['size']}/{meta['last_modified'].isoformat()}"

    def exists(self) -> bool:
        """Always false: object stores have no directories."""
        return False

    def begun(self) -> bool:
        """Whether this is a table, even if its log is damaged. One request."""
        with self._translated(""):
            return any(page for page in obstore.list(self._store, self._root))

    def folders(self) -> list[str]:
        """The names of the directories next to the log, unordered. The cost is a listing of these directories."""
        with self._translated(""):
            found = obstore.list_with_delimiter(self._store, self._prefix or None)["common_prefixes"]
            return [path.rpartition("/")[2] for path in found]

    def each_data_file(self) -> Iterator[DataFile]:
        skip = len(self._prefix) + 1 if self._prefix else 0
        with self._translated(""):
            for page in obstore.list(self._store, self._prefix or None):
                for meta in page:
                    if is_data(meta["path"][skip:]):
                        yield DataFile(meta["path"][skip:], meta["size"], meta["last_modified"].timestamp())

    def read(self, name: str, limit: int = LINE_BYTES) -> bytes:
        with self._translated(name):
            result = obstore.get(self._store, f"{self._root}/{name}")
            if result.meta["size"] > limit:
                raise OversizeError(f"{self.file(name)}: cannot be read: larger than {size_text(limit)}")
            return bytes(result.bytes())

    def lines(self, name: str) -> Generator[bytes, None, None]:
        rest = b""
        with self._translated(name):
            result = obstore.get(self._store, f"{self._root}/{name}")
            self.budget.take_file(name, result.meta["size"])
            if result.meta["size"] <= _CHUNK:
                yield from bytes(result.bytes()).split(b"\n")
                return
            with self._large:
                for chunk in result.stream(min_chunk_size=_CHUNK):
                    *complete, rest = (rest + bytes(chunk)).split(b"\n")
                    yield from complete
                    if len(rest) > LINE_BYTES:
                        raise OversizeError(f"{self.file(name)}: a line is longer than {LINE_BYTES >> 20} MiB")
                if rest:
                    yield rest

    def open(self, name: str) -> RangeFile:

        def opened(store: ObjectStore, path: str) -> RangeFile:
            meta = self._listed.get(name) or obstore.head(store, path)
            blocks = _Blocks(store, path, meta["size"], meta["e_tag"])

            def fetch(start: int, size: int) -> bytes:
                with self._translated(name):
                    return blocks(start, size)

            return RangeFile(meta["size"], fetch)

        with self._translated(name):
            return opened(self._store, f"{self._root}/{name}")

    def start(self, call: Callable[[], _Result]) -> Future[_Result] | None:
        return self._bucket.pool.submit(call)

    def each(self, call: Callable[[_Item], _Result], items: Iterable[_Item]) -> Iterator[_Result]:
        running = deque[Future[_Result]]()
        try:
            for item in items:
                running.append(self._bucket.pool.submit(call, item))
                if len(running) == _FEW:
                    yield running.popleft().result()
            while running:
                yield running.popleft().result()
        finally:
            for future in running:
                future.cancel()

    @contextmanager
    def _translated(self, name: str) -> Iterator[None]:
        if self._bucket.failure is not None:
            raise self._error(name, self._bucket.failure)
        try:
            yield
        except PreconditionError as error:
            raise VanishedError(f"{self.file(name)}: replaced while it was read") from error
        except (NotFoundError, FileNotFoundError) as error:
            failure = explain(error, self._bucket.family)
            if failure.lasting:
                raise self._failed(name, failure) from error
            raise VanishedError(f"{self.file(name)}: listed, but gone when it was opened") from error
        except (PermissionError, PermissionDeniedError) as error:
            failure = explain(error, self._bucket.family)
            if not failure.lasting:
                failure = Failure(failure.reason, failure.hint or DENIED)
            raise self._failed(name, failure) from error
        except (BaseError, OSError, ValueError) as error:
            raise self._failed(name, explain(error, self._bucket.family)) from error

    def _failed(self, name: str, failure: Failure) -> LiveError:
        if failure.lasting:
            self._bucket.failure = failure
        return self._error(name, failure)

    def _error(self, name: str, failure: Failure) -> LiveError:
        return LiveError(f"{self.file(name)}: cannot be read: {failure.reason}", failure.hint)


class _Blocks:
    """Fetches ranges of a stored file: one request for each, or none if the last one fetched these bytes."""

    def __init__(self, store: ObjectStore, path: str, size: int, tag: str | None) -> None:
        self._store = store
        self._path = path
        self._size = size
        self._tag = tag
        """What the file must still be: its size may come from a listing, and writers may replace a checkpoint."""
        self._block = (0, b"")
        """The last fetched bytes and their start. The end of a small file, with its footer, is the whole file."""

    def __call__(self, start: int, size: int) -> bytes:
        first, block = self._block
        if not first <= start <= start + size <= first + len(block):
            first, length = start, min(max(size, _BLOCK), self._size - start)
            block = self._fetched(first, length)
            self._block = (first, block)
        return block[start - first : start - first + size]

    def _fetched(self, start: int, length: int) -> bytes:
        if self._tag is None:
            return bytes(obstore.get_range(self._store, self._path, start=start, length=length))
        options: GetOptions = {"range": (start, start + length), "if_match": self._tag}
        return bytes(obstore.get(self._store, self._path, options=options).bytes())
