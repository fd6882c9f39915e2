"""Delta rejects the retention that the plan refuses, also against a default and a live value, where its check is on."""

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
_CHECK = "spark.databricks.delta.vacuum.enforceDeletedFileAndLogRetentionDurationCompatibility"
_SETTINGS = (
    {"log": "interval 6 days"},
    {"deleted_files": "interval 31 days"},
    {"log": "interval 5 days", "deleted_files": "interval 6 days"},
    {"log": "2 weeks", "deleted_files": "14 days"},
    {"log": "interval 60 days", "deleted_files": "interval 20 days"},
    {"deleted_files": "interval 40 days"},
    {"log": "interval 60 days", "deleted_files": "interval 15 days"},
)


def test_delta_rejects_what_the_plan_refuses_where_its_check_is_on(spark: Any, tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    session = spark.newSession()
    session.conf.set(_CHECK, "true")
    session.sql(f"CREATE TABLE delta.`{place}` (id BIGINT) USING delta")
    planned, found = [], []
    for retention in _SETTINGS:
        plan = plan_table(Policy({"retention": retention}), read_table(TableName("", (place,)), place), "oss")
        assert plan is not None
        planned.append(bool(plan.refusals))
        values = ", ".join(f"'{_KEYS[key]}' = '{value}'" for key, value in retention.items())
        alone = f"ALTER TABLE delta.`{place}` SET TBLPROPERTIES ({values})"
        sent = [each.sql for each in plan.statements] or [alone]
        found.append(any(_is_rejected(session, sql) for sql in sent))
    assert planned == found


def _is_rejected(session: Any, sql: str) -> bool:
    try:
        session.sql(sql)
    except Exception as error:  # noqa: BLE001  # the message is checked
        assert "etention" in str(error)  # noqa: PT017
        return True
    return False
