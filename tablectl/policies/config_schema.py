"""The JSON Schema of ``tablectl.yaml``, for editors, made from the types that read it (``config_keys``).

The schema accepts more than the reader in cases that JSON Schema cannot express: times, paths, names of variables.
"""

from __future__ import annotations

from typing import Any

from tablectl.policies.config import CONFIG
from tablectl.policies.config_keys import Command, ConfigOptions, ConfigSection, ConfigValue, ListOf, MapOf, Takes

Schema = dict[str, Any]


def config_schema() -> Schema:
    """The schema as JSON Schema 2020-12."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "tablectl.yaml",
        "description": "Where the policies of a repository are, and how tablectl reaches and changes its tables.",
        **_section(CONFIG),
    }


def _section(section: ConfigSection) -> Schema:
    properties = {
        key: {"description": section.about.get(key, ""), **_schema(takes)} for key, takes in section.keys.items()
    }
    required = {"required": [*section.required]} if section.required else {}
    return {"type": "object", "additionalProperties": False, **required, "properties": properties}


def _schema(takes: Takes) -> Schema:
    match takes:
        case ConfigValue():
            return dict(takes.schema)
        case MapOf():
            names = {"propertyNames": dict(takes.names)} if takes.names else {}
            return {"type": "object", **names, "additionalProperties": _schema(takes.of)}
        case ListOf():
            return {"type": "array", "items": _schema(takes.of)}
        case ConfigOptions():
            known = {key: _schema(takes.of) for key in sorted(takes.known - set(takes.secrets))}
            return {"type": "object", "additionalProperties": False, "properties": known}
        case Command():
            words = {"type": "array", "items": {"type": "string"}, "minItems": 1}
            return {"anyOf": [{"type": "string"}, words], "examples": [["./pause.sh", "nightly"]]}
        case ConfigSection(short=short):
            return {"anyOf": [_schema(takes.keys[short]), _section(takes)]} if short else _section(takes)
