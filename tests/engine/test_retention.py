"""Delta rejects the retention that the plan refuses, also against a default and against a live value."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tablectl.attributes.policy import Policy
from tablectl.delta.names import TableName
from tablectl.log.reader import read_table
from tablectl.planning.plan_table import plan_table

pytestmark = pytest.mark.spark

_KEYS = {"log": "delta.logRetentionDuration", "deleted_files": "delta.deletedFileRetentionDuration"}


def test_delta_rejects_a_log_that_is_kept_for_a_shorter_time_than_deleted_files(spark: Any, tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    spark.sql(f"CREATE TABLE delta.`{place}` (id BIGINT) USING delta")
    for retention in (
        {"log": "interval 6 days"},
        {"deleted_files": "interval 31 days"},
        {"log": "interval 5 days", "deleted_files": "interval 6 days"},
        {"log": "2 weeks", "deleted_files": "14 days"},
        {"deleted_files": "interval 15 days"},
        {"log": "interval 60 days", "deleted_files": "interval 15 days"},
    ):
        plan = plan_table(Policy(retention=retention), read_table(TableName("", (place,)), place), "oss")
        assert plan is not None
        values = ", ".join(f"'{_KEYS[key]}' = '{value}'" for key, value in retention.items())
        sql = f"ALTER TABLE delta.`{place}` SET TBLPROPERTIES ({values})"
        if not plan.refusals:
            spark.sql(sql)
            continue
        with pytest.raises(Exception, match=r"(?i)retention"):
            spark.sql(sql)
