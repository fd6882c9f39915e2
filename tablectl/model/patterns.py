"""Patterns for names of tables: what they match, and how many of their characters are literal. Pure: lists no tables.

In a glob, ``*`` matches any characters, ``?`` matches one, ``[ab]`` and ``[a-z]`` match one of a set, and ``[!ab]``
matches one outside the set. ``[*]`` matches the character itself: a class of one character is literal.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import groupby

from tablectl.delta.locations import canonical_location
from tablectl.delta.names import (
    DEFAULT_CATALOG,
    NameSyntaxError,
    TableName,
    join_parts,
    parse_table,
    quote_name,
)

MAGIC = "*?["
ANY_DEPTH = "**"
"""The step of a pattern that stands for one directory or more, one below the other."""
_TOKEN = re.compile(r"(?P<many>\*+)|(?P<one>\?)|\[(?P<not>!?)(?P<chars>[^\]]+)\]|(?P<literal>.)", re.DOTALL)
_ROOT = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?://[^/]*)?/?|/")


def escape_glob(text: str) -> str:
    """The glob that matches only this text."""
    return re.sub(r"([*?\[])", r"[\1]", text)


def literal_text(glob: str) -> str | None:
    """The only text that a glob matches; ``None`` if it can match several."""
    tokens = tuple(literal_characters(glob))
    return None if None in tokens else "".join(token or "" for token in tokens)


def count_literals(glob: str) -> int:
    """The number of literal characters in a glob."""
    return sum(token is not None for token in literal_characters(glob))


def literal_characters(glob: str) -> Iterator[str | None]:
    """The tokens of a glob: the character of a literal token, ``None`` for a token that matches several characters."""
    for token in _TOKEN.finditer(glob):
        if token["literal"]:
            yield token["literal"]
        else:
            yield token["chars"] if token["chars"] and len(token["chars"]) == 1 and not token["not"] else None


def check_glob(glob: str) -> None:
    """Raises ``NameSyntaxError`` for ``**`` and for unclosed or empty classes, which have no meaning here."""
    for token in _TOKEN.finditer(glob):
        if token["many"] and len(token["many"]) > 1:
            raise NameSyntaxError(f"{token['many']} in {glob!r}: write *, which matches inside one part of a name")
        if token["literal"] == "[" or token["chars"] == "!":
            raise NameSyntaxError(f"a [ in {glob!r} is never closed: write [[] for the character itself")


@dataclass(frozen=True, slots=True)
class CatalogPattern:
    """Matches tables of a catalog. ``schema`` and ``table`` are globs. The catalog is literal, because Spark does not
    list catalogs that were not used before.
    """

    catalog: str
    schema: str
    table: str

    @property
    def text(self) -> str:
        """The pattern for people, as a policy writes it."""
        return ".".join(self._parts(short=self.catalog == DEFAULT_CATALOG and self.schema.casefold() != "delta"))

    @property
    def key(self) -> str:
        """Equal for two spellings of one pattern."""
        return ".".join(self._parts(short=False)).casefold()

    @property
    def literals(self) -> int:
        """The number of literal characters. If two patterns match a table, the one with more takes precedence."""
        return len(self.catalog) + count_literals(self.schema) + count_literals(self.table)

    @property
    def prefixes(self) -> tuple[str, ...]:
        """Folded texts: the ``text`` or the ``key`` of every matching table starts with one of them."""
        schema = literal_text(self.schema)
        named = (self.catalog,) if schema is None else (self.catalog, schema)
        short = named[1:] if self.catalog == DEFAULT_CATALOG else named
        return tuple(f"{join_parts(each)}.".casefold() if each else "" for each in (named, short))

    def matches(self, name: TableName) -> bool:
        """Whether the pattern matches a table. Catalogs ignore letter case."""
        if name.is_path or name.catalog.casefold() != self.catalog.casefold():
            return False
        return self.matches_schema(name.parts[0]) and _folded_match(name.parts[1], self.table)

    def named(self, last: str) -> TableName | None:
        """The only name with this last part that the pattern matches; ``None`` if there is none, or if there are
        several.
        """
        schema = literal_text(self.schema)
        fits = schema and "/" not in last and _folded_match(last, self.table)
        return TableName(self.catalog, (schema, last)) if schema and fits else None

    def matches_schema(self, schema: str) -> bool:
        """Whether a schema of the catalog may contain matching tables."""
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
    """Matches tables by location: directories below ``base``, one level for each glob in ``steps``. The only step of a
    place on the command line is ``ANY_DEPTH``: directories of any depth. Policies cannot write it (``check_glob``).
    """

    base: str
    """Literal and absolute, in the policy's spelling."""
    steps: tuple[str, ...]

    @property
    def text(self) -> str:
        """The pattern for people, as a policy writes it."""
        return "delta." + quote_name("/".join((escape_glob(self.base).rstrip("/"), *self.steps)))

    @property
    def key(self) -> str:
        """Equal for two spellings of one pattern."""
        return "/".join((escape_glob(canonical_location(self.base)).rstrip("/"), *self.steps))

    @property
    def literals(self) -> int:
        """The number of literal characters, as in ``CatalogPattern``. Each slash is one."""
        return count_literals(self.key)

    @property
    def prefixes(self) -> tuple[str, ...]:
        """Texts: the ``text`` or a location of every matching table starts with one of them."""
        return tuple(
            f"{start.rstrip('/')}/"
            for location in (self.base, canonical_location(self.base))
            for start in (location, "delta." + quote_name(location)[:-1])
        )

    def matches(self, name: TableName) -> bool:
        """Whether the pattern matches a table. Only path tables can match."""
        base = canonical_location(self.base).rstrip("/") + "/"
        if not name.is_path or not name.key.startswith(base):
            return False
        return self.takes(name.key.removeprefix(base).split("/"))

    def takes(self, steps: Sequence[str]) -> bool:
        """Whether the pattern matches the directory that ``steps`` lead to from ``base``."""
        if self.is_deep:
            return all(step_matches(step, "*") for step in steps)
        return len(steps) == len(self.steps) and all(map(step_matches, steps, self.steps))

    @property
    def is_deep(self) -> bool:
        """Whether it matches directories of any depth."""
        return self.steps == (ANY_DEPTH,)

    def named(self, last: str) -> TableName | None:
        """As ``CatalogPattern.named``, also for the end of a path: its first steps can be those that end ``base``."""
        parts = last.split("/")
        head, steps = parts[: -len(self.steps)], parts[-len(self.steps) :]
        below = f"{self.base.rstrip('/')}/".endswith("/".join(("", *head, "")))
        fits = below and not self.is_deep and self.takes(steps)
        return self.table(tuple(steps)) if fits else None

    def table(self, steps: tuple[str, ...]) -> TableName:
        """The table in the directory that ``steps`` lead to from ``base``."""
        return TableName("", ("/".join((self.base.rstrip("/"), *steps)),))


TablePattern = CatalogPattern | PathPattern


def step_matches(name: str, glob: str) -> bool:
    """Whether a glob matches a directory name. Hidden directories (``_delta_log``, ``.tmp``) match only a glob that
    starts with the same character.
    """
    hidden = name[:1] in {"_", "."} and next(literal_characters(glob), None) != name[:1]
    return not hidden and fnmatchcase(name, glob)


def make_catalog_pattern(catalog: str, schema: str, table: str) -> CatalogPattern | TableName:
    """The pattern of two globs in a catalog, or the one table if both globs are literal.

    Raises ``NameSyntaxError`` for a malformed glob.
    """
    for glob in (schema, table):
        check_glob(glob)
    literal = (literal_text(schema), literal_text(table))
    if literal[0] is not None and literal[1] is not None:
        return TableName(catalog, (literal[0], literal[1]))
    return CatalogPattern(catalog, schema, table)


def make_path_pattern(glob: str) -> PathPattern | TableName:
    """The pattern of a location glob, or the one table if the glob is literal.

    Raises ``NameSyntaxError`` if the location is not absolute, or if the bucket name contains a glob.
    """
    (location,) = parse_table(f"delta.{quote_name(glob)}").parts
    root = _ROOT.match(location)
    assert root is not None  # parse_table accepts only absolute locations
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


_GRAM = 3
_Key = tuple[str, str]
_EVERY: _Key = ("every", "")


@dataclass(frozen=True, slots=True)
class PatternIndex:
    """Patterns filed by a text that they require."""

    filed: dict[_Key, tuple[int, ...]]
    lengths: dict[str, tuple[int, ...]]
    """The lengths of the prefixes and suffixes in ``filed``."""

    def candidates(self, name: TableName) -> tuple[int, ...]:
        """The positions of the patterns that may match a name, sorted."""
        return self.candidates_of(_subject(name)) if self.filed else ()

    def candidates_of(self, text: str) -> tuple[int, ...]:
        """The positions of the globs that may match a text, sorted."""
        starts = (("start", text[:length]) for length in self.lengths["start"] if length <= len(text))
        ends = (("end", text[-length:]) for length in self.lengths["end"] if length <= len(text))
        grams = (("gram", gram) for gram in set(_grams(text)))
        keys = (_EVERY, *starts, *ends, *grams)
        return tuple(sorted(place for key in keys for place in self.filed.get(key, ())))


def index_patterns(patterns: Sequence[TablePattern]) -> PatternIndex:
    """Builds the index. Patterns are identified by their positions in the sequence."""
    return index_globs([_glob(each) for each in patterns])


def index_globs(globs: Sequence[str]) -> PatternIndex:
    """Builds the index of globs alone. Letter case counts."""
    offered = [tuple(_required(each)) for each in globs]
    counts = Counter(key for keys in offered for key in keys)
    filed = defaultdict[_Key, list[int]](list)
    for place, keys in enumerate(offered):
        filed[min(keys, key=lambda key: (counts[key], -len(key[1])), default=_EVERY)].append(place)
    lengths = {kind: tuple(sorted({len(text) for name, text in filed if name == kind})) for kind in ("start", "end")}
    return PatternIndex({key: tuple(places) for key, places in filed.items()}, lengths)


def _subject(name: TableName) -> str:
    if name.is_path:
        return f"p{name.key}"
    return "\0".join(("c" + name.catalog, *name.parts)).casefold()


def _glob(pattern: TablePattern) -> str:
    if isinstance(pattern, CatalogPattern):
        return "\0".join((escape_glob("c" + pattern.catalog), pattern.schema, pattern.table)).casefold()
    return f"p{pattern.key}"


def _required(glob: str) -> Iterator[_Key]:
    """The texts in every text that the glob matches. A text can occur twice."""
    runs = [(known, "".join(char or "" for char in run)) for known, run in _runs(glob)]
    texts = [text for known, text in runs if known]
    if runs and runs[0][0]:
        yield "start", runs[0][1]
    if runs and runs[-1][0]:
        yield "end", runs[-1][1]
    for gram in {gram for text in texts for gram in _grams(text)}:
        yield "gram", gram


def _runs(glob: str) -> Iterator[tuple[bool, list[str | None]]]:
    return ((known, list(run)) for known, run in groupby(literal_characters(glob), key=lambda char: char is not None))


def _grams(text: str) -> Iterator[str]:
    return (text[start : start + _GRAM] for start in range(len(text) - _GRAM + 1))
