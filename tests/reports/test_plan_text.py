"""A plan as reviewers read it. Golden files: see ``conftest.py``."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from tablectl.documents.style import Style
from tablectl.model.plan import Backfill, Plan, Rewrite, TablePlan
from tablectl.reports.wording import backfill_text, commits_text, rewrite_text
from tests.reports.rendered import plan_text

Golden = Callable[[str, str], None]
_LABELS = ("skipped", "why", "impact", "cost", "not undone", "error", "fix", "hint", "protocol", "P001", "P002")


@pytest.mark.parametrize("width", [60, 80])
def test_plain(plan: Plan, golden: Golden, width: int) -> None:
    golden(f"plan-{width}.txt", plan_text(plan, Style(width=width)))


def test_verbose(plan: Plan, golden: Golden) -> None:
    golden("plan-verbose.txt", plan_text(plan, Style(), verbose=True))


def test_in_colour(plan: Plan, golden: Golden) -> None:
    golden("plan-colour.txt", plan_text(plan, Style(colour=True)))


def test_colours_change_nothing_else(plan: Plan) -> None:
    for verbose in (False, True):
        coloured = plan_text(plan, Style(colour=True), verbose=verbose)
        assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plan_text(plan, Style(), verbose=verbose)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_line_of_prose_is_longer_than_the_width(plan: Plan, width: int) -> None:
    lines = plan_text(plan, Style(width=width), verbose=True).splitlines()
    prose = [line for line in lines if line.strip().startswith(_LABELS) or line.startswith(("Plan:", " " * 15))]
    sql = [line for line in prose if "TBLPROPERTIES" in line or line.strip().startswith("ALTER TABLE")]
    assert len(prose) > 25
    assert [line for line in prose if len(line) > width and line not in sql] == []


def test_nothing_to_do(plan: Plan) -> None:
    empty = replace(plan, tables=(), failures=())
    assert plan_text(empty, Style()) == "No changes. 2 tables match their policies.\n"
    assert plan_text(replace(empty, unchanged=("a",)), Style()) == ("No changes. 1 table matches its policy.\n")
    assert plan_text(replace(empty, unchanged=()), Style()) == "No changes. No tables.\n"


def test_only_failures_are_not_nothing(plan: Plan) -> None:
    broken = replace(plan, tables=(), unchanged=())
    assert plan_text(broken, Style()).endswith("Plan: 1 not readable.\n")


def test_hostile_names_and_values_reach_no_terminal_raw(plan: Plan, table_planned: Callable[..., TablePlan]) -> None:
    evil = "a\x1b[2J\n\tDROP TABLE t\u202e\x9b"
    hostile = table_planned(
        "lake.`s\x1b[31m\nales`.`t\u202e`",
        {"properties": {evil: evil}},
        {"properties": {evil: "new" + evil, "b": evil}, "clustering": (f"`{evil}`",)},
    )
    free = table_planned("lake.s.t", {"properties": {"k": evil}}, {"properties": {"k": None, evil: evil}})
    failure = replace(plan.failures[0], name=evil, message=evil, hint=evil)
    text = plan_text(replace(plan, tables=(hostile, free), failures=(failure,)), Style(), verbose=True)
    assert hostile.refusals
    assert all(line.isprintable() for line in text.split("\n"))
    assert not [line for line in text.split("\n") if line.strip().startswith("DROP TABLE")]


@pytest.mark.parametrize(
    ("rewrite", "text"),
    [
        ((7, 7, 4_100_000), "rewrites the files of 7 deletion vectors, at most 7 files, at most 4.1 MB"),
        ((1, 1, None), "rewrites the files of 1 deletion vector, at most 1 file"),
        ((None, 12, 99), "rewrites the files of an unknown number of deletion vectors, at most 12 files, at most 99 B"),
        ((None, None, None), "rewrites the files of an unknown number of deletion vectors"),
    ],
)
def test_what_a_rewrite_costs(rewrite: tuple[int | None, int | None, int | None], text: str) -> None:
    vectors, files, size = rewrite
    assert rewrite_text(Rewrite(vectors=vectors, files_at_most=files, bytes_at_most=size)) == text


@pytest.mark.parametrize(
    ("files", "size", "commits", "text"),
    [
        (1, None, 1, "commits the log entries of at most 1 file again; the files do not change"),
        (
            30_000,
            4_100_000,
            2,
            "commits the log entries of at most 30000 files again, in 2 commits; the files (4.1 MB) do not change",
        ),
    ],
)
def test_what_a_backfill_costs(files: int, size: int | None, commits: int, text: str) -> None:
    backfill = Backfill(files_at_most=files, bytes_at_most=size, commits_at_most=commits)
    assert backfill_text(backfill) == text


def test_what_a_rewrite_of_everything_costs() -> None:
    whole = Rewrite(vectors=7, everything=True, files_at_most=12, bytes_at_most=4_100_000)
    assert rewrite_text(whole) == "rewrites all data: 12 files, 4.1 MB"
    unknown = replace(whole, files_at_most=None, bytes_at_most=None)
    assert rewrite_text(unknown) == "rewrites all data: an unknown number of files"


def test_commits_of_one_kind_are_counted() -> None:
    kinds = ("UPGRADE PROTOCOL", "row tracking backfill", "row tracking backfill", "SET TBLPROPERTIES")
    assert commits_text(kinds) == "4: UPGRADE PROTOCOL, row tracking backfill ×2, SET TBLPROPERTIES"
