"""Merging, needs and phases: the statements of a table in the order they run."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tablectl.delta.protocol import Client, Protocol
from tablectl.model.plan import Phase, TablePlan
from tablectl.model.table import LiveTable

Live = Callable[..., LiveTable]
TablePlanner = Callable[..., TablePlan]
_VECTORS = "delta.enableDeletionVectors"
_BACK = "ALTER TABLE `lake`.`s`.`t`\nSET TBLPROPERTIES ('delta.isolationLevel' = 'WriteSerializable')"
_MANIFEST = "delta.compatibility.symlinkFormatManifest.enabled"


def _shape(plan: TablePlan) -> list[tuple[str, str, tuple[str, ...]]]:
    return [(str(each.phase), each.verb, each.serves) for each in plan.statements]


def test_all_that_is_set_is_one_commit_and_all_that_is_unset_another(live: Live, table_plan: TablePlanner) -> None:
    plan = table_plan(
        live(properties={"c": "1", "d": "1"}), isolation="Serializable", properties={"a": "1", "c": None, "d": None}
    )
    assert _shape(plan) == [
        ("closed", "SET TBLPROPERTIES", ("isolation", "properties.a")),
        ("closed", "UNSET TBLPROPERTIES", ("properties.c", "properties.d")),
    ]


def test_free_keys_share_a_set_with_each_other_only(live: Live, table_plan: TablePlanner) -> None:
    plan = table_plan(
        live(),
        deletion_vectors="enabled",
        properties={"delta.checkpointPolicy": "v2", "owner.team": "web"},
    )
    assert _shape(plan) == [
        ("free", "SET TBLPROPERTIES", ("deletion_vectors", "properties.delta.checkpointPolicy")),
        ("closed", "SET TBLPROPERTIES", ("properties.owner.team",)),
    ]


def test_a_property_that_fails_the_tables_writers_is_not_safe(live: Live, table_plan: TablePlanner) -> None:
    plan = table_plan(
        live(clients=(Client("delta-spark", (4, 2, 0)),)),
        deletion_vectors="enabled",
        properties={"delta.checkpointPolicy": "v2"},
    )
    assert _shape(plan) == [
        ("free", "SET TBLPROPERTIES", ("deletion_vectors",)),
        ("closed", "SET TBLPROPERTIES", ("properties.delta.checkpointPolicy",)),
    ]


def test_within_what_need_allows_free_comes_before_rewrite_before_closed(
    live: Live, table_plan: TablePlanner, vectors_protocol: Protocol
) -> None:
    plan = table_plan(
        live(protocol=vectors_protocol, properties={_VECTORS: "true"}, vectors=3),
        isolation="Serializable",
        deletion_vectors="purged",
        clustering=("id",),
    )
    assert _shape(plan) == [
        ("free", "CLUSTER BY", ("clustering",)),
        ("rewrite", "REORG", ("deletion_vectors",)),
        ("closed", "SET TBLPROPERTIES", ("isolation", "deletion_vectors")),
        ("closed", "REORG", ("deletion_vectors",)),
    ]
    assert [each.id for each in plan.statements] == ["free-cluster", "purge-before", "closed-set", "purge"]


@pytest.mark.parametrize("value", ["id", None])
def test_clustering_waits_for_the_statistics_it_needs(live: Live, table_plan: TablePlanner, value: str | None) -> None:
    key = "delta.dataSkippingStatsColumns"
    plan = table_plan(live(properties={key: "day"}), clustering=("id",), properties={key: value})
    assert [(each.phase, each.verb) for each in plan.statements][-1] == (Phase.CLOSED, "CLUSTER BY")
    assert plan.statements[-1].reason.endswith("runs in this phase because it depends on an earlier statement")


def test_clustering_does_not_wait_for_other_properties(live: Live, table_plan: TablePlanner) -> None:
    plan = table_plan(live(), clustering=("id",), properties={"owner.team": "web"})
    assert [(each.phase, each.verb) for each in plan.statements] == [
        (Phase.FREE, "CLUSTER BY"),
        (Phase.CLOSED, "SET TBLPROPERTIES"),
    ]


def test_vectors_on_and_the_manifest_off_share_a_set(live: Live, table_plan: TablePlanner) -> None:
    plan = table_plan(live(properties={_MANIFEST: "true"}), deletion_vectors="enabled", properties={_MANIFEST: "false"})
    (statement,) = plan.statements
    assert statement.phase is Phase.CLOSED
    assert statement.serves == ("deletion_vectors", f"properties.{_MANIFEST}")


def test_an_unset_that_a_set_needs_comes_first(live: Live, table_plan: TablePlanner) -> None:
    plan = table_plan(
        live(properties={_MANIFEST: "true"}), deletion_vectors="enabled", properties={_MANIFEST: None, "a": "1"}
    )
    assert _shape(plan) == [
        ("closed", "UNSET TBLPROPERTIES", (f"properties.{_MANIFEST}",)),
        ("closed", "SET TBLPROPERTIES", ("deletion_vectors", "properties.a")),
    ]


def test_undo_brings_back_what_was_there(live: Live, table_plan: TablePlanner) -> None:
    plan = table_plan(live(properties={"a": "old", "c": "old"}), properties={"a": "new", "b": "new", "c": None})
    where = "ALTER TABLE `lake`.`s`.`t`\n"
    assert [each.undo for each in plan.statements] == [
        (where + "UNSET TBLPROPERTIES IF EXISTS ('b')", where + "SET TBLPROPERTIES ('a' = 'old')"),
        (where + "SET TBLPROPERTIES ('c' = 'old')",),
    ]


def test_what_stays_is_named_once(live: Live, table_plan: TablePlanner) -> None:
    plan = table_plan(
        live(), deletion_vectors="enabled", properties={"delta.checkpointPolicy": "v2", "delta.appendOnly": "true"}
    )
    assert [each.undo_note for each in plan.statements] == [
        "the protocol feature deletionVectors; the protocol feature v2Checkpoint",
        "",
    ]


def test_the_cost_of_a_purge_is_bounded_by_what_is_known(
    live: Live, table_plan: TablePlanner, vectors_protocol: Protocol
) -> None:
    def cost(**facts: int | None) -> object:
        table = live(protocol=vectors_protocol, **facts)
        rewrite = table_plan(table, deletion_vectors="purged").statements[0].rewrite
        assert rewrite is not None
        return rewrite.vectors, rewrite.files_at_most, rewrite.bytes_at_most

    assert cost(vectors=3, files=12, bytes=99) == (3, 3, 99)
    assert cost(vectors=30, files=12, bytes=None) == (30, 12, None)
    assert cost(vectors=None, files=12, bytes=99) == (None, 12, 99)
    assert cost(vectors=None, files=None, bytes=None) == (None, None, None)


def test_a_backfill_does_not_share_a_statement_with_quick_properties(live: Live, table_plan: TablePlanner) -> None:
    plan = table_plan(live(files=2_000_000), dialect="databricks", row_tracking="enabled", isolation="Serializable")
    assert _shape(plan) == [
        ("closed", "SET TBLPROPERTIES", ("isolation",)),
        ("closed", "SET TBLPROPERTIES", ("row_tracking",)),
    ]
    assert [each.id for each in plan.statements] == ["closed-set", "closed-backfill"]
    assert [bool(each.backfill) for each in plan.statements] == [False, True]


@pytest.mark.parametrize(
    ("dialect", "undo", "note"),
    [
        ("oss", (), "the new value: open-source Delta cannot set WriteSerializable again"),
        (
            "databricks",
            ("ALTER TABLE `lake`.`s`.`t`\nSET TBLPROPERTIES ('delta.isolationLevel' = 'WriteSerializable')",),
            "",
        ),
    ],
)
def test_an_isolation_level_is_put_back_where_the_dialect_can_set_it(
    live: Live, table_plan: TablePlanner, dialect: str, undo: tuple[str, ...], note: str
) -> None:
    stored = live(properties={"delta.isolationLevel": "WriteSerializable"})
    plan = table_plan(stored, dialect=dialect, isolation="Serializable")
    (statement,) = plan.statements
    assert statement.undo == plan.undo == undo
    assert statement.undo_note == note
    assert statement.lost == (() if undo else ("isolation",))


def test_ids_are_unique_within_a_table(live: Live, table_plan: TablePlanner, vectors_protocol: Protocol) -> None:
    plan = table_plan(
        live(protocol=vectors_protocol, properties={_VECTORS: "true", "d": "1"}, vectors=3),
        deletion_vectors="purged",
        clustering=("id",),
        properties={"delta.checkpointPolicy": "v2", "a": "1", "d": None},
    )
    ids = [each.id for each in plan.statements]
    assert len(ids) == 6
    assert len(set(ids)) == len(ids)
