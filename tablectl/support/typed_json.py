"""The JSON of records, which are dataclasses: pydantic reads it strictly, writes it, and describes it as JSON Schema.

A record is its own JSON: an object with its fields and its ``computed_field`` properties. Records that jobs on Python
3.9 import know nothing of this module: ``json_text`` reads and writes their JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from functools import cache
from typing import Annotated, Any, TypeVar

from pydantic import ConfigDict, Field, GetCoreSchemaHandler, PlainSerializer, TypeAdapter, ValidationError
from pydantic_core import CoreSchema, core_schema
from typing_extensions import TypeAliasType

from tablectl.support.json_text import LARGEST, VALUES, check_json

_Type = TypeVar("_Type")
Schema = dict[str, Any]


class _Opaque:
    """A type of which pydantic knows nothing."""

    @staticmethod
    def __get_pydantic_core_schema__(_source: Any, _handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.any_schema()


def _is_unset(value: object) -> bool:
    return value is None or value is False or value in ("", ())


Unwritten = Annotated[_Type, _Opaque(), Field(exclude=True)]
"""A field that is not part of the JSON: computed fields say what of it is."""
Omitted = Annotated[_Type, Field(exclude_if=_is_unset)]
"""A field that is not written if it is ``None``, ``False``, an empty text or an empty tuple."""
AsText = Annotated[_Type, _Opaque(), PlainSerializer(lambda value: value.text, return_type=str)]
"""A value whose JSON is its ``text``."""
AsKey = Annotated[_Type, _Opaque(), PlainSerializer(lambda value: value.key, return_type=str)]
"""A value whose JSON is its ``key``."""


def _make_adapter(kind: Any) -> TypeAdapter[Any]:
    # A dataclass without a configuration takes that of the type around it, here of an alias.
    config = ConfigDict(
        extra="forbid",
        strict=True,
        use_attribute_docstrings=True,
        json_schema_serialization_defaults_required=True,
    )
    alias: Any = TypeAliasType(kind.__name__, kind)
    return TypeAdapter(alias, config=config)


_adapter: Callable[[Any], TypeAdapter[Any]] = cache(_make_adapter)


def read_record(kind: type[_Type], data: bytes | str, largest: int = LARGEST, values: int = VALUES) -> _Type:
    """Parses JSON into a record of type ``kind``. Unknown keys, missing keys and values of other types are errors.

    Raises ``ValueError`` with the position: ``changes.0.after: …``, and for a text above its limits, as ``read_json``.
    pydantic refuses texts that are nested too deeply.
    """
    check_json(data, largest, values)
    try:
        record: _Type = _adapter(kind).validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        said = str(first.get("ctx", {}).get("error", first["msg"]))
        raise ValueError(f"{where}: {said}" if where else said) from None
    return record


def json_form(value: object) -> Any:
    """The value that ``write_json`` takes: of a record, or of a mapping or a list that contains some."""
    if is_dataclass(value):
        return _adapter(type(value)).dump_python(value, mode="json", fallback=dict, warnings="none")
    if isinstance(value, Mapping):
        return {key: json_form(each) for key, each in value.items()}
    return [json_form(each) for each in value] if isinstance(value, list | tuple) else value


def record_schema(kind: type[Any], name: str, title: str, more: Mapping[str, Schema], optional: Schema) -> Schema:
    """The JSON Schema 2020-12 of a record type, with the id ``urn:tablectl:<name>``.

    ``more`` holds additional required keys, ``optional`` additional optional keys. All other keys are disallowed.
    """
    top = _plain(_adapter(kind).json_schema(mode="serialization"))
    top["properties"] |= {**more, **optional}
    top["required"] = sorted([*top["required"], *more])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:tablectl:{name}",
        "title": title,
        **top,
    }


def _plain(schema: Any) -> Any:
    """A schema without the titles and defaults that pydantic makes of names, and with docstrings in Markdown."""
    if isinstance(schema, list):
        return [_plain(each) for each in schema]
    if not isinstance(schema, dict):
        return " ".join(schema.replace("``", "`").split()) if isinstance(schema, str) else schema
    return {
        key: {name: _plain(each) for name, each in value.items()} if key in {"properties", "$defs"} else _plain(value)
        for key, value in schema.items()
        if key not in {"title", "default", "readOnly"}
    }
