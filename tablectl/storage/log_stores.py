"""Opens logs on a disk or in an object store, behind the interface ``TableLog``."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tablectl.delta.locations import canonical_location
from tablectl.delta.names import LOG
from tablectl.model.errors import LiveError
from tablectl.model.store_options import FAMILIES
from tablectl.storage.disk_log import DiskLog, each_data_file
from tablectl.storage.object_log import LogBucket, ObjectLog
from tablectl.storage.object_stores import BucketError, Provider, RetryLimits, StoreOptions, open_bucket
from tablectl.storage.table_log import DataFile, TableLog
from tablectl.support.compat import Self

if TYPE_CHECKING:  # most commands need none of them, and writers never the records that only catalogs make
    from obstore.store import ObjectStore

    from tablectl.model.catalog_answers import CatalogEntry, ManagedTable

_PATIENCE = RetryLimits(tries=5, seconds=30)
"""obstore's default retries for three minutes, which looks like a hang to users."""


class Stores:
    """One store per bucket, shared by all its tables: connections and credentials are set up once."""

    def __init__(self, options: StoreOptions) -> None:
        self._options = options
        self._buckets: dict[str, LogBucket] = {}
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def open(self, location: str, folder: str = LOG) -> TableLog:
        """The log of the table at a location, or another folder there, which is read in the same way. Raises
        ``LiveError`` if no store can be opened for it.
        """
        place = canonical_location(location)
        return self.open_object(place, folder) if "://" in place else _local(place, folder)

    def open_object(self, location: str, folder: str = LOG) -> ObjectLog:
        """The log of the table at a location in an object store. Raises as ``open``."""
        place = canonical_location(location)
        try:
            split = urlsplit(place.replace("#", "%23").replace("?", "%3F"))
        except ValueError as error:
            raise LiveError(f"{location!r} is not a location: {error}") from error
        prefix = split.path.replace("%23", "#").replace("%3F", "?").strip("/")
        return ObjectLog(self._bucket(split.scheme, split.netloc, place), prefix, place, folder)

    def data_files(self, location: str, most: int) -> list[DataFile]:
        """The Parquet files below a table, at most ``most``, unordered: a listing of the whole table. Raises
        ``LiveError``.
        """
        return list(islice(self.each_data_file(location), most))

    def each_data_file(self, location: str) -> Iterator[DataFile]:
        """The Parquet files below a table, however many: a page of the listing at a time. Raises ``LiveError``."""
        place = canonical_location(location)
        return self.open_object(place).each_data_file() if "://" in place else each_data_file(_local(place))

    def managed(self, location: str) -> ManagedTable | None:
        """The catalog's newest answer about a table whose commits go through it. Raises ``LiveError``."""
        return self._options.access.managed(location) if self._options.access else None

    def entry(self, location: str) -> CatalogEntry | None:
        """What the table's catalog says about it besides its state. Raises ``LiveError``."""
        return self._options.access.entry(location) if self._options.access else None

    def _bucket(self, scheme: str, authority: str, place: str) -> LogBucket:
        root, provider = f"{scheme}://{authority}", None
        if self._options.access is not None and (provider := self._options.access.provider(place)) is not None:
            root = place  # a catalog's credentials open one table alone
        with self._lock:
            if root not in self._buckets:
                store = self._memory() if scheme == "memory" else _remote(scheme, authority, self._options, provider)
                self._pool = self._pool or ThreadPoolExecutor(
                    self._options.concurrency, thread_name_prefix="tablectl-live"
                )
                self._buckets[root] = LogBucket(store, FAMILIES.get(scheme, ""), self._pool)
            return self._buckets[root]

    def _memory(self) -> ObjectStore:
        if self._options.memory is None:
            raise LiveError("memory: locations exist only where a test gives their store")
        return self._options.memory


def _local(path: str, folder: str = LOG) -> DiskLog:
    if not path.startswith("/"):
        raise LiveError(f"{path!r} is a relative path", "write it from the root, or as a URI")
    return DiskLog(path, folder)


def _remote(scheme: str, authority: str, options: StoreOptions, provider: Provider | None) -> ObjectStore:
    try:
        return open_bucket(scheme, authority, options, _PATIENCE, provider)
    except BucketError as error:
        raise LiveError(f"{scheme}://{authority}: {error.failure.reason}", error.failure.hint) from error
