"""Each operation as the transactions that it makes: that they are what Delta commits is measured elsewhere."""

from __future__ import annotations

import pytest

from tablectl.delta.protocol import Protocol
from tablectl.insight.conflict_context import ConflictContext
from tablectl.insight.table_operations import OPERATIONS, OperationGroup, operation, operations_of
from tablectl.model.commit_contents import Kind
from tablectl.model.operations import SetProperties
from tests.insight.settings import EVERYWHERE, VECTORS, setting


def test_keys_and_names_are_their_own() -> None:
    assert len({each.key for each in OPERATIONS}) == len({each.name for each in OPERATIONS}) == len(OPERATIONS)
    assert operation("merge").name == "MERGE"
    with pytest.raises(KeyError):
        operation("MERGE")


@pytest.mark.parametrize("where", EVERYWHERE)
def test_partitions_have_as_many_values_as_the_table_has_columns(where: ConflictContext) -> None:
    for each in operations_of(where):
        for made in each.transactions(where, "a"):
            files = (*made.committed.added, *made.committed.removed)
            assert {len(file.partition) for file in files} <= {1 if where.partitioned else 0}, each.key


@pytest.mark.parametrize("where", EVERYWHERE)
def test_whoever_removes_a_file_has_read_it_or_its_partition(where: ConflictContext) -> None:
    for each in operations_of(where):
        for made in each.transactions(where, "b"):
            for file in made.committed.removed:
                known = made.reads.whole or file.path in made.reads.files
                assert known or made.reads.admit(file, partitioned=where.partitioned), each.key


@pytest.mark.parametrize("where", EVERYWHERE)
def test_only_what_rearranges_files_changes_no_row(where: ConflictContext) -> None:
    for each in operations_of(where):
        changes = [made.committed.data_change for made in each.transactions(where, "a")]
        if each.group is OperationGroup.ROWS:
            assert all(changes)
        elif each.group in {OperationGroup.FILES, OperationGroup.SETTINGS}:
            assert not any(changes)


def test_what_tablectl_sends_is_what_it_says_elsewhere() -> None:
    where = setting()
    said = SetProperties((("delta.enableDeletionVectors", "true"),)).commits(where.basis)
    assert tuple(made.committed for made in operation("vectors-on").transactions(where, "a")) == said


def test_a_table_is_offered_what_changes_it() -> None:
    def keys(where: ConflictContext) -> set[str]:
        return {each.key for each in operations_of(where)}

    assert "vectors-on" in keys(setting())
    assert "vectors-off" not in keys(setting())
    assert {"vectors-on", "vectors-off"} & keys(setting(properties=VECTORS)) == {"vectors-off"}
    assert "cluster" not in keys(setting(partitioned=True))
    assert "zorder" not in keys(setting(clustered=True))
    assert "drop-feature" not in keys(setting())


def test_to_drop_deletion_vectors_takes_several_commits() -> None:
    protocol = Protocol(3, 7, frozenset({"deletionVectors"}), frozenset({"deletionVectors"}))
    made = operation("drop-feature").transactions(setting(protocol=protocol, properties=VECTORS), "a")
    barrier = [Kind.TOMBSTONES, Kind.EMPTY, Kind.EMPTY, Kind.EMPTY, Kind.DROP_FEATURE]
    assert [each.committed.kind for each in made] == [Kind.UNSET_PROPERTIES, Kind.REORG, *barrier]
    off = operation("drop-feature").transactions(setting(protocol=protocol), "a")
    assert [each.committed.kind for each in off] == barrier
    assert off[-1].committed.protocol
    assert off[-1].committed.protocol.removes == ("deletionVectors",)


def test_a_write_is_followed_by_an_automatic_compaction_of_what_it_wrote() -> None:
    where = setting(partitioned=True, auto_compact=True)
    write, compaction = operation("insert").transactions(where, "b")
    assert (write.automatic, compaction.automatic) == (False, True)
    assert (compaction.committed.kind, compaction.committed.removed[0].partition) == (Kind.OPTIMIZE, ("b",))
    assert len(operation("delete-files").transactions(where, "b")) == 1  # it adds no file


def test_a_loser_takes_all_that_its_commit_would_hold() -> None:
    where = setting(partitioned=True, properties=VECTORS)
    (merge,) = operation("merge").transactions(where, "b")
    current = merge.current(where)
    assert (current.kind, current.removes, current.reads.partitions) == (Kind.MERGE, ("b",), (("b",),))
    assert (current.metadata, current.protocol, current.partitioned) == (False, False, True)
    (constraint,) = operation("add-constraint").transactions(setting(protocol=Protocol(1, 1)), "a")
    assert (constraint.current(where).metadata, constraint.current(where).protocol) == (True, True)
