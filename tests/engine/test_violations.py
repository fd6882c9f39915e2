"""A plan refuses a CHECK constraint that rows violate by the statistics, and Delta refuses each of these."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tablectl.attributes.policy import Policy
from tablectl.delta.names import TableName
from tablectl.log.column_values import file_ranges
from tablectl.log.reader import read_table
from tablectl.planning.diff import diff
from tablectl.planning.violations import violations
from tablectl.storage.log_stores import Stores
from tablectl.storage.object_stores import StoreOptions

pytestmark = [pytest.mark.spark, pytest.mark.slow]

_ROWS = """
    SELECT CAST(id AS INT) AS i, id AS l, CAST(id AS DOUBLE) / 10 AS d, CAST(id AS DECIMAL(10, 2)) AS m,
        DATE_ADD(DATE '2026-01-01', CAST(id AS INT)) AS day, IF(id = 3, NULL, id) AS n
    FROM RANGE(0, 10, 1, 2)
"""
_CONDITIONS = (
    *("i > 0", "i >= 0", "i < 9", "i <= 9", "0 < i", "i <> 4", "i <> 0", "i = 0", "i IN (1, 2)", "i BETWEEN 0 AND 9"),
    *("i BETWEEN 1 AND 9", "l > -1", "l > 0.5", "i > '0'", "l >= 5 AND i >= 0", "l >= 5 OR i >= 0", "NOT l > 100"),
    *("d > 0.1", "d >= 0", "d <= 0.9", "d < 0.9", "m > 0.00", "m >= 0", "m <= 8.99", "m <= 9"),
    *("day >= '2026-01-01'", "day > '2026-01-01'", "day <= DATE '2026-01-10'", "day < DATE '2026-01-10'"),
    *("n IS NOT NULL", "n > -1", "n IS NULL", "i IS NOT NULL", "i IS NULL", "n > -1 OR n IS NULL"),
)


def test_every_constraint_that_a_plan_refuses_is_refused_by_delta(spark: Any, tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    spark.sql(f"CREATE TABLE delta.`{place}` USING delta AS {_ROWS}")
    told, wrong = 0, []
    for condition in _CONDITIONS:
        live = read_table(TableName("", (place,)), place)
        changes = tuple(diff(Policy({"constraints": {"c": condition}}), live))
        with Stores(StoreOptions()) as stores:
            refused = violations(changes, live, lambda columns: file_ranges(stores, place, live.version, columns))  # noqa: B023
        try:
            spark.sql(f"ALTER TABLE delta.`{place}` ADD CONSTRAINT c CHECK ({condition})")
            spark.sql(f"ALTER TABLE delta.`{place}` DROP CONSTRAINT c")
            rejected = False
        except Exception:  # noqa: BLE001  # any error: the constraint is not added
            rejected = True
        told += bool(refused)
        wrong += [condition] if refused and not rejected else []
    assert wrong == []
    assert told >= 15
