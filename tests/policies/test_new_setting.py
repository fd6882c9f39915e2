"""A new setting is one declaration: a copy of tablectl with such a setting takes it from everywhere."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from tests.product_copy import ProductCopy

_BEFORE = "    soak: Annotated[float"
_DECLARATION = """    pauses: Annotated[
        int, Field(ge=1, le=9, description="How many pauses an apply makes."), WHOLE
    ] = setting(
        3, whole(1, 9, "How many pauses an apply makes."), "--pauses", metavar="N"
    )
"""
_SCRIPT = """
import inspect, json, os, pathlib, sys
import tablectl
from tablectl.commands import apply
from tablectl.commands.command_line import run_cli
from tablectl.model.errors import InputError, UsageError
from tablectl.policies.config import config_schema
from tablectl.policies.read_config import load_config

here, file, seen = pathlib.Path(), pathlib.Path("tablectl.yaml"), []
pathlib.Path("policies.yaml").write_text("version: 1\\ntables: {}\\n")

def run(project, plan, control, options, approve):
    seen.append(project.config.window.pauses)
    return done(project, plan, control, options, approve)

done, apply.run = apply.run, run
file.write_text("{policies: policies.yaml, window: {pauses: 5}}")
found = {"file": load_config(here, {}).window.pauses}
found["variable"] = load_config(here, {"TABLECTL_WINDOW_PAUSES": "6"}).window.pauses
run_cli(["apply", "--yes", "--pauses", "7"], {})
run_cli(["apply", "--yes"], {})
tablectl.apply(pauses=8)
found["applied"] = seen
found["schema"] = config_schema()["properties"]["window"]["properties"]["pauses"]
found["parameter"] = inspect.signature(tablectl.apply).parameters["pauses"].default
try:
    tablectl.apply(pauses=10)
except UsageError as error:
    found["python"] = error.message
print(json.dumps(found))
file.write_text("window:\\n  pauses: 0\\n")
try:
    load_config(here, {})
except InputError as error:
    print(json.dumps([[each.line, each.message] for each in error.problems]))
run_cli(["apply", "--pauses", "ten"], {})
run_cli(["apply", "--help"], {})
"""


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    """What a copy of tablectl with one more declaration says."""
    copy = ProductCopy(tmp_path_factory.mktemp("copy"))
    copy.edit("policies/config.py", _BEFORE, _DECLARATION + _BEFORE)
    return copy.run(_SCRIPT)


@pytest.fixture
def found(ran: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    line = next(line for line in ran.stdout.splitlines() if line.startswith('{"file"'))
    parsed: dict[str, Any] = json.loads(line)
    return parsed


def test_the_file_and_a_variable_set_it(found: dict[str, Any]) -> None:
    assert (found["file"], found["variable"]) == (5, 6)


def test_a_flag_and_a_parameter_override_the_file(found: dict[str, Any]) -> None:
    assert found["applied"] == [7, 5, 8]
    assert found["parameter"] == 3


def test_editors_know_it(found: dict[str, Any]) -> None:
    assert found["schema"] == {
        "description": "How many pauses an apply makes.",
        "type": "integer",
        "minimum": 1,
        "maximum": 9,
        "default": 3,
    }


def test_wrong_values_get_the_usual_errors(found: dict[str, Any], ran: subprocess.CompletedProcess[str]) -> None:
    assert found["python"] == "`pauses` needs at most 9, not '10'"
    assert '[[2, "`window.pauses` needs at least 1, not \\"0\\""]]' in ran.stdout
    assert "--pauses needs a whole number, not 'ten'" in ran.stderr


def test_the_help_of_the_command_says_what_it_is(ran: subprocess.CompletedProcess[str]) -> None:
    assert "--pauses N" in ran.stdout
    assert "How many pauses an apply makes. Default: `window.pauses`, else 3." in " ".join(ran.stdout.split())
