"""The folders outside of a table whose files its log names: those that a shallow clone reads of its source.

A clone names each file of its source by an absolute path (``CloneTableBase`` of Delta 4.4.0 calls
``DeltaFileOperations.makePathsAbsolute``), and a deletion vector likewise, with the storage type ``p``. A clone of a
clone names the files of the first source, and vectors of the second. This holds however the clone was made and however
much of its log was cleaned up: a checkpoint has the paths.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import unquote

from tablectl.delta.locations import canonical_location
from tablectl.log.catalog_managed import open_log
from tablectl.log.history import read_commit
from tablectl.log.listing import Segment, commit_name
from tablectl.log.open_version import with_version
from tablectl.storage.log_stores import Stores
from tablectl.storage.table_log import TableLog

_ABSOLUTE = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*:")
"""The start of a URI or a path from the root. Delta encodes a colon in a relative path."""
_PATH_VECTOR = "p"
"""The storage type of a deletion vector at an absolute path (Delta protocol, "Deletion Vector Descriptor Schema")."""


def foreign_folders(stores: Stores, location: str) -> frozenset[str]:
    """The folders, as canonical locations, of the files and deletion vectors that the newest version of a table and its
    tombstones name by absolute paths. Raises ``LiveError`` if the log cannot be read.

    Tombstones count: older versions of the clone read their files for as long as the clone keeps them.
    """
    managed = stores.managed(location)
    log = open_log(stores, location, managed)

    def read(wanted: Segment) -> frozenset[str]:
        return frozenset(canonical_location(path).rpartition("/")[0] for path in set(_absolute(log, wanted)))

    return with_version(log, managed.version if managed else None, 0, read)


def _absolute(log: TableLog, wanted: Segment) -> Iterator[str]:
    """The absolute paths, decoded."""
    versions = range(wanted.version, wanted.base, -1)
    log.check_sizes(map(commit_name, versions))
    for commit in log.each(lambda each: read_commit(log, commit_name(each), each, with_files=True), versions):
        for file in commit.files:
            yield from _of_key(*file.key)
    if wanted.checkpoint:
        # Only a checkpoint needs pyarrow, which is slow to import.
        from tablectl.log.checkpoint import named_files  # noqa: PLC0415

        for key in named_files(log, wanted.checkpoint):
            yield from _of_key(*key)


def _of_key(path: str, vector: str) -> Iterator[str]:
    if _ABSOLUTE.match(path):
        yield path
    if vector.startswith(_PATH_VECTOR):
        yield unquote(vector.removeprefix(_PATH_VECTOR).rpartition("@")[0] or vector.removeprefix(_PATH_VECTOR))
