"""Reads a dbt ``manifest.json``: which settings of which Delta tables a dbt project sets.

The keys are those of manifest versions 10 to 12 (https://schemas.getdbt.com/dbt/manifest/v12.json), the configuration
those of dbt-databricks and dbt-spark. A manifest is a stranger's file: it is bounded, and what has another form is
left out or an error, never believed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tablectl.delta.names import NameSyntaxError, TableName, column_text, split_parts
from tablectl.model.errors import UsageError
from tablectl.support.files import NotRegularError, TooLargeError, read_regular
from tablectl.support.json_text import MOST_VALUES, JsonBudgetError, read_json, write_json

LARGEST = 256 << 20
"""The maximum size of a manifest in bytes."""
_MOST_NODES = 100_000
_MOST_PROPERTIES = 1_000
_MOST_COLUMNS = 100
_LONGEST_NAME = 255
_LONGEST_VALUE = 10_000
_KINDS = frozenset({"model", "snapshot", "seed"})
_TABLES = frozenset({"table", "incremental", "snapshot", "seed"})
_HINT = "make it with `dbt parse` or `dbt compile`: it is target/manifest.json"
_CLUSTERING = "liquid_clustered_by"
_PARTITIONING = "partition_by"
_PROPERTIES = "tblproperties"


@dataclass(frozen=True, slots=True)
class DbtTable:
    """A Delta table that a dbt project builds, with the settings of its configuration."""

    name: TableName
    model: str
    """The node: ``model.shop.orders``."""
    file: str
    """Its file in the dbt project: ``models/orders.sql``."""
    properties: Mapping[str, str]
    clustering: tuple[str, ...] | None
    """As policies write columns; ``None`` if the configuration does not say, or not in a way that Spark reads."""
    partitioning: tuple[str, ...] | None
    lines: Mapping[str, str]
    """The lines of the configuration by what they set: ``clustering``, ``partitioning``, or the key of a property."""


def read_manifest(path: Path, catalog: str) -> tuple[DbtTable, ...]:
    """The tables of a manifest that have settings, by name. ``catalog`` is that of nodes without a database.

    Raises ``UsageError`` for a file that is missing, too large, or no manifest.
    """
    try:
        found = read_json(read_regular(path, LARGEST), LARGEST, MOST_VALUES)
    except (OSError, NotRegularError, TooLargeError) as error:
        raise UsageError(f"{path}: the manifest cannot be read: {error}", _HINT) from None
    except JsonBudgetError as error:
        raise UsageError(f"{path}: {error}", _HINT) from None
    except ValueError:
        raise UsageError(f"{path}: this is not JSON", _HINT) from None
    nodes = found.get("nodes") if isinstance(found, dict) else None
    metadata = found.get("metadata") if isinstance(found, dict) else None
    if not isinstance(nodes, dict) or not isinstance(metadata, dict):
        raise UsageError(f"{path}: this is not a manifest of dbt: it has no `nodes` or no `metadata`", _HINT)
    if len(nodes) > _MOST_NODES:
        raise UsageError(f"{path}: the manifest has {len(nodes):,} nodes; {_MOST_NODES:,} is the maximum")
    delta = metadata.get("adapter_type") == "databricks"
    tables = (_table(str(key), node, catalog, delta=delta) for key, node in nodes.items())
    return tuple(sorted((each for each in tables if each is not None), key=lambda each: (each.name.key, each.model)))


def _table(key: str, node: object, catalog: str, *, delta: bool) -> DbtTable | None:
    """A node as a table; ``None`` if it makes no Delta table, or sets nothing. ``delta`` is the default format."""
    if not isinstance(node, dict) or _name(node.get("resource_type")) not in _KINDS:
        return None
    config = node.get("config")
    if (
        not isinstance(config, dict)
        or config.get("enabled") is False
        or _name(config.get("materialized")) not in _TABLES
    ):
        return None
    form = config.get("file_format") or ("delta" if delta else "")
    schema, name = _name(node.get("schema")), _name(node.get("alias") or node.get("name"))
    if form != "delta" or not schema or not name:
        return None
    properties = dict(_properties(config.get(_PROPERTIES)))
    lists = (("clustering", _CLUSTERING), ("partitioning", _PARTITIONING))
    lines = {about: f"{key}: {_shown(config[key])}" for about, key in lists if config.get(key)}
    lines |= {each: property_line(each, value) for each, value in properties.items()}
    made = DbtTable(
        name=TableName(_name(node.get("database")) or catalog, (schema, name)),
        model=key[:_LONGEST_NAME],
        file=_name(node.get("original_file_path")) or "?",
        properties=properties,
        clustering=_columns(config.get(_CLUSTERING)),
        partitioning=_columns(config.get(_PARTITIONING)),
        lines=lines,
    )
    return made if lines else None


def property_line(key: str, value: str) -> str:
    """The line of a property in the configuration."""
    return f"{_PROPERTIES}: {write_json({key: value}, ascii=False, spaces=True)}"


def _shown(given: object) -> str:
    """A list of columns as the configuration has it, if it is one."""
    names = [given] if isinstance(given, str) else given
    known = isinstance(names, list) and len(names) <= _MOST_COLUMNS and all(_name(each) for each in names)
    return write_json(given, spaces=True) if known else "…"


def _name(given: object) -> str:
    fits = isinstance(given, str) and len(given) <= _LONGEST_NAME and given.isprintable()
    return str(given) if fits else ""


def _properties(given: object) -> Iterator[tuple[str, str]]:
    if not isinstance(given, dict):
        return
    for key, value in sorted(given.items())[:_MOST_PROPERTIES]:
        text = _text(value)
        if text is not None and _name(key) and len(text) <= _LONGEST_VALUE:
            yield key, text


def _text(value: object) -> str | None:
    """A value as dbt writes it into TBLPROPERTIES."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, str | int | float) else None


_COMMA = re.compile(r",(?=(?:[^`]*`[^`]*`)*[^`]*\Z)")
"""A comma outside of backticks."""


def _columns(given: Any) -> tuple[str, ...] | None:
    """The columns that Spark reads where dbt writes these texts into a statement, as they are: ``partition_cols`` and
    ``liquid_clustered_cols`` of dbt-databricks (``partition_by.sql``, ``liquid_clustering.sql``). One text can be a
    list, and backticks quote. ``None`` for any other text.
    """
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, list) or not names or len(names) > _MOST_COLUMNS or not all(_name(each) for each in names):
        return None
    try:
        return tuple(column_text(split_parts(each.strip())) for text in names for each in _COMMA.split(text))
    except NameSyntaxError:
        return None
