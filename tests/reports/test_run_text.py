"""A run as people read it. Golden files: see ``conftest.py``."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from tablectl.documents.style import Style
from tablectl.model.run_report import CommitRun, PossibleFailure, RunOutcome, RunReport, TableRun
from tablectl.model.safe_text import natural_key
from tablectl.reports.document_markdown import LIMIT
from tablectl.reports.mask import Mask
from tablectl.reports.render import ReportFormat
from tablectl.reports.report_context import Context
from tablectl.reports.result_documents import run_cases, run_results
from tablectl.reports.wording import commit_text, late_text, outcome_text, run_verdict
from tests.reports.rendered import render_run, run_text

Golden = Callable[[str, str], None]


@pytest.mark.parametrize("width", [60, 80])
def test_plain(run_report: RunReport, golden: Golden, width: int) -> None:
    golden(f"run-{width}.txt", run_text(run_report, Style(width=width)))


def test_in_colour(run_report: RunReport, golden: Golden) -> None:
    golden("run-colour.txt", run_text(run_report, Style(colour=True)))


def test_colours_change_nothing_else(run_report: RunReport) -> None:
    coloured = run_text(run_report, Style(colour=True))
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == run_text(run_report, Style())


def test_no_line_of_prose_is_longer_than_the_width(run_report: RunReport) -> None:
    lines = run_text(run_report, Style(width=80)).splitlines()
    assert [line for line in lines if len(line) > 80 and "TBLPROPERTIES (" not in line] == []


def test_every_outcome_has_its_words(run_report: RunReport) -> None:
    assert {table.outcome for table in run_report.tables} == set(RunOutcome)


def test_a_gate_that_may_still_be_shut_stands_with_its_table_alone() -> None:
    tables = [TableRun(name=name, outcome=RunOutcome.APPLIED, epoch=1) for name in ("a", "b", "c")]
    tables[1] = replace(tables[1], shut_ms=75_000, shut="writers may wait at its gate for 75 s at most", window_ms=None)
    text = run_text(RunReport(run="1", plan="2", tables=tuple(tables)), Style())
    assert text.count("writers may wait at its gate for 75 s at most") == 1


def test_every_report_of_a_run_that_did_all_and_may_have_left_a_gate_shut_says_that() -> None:
    words = "writers may wait at its gate for 75 s at most"
    done = TableRun(name="a", outcome=RunOutcome.APPLIED, epoch=1, shut_ms=75_000, shut=words, window_ms=None)
    report = RunReport(run="1", plan="2", tables=(done, replace(done, name="b", shut_ms=0, shut="")))
    assert run_verdict(report).title == "Done, and a gate may still be shut"
    assert [(each.rule, each.table, each.message) for each in run_results(report)] == [("window", "a", words)]
    assert [(each.result, each.message) for each in run_cases(report)] == [("failure", words), ("passed", "")]
    failed = replace(done, outcome=RunOutcome.FAILED, message="no")
    assert run_verdict(replace(report, tables=(done, failed))).title != run_verdict(report).title


def test_a_wait_that_depends_on_the_speed_of_the_machine_is_not_told() -> None:
    done = TableRun(name="a", outcome=RunOutcome.APPLIED, epoch=1, drain_ms=1)
    tables = (done, replace(done, name="b"))
    assert "for writers" not in run_text(RunReport(run="1", plan="2", tables=tables), Style())
    slow = tuple(replace(each, drain_ms=1000) for each in tables)
    assert "for writers" in run_text(RunReport(run="1", plan="2", tables=slow), Style())


def test_nothing_to_do() -> None:
    empty = RunReport(run="1", plan="2", tables=())
    assert run_text(empty, Style()) == "Apply: nothing to do; 0 commits made.\n"


@pytest.mark.parametrize(
    ("at", "when"),
    [
        (1_795_000_000_000, " at 2026-11-18 11:06:40 UTC"),
        (0, ""),
        (-1, ""),
        (10**15, ""),
        (10**40, ""),
    ],
)
def test_whoever_committed_and_whatever_their_clock_says(at: int, when: str) -> None:
    commit = CommitRun(version=13, operation="MERGE", user="ann", at=at)
    assert commit_text(commit) == f"version 13: MERGE by ann{when}"


@pytest.mark.parametrize(
    ("late", "words"), [(True, ", of the apply 77aa, which had lost its lease"), (False, ", of the apply 77aa")]
)
def test_only_an_apply_that_committed_under_the_lease_of_another_had_lost_its_own(late: bool, words: str) -> None:
    commit = CommitRun(version=13, operation="SET", user="ann", at=0, run="77aa", late=late)
    assert late_text(commit) == words


def _risky(name: str, change: str, writer: str = "WRITE by root") -> TableRun:
    risk = PossibleFailure(writer=writer, reason="no guard was seen", fails="all concurrent writes fail once")
    return TableRun(name=name, outcome=RunOutcome.APPLIED, changed=(change,), possible_failures=(risk,))


def test_a_risk_that_many_tables_share_is_said_once() -> None:
    tables = tuple(_risky(f"t{number}", f"properties.p{number}") for number in range(12))
    report = RunReport(run="1", plan="2", tables=(*tables, _risky("lone", "isolation", "MERGE by ann")))
    text = run_text(report, Style(width=400))
    assert text.count("WRITE by root may have failed") == 1
    names = ", ".join(sorted((each.name for each in tables), key=natural_key)[:10])
    assert f"12 tables ({names} and 2 more): WRITE by root may have failed: no guard was seen." in text
    assert re.search(r"! lone .*\n    risk +MERGE by ann may have failed", text)
    verbose = run_text(report, Style(width=400), verbose=True)
    assert verbose.count("WRITE by root may have failed") == 12, "each table has its own part"


def test_tables_with_equal_results_and_risks_are_one_group() -> None:
    report = RunReport(run="1", plan="2", tables=tuple(_risky(f"t{number}", "isolation") for number in range(12)))
    text = run_text(report, Style(width=400))
    assert text.count("WRITE by root may have failed") == 1
    assert "! 12 tables" in text


def test_a_comment_of_thousands_of_shared_risks_stays_short() -> None:
    tables = tuple(_risky(f"t{number}", f"p{number}", f"WRITE by u{number // 2}") for number in range(4000))
    report = RunReport(run="1", plan="2", tables=tables)
    assert len(render_run(report, ReportFormat.MARKDOWN, Style(), Mask(()), Context())) <= LIMIT


def test_hostile_text_reaches_no_terminal_raw(run_report: RunReport) -> None:
    evil = "a\x1b[2J\n\tb\u202e\x9b"
    commit = CommitRun(version=1, operation=evil, user=evil, at=1)
    table = run_report.tables[4]
    sent = replace(table.statements[0], sql=f"ALTER TABLE `{evil}`\nCLUSTER BY NONE")
    hostile = replace(table, name=evil, message=evil, hint=evil, foreign=(commit,), statements=(sent,))
    later = replace(run_report.tables[0], later=(evil,))
    failure = replace(run_report.failures[0], name=evil, message=evil, hint=evil)
    report = replace(run_report, tables=(hostile, later), failures=(failure,))
    for verbose in (False, True):
        assert all(line.isprintable() for line in run_text(report, Style(), verbose=verbose).split("\n"))


def test_a_table_that_another_run_changed_is_not_said_to_have_needed_no_commit() -> None:
    message = "the lease was taken over by ben, which ran the same plan: the table is as declared"
    table = TableRun(name="sales.orders", outcome=RunOutcome.ALREADY, epoch=1, message=message)
    assert outcome_text(table) == "applied by another run of the same plan"
