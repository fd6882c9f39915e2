"""What a comment says changed since the last plan."""

from __future__ import annotations

import zlib
from base64 import b64encode
from collections.abc import Callable
from dataclasses import replace
from time import process_time

from tablectl.model.plan import Plan, TableFailure, TablePlan
from tablectl.reports.comment_parts import GroupRecord, Records, group_list, read_groups, records_of, since_text
from tablectl.reports.table_groups import plan_groups
from tests.reports.fleet import fleet
from tests.reports.test_plan_markdown import distinct

Planned = Callable[..., TablePlan]


def carried(plan: Plan) -> Records:
    """The groups of a plan, as a comment carries them."""
    found = read_groups(group_list(records_of(plan_groups(plan), plan.failures)))
    assert found is not None
    return found


def test_equal_plans_change_nothing(table_planned: Planned) -> None:
    groups = carried(fleet(table_planned, 4, 2))
    assert since_text(groups, groups, "") == "<p>Since the last plan: the same changes on the same tables.</p>"


def test_groups_that_are_new_or_gone_and_groups_with_other_tables_are_named(table_planned: Planned) -> None:
    three, none = carried(fleet(table_planned, 9, 3)), carried(fleet(table_planned, 12, 2))
    gone = since_text(three, none, "a" * 64)
    assert "<b>Since the last plan <code>aaaaaaaaaaaa</code></b>: gone: irreversible" in gone
    assert "<code>clustering: none → [customer_id]</code> (3 tables)" in gone
    assert "blocking <code>properties.owner.team: web → payments</code> (6 tables), was 3 tables" in gone
    assert "new: irreversible <code>clustering: none → [customer_id]</code> (3 tables)" in since_text(none, three, "")


def test_another_table_in_place_of_one_is_a_difference(table_planned: Planned) -> None:
    plan = fleet(table_planned, 1, 1)
    other = replace(plan, tables=(replace(plan.tables[0], name="__lake.sales.__t"),))
    assert "(1 table), was 1 table" in since_text(carried(plan), carried(other), "")


def test_tables_that_cannot_be_read_are_a_group(table_planned: Planned) -> None:
    plan = fleet(table_planned, 1, 1)
    failed = replace(plan, failures=(TableFailure(name="lake.gone", message="not a Delta table"),))
    assert "new: not readable <code>the log cannot be read</code> (1 table)" in since_text(
        carried(plan), carried(failed), ""
    )


def test_two_plans_of_ten_thousand_different_changes_take_seconds(plan: Plan) -> None:
    now, before = distinct(plan, 10_000), distinct(plan, 9_999)
    started = process_time()
    now_records, before_records = (records_of(plan_groups(each), each.failures) for each in (now, before))
    assert since_text(before_records, now_records, "").count("new: ") == 1
    assert process_time() - started < 60


def test_a_list_of_groups_with_an_endless_number_is_not_a_list() -> None:
    packed = b64encode(zlib.compress(b'{"a": ["weight", "title", Infinity, "tables"]}')).decode()
    assert read_groups(f"<!-- tablectl groups: {packed} -->") is None


def test_two_plans_without_a_common_group_are_told_group_by_group() -> None:
    old, new = ({key: GroupRecord("blocking", key, 1, key)} for key in ("one", "two"))
    said = since_text(old, new, "5f" * 32)
    assert "new: blocking <code>two</code> (1 table)" in said
    assert "gone: blocking <code>one</code> (1 table)" in said
