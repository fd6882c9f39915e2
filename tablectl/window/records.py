"""Where the window's small records lie, and put-if-absent, the one primitive that the lease is built on."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import cache
from typing import Protocol
from urllib.parse import urlsplit

from obstore.exceptions import AlreadyExistsError, BaseError
from obstore.store import LocalStore, MemoryStore, ObjectStore, from_url

from tablectl.model.errors import WindowError
from tablectl.model.names import canonical_location, is_absolute

FOLDER = "_tablectl"
"""The directory inside a table. VACUUM and readers skip names that begin with ``_`` (window.md 5)."""

_BUCKETS = frozenset({"s3", "gs", "abfss", "az"})
_PLAIN_KEY = re.compile(r"[a-z0-9][a-z0-9_-]{0,99}")
_WAY_OUT = "check the path and the permissions, or set `state:` in tablectl.yaml to keep the records in another place"
_UNREACHABLE = "set `state:` in tablectl.yaml to a directory, or an s3, gs, abfss or az URI, to keep the records there"

# A renewal must fail well inside the ttl (60 s), so that it can be tried again: the library's own limit is 3 minutes.
# Only this is set: client options given here would switch off those of the environment (AWS_ALLOW_HTTP, proxies, …).
_TRIES, _TRYING = 3, timedelta(seconds=8)


class RecordStore(Protocol):
    """Named, small, immutable records in one place; ``str`` of a store names that place.

    Names are relative and use ``/``. Every method raises ``WindowError`` when the place cannot be reached, and a
    ``create`` that raised may still have happened. A record is whole as soon as it can be seen.
    """

    def create(self, name: str, data: bytes) -> bool:
        """Puts the record if the name is free: atomic across processes. False when the name is taken."""

    def read(self, name: str) -> bytes | None:
        """The record, None when there is none. Sees every earlier ``create``, of whatever process."""

    def names(self, prefix: str) -> tuple[str, ...]:
        """All names that begin with the prefix, sorted."""

    def delete(self, name: str) -> None:
        """Removes the record; fine if there is none."""


class ObjectRecords:
    """A ``RecordStore`` on a local disk, S3, GCS, Azure, or in memory, through obstore's create (window.md 1.5, 5)."""

    def __init__(self, store: ObjectStore, folder: str, place: str) -> None:
        self._store = store
        self._folder = folder
        self._place = place

    def __str__(self) -> str:
        return self._place

    def create(self, name: str, data: bytes) -> bool:
        """As ``RecordStore.create``; directories are made as needed."""
        with _told("write", f"{self._place}/{name}"):
            try:
                self._store.put(self._path(name), data, mode="create")
            except AlreadyExistsError:
                return False
            return True

    def read(self, name: str) -> bytes | None:
        """As ``RecordStore.read``."""
        with _told("read", f"{self._place}/{name}"):
            try:
                return bytes(self._store.get(self._path(name)).bytes())
            except FileNotFoundError:
                return None

    def names(self, prefix: str) -> tuple[str, ...]:
        """As ``RecordStore.names``."""
        # Object stores list by folder, whatever a half-written last part would match.
        folder = prefix.rpartition("/")[0]
        with _told("list", f"{self._place}/{folder}"):
            listed = self._store.list(self._path(folder)).collect()
        names = (entry["path"].removeprefix(self._path("")) for entry in listed)
        return tuple(sorted(name for name in names if name.startswith(prefix)))

    def delete(self, name: str) -> None:
        """As ``RecordStore.delete``."""
        with _told("delete", f"{self._place}/{name}"):
            try:
                self._store.delete(self._path(name))
            except FileNotFoundError:
                return

    def _path(self, name: str) -> str:
        return f"{self._folder}/{name}"


def open_records(location: str, state: str | None = None, key: str = "") -> RecordStore:
    """The records of the table at ``location``: in ``<location>/_tablectl``, or with ``state`` in ``<state>/<key>``.

    Places are absolute local paths, ``file:`` URIs, and s3, s3a, gs, abfss, az and memory URIs. They are taken
    literally: ``%20`` is three characters, as it is to Hadoop. ``key`` must be one form per table (window.md 5).
    Nothing is made on the way: a directory appears with its first record. Raises ``WindowError`` for any other place.
    """
    if state is None:
        return _open(location, FOLDER)
    if not key:
        raise ValueError("records under `state:` need the table's key")
    return _open(state, key_folder(key))


def key_folder(key: str) -> str:
    """One flat folder name per key: the key itself if it is plain, else its readable end and a digest of all of it.

    Flat, so that the records of a table inside another table's path are not among the other's; the digest also keeps
    two keys apart that a file system without case would mix up.
    """
    if _PLAIN_KEY.fullmatch(key):
        return key
    readable = re.sub(r"[^a-z0-9]+", "-", key.lower())[-40:].strip("-")
    return f"{readable or 'table'}-{hashlib.sha256(key.encode()).hexdigest()[:16]}"


def _open(base: str, folder: str) -> RecordStore:
    if not is_absolute(base):
        raise WindowError(f"the window's records cannot lie in {base!r}: the path is relative", _UNREACHABLE)
    place = canonical_location(base)
    if place.startswith("/"):
        return ObjectRecords(LocalStore(), f"{place}/{folder}".lstrip("/"), f"{place.rstrip('/')}/{folder}")
    split = urlsplit(place.replace("#", "%23").replace("?", "%3F"))
    if split.scheme == "memory":
        return ObjectRecords(_memory(place), folder, f"{place}/{folder}")
    if split.scheme not in _BUCKETS:
        raise WindowError(f"the window's records cannot lie in {place}: {split.scheme}: is out of reach", _UNREACHABLE)
    root = f"{split.scheme}://{split.netloc}"
    path = place.removeprefix(root).strip("/")
    return ObjectRecords(_bucket(root), f"{path}/{folder}".lstrip("/"), f"{place}/{folder}")


@cache
def _memory(_place: str) -> MemoryStore:
    """One store per place in a process: a lease in a store of one's own would lock nobody out."""
    return MemoryStore()


def _bucket(root: str) -> ObjectStore:
    # The URL carries no path: the library would decode %xx in it, which Hadoop does not.
    with _told("open", root):
        return from_url(root, retry_config={"max_retries": _TRIES, "retry_timeout": _TRYING})


@contextmanager
def _told(what: str, place: str) -> Iterator[None]:
    """Every failure of the store as a ``WindowError`` that names the place and the way out."""
    try:
        yield
    except (BaseError, OSError, ValueError) as error:
        reason = next(iter(str(error).splitlines()), "") or type(error).__name__
        raise WindowError(f"cannot {what} the window's record {place}: {reason}", _WAY_OUT) from error
