"""The columns of a new table in SQL, from a schema in Spark's JSON: every name and comment is quoted, every type is a
known one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tablectl.delta.names import ColumnPath, column_text, quote_name, quote_text
from tablectl.support.json_text import read_json, write_json

_TYPES: Mapping[str, str] = {"long": "BIGINT", "integer": "INT", "short": "SMALLINT", "byte": "TINYINT"}
_PLAIN = frozenset(
    {"string", "double", "float", "boolean", "binary", "date", "timestamp", "timestamp_ntz", "variant", *_TYPES}
)
_SIZED = re.compile(r"(?:decimal\((?P<digits>[0-9]{1,2}),(?P<scale>-?[0-9]{1,2})\)|(?:char|varchar)\([0-9]{1,9}\))\Z")
_MOST_DIGITS = 38
_LENGTH = "__CHAR_VARCHAR_TYPE_STRING"
_KEPT = frozenset({"comment", _LENGTH})
_OWN = ("delta.columnMapping.", "delta.typeChanges")
"""What Delta keeps about the columns of one table, and not of its copy."""


def new_schema(text: str) -> str:
    """A schema in Spark's JSON as a CREATE TABLE can make it: without the ids and names of column mapping, and with
    elements of arrays and values of maps that may be null, for SQL has no other.

    Raises ``ValueError`` for text that is not a schema, and for a column that needs more than a name, a type, NOT NULL
    and a comment: a default, a generated or an identity column.
    """
    try:
        root = read_json(text)
    except ValueError as error:
        raise ValueError(f"it is not the JSON of a Spark schema: {error}") from None
    if not isinstance(root, dict) or root.get("type") != "struct" or not root.get("fields"):
        raise ValueError("it is not the JSON of a Spark schema with columns")
    try:
        return write_json(_struct(root, ()))
    except (KeyError, TypeError, AttributeError):
        raise ValueError("it is not the JSON of a Spark schema") from None
    except RecursionError:
        raise ValueError("its types are nested too deeply") from None


def with_null(schema: str, column: ColumnPath, *, allowed: bool) -> str:
    """The schema with a column that may be null, or may not. A column that is missing changes nothing."""
    root = read_json(schema)
    fields = root["fields"]
    for depth, part in enumerate(column):
        found = next((each for each in fields if each["name"].casefold() == part.casefold()), None)
        if found is None:
            return schema
        if depth + 1 == len(column):
            found["nullable"] = allowed
        fields = found["type"].get("fields", []) if isinstance(found["type"], dict) else []
    return write_json(root)


def _struct(struct: Mapping[str, Any], above: tuple[str, ...]) -> dict[str, Any]:
    fields = [_field(each, (*above, str(each["name"]))) for each in struct["fields"]]
    names = set[str]()
    for each in fields:
        if each["name"].casefold() in names:
            raise ValueError(f"column {column_text((*above, each['name']))} is named twice")
        names.add(each["name"].casefold())
    return {"type": "struct", "fields": fields}


def _field(field: Mapping[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    metadata = {key: value for key, value in (field.get("metadata") or {}).items() if not key.startswith(_OWN)}
    other = sorted(metadata.keys() - _KEPT)
    if other:
        raise ValueError(f"column {column_text(path)} has {other[0]}, which needs a CREATE TABLE of your own")
    kind = _type(field["type"], path)
    if isinstance(kind, str) and kind.startswith(("char", "varchar")):
        kind, metadata = "string", {**metadata, _LENGTH: kind}
    return {"name": path[-1], "type": kind, "nullable": field.get("nullable") is not False, "metadata": metadata}


def _type(kind: Any, path: tuple[str, ...]) -> Any:
    match kind:
        case str() if kind in _PLAIN or _SIZED.match(kind):
            return _checked(kind, path)
        case "decimal":
            return "decimal(10,0)"
        case {"type": "struct"}:
            return _struct(kind, path)
        case {"type": "array", "elementType": inner}:
            return {"type": "array", "elementType": _type(inner, path), "containsNull": True}
        case {"type": "map", "keyType": key, "valueType": value}:
            made = {"keyType": _type(key, path), "valueType": _type(value, path)}
            return {"type": "map", **made, "valueContainsNull": True}
    name = kind if isinstance(kind, str) else "a type of its own"
    raise ValueError(f"column {column_text(path)} is of type {name}, which needs a CREATE TABLE of your own")


def _checked(kind: str, path: tuple[str, ...]) -> str:
    """Raises ``ValueError`` for a decimal that Spark's SQL does not have."""
    found = _SIZED.match(kind)
    digits, scale = (int(found["digits"]), int(found["scale"])) if found and found["digits"] else (0, 0)
    if digits > _MOST_DIGITS or not 0 <= scale <= digits:
        why = f"a decimal has at most {_MOST_DIGITS} digits, and no more than these after the point"
        raise ValueError(f"column {column_text(path)} is {kind}: {why}")
    return kind


def columns_sql(schema: str) -> tuple[str, ...]:
    """The columns of a schema that ``new_schema`` returned, each as SQL."""
    return tuple(_column(each, " ") for each in read_json(schema)["fields"])


def _column(field: Mapping[str, Any], between: str) -> str:
    metadata = field["metadata"]
    kind = metadata[_LENGTH].upper() if field["type"] == "string" and _LENGTH in metadata else _type_sql(field["type"])
    if not _SIZED.match(kind.lower()) and _LENGTH in metadata:
        raise ValueError(f"column {field['name']} has no length in {_LENGTH}")
    null = "" if field["nullable"] else " NOT NULL"
    comment = f" COMMENT {quote_text(str(metadata['comment']))}" if "comment" in metadata else ""
    return f"{quote_name(field['name'])}{between}{kind}{null}{comment}"


def _type_sql(kind: Any) -> str:
    if isinstance(kind, str):
        return _TYPES.get(kind, kind).upper()
    if kind["type"] == "struct":
        return f"STRUCT<{', '.join(_column(each, ': ') for each in kind['fields'])}>"
    if kind["type"] == "array":
        return f"ARRAY<{_type_sql(kind['elementType'])}>"
    return f"MAP<{_type_sql(kind['keyType'])}, {_type_sql(kind['valueType'])}>"
