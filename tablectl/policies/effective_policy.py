"""The effective policy of one table: the values, the lines that declare them, and the lines they override. Reads no
live table.

A plan file does not store these lines: its bytes depend on the declarations and the live tables, not on the layout of
files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from tablectl.attributes.policy import OWNED, VALUE_TYPES
from tablectl.delta.dialects import DEFAULT_DIALECT
from tablectl.delta.locations import canonical_location
from tablectl.delta.names import DEFAULT_CATALOG, NameSyntaxError, TableName, parse_table, quote_name
from tablectl.delta.properties import find_known
from tablectl.model.errors import InputError, Problem, UsageError
from tablectl.model.patterns import MAGIC
from tablectl.policies.declared_tables import Specs, TableSpec, resolve
from tablectl.policies.merge_layers import Layer, ResolvedValue, merge, rank
from tablectl.policies.spelling_hints import nearest, shown
from tablectl.policies.variables import typed_place
from tablectl.policies.yaml_nodes import SourceFile


@dataclass(frozen=True, slots=True)
class Explanation:
    """Everything that the policies declare for one table."""

    table: TableName
    declarations: tuple[Layer, ...]
    """Its own entry and the patterns that match it, the highest precedence first."""
    resolved: tuple[ResolvedValue, ...]
    """The effective and the cancelled values, in the order of plans."""
    dialect: str = DEFAULT_DIALECT

    @property
    def silent(self) -> tuple[str, ...]:
        """The attributes of the dialect that no policy names. They are not managed."""
        named = {each.key.partition(".")[0] for each in self.resolved}
        return tuple(name for name, each in VALUE_TYPES.items() if name not in named and self.dialect in each.dialects)


def explain(specs: Specs, text: str, catalog: str = DEFAULT_CATALOG, dialect: str = DEFAULT_DIALECT) -> Explanation:
    """The declarations for the table of an identifier. Two parts mean schema and table in ``catalog``.

    The table need not exist, because a pattern applies to every name that it matches. Raises ``UsageError`` if no
    policy applies to the table, and ``InputError`` if patterns contradict each other.
    """
    name = parse_name(text, catalog, dialect)
    own = (each for each in specs.declarations.named if each.key == name.key)
    declarations = (*own, *specs.declarations.matching(name))
    if not declarations:
        raise UsageError(f"no policy declares {name.text}", _instead(specs, name))
    problems: list[Problem] = []
    resolve([(name, declarations)], specs.declarations.profiles, problems)
    if problems:
        raise InputError(tuple(problems))
    return Explanation(name, declarations, merge(rank(declarations, specs.declarations.profiles)), dialect)


def spec_finder(specs: Specs) -> Callable[[TableName], TableSpec | None]:
    """Finds the spec of a table: from its own entry, from the entry of another name with the same location, or from
    patterns. To look up each of ten thousand tables takes a moment.

    It returns ``None`` if no policy applies, and raises ``InputError`` if patterns contradict each other.
    """
    named = {spec.name.key: spec for spec in reversed(specs.tables)}
    placed = {canonical_location(spec.location): spec for spec in reversed(specs.tables) if spec.location}

    def find(name: TableName) -> TableSpec | None:
        own = named.get(name.key) or (placed.get(name.key) if name.is_path else None)
        return own or _from_patterns(specs, name)

    return find


def spec_for(specs: Specs, name: TableName) -> TableSpec | None:
    """The spec of one table. As ``spec_finder``."""
    return spec_finder(specs)(name)


def _from_patterns(specs: Specs, name: TableName) -> TableSpec | None:
    problems: list[Problem] = []
    patterns = specs.declarations.matching(name)
    found = resolve([(name, patterns)] if patterns else [], specs.declarations.profiles, problems)
    if problems:
        raise InputError(tuple(problems))
    return found[0] if found else None


def parse_name(text: str, catalog: str, dialect: str) -> TableName:
    """The table of an identifier. Raises ``UsageError`` for other text, including the names of attributes and
    properties.
    """
    place = typed_place(text)
    if place is not None:
        text = f"delta.{quote_name(place)}"
    if text in VALUE_TYPES or text.lower() in OWNED:
        name = OWNED.get(text.lower(), text)
        about = VALUE_TYPES[name].description if name in VALUE_TYPES else ""
        raise UsageError(f"{shown(text)} is an attribute of tables, not a table", about)
    if find_known(text, dialect):
        raise UsageError(f"{shown(text)} is a property of tables, not a table", "it goes under `properties:`")
    try:
        return parse_table(text, catalog)
    except NameSyntaxError as error:
        raise UsageError(str(error), "name one table that it matches" if any(map(text.count, MAGIC)) else "") from None


class AmbiguousNameError(UsageError):
    """A word by which people call several tables."""


def called(specs: Specs, word: str) -> TableName:
    """The table that people call by the last part of its name or the end of its path, if the policies leave no doubt
    which one it is. Entries of tables come before patterns, which match tables that may not exist.

    Raises ``UsageError`` if no table or several are called so.
    """
    own = [each.table for each in specs.declarations.named if each.table]
    patterns = [each.pattern for each in specs.declarations.patterns if each.pattern]
    found = {each.key: each for each in own if _ends_with(each, word)}
    found = found or {each.key: each for pattern in patterns if (each := pattern.named(word))}
    if len(found) == 1:
        return next(iter(found.values()))
    if found:
        texts = sorted(each.text for each in found.values())
        raise AmbiguousNameError(f"several tables are called {word}: {', '.join(texts)}", "write more of the name")
    near = nearest(word, [each.last for each in own])
    raise UsageError(f"no policy names a table {shown(word)}", f"did you mean {near}?" if near else HOW_TO_NAME)


HOW_TO_NAME = "a table is schema.table, catalog.schema.table, or its path: /lake/orders"
_WORD = re.compile(r"[^\W\d][\w-]*(?:/[\w-]+)*\Z")


def is_word(text: str) -> bool:
    """Whether a text can be the last part of a name alone, or the end of a path as reports print it: ``web/clicks``."""
    return _WORD.match(text) is not None


def _ends_with(name: TableName, word: str) -> bool:
    if "/" not in word:
        return name.last.casefold() == word.casefold()
    return name.is_path and name.key.casefold().endswith(f"/{word.casefold()}")


def _instead(specs: Specs, name: TableName) -> str:
    for spec in specs.tables:
        if name.is_path and spec.location and canonical_location(spec.location) == name.key:
            return f"what lies there is declared as {spec.name.text}"
    near = nearest(name.text, [each.text for each in (*specs.declarations.named, *specs.declarations.patterns)])
    return f"did you mean {near}?" if near else "what no policy names is not managed"


Sources = Mapping[str, Mapping[str, SourceFile]]
"""By table and change id. The empty id is the table's own key, or the key of a pattern that matches it."""


def policy_lines_of(specs: Specs, tables: Iterable[str]) -> Sources:
    """The positions for tables by name. Tables to which no policy applies (any more), or patterns that contradict each
    other, are missing.
    """
    find = spec_finder(specs)
    found: dict[str, Mapping[str, SourceFile]] = {}
    for text in tables:
        try:
            spec = find(parse_table(text))
        except (NameSyntaxError, InputError):  # a plan of another version, or of other policies
            continue
        if spec is not None:
            found[text] = {**spec.sources, "": spec.declared}
    return found
