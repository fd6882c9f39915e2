"""Every variable, key and flag that a page names exists: each is set once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tablectl.commands.command_line import COMMANDS
from tablectl.model.errors import InputError, UsageError
from tablectl.policies.config import config_schema, environment_variables
from tablectl.policies.read_config import FILE, load_config
from tests.program import commands as program_commands

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("docs/generated/*.md")])
OWN = frozenset({"TABLECTL_MINE", "TABLECTL_VAR"})
"""A variable of a user in an example, and the beginning of others."""


@cache
def text() -> str:
    return "\n".join(page.read_text("utf-8") for page in PAGES)


def variables() -> list[str]:
    return sorted(set(re.findall(r"(?<![A-Z_])TABLECTL_[A-Z_]*[A-Z]", text())) - OWN)


@pytest.mark.parametrize("name", variables())
def test_a_variable_of_a_page_is_taken(name: str, tmp_path: Path) -> None:
    """The value may be wrong for the setting, but the variable is known. An empty file names no variable of a user."""
    (tmp_path / FILE).write_text("")
    said = ""
    try:
        load_config(tmp_path, {name: "1"})
    except (InputError, UsageError) as error:
        said = str(error)
    assert "no setting has this name" not in said


def test_every_variable_of_a_setting_is_on_a_page() -> None:
    assert {name for name, _ in environment_variables()} <= set(variables())


def has_key(schema: Mapping[str, Any], steps: list[str]) -> bool:
    """Whether a file of this JSON Schema can have a key."""
    if not steps:
        return True
    inner = [schema, *schema.get("anyOf", ()), *schema.get("oneOf", ())]
    named = [each["properties"][steps[0]] for each in inner if steps[0] in each.get("properties", {})]
    free = [each["additionalProperties"] for each in inner if isinstance(each.get("additionalProperties"), dict)]
    return any(has_key(each, steps[1:]) for each in (*named, *free))


def test_a_key_of_a_page_is_a_setting() -> None:
    """Texts in backticks that begin with a section of ``tablectl.yaml``, and have a dot."""
    schema = config_schema()
    sections = {key for key, each in schema["properties"].items() if has_key(each, ["x"]) or "properties" in each}
    named = set(re.findall(r"`([a-z_]+\.[a-z_.]+)`", text()))
    named = {each for each in named if each.partition(".")[0] in sections and not each.endswith(".py")}
    assert {each for each in named if not has_key(schema, each.split("."))} == set()


def commands() -> list[tuple[str, str]]:
    """Each command in backticks or in a block, with a flag of it."""
    found = set[tuple[str, str]]()
    for line in re.findall(r"(?:`|^)(tablectl [^`\n|&;]*)", text(), re.MULTILINE):
        words = line.split()
        path = next((path for path in (" ".join(words[1:3]), words[1]) if path in COMMANDS), "")
        found |= {
            (path, flag.partition("=")[0]) for flag in words if path and re.fullmatch(r"--[a-z][a-z-]*(?:=.*)?", flag)
        }
    return sorted(found)


@pytest.mark.parametrize(("path", "flag"), commands())
def test_a_flag_of_a_page_is_an_option_of_its_command(path: str, flag: str) -> None:
    command = dict(program_commands())[tuple(path.split())]
    known = {opt for each in command.params for opt in (*each.opts, *each.secondary_opts)}
    assert flag in known | {"--help", "--verbose", "--version"}
