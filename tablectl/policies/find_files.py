"""Finds policy files, reads their bytes, and says which of them can matter for some tables, without parsing them.

A command about one table of ten thousand needs its own entry and all patterns. To parse YAML takes two thousand times
as long as to search it. So a file is left out if its text has no pattern, and nothing that could stand for the name of
the table.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from tablectl.delta.names import TableName
from tablectl.model.errors import InputError, Problem
from tablectl.policies.yaml_document import MAX_BYTES, too_large
from tablectl.support.files import NotRegularError, TooLargeError, read_regular

_SUFFIXES = (".yaml", ".yml")
_START = "to start here: `tablectl init`, or `tablectl import TABLES… --out policies/tables.yaml` for live tables"


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


def read_text(path: Path) -> str:
    """The text of a file in UTF-8 within the size limit. Raises ``InputError``."""
    problems: list[Problem] = []
    data = read_bytes(path, problems)
    if data is None:
        raise InputError(tuple(problems))
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError((Problem(shown_path(path), 0, 0, "it is not text in UTF-8"),)) from None


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


_Key = TypeVar("_Key")
_SHORTEST = 3
"""Shorter words are in every file."""
_MOST_WORDS = 200
"""From so many words on, it is quicker to parse all files."""
_COMMENT_LINE = re.compile(rb"^[ \t]*#.*$", re.MULTILINE)
_OTHER_LINE_END = re.compile(rb"\r(?!\n)|\xc2\x85|\xe2\x80[\xa8\xa9]")
"""What ends a line in YAML alone: policies can follow it in the line of a comment."""
_UNCLEAR = re.compile(
    rb"""[*?\\\x80-\xff]            # globs, aliases, escapes, and letters that fold into other letters
    | [^\s\[,{:]\[                  # a class of characters in a glob; a list has a space or a bracket before it
    | \$\{[^}]*\}(?![./]+[a-z0-9_$`])  # a variable in the last part of a name or of a location
    | (?:\A|^---[ \t\r]*\n)(?:[ \t\r]*\n)*[ \t]+[^\s]  # a file whose keys are indented
    | ^(?!version:|defaults:|tables:|---[ \t\r]*$)[^\s#]  # another key of the file, or a file in one pair of braces
    """,
    re.MULTILINE | re.VERBOSE,
)
_WORD = re.compile(r"[a-z0-9_]+")


def relevant_files(files: Mapping[_Key, bytes], tables: Iterable[TableName]) -> dict[_Key, bytes]:
    """The files that may declare one of the tables by name, by location or by a pattern, or what other files use. The
    others do neither.
    """
    words = _words(tables)
    return dict(files) if words is None else {key: data for key, data in files.items() if _may_declare(data, words)}


def naming_files(files: Mapping[_Key, bytes], tables: Iterable[TableName]) -> dict[_Key, bytes]:
    """The files that may declare one of the tables by name or by location. ``files`` declare nothing for tables of
    others: they are none of ``shared_files``.
    """
    words = _words(tables)
    return (
        dict(files) if words is None else {key: data for key, data in files.items() if _names_any(data.lower(), words)}
    )


def shared_files(files: Mapping[_Key, bytes]) -> dict[_Key, bytes]:
    """The files that may declare something for tables of others: patterns, profiles, and what is not understood."""
    return relevant_files(files, ())


def _may_declare(data: bytes, words: frozenset[bytes]) -> bool:
    text = (_COMMENT_LINE.sub(b"", data) if b"#" in data else data).lower()
    unclear = _OTHER_LINE_END.search(data) or _UNCLEAR.search(text)
    return unclear is not None or _names_any(text, words)


def _names_any(text: bytes, words: frozenset[bytes]) -> bool:
    return any(word in text for word in words)


def _words(tables: Iterable[TableName]) -> frozenset[bytes] | None:
    """A word of each table that every spelling of its name contains; ``None`` if a table has none, or for too many
    tables.

    The last part is used, since a catalog can be left out, and variables usually stand for catalogs and schemas.
    """
    words = set[bytes]()
    for table in tables:
        last = table.parts[-1].rstrip("/").rpartition("/")[2] if table.is_path else table.parts[-1]
        longest = max(_WORD.findall(last.casefold()), key=len, default="")
        if len(longest) < _SHORTEST or len(words) > _MOST_WORDS:
            return None
        words.add(longest.encode())
    return frozenset(words)
