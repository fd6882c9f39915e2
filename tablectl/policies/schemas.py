"""The JSON Schema of a policy file, for editors, made from the fields that read it.

A schema accepts more than the reader in cases that JSON Schema cannot express: variables, the letter case of
``delta.*`` keys, the syntax of names, times and paths.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tablectl.attributes.policy import EXCLUSIVE
from tablectl.policies.policy_fields import ATTRIBUTES, INHERITED, OF_A_TABLE
from tablectl.policies.read_entry import entry_schema
from tablectl.policies.wrong_values import Schema

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_SHARED = (*ATTRIBUTES, "tags")
"""The fields that stand once, under ``$defs``."""


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
                        **_fields(key for key in (*INHERITED, "unmanaged") if key != "profiles"),
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
        "$defs": {"table": _table(), **_fields(_SHARED, shared=())},
    }


def _fields(keys: Iterable[str], shared: Sequence[str] = _SHARED) -> Schema:
    known = entry_schema()["properties"]
    return {key: {"$ref": f"#/$defs/{key}"} if key in shared else known[key] for key in keys}


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
            **_fields((*OF_A_TABLE, "unmanaged")),
        },
        "not": {"anyOf": both},
    }
