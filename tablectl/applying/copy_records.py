"""The finished parts of a copy beside a table, for a run that goes on with the copy of a killed one.

One part is one or more records, because a record is small. The records say which files of the table were copied into
which new files, and what for. A stranger may have written them: whoever goes on with a part compares its rows first.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import unquote

from tablectl.model.errors import WindowError
from tablectl.model.safe_text import time_text
from tablectl.storage.records import LARGEST, RecordStore
from tablectl.support.json_text import MOST_VALUES, read_json, write_json
from tablectl.support.typed_json import json_form, read_record

FOLDER = "copy/"
_NAME = re.compile(r"copy/([0-9]{14}-[0-9]{6})\.([0-9]{1,6})\.([0-9]{1,6})\.json")
_MOST_PARTS = 100_000
_MOST_RECORDS = 1_000
"""Of one part: 256 MB of text."""
_CHUNK = LARGEST // 4
"""Characters of a record: a character has at most four bytes."""
_OF_ADD = frozenset(
    {"path", "partitionValues", "size", "modificationTime", "dataChange", "stats", "tags", "clusteringProvider"}
)
"""What Delta writes of a new file (``AddFile`` of Delta 4.4.0) before its commit: no deletion vector and no row ids."""


@dataclass(frozen=True, slots=True)
class CopiedPart:
    """Some files of a table, and the new files that hold their rows."""

    id: str
    """When the copy began, in milliseconds since the epoch, and a number."""
    keys: tuple[str, ...]
    """The keys of the table's files (``FollowedFile.key``)."""
    adds: tuple[str, ...]
    """The ``add`` actions of the new files."""
    size: int
    """Bytes of the table's files."""


@dataclass(frozen=True, slots=True)
class _StoredPart:
    layout: str
    keys: tuple[str, ...]
    adds: tuple[str, ...]
    size: int


def save_part(store: RecordStore, made_for: str, part: CopiedPart) -> None:
    """Record a part. ``made_for`` says what its files were written for. Raises ``WindowError``."""
    text = write_json(json_form(_StoredPart(made_for, part.keys, part.adds, part.size)))
    chunks = [text[at : at + _CHUNK] for at in range(0, len(text), _CHUNK)]
    for number, chunk in enumerate(chunks):
        store.create(_name(part.id, number, len(chunks)), chunk.encode())


def saved_parts(store: RecordStore, made_for: str, partition_keys: Collection[str]) -> Iterator[CopiedPart]:
    """The parts that were written for the same, in order of time. Records of others, and what cannot be a part, are
    deleted. Raises ``WindowError``.
    """
    for id_, names in _by_part(store)[:_MOST_PARTS]:
        part = _read(store, id_, names, made_for)
        if part is None or not all(is_plain_add(add, partition_keys) for add in part.adds):
            _delete(store, names)
        else:
            yield part


def delete_part(store: RecordStore, part: CopiedPart) -> None:
    """Delete the records of a part that is of no use any more. A failure of the store leaves them: they are compared
    with the table before they are used.
    """
    with suppress(WindowError):
        _delete(store, dict(_by_part(store)).get(part.id, ()))


def delete_parts(store: RecordStore) -> int:
    """Delete all records of copies. Returns the number of parts. Raises ``WindowError``."""
    found = _by_part(store)
    for _, names in found:
        _delete(store, names)
    return len(found)


def forget_parts(store: RecordStore) -> None:
    """Delete all records of copies that are of no use any more. A failure of the store leaves them, as above."""
    with suppress(WindowError):
        delete_parts(store)


def count_parts(store: RecordStore) -> tuple[int, int]:
    """The number of parts, and when the first one was made, in milliseconds since the epoch; 0 without one."""
    found = _by_part(store)
    return len(found), int(found[0][0].partition("-")[0]) if found else 0


def copy_text(store: RecordStore) -> str:
    """``12 parts since 2026-11-21 11:00:00 UTC``; empty without a copy. Raises ``WindowError``."""
    parts, since = count_parts(store)
    return f"{parts:,} part{'s' * (parts != 1)} since {time_text(since)}" if parts else ""


def _name(id_: str, number: int, of: int) -> str:
    return f"{FOLDER}{id_}.{number}.{of}.json"


def _by_part(store: RecordStore) -> list[tuple[str, list[str]]]:
    """The records of each part. Other names are those of others, and stay."""
    found: dict[str, list[str]] = {}
    for name in store.names(FOLDER):
        match = _NAME.fullmatch(name)
        if match:
            found.setdefault(match[1], []).append(name)
    return sorted(found.items())


def _read(store: RecordStore, id_: str, names: Sequence[str], made_for: str) -> CopiedPart | None:
    of = len(names)
    if of > _MOST_RECORDS or set(names) != {_name(id_, number, of) for number in range(of)}:
        return None
    data = b"".join(store.read(_name(id_, number, of)) or b"" for number in range(of))
    try:
        found = read_record(_StoredPart, data, _MOST_RECORDS * LARGEST, MOST_VALUES)
    except ValueError:
        return None
    if found.layout != made_for or len(set(found.keys)) < len(found.keys):
        return None
    return CopiedPart(id_, found.keys, found.adds, found.size)


def is_plain_add(text: str, partition_keys: Collection[str]) -> bool:
    """Whether an action adds one file of rows below the table, without a deletion vector, and with a value for each of
    the partition columns and for no other.

    ``partition_keys`` are the physical names of these columns. A path is a URI: ``%2e%2e`` is a step up, too (Delta
    protocol, "Add File and Remove File").
    """
    try:
        action = read_json(text)
        file = action["add"]
        path, values = unquote(file["path"]), file["partitionValues"]
        inside = not path.startswith("/") and ":" not in file["path"] and ".." not in path.split("/")
        plain = set(action) == {"add"} and file["dataChange"] is True and file.keys() <= _OF_ADD
        plain &= all(type(file[key]) is int and 0 <= file[key] < 2**63 for key in ("size", "modificationTime"))
        return inside and plain and values.keys() == set(partition_keys)
    except (ValueError, KeyError, TypeError, AttributeError):
        return False


def _delete(store: RecordStore, names: Sequence[str]) -> None:
    for name in names:
        store.delete(name)
