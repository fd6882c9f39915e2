"""The JSON Schema of a policy file, for editors, made from the fields that read it.

A schema accepts more than the reader in cases that JSON Schema cannot express: variables, the letter case of
``delta.*`` keys, the syntax of names, times and paths.
"""

from __future__ import annotations

from collections.abc import Mapping

from tablectl.attributes.policy import EXCLUSIVE
from tablectl.policies.field_types import Schema, YamlField
from tablectl.policies.policy_fields import ATTRIBUTE_FIELDS, INHERITED, OF_A_TABLE

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_SHARED = (*ATTRIBUTE_FIELDS, "tags")
"""The fields that stand once, under ``$defs``."""
_UNMANAGED: Schema = {
    "description": "Inherited attributes and property keys that this table does not take.",
    "type": "array",
    "items": {"type": "string", "examples": list(ATTRIBUTE_FIELDS)},
    "examples": [["isolation"]],
}


def policy_schema() -> Schema:
    """The schema of a policy file as JSON Schema 2020-12."""
    return {
        "$schema": _DIALECT,
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
                "properties": _fields(INHERITED),
            },
            "profiles": {
                "description": "Named bundles of settings, which `profiles: [NAME]` attaches to tables and patterns.",
                "type": "object",
                "additionalProperties": {
                    "description": "Settings of the profile.",
                    "type": ["object", "null"],
                    "additionalProperties": False,
                    "properties": {
                        **_fields({name: each for name, each in INHERITED.items() if name != "profiles"}),
                        "unmanaged": _UNMANAGED,
                    },
                },
                "examples": [{"gold": {"isolation": "Serializable"}}],
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
        "$defs": {"table": _table(), **{name: INHERITED[name].schema(variables=True) for name in _SHARED}},
    }


def _fields(fields: Mapping[str, YamlField]) -> Schema:
    return {
        name: {"$ref": f"#/$defs/{name}"} if name in _SHARED else field.schema(variables=True)
        for name, field in fields.items()
    }


def _table() -> Schema:
    both = [
        {"type": "object", "required": [*pair], "properties": {name: {"type": "array"} for name in pair}}
        for pair in EXCLUSIVE
    ]
    return {
        "description": "Desired state of a table, or of each table that a pattern matches. Empty: the defaults.",
        "type": ["object", "null"],
        "additionalProperties": False,
        "properties": {
            **_fields(OF_A_TABLE),
            "unmanaged": _UNMANAGED,
        },
        "not": {"anyOf": both},
    }
