"""The schemas of what is printed as JSON hold for what is printed, and for nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tablectl.documents.style import Style
from tablectl.model.plan import Plan
from tablectl.model.run_report import RunReport
from tablectl.reports.mask import Mask
from tablectl.reports.render import ReportFormat
from tablectl.reports.report_context import Context
from tablectl.reports.schema import plan_schema, run_schema
from tests.reports.rendered import render_plan, render_run

Golden = Callable[[str, str], None]


def problems(schema: dict[str, Any], body: Any) -> list[str]:
    return [each.message for each in Draft202012Validator(schema).iter_errors(body)]


@pytest.fixture
def plan_body(plan: Plan) -> Any:
    return json.loads(render_plan(plan, ReportFormat.JSON, Style(), Mask(), Context()))


@pytest.fixture
def run_body(run_report: RunReport) -> Any:
    return json.loads(render_run(run_report, ReportFormat.JSON, Style(), Mask(), Context()))


def test_they_are_published(golden: Golden) -> None:
    for name, schema in (("plan", plan_schema()), ("run", run_schema())):
        Draft202012Validator.check_schema(schema)
        golden(f"{name}.schema.json", json.dumps(schema, indent=2) + "\n")


def test_a_plan(plan: Plan, plan_body: Any) -> None:
    assert problems(plan_schema(), plan_body) == []
    masked = json.loads(render_plan(plan, ReportFormat.JSON, Style(), Mask(("owner.*",)), Context()))
    assert problems(plan_schema(), masked) == []


def test_a_run(run_body: Any) -> None:
    assert problems(run_schema(), run_body) == []


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["format"], 3),
        (["sha256"], "x"),
        (["more"], 1),
        (["tables", 0, "more"], 1),
        (["tables", 0, "version"], "12"),
        (["tables", 0, "statements", 0, "phase"], "later"),
        (["tables", 0, "statements", 0, "effect", "sets", 0], ["one"]),
        (["tables", 0, "statements", 0, "effect", "sets", 0], ["one", "two", "three"]),
        (["tables", 0, "changes", 0, "after"], 1),
        (["tables", 0, "findings", 0, "severity"], "terrible"),
    ],
)
def test_what_is_not_a_plan(plan_body: Any, path: list[str | int], value: object) -> None:
    inner = plan_body
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    assert problems(plan_schema(), plan_body)


def test_what_is_not_a_run(run_body: Any) -> None:
    for key, value in (("exit_code", 2), ("exit_code", None), ("tables", {}), ("more", 1)):
        assert problems(run_schema(), {**run_body, key: value})
    del run_body["run"]
    assert problems(run_schema(), run_body) == ["'run' is a required property"]


def test_each_key_says_what_it_is(plan_body: Any) -> None:
    statement = plan_schema()["$defs"]["Statement"]["properties"]
    assert statement["fails"]["description"] == "Which concurrent writers would fail, and how; empty if none."
    assert plan_schema()["$defs"]["Phase"]["enum"] == ["free", "rewrite", "closed"]
    policies = "SHA-256 of the policies: of all, or with `changed_since` of those of the plan's tables."
    assert plan_schema()["properties"]["policies"]["description"] == policies
