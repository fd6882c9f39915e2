"""Builders that tests of several packages share (tests/README.md says which to use)."""

from __future__ import annotations

from typing import Any

from tablectl.delta.names import TableName
from tablectl.log.reader import read_table
from tablectl.model.table import LOOK_BACK, Depth, LiveTable
from tablectl.storage.object_stores import StoreOptions


def read_path(path: str, *, version: int | None = None, options: StoreOptions | None = None, **depth: Any) -> LiveTable:
    """The table at a path, with its history unless ``look_back=0``. ``depth`` are fields of ``Depth``."""
    wanted = Depth(**{"look_back": LOOK_BACK, **depth})
    return read_table(TableName("", (path,)), path, wanted, version=version, options=options or StoreOptions())
