"""Plans and runs as SARIF. Checked by models that were made from the official schema and take nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from time import process_time
from typing import Any

import pytest
from hypothesis import given, settings
from pydantic_sarif.model import StaticAnalysisResultsFormatSarifVersion210JsonSchema as Sarif

from tablectl.lint_rules import RULES as CODES
from tablectl.model.errors import Problem
from tablectl.model.plan import Finding, Plan, Refusal
from tablectl.model.run_report import RunOutcome, RunReport, TableRun
from tablectl.policies.yaml_nodes import SourceFile
from tablectl.reports.report_context import Context
from tablectl.reports.sarif import MOST, RULES, problems_sarif
from tests.reports.hostile import EVIL, TEXTS
from tests.reports.rendered import plan_sarif, run_sarif
from tests.reports.test_plan_markdown import hostile_plan, many

Golden = Callable[[str, str], None]


def run_of(text: str) -> dict[str, Any]:
    """The only run of a valid file."""
    Sarif.model_validate_json(text)
    body = json.loads(text)
    assert body["version"] == "2.1.0"
    (run,) = body["runs"]
    ids = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert [ids[result["ruleIndex"]] for result in run["results"]] == [each["ruleId"] for each in run["results"]]
    assert len(set(ids)) == len(ids)
    assert isinstance(run, dict)
    return run


def results(text: str) -> list[tuple[str, str, str]]:
    found = run_of(text)["results"]
    return [(each["ruleId"], each["level"], each["message"]["text"].partition(":")[0]) for each in found]


def test_a_plan(plan: Plan, golden: Golden) -> None:
    line = SourceFile("policies/sales.yaml", 7, 5)
    context = Context(sources={"lake.sales.orders": {"isolation": line, "": replace(line, line=6, column=3)}})
    text = plan_sarif(plan, context)
    run_of(text)
    golden("plan.sarif", text.replace('"version": "0.1.0"', '"version": "…"'))


def test_what_is_worst_comes_first(plan: Plan) -> None:
    found = results(plan_sarif(plan, Context()))
    assert found[:3] == [
        ("unreadable", "error", "lake.sales.gone"),
        ("refused", "error", "lake.sales.sessions"),
        ("refused", "error", "lake.sales.sessions"),
    ]
    assert [level for _, level, _ in found] == ["error"] * 3 + ["warning"] + ["note"] * 3
    assert not [rule for rule, _, _ in found if rule == "pending"], "wanted changes are not alerts"


def test_a_run(run_report: RunReport) -> None:
    found = results(run_sarif(run_report, Context()))
    assert ("stale", "error", "lake.sales.clicks") in found
    assert ("failed", "error", "lake.sales.returns") in found
    assert ("window", "error", "lake.sales.events") in found
    assert ("undone", "warning", "lake.sales.orders") in found
    assert ("possible-failure", "warning", "lake.sales.orders") in found
    assert "lake.sales.ledger" not in {table for _, _, table in found}


@pytest.mark.parametrize("outcome", list(RunOutcome))
def test_only_what_is_as_declared_is_not_told(outcome: RunOutcome) -> None:
    report = RunReport(run="1", plan="2", tables=(TableRun(name="a", outcome=outcome),))
    silent = outcome in {RunOutcome.APPLIED, RunOutcome.ALREADY, RunOutcome.WAITING, RunOutcome.ALREADY}
    assert len(run_of(run_sarif(report, Context()))["results"]) == (0 if silent else 1)


@pytest.mark.parametrize(
    ("file", "root", "artifact"),
    [
        ("policies/a.yaml", "", {"uri": "policies/a.yaml", "uriBaseId": "%SRCROOT%"}),
        ("policies/a.yaml", "lake/sales", {"uri": "lake/sales/policies/a.yaml", "uriBaseId": "%SRCROOT%"}),
        ("../shared/a.yaml", "lake/sales", {"uri": "lake/shared/a.yaml", "uriBaseId": "%SRCROOT%"}),
        ("policies/a b#ü%.yaml", "", {"uri": "policies/a%20b%23%C3%BC%25.yaml", "uriBaseId": "%SRCROOT%"}),
        ("/etc/policies/a.yaml", "lake", {"uri": "file:///etc/policies/a.yaml"}),
    ],
)
def test_the_line_that_asked_for_it(plan: Plan, file: str, root: str, artifact: dict[str, str]) -> None:
    sources = {"lake.sales.sessions": {"isolation": SourceFile(file, 9, 4), "": SourceFile(file, 8, 1)}}
    run = run_of(plan_sarif(plan, Context(sources=sources, root=root)))
    isolation, partitioning = (each["locations"][0] for each in run["results"] if each["ruleId"] == "refused")
    assert isolation["physicalLocation"] == {"artifactLocation": artifact, "region": {"startLine": 9, "startColumn": 4}}
    assert partitioning["physicalLocation"]["region"] == {"startLine": 8, "startColumn": 1}  # its table's own line
    assert isolation["logicalLocations"] == [{"fullyQualifiedName": "lake.sales.sessions", "kind": "resource"}]


def test_no_result_is_without_a_file(plan: Plan, run_report: RunReport) -> None:
    for text in (plan_sarif(plan, Context()), run_sarif(run_report, Context())):
        for result in run_of(text)["results"]:
            assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "tablectl.yaml"


def test_problems_of_files() -> None:
    problems = [Problem("p.yaml", 3, 7, "is no [x](y) {0}", "say y"), Problem("policies", 0, 0, "no files to read")]
    run = run_of(problems_sarif(problems, Context(root="lake")))
    places = [each["locations"][0]["physicalLocation"] for each in run["results"]]
    assert [each["artifactLocation"]["uri"] for each in places] == ["lake/p.yaml", "lake/policies"]
    assert [each.get("region") for each in places] == [{"startLine": 3, "startColumn": 7}, None]
    assert run["results"][0]["message"]["text"] == "is no [x] (y) {{0}}\nFix: say y"
    assert run["invocations"] == [{"executionSuccessful": False}]
    assert run_of(problems_sarif((), Context()))["results"] == []


def test_the_same_thing_is_known_again(plan: Plan) -> None:
    def prints(plan: Plan, line: int) -> list[str]:
        source = SourceFile("a.yaml", line, 1)
        run = run_of(plan_sarif(plan, Context(sources={"lake.sales.orders": {"": source}})))
        return [each["partialFingerprints"]["tablectl/v1"] for each in run["results"]]

    assert prints(plan, 3) == prints(plan, 30)
    assert len(set(prints(plan, 3))) == len(prints(plan, 3))


@pytest.mark.parametrize("text", EVIL)
def test_any_text_makes_a_valid_file(plan: Plan, text: str) -> None:
    sources = {text: {text: SourceFile(text, 0, 0)}}
    run = run_of(plan_sarif(hostile_plan(plan, text), Context(sources=sources)))
    assert len(run["results"]) == 6


@settings(max_examples=50, deadline=None)
@given(TEXTS)
def test_no_text_is_a_link_or_a_placeholder(text: str) -> None:
    table = TableRun(name=text, outcome=RunOutcome.FAILED, message=text, hint=text)
    (result,) = run_of(run_sarif(RunReport(run="1", plan="2", tables=(table,)), Context()))["results"]
    said = result["message"]["text"]
    assert "](" not in said
    assert not re.search(r"(?<!\{)(\{\{)*\{\d+\}", said)


def test_a_finding_of_another_version(plan: Plan) -> None:
    finding = Finding(code="X042", severity="warning", message="something new")
    odd = replace(plan, tables=(replace(plan.tables[0], findings=(finding,)),))
    run = run_of(plan_sarif(odd, Context()))
    assert [each["level"] for each in run["results"] if each["ruleId"] == "X042"] == ["warning"]


def test_every_code_of_a_finding_has_a_rule() -> None:
    assert CODES.keys() <= RULES.keys()
    assert all("**How to fix.**" in RULES[code].help for code in CODES)


def test_what_the_repository_ignores_is_suppressed_with_its_reason(plan: Plan) -> None:
    finding = Finding(code="L005", severity="ignored", message="kept", about="isolation", reason="by audit")
    told = replace(plan, tables=(replace(plan.tables[0], findings=(finding,)),))
    (result,) = [each for each in run_of(plan_sarif(told, Context()))["results"] if each["ruleId"] == "L005"]
    assert result["suppressions"] == [{"kind": "external", "justification": "by audit"}]
    assert result["level"] == "note"


def test_an_error_of_lint_is_reported_once(plan: Plan) -> None:
    finding = Finding(code="L006", severity="error", message="short", about="isolation")
    refusal = Refusal(change="isolation", reason="short", fix="longer", condition="L006")
    told = replace(plan, tables=(replace(plan.tables[0], findings=(finding,), refusals=(refusal,)),))
    levels = {each["ruleId"]: each["level"] for each in run_of(plan_sarif(told, Context()))["results"]}
    assert levels["L006"] == "error"
    assert not any(each["ruleId"] == "refused" for each in run_of(plan_sarif(told, Context()))["results"])


def test_more_than_any_reader_takes(plan: Plan) -> None:
    started = process_time()
    text = plan_sarif(many(plan, 9_000), Context())
    assert process_time() - started < 30
    run = json.loads(text)["runs"][0]
    assert len(run["results"]) == MOST
    assert run["results"][0]["level"] == "error"
    (notice,) = run["invocations"][0]["toolExecutionNotifications"]
    assert notice["message"]["text"].startswith("2001 results are left out")
