"""Names of tables and columns: parsing and comparison without regard to case. The only module that turns names and text
into SQL: every statement is built with its functions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TypeVar

from tablectl.delta.credentials import find_credentials, scrub
from tablectl.delta.locations import canonical_location, is_absolute

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_UNQUOTED = re.compile(r"[A-Za-z0-9_]+")
_ENVIRONMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}\Z")

DEFAULT_CATALOG = "spark_catalog"
_Named = TypeVar("_Named")


class NameSyntaxError(ValueError):
    """The text is not an identifier. The message says why and how to write it, without any credentials in the text."""

    def __init__(self, message: str) -> None:
        super().__init__(scrub(message))


def is_environment(text: str) -> bool:
    """Whether the text is a valid environment name: a word that is safe in a shell, a file name and a report."""
    return _ENVIRONMENT.match(text) is not None


def split_parts(text: str) -> tuple[str, ...]:
    """The parts of a dotted identifier as Spark SQL reads it: bare words, or any text in backticks.

    ``lake.`a.b`.c`` gives ``("lake", "a.b", "c")``. A backtick inside a quoted part is doubled. Raises
    ``NameSyntaxError``.
    """
    parts: list[str] = []
    rest = text
    while True:
        part, rest = _take_part(rest, text)
        parts.append(part)
        if not rest:
            return tuple(parts)
        if not rest.startswith("."):
            raise NameSyntaxError(f"unexpected {rest[0]!r} in {text!r}: {how_to_quote(text)}")
        rest = rest[1:]


def _take_part(rest: str, whole: str) -> tuple[str, str]:
    if rest.startswith("`"):
        match = re.match(r"`((?:[^`]|``)*)`(?!`)", rest)
        if match is None:
            raise NameSyntaxError(f"a backtick in {whole!r} is never closed")
        part = match.group(1).replace("``", "`")
    else:
        match = _UNQUOTED.match(rest)
        if match is None:
            bad = f"unexpected {rest[0]!r}" if rest else "an empty part"
            raise NameSyntaxError(f"{bad} in {whole!r}: {how_to_quote(whole)}")
        part = match.group()
    if not part:
        raise NameSyntaxError(f"an empty part in {whole!r}")
    return part, rest[match.end() :]


def how_to_quote(text: str) -> str:
    """A hint for a name that cannot be parsed: a bare location, or a part with special characters."""
    if "`" not in text and (text.startswith(("/", "./", "~")) or "://" in text):
        return f"write a location as delta.`{text}`"
    return "quote the part it belongs to with backticks"


def join_parts(parts: tuple[str, ...]) -> str:
    """The shortest text that ``split_parts`` parses to these parts."""
    return ".".join(part if _PLAIN.match(part) else quote_name(part) for part in parts)


@dataclass(frozen=True)
class TableName:
    """A table, by path (``catalog`` is empty, ``parts`` is one location) or by catalog (``parts`` is schema and table).

    ``text`` is the name as people write it, ``sql`` the name in statements, ``key`` the identity of the table.
    """

    catalog: str
    parts: tuple[str, ...]

    @property
    def is_path(self) -> bool:
        """Whether the table is identified by its location and needs no catalog."""
        return not self.catalog

    @property
    def text(self) -> str:
        """The name for people and plan files. ``parse_table`` parses it."""
        if self.is_path:
            return "delta." + quote_name(self.parts[0])
        # A schema called delta keeps its catalog: otherwise its tables would read as paths.
        short = self.catalog == DEFAULT_CATALOG and self.parts[0].casefold() != "delta"
        return join_parts(self.parts if short else (self.catalog, *self.parts))

    @property
    def sql(self) -> str:
        """The name in statements: every part quoted, always with the catalog, so that session defaults do not
        matter.
        """
        parts = ("delta", *self.parts) if self.is_path else (self.catalog, *self.parts)
        return ".".join(quote_name(part) for part in parts)

    @property
    def key(self) -> str:
        """Equal for two spellings of one table: catalogs ignore the case of names, storage does not."""
        return canonical_location(self.parts[0]) if self.is_path else join_parts((self.catalog, *self.parts)).casefold()

    @property
    def last(self) -> str:
        """What people call the table: the last part of its name, or the folder that it is."""
        return self.parts[-1].rpartition("/")[2] if self.is_path else self.parts[-1]

    def __str__(self) -> str:
        return self.text


def parse_table(text: str, catalog: str = DEFAULT_CATALOG) -> TableName:
    """The table that an identifier names. Two parts mean schema and table in ``catalog``.

    Raises ``NameSyntaxError`` for one part, more than three parts, and relative paths.
    """
    parts = split_parts(text)
    if len(parts) == 2 and parts[0].casefold() == "delta":
        location = parts[1]
        if not is_absolute(location):
            raise NameSyntaxError(f"the path {location!r} is relative: write it from the root, or as a URI")
        if credentials := find_credentials(location):
            raise NameSyntaxError(
                f"the location {location!r} holds {credentials}: remove it, and give credentials in the environment"
            )
        if any(part in {".", ".."} for part in location.split("/")):
            raise NameSyntaxError(f"the path {location!r} has a {'.. or .'} step: write the path it leads to")
        if any(ord(char) < 32 for char in location):
            raise NameSyntaxError(f"the path {location!r} has a control character")
        return TableName("", (location.rstrip("/") or location,))
    if len(parts) == 2:
        return TableName(catalog, parts)
    if len(parts) == 3:
        return TableName(parts[0], parts[1:])
    raise NameSyntaxError(
        f"{text!r} has {len(parts)} part{'s' if len(parts) > 1 else ''}: "
        "a table is schema.table, catalog.schema.table, or delta.`/path`"
    )


def find_name(named: Mapping[TableName, _Named], wanted: TableName) -> _Named | None:
    """The entry with exactly this name, otherwise the only entry with the same ``key``; ``None`` if neither exists."""
    alike = [entry for name, entry in named.items() if name.key == wanted.key]
    return named.get(wanted) or (alike[0] if len(alike) == 1 else None)


def matches(name: TableName, glob: str) -> bool:
    """Whether a glob matches a table. A catalog table matches by its name as people write it or with its catalog,
    without regard to case; a path table matches by its path or URI.
    """
    texts = name_texts(name)
    glob = glob if name.is_path else glob.casefold()
    return glob in texts or any(fnmatchcase(text, glob) for text in texts)


def name_texts(name: TableName) -> frozenset[str]:
    """The texts of a name that globs are compared with; of a catalog table without regard to case."""
    if name.is_path:
        return frozenset({name.text, name.parts[0], canonical_location(name.parts[0])})
    return frozenset({name.text.casefold(), name.key})


ColumnPath = tuple[str, ...]
"""A column by its logical name parts: ``("address", "city")`` is ``address.city``."""


def parse_column(text: str) -> ColumnPath:
    """A column as policies write it: nested fields as ``a.b``, a literal dot in backticks.

    Column names are less restricted than table names, since they can contain spaces and more: only dots and backticks
    are special. Raises ``NameSyntaxError``.
    """
    if "`" in text:
        return split_parts(text)
    parts = tuple(text.split("."))
    if not all(parts):
        raise NameSyntaxError(f"an empty part in column {text!r}")
    return parts


def column_text(path: ColumnPath) -> str:
    """The text that ``parse_column`` parses to this path."""
    if all("." not in part and "`" not in part for part in path):
        return ".".join(path)
    return ".".join(quote_name(part) for part in path)


def column_sql(path: ColumnPath) -> str:
    """The column name in statements, every part quoted."""
    return ".".join(quote_name(part) for part in path)


def fold_column(path: ColumnPath) -> ColumnPath:
    """Equal for two spellings of one column. Delta ignores the case of its letters alone (``toLowerCase`` in
    ``SchemaUtils.scala``): ``straße`` and ``strasse`` are two columns.
    """
    return tuple(part.lower() for part in path)


def quote_name(part: str) -> str:
    """One part of an identifier in backticks. Only a backtick can end it, so backticks are doubled."""
    return "`" + part.replace("`", "``") + "`"


_ESCAPES = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
INVISIBLE = (
    r"\u00a0\u00ad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u202a-\u202f\u205f-\u206f\u2800"
    r"\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Characters that leave no mark, as ranges of a pattern: Unicode's ``Default_Ignorable_Code_Point``, spaces but the
common one, controls of annotations, and two blank symbols. ``python -m tools.invisible_characters`` makes them. They
are fixed, so that SQL does not depend on Python's Unicode version: Unicode reserves the ranges for good.
"""
_ESCAPED = re.compile(rf"[\\'\x00-\x1f\x7f-\x9f\u2028\u2029{INVISIBLE}]")
"""Characters that end a literal or a line, and characters that are invisible in a plan."""


def quote_text(text: str) -> str:
    r"""A string literal on one line, as Spark's parser reads it with ``escapedStringLiterals`` off.

    Spark treats a backslash as an escape and expands ``${…}`` before it parses. The engine turns the expansion off in
    its own session (delta-0), so the text arrives unchanged. NUL is not written as ``\0``: Spark would read an octal
    number if two digits follow.
    """
    return "'" + _ESCAPED.sub(_escape, text) + "'"


def _escape(match: re.Match[str]) -> str:
    char = match.group()
    return _ESCAPES.get(char) or (f"\\u{ord(char):04x}" if ord(char) < 0x10000 else f"\\U{ord(char):08x}")


LOG = "_delta_log"
