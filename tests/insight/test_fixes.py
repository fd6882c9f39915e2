from __future__ import annotations

import pytest

from tablectl.insight.conflict_context import ConflictContext
from tablectl.insight.matrix import BY_APPLY, decide_pair, matrix
from tablectl.insight.table_operations import operation
from tests.insight.settings import EVERYWHERE, VECTORS, setting

PARTITION = "partition by a column that both filter by, and name it with literals in both conditions"


def ways(where: ConflictContext, current: str, committed: str) -> tuple[str, ...]:
    return decide_pair(where, operation(committed), operation(current)).avoid


@pytest.mark.parametrize("where", EVERYWHERE)
def test_who_commits_needs_no_fix(where: ConflictContext) -> None:
    for cell in matrix(where).cells:
        if cell.overlapping.succeeds:
            assert cell.avoid == ()


def test_partitions_keep_two_updates_apart() -> None:
    assert ways(setting(), "update", "merge") == (PARTITION,)
    (named,) = ways(setting(partitioned=True), "update", "merge")
    assert named.startswith("name the partition columns")


def test_no_partition_helps_a_full_overwrite() -> None:
    assert ways(setting(), "overwrite", "insert") == ()


def test_a_newer_client_adopts_more() -> None:
    assert ways(setting("delta-spark 3.2"), "insert", "vectors-on") == (
        "upgrade the writer that fails to Delta Spark 4.1",
        BY_APPLY,
    )
    assert ways(setting("delta-spark 4.4"), "insert", "set") == (BY_APPLY,)
    assert ways(setting("delta-spark 4.4"), "insert", "add-columns") == ()


def test_on_databricks_a_level_and_deletion_vectors_help() -> None:
    strict = {"delta.isolationLevel": "Serializable"}
    found = ways(setting("databricks 14.3", properties={**strict, **VECTORS}), "update", "insert")
    assert found == (PARTITION, "isolation: WriteSerializable")
    found = ways(setting("databricks 14.3"), "update", "optimize")
    assert "deletion_vectors: enabled" in found
    found = ways(setting("databricks 14.3"), "update", "delete")
    assert "deletion_vectors: enabled, after which only rows that both touch conflict" in found
    assert not any(way.startswith("deletion") for way in ways(setting("databricks 13.3"), "update", "delete"))


def test_deletion_vectors_do_not_help_a_table_with_identity_columns() -> None:
    where = setting("databricks 14.3", identity=True)
    assert not any(way.startswith("deletion") for way in ways(where, "update", "delete"))


def test_an_optimize_without_zorder_fails_no_one_where_vectors_are_on() -> None:
    assert "remove ZORDER BY" in ways(setting("databricks 14.3", properties=VECTORS), "update", "zorder")


def test_a_stream_is_run_once() -> None:
    assert ways(setting(), "stream", "stream") == ("never run two queries on one checkpoint",)
