"""Reads records from JSON, strictly, and describes their JSON as JSON Schema, with the records' docstrings.

The only module that needs pydantic, which takes longer to load than most commands run. It is loaded only to read a
record (docs/start-up.md); ``json_text`` writes records without it.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import IntEnum, StrEnum
from functools import cache
from itertools import pairwise
from textwrap import dedent
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from tablectl.support.json_text import OMITTED, UNWRITTEN, json_properties

if TYPE_CHECKING:  # see the module docstring
    from pydantic import TypeAdapter

_Record = TypeVar("_Record")
Schema = dict[str, Any]
_PLAIN: Mapping[Any, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    NoneType: "null",
}


def read_record(kind: type[_Record], data: bytes | str) -> _Record:
    """Parses JSON into a record of type ``kind``. Unknown keys, missing keys and values of other types are errors.

    Raises ``ValueError`` with the position: ``changes.0.after: …``.
    """
    from pydantic import ValidationError  # noqa: PLC0415  # see the module docstring

    try:
        record: _Record = _reader(kind).validate_json(  # type: ignore[arg-type] # mypy takes generic types for unhashable
            data, strict=True, extra="forbid"
        )
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        said = str(first.get("ctx", {}).get("error", first["msg"]))
        raise ValueError(f"{where}: {said}" if where else said) from None
    return record


@cache
def _reader(kind: type[Any]) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter  # noqa: PLC0415  # see the module docstring

    return TypeAdapter(kind)


def record_schema(kind: type[Any], name: str, title: str, more: Mapping[str, Schema], optional: Schema) -> Schema:
    """The JSON Schema 2020-12 of a record type, with the id ``urn:tablectl:<name>``.

    ``more`` holds additional required keys, ``optional`` additional optional keys. All other keys are disallowed.
    Raises ``TypeError`` for a field type that the schema does not support.
    """
    records: Schema = {}
    top = _record(kind, records)
    top["properties"] |= {**more, **optional}
    top["required"] = sorted([*top["required"], *more])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:tablectl:{name}",
        "title": title,
        **top,
        "$defs": {key: records[key] for key in sorted(records)},
    }


def _record(kind: type[Any], records: Schema) -> Schema:
    hints, notes = get_type_hints(kind), _notes(kind)
    known = [field for field in fields(kind) if field.metadata != UNWRITTEN]
    properties: Schema = {}
    for field in known:
        about = {"description": notes[field.name]} if field.name in notes else {}
        properties[field.name] = {**about, **_type(hints[field.name], records)}
    computed = json_properties(kind)
    for name, each in computed.items():
        hint = get_type_hints(each.fget)["return"]
        properties[name] = {"description": _text(each.__doc__ or ""), **_type(hint, records)}
    return {
        "description": _text(kind.__doc__ or ""),
        "type": "object",
        "additionalProperties": False,
        "required": sorted([*(each.name for each in known if each.metadata != OMITTED), *computed]),
        "properties": properties,
    }


def _type(hint: Any, records: Schema) -> Schema:
    origin, args = get_origin(hint), get_args(hint)
    if hint in _PLAIN or hasattr(hint, "WRITTEN_AS"):
        return {"type": _PLAIN.get(hint, "string")}
    if origin is Literal:
        return {"enum": list(args)}
    if origin in {Union, UnionType}:
        return _either([_type(each, records) for each in args])
    if origin is tuple and len(args) == 2 and args[1] is ...:
        return {"type": "array", "items": _type(args[0], records)}
    if origin is tuple:
        items = [_type(each, records) for each in args]
        return {"type": "array", "prefixItems": items, "items": False, "minItems": len(items)}
    if origin is Mapping and args[0] is str:
        return {"type": "object", "additionalProperties": _type(args[1], records)}
    if isinstance(hint, type) and issubclass(hint, (StrEnum, IntEnum)):
        return {"enum": [each.value for each in hint]}
    if isinstance(hint, type) and is_dataclass(hint):
        if hint.__name__ not in records:
            records[hint.__name__] = {}  # a record can contain itself
            records[hint.__name__] = _record(hint, records)
        return {"$ref": f"#/$defs/{hint.__name__}"}
    raise TypeError(f"no record has a field of type {hint}")


def _either(choices: list[Schema]) -> Schema:
    """One ``type`` list (``string | null``) if the choices are plain types, otherwise ``anyOf``."""
    if all(choice.keys() == {"type"} for choice in choices):
        return {"type": [choice["type"] for choice in choices]}
    return {"anyOf": choices}


def _notes(kind: type[Any]) -> dict[str, str]:
    """The docstring below each field of a class, by field name."""
    body = ast.parse(dedent(inspect.getsource(kind))).body[0]
    assert isinstance(body, ast.ClassDef)
    found = {}
    for field, note in pairwise(body.body):
        match field, note:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                found[name] = _text(text)
            case _:
                pass
    return found


def _text(docstring: str) -> str:
    return " ".join(docstring.replace("``", "`").split())
