"""Finds policy files and reads their bytes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from tablectl.model.errors import Problem
from tablectl.policies.yaml_document import MAX_BYTES, too_large
from tablectl.support.files import NotRegularError, TooLargeError, read_regular

_SUFFIXES = (".yaml", ".yml")
_START = "to start here: `tablectl init`, or `tablectl import TABLES… --output policies/tables.yaml` for live tables"


def read_files(paths: Sequence[Path], problems: list[Problem], root: str = "") -> dict[Path, bytes]:
    """The bytes of the files that ``find_files`` finds. Unreadable files are reported and left out."""
    contents = ((path, read_bytes(path, problems)) for path in find_files(paths, problems, root))
    return {path: data for path, data in contents if data is not None}


def find_files(paths: Sequence[Path], problems: list[Problem], root: str = "") -> tuple[Path, ...]:
    """The files in ``paths`` and every ``*.yaml`` and ``*.yml`` in its directories, sorted, without duplicates.

    Names in directories that start with a dot are skipped. Links are followed, and loops of links are followed once.
    With ``root``, a link that leads out of this directory is reported, and not followed.
    """
    found: dict[str, Path] = {}
    for path in paths:
        if not _stays(path, root, problems):
            continue
        inside = tuple(_walk(path, problems, root)) if _is_directory(path) else (path,)
        if not inside:
            hint = "name a file, or the directory that holds the policies"
            problems.append(Problem(shown_path(path), 0, 0, "no *.yaml or *.yml file in this directory", hint))
        for file in inside:
            found.setdefault(os.path.realpath(file), file)
    if not paths:
        problems.append(Problem("policies", 0, 0, "no files to read", "name the directory that holds the policies"))
    return tuple(sorted(found.values()))


def _is_directory(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # no permission: reading the path as a file reports it
        return False


def _stays(path: Path, root: str, problems: list[Problem]) -> bool:
    """Whether a path is below a directory with all links resolved. Reports it otherwise."""
    if not root or f"{os.path.realpath(path)}/".startswith(f"{root.rstrip('/')}/"):
        return True
    hint = "a branch can only plan its own files: an error about another file would show a part of it"
    problems.append(Problem(shown_path(path), 0, 0, "a link that leads out of the repository", hint))
    return False


def _walk(top: Path, problems: list[Problem], root: str) -> Iterator[Path]:
    def unreadable(error: OSError) -> None:
        problems.append(Problem(shown_path(Path(error.filename)), 0, 0, f"cannot be read: {error.strerror}"))

    seen: set[str] = set()
    for folder, folders, names in os.walk(top, onerror=unreadable, followlinks=True):
        real = os.path.realpath(folder)
        if real in seen:
            folders.clear()
            continue
        seen.add(real)
        folders[:] = sorted(
            name for name in folders if not name.startswith(".") and _stays(Path(folder, name), root, problems)
        )
        for name in sorted(names):
            if name.endswith(_SUFFIXES) and not name.startswith(".") and _stays(Path(folder, name), root, problems):
                yield Path(folder) / name


def read_bytes(path: Path, problems: list[Problem], missing: bytes | None = None) -> bytes | None:
    """The bytes of a file within the size limit. If the file does not exist, returns ``missing`` if given. Reports a
    problem and returns ``None`` otherwise.
    """
    file = shown_path(path)
    try:
        return read_regular(path, MAX_BYTES)
    except (NotRegularError, IsADirectoryError):
        problems.append(Problem(file, 0, 0, "this is not a file"))
        return None
    except TooLargeError:
        problems.append(too_large(file))
        return None
    except FileNotFoundError:
        if path.is_symlink():  # a link was put here on purpose: its policies must not be left out silently
            problems.append(Problem(file, 0, 0, "a link that leads nowhere"))
            return None
        if missing is None:
            problems.append(Problem(file, 0, 0, "no such file or directory", _START))
        return missing
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        problems.append(Problem(file, 0, 0, f"cannot be read: {reason}"))
        return None


def shown_path(path: Path) -> str:
    """A path as the user wrote it, printable even if it is not UTF-8 or contains line breaks."""
    text = os.fsencode(path).decode("utf-8", "replace")
    return text if text.isprintable() else repr(text)[1:-1]
