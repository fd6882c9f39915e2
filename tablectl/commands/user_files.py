"""The files that users name: where plan files are and how one is read, and how every file is written.

A file is written whole or not at all, and is readable for others only as far as it may be. Folders that do not exist
are created below the current folder only. Elsewhere, a missing folder is more likely a typing mistake, or a disk that
is not mounted.
"""

from __future__ import annotations

import codecs
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tablectl.model.errors import TablectlError
from tablectl.model.plan import Plan
from tablectl.planning.plan_file import MAX_BYTES, load_plan
from tablectl.policies.read_config import load_config, repository_above
from tablectl.support.files import read_regular


def new_plan(name: Path) -> Path:
    """The path of a plan file to write. Raises ``InputError`` for a wrong configuration."""
    if name.parent != Path():
        return name
    directory = repository_above()
    plans = load_config(directory, os.environ, "").plans
    return directory / plans / name if plans else name


def saved_plan(name: Path) -> Path:
    """The path of an existing plan file: in the folder of plans if it is there, else as named. Raises as
    ``new_plan``.
    """
    place = new_plan(name)
    return place if place.exists() else name


def read_plan(path: Path, *, to_apply: bool = True) -> Plan:
    """The plan in a file. Raises ``TablectlError`` where it cannot be read, and ``PlanFileError`` where it was edited
    or damaged.
    """
    try:
        data = read_regular(path, MAX_BYTES)
    except OSError as error:
        raise TablectlError(
            f"{path}: {error.strerror or error}", "plans are written by `tablectl plan --out FILE`"
        ) from error
    # Editors and shells of Windows put a mark before a text that they save again.
    return load_plan(data.removeprefix(codecs.BOM_UTF8), str(path), to_apply=to_apply)


def write_file(path: Path, data: bytes, *, private: bool = False, root: Path | None = None) -> None:
    """Write a file atomically. Raises ``TablectlError`` naming it.

    Missing folders are created below ``root``; by default, below the current folder.

    An existing file keeps its permissions; a new one gets those of the umask. ``private`` removes all permissions of
    other users.
    """
    with _beside(path, 0o600 if private else 0o666, root) as (handle, name):
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        if path.exists():
            mode = stat.S_IMODE(path.stat().st_mode)
            name.chmod(mode & 0o600 if private else mode)
        name.replace(path)


def check_writable(path: Path) -> None:
    """Raise what ``write_file`` would raise, before there is anything to write."""
    with _beside(path, 0o600, None) as (handle, _name):
        os.close(handle)


@contextmanager
def _beside(path: Path, mode: int, root: Path | None) -> Iterator[tuple[int, Path]]:
    """A new file in the directory of another one. It is deleted afterwards unless it was renamed."""
    try:
        if path.exists() and not path.is_file():
            raise TablectlError(f"{path}: this is not a file, and nothing else is replaced", "choose another name")
        _make_folder(path.parent, root or Path.cwd())
        name = path.parent / f".{path.name}.{os.urandom(8).hex()}"
        handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)  # the system applies the umask
        try:
            yield handle, name
        finally:
            with suppress(OSError):
                name.unlink()
    except OSError as error:
        raise TablectlError(f"{path}: {error.strerror or error}", "choose a place that can be written") from error


def _make_folder(folder: Path, root: Path) -> None:
    """Create a missing folder below ``root``. Raises ``TablectlError`` for one elsewhere, and ``OSError``."""
    if not folder.exists() and not folder.resolve().is_relative_to(root.resolve()):
        raise TablectlError(
            f"the folder {folder} does not exist", "create it first: only folders below the current one are created"
        )
    folder.mkdir(parents=True, exist_ok=True)
