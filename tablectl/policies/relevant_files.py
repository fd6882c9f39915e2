"""Which policy files can say something about some tables, without parsing them.

A command about one table of ten thousand needs its own entry and all patterns. To parse YAML takes two thousand times
as long as to search it. So a file is left out if its text has no pattern, and nothing that could stand for the name of
the table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TypeVar

from tablectl.delta.names import TableName

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
