"""Locates catalog tables: expands patterns and looks up names, with one statement per schema for any number
of tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from tablectl.delta.names import TableName, find_name
from tablectl.engine.port import SIMPLE_NAME, Catalog
from tablectl.log.pattern_matches import PatternMatches
from tablectl.model.errors import EngineError, LiveError, TablectlError
from tablectl.model.patterns import CatalogPattern, literal_text

_CONCURRENCY = 8
_AT_ONCE = 100
"""The maximum number of names in one statement."""
_Schema = tuple[str, str]
_Looked = dict[TableName, str | TablectlError]


def find_tables(patterns: Sequence[CatalogPattern], catalog: Catalog) -> PatternMatches:
    """The Delta tables that patterns match. A schema that cannot be listed is a failure of every pattern that
    needs it.
    """
    failures: list[tuple[str, TablectlError]] = []
    schemas: dict[_Schema, list[CatalogPattern]] = {}
    listed: dict[str, tuple[str, ...]] = {}
    for pattern in patterns:
        try:
            for schema in _schemas(pattern, catalog, listed):
                schemas.setdefault((pattern.catalog, schema), []).append(pattern)
        except (LiveError, EngineError) as error:
            failures.append((pattern.text, error))
    with ThreadPoolExecutor(_CONCURRENCY) as pool:
        found = list(pool.map(lambda item: _find_in_schema(item[0], item[1], catalog), schemas.items()))
    return PatternMatches.all((PatternMatches(failures=tuple(failures)), *found))


def _schemas(pattern: CatalogPattern, catalog: Catalog, listed: dict[str, tuple[str, ...]]) -> Iterable[str]:
    named = literal_text(pattern.schema)
    if named is not None:
        return (named,)
    if pattern.catalog not in listed:
        listed[pattern.catalog] = catalog.schemas(pattern.catalog)
    return (schema for schema in listed[pattern.catalog] if pattern.matches_schema(schema))


def _find_in_schema(schema: _Schema, patterns: Sequence[CatalogPattern], catalog: Catalog) -> PatternMatches:
    try:
        looked = catalog.tables(schema[0], schema[1], _like([pattern.table for pattern in patterns]))
    except (LiveError, EngineError) as error:
        return PatternMatches(failures=tuple((pattern.text, error) for pattern in patterns))
    matched = {name: where for name, where in looked.items() if any(pattern.matches(name) for pattern in patterns)}
    # A pattern can only mean Delta tables, so other tables are dropped.
    return PatternMatches(
        {name: where for name, where in matched.items() if isinstance(where, str)},
        tuple((name.text, where) for name, where in matched.items() if isinstance(where, EngineError)),
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
    try:
        looked = catalog.tables(names[0].catalog, names[0].parts[0], "|".join(name.parts[1] for name in names))
    except (LiveError, EngineError) as error:
        return dict.fromkeys(names, error)
    return {name: find_name(looked, name) or _location(name, catalog) for name in names}


def _location(name: TableName, catalog: Catalog) -> str | TablectlError:
    try:
        return catalog.location(name)
    except (LiveError, EngineError) as error:
        return error


def _like(globs: Sequence[str]) -> str:
    """The globs in the engine's syntax; everything if one of them cannot be expressed in it."""
    simple = all(SIMPLE_NAME.fullmatch(part) for glob in globs for part in glob.split("*") if part)
    return "|".join(globs) if simple else "*"
