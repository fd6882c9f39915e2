"""Plans and runs as test results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from time import process_time
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings

from tablectl.model.plan import Plan
from tablectl.model.run_report import RunOutcome, RunReport, TableRun
from tablectl.policies.yaml_nodes import SourceFile
from tablectl.reports.report_context import Context
from tests.reports.hostile import EVIL, TEXTS
from tests.reports.rendered import plan_junit, run_junit
from tests.reports.test_plan_markdown import hostile_plan, many

Golden = Callable[[str, str], None]


def cases(xml: str) -> list[tuple[str, str]]:
    """The name of each test case and what came of it; the counts of the suite must agree."""
    suite = ET.fromstring(xml.encode()).find("testsuite")
    assert suite is not None
    found = []
    for case in suite.iter("testcase"):
        kinds = [each.tag for each in case if each.tag != "system-out"]
        found.append((case.attrib["name"], kinds[0] if kinds else "passed"))
    counts = Counter(result for _, result in found)
    numbers = {name: int(suite.attrib[name]) for name in ("tests", "failures", "errors", "skipped")}
    assert numbers == {
        "tests": len(found),
        "failures": counts["failure"],
        "errors": counts["error"],
        "skipped": counts["skipped"],
    }
    return found


def results(xml: str) -> dict[str, str]:
    return dict(cases(xml))


def test_a_plan(plan: Plan, golden: Golden) -> None:
    sources = {"lake.sales.orders": {"": SourceFile("policies/sales.yaml", 7, 3)}}
    context = Context(sources=sources, seconds=2.5, began=1_795_000_000_000)
    golden("plan.junit.xml", plan_junit(replace(plan, unmatched=("lake.old.*",)), context))


def test_a_run(run_report: RunReport, golden: Golden) -> None:
    golden("run.junit.xml", run_junit(run_report, Context()))


def test_times_are_those_of_the_tables_and_of_the_whole_run(run_report: RunReport) -> None:
    suite = ET.fromstring(run_junit(run_report, Context()).encode()).find("testsuite")
    assert suite is not None
    assert (suite.attrib["time"], suite.attrib["timestamp"]) == ("302.500", "2026-11-18T11:06:39+00:00")
    times = {case.attrib["name"]: case.attrib["time"] for case in suite.iter("testcase")}
    assert times["lake.sales.orders"] == "301.250"
    assert times["lake.sales.sessions"] == "0.000"  # refused: never started


def test_a_plan_has_the_time_of_planning(plan: Plan) -> None:
    suite = ET.fromstring(plan_junit(plan, Context(seconds=2.5)).encode()).find("testsuite")
    assert suite is not None
    assert suite.attrib["time"] == "2.500"
    assert "timestamp" not in suite.attrib


def test_what_becomes_of_a_planned_table(plan: Plan) -> None:
    found = {
        "lake.sales.orders": "passed",
        "delta.`/lake/returns`": "passed",
        "lake.sales.sessions": "failure",
        "lake.sales.clicks": "passed",
        "lake.sales.gone": "error",
        "lake.sales.ledger": "passed",
        "lake.sales.payments": "passed",
    }
    assert results(plan_junit(plan, Context())) == found
    pending = dict.fromkeys(("lake.sales.orders", "delta.`/lake/returns`", "lake.sales.clicks"), "failure")
    assert results(plan_junit(plan, Context(pending_fails=True))) == {**found, **pending}
    assert results(plan_junit(replace(plan, unmatched=("old.*",)), Context()))["old.*"] == "skipped"


@pytest.mark.parametrize(
    ("outcome", "result"),
    [
        (RunOutcome.APPLIED, "passed"),
        (RunOutcome.ALREADY, "passed"),
        (RunOutcome.STALE, "failure"),
        (RunOutcome.REFUSED, "failure"),
        (RunOutcome.NO_WINDOW, "failure"),
        (RunOutcome.HOOK_FAILED, "failure"),
        (RunOutcome.FAILED, "error"),
        (RunOutcome.UNVERIFIED, "error"),
        (RunOutcome.INTERRUPTED, "error"),
    ],
)
def test_what_becomes_of_a_table_of_a_run(outcome: RunOutcome, result: str) -> None:
    report = RunReport(run="1", plan="2", tables=(TableRun(name="a", outcome=outcome),))
    assert results(run_junit(report, Context())) == {"a": result}


@pytest.mark.parametrize("text", EVIL)
def test_any_text_makes_xml(plan: Plan, text: str) -> None:
    xml = plan_junit(hostile_plan(plan, text), Context(pending_fails=True))
    assert len(cases(xml)) == 7


@settings(max_examples=100, deadline=None)
@given(TEXTS)
def test_any_text_of_a_run_makes_xml(text: str) -> None:
    table = TableRun(name=text, outcome=RunOutcome.FAILED, message=text, hint=text, notes=(text,))
    assert list(results(run_junit(RunReport(run="1", plan="2", tables=(table,)), Context())).values()) == ["error"]


def test_ten_thousand_changes(plan: Plan) -> None:
    started = process_time()
    assert len(results(plan_junit(many(plan, 1_700), Context()))) == 1_703
    assert process_time() - started < 30
