"""Write ``docs/generated/settings.md`` from the settings: ``python -m tests.docs.publish_settings``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tablectl.policies.config import config_schema, environment_variables
from tablectl.policies.value_kinds import number_text
from tests.docs.pages import ROOT
from tests.program import commands

Schema = dict[str, Any]
PAGE = ROOT / "docs" / "generated" / "settings.md"
_NAMES = {"catalogs": "CATALOG", "lint": "CODE", "env": "NAME"}
"""What the keys of maps are."""
_TOP = """# Settings

Every key of `tablectl.yaml`, with the variable, the flag and the parameter of the Python functions that override it.
This page is generated from the settings by `python -m tests.docs.publish_settings`.

A flag or a parameter has the highest precedence, then the variable, then the key. `env: {NAME: {…}}` sets most of these
keys for one environment ([environments.md](../environments.md)). `tablectl COMMAND --help` shows the options of a
command.

| key | variable | flag, parameter | values | default | meaning |
|---|---|---|---|---|---|
"""


def rows(schema: Schema, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Schema, bool]]:
    """The keys of a section with their schemas and whether they are required, but for those of the environments."""
    for key, about in schema["properties"].items():
        free = about.get("additionalProperties")
        inner = _section(about.get("items") or free or {})
        if about.get("properties") and inner is None and not key.startswith(("s3", "gs", "az")):
            yield from rows(about, (*above, key))
        elif inner is None:
            yield (*above, key), about, key in schema.get("required", ())
        elif key != "env":
            yield from rows(inner, (*above, key, _NAMES.get(key, "NAME")) if free else (*above, f"{key}[]"))


def _section(schema: Schema | bool) -> Schema | None:
    """The part of a schema that has keys."""
    parts = [schema, *schema.get("anyOf", ())] if isinstance(schema, dict) else []
    return next((each for each in parts if "properties" in each), None)


def _values(about: Schema) -> str:
    if about.get("type") == "array":
        return f"list of {_values(about['items']).removeprefix('a ')}"
    if about.get("type") == "object":
        free = about.get("additionalProperties")
        return f"map of {_values(free)}" if isinstance(free, dict) else "a map"
    if "enum" in about or about.get("type") == "boolean":
        return ", ".join(f"`{each}`" for each in about.get("enum", ("true", "false")))
    if "minimum" in about:
        time = ", or a time such as `5m`" if "string" in about["type"] else ""
        kind = "a whole number" if "integer" in about["type"] else "a number"
        return f"{kind}, {about['minimum']:,} to {about['maximum']:,}{time}"
    if "anyOf" in about:
        return "a command"
    examples = f", such as `{about['examples'][0]}`" if "examples" in about else ""
    return f"text{examples}"


def _default(about: Schema) -> str:
    value = about.get("default", "")
    if isinstance(value, list):
        return ", ".join(f"`{each}`" for each in value)
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{number_text(value)}`" if isinstance(value, float) else f"`{value}`" if value != "" else ""


def page() -> str:
    variables = {keys: name for name, keys in environment_variables()}
    overriding = {
        tuple(key.split(".")): f"`{each.opts[0]}`, `{each.name}`"
        for _, command in commands()
        for each in command.params
        for key in re.findall(r"Default: `(\w+\.\w+)`", getattr(each, "help", "") or "")
    }
    lines = [
        (
            f"`{'.'.join(keys)}`",
            f"`{variables[keys]}`" if keys in variables else "",
            overriding.get(keys, ""),
            _values(about),
            "required" if required else _default(about),
            about.get("description", "").replace("|", "\\|"),
        )
        for keys, about, required in rows(config_schema())
    ]
    return _TOP + "".join(f"| {' | '.join(line)} |\n".replace("|  |", "| |").replace("|  |", "| |") for line in lines)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
