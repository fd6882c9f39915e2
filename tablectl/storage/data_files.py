"""Lists the data files below a table, whether a commit names them or not."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

from tablectl.model.errors import LiveError
from tablectl.storage.disk_log import DiskLog
from tablectl.storage.table_log import DENIED


@dataclass(frozen=True)
class DataFile:
    """A file in the folder of a table."""

    path: str
    """Relative to the table."""
    size: int
    modified: float
    """Seconds since the epoch, by the clock of the store."""


def is_data(path: str) -> bool:
    """Whether a path below a table is that of a data file. Delta and Spark hide names that begin with _ or a dot; a
    partition folder such as ``_day=1`` is not hidden.
    """
    *folders, name = path.split("/")
    hidden = any(each.startswith(".") or (each.startswith("_") and "=" not in each) for each in folders)
    return not hidden and not name.startswith(("_", ".")) and name.endswith(".parquet")


def list_data_files(log: DiskLog, most: int) -> list[DataFile]:
    """The Parquet files below a table on a disk, at most ``most``. Links are not followed. Raises ``LiveError``."""
    log.exists()  # raises for a location that does not exist
    return list(islice(_walk(log.location), most))


def _walk(root: str) -> Iterator[DataFile]:
    def stop(error: OSError) -> None:
        raise LiveError(f"{error.filename}: cannot be listed: {error.strerror}", DENIED) from error

    for folder, _, names in os.walk(root, onerror=stop):
        below = "" if folder == root else folder[len(root) :].strip("/") + "/"
        for name in names:
            if is_data(below + name):
                with suppress(FileNotFoundError):  # removed since it was listed
                    status = os.lstat(f"{folder}/{name}")
                    yield DataFile(below + name, status.st_size, status.st_mtime)
