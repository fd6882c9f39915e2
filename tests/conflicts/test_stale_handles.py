"""What a plan says of handles that were made before, and what Delta does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tablectl.conflicts.streaming_readers import stale_handles
from tablectl.model.operations import SetProperties
from tests.insight.settings import setting


@pytest.mark.parametrize(
    ("key", "value", "what"),
    [
        ("delta.enableDeletionVectors", "true", "re-create `DeltaTable` objects"),
        ("delta.enableRowTracking", "TRUE", "re-create `DeltaTable` objects"),
        ("delta.enableDeletionVectors", "false", ""),
        ("delta.isolationLevel", "Serializable", ""),
    ],
)
def test_what_fails_through_an_older_handle(key: str, value: str, what: str) -> None:
    found = stale_handles(SetProperties((("owner.team", "web"), (key, value))).commits(setting().basis))
    assert found.startswith(what)
    assert bool(found) is bool(what)


@pytest.mark.spark
@pytest.mark.parametrize(
    ("key", "value", "fails"),
    [
        ("delta.enableDeletionVectors", "true", {"update", "delete", "merge"}),
        ("delta.enableRowTracking", "true", {"update", "delete", "merge"}),
        ("delta.isolationLevel", "Serializable", set()),
    ],
)
def test_so_it_is_in_delta(spark: Any, tmp_path: Path, key: str, value: str, fails: set[str]) -> None:
    from delta.tables import DeltaTable

    place = str(tmp_path / "t")
    spark.sql(f"CREATE TABLE delta.`{place}` (id BIGINT, v BIGINT) USING delta")
    spark.sql(f"INSERT INTO delta.`{place}` SELECT /*+ COALESCE(1) */ id, id FROM range(10)")
    before = {what: DeltaTable.forPath(spark, place) for what in ("update", "delete", "merge")}
    spark.newSession().sql(f"ALTER TABLE delta.`{place}` SET TBLPROPERTIES ('{key}' = '{value}')")
    source = spark.sql("SELECT 3L AS id, 0L AS v").alias("s")
    merge = before["merge"].alias("t").merge(source, "t.id = s.id").whenMatchedUpdateAll()
    uses: dict[str, Callable[[], object]] = {
        "update": lambda: before["update"].update("id = 1", {"v": "0"}),
        "delete": lambda: before["delete"].delete("id = 2"),
        "merge": merge.execute,
    }
    failed = set()
    for what, use in uses.items():
        try:
            use()
        except Exception as error:  # noqa: BLE001  # which one is asserted
            assert "FIELD_NOT_FOUND" in str(error)  # noqa: PT017
            failed.add(what)
    assert failed == fails
    assert bool(stale_handles(SetProperties(((key, value),)).commits(setting().basis))) is bool(fails)
