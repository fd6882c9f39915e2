"""A new lint rule is one file: a copy of tablectl with such a file checks it, documents it and takes its severity."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.product_copy import ProductCopy

_FILE = '''"""A rule about names."""

from tablectl.lint_rules.rule import LintRule


@LintRule(
    code="L999",
    name="ShoutingColumn",
    severity="warning",
    title="A column in capitals",
    breaks="Nothing.",
    why="It is loud.",
    fix="Rename the column.",
    source="docs/lint-rules.md",
)
def shouting_column(state):
    for field in state.live.schema.fields if state.live else ():
        if field.name.isupper():
            yield f"the column {field.name} shouts", ""
'''
_SCRIPT = """
import json, pathlib
from tablectl.attributes.policy import Policy
from tablectl.delta.schema import Field, Schema
from tablectl.lint_rules import RULES
from tablectl.planning.plan_table import plan_table
from tablectl.policies.read_config import load_config
from tablectl.policies.config import config_schema
from tests.reports.lint_page import codes_page
from tablectl.reports.sarif import RULES as SARIF
from tests.builders import live_table

pathlib.Path("tablectl.yaml").write_text("lint: {L999: error}\\n")
severities = load_config(pathlib.Path(), {}).severities
live = live_table(schema=Schema((Field("LOUD", "long"),)))
plan = plan_table(Policy({"isolation": "Serializable"}), live, "oss", severities=severities)
print(json.dumps({
    "found": [[each.code, each.severity, each.message] for each in plan.findings],
    "refused": [[each.condition, each.fix] for each in plan.refusals],
    "order": [code for code in RULES if code.startswith("L")][-1],
    "page": "L999" in codes_page(),
    "editor": "L999" in json.dumps(config_schema()),
    "sarif": SARIF["L999"].help,
}))
"""


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The answers of a copy of tablectl that has one more rule."""
    copy = ProductCopy(tmp_path_factory.mktemp("copy"), with_tests=True)
    copy.add("lint_rules/shouting.py", _FILE)
    found: dict[str, Any] = json.loads(copy.run(_SCRIPT).stdout)
    return found


def test_a_plan_checks_it_with_the_severity_of_the_repository(facts: dict[str, Any]) -> None:
    assert facts["found"] == [["L999", "error", "the column LOUD shouts"]]
    assert facts["refused"] == [["L999", "rename the column"]]


def test_it_is_documented_with_the_other_rules(facts: dict[str, Any]) -> None:
    assert facts["order"] == "L999"
    assert facts["page"]
    assert facts["editor"]
    assert "**How to fix.** Rename the column." in facts["sarif"]
