"""What a table's ``schemaString`` says of its columns beyond names and types, and where two of them differ. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tablectl.delta.names import ColumnPath

_MAPPING = "delta.columnMapping."
_TYPE_CHANGES = "delta.typeChanges"
"""The types that a column had in older files (Delta protocol, "Type Change Metadata")."""


@dataclass(frozen=True, slots=True)
class Column:
    """One field of a schema, at whatever depth."""

    path: ColumnPath
    """Its names; ``element``, ``key`` and ``value`` within arrays and maps, as Delta writes them."""
    type: str
    nullable: bool
    metadata: Mapping[str, Any]
    reachable: bool
    """Whether only structs lie above it."""


def columns_of(text: str) -> tuple[Column, ...]:
    """Every field of a ``schemaString``, elements of arrays, keys and values of maps included; none of an empty one.

    Raises ``ValueError`` where it is none: others wrote it.
    """
    try:
        return tuple(_fields(json.loads(text), (), reachable=True)) if text else ()
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"the schema in the table's metaData cannot be read: {error}") from None


def _fields(struct: Mapping[str, Any], above: ColumnPath, *, reachable: bool) -> Iterator[Column]:
    for each in struct["fields"]:
        path = (*above, str(each["name"]))
        nullable = each.get("nullable") is not False
        yield Column(path, _name(each["type"]), nullable, each.get("metadata") or {}, reachable)
        yield from _within(each["type"], path, reachable=reachable)


def _within(kind: Any, path: ColumnPath, *, reachable: bool) -> Iterator[Column]:
    match kind:
        case {"type": "struct"}:
            yield from _fields(kind, path, reachable=reachable)
        case {"type": "array", "elementType": inner}:
            nullable = kind.get("containsNull") is not False
            yield Column((*path, "element"), _name(inner), nullable, {}, reachable=False)
            yield from _within(inner, (*path, "element"), reachable=False)
        case {"type": "map", "keyType": key, "valueType": value}:
            nullable = kind.get("valueContainsNull") is not False
            yield Column((*path, "key"), _name(key), nullable=True, metadata={}, reachable=False)
            yield from _within(key, (*path, "key"), reachable=False)
            yield Column((*path, "value"), _name(value), nullable, {}, reachable=False)
            yield from _within(value, (*path, "value"), reachable=False)


def _name(kind: Any) -> str:
    return kind if isinstance(kind, str) else str(kind.get("type"))


def own_metadata(text: str) -> tuple[tuple[str, Mapping[str, Any]], ...]:
    """The top-level columns in order, each with its metadata but what column mapping keeps there."""
    return tuple(
        (column.path[0], {key: value for key, value in column.metadata.items() if not key.startswith(_MAPPING)})
        for column in columns_of(text)
        if len(column.path) == 1
    )


def differences(before: str, after: str) -> tuple[str, ...]:
    """What two schemas say differently of their columns, for people: ``amount: comment``.

    Physical names and ids do not count, nor do older types of what is nested: Delta drops those when it writes all
    files again, and no file has an older type then.
    """
    one, other = (_by_path(text) for text in (before, after))
    found = [".".join(path) for path in one.keys() ^ other.keys()]
    for path in one.keys() & other.keys():
        found += [
            f"{'.'.join(path)}: {what}"
            for what in one[path].keys() | other[path].keys()
            if one[path].get(what) != other[path].get(what)
        ]
    return tuple(sorted(found))


def _by_path(text: str) -> Mapping[ColumnPath, Mapping[str, Any]]:
    return {
        column.path: {
            "type": column.type,
            "NOT NULL": not column.nullable,
            **{k: v for k, v in column.metadata.items() if not _is_left_out(k, column.path)},
        }
        for column in columns_of(text)
    }


def _is_left_out(key: str, path: ColumnPath) -> bool:
    return key.startswith(_MAPPING) or (key == _TYPE_CHANGES and len(path) > 1)
