"""Keeps the commits that show who writes a table in the user's cache directory, one file per table.

The files may be deleted, damaged or shared at any time: what cannot be read counts as absent. ``write_history``
compares them with the log. An apply does not use them under a lease.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from tablectl.delta.protocol import Client
from tablectl.files import read_regular
from tablectl.model.table import NOTHING_SET, AppTransaction, Commit

_FORMAT = 1
_MOST_BYTES = 4 * 1024 * 1024
"""The maximum size of the file of one table."""
_MOST_FILES = 1000
_SUFFIX = ".commits.json"
_Kind = TypeVar("_Kind")
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


@dataclass(slots=True)
class DiskCache:
    """A ``CommitCache`` in a directory, with at most a thousand files: those that were written last."""

    directory: Path
    _left: int = field(default=-1)
    """How many files this process may still write before it counts them again."""

    def load(self, location: str, table_id: str) -> Mapping[int, Commit]:
        """As ``CommitCache.load``. A file that does not have the expected form counts as absent."""
        try:
            body = json.loads(read_regular(self._file(location, table_id), _MOST_BYTES))
            if body["format"] != _FORMAT or body["location"] != location or body["table"] != table_id:
                return _NOTHING
            commits = [_commit(row) for row in body["commits"]]
        except (OSError, ValueError, KeyError, TypeError, RecursionError, OverflowError):
            return _NOTHING
        return {commit.version: commit for commit in commits}

    def store(self, location: str, table_id: str, commits: Mapping[int, Commit]) -> None:
        """As ``CommitCache.store``. Other processes see the old file or the new one."""
        rows = [_row(commit) for commit in commits.values()]
        body = {"format": _FORMAT, "location": location, "table": table_id, "commits": rows}
        data = json.dumps(body, separators=(",", ":")).encode("utf-8", "surrogatepass")
        if len(data) > _MOST_BYTES:
            return
        with suppress(OSError, ValueError):
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._make_room()
            self._replace(self._file(location, table_id), data)

    def _file(self, location: str, table_id: str) -> Path:
        name = hashlib.sha256(f"{location}\0{table_id}".encode("utf-8", "surrogatepass")).hexdigest()
        return self.directory / f"{name[:40]}{_SUFFIX}"

    def _replace(self, file: Path, data: bytes) -> None:
        handle, name = tempfile.mkstemp(prefix="write-", suffix=".tmp", dir=self.directory)
        try:
            with os.fdopen(handle, "wb") as new:
                new.write(data)
            Path(name).replace(file)
        except OSError:
            Path(name).unlink(missing_ok=True)
            raise

    def _make_room(self) -> None:
        """Deletes the files that were written first, if there are too many."""
        self._left -= 1
        if self._left > 0:
            return
        with os.scandir(self.directory) as entries:
            ours = [each for each in entries if each.name.endswith((_SUFFIX, ".tmp"))]
        ages = sorted((each.stat(follow_symlinks=False).st_mtime, each.path) for each in ours)
        for _, path in ages[: max(len(ages) - _MOST_FILES * 9 // 10, 0)]:
            Path(path).unlink(missing_ok=True)
        self._left = _MOST_FILES // 10


def _row(commit: Commit) -> list[Any]:
    return [
        commit.version,
        commit.timestamp,
        commit.operation,
        commit.user,
        [commit.client.engine, *commit.client.version],
        commit.user_metadata,
        [commit.changes_metadata, commit.changes_data, commit.overwrites, commit.schema_writer],
        dict(commit.parameters),
        dict(commit.metrics),
        commit.read_version,
        commit.blind_append,
        [[each.app_id, each.version] for each in commit.transactions],
        dict(commit.job),
    ]


def _commit(row: Any) -> Commit:
    """The commit of a row. Raises ``TypeError`` or ``ValueError`` for any other form."""
    version, timestamp, operation, user, client, stamp, flags, parameters, metrics, read, blind, streams, job = row
    metadata, data, overwrites, schema = (_exactly(bool, each) for each in flags)
    return Commit(
        version=_exactly(int, version),
        timestamp=_exactly(int, timestamp),
        operation=_exactly(str, operation),
        user=_exactly(str, user),
        client=Client(_exactly(str, client[0]), tuple(_exactly(int, each) for each in client[1:])),
        user_metadata=_exactly(str, stamp),
        changes_metadata=metadata,
        changes_data=data,
        overwrites=overwrites,
        schema_writer=schema,
        parameters=_texts(parameters),
        metrics=_texts(metrics),
        read_version=None if read is None else _exactly(int, read),
        blind_append=None if blind is None else _exactly(bool, blind),
        transactions=tuple(AppTransaction(_exactly(str, app), _exactly(int, batch)) for app, batch in streams),
        job=_texts(job),
    )


def _exactly(kind: type[_Kind], value: Any) -> _Kind:
    if type(value) is not kind:
        raise TypeError(f"{value!r} is not of type {kind.__name__}")
    return value


def _texts(value: Any) -> Mapping[str, str]:
    texts = {_exactly(str, key): _exactly(str, each) for key, each in _exactly(dict, value).items()}
    return MappingProxyType(texts) if texts else NOTHING_SET
