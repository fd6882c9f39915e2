"""A table's schema: the names, types and leaf columns that policies need; and all metadata of the columns in its
``schemaString``, to compare two schemas.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from functools import lru_cache
from typing import Any

from tablectl.delta.names import ColumnPath
from tablectl.support.json_text import read_json

_SHORT = 100
"""The length of a column, in characters, up to which equal ones are one record: names of others can have any length."""


@dataclass(frozen=True, slots=True)
class Field:
    """One column or nested field. ``type`` is Delta's name for it: ``long``, ``decimal(10,2)``, ``struct``, ``map``."""

    name: str
    type: str
    nullable: bool = True
    physical: str = ""
    """The name in data files and in the log; equal to ``name`` without column mapping."""
    fields: tuple[Field, ...] = ()
    """The fields of a struct; empty for every other type, including arrays and maps of structs."""
    within: tuple[Field, ...] = ()
    """The fields of structs inside an array or a map."""
    identity: bool = False
    """Whether Delta generates the values (``GENERATED … AS IDENTITY``)."""
    generated: str = ""
    """The expression from which Delta computes the values (``GENERATED ALWAYS AS``); empty for other columns."""
    default: str = ""
    """The expression that a write takes for a missing value (``DEFAULT``); empty without one."""
    bytewise: bool = True
    """Whether strings compare byte by byte. False for ``CHAR``, which is padded, and for collations."""


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns of a table, in order."""

    fields: tuple[Field, ...] = ()
    text: str = dataclass_field(default="", compare=False, repr=False)
    """The ``schemaString`` that was parsed; empty if the schema was built in another way."""

    def find(self, path: ColumnPath) -> tuple[ColumnPath, Field] | None:
        """The path in the table's spelling and its field, found without regard to case; ``None`` if there is none."""
        fields, spelled, found = self.fields, [], None
        for part in path:
            found = next((field for field in fields if field.name.lower() == part.lower()), None)
            if found is None:
                return None
            spelled.append(found.name)
            fields = found.fields
        return (tuple(spelled), found) if found is not None else None

    def logical(self, physical: ColumnPath) -> ColumnPath | None:
        """The logical path of a physical path, or ``None``. Delta stores clustering columns by physical name."""
        fields, logical = self.fields, []
        for part in physical:
            found = next((field for field in fields if (field.physical or field.name) == part), None)
            if found is None:
                return None
            logical.append(found.name)
            fields = found.fields
        return tuple(logical) if logical else None

    def physical_names(self, columns: Iterable[str]) -> tuple[str, ...]:
        """The names under which the log has the values of partition columns; an unknown column keeps its name."""
        physical = {field.name: field.physical or field.name for field in self.fields}
        return tuple(physical.get(column, column) for column in columns)

    def leaves(self) -> Iterator[tuple[ColumnPath, Field]]:
        """Every leaf column in the order in which Delta collects statistics. An array or map counts as one leaf."""
        yield from _leaves((), self.fields)

    def every_field(self) -> Iterator[tuple[ColumnPath, Field]]:
        """Every field at any depth, including those inside arrays and maps, with its path."""
        yield from _every((), self.fields)

    def every_type(self) -> Iterator[tuple[ColumnPath, str]]:
        """The types of all columns and of what is inside them, with elements of arrays, keys and values of maps.

        Raises ``ValueError`` for a malformed schema text.
        """
        if self.text:
            yield from ((each.path, each.type) for each in columns_of(self.text))
        else:
            yield from ((path, each.type) for path, each in self.every_field())

    def has_identity(self) -> bool:
        """Whether Delta generates the values of any column."""
        return any(field.identity for field in self.fields)


def _leaves(prefix: ColumnPath, fields: tuple[Field, ...]) -> Iterator[tuple[ColumnPath, Field]]:
    for field in fields:
        path = (*prefix, field.name)
        if field.fields:
            yield from _leaves(path, field.fields)
        else:
            yield path, field


def _every(prefix: ColumnPath, fields: tuple[Field, ...]) -> Iterator[tuple[ColumnPath, Field]]:
    for field in fields:
        path = (*prefix, field.name)
        yield path, field
        yield from _every(path, (*field.fields, *field.within))


def parse_schema(text: str) -> Schema:
    """Parses the ``schemaString`` of a ``metaData`` action. Raises ``ValueError`` if it is not a schema."""
    root = read_json(text)
    if not isinstance(root, dict) or root.get("type") != "struct":
        raise ValueError("the schema is not a struct")
    return Schema(_parse_fields(root), text)


def _parse_fields(struct: dict[str, Any]) -> tuple[Field, ...]:
    fields = struct.get("fields")
    if not isinstance(fields, list):
        raise ValueError("a struct of the schema has no fields")
    return tuple([_parse_field(field) for field in fields])  # a fifth faster than a generator


def _parse_field(field: Any) -> Field:
    if not isinstance(field, dict) or not isinstance(field.get("name"), str):
        raise ValueError("a field of the schema has no name")
    kind, metadata = field.get("type"), field.get("metadata") or {}
    if isinstance(kind, str) and not metadata:  # most columns of most tables
        make = _shared_field if len(field["name"]) + len(kind) <= _SHORT else _plain_field
        return make(field["name"], kind, field.get("nullable") is not False)
    if not isinstance(metadata, dict):
        raise ValueError(f"the metadata of field {field['name']!r} is not a map")
    name = kind if isinstance(kind, str) else kind.get("type") if isinstance(kind, dict) else None
    if not isinstance(name, str):
        raise ValueError(f"field {field['name']!r} has no type")
    # The type that Spark stores in the metadata of a ``string`` column for ``CHAR`` and ``VARCHAR``
    return Field(
        name=field["name"],
        type=name,
        nullable=field.get("nullable") is not False,
        physical=str(metadata.get("delta.columnMapping.physicalName", field["name"])),
        fields=_parse_fields(kind) if isinstance(kind, dict) and name == "struct" else (),
        within=_parse_within(kind) if isinstance(kind, dict) and name != "struct" else (),
        identity="delta.identity.start" in metadata,
        generated=str(metadata.get("delta.generationExpression", "")),
        default=str(metadata.get("CURRENT_DEFAULT", "")),
        bytewise="__COLLATIONS" not in metadata
        and "char(" not in str(metadata.get("__CHAR_VARCHAR_TYPE_STRING", "")).replace("varchar(", ""),
    )


def _plain_field(name: str, kind: str, nullable: bool) -> Field:  # noqa: FBT001  # positional for the cache
    return Field(name, kind, nullable=nullable, physical=name)


_shared_field = lru_cache(maxsize=4096)(_plain_field)
"""The tables of a lake repeat the same columns: they share one record."""


def _parse_within(kind: Any) -> tuple[Field, ...]:
    """The fields of structs inside an array or a map; ``()`` for any other type."""
    if not isinstance(kind, dict):
        return ()
    if kind.get("type") == "struct":
        return _parse_fields(kind)
    inner = [kind[key] for key in ("elementType", "keyType", "valueType") if key in kind]
    return tuple(field for each in inner for field in _parse_within(each))


_MAPPING = "delta.columnMapping."
TYPE_CHANGES = "delta.typeChanges"
"""The types that the column has in older data files (Delta protocol, "Type Change Metadata")."""


@dataclass(frozen=True, slots=True)
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
    return key.startswith(_MAPPING) or (key == TYPE_CHANGES and len(path) > 1)
