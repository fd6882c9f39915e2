"""Results in a notebook."""

from __future__ import annotations

from pathlib import Path

import pytest

import tablectl
from tablectl.model.errors import UsageError
from tablectl.model.plan import Plan
from tablectl.planning.plan_file import load_plan

EMPTY = Plan(format=2, tool="0.1.0", dialect="oss", policies="0" * 64, unchanged=("lake.a.b",), tables=())


def test_completion_offers_the_functions() -> None:
    assert {"plan", "apply", "drift", "lint", "status", "guard"} <= set(dir(tablectl))


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
