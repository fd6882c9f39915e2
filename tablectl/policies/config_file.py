"""Reads the configuration file into plain values: texts, nested as in the file, and the position of each key.

Plain values of several layers are merged. ``as_node`` makes a YAML node of the result, which ``fields`` reads.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tablectl.model.errors import Problem
from tablectl.policies.fields import Keys, is_secret, key_text
from tablectl.policies.find_files import read_bytes, shown_path
from tablectl.policies.value_reader import ValueReader
from tablectl.policies.variables import Variables
from tablectl.policies.yaml_document import parse_document
from tablectl.policies.yaml_nodes import Entry, ListNode, MapNode, Node, Scalar, SourceFile, kind_of

Places = dict[Keys, SourceFile]
"""Position by keys. The items of a list are numbered from 1."""

_WRONG = object()


_DECIMALS = frozenset({("window", "quiet"), ("window", "soak")})
"""The settings that are numbers with decimals. Elsewhere such a value is a version that lost its zeros."""


def read_values(path: Path, problems: list[Problem]) -> tuple[dict[str, Any], Places]:
    """The values in the file and their positions; empty if the file is missing or empty. Types are not checked yet."""
    data, file = read_bytes(path, problems, missing=b""), shown_path(path)
    root = parse_document(data, file, problems) if data is not None else None
    places: Places = {}
    if root is None or (isinstance(root, Scalar) and root.is_null):
        return {}, places
    if not isinstance(root, MapNode):
        hint = "for example `engine: {dialect: oss}`"
        problems.append(root.source.problem(f"the configuration is a map, not {kind_of(root)}", hint))
        return {}, places
    return _plain_map(root, (), places, ValueReader(Variables(), "", "", problems)), places


def as_node(value: Any, places: Places, place: SourceFile, keys: Keys = ()) -> Node:
    """Plain values as YAML nodes. Each has the position of its key, or that of the innermost key above that has one."""
    here = places.get(keys, place)
    match value:
        case dict():
            entries = ((*keys, key) for key in value)
            return MapNode(
                tuple(
                    Entry(path[-1], places.get(path, here), as_node(value[path[-1]], places, here, path))
                    for path in entries
                ),
                here,
            )
        case list():
            items = (as_node(item, places, here, (*keys, str(number))) for number, item in enumerate(value, 1))
            return ListNode(tuple(items), here)
        case None:
            return Scalar("", "null", here)
        case _:
            return Scalar(value, "str", here)


def _plain_map(node: MapNode, keys: Keys, places: Places, reading: ValueReader) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for entry in node.entries:
        path = (*keys, entry.key)
        places[path] = entry.source
        value = _plain(entry.value, path, places, reading)
        if value is not _WRONG:
            values[entry.key] = value
    return values


def _plain(node: Node, path: Keys, places: Places, reading: ValueReader) -> Any:
    """A text, a map, a list, or ``None`` for null. ``_WRONG`` if the node is none of these and a problem was
    reported.
    """
    match node:
        case MapNode():
            return _plain_map(node, path, places, reading)
        case ListNode():
            items = []
            for number, item in enumerate(node.items, 1):
                places[*path, str(number)] = item.source
                items.append(_plain(item, (*path, str(number)), places, reading))
            return [item for item in items if item is not _WRONG]
        case Scalar(is_null=True):
            return None
        case Scalar() if is_secret(path) and node.tag in {"float", "timestamp"}:
            reading.report(node.source, f"YAML does not read {key_text(path)} as text", "quote it")
            return _WRONG
        case Scalar(tag="float") if path[-2:] in _DECIMALS:
            return node.text
        case Scalar():
            scalar = reading.scalar(node, key_text(path), "")
            return _WRONG if scalar is None else scalar.text
