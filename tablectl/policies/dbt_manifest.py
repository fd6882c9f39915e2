"""Reads a dbt ``manifest.json``: which settings of which Delta tables a dbt project sets.

The keys are those of manifest versions 10 to 12 (https://schemas.getdbt.com/dbt/manifest/v12.json), the configuration
those of dbt-databricks and dbt-spark. A manifest is a stranger's file: it is bounded, and what has another form is
left out or an error, never believed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tablectl.delta.names import TableName
from tablectl.model.errors import UsageError
from tablectl.support.files import NotRegularError, TooLargeError, read_regular
from tablectl.support.frozen import frozen
from tablectl.support.json_text import MOST_VALUES, JsonBudgetError, read_json, write_json

LARGEST = 256 << 20
"""The maximum size of a manifest in bytes."""
_MOST_NODES = 100_000
_MOST_PROPERTIES = 1_000
_LONGEST_NAME = 255
_LONGEST_VALUE = 10_000
_KINDS = frozenset({"model", "snapshot", "seed"})
_TABLES = frozenset({"table", "incremental", "snapshot", "seed"})
_HINT = "make it with `dbt parse` or `dbt compile`: it is target/manifest.json"
_CLUSTERING = "liquid_clustered_by"
_PARTITIONING = "partition_by"
_PROPERTIES = "tblproperties"


@frozen
class DbtTable:
    """A Delta table that a dbt project builds, with the settings of its configuration."""

    name: TableName
    model: str
    """The node: ``model.shop.orders``."""
    file: str
    """Its file in the dbt project: ``models/orders.sql``."""
    properties: Mapping[str, str]
    clustering: tuple[str, ...] | None
    """``None`` if the configuration does not say."""
    partitioning: tuple[str, ...] | None

    @property
    def lines(self) -> tuple[str, ...]:
        """The configuration that a policy can replace, a key a line."""
        lists = ((_CLUSTERING, self.clustering), (_PARTITIONING, self.partitioning))
        found = [f"{key}: {write_json(list(columns), spaces=True)}" for key, columns in lists if columns is not None]
        found += [
            f"{_PROPERTIES}: {write_json({key: value}, ascii=False, spaces=True)}"
            for key, value in self.properties.items()
        ]
        return tuple(found)


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
    made = DbtTable(
        name=TableName(_name(node.get("database")) or catalog, (schema, name)),
        model=key[:_LONGEST_NAME],
        file=_name(node.get("original_file_path")) or "?",
        properties=dict(_properties(config.get(_PROPERTIES))),
        clustering=_columns(config.get(_CLUSTERING)),
        partitioning=_columns(config.get(_PARTITIONING)),
    )
    return made if made.lines else None


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


def _columns(given: Any) -> tuple[str, ...] | None:
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, list) or not names or not all(_name(each) for each in names):
        return None
    return tuple(names)
