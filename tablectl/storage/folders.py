"""Directories at and below a table's folder, opened so that no link in them is followed.

A job that may write one table may put a link into its folder, and must not lead tablectl to another table, or to a home
directory. So each step from the table's folder on is opened by the descriptor of the step before, with ``O_NOFOLLOW``
(open(2), ``openat``): a link is an error, and what is exchanged between a look and a use changes nothing. What lies
above the folder belongs to the operator, and links there are followed: ``/tmp`` of macOS, another disk.

Where Python has no such calls (Windows), each step is looked at before it is used. Links are refused there, too, but
not one that is put in place between the two.
"""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager

from tablectl.model.errors import LiveError
from tablectl.support.files import open_regular, read_regular

BY_DESCRIPTOR = (
    hasattr(os, "O_NOFOLLOW")
    and hasattr(os, "O_DIRECTORY")
    and {os.open, os.stat, os.mkdir, os.link, os.unlink, os.rmdir, os.readlink} <= os.supports_dir_fd
    and os.scandir in os.supports_fd
)
"""Whether this system opens names relative to a directory, as Linux and macOS do."""
_LISTED = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NONBLOCK", 0)
_STEP = _LISTED | getattr(os, "O_PATH", 0)
"""With ``O_PATH`` (Linux) a step needs no right to list, as a path needs none."""
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
_LONGEST = 200
_DECLARE = "declare the table under the path that the link leads to"
_REMOVE = "remove it: no link in a table's folder is followed, because whoever may write there can lead it anywhere"


class LinkError(OSError):
    """There is a link where tablectl follows none. ``filename`` is its path."""

    def __init__(self, path: str, target: str) -> None:
        cut = target if len(target) <= _LONGEST else f"{target[:_LONGEST]}…"
        super().__init__(errno.ELOOP, f"it is a link to {repr(cut)[1:-1]}", path)


def refused_link(error: LinkError, location: str) -> LiveError:
    """The error of a table whose folder is a link, or has one."""
    what = "left out" if error.filename == location else "cannot be read"
    return LiveError(f"{error.filename}: {what}: {error.strerror}", link_hint(error, location))


def link_hint(error: LinkError, location: str) -> str:
    """What to do about a link in place of a table's folder, or in it."""
    return _DECLARE if error.filename == location else _REMOVE


class Folder:
    """An open directory. It is closed with the last reference to it.

    Names are single steps: one with a slash, and a dot or two, raise ``ValueError``. A link in place of a name raises
    ``LinkError``, and everything else the ``OSError`` of the call.
    """

    def __init__(self, path: str, descriptor: int | None) -> None:
        """``descriptor``: ``None`` without ``BY_DESCRIPTOR``."""
        self.path = path
        self._descriptor = descriptor

    def __del__(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)

    @staticmethod
    def at(path: str, *, follow: bool = False, by_descriptor: bool = BY_DESCRIPTOR) -> Folder:
        """The directory at an absolute path. Links above it are followed; with ``follow`` also one in its place."""
        if "/." in path:
            path = os.path.normpath(path)  # as Hadoop does: `link/.` is the link's target for the system
        path = path.rstrip("/") or "/"
        if not by_descriptor:
            if not follow:
                refuse_link(path)
            os.scandir(path).close()  # raises as an open does
            return Folder(path, None)
        try:
            return Folder(path, os.open(path, _STEP if follow else _STEP | _NO_FOLLOW))
        except OSError as error:
            raise (error if follow else _explained(error, path, path, None)) from None

    def file(self, name: str) -> str:
        """The path of a name, for messages."""
        return f"{self.path.rstrip('/')}/{name}"

    def below(self, name: str) -> Folder:
        """A directory in it."""
        place, at = self._place(name)
        if at is None:
            os.scandir(place).close()
            return Folder(place, None)
        try:
            return Folder(self.file(name), os.open(place, _STEP | _NO_FOLLOW, dir_fd=at))
        except OSError as error:
            raise _explained(error, self.file(name), place, at) from None

    def read(self, name: str, limit: int) -> bytes:
        place, at = self._place(name)
        try:
            return read_regular(place, limit, follow=False, dir_fd=at)
        except OSError as error:
            raise _explained(error, self.file(name), place, at) from None

    def open(self, name: str) -> io.FileIO:
        place, at = self._place(name)
        try:
            return open_regular(place, follow=False, dir_fd=at)
        except OSError as error:
            raise _explained(error, self.file(name), place, at) from None

    def create(self, name: str) -> io.FileIO:
        """A new file, for writing. Raises ``FileExistsError`` for anything in its place, a link included."""
        place, at = self._place(name)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        return io.FileIO(os.open(place, flags, 0o666, dir_fd=at), "wb")

    def link(self, name: str, new: str) -> None:
        """Give a file a second name, unless the name is taken."""
        (old, at), (target, _) = self._place(name), self._place(new)
        os.link(old, target, src_dir_fd=at, dst_dir_fd=at, follow_symlinks=False)

    def stat(self, name: str) -> os.stat_result:
        """The status of a name itself, of a link too."""
        place, at = self._place(name)
        return os.stat(place, dir_fd=at, follow_symlinks=False)

    def target(self, name: str) -> str:
        """Where a link leads."""
        place, at = self._place(name)
        return os.readlink(place, dir_fd=at)

    def make(self, name: str) -> None:
        """A new directory in it."""
        place, at = self._place(name)
        os.mkdir(place, dir_fd=at)

    def unlink(self, name: str) -> None:
        """Remove a file's name."""
        place, at = self._place(name)
        os.unlink(place, dir_fd=at)

    def rmdir(self, name: str) -> None:
        """Remove a directory without contents."""
        place, at = self._place(name)
        os.rmdir(place, dir_fd=at)

    def may_change(self) -> bool:
        """Whether this process may add and remove names."""
        place, at = (self.path, None) if self._descriptor is None else (".", self._descriptor)
        return os.access(place, os.W_OK | os.X_OK, dir_fd=at)

    @contextmanager
    def entries(self) -> Iterator[Iterator[os.DirEntry[str]]]:
        """What is in it. Ask entries about themselves alone (``follow_symlinks=False``)."""
        if self._descriptor is None:
            with os.scandir(self.path) as found:
                yield found
            return
        descriptor = os.open(".", _LISTED, dir_fd=self._descriptor)
        try:
            with os.scandir(descriptor) as found:
                yield found
        finally:
            os.close(descriptor)

    def sync(self) -> None:
        """Make its names durable. Where the system cannot (Windows), the disk's own order is relied on."""
        if self._descriptor is None:
            return
        descriptor = os.open(".", _LISTED, dir_fd=self._descriptor)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _place(self, name: str) -> tuple[str, int | None]:
        """What a call takes: a name and the descriptor that it is relative to, or a path."""
        if "/" in name or name in {"", ".", ".."}:
            raise ValueError(f"{name!r} is not the name of a file")
        if self._descriptor is not None:
            return name, self._descriptor
        path = self.file(name)
        refuse_link(path)
        return path, None


def refuse_link(path: str) -> None:
    """Raises ``LinkError`` if a path is a link."""
    try:
        target = os.readlink(path)  # noqa: PTH115  # for each table; a Path costs as much as the call
    except (OSError, ValueError):
        return
    raise LinkError(path, target)


def _explained(error: OSError, path: str, name: str, at: int | None) -> OSError:
    """The error of an open that failed, with the whole path. Systems differ in what they say of a link (ELOOP, ENOTDIR,
    EMLINK).
    """
    try:
        return LinkError(path, os.readlink(name, dir_fd=at))
    except (OSError, ValueError):
        error.filename = path
        return error
