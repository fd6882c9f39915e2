"""The JSON Schema of a policy file, for editors: completion, descriptions, and marking of most errors.

The schema accepts more than the parser in cases that JSON Schema cannot express: variables, the letter case of
``delta.*`` keys, and the syntax of column and table names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tablectl.attributes.policy import declarable_keys
from tablectl.attributes.value_types import ValueType
from tablectl.delta.dialects import DIALECTS
from tablectl.delta.properties import find_known, needs_of
from tablectl.policies.attribute_types import EXCLUSIVE, SHAPES
from tablectl.policies.entries import TAG
from tablectl.policies.option_keys import OPTIONS
from tablectl.policies.variables import VARIABLE

Schema = dict[str, Any]

_TEXT: Schema = {"type": ["string", "integer", "boolean"]}
"""The types that count as text in a policy. YAML reads a plain 60 or true as these types."""
_VARIABLE: Schema = {"type": "string", "pattern": VARIABLE}


def policy_schema() -> Schema:
    """The schema as JSON Schema 2020-12."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "tablectl policies",
        "description": "Desired state of Delta tables. Settings that no policy names are not managed and never change.",
        "type": "object",
        "required": ["version"],
        "additionalProperties": False,
        "properties": {
            "version": {"const": 1, "description": "The version of this format."},
            "defaults": {
                "description": "Attributes and tags for every table of this file.",
                "type": "object",
                "additionalProperties": False,
                "properties": {**_attributes(), **_options(), "tags": {"$ref": "#/$defs/tags"}},
            },
            "tables": {
                "description": "Tables by identifier: schema.table, catalog.schema.table, or delta.`/path`. "
                "Patterns with *, ? and [ab] stand for every live table that matches: lake.sales.*, delta.`/lake/*`.",
                "type": "object",
                "additionalProperties": {"$ref": "#/$defs/table"},
                "examples": [
                    {"lake.sales.orders": {"isolation": "Serializable"}},
                    {"lake.finance.*": {"isolation": "Serializable"}},
                ],
            },
        },
        "$defs": {
            "table": _table(),
            "tags": _tags(),
            **{name: _attribute(shape) for name, shape in SHAPES.items()},
        },
    }


def _attributes() -> Schema:
    return {name: {"$ref": f"#/$defs/{name}"} for name in SHAPES}


def _options() -> Schema:
    return {name: {"description": option.description, **option.schema} for name, option in OPTIONS.items()}


def _table() -> Schema:
    return {
        "description": "Desired state of a table, or of each table that a pattern matches. Empty: the defaults.",
        "type": ["object", "null"],
        "additionalProperties": False,
        "properties": {
            **_attributes(),
            **_options(),
            "tags": {"$ref": "#/$defs/tags"},
            "location": {
                "description": "Where a catalog table lies, so that it can be read without the catalog.",
                "type": "string",
                "pattern": rf"^(/|[A-Za-z][A-Za-z0-9+.-]*:/|.*{VARIABLE})",
                "examples": ["s3://lake/sales/orders"],
            },
            "unmanaged": {
                "description": "Inherited attributes and property keys that this table does not take.",
                "type": "array",
                "items": {"type": "string", "examples": list(SHAPES)},
                "examples": [["isolation"]],
            },
        },
        "not": {
            "type": "object",
            "required": list(EXCLUSIVE),
            "properties": {name: {"type": "array"} for name in EXCLUSIVE},
        },
    }


def _tags() -> Schema:
    return {
        "description": "Words that `--tag` selects tables by.",
        "type": "array",
        "items": {"type": ["string", "integer", "boolean"], "pattern": rf"^({TAG}|.*{VARIABLE}.*)$"},
        "uniqueItems": True,
        "examples": [["streaming"]],
    }


def _attribute(shape: ValueType) -> Schema:
    about = {"description": shape.description}
    if shape.keyed:
        return {**about, **_properties()}
    if shape.fields:
        fields = {
            each.name: {**_TEXT, "description": each.description, "examples": [*each.words, each.example]}
            for each in shape.fields
        }
        return {**about, "type": "object", "properties": fields, "additionalProperties": False}
    words: Schema = {
        "enum": [
            *shape.words,
            *({"true": True, "false": False}[each] for each in shape.words if each in {"true", "false"}),
        ]
    }
    choices = [_columns(shape), words, _VARIABLE] if shape.columns else [words, _VARIABLE]
    return {**about, "anyOf": choices}


def _columns(shape: ValueType) -> Schema:
    most = {"maxItems": shape.most_columns} if shape.most_columns else {}
    return {
        "type": "array",
        "items": {**_TEXT, "minLength": 1},
        "minItems": 1,
        **most,
        "uniqueItems": True,
        "examples": [["customer_id", "order_date"]],
    }


def _properties() -> Schema:
    declarable = sorted({key for dialect in DIALECTS for key in declarable_keys(dialect.name)})
    return {
        "type": "object",
        "properties": {key: _property(key) for key in declarable},
        "additionalProperties": _value(),
        "examples": [{"delta.checkpointRetentionDuration": "interval 60 days", "owner.team": "payments"}],
    }


def _property(key: str) -> Schema:
    dialects = [each.name for each in DIALECTS if find_known(key, each.name)]
    only = f" Only in the {dialects[0]} dialect." if len(dialects) == 1 else ""
    return {**_value(), "description": f"{needs_of(key, dialects[0])}{only}"}


def _value() -> Mapping[str, Any]:
    return {"type": ["string", "integer", "boolean", "null"]}
