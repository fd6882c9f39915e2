"""Locates catalog tables: expands patterns and looks up names, with one statement per schema for any number
of tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field
from functools import partial
from itertools import chain, islice

from tablectl.delta.names import TableName, find_name
from tablectl.engine.port import SIMPLE_NAME, Catalog
from tablectl.model.errors import BrokenTableError, EngineError, LiveError, TablectlError, of_table
from tablectl.model.patterns import CatalogPattern, index_globs, index_patterns, literal_text
from tablectl.support.frozen import frozen

_CONCURRENCY = 8
_AT_ONCE = 100
"""The maximum number of names in one statement."""
_BROKEN = (EngineError, BrokenTableError)
_Schema = tuple[str, str]
_Looked = dict[TableName, str | TablectlError]


@frozen
class PatternMatches:
    """The live Delta tables that were found, and the failures."""

    tables: Mapping[TableName, str] = field(default_factory=dict)
    """Each table's location."""
    failures: tuple[tuple[str, TablectlError], ...] = ()
    """Failed lookups, by the name of a table or the text of a pattern."""

    others: tuple[str, ...] = ()
    """Why what matches is not a Delta table: a sentence for each view and each table of another format."""

    @staticmethod
    def all(parts: Iterable[PatternMatches]) -> PatternMatches:
        """Merges several results."""
        every = tuple(parts)
        tables = {name: where for each in every for name, where in each.tables.items()}
        failures = tuple(failure for each in every for failure in each.failures)
        return PatternMatches(tables, failures, tuple(other for each in every for other in each.others))


def find_tables(patterns: Sequence[CatalogPattern], catalog: Catalog) -> PatternMatches:
    """The Delta tables that patterns match. A schema that cannot be listed is a failure of every pattern that needs it.

    Patterns are grouped by their schema, so that neither tables nor schemas are compared with each pattern.
    """
    failures: list[tuple[str, TablectlError]] = []
    groups: dict[tuple[str, str], list[CatalogPattern]] = {}
    for pattern in patterns:
        groups.setdefault((pattern.catalog, pattern.schema.casefold()), []).append(pattern)
    schemas: dict[_Schema, list[list[CatalogPattern]]] = {}
    catalogs: dict[str, list[list[CatalogPattern]]] = {}
    for group in groups.values():
        named = literal_text(group[0].schema)
        if named is None:
            catalogs.setdefault(group[0].catalog, []).append(group)
        else:
            schemas.setdefault((group[0].catalog, named), []).append(group)
    for name, several in catalogs.items():
        listed = of_table(name, partial(catalog.schemas, name))
        if not isinstance(listed, TablectlError):
            _file(name, listed, several, schemas)
        else:
            failures += [(pattern.text, listed) for group in several for pattern in group]
    index = index_patterns(patterns)

    def matches(name: TableName) -> bool:
        return any(patterns[place].matches(name) for place in index.candidates(name))

    def find(item: tuple[_Schema, list[list[CatalogPattern]]]) -> PatternMatches | TablectlError:
        some = list(islice(chain.from_iterable(item[1]), _AT_ONCE + 1))
        return of_table(".".join(item[0]), lambda: _find_in_schema(item[0], some, matches, catalog))

    with ThreadPoolExecutor(_CONCURRENCY) as pool:
        found = list(pool.map(find, schemas.items()))
    failed = set[tuple[str, str]]()
    for several, result in zip(schemas.values(), found, strict=True):
        if isinstance(result, TablectlError):
            # Each pattern once, and a pattern for each schema: not each pattern for each schema.
            new = [group for group in several if (group[0].catalog, group[0].schema.casefold()) not in failed]
            failed |= {(group[0].catalog, group[0].schema.casefold()) for group in new}
            failures += [(pattern.text, result) for pattern in (chain.from_iterable(new) if new else several[0][:1])]
    tables = [result for result in found if isinstance(result, PatternMatches)]
    return PatternMatches.all((PatternMatches(failures=tuple(failures)), *tables))


def _file(
    catalog: str,
    names: Iterable[str],
    groups: Sequence[list[CatalogPattern]],
    schemas: dict[_Schema, list[list[CatalogPattern]]],
) -> None:
    """Adds the groups that a schema concerns to it."""
    index = index_globs([group[0].schema.casefold() for group in groups])
    for name in names:
        for place in index.candidates_of(name.casefold()):
            if groups[place][0].matches_schema(name):
                schemas.setdefault((catalog, name), []).append(groups[place])


def _find_in_schema(
    schema: _Schema, some: Sequence[CatalogPattern], matches: Callable[[TableName], bool], catalog: Catalog
) -> PatternMatches:
    """The tables of a schema that match. ``some`` are the first patterns that concern it."""
    like = _like([pattern.table for pattern in some]) if len(some) <= _AT_ONCE else "*"
    looked = catalog.tables(schema[0], schema[1], like)
    matched = {name: where for name, where in looked.items() if matches(name)}
    # A pattern can only mean Delta tables, so others do not fail.
    return PatternMatches(
        {name: where for name, where in matched.items() if isinstance(where, str)},
        tuple((name.text, where) for name, where in matched.items() if isinstance(where, _BROKEN)),
        tuple(
            where.message
            for where in matched.values()
            if isinstance(where, LiveError) and not isinstance(where, _BROKEN)
        ),
    )


def locate_tables(names: Iterable[TableName], catalog: Catalog) -> _Looked:
    """Each table's location, or the error of its lookup."""
    schemas: dict[tuple[str, str, str], list[TableName]] = {}
    for name in names:
        # A name with special characters for LIKE is looked up separately.
        alone = "" if SIMPLE_NAME.fullmatch(name.parts[1]) else name.parts[1]
        schemas.setdefault((name.catalog, name.parts[0], alone), []).append(name)
    groups = [
        tables[start : start + _AT_ONCE] for tables in schemas.values() for start in range(0, len(tables), _AT_ONCE)
    ]
    with ThreadPoolExecutor(_CONCURRENCY) as pool:
        looked = pool.map(lambda group: _locate_in_schema(group, catalog), groups)
        return {name: where for each in looked for name, where in each.items()}


def _locate_in_schema(names: Sequence[TableName], catalog: Catalog) -> _Looked:
    if len(names) == 1:
        return {names[0]: _location(names[0], catalog)}
    like = "|".join(name.parts[1] for name in names)
    schema = names[0].catalog, names[0].parts[0]
    looked = of_table(".".join(schema), lambda: catalog.tables(*schema, like))
    if isinstance(looked, TablectlError):
        return dict.fromkeys(names, looked)
    return {name: find_name(looked, name) or _location(name, catalog) for name in names}


def _location(name: TableName, catalog: Catalog) -> str | TablectlError:
    return of_table(name.text, lambda: catalog.location(name))


def _like(globs: Sequence[str]) -> str:
    """The globs in the engine's syntax; everything if one of them cannot be expressed in it."""
    simple = all(SIMPLE_NAME.fullmatch(part) for glob in globs for part in glob.split("*") if part)
    return "|".join(globs) if simple else "*"
