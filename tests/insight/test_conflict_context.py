from __future__ import annotations

import pytest

from tablectl.conflicts.transactions import Level
from tablectl.delta.protocol import Client
from tablectl.delta.schema import Schema
from tablectl.insight.conflict_context import ConflictContext
from tablectl.insight.table_operations import operations_of
from tablectl.model.commit import Commit
from tablectl.model.operations import (
    AddConstraint,
    ClusterBy,
    DropFeature,
    Operation,
    Purge,
    Repartition,
    ReplacePartitions,
    SetProperties,
    UnsetProperties,
)
from tablectl.model.table import LiveTable
from tests.builders import live_table
from tests.insight.settings import VECTORS, setting


def live(*clients: str, properties: dict[str, str] | None = None) -> LiveTable:
    history = tuple(Commit(index, 0, "WRITE", client=Client(engine)) for index, engine in enumerate(clients))
    return live_table(schema=Schema(()), properties=properties or {}, history=history)


@pytest.mark.parametrize(
    ("who", "properties", "level"),
    [
        ("delta-spark 4.4", {}, Level.SERIALIZABLE),
        ("databricks 14.3", {}, Level.WRITE_SERIALIZABLE),
        ("databricks 14.3", {"delta.isolationLevel": "serializable"}, Level.SERIALIZABLE),
        ("delta-spark 4.4", {"delta.isolationLevel": "WriteSerializable"}, Level.WRITE_SERIALIZABLE),
        ("delta-spark 4.4", {"delta.isolationlevel": "WriteSerializable"}, Level.WRITE_SERIALIZABLE),
        ("delta-spark 4.4", {"delta.isolationLevel": "nonsense"}, Level.SERIALIZABLE),
    ],
)
def test_an_unset_level_depends_on_the_client(who: str, properties: dict[str, str], level: Level) -> None:
    assert setting(who, properties=properties).level is level


def test_vectors_that_no_one_set_are_off_but_on_a_clustered_table_unknown() -> None:
    assert setting().vectors is False
    assert setting(clustered=True).vectors is None
    assert setting(clustered=True, properties={"delta.enableDeletionVectors": "false"}).vectors is False
    assert setting(properties={"delta.enableDeletionVectors": "TRUE"}).vectors is True


def test_clients_that_never_say_blind_are_found_in_the_history() -> None:
    assert ConflictContext.of(live("delta-spark"), Client("delta-spark")).blind
    assert not ConflictContext.of(live("delta-spark", "kernel"), Client("delta-spark")).blind


def test_operations_leave_their_marks() -> None:
    before = setting(properties={"Owner": "x", "owner": "y", "delta.appendOnly": "true"})
    after = before.after(
        [
            SetProperties((("delta.APPENDonly", "false"), ("delta.enableDeletionVectors", "true"))),
            UnsetProperties(("owner",)),
            ClusterBy(("a",)),
            Purge(),
        ]
    )
    assert dict(after.properties) == {"Owner": "x", "delta.appendOnly": "false", **VECTORS}
    assert after.clustered
    assert after.protocol.has("deletionVectors")
    assert after.protocol.has("clustering")
    assert not before.protocol.has("clustering")


@pytest.mark.parametrize(
    ("operation", "partitioned", "clustered"),
    [
        (ClusterBy(()), True, True),
        (ClusterBy(("a",)), False, True),
        (ClusterBy((), automatic=True), False, True),
        (Repartition(("a",)), True, False),
        (Repartition(()), False, False),
        (ReplacePartitions(("a",)), False, True),
        (Purge(), True, False),
    ],
)
def test_a_partitioned_table_has_another_layout_afterwards(
    operation: Operation, *, partitioned: bool, clustered: bool
) -> None:
    after = setting(partitioned=True).after([operation])
    assert (after.partitioned, after.clustered) == (partitioned, clustered)


def test_an_overwrite_without_partitions_leaves_a_table_clustered() -> None:
    assert setting(clustered=True).after([Repartition(())]).clustered
    assert not setting(clustered=True).after([Repartition(("a",))]).clustered


def test_a_property_that_only_adds_a_feature_is_not_stored() -> None:
    after = setting().after([SetProperties((("delta.feature.v2Checkpoint", "supported"),))])
    assert after.protocol.has("v2Checkpoint")
    assert dict(after.properties) == {}


def test_a_new_constraint_is_a_property_and_the_property_of_a_dropped_feature_changes() -> None:
    after = setting().after([AddConstraint("Positive", "a > 0"), DropFeature("inCommitTimestamp")])
    assert dict(after.properties) == {
        "delta.constraints.positive": "a > 0",
        "delta.enableInCommitTimestamps": "false",
    }


def test_a_dropped_feature_is_gone_from_the_protocol_and_protection_takes_its_place() -> None:
    before = setting(properties=VECTORS).after([SetProperties((("delta.enableDeletionVectors", "true"),))])
    after = before.after(
        [SetProperties((("delta.enableDeletionVectors", "false"),)), Purge(), DropFeature("deletionVectors")]
    )
    assert before.protocol.has("deletionVectors")
    assert not after.protocol.has("deletionVectors")
    assert after.protocol.has("checkpointProtection")
    assert "drop-feature" not in {each.key for each in operations_of(after)}


def test_a_drop_that_truncates_history_needs_no_protection() -> None:
    before = setting().after([SetProperties((("delta.enableDeletionVectors", "true"),))])
    after = before.after([DropFeature("deletionVectors", truncate_history=True)])
    assert not after.protocol.has("deletionVectors")
    assert not after.protocol.has("checkpointProtection")


@pytest.mark.parametrize(
    ("engine", "blind", "blind_sql"),
    [("delta-spark", True, True), ("delta-rs", False, True), ("kernel", False, False), ("unknown", False, False)],
)
def test_who_records_blind_appends(engine: str, *, blind: bool, blind_sql: bool) -> None:
    """DuckDB commits with Delta Kernel, and Trino is an unknown client: both run SQL."""
    found = ConflictContext.of(live("delta-spark", engine), Client("delta-spark"))
    assert (found.blind, found.blind_sql) == (blind, blind_sql)
