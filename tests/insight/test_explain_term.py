from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tablectl.conflicts.transactions import Conflict, ConflictResult, Level
from tablectl.delta.schema import Field, Schema
from tablectl.insight.explain_term import EXAMPLE, anomaly_example
from tests.insight.settings import setting


def test_the_table_of_the_documentation() -> None:
    found = anomaly_example(EXAMPLE, setting("databricks 14.3"))
    assert found is not None
    assert found.delete == "DELETE FROM `lake`.`sales`.`orders` WHERE `order_date` = DATE'2026-01-31'"
    assert found.insert == "INSERT INTO `lake`.`sales`.`orders` (`order_date`) VALUES (DATE'2026-01-31')"
    (serializable, strict), (write_serializable, weak) = found.outcomes.items()
    assert (serializable, write_serializable) == (Level.SERIALIZABLE, Level.WRITE_SERIALIZABLE)
    assert strict.condition is Conflict.APPEND
    assert weak.result is ConflictResult.COMMITS


def test_it_does_not_happen_next_to_writers_that_never_say_blind() -> None:
    found = anomaly_example(EXAMPLE, setting(blind=False))
    assert found is not None
    assert not any(outcome.result is ConflictResult.COMMITS for outcome in found.outcomes.values())


@pytest.mark.parametrize(
    ("facts", "condition"),
    [
        ({}, "`order_date` = DATE'2026-01-31'"),
        ({"partition_columns": ()}, "`order_id` = 42"),
        ({"partition_columns": (), "clustering": (("a", "b"), ("price",))}, "`price` = 42"),
        ({"partition_columns": ("we`ird",)}, "`we``ird` = 'x'"),
    ],
)
def test_the_column_is_one_that_tells_rows_apart(facts: dict[str, Any], condition: str) -> None:
    fields = (
        Field("n", "long", identity=True),
        Field("order_id", "long"),
        Field("order_date", "date"),
        Field("price", "decimal(10,2)"),
        Field("we`ird", "string"),
    )
    found = anomaly_example(replace(EXAMPLE, schema=Schema(fields), **facts), setting())
    assert found is not None
    assert found.condition == condition


def test_a_table_without_a_plain_column_has_no_example() -> None:
    schema = Schema((Field("a", "struct"), Field("n", "long", identity=True)))
    assert anomaly_example(replace(EXAMPLE, schema=schema, partition_columns=()), setting()) is None
