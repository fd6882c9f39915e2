"""Files and directories that the process may not read, also where the tests run as root."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_VERSION = 0x20080522
_READS_ALL = 1 << 1 | 1 << 2
"""``CAP_DAC_OVERRIDE`` and ``CAP_DAC_READ_SEARCH``: with them, permissions do not count (capabilities(7))."""


@contextmanager
def unreadable(*paths: Path) -> Iterator[None]:
    """Within it, these paths have no permissions, and this thread and those that it starts respect that."""
    for path in paths:
        path.chmod(0)
    try:
        with _as_others():
            yield
    finally:
        for path in paths:
            path.chmod(0o755)


@contextmanager
def _as_others() -> Iterator[None]:
    if os.geteuid() != 0:
        yield
        return
    if sys.platform != "linux":
        pytest.skip("root may read everything")
    kept = _capabilities()
    _set_capabilities((kept[0] & ~_READS_ALL, *kept[1:]))
    try:
        yield
    finally:
        _set_capabilities(kept)


def _capabilities() -> tuple[int, ...]:
    data = (ctypes.c_uint32 * 6)()
    _call("capget", data)
    return tuple(data)


def _set_capabilities(values: tuple[int, ...]) -> None:
    _call("capset", (ctypes.c_uint32 * 6)(*values))


def _call(name: str, data: ctypes.Array[ctypes.c_uint32]) -> None:
    """``data`` holds the effective, permitted and inheritable set, twice 32 bits each."""
    library = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(_VERSION, 0)
    if getattr(library, name)(ctypes.byref(header), ctypes.byref(data)):
        raise OSError(ctypes.get_errno(), name)
