"""Keeps states and commits of tables in a directory, by default the user's cache directory, in one SQLite file.

The file may be deleted, damaged or shared at any time: what cannot be read counts as absent. ``log/reader.py`` and
``log/write_history.py`` compare it with the log. An apply does not use it.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from threading import Lock
from types import MappingProxyType
from typing import Any, ClassVar, TypeVar

from tablectl.delta.keys import NOTHING_SET
from tablectl.delta.protocol import Client
from tablectl.log.state import KnownState, TableCache
from tablectl.model.commit import AppTransaction, Commit
from tablectl.support.json_text import write_json
from tablectl.support.typed_json import json_form, read_record

FILE = "tables.sqlite"
_FORMAT = 4
"""Written into the file; a file of another format is replaced."""
_MOST_BYTES = 4 * 1024 * 1024
"""The maximum size of an entry."""
_MOST_PAGES = 1 << 18
"""The maximum size of the file, a gigabyte."""
_MOST_ENTRIES = 400_000
_PENDING = 1000
"""How many entries are written together."""
_PATIENCE = 2.0
"""Seconds for which another process may hold the file."""
_STATE, _COMMITS = 1, 2
_SCHEMA = (
    "CREATE TABLE entries (kind INTEGER, location BLOB, table_id BLOB, written INTEGER, body BLOB, "
    "PRIMARY KEY (kind, location, table_id)) WITHOUT ROWID"
)
_READ = "SELECT body FROM entries WHERE kind = ? AND location = ? AND table_id = ? AND length(body) <= ?"
_WRITE = "INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?, ?)"
_OLDEST = (
    "DELETE FROM entries WHERE written <= "
    "(SELECT written FROM entries ORDER BY written LIMIT 1 OFFSET (SELECT count(*) FROM entries) / 10)"
)
_Body = TypeVar("_Body")
_Key = tuple[int, bytes, bytes]
_NOTHING: Mapping[int, Commit] = MappingProxyType({})


def cache_directory(environ: Mapping[str, str], platform: str = sys.platform) -> Path | None:
    """The directory for caches of the user, by the platform's convention; ``None`` if there is none."""
    try:
        if platform == "win32":
            base = environ.get("LOCALAPPDATA", "")
        elif platform == "darwin":
            base = str(Path.home() / "Library" / "Caches")
        else:
            base = environ.get("XDG_CACHE_HOME", "") or str(Path.home() / ".cache")
    except RuntimeError:  # the user has no home directory
        return None
    return Path(base) / "tablectl" if Path(base).is_absolute() else None


class DiskCache(TableCache):
    """A cache in a directory. Other processes may use it at the same time."""

    keeps_states: ClassVar[bool] = True

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._lock = Lock()
        self._file: sqlite3.Connection | None = None
        self._opened = False
        self._pending: dict[_Key, bytes] = {}

    def load(self, location: str, table_id: str) -> Mapping[int, Commit]:
        """As ``TableCache.load``. An entry that does not have the expected form counts as absent."""
        rows = self._parsed((_COMMITS, _raw(location), _raw(table_id)), tuple[_Row, ...])
        return {row[0]: _commit(row) for row in rows} if rows else _NOTHING

    def store(self, location: str, table_id: str, commits: Mapping[int, Commit]) -> None:
        self._put((_COMMITS, _raw(location), _raw(table_id)), tuple(map(_row, commits.values())))

    def state(self, location: str) -> KnownState | None:
        """As ``TableCache.state``. An entry that does not have the expected form counts as absent."""
        return self._parsed((_STATE, _raw(location), b""), KnownState)

    def keep(self, location: str, known: KnownState) -> None:
        self._put((_STATE, _raw(location), b""), json_form(known))

    def flush(self) -> None:
        with self._lock:
            self._write()
            self._close()
            self._opened = False

    def _parsed(self, key: _Key, kind: type[_Body]) -> _Body | None:
        with self._lock:
            body = self._pending.get(key) or self._read(key)
        try:
            return read_record(kind, body) if body else None
        except ValueError:  # whatever is wrong with a kept entry, it counts as absent
            return None

    def _put(self, key: _Key, body: Any) -> None:
        data = write_json(body).encode("utf-8", "surrogatepass")
        if len(data) > _MOST_BYTES:
            return
        with self._lock:
            self._pending[key] = data
            if len(self._pending) >= _PENDING:
                self._write()

    def _read(self, key: _Key) -> bytes | None:
        file = self._connected(create=False)
        if file is None:
            return None
        try:
            found = file.execute(_READ, (*key, _MOST_BYTES)).fetchone()
        except sqlite3.Error as error:
            self._give_up(error)
            return None
        return found[0] if found and isinstance(found[0], bytes) else None

    def _write(self) -> None:
        """Writes what is pending. What cannot be written is forgotten."""
        rows = [(*key, int(time.time()), body) for key, body in self._pending.items()]
        self._pending.clear()
        file = self._connected(create=True) if rows else None
        if file is None:
            return
        try:
            with file:
                file.execute("BEGIN IMMEDIATE")
                if file.execute("SELECT count(*) FROM entries").fetchone()[0] + len(rows) > _MOST_ENTRIES:
                    file.execute(_OLDEST)
                file.executemany(_WRITE, rows)
        except sqlite3.OperationalError as error:
            if "full" in str(error):
                with suppress(sqlite3.Error), file:
                    file.execute(_OLDEST)
        except sqlite3.Error as error:
            self._give_up(error)

    def _connected(self, *, create: bool) -> sqlite3.Connection | None:
        path = self.directory / FILE
        if self._file is None and (create or not self._opened):
            self._opened = True
            with suppress(OSError, ValueError, sqlite3.Error):
                self._file = _opened(path, create=create)
        return self._file

    def _give_up(self, error: sqlite3.Error) -> None:
        """Forgets the file, and deletes it if it is damaged, so that the next write makes a new one."""
        self._close()
        if not isinstance(error, sqlite3.OperationalError):  # such as a lock that another process holds
            with suppress(OSError):
                (self.directory / FILE).unlink()

    def _close(self) -> None:
        if self._file is not None:
            with suppress(sqlite3.Error):
                self._file.close()
        self._file = None


def _opened(path: Path, *, create: bool) -> sqlite3.Connection | None:
    """The file, empty if it had another format. ``None`` if it does not exist and is not to be made, or if others could
    have written it.
    """
    if create:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    if not _is_ours(path):
        return None
    file = sqlite3.connect(path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False)
    try:
        file.execute("PRAGMA trusted_schema = OFF")
        file.execute("PRAGMA synchronous = OFF")
        file.execute(f"PRAGMA max_page_count = {_MOST_PAGES}")
        found = file.execute("SELECT type, name, sql FROM sqlite_master LIMIT 2").fetchall()
        (form,) = file.execute("PRAGMA user_version").fetchone()
        if len(found) > 1 or any(each[:2] != ("table", "entries") or not form for each in found):
            file.close()  # a trigger or a view runs code of others, and other tables are another program's
            return None
        if (form, found) != (_FORMAT, [("table", "entries", _SCHEMA)]):
            with file:
                file.execute("BEGIN IMMEDIATE")
                file.execute("DROP TABLE IF EXISTS entries")
                file.execute(_SCHEMA)
                file.execute(f"PRAGMA user_version = {_FORMAT}")
    except sqlite3.OperationalError:
        file.close()
        return None
    except sqlite3.Error:  # damaged
        file.close()
        path.unlink()
        return _opened(path, create=True) if create else None
    return file


def _is_ours(path: Path) -> bool:
    """Whether it is a plain file and no link, that only this user can open, in a folder that only this user can write.
    Whoever writes it decides what plans see. Other users can usually read a file of a Git checkout.
    """
    try:
        file, folder = path.lstat(), path.parent.stat()
    except OSError:
        return False
    if sys.platform == "win32":
        return stat.S_ISREG(file.st_mode)
    owned = file.st_uid == folder.st_uid == os.getuid()
    return stat.S_ISREG(file.st_mode) and owned and not file.st_mode & 0o077 and not folder.st_mode & 0o022


def _raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


_Texts = dict[str, str]
_Row = tuple[
    int, int, str, str, tuple[str, tuple[int, ...]], str, tuple[bool, bool, bool, bool], _Texts, _Texts, int | None,
    bool | None, tuple[tuple[str, int], ...], int, _Texts,
]  # fmt: skip
"""A commit: its position says what a value is, for there are many of them."""


def _row(commit: Commit) -> _Row:
    return (
        commit.version,
        commit.timestamp,
        commit.operation,
        commit.user,
        (commit.client.engine, commit.client.version),
        commit.user_metadata,
        (commit.changes_metadata, commit.changes_data, commit.overwrites, commit.schema_writer),
        dict(commit.parameters),
        dict(commit.metrics),
        commit.read_version,
        commit.blind_append,
        tuple((each.app_id, each.version) for each in commit.transactions),
        commit.first_file,
        dict(commit.job),
    )


def _commit(row: _Row) -> Commit:
    version, timestamp, operation, user, client, stamp, flags, parameters, metrics, read, blind, streams, first, job = (
        row
    )
    metadata, data, overwrites, schema = flags
    return Commit(
        version=version,
        timestamp=timestamp,
        operation=operation,
        user=user,
        client=Client(*client),
        user_metadata=stamp,
        changes_metadata=metadata,
        changes_data=data,
        overwrites=overwrites,
        schema_writer=schema,
        parameters=parameters or NOTHING_SET,
        metrics=metrics or NOTHING_SET,
        read_version=read,
        blind_append=blind,
        transactions=tuple(AppTransaction(*each) for each in streams),
        first_file=first,
        job=job or NOTHING_SET,
    )
