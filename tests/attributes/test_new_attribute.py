"""A new attribute is one file and one entry in a list: a copy of tablectl with such an attribute treats it like the
others.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.product_copy import ProductCopy

_FILE = '''"""``append_only``: whether commits may remove rows."""

from tablectl.attributes.base import Attribute, PlannedOperation, WordAttribute, is_true, put_back
from tablectl.attributes.value_types import ValueType
from tablectl.delta import keys
from tablectl.model.operations import SetProperties


class AppendOnly(WordAttribute):
    """The attribute."""

    name = "append_only"
    value_type = ValueType(
        name=name, description="Whether only appends commit.", words=("yes", "no")
    )
    keys = (keys.APPEND_ONLY,)
    contradictions = (("yes", "deletion_vectors", "purged"),)

    def read(self, live, key):
        return "yes" if is_true(live.property(keys.APPEND_ONLY)) else "no"

    def act(self, change, basis):
        text = "true" if change.after == "yes" else "false"
        operation = SetProperties(((keys.APPEND_ONLY, text),))
        return (PlannedOperation(change.id, operation, undo=put_back(keys.APPEND_ONLY, basis)),)

    def planned(self, declared):
        return {keys.APPEND_ONLY: "true" if declared == "yes" else "false"}
'''
_SCRIPT = """
import json, pathlib, sys
from tablectl.attributes.policy import basis_of
from tablectl.attributes.policy import planned_properties
from tablectl.model.errors import InputError
from tablectl.model.commit import Commit
from tablectl.planning.explain_property import explain_property
from tablectl.planning.import_table import policy_of_table
from tablectl.planning.plan_table import plan_table
from tablectl.policies.effective_policy import explain
from tablectl.policies.repository import load_specs
from tablectl.policies.schemas import policy_schema
from tests.builders import live_table

def problems(entry):
    path = pathlib.Path("wrong.yaml")
    path.write_text("version: 1\\ntables:\\n  lake.s.t:\\n" + entry)
    try:
        load_specs([path], variables={}, environ={})
    except InputError as error:
        return [each.message for each in error.problems]
    return []

path = pathlib.Path("policies.yaml")
path.write_text("version: 1\\ntables:\\n  lake.s.t:\\n    append_only: yes\\n".replace("yes", '"yes"'))
specs = load_specs([path], variables={}, environ={})
(spec,) = specs.tables
plan = plan_table(spec.policy, live_table(), "oss")
deleted = live_table(history=(Commit(1, 0, "DELETE", changes_data=True),))
about = explain_property("delta.APPENDONLY", "oss")
entry = policy_of_table(live_table(properties={"delta.appendOnly": "true"}), "oss")
print(json.dumps({
    "sql": [each.sql for each in plan.statements],
    "undo": list(plan.undo),
    "linted": [[each.code, each.about] for each in plan_table(spec.policy, deleted, "oss").findings],
    "phase": plan.statements[0].phase,
    "stored": basis_of(live_table(properties={"delta.appendOnly": "Some Text"})).stored_text("delta.appendOnly"),
    "explained": [each.key for each in explain(specs, "lake.s.t").resolved],
    "property": [about.attribute, about.description, list(about.codes)],
    "imported": [list(each) for each in entry.declared],
    "planned": planned_properties(spec.policy),
    "schema": policy_schema()["$defs"]["append_only"],
    "in_properties": problems("    properties: {delta.appendOnly: true}\\n"),
    "misspelt": problems("    append_only: yess\\n"),
    "at_the_table": problems("    delta.appendOnly: true\\n"),
    "contradiction": problems("    append_only: \\"yes\\"\\n    deletion_vectors: purged\\n"),
}))
"""


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The answers of a copy of tablectl that has one more attribute."""
    copy = ProductCopy(tmp_path_factory.mktemp("copy"), with_tests=True)
    copy.add("attributes/append_only.py", _FILE)
    copy.edit("attributes/policy.py", "    Properties(),\n", "    AppendOnly(),\n    Properties(),\n")
    before = "from tablectl.attributes.base"
    copy.edit("attributes/policy.py", before, f"from tablectl.attributes.append_only import AppendOnly\n{before}")
    found: dict[str, Any] = json.loads(copy.run(_SCRIPT).stdout)
    return found


def test_it_is_planned_and_undone(facts: dict[str, Any]) -> None:
    assert facts["sql"] == ["ALTER TABLE `lake`.`s`.`t`\nSET TBLPROPERTIES ('delta.appendOnly' = 'true')"]
    assert facts["undo"] == ["ALTER TABLE `lake`.`s`.`t`\nUNSET TBLPROPERTIES IF EXISTS ('delta.appendOnly')"]
    assert facts["phase"] == "closed"
    assert facts["stored"] == "Some Text"


def test_a_lint_rule_about_its_key_finds_it(facts: dict[str, Any]) -> None:
    assert ["L011", "append_only"] in facts["linted"]


def test_it_is_explained_and_imported(facts: dict[str, Any]) -> None:
    assert facts["explained"] == ["append_only"]
    assert facts["property"] == ["append_only", "Whether only appends commit.", ["L011"]]
    assert ["append_only", "", "yes"] in facts["imported"]
    assert not any(each[0] == "properties" for each in facts["imported"])
    assert facts["planned"] == {"delta.appendonly": "true"}


def test_editors_know_it(facts: dict[str, Any]) -> None:
    assert facts["schema"]["description"] == "Whether only appends commit."
    assert facts["schema"]["anyOf"][0] == {"enum": ["yes", "no"]}


def test_wrong_declarations_get_the_usual_errors(facts: dict[str, Any]) -> None:
    assert facts["in_properties"] == ['"delta.appendOnly" has an attribute of its own']
    assert facts["at_the_table"] == ['"delta.appendOnly" is not allowed here']
    assert facts["misspelt"] == ['"yess" is not a value of `append_only`']
    (contradiction,) = facts["contradiction"]
    assert contradiction.startswith("`append_only: yes` and `deletion_vectors: purged` exclude each other")
