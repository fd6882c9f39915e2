"""Writes the files that users asked for: whole or not at all, and readable for others only as far as they may be."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tablectl.model.errors import TablectlError


def write_file(path: Path, data: bytes, *, private: bool = False) -> None:
    """Write a file atomically. Raises ``TablectlError`` naming it.

    An existing file keeps its permissions; a new one gets those of the umask. ``private`` removes all permissions of
    other users.
    """
    with _beside(path, 0o600 if private else 0o666) as (handle, name):
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        if path.exists():
            mode = stat.S_IMODE(path.stat().st_mode)
            name.chmod(mode & 0o600 if private else mode)
        name.replace(path)


def check_writable(path: Path) -> None:
    """Raise what ``write_file`` would raise, before there is anything to write."""
    with _beside(path, 0o600) as (handle, _name):
        os.close(handle)


@contextmanager
def _beside(path: Path, mode: int) -> Iterator[tuple[int, Path]]:
    """A new file in the directory of another one. It is deleted afterwards unless it was renamed."""
    try:
        if path.exists() and not path.is_file():
            raise TablectlError(f"{path}: this is not a file, and nothing else is replaced", "choose another name")
        path.parent.mkdir(parents=True, exist_ok=True)
        name = path.parent / f".{path.name}.{secrets.token_hex(8)}"
        handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)  # the system applies the umask
        try:
            yield handle, name
        finally:
            with suppress(OSError):
                name.unlink()
    except OSError as error:
        raise TablectlError(f"{path}: {error.strerror or error}", "choose a place that can be written") from error
