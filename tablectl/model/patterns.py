"""Names of many tables: what a pattern matches, and how literal it is. Pure: nothing is listed here.

A glob is a text in which ``*`` stands for any characters, ``?`` for one, ``[ab]`` and ``[a-z]`` for one of some,
``[!ab]`` for one that is none of them. ``[*]`` is the character itself: a class of one is literal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from tablectl.delta.names import (
    DEFAULT_CATALOG,
    NameSyntaxError,
    TableName,
    canonical_location,
    join_parts,
    parse_table,
)
from tablectl.delta.sql import quote_name

MAGIC = "*?["
_TOKEN = re.compile(r"(?P<many>\*+)|(?P<one>\?)|\[(?P<not>!?)(?P<chars>[^\]]+)\]|(?P<literal>.)", re.DOTALL)
_ROOT = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?://[^/]*)?/?|/")


def escape_glob(text: str) -> str:
    """The glob that matches this text alone."""
    return re.sub(r"([*?\[])", r"[\1]", text)


def literal_text(glob: str) -> str | None:
    """The one text that a glob matches, ``None`` where it matches many."""
    tokens = tuple(literal_characters(glob))
    return None if None in tokens else "".join(token or "" for token in tokens)


def count_literals(glob: str) -> int:
    """How many characters of a glob stand for themselves."""
    return sum(token is not None for token in literal_characters(glob))


def literal_characters(glob: str) -> Iterator[str | None]:
    """Each token of a glob: the character that it stands for, ``None`` where it stands for several."""
    for token in _TOKEN.finditer(glob):
        if token["literal"]:
            yield token["literal"]
        else:
            yield token["chars"] if token["chars"] and len(token["chars"]) == 1 and not token["not"] else None


def check_glob(glob: str) -> None:
    """Raises ``NameSyntaxError`` for what people write in globs and what means nothing here."""
    for token in _TOKEN.finditer(glob):
        if token["many"] and len(token["many"]) > 1:
            raise NameSyntaxError(f"{token['many']} in {glob!r}: write *, which matches inside one part of a name")
        if token["literal"] == "[" or token["chars"] == "!":
            raise NameSyntaxError(f"a [ in {glob!r} is never closed: write [[] for the character itself")


@dataclass(frozen=True, slots=True)
class CatalogPattern:
    """Tables of a catalog. ``schema`` and ``table`` are globs; the catalog is named, since Spark lists none unasked."""

    catalog: str
    schema: str
    table: str

    @property
    def text(self) -> str:
        """For people, as a policy writes it."""
        return ".".join(self._parts(short=self.catalog == DEFAULT_CATALOG and self.schema.casefold() != "delta"))

    @property
    def key(self) -> str:
        """Equal for two spellings of one pattern."""
        return ".".join(self._parts(short=False)).casefold()

    @property
    def literals(self) -> int:
        """How many characters are literal: of two patterns for one table the one with more wins."""
        return len(self.catalog) + count_literals(self.schema) + count_literals(self.table)

    @property
    def prefixes(self) -> tuple[str, ...]:
        """What the ``text`` or the ``key`` of a table that matches begins with, case folded."""
        schema = literal_text(self.schema)
        named = (self.catalog,) if schema is None else (self.catalog, schema)
        short = named[1:] if self.catalog == DEFAULT_CATALOG else named
        return tuple(f"{join_parts(each)}.".casefold() if each else "" for each in (named, short))

    def matches(self, name: TableName) -> bool:
        """Whether a table is one of them; letter case does not count in catalogs."""
        if name.is_path or name.catalog.casefold() != self.catalog.casefold():
            return False
        return self.matches_schema(name.parts[0]) and _folded_match(name.parts[1], self.table)

    def matches_schema(self, schema: str) -> bool:
        """Whether a schema of the catalog may hold some of them."""
        return _folded_match(schema, self.schema)

    def _parts(self, *, short: bool) -> Iterator[str]:
        if not short:
            yield join_parts((self.catalog,))
        for glob in (self.schema, self.table):
            literal = literal_text(glob)
            yield glob if literal is None else join_parts((literal,))


def _folded_match(text: str, glob: str) -> bool:
    return fnmatchcase(text.casefold(), glob.casefold())


@dataclass(frozen=True, slots=True)
class PathPattern:
    """Tables by location: directories below ``base``, one step down for each glob of ``steps``."""

    base: str
    """Literal, absolute, spelled as the policy spells it."""
    steps: tuple[str, ...]

    @property
    def text(self) -> str:
        """For people, as a policy writes it."""
        return "delta." + quote_name("/".join((escape_glob(self.base).rstrip("/"), *self.steps)))

    @property
    def key(self) -> str:
        """Equal for two spellings of one pattern."""
        return "/".join((escape_glob(canonical_location(self.base)).rstrip("/"), *self.steps))

    @property
    def literals(self) -> int:
        """As for a ``CatalogPattern``."""
        return len(canonical_location(self.base)) + sum(map(count_literals, self.steps))

    @property
    def prefixes(self) -> tuple[str, ...]:
        """What the ``text`` or a location of a table that matches begins with."""
        return tuple(
            f"{start.rstrip('/')}/"
            for location in (self.base, canonical_location(self.base))
            for start in (location, "delta." + quote_name(location)[:-1])
        )

    def matches(self, name: TableName) -> bool:
        """Whether a path table is one of them."""
        base = canonical_location(self.base).rstrip("/") + "/"
        if not name.is_path or not name.key.startswith(base):
            return False
        steps = name.key.removeprefix(base).split("/")
        return len(steps) == len(self.steps) and all(map(step_matches, steps, self.steps))

    def table(self, steps: tuple[str, ...]) -> TableName:
        """The table at the end of some steps down from ``base``."""
        return TableName("", ("/".join((self.base.rstrip("/"), *steps)),))


TablePattern = CatalogPattern | PathPattern


def step_matches(name: str, glob: str) -> bool:
    """Whether a directory is one that a step leads to. Hidden ones (``_delta_log``, ``.tmp``) only if named so."""
    hidden = name[:1] in {"_", "."} and next(literal_characters(glob), None) != name[:1]
    return not hidden and fnmatchcase(name, glob)


def make_catalog_pattern(catalog: str, schema: str, table: str) -> CatalogPattern | TableName:
    """The tables that two globs name in a catalog; one table where the globs are literal after all."""
    for glob in (schema, table):
        check_glob(glob)
    literal = (literal_text(schema), literal_text(table))
    if literal[0] is not None and literal[1] is not None:
        return TableName(catalog, (literal[0], literal[1]))
    return CatalogPattern(catalog, schema, table)


def make_path_pattern(glob: str) -> PathPattern | TableName:
    """The tables whose locations a glob names; one table where the glob is literal after all.

    Raises ``NameSyntaxError`` for what is no absolute location, and for a glob in the name of a bucket.
    """
    (location,) = parse_table(f"delta.{quote_name(glob)}").parts
    root = _ROOT.match(location)
    assert root is not None  # parse_table takes absolute locations only
    if any(char in root[0] for char in MAGIC):
        raise NameSyntaxError(f"the path {glob!r} has a glob where its store is named: name one bucket or container")
    steps = [step for step in location[root.end() :].split("/") if step]
    for step in steps:
        check_glob(step)
    literal = [literal_text(step) for step in steps]
    if {".", ".."} & set(literal):
        raise NameSyntaxError(f"the path {glob!r} has a .. or . step: write the path it leads to")
    many = literal.index(None) if None in literal else len(steps)
    base = root[0] + "/".join(step or "" for step in literal[:many])
    return PathPattern(base, tuple(steps[many:])) if many < len(steps) else parse_table(f"delta.{quote_name(base)}")
