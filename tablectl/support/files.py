"""Opens files from untrusted sources: regular files only, without blocking, up to a size limit.

A FIFO would block its reader, and a device such as ``/dev/zero`` never ends. Therefore files are opened without
blocking, and the open file is checked before anything is read, so that a concurrent rename changes nothing.
"""

from __future__ import annotations

import errno
import io
import os
import stat
from pathlib import Path

_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
_PIECE = 1 << 20
"""How much of a file of unknown size is read at a time, in bytes."""


class NotRegularError(OSError):
    """The opened path is a FIFO, a device, a socket or a directory."""

    def __init__(self, path: str) -> None:
        super().__init__(errno.EINVAL, "not a regular file", path)


class TooLargeError(OSError):
    """The file has more bytes than its limit allows."""

    def __init__(self, path: str, limit: int) -> None:
        super().__init__(errno.EFBIG, f"larger than {size_text(limit)}", path)


def size_text(limit: int) -> str:
    """A limit in bytes, for people: ``64 MiB``, ``10 kB``."""
    return f"{limit >> 20} MiB" if limit >= 1 << 20 else f"{limit // 1000} kB"


def open_regular(path: str | Path, *, follow: bool = True, dir_fd: int | None = None) -> io.FileIO:
    """Opens a regular file, unbuffered. ``follow`` and ``dir_fd`` as in ``read_regular``.

    Raises ``NotRegularError`` for anything else, other ``OSError`` as ``open`` does, ``ValueError`` for a null byte.
    """
    descriptor, _ = _open_checked(os.fspath(path), follow=follow, dir_fd=dir_fd)
    try:
        return io.FileIO(descriptor)
    except BaseException:
        os.close(descriptor)
        raise


def _open_checked(name: str, *, follow: bool, dir_fd: int | None) -> tuple[int, int]:
    """The descriptor of a regular file, and the file's size."""
    descriptor = _opened(name, _FLAGS if follow else _FLAGS | _NO_FOLLOW, dir_fd)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise NotRegularError(name)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor, found.st_size


def _opened(name: str, flags: int, dir_fd: int | None) -> int:
    try:
        return os.open(name, flags, dir_fd=dir_fd)
    except OSError as error:
        # a socket, or a device without a driver
        if error.errno in {errno.ENXIO, errno.ENODEV, errno.EOPNOTSUPP}:
            raise NotRegularError(name) from error
        raise


def read_regular(path: str | Path, limit: int, *, follow: bool = True, dir_fd: int | None = None) -> bytes:
    """The bytes of a regular file of at most ``limit`` bytes. With ``follow`` off, a link is an error. With ``dir_fd``,
    the path is relative to that open directory.

    Raises as ``open_regular``, and ``TooLargeError`` before more than the limit is in memory. The size is checked
    first, and the read is limited as well, because a file can grow and some file systems report no size.
    """
    name = os.fspath(path)
    # Four calls of the system and no file object: most commits and checksums are a few hundred bytes long.
    descriptor, size = _open_checked(name, follow=follow, dir_fd=dir_fd)
    try:
        if size > limit:
            raise TooLargeError(name, limit)
        data = os.read(descriptor, size + 1)
        if len(data) != size or not size:
            # The bytes of an open file after those that were read, up to one more than the limit
            parts, length = [data], len(data)
            while length <= limit and (more := os.read(descriptor, min(limit + 1 - length, _PIECE))):
                parts.append(more)
                length += len(more)
            data = b"".join(parts)
    finally:
        os.close(descriptor)
    if len(data) > limit:
        raise TooLargeError(name, limit)
    return data


def real_path(place: str) -> str:
    """An absolute path without links and dots. It need not exist."""
    return os.path.realpath(place)
