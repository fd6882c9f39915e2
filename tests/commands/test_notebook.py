"""Results in a notebook."""

from __future__ import annotations

from pathlib import Path

import pytest

import tablectl
from tablectl.insight.advice.advice_records import LakeAdvice, TableAdvice
from tablectl.model.errors import UsageError
from tablectl.model.plan import Plan
from tablectl.model.report_methods import ReportMethods
from tablectl.model.run_report import RunOutcome, RunReport, TableRun
from tablectl.planning.drift import Drift
from tablectl.planning.plan_file import load_plan
from tablectl.reports.status_document import LakeStatus, TableStatus

EMPTY = Plan(format=2, tool="0.1.0", dialect="oss", policies="0" * 64, unchanged=("lake.a.b",), tables=())


@pytest.fixture(autouse=True)
def _functions() -> None:
    """What a notebook loads before it has a result."""
    assert callable(tablectl.plan)


def test_completion_offers_the_functions() -> None:
    assert {"plan", "apply", "drift", "lint", "status", "advise", "guard"} <= set(dir(tablectl))


def test_a_plan_shows_itself_without_style_or_script() -> None:
    shown = EMPTY._repr_html_()
    assert "<b>Plan: No changes</b>" in shown
    assert "<script" not in shown


def test_a_plan_becomes_reports_and_a_plan_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert EMPTY.to_markdown().startswith("**✅ Plan: No changes**")
    assert EMPTY.to_html().startswith("<!doctype html>")
    EMPTY.save("plan.json")
    assert load_plan(Path("plan.json").read_bytes(), "plan.json", to_apply=False).unchanged == ("lake.a.b",)
    with pytest.raises(UsageError, match="no known format"):
        EMPTY.save("plan.docx")


def test_a_result_without_the_functions_says_what_to_import(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ReportMethods, "reports", None)
    with pytest.raises(UsageError, match="not loaded") as raised:
        EMPTY.to_markdown()
    assert raised.value.hint == "run `from tablectl import plan` first"


RESULTS = {
    "plan": EMPTY,
    "run": RunReport(run="5f0c", plan="0" * 64, tables=(TableRun(name="lake.a.b", outcome=RunOutcome.APPLIED),)),
    "drift": Drift(tables=(), as_declared=("lake.a.b",)),
    "advice": LakeAdvice(
        (TableAdvice(table="lake.a.b", location="/lake/a/b", commits=3, untold=("only 3 commits were read",)),)
    ),
    "status": LakeStatus(
        (TableStatus(table="lake.a.b", state="as declared", policy="p.yaml:3"),), "", 1_795_000_000_000
    ),
}


@pytest.mark.parametrize("name", RESULTS)
def test_each_result_shows_itself_and_becomes_reports(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = RESULTS[name]
    assert "<b>" in result._repr_html_()
    assert "<script" not in result._repr_html_()
    assert result.to_markdown().startswith("**")
    assert result.to_html().startswith("<!doctype html>")
    for suffix in (".txt", ".json", ".md", ".html", *(() if name in {"status", "advice"} else (".sarif", ".xml"))):
        result.save(f"report{suffix}")
        assert Path(f"report{suffix}").stat().st_size > 10
    if name in {"status", "advice"}:
        with pytest.raises(UsageError, match=f"{'a ' * (name == 'status')}{name} has no format sarif"):
            result.save("report.sarif")
