"""The matrices against the tables that Delta and Databricks document (delta-2.6, delta-2.7, delta-3; D24 to D38)."""

from __future__ import annotations

import pytest

from tablectl.conflicts.transactions import Conflict, ConflictResult
from tablectl.delta.protocol import Client
from tablectl.insight.conflict_context import ConflictContext
from tablectl.insight.matrix import CellVerdict, compare, matrix
from tablectl.insight.table_operations import OPERATIONS, OperationGroup, operations_of
from tests.insight.settings import EVERYWHERE, VECTORS, setting


def marks(where: ConflictContext, all_current: str, all_committed: str) -> list[str]:
    found = matrix(where)
    return [
        "".join(found.cell(current, committed).verdict.mark for committed in all_committed.split())
        for current in all_current.split()
    ]


WRITES = "insert self-insert update optimize overwrite"


def test_open_source_without_partitions() -> None:
    assert marks(setting(), WRITES, WRITES) == [
        ".....",
        "XXXXX",
        "XXXXX",
        "..~~X",
        "XXXXX",
    ]


def test_open_source_with_partitions() -> None:
    assert marks(setting(partitioned=True), WRITES, WRITES) == [
        ".....",
        "~~~~X",
        "~~~~X",
        "..~~X",
        "XXXXX",
    ]


def test_a_stored_write_serializable_spares_those_next_to_blind_appends() -> None:
    weak = {"delta.isolationLevel": "WriteSerializable"}
    assert marks(setting(properties=weak), WRITES, "insert self-insert") == ["..", ".X", ".X", "..", ".X"]
    assert marks(setting(properties=weak, blind=False), WRITES, "insert") == [".", "X", "X", ".", "X"]
    assert marks(setting(properties=weak), "evolving-merge", "insert") == ["X"]


CHANGES = "vectors-on set unset add-columns cluster replace"


@pytest.mark.parametrize(
    ("who", "expected"),
    [
        ("delta-spark 3.2", ["XXXXXX", "....XX"]),
        ("delta-spark 4.1", [".XXX.X", ".....X"]),
        ("kernel", ["XXXXXX"]),
        ("unknown", ["XXXXXX"]),
    ],
)
def test_changes_of_settings_by_client(who: str, expected: list[str]) -> None:
    found = matrix(setting(who))
    rows = [key for key in ("insert", "optimize") if any(each.key == key for each in found.all_current)]
    assert marks(setting(who), " ".join(rows), CHANGES)[0] == expected[0]


@pytest.mark.parametrize("where", [setting("databricks 14.3", properties=VECTORS), setting("databricks 12.2")])
def test_on_databricks_every_change_of_metadata_fails_every_write(where: ConflictContext) -> None:
    found = matrix(where)
    for committed in operations_of(where):
        if committed.group is OperationGroup.SETTINGS and committed.key != "cluster":
            assert {found.cell(current, committed.key).verdict for current in ("insert", "merge", "optimize")} == {
                CellVerdict.FAILS
            }


WITH_ROWS = "insert update optimize zorder"


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        # Row-level concurrency, both levels (D24 to D29).
        (setting("databricks 14.3", properties=VECTORS), ["....", ".~.~", "...~", ".~~~"]),
        (
            setting("databricks 14.3", properties={**VECTORS, "delta.isolationLevel": "Serializable"}),
            ["....", "~~.~", "...~", ".~~~"],
        ),
        # Without it (D30 to D35).
        (setting("databricks 14.3"), ["....", ".~~~", ".~~~", ".~~~"]),
        (
            setting("databricks 14.3", properties={"delta.isolationLevel": "Serializable"}),
            ["....", "~~~~", ".~~~", ".~~~"],
        ),
        # Partitions exclude it, and vectors still spare OPTIMIZE (D34, D42).
        (setting("databricks 14.3", properties=VECTORS, partitioned=True), ["....", ".~.~", "...~", ".~~~"]),
    ],
)
def test_databricks(where: ConflictContext, expected: list[str]) -> None:
    assert marks(where, WITH_ROWS, WITH_ROWS) == expected


@pytest.mark.parametrize(
    ("all_current", "expected"),
    [
        ("set", ".....XXXX"),  # delta-2.7, row by row
        ("cluster", "....X.XXX"),
        ("add-constraint", "XXXXXXXXX"),
        ("restore", "XXXXXXXXX"),
        ("replace", "XXXXXXXXX"),
        ("optimize", "..~~X...X"),
    ],
)
def test_settings_in_flight_on_a_clustered_table(all_current: str, expected: str) -> None:
    all_committed = "insert self-insert update optimize overwrite vectors-on set add-columns replace"
    where = setting(clustered=True)
    assert marks(where, all_current, all_committed) == [expected]


def test_one_stream_that_runs_twice_fails_and_two_streams_do_not() -> None:
    cell = matrix(setting()).cell("stream", "stream")
    assert (cell.overlapping.conflict, cell.separate.succeeds) == (Conflict.TRANSACTION, True)


@pytest.mark.parametrize("where", EVERYWHERE)
def test_separate_writers_do_no_worse(where: ConflictContext) -> None:
    for cell in matrix(where).cells:
        unknown = cell.separate.result is ConflictResult.UNKNOWN  # whether to keep apart helps is not documented either
        assert unknown or cell.separate.rank <= cell.overlapping.rank, cell


@pytest.mark.parametrize("where", EVERYWHERE)
def test_every_cell_has_a_reason_and_a_source_and_a_failure_its_class(where: ConflictContext) -> None:
    for cell in matrix(where).cells:
        for outcome in (cell.overlapping, cell.separate):
            assert outcome.reason
            assert outcome.source
            assert (outcome.conflict is None) or not outcome.succeeds
            assert outcome.conflict or outcome.result is not ConflictResult.FAILS


def test_every_operation_is_somewhere() -> None:
    from tablectl.delta.protocol import Protocol

    rich = setting(
        protocol=Protocol(1, 7, writer_features=frozenset({"checkConstraints"})),
        properties={
            **VECTORS,
            "delta.enableRowTracking": "true",
            "delta.checkpointPolicy": "v2",
            "delta.enableInCommitTimestamps": "true",
            "delta.columnMapping.mode": "name",
            "delta.constraints.c": "v > 0",
        },
    )
    offered = {each.key for where in (*EVERYWHERE, rich) for each in operations_of(where)}
    assert offered == {each.key for each in OPERATIONS}


def test_a_comparison_counts_what_stays() -> None:
    before, after = matrix(setting()), matrix(setting(partitioned=True))
    different, equal = compare(before, after)
    changed = {(each.cell.current.key, each.cell.committed.key) for each in different}
    assert ("update", "insert") in changed
    assert ("insert", "update") not in changed
    gone = next(each for each in different if each.cell.current.key == "cluster")
    assert gone.before is not None
    assert gone.after is None
    assert equal + len(different) == len({(c.current.key, c.committed.key) for c in (*before.cells, *after.cells)})
    assert compare(before, before) == ((), len(before.cells))


def test_an_automatic_compaction_may_fail_an_optimize() -> None:
    plain = ConflictContext(client=Client("delta-spark", (4, 4, 0)))
    compacting = plain.with_property("delta.autoOptimize.autoCompact", "true")
    assert matrix(plain).cell("optimize", "insert").verdict is CellVerdict.COMMITS
    found = matrix(compacting).cell("optimize", "insert")
    assert (found.verdict, found.overlapping.result) == (CellVerdict.DEPENDS, ConflictResult.MAY_FAIL)
    assert found.overlapping.reason.endswith("by the automatic compaction after INSERT")
    assert matrix(compacting).cell("insert", "optimize").verdict is CellVerdict.COMMITS


def test_one_statement_is_not_another_of_its_kind() -> None:
    found = matrix(ConflictContext(client=Client("delta-spark", (4, 4, 0))))
    assert found.cell("update", "delete").verdict is CellVerdict.FAILS
    whole = found.cell("update", "delete-files")
    assert (whole.verdict, whole.overlapping.conflict) == (CellVerdict.DEPENDS, Conflict.DELETE_READ)
    assert found.cell("insert", "feature").verdict is CellVerdict.COMMITS
    assert found.cell("insert", "feature-row-tracking").verdict is CellVerdict.FAILS
    assert found.cell("insert", "vectors-on").verdict is CellVerdict.COMMITS
    assert found.cell("insert", "vectors-on-more").verdict is CellVerdict.FAILS
    for each in ("comment-table", "comment-column", "widen-column", "repartition"):
        assert found.cell("insert", each).overlapping.conflict is Conflict.METADATA_CHANGED


def test_an_insert_that_gives_identity_values_draws_none() -> None:
    found = matrix(ConflictContext(client=Client("delta-spark", (4, 4, 0)), identity=True))
    assert found.cell("insert", "insert").verdict is CellVerdict.FAILS
    assert found.cell("insert-ids", "insert").verdict is CellVerdict.COMMITS
    assert found.cell("insert", "insert-ids").verdict is CellVerdict.COMMITS
