"""Stores the small records of the protected window, with put-if-absent, the only primitive that the lease is
built on.
"""

from __future__ import annotations

import errno
import hashlib
import io
import os
import re
import stat
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit
from uuid import uuid4

from obstore.exceptions import AlreadyExistsError, BaseError
from obstore.store import MemoryStore, ObjectStore

from tablectl.delta.locations import canonical_location, is_absolute
from tablectl.delta.names import LOG
from tablectl.model.errors import WindowError
from tablectl.model.store_options import FAMILIES, PREFIXES
from tablectl.storage.failures import ForeignRecordError, explain, missing_right
from tablectl.storage.folders import Folder, LinkError, link_hint
from tablectl.storage.mounts import network_mount
from tablectl.storage.object_stores import BucketError, Provider, RetryLimits, StoreOptions, open_bucket
from tablectl.support.files import NotRegularError, TooLargeError

if TYPE_CHECKING:
    from obstore import ObjectMeta

FOLDER = "_tablectl"
"""The directory inside a table. VACUUM and readers skip names that begin with ``_``."""

LARGEST = 1 << 18
"""The maximum size of a record in bytes. Ours have a few hundred. A larger one comes from another program and is not
read.
"""

_PLAIN_KEY = re.compile(r"[a-z0-9][a-z0-9_-]{0,99}")
_WAY_OUT = "check the path and the permissions, or set `state:` in tablectl.yaml to keep the records in another place"
_UNREACHABLE = "set `state:` in tablectl.yaml to a directory, or an s3, gs, abfss or az URI, to keep the records there"

_GUARDS = "guards"
_SUFFIX = ".json"
_PART = re.compile(r"[a-z]+")
_FILE = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]*")
_RECORD = re.compile(rf"{_PART.pattern}/{_FILE.pattern}")
"""The name of a record: a directory, and a name in it. Other names are those of others: they are neither listed nor
deleted.
"""
_ENVIRONMENT = (*PREFIXES.values(), "HOME")
_PATIENCE = RetryLimits(tries=3, seconds=8)
"""A renewal must fail well within the ttl (60 s), so that it can be retried. obstore's own limit is 3 minutes."""
_DEFAULT = StoreOptions()
_MOST_REMEMBERED = 256
"""For so many folders of a bucket, a process remembers the record that it read last."""


@dataclass(frozen=True)
class ListedRecord:
    """A record as a listing names it."""

    name: str
    version: str = ""
    """What the listing says about the content: ETag, size and time of the last change. Two listings that say the same
    mean the same bytes. Empty if the store does not tell, or if nothing is gained by knowing.
    """


class RecordStore(Protocol):
    """Named, small, immutable records in one place. ``str`` of a store names the place.

    Names are relative, a directory and a name in it: ``lease/1.json``. Every method raises ``WindowError`` if the place
    cannot be reached. A ``create`` that raised may still have taken effect. A record is complete as soon as it is
    visible.
    """

    def create(self, name: str, data: bytes) -> bool:
        """Writes the record if the name is free: atomic across processes. Returns false if the name is taken."""

    def read(self, name: str) -> bytes | None:
        """The record; ``None`` if there is none. Sees every earlier ``create`` of any process.

        Empty if it cannot be a record: larger than ``LARGEST``.
        """

    def names(self, prefix: str) -> tuple[str, ...]:
        """All names of records that begin with the prefix, sorted. Raises ``ForeignRecordError`` for a link among
        them.
        """

    def listed(self, prefix: str) -> tuple[ListedRecord, ...]:
        """The records whose names begin with the prefix, sorted by name."""

    def read_listed(self, record: ListedRecord) -> bytes | None:
        """As ``read``, for a record of a listing that was made just before. Makes no request for content that this
        process has read before under the same name and version.
        """

    def delete(self, name: str) -> None:
        """Removes the record. Does nothing if there is none."""


class DiskRecords:
    """A ``RecordStore`` on a local disk. A record is written to a temporary file and then linked to its name, which
    never replaces an existing file. Each directory from the table's folder on is opened without following a link.

    obstore does the same, but with threads of its own, so that it hangs in a process forked from one that used it.

    Lease records are durable on the disk, both file and directory, before ``create`` returns. They refer to things that
    outlast a power failure of this machine: jobs that hooks have paused, and a statement that runs in an engine
    elsewhere. Guards need not be durable: a guard refers to a process of this machine, and a power failure ends both.
    """

    def __init__(self, base: str, folder: str, *, follow: bool = False) -> None:
        """``folder`` is a directory in ``base``. ``follow``: ``base`` itself may be a link."""
        self._base = base
        self._folder = folder
        self._follow = follow

    def __str__(self) -> str:
        return f"{self._base.rstrip('/')}/{self._folder}"

    def create(self, name: str, data: bytes) -> bool:
        """As ``RecordStore.create``. Creates missing directories."""
        below, file = _split(name)
        aside = f".{uuid4().hex}"
        durable = below != _GUARDS
        with self._explained_errors("write", name):
            folder = self._made(below, durable=durable)
            try:
                _write(folder.create(aside), data, durable=durable)
                folder.link(aside, file)
            except FileExistsError:
                return False
            finally:
                with suppress(FileNotFoundError):
                    folder.unlink(aside)
            if durable:
                folder.sync()
            return True

    def read(self, name: str) -> bytes | None:
        below, file = _split(name)
        with self._explained_errors("read", name):
            try:
                return self._opened(below).read(file, LARGEST)
            except FileNotFoundError:
                return None
            except TooLargeError:
                return b""

    def names(self, prefix: str) -> tuple[str, ...]:
        below, slash, start = prefix.partition("/")
        with self._explained_errors("list", below):
            try:
                if slash:
                    return tuple(f"{below}/{name}" for name in _listed(self._opened(below)) if name.startswith(start))
                with self._opened("").entries() as entries:
                    folders = [each.name for each in entries if _PART.fullmatch(each.name)]
            except FileNotFoundError:
                return ()
        return tuple(name for each in sorted(folders) if each.startswith(below) for name in self.names(f"{each}/"))

    def listed(self, prefix: str) -> tuple[ListedRecord, ...]:
        """As ``RecordStore.listed``. Without versions: to read a record again costs less than to look at its times."""
        return tuple(ListedRecord(name) for name in self.names(prefix))

    def read_listed(self, record: ListedRecord) -> bytes | None:
        return self.read(record.name)

    def delete(self, name: str) -> None:
        below, file = _split(name)
        with self._explained_errors("delete", name):
            try:
                folder = self._opened(below)
            except FileNotFoundError:
                return
            try:
                _check_kind(folder, file)
                folder.unlink(file)
            except FileNotFoundError:
                # As a bucket does, which looks at the right before it looks for the record.
                if not folder.may_change():
                    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES)) from None

    def delete_folder(self, name: str) -> None:
        """Remove a directory of records, or with an empty name that of all, if it is empty."""
        with suppress(OSError):
            if name:
                self._opened("").rmdir(name)
            else:
                Folder.at(self._base, follow=self._follow).rmdir(self._folder)

    def _opened(self, below: str) -> Folder:
        folder = Folder.at(self._base, follow=self._follow).below(self._folder)
        return folder.below(below) if below else folder

    def _made(self, below: str, *, durable: bool) -> Folder:
        """As ``_opened``. Creates what is missing."""
        try:
            return self._opened(below)
        except FileNotFoundError:
            pass
        base = Path(self._base)
        for missing in [each for each in (*reversed(base.parents), base) if not os.path.lexists(each)]:
            with suppress(FileExistsError):
                missing.mkdir()
            if durable:
                Folder.at(str(missing.parent), follow=True).sync()
        folder = Folder.at(self._base, follow=self._follow)
        for name in (self._folder, below):
            try:
                folder.make(name)
            except FileExistsError:
                pass
            else:
                if durable:
                    folder.sync()
            folder = folder.below(name)
        return folder

    @contextmanager
    def _explained_errors(self, what: str, name: str) -> Iterator[None]:
        """As the function. A link, or something else than a file, is named with what to do."""
        with _explained_errors(what, str(self), name):
            try:
                yield
            except LinkError as error:
                message = f"cannot {what} the window's records: {error.filename}: {error.strerror}"
                raise ForeignRecordError(message, link_hint(error, self._base)) from error
            except NotRegularError as error:
                message = f"cannot {what} the window's records: {error.filename}: it is not a file"
                raise ForeignRecordError(message, "remove it: tablectl makes only files there") from error


def _split(name: str) -> tuple[str, str]:
    """The directory of a record and its name there. Raises ``ValueError`` for another name."""
    if not _RECORD.fullmatch(name):
        raise ValueError(f"{name!r} is not the name of a record")
    below, _, file = name.partition("/")
    return below, file


def _listed(folder: Folder) -> list[str]:
    """The names of records in a directory, sorted. Raises ``OSError`` for a link, and for something else than a file
    that has the name of a record.
    """
    names: list[str] = []
    with folder.entries() as entries:
        for entry in entries:
            if not _FILE.fullmatch(entry.name):
                continue
            if entry.is_file(follow_symlinks=False):
                names.append(entry.name)
            elif entry.is_symlink() or entry.name.endswith(_SUFFIX):
                _check_kind(folder, entry.name)
    return sorted(names)


def _check_kind(folder: Folder, name: str) -> None:
    """Raises ``OSError`` if a name is not that of a file."""
    mode = folder.stat(name).st_mode
    if stat.S_ISLNK(mode):
        raise LinkError(folder.file(name), folder.target(name))
    if not stat.S_ISREG(mode):
        raise NotRegularError(folder.file(name))


def _write(file: io.FileIO, data: bytes, *, durable: bool) -> None:
    with file:
        if file.write(data) != len(data):
            raise OSError(errno.ENOSPC, "no space is left for it")
        if durable:
            os.fsync(file.fileno())


class RecordBucket:
    """A store of records and its properties, shared by all its tables."""

    def __init__(self, store: ObjectStore, family: str) -> None:
        self.store = store
        self.family = family
        self.refuses = family != "s3"
        """Whether the store is known to refuse a second put of one name. GCS and Azure refuse it. Many stores with an
        S3 API are not S3, so there it is tested.
        """
        self._remembered: dict[str, tuple[ListedRecord, bytes]] = {}

    def recall(self, folder: str, record: ListedRecord) -> bytes | None:
        """The content of a record, if it is the one that was read last in its folder and has not changed since."""
        known, data = self._remembered.get(folder, (None, b""))
        return data if record.version and record == known else None

    def remember(self, folder: str, record: ListedRecord, data: bytes) -> None:
        """Keep the content of the record that was read last in a folder."""
        if len(self._remembered) >= _MOST_REMEMBERED:
            self._remembered.clear()
        self._remembered[folder] = record, data


class ObjectRecords:
    """A ``RecordStore`` on S3, GCS, Azure, or in memory, through obstore's create mode (docs/object-stores.md)."""

    def __init__(self, bucket: RecordBucket, folder: str, place: str) -> None:
        self._bucket = bucket
        self._store = bucket.store
        self._folder = folder
        self._place = place

    def __str__(self) -> str:
        return self._place

    def create(self, name: str, data: bytes) -> bool:
        """As ``RecordStore.create``. Creates missing directories.

        Raises ``WindowError`` if the store would overwrite an existing record: every process could then acquire the
        lease.
        """
        with self._explained_errors("write", name):
            created = self._put(name, data)
            if created and not self._bucket.refuses and self._put(name, data):
                self._store.delete(self._path(name))  # otherwise a reader would take it for a valid record
                raise WindowError(
                    f"cannot write the window's record {self._place}/{name}: the store writes over what is there, "
                    "though asked not to (If-None-Match)",
                    "put-if-absent is what leases are made of: set `state:` in tablectl.yaml to a store that has it",
                )
            self._bucket.refuses = True
            return created

    def _put(self, name: str, data: bytes) -> bool:
        try:
            self._store.put(self._path(name), data, mode="create")
        except AlreadyExistsError:
            return False
        return True

    def read(self, name: str) -> bytes | None:
        with self._explained_errors("read", name):
            try:
                found = self._store.get(self._path(name))
                return bytes(found.bytes()) if found.meta["size"] <= LARGEST else b""
            except FileNotFoundError:
                return None

    def names(self, prefix: str) -> tuple[str, ...]:
        return tuple(record.name for record in self.listed(prefix))

    def listed(self, prefix: str) -> tuple[ListedRecord, ...]:
        # Object stores list by directory, and not by the prefix of the last part.
        folder = prefix.rpartition("/")[0]
        with self._explained_errors("list", folder):
            entries = self._store.list(self._path(folder)).collect()
        top = self._path("")
        found = (ListedRecord(entry["path"].removeprefix(top), _version(entry)) for entry in entries)
        ours = (each for each in found if each.name.startswith(prefix) and _RECORD.fullmatch(each.name))
        return tuple(sorted(ours, key=lambda each: each.name))

    def read_listed(self, record: ListedRecord) -> bytes | None:
        folder = self._path(record.name.rpartition("/")[0])
        data = self._bucket.recall(folder, record)
        if data is None:
            data = self.read(record.name)
            if data is not None:
                self._bucket.remember(folder, record, data)
        return data

    def delete(self, name: str) -> None:
        _split(name)
        with self._explained_errors("delete", name):
            try:
                self._store.delete(self._path(name))
            except FileNotFoundError:
                return

    def is_empty(self) -> bool:
        """Whether nothing at all is there."""
        with self._explained_errors("list", ""):
            return not next(iter(self._store.list(self._folder)), ())

    def has(self, name: str) -> bool:
        """Whether the record exists. Cheaper than reading it."""
        with self._explained_errors("read", name):
            try:
                self._store.head(self._path(name))
            except FileNotFoundError:
                return False
            return True

    def _path(self, name: str) -> str:
        return f"{self._folder}/{name}"

    def _explained_errors(self, what: str, name: str) -> AbstractContextManager[None]:
        return _explained_errors(what, self._place, name, self._bucket.family)


def _version(entry: ObjectMeta) -> str:
    tag = entry["e_tag"]
    return f"{tag} {entry['size']} {entry['last_modified'].isoformat()}" if tag else ""


def open_records(
    location: str, state: str | None = None, key: str = "", options: StoreOptions = _DEFAULT
) -> RecordStore:
    """The records of the table at ``location``: in ``<location>/_tablectl``, or with ``state`` in ``<state>/<key>``.

    Places are absolute local paths, ``file:`` URIs, and s3, s3a, gs, abfss, az and memory URIs. They are taken
    literally: ``%20`` is three characters, as in Hadoop. ``key`` must be the same for every name of a table. A link is
    followed above a table's folder, and up to ``state`` itself. Opening
    creates nothing: a directory is created with its first record. Raises ``WindowError`` for any other place.
    """
    if state is None:
        return _open(location, FOLDER, options)
    if not key:
        raise ValueError("records under `state:` need the table's key")
    return _open(state, key_folder(key), options, follow=True)


def is_new(location: str) -> bool:
    """Whether a location has no Delta log and, on a disk, no directory of ours.

    A first record in such a place would prevent Delta from creating a table there. Costs one small request if there is
    a normal log. Raises ``WindowError`` as ``open_records``.
    """
    log, ours = _open(location, LOG, _DEFAULT), _open(location, FOLDER, _DEFAULT)
    if isinstance(log, DiskRecords):
        with _explained_errors("list", str(log), ""):
            return not any(_is_there(str(each)) for each in (log, ours))
    return not (log.has("_last_checkpoint") or log.has(f"{0:020d}.json")) and log.is_empty()


def _is_there(path: str) -> bool:
    """Whether a path has anything, such as a link. Raises ``OSError`` if that may not be known."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def key_folder(key: str) -> str:
    """A flat directory name for a key: the key itself if it is plain, otherwise its readable end and a digest of the
    key.

    The name is flat so that the records of a table inside another table's path are not listed with the other's. The
    digest also distinguishes two keys that a case-insensitive file system would confuse.
    """
    if _PLAIN_KEY.fullmatch(key):
        return key
    readable = re.sub(r"[^a-z0-9]+", "-", key.lower())[-40:].strip("-")
    return f"{readable or 'table'}-{hashlib.sha256(key.encode()).hexdigest()[:16]}"


def _open(base: str, folder: str, options: StoreOptions, *, follow: bool = False) -> DiskRecords | ObjectRecords:
    if not is_absolute(base):
        raise WindowError(f"the window's records cannot lie in {base!r}: the path is relative", _UNREACHABLE)
    place = canonical_location(base)
    if place.startswith("/"):
        _check_mount(os.path.realpath(place) if follow else place)
        return DiskRecords(place, folder, follow=follow)
    split = urlsplit(place.replace("#", "%23").replace("?", "%3F"))
    if split.scheme == "memory":
        return ObjectRecords(_memory(place), folder, f"{place}/{folder}")
    family = FAMILIES.get(split.scheme)
    if family is None:
        raise WindowError(f"the window's records cannot lie in {place}: {split.scheme}: is out of reach", _UNREACHABLE)
    path = place.removeprefix(f"{split.scheme}://{split.netloc}").strip("/")
    given = tuple(sorted(options.families.get(family, {}).items()))
    provider = options.access.provider(place, write=True) if options.access else None
    if provider is None:
        bucket = _bucket(split.scheme, split.netloc, given)
    else:
        bucket = _vended_bucket(split.scheme, split.netloc, options, provider)
    return ObjectRecords(bucket, f"{path}/{folder}".lstrip("/"), f"{place}/{folder}")


def _check_mount(place: str) -> None:
    """Raises ``WindowError`` for a network file system, because its clients list from caches of their own."""
    kind = network_mount(place)
    if kind:
        raise WindowError(
            f"the window's records cannot lie in {place}: it is on a network file system ({kind}), whose clients do "
            "not see at once what others write",
            "set `state:` in tablectl.yaml (and TABLECTL_STATE for guards) to an s3, gs, abfss or az URI",
        )


@cache
def _memory(_place: str) -> RecordBucket:
    """One store per place in a process. A lease in a private store would exclude no other holder."""
    return RecordBucket(MemoryStore(), "")


def _vended_bucket(scheme: str, authority: str, options: StoreOptions, provider: Provider) -> RecordBucket:
    """The bucket by the credentials that a catalog vends for one table."""
    try:
        return RecordBucket(open_bucket(scheme, authority, options, _PATIENCE, provider), FAMILIES[scheme])
    except BucketError as error:
        message = f"cannot open the window's record {scheme}://{authority}: {error.failure.reason}"
        raise WindowError(message, error.failure.hint or _WAY_OUT) from error


def _bucket(scheme: str, authority: str, given: tuple[tuple[str, str], ...]) -> RecordBucket:
    root = f"{scheme}://{authority}"
    if _process() != os.getpid():
        raise WindowError(
            f"{root} is out of reach in this process: it was forked from one that had connections of its own",
            "start worker processes with `spawn`, or let only them write",
        )
    try:
        return _client(scheme, authority, given, _environment())
    except BucketError as error:
        raise WindowError(
            f"cannot open the window's record {root}: {error.failure.reason}", error.failure.hint or _WAY_OUT
        ) from error


@cache
def _process() -> int:
    """The process that opened the first bucket. obstore's threads run there, and a forked process hangs waiting for
    them.
    """
    return os.getpid()


def _environment() -> tuple[tuple[str, str], ...]:
    return tuple(item for item in sorted(os.environ.items()) if item[0].startswith(_ENVIRONMENT))


@lru_cache(maxsize=32)
def _client(
    scheme: str, authority: str, given: tuple[tuple[str, str], ...], _environ: tuple[tuple[str, str], ...]
) -> RecordBucket:
    """One client per bucket and credentials. A new client for each guard would cost a TLS handshake each time."""
    family = FAMILIES[scheme]
    return RecordBucket(open_bucket(scheme, authority, StoreOptions({family: dict(given)}), _PATIENCE), family)


@contextmanager
def _explained_errors(what: str, folder: str, name: str, family: str = "") -> Iterator[None]:
    """Converts every failure of the store into a ``WindowError`` that names the place and a fix."""
    try:
        yield
    except (BaseError, OSError, ValueError) as error:
        failure = explain(error, family)
        if failure.denied:
            raise missing_right(what, folder, name, family, failure.right) from error
        raise WindowError(
            f"cannot {what} the window's record {folder}/{name}: {failure.reason}", failure.hint or _WAY_OUT
        ) from error
