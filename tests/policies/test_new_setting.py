"""A new setting is one declaration: a copy of tablectl with such a setting takes it from everywhere."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from tests.product_copy import ProductCopy

_BEFORE = "    soak: Annotated[float"
_DECLARATION = """    pauses: Annotated[int, Field(ge=1, le=9, description="How many pauses."), WHOLE] = 3
"""
_SCRIPT = """
import json, pathlib
from tablectl.model.errors import InputError
from tablectl.policies.config import config_schema
from tablectl.policies.read_config import load_config

here, file = pathlib.Path(), pathlib.Path("tablectl.yaml")
file.write_text("{window: {pauses: 5}}")
found = {"file": load_config(here, {}).window.pauses}
found["variable"] = load_config(here, {"TABLECTL_WINDOW_PAUSES": "6"}).window.pauses
found["schema"] = config_schema()["properties"]["window"]["properties"]["pauses"]
file.write_text("{}")
found["default"] = load_config(here, {}).window.pauses
file.write_text("window:\\n  pauses: 0\\n")
try:
    load_config(here, {})
except InputError as error:
    found["wrong"] = [[each.line, each.message] for each in error.problems]
print(json.dumps(found))
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
    assert (found["file"], found["variable"], found["default"]) == (5, 6, 3)


def test_editors_know_it(found: dict[str, Any]) -> None:
    assert found["schema"] == {
        "description": "How many pauses.",
        "type": "integer",
        "minimum": 1,
        "maximum": 9,
        "default": 3,
    }


def test_wrong_values_get_the_usual_errors(found: dict[str, Any]) -> None:
    assert found["wrong"] == [[2, '`window.pauses` needs at least 1, not "0"']]
