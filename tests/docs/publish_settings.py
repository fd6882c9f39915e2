"""Write ``docs/generated/settings.md`` from the settings: ``python -m tests.docs.publish_settings``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tablectl.policies.config import CONFIG, OVERRIDDEN
from tablectl.policies.declare_setting import settings_of
from tablectl.policies.field_types import (
    ListOf,
    MapOf,
    Section,
    Text,
    Word,
    YamlField,
    environment_variables,
    number_text,
)
from tests.docs.pages import ROOT

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


@dataclass(frozen=True)
class Row:
    """One key."""

    keys: tuple[str, ...]
    takes: YamlField
    default: str


def rows(section: Section = CONFIG, above: tuple[str, ...] = ()) -> Iterator[Row]:
    """The keys of a section in the order of their declaration, but for those of the environments."""
    made = section.make()
    for key, takes in section.keys.items():
        keys, default = (*above, key), getattr(made, key, None)
        inner = takes.of if isinstance(takes, ListOf | MapOf) else takes
        if keys == ("env",):
            continue
        if not isinstance(inner, Section):
            yield Row(keys, takes, "required" if key in section.required else _default(default))
        elif isinstance(takes, MapOf):
            yield from rows(inner, (*keys, _NAMES.get(key, "NAME")))
        else:
            yield from rows(inner, (*above, f"{key}[]") if isinstance(takes, ListOf) else keys)


def _values(takes: YamlField) -> str:
    if isinstance(takes, ListOf):
        return f"list of {_values(takes.of).removeprefix('a ')}"
    if isinstance(takes, MapOf):
        return f"map of {_values(takes.of)}"
    if isinstance(takes, Word):
        return ", ".join(f"`{each}`" for each in takes.words)
    if isinstance(takes, Text) and "minimum" in takes.values:
        return f"{takes.takes}, {takes.values['minimum']:,} to {takes.values['maximum']:,}"
    return takes.noun or takes.takes if isinstance(takes, Text) else takes.takes


def _default(value: Any) -> str:
    if value is None or value == "" or (isinstance(value, tuple | Mapping) and not value):
        return ""
    if isinstance(value, tuple):
        return ", ".join(f"`{each}`" for each in value)
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{number_text(value)}`" if isinstance(value, float) else f"`{value}`"


def page() -> str:
    variables = {keys: name for name, keys in environment_variables(CONFIG)}
    overriding: dict[tuple[str, ...], str] = {
        (place, each.name): f"`{about.flags[0]}`, `{each.name}`"
        for record, place in OVERRIDDEN.items()
        for each, about in settings_of(record)
    }
    lines = [
        (
            f"`{'.'.join(row.keys)}`",
            f"`{variables[row.keys]}`" if row.keys in variables else "",
            overriding.get(row.keys, ""),
            _values(row.takes),
            row.default,
            row.takes.description.replace("|", "\\|"),
        )
        for row in rows()
    ]
    return _TOP + "".join(f"| {' | '.join(line)} |\n".replace("|  |", "| |").replace("|  |", "| |") for line in lines)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
