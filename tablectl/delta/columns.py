"""The column metadata in a table's ``schemaString``, beyond names and types, and a comparison of two schemas. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tablectl.delta.names import ColumnPath
from tablectl.frozen import frozen
from tablectl.json_text import read_json

_MAPPING = "delta.columnMapping."
_TYPE_CHANGES = "delta.typeChanges"
"""The types that the column has in older data files (Delta protocol, "Type Change Metadata")."""


@frozen
class Column:
    """One field of a schema, at any depth."""

    path: ColumnPath
    """The names from the root. Inside arrays and maps they are ``element``, ``key`` and ``value``, as Delta writes
    them.
    """
    type: str
    nullable: bool
    metadata: Mapping[str, Any]
    reachable: bool
    """Whether all parents are structs."""


def columns_of(text: str) -> tuple[Column, ...]:
    """Every field of a ``schemaString``, including array elements, map keys and map values; ``()`` for an empty string.

    Raises ``ValueError`` for a malformed schema: the text comes from other writers.
    """
    try:
        return tuple(_fields(read_json(text), (), reachable=True)) if text else ()
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
    """The top-level columns in order, each with its metadata except the keys of column mapping."""
    return tuple(
        (column.path[0], {key: value for key, value in column.metadata.items() if not key.startswith(_MAPPING)})
        for column in columns_of(text)
        if len(column.path) == 1
    )


def differences(before: str, after: str) -> tuple[str, ...]:
    """The differences between the columns of two schemas, for people: ``amount: comment``.

    Physical names and ids do not count. The older types of nested fields do not count either: Delta drops them when it
    rewrites all files, because no file has an older type after that.
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
