"""What changed between two plans."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tablectl.model.plan import TablePlan
from tablectl.reports.plan_comparison import comparison_text
from tablectl.reports.style import Style
from tests.reports.fleet import fleet

Planned = Callable[..., TablePlan]


def test_equal_plans(table_planned: Planned) -> None:
    plan = fleet(table_planned, 4, 2)
    assert comparison_text(plan, plan, Style()) == "The two plans make the same changes on the same tables.\n"


def test_tables_that_join_a_group_and_groups_that_are_new_or_gone(table_planned: Planned) -> None:
    plan, other = fleet(table_planned, 12, 2), fleet(table_planned, 9, 3)
    text = comparison_text(plan, other, Style())
    assert "- lake.sales.t3, lake.sales.t6, lake.sales.t9  IRREVERSIBLE\n    clustering  none → [customer_id]" in text
    assert "~ properties.owner.team  web → payments: 6 tables, was 3 tables" in text
    assert "    + lake.sales.t3, lake.sales.t5, lake.sales.t9, lake.sales.t11" in text


def test_values_of_others_stay_on_their_line(table_planned: Planned) -> None:
    plan = fleet(table_planned, 1, 1)
    change = replace(plan.tables[0].changes[0], after="a\nb\x1b[2J")
    odd = replace(plan, tables=(replace(plan.tables[0], changes=(change,)),))
    assert all(line.isprintable() for line in comparison_text(odd, plan, Style()).split("\n"))
