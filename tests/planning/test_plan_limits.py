"""Plans that are larger than expected."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tablectl.delta.names import parse_table
from tablectl.delta.protocol import Protocol
from tablectl.model.errors import ExitCode, LimitError
from tablectl.model.plan import Plan, TablePlan
from tablectl.model.table import LiveTable
from tablectl.planning.plan_file import PlanLimits


@pytest.fixture
def purge(live: Callable[..., LiveTable], table_plan: Callable[..., TablePlan], vectors_protocol: Protocol) -> Any:
    def plan(*sizes: int | None, rich: Plan) -> Plan:
        tables = (
            table_plan(
                live(
                    name=parse_table(f"s.t{number}"),
                    protocol=vectors_protocol,
                    properties={"delta.enableDeletionVectors": "true"},
                    vectors=2,
                    bytes=size,
                ),
                deletion_vectors="purged",
            )
            for number, size in enumerate(sizes)
        )
        return replace(rich, tables=tuple(tables))

    return plan


def test_tables_that_change_are_counted_and_refused_ones_are_not(rich: Plan) -> None:
    changing = [table for table in rich.tables if table.applies]
    assert 0 < len(changing) < len(rich.tables)
    PlanLimits(tables=len(changing)).check(rich)
    with pytest.raises(LimitError, match=f"changes {len(changing)} tables, and at most 0 may change: ") as raised:
        PlanLimits(tables=0).check(rich)
    assert raised.value.exit_code is ExitCode.REFUSED


def test_bytes_are_counted_once_for_each_table(purge: Any, rich: Plan) -> None:
    plan = purge(1000, 500, rich=rich)
    PlanLimits(bytes=1500).check(plan)
    with pytest.raises(LimitError, match=r"up to 1,500 bytes, and at most 1,499 may be"):
        PlanLimits(bytes=1499).check(plan)


def test_an_unknown_amount_is_more_than_the_limit(purge: Any, rich: Plan) -> None:
    with pytest.raises(LimitError, match=r"of s\.t1 is not known"):
        PlanLimits(bytes=10**18).check(purge(5, None, rich=rich))


def test_without_limits_everything_goes(purge: Any, rich: Plan) -> None:
    PlanLimits().check(purge(None, 10**15, rich=rich))
