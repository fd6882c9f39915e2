"""Plans of many tables, for what reports do with them. A few tables are planned; the others are renamed copies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tablectl.model.plan import Plan, Statement, TablePlan

Planned = Callable[..., TablePlan]

_FACTS: dict[str, Any] = {"properties": {"owner.team": "web"}}
_KINDS: Sequence[tuple[dict[str, Any], dict[str, Any]]] = (
    (_FACTS, {"properties": {"owner.team": "payments"}}),
    (_FACTS, {"isolation": "Serializable"}),
    (_FACTS, {"clustering": ("customer_id",)}),
    (_FACTS, {"deletion_vectors": "enabled"}),
    ({"partition_columns": ("order_date",)}, {"partitioning": ("customer_id",)}),
    (_FACTS, {"properties": {"delta.logRetentionDuration": "interval 60 days"}}),
    (_FACTS, {"row_tracking": "enabled"}),
    (_FACTS, {"properties": {"note": "a"}, "isolation": "Serializable"}),
)


def fleet(planned: Planned, count: int, distinct: int) -> Plan:
    """A plan of ``count`` tables with ``distinct`` different changes, named so that text order is not natural order."""
    models = [_model(planned, index) for index in range(min(distinct, count))]
    tables = tuple(renamed(models[index % len(models)], index + 1) for index in range(count))
    return Plan(
        format=1, tool="0.1.0", dialect="oss", policies="0" * 64, tables=tables, unchanged=("lake.sales.other",)
    )


def _model(planned: Planned, index: int) -> TablePlan:
    facts, policy = _KINDS[index % len(_KINDS)]
    turn = index // len(_KINDS)
    if turn:
        policy = {**policy, "properties": {**policy.get("properties", {}), "batch": str(turn)}}
    return planned("lake.sales.model", facts, policy)


def renamed(table: TablePlan, number: int) -> TablePlan:
    """The same plan for another table of another size."""

    def sql(text: str) -> str:
        return text.replace("model", f"t{number}")

    def statement(each: Statement) -> Statement:
        return replace(each, sql=sql(each.sql), undo=tuple(map(sql, each.undo)))

    return replace(
        table,
        name=f"lake.sales.t{number}",
        location=f"/lake/t{number}",
        basis=replace(table.basis, bytes=number * 1_000),
        statements=tuple(map(statement, table.statements)),
        undo=tuple(map(sql, table.undo)),
    )
