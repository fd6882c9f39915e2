"""What of a schema hinders that a mapping is taken away."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tablectl.attributes.policy import Policy
from tablectl.delta.names import ColumnPath
from tablectl.delta.protocol import Protocol
from tablectl.delta.schema import Field, Schema
from tablectl.model.table import LiveTable
from tablectl.model.table_options import TableOptions
from tablectl.planning.plan_table import plan_table

NAMED = Protocol(2, 7, frozenset(), frozenset({"columnMapping", "clustering", "domainMetadata"}))


def refusal(
    live: Callable[..., LiveTable],
    *fields: Field,
    clustering: tuple[ColumnPath, ...] | None = None,
    declared: tuple[str, ...] | None = None,
) -> str:
    """Why the mapping of such a table stays; empty where it need not."""
    table = live(
        schema=Schema(fields),
        clustering=clustering,
        protocol=NAMED,
        properties={"delta.columnMapping.mode": "name"},
    )
    plan = plan_table(
        Policy({"column_mapping": "none", "clustering": declared}), table, "oss", TableOptions(rewrite="allowed")
    )
    assert plan is not None
    return f"{plan.refusals[0].reason} {plan.refusals[0].condition}" if plan.refusals else ""


@pytest.mark.parametrize("name", ["a b", "a,b", "a;b", "{a", "a}", "(a", "a)", "a\nb", "a\tb", "a=b"])
def test_names_that_parquet_does_not_take(live: Callable[..., LiveTable], name: str) -> None:
    inside = Field("s", "struct", fields=(Field(name, "long"),))
    for field in (Field(name, "long"), inside, Field("list", "array", within=(inside,))):
        assert "DELTA_INVALID_COLUMN_NAMES_WHEN_REMOVING_COLUMN_MAPPING" in refusal(live, Field("id", "long"), field)


def test_other_odd_names_are_none_of_them(live: Callable[..., LiveTable]) -> None:
    assert refusal(live, Field("a.b", "long"), Field("größe-1", "long", physical="col-7")) == ""


def test_a_clustering_column_must_be_called_what_its_files_call_it(live: Callable[..., LiveTable]) -> None:
    renamed, same = Field("ident", "long", physical="id"), Field("day", "date", physical="day")
    struct = Field("place", "struct", physical="spot", fields=(Field("city", "string", physical="city"),))
    assert "clustered by ident" in refusal(live, renamed, same, clustering=(("day",), ("ident",)))
    assert "clustered by place.city" in refusal(live, struct, clustering=(("place", "city"),))
    assert refusal(live, renamed, same, clustering=(("day",),)) == ""
    assert refusal(live, renamed, same, clustering=()) == ""


def test_a_plan_that_removes_the_mapping_clusters_by_no_mapped_column(live: Callable[..., LiveTable]) -> None:
    renamed, same = Field("ident", "long", physical="id"), Field("day", "date", physical="day")
    assert "makes the table clustered by ident" in refusal(live, renamed, same, declared=("ident",))
    assert refusal(live, renamed, same, declared=("day",)) == ""
