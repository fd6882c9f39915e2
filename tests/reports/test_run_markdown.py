"""A run as a comment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tablectl.model.run_report import CommitRun, PossibleFailure, RunOutcome, RunReport, StatementRun, TableRun
from tablectl.reports.document_markdown import LIMIT
from tablectl.reports.report_context import Context
from tests.reports.hostile import EVIL
from tests.reports.rendered import run_markdown
from tests.reports.test_plan_markdown import OURS, Page

Golden = Callable[[str, str], None]


def test_the_whole_of_it(run_report: RunReport, golden: Golden) -> None:
    golden("run.md", run_markdown(run_report, Context()))


def test_all_is_well(run_report: RunReport) -> None:
    done = replace(run_report, tables=run_report.tables[:2], failures=(), proceed="", override="")
    risky = run_markdown(done, Context())
    assert risky.startswith(
        "**🟡 Apply: Applied and verified; writers may have failed** · 1 applied; 1 unchanged; 2 commits made; "
        "on 1 table writers may have failed\n"
    )
    done = replace(done, tables=tuple(replace(each, possible_failures=()) for each in done.tables))
    text = run_markdown(done, Context(ci="https://ci.example/7"))
    assert text.startswith("**✅ Apply: Applied and verified** · 1 applied; 1 unchanged; 2 commits made\n")
    assert '<a href="https://ci.example/7">CI run</a>' in text


@pytest.mark.parametrize("text", EVIL)
def test_nothing_of_others_means_anything(run_report: RunReport, text: str) -> None:
    commit = CommitRun(version=1, operation=text, user=text, at=1, run=text, writer=text, inside=True)
    statement = StatementRun(
        id="x", sql=text, phase=run_report.tables[0].statements[0].phase, milliseconds=1, error=text, condition=text
    )
    run = TableRun(
        name=text,
        outcome=RunOutcome.FAILED,
        message=text,
        hint=text,
        statements=(statement,),
        commits=(commit,),
        foreign=(commit,),
        possible_failures=(PossibleFailure(writer=text, reason=text, fails=text),),
        owed=(text,),
        notes=(text,),
        later=(text,),
    )
    page = Page(run_markdown(replace(run_report, tables=(run,), proceed=text, override=text), Context()))
    assert set(page.tags) <= OURS
    assert page.links == []


def test_it_is_never_too_long(run_report: RunReport) -> None:
    table = run_report.tables[0]
    many = replace(run_report, tables=tuple(replace(table, name=f"t{number}") for number in range(3_000)))
    text = run_markdown(many, Context())
    assert LIMIT - 14_000 < len(text.encode()) <= LIMIT
    assert "tables of less weight are left out here" in text


def test_tables_with_equal_results_are_one_row(run_report: RunReport) -> None:
    done = tuple(TableRun(name=f"t{number}", outcome=RunOutcome.APPLIED) for number in range(200))
    text = run_markdown(replace(run_report, tables=done, failures=()), Context())
    assert text.count("<tr><td>🟢 <b>applied and verified</b>") == 1
    assert "and 197 more" in text
