"""What changed between two plans."""

from __future__ import annotations

import zlib
from base64 import b64encode
from collections.abc import Callable
from dataclasses import replace
from time import process_time

from tablectl.model.plan import Plan, Rewrite, TableFailure, TablePlan
from tablectl.reports.groups import plan_groups
from tablectl.reports.plan_comparison import GroupRecord, Records, comparison_text, differences, records_of
from tablectl.reports.since import group_list, read_groups, since_text
from tablectl.reports.style import Style
from tests.reports.fleet import fleet
from tests.reports.test_plan_markdown import distinct

Planned = Callable[..., TablePlan]


def test_equal_plans(table_planned: Planned) -> None:
    plan = fleet(table_planned, 4, 2)
    assert comparison_text(plan, plan, Style()) == "The two plans make the same changes on the same tables.\n"


def test_tables_that_join_a_group_and_groups_that_are_new_or_gone(table_planned: Planned) -> None:
    plan, other = fleet(table_planned, 12, 2), fleet(table_planned, 9, 3)
    text = comparison_text(plan, other, Style())
    assert "- lake.sales.t3, lake.sales.t6, lake.sales.t9  IRREVERSIBLE\n    clustering: none → [customer_id]\n" in text
    assert "~ properties.owner.team: web → payments  BLOCKING: 6 tables, was 3 tables\n" in text
    assert "    + lake.sales.t3, lake.sales.t5, lake.sales.t9, lake.sales.t11\n    - lake.sales.t4\n" in text


def test_a_table_with_a_private_name_is_compared(table_planned: Planned) -> None:
    """deepdiff skips keys that begin with two underscores, if it is not told otherwise."""
    plan = fleet(table_planned, 1, 1)
    private = replace(plan.tables[0], name="__lake.sales.__t")
    text = comparison_text(replace(plan, tables=(*plan.tables, private)), plan, Style())
    assert text.endswith(": 2 tables, was 1 table\n    + __lake.sales.__t\n")


def test_another_cost_of_the_same_changes_is_said(table_planned: Planned) -> None:
    planned = table_planned("lake.sales.model", {}, {"properties": {"a": "2"}})

    def rewriting(size: int) -> Plan:
        rewrite = Rewrite(vectors=None, everything=True, files_at_most=3, bytes_at_most=size)
        table = replace(planned, statements=(replace(planned.statements[0], rewrite=rewrite),))
        return replace(fleet(table_planned, 0, 1), tables=(table,))

    text = comparison_text(rewriting(2_000_000), rewriting(1_000), Style())
    assert text == (
        "~ properties.a: not set → 2  FULL REWRITE: 1 table\n"
        "    now: rewrites all data: 3 files, 2.0 MB\n"
        "    was: rewrites all data: 3 files, 1.0 kB\n"
    )


def test_tables_that_cannot_be_read_are_a_group(table_planned: Planned) -> None:
    plan = fleet(table_planned, 1, 1)
    failed = replace(plan, failures=(TableFailure(name="lake.gone", message="not a Delta table"),))
    assert comparison_text(failed, plan, Style()) == "+ lake.gone  NOT READABLE\n    the log cannot be read\n"
    assert comparison_text(plan, failed, Style()).startswith("- lake.gone  NOT READABLE\n")


def test_two_plans_of_ten_thousand_different_changes_take_seconds(plan: Plan) -> None:
    now, before = distinct(plan, 10_000), distinct(plan, 9_999)
    started = process_time()
    now_records, before_records = (records_of(plan_groups(each), each.failures) for each in (now, before))
    assert len(differences(now_records, before_records)) == 1
    assert process_time() - started < 60


def test_texts_of_many_lines_take_no_longer() -> None:
    """The time of a comparison line by line grows with the square of their number."""

    def records(word: str) -> Records:
        text = "\n".join(f"{word} {number}" for number in range(100_000))
        return {"key": GroupRecord("safe", text, 1, (text,), (text,), (text,))}

    started = process_time()
    (difference,) = differences(records("a"), records("b"))
    assert len(difference.tables.added) == len(difference.effects.removed) == 1
    assert process_time() - started < 5


def test_the_list_of_a_comment_tells_the_same_differences_as_the_plans(table_planned: Planned) -> None:
    plan, other = fleet(table_planned, 12, 2), fleet(table_planned, 9, 3)
    of_plans = [records_of(plan_groups(each), each.failures) for each in (plan, other)]
    of_comments = [read_groups(group_list(each)) for each in of_plans]
    assert all(of_comments)

    def seen(now: Records | None, before: Records | None) -> list[tuple[str, int, int]]:
        return [
            (
                each.now.title if each.now else "",
                each.now.count if each.now else 0,
                each.before.count if each.before else 0,
            )
            for each in differences(now or {}, before or {})
        ]

    assert seen(*of_comments) == seen(*of_plans)
    said = since_text(of_comments[1] or {}, of_comments[0] or {}, "")
    assert "gone: irreversible <code>clustering: none → [customer_id]</code> (3 tables)" in said


def test_values_of_others_stay_on_their_line(table_planned: Planned) -> None:
    plan = fleet(table_planned, 1, 1)
    change = replace(plan.tables[0].changes[0], after="a\nb\x1b[2J")
    odd = replace(plan, tables=(replace(plan.tables[0], changes=(change,)),))
    assert all(line.isprintable() for line in comparison_text(odd, plan, Style()).split("\n"))


def test_a_list_of_groups_with_an_endless_number_is_not_a_list() -> None:
    packed = b64encode(zlib.compress(b'{"a": ["weight", "title", Infinity, "tables"]}')).decode()
    assert read_groups(f"<!-- tablectl groups: {packed} -->") is None
