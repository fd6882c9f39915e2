"""Delta Spark as the loser, by version: who commits after which commit, and the order of the checks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tablectl.conflicts.delta_spark_rules import level_used
from tablectl.conflicts.rules import decide, decide_all
from tablectl.conflicts.transactions import Conflict, CurrentTransaction, Level, Reads
from tablectl.model.commit_contents import CommittedTransaction, File, Kind, MetadataChange, ProtocolChange
from tests.conflicts.examples import (
    IDENTITY_DRAWN,
    PROPERTY,
    RECLUSTER,
    VECTORS_ON,
    A,
    B,
    alter,
    append,
    appended,
    client,
    in_partition,
    reader,
    rewritten,
    sets,
)

OK = None
RELEASES = ["delta-spark", "delta-spark 3.2.1", "delta-spark 3.3.0", "delta-spark 4.0.1", "delta-spark 4.1.0"]
RELEASES += ["delta-spark 4.2.0", "delta-spark 4.3.0", "delta-spark 4.4.0"]
ROW_TRACKING_ON = alter(
    replace(
        sets(delta_enableRowTracking="true", delta_rowTracking_materializedRowIdColumnName="_r"), tag="row tracking"
    )
)
MAPPING_ON = alter(
    replace(sets(delta_columnMapping_mode="name", delta_columnMapping_maxColumnId="3"), schema="mapping")
)
FIRST_CLUSTER = replace(
    RECLUSTER,
    metadata=MetadataChange(),
    protocol=ProtocolChange(adds=("clustering", "domainMetadata")),
)


@pytest.mark.parametrize(
    ("committed", "since"),
    [
        (IDENTITY_DRAWN, "3.3"),
        (ROW_TRACKING_ON, "3.3"),
        (alter(sets(delta_enableRowTracking="true", delta_enableDeletionVectors="true")), "4.1"),
        (alter(), "4.1"),
        (FIRST_CLUSTER, "4.1"),
        (VECTORS_ON, "4.1"),
        (alter(sets(delta_enableDeletionVectors="TRUE")), "4.1"),
        (MAPPING_ON, "4.1"),
        (alter(sets(delta_checkpointPolicy="v2")), "4.3"),
        (alter(sets(delta_enableInCommitTimestamps="true", delta_inCommitTimestampEnablementVersion="4")), "4.3"),
        (alter(sets(io_unitycatalog_tableId="1")), "4.4"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_data_writes_adopt_and_since_when(committed: CommittedTransaction, since: str) -> None:
    first = tuple(map(int, since.split(".")))
    for text in RELEASES:
        current = append(client=client(text))
        outcome = decide(committed, current)
        assert outcome.succeeds is (current.client.version >= first), text
        if not outcome.succeeds and current.client.version:
            assert outcome.conflict is Conflict.METADATA_CHANGED


def test_a_version_that_is_not_known_counts_as_one_that_knows_no_new_feature() -> None:
    raised = CommittedTransaction(kind=Kind.UPGRADE_PROTOCOL, protocol=ProtocolChange(adds=("variantType",)))
    assert decide(raised, append(client=client("delta-spark"))).conflict is Conflict.UNSUPPORTED


@pytest.mark.parametrize(
    "committed",
    [
        PROPERTY,
        alter(sets(delta_isolationLevel="Serializable")),
        alter(sets(delta_enableDeletionVectors="false")),
        alter(sets(delta_checkpointPolicy="classic")),
        alter(sets(delta_checkpointPolicy="V2")),
        alter(sets(delta_enableDeletionVectors="true", owner_team="x")),
        alter(sets(delta_rowTracking_materializedRowIdColumnName="_r")),
        alter(
            replace(
                sets(delta_inCommitTimestampEnablementVersion="4"), renews=("delta.inCommitTimestampEnablementVersion",)
            )
        ),
        alter(MetadataChange(removes=("owner.team",))),
        alter(MetadataChange(schema="other")),
        alter(MetadataChange(schema="mapping")),
        alter(replace(sets(delta_columnMapping_mode="name"), schema="other")),
        alter(MetadataChange(beyond=True)),
    ],
)
@pytest.mark.parametrize("text", RELEASES)
def test_what_fails_every_write(committed: CommittedTransaction, text: str) -> None:
    outcome = decide(committed, append(client=client(text)))
    assert outcome.conflict is Conflict.METADATA_CHANGED
    assert outcome.source == "delta-2.2"


def test_vectors_may_have_been_off_by_name_before() -> None:
    again = alter(replace(sets(delta_enableDeletionVectors="true"), renews=("delta.enableDeletionVectors",)))
    assert decide(again, append()).succeeds


def test_the_protocol_is_looked_at_before_the_metadata() -> None:
    both = replace(PROPERTY, protocol=ProtocolChange(removes=("deletionVectors",)))
    assert decide(both, append()).conflict is Conflict.PROTOCOL_CHANGED
    assert decide(replace(both, protocol=ProtocolChange(adds=("typeWidening",))), append()).conflict is (
        Conflict.METADATA_CHANGED
    )


def test_two_changes_of_the_protocol_or_of_metadata_never_merge() -> None:
    raising = replace(VECTORS_ON, protocol=ProtocolChange(adds=("deletionVectors",)))
    altering = append(kind=Kind.SET_PROPERTIES, data_change=False, metadata=True)
    assert decide(raising, altering).conflict is Conflict.METADATA_CHANGED
    assert decide(raising, replace(altering, protocol=True)).conflict is Conflict.PROTOCOL_CHANGED
    assert decide(IDENTITY_DRAWN, append(metadata=True)).conflict is Conflict.METADATA_CHANGED


def test_a_client_that_cannot_write_the_new_features_fails_on_that() -> None:
    committed = alter(protocol=ProtocolChange(adds=("inCommitTimestamp",)))
    assert decide(committed, append(client=client("delta-spark 3.2.1"))).conflict is Conflict.UNSUPPORTED
    assert decide(committed, append(client=client("delta-spark 3.3.0"))).conflict is Conflict.METADATA_CHANGED


def test_dropping_a_feature_fails_where_the_winner_used_it() -> None:
    drop = append(kind=Kind.DROP_FEATURE, metadata=True, protocol=True, drops=("deletionVectors",))
    assert decide(appended(), drop).succeeds
    used = replace(rewritten(A, Kind.DELETE), traces=("deletionVectors",))
    assert decide(used, drop).conflict is Conflict.REVALIDATION
    assert decide(VECTORS_ON, drop).conflict is Conflict.REVALIDATION
    tracking = replace(drop, drops=("rowTracking",))
    assert decide(replace(appended(), traces=("rowTracking",)), tracking).succeeds


def test_a_domain_conflicts_with_itself_alone() -> None:
    cluster = append(kind=Kind.CLUSTER_BY, data_change=False, domains=("delta.clustering",))
    assert decide(RECLUSTER, cluster).conflict is Conflict.TRANSACTION
    assert decide(RECLUSTER, append()).succeeds
    assert decide(RECLUSTER, reader(Kind.OPTIMIZE)).succeeds
    tracking = replace(appended(), domains=("delta.rowTracking",))
    assert decide(tracking, append(domains=("delta.rowTracking",))).succeeds


def test_one_stream_twice_at_once() -> None:
    batch = append(kind=Kind.STREAMING_APPEND, app_ids=("q",))
    committed = replace(appended(), kind=Kind.STREAMING_APPEND, app_ids=("q",))
    assert decide(committed, batch).conflict is Conflict.TRANSACTION
    assert decide(committed, replace(batch, app_ids=("other",))).succeeds


DELETED_A = CommittedTransaction(kind=Kind.DELETE, removed=(A,))
WEAK: dict[str, Any] = {"level": Level.WRITE_SERIALIZABLE}


@pytest.mark.parametrize(
    ("committed", "current", "conflict"),
    [
        # Serializable, without partitions: any added file counts (delta-3).
        (appended(), append(), OK),
        (appended(), reader(Kind.READING_INSERT), Conflict.APPEND),
        (appended(), reader(Kind.UPDATE, A), Conflict.APPEND),
        (appended(), reader(Kind.OPTIMIZE, data_change=False), OK),
        (rewritten(A), append(), OK),
        (rewritten(A), reader(Kind.MERGE, B), Conflict.APPEND),
        (rewritten(A, Kind.OPTIMIZE), reader(Kind.MERGE, B), Conflict.APPEND),
        (rewritten(A, Kind.OPTIMIZE), reader(Kind.OPTIMIZE, A, data_change=False), Conflict.DELETE_READ),
        (rewritten(A, Kind.OPTIMIZE), reader(Kind.OPTIMIZE, B, data_change=False), OK),
        (DELETED_A, reader(Kind.UPDATE, A), Conflict.DELETE_READ),
        (DELETED_A, reader(Kind.UPDATE, B), OK),
        (DELETED_A, append(reads=Reads(whole=True)), Conflict.DELETE_READ),
        (DELETED_A, append(removes=("a0",)), Conflict.DELETE_DELETE),
        # WriteSerializable: blind appends are in no one's way, unless the loser carries metadata.
        (appended(), reader(**WEAK), OK),
        (appended(blind=False), reader(**WEAK), Conflict.APPEND),
        (appended(), reader(metadata=True, **WEAK), Conflict.APPEND),
        # Partitions: the file must lie where the loser reads.
        (appended(A), in_partition("a"), Conflict.APPEND),
        (appended(B), in_partition("a"), OK),
        (rewritten(B), in_partition("a"), OK),
        (appended(B), in_partition("a", reads=Reads(partitions=None, files=("a0",))), Conflict.APPEND),
        (appended(A), in_partition("a", Kind.DYNAMIC_OVERWRITE), Conflict.APPEND),
        (appended(B), in_partition("a", Kind.DYNAMIC_OVERWRITE), OK),
        (DELETED_A, in_partition("a", reads=Reads(partitions=(("a",),))), Conflict.DELETE_DELETE),
        (rewritten(B, Kind.REPLACE_WHERE), in_partition("a", Kind.REPLACE_WHERE), OK),
        (rewritten(A, Kind.REPLACE_WHERE), in_partition("a", Kind.REPLACE_WHERE), Conflict.APPEND),
        # A statement that reads all and carries metadata loses to any file at both levels (delta-1.12).
        (appended(), reader(Kind.ADD_CONSTRAINT, metadata=True, removes=(), **WEAK), Conflict.APPEND),
        (appended(), append(kind=Kind.SET_PROPERTIES, metadata=True, data_change=False), OK),
    ],
)  # fmt: skip
def test_data_against_data(
    committed: CommittedTransaction, current: CurrentTransaction, conflict: Conflict | None
) -> None:
    assert decide(committed, current).conflict is conflict


@pytest.mark.parametrize(
    ("current", "level"),
    [
        (reader(Kind.UPDATE), Level.SERIALIZABLE),
        (reader(Kind.UPDATE, data_change=False), Level.SNAPSHOT),
        (reader(Kind.UPDATE, data_change=False, **WEAK), Level.WRITE_SERIALIZABLE),
        (reader(Kind.OPTIMIZE, data_change=False, **WEAK), Level.SNAPSHOT),
        (reader(Kind.OPTIMIZE, data_change=False, domains=("delta.rowTracking",)), Level.SNAPSHOT),
        (reader(Kind.OPTIMIZE, data_change=False, domains=("d",)), Level.SERIALIZABLE),
        (reader(Kind.OPTIMIZE, data_change=False, metadata=True), Level.SERIALIZABLE),
        (reader(Kind.OPTIMIZE, data_change=False, app_ids=("q",)), Level.SERIALIZABLE),
    ],
)
def test_commits_that_change_no_row_are_checked_less(current: CurrentTransaction, level: Level) -> None:
    assert level_used(current) is level


@pytest.mark.parametrize("kind", [Kind.OPTIMIZE, Kind.REORG])
def test_optimize_and_reorg_begin_again(kind: Kind) -> None:
    current = reader(kind, A, data_change=False)
    assert decide(PROPERTY, current).succeeds
    assert decide(alter(protocol=ProtocolChange(removes=("deletionVectors",))), current).succeeds
    assert decide_all([PROPERTY, rewritten(B)], current).succeeds
    assert decide_all([PROPERTY, rewritten(A)], current).conflict is Conflict.METADATA_CHANGED
    repartitioned = CommittedTransaction(
        kind=Kind.REPLACE_TABLE, metadata=MetadataChange(beyond=True), repartitions=True
    )
    assert decide(repartitioned, current).conflict is Conflict.METADATA_CHANGED


@pytest.mark.parametrize("kind", [Kind.RESTORE, Kind.CLONE])
def test_restore_and_clone_take_the_next_version_or_fail(kind: Kind) -> None:
    current = append(kind=kind)
    assert decide(appended(), current).conflict is Conflict.WRITE
    assert decide(CommittedTransaction(kind=Kind.APPEND), current).conflict is Conflict.WRITE
    assert decide_all([], current).succeeds


def test_a_row_tracking_backfill_is_in_no_ones_way() -> None:
    backfill = CommittedTransaction(kind=Kind.BACKFILL, added=(A, B), data_change=False)
    assert decide(backfill, reader()).succeeds
    assert decide(backfill, reader(client=client("delta-spark 3.2.0"))).conflict is Conflict.APPEND
    filling = append(kind=Kind.BACKFILL, reads=Reads(partitions=None, files=("a0",)), data_change=False)
    assert decide(rewritten(A), filling).succeeds
    assert decide(backfill, replace(filling, kind=Kind.UNBACKFILL)).conflict is Conflict.BACKFILL


def test_identity_marks_are_passed_over_and_never_adopted() -> None:
    update = in_partition("a")
    assert decide(IDENTITY_DRAWN, update).succeeds
    assert decide_all([IDENTITY_DRAWN, IDENTITY_DRAWN], update).succeeds
    assert decide_all([VECTORS_ON, IDENTITY_DRAWN], update).succeeds
    # The next metadata carries the marks, which the loser has not.
    assert decide_all([IDENTITY_DRAWN, VECTORS_ON], update).conflict is Conflict.METADATA_CHANGED
    assert decide_all([IDENTITY_DRAWN, ROW_TRACKING_ON], update).conflict is Conflict.METADATA_CHANGED
    # Before 4.1 the tags decide, and nothing is compared.
    older = replace(update, client=client("delta-spark 4.0.1"))
    assert decide_all([IDENTITY_DRAWN, ROW_TRACKING_ON], older).succeeds


def test_winners_count_in_their_order() -> None:
    current = in_partition("a")
    assert decide_all([VECTORS_ON, appended(B), RECLUSTER], current).succeeds
    assert decide_all([appended(A), PROPERTY], current).conflict is Conflict.APPEND
    assert decide_all([PROPERTY, appended(A)], current).conflict is Conflict.METADATA_CHANGED


@pytest.mark.parametrize(
    ("committed", "current", "why"),
    [
        (VECTORS_ON, append(), "adopts the change"),
        (RECLUSTER, append(), "changed nothing that it reads or writes"),
        (appended(), append(), "reads nothing of the table"),
        (appended(), reader(Kind.OPTIMIZE, data_change=False), "changes no row"),
        (appended(), reader(**WEAK), "under WriteSerializable a blind append"),
        (appended(B), in_partition("a"), "touched no file"),
        (PROPERTY, reader(Kind.OPTIMIZE, data_change=False), "retries by itself"),
        (CommittedTransaction(kind=Kind.BACKFILL, added=(File("x"),)), reader(), "backfill"),
    ],
)
def test_a_commit_says_why(committed: CommittedTransaction, current: CurrentTransaction, why: str) -> None:
    outcome = decide(committed, current)
    assert outcome.succeeds
    assert why in outcome.reason


MC, PC, CA, DR = Conflict.METADATA_CHANGED, Conflict.PROTOCOL_CHANGED, Conflict.APPEND, Conflict.DELETE_READ
CT, CW = Conflict.TRANSACTION, Conflict.WRITE
CLUSTERING = ("delta.clustering",)
VECTORS_RAISED = replace(VECTORS_ON, protocol=ProtocolChange(adds=("deletionVectors",)))
OVERWRITTEN = replace(rewritten(A, Kind.OVERWRITE), removed=(A, B), domains=CLUSTERING)
ALTER: dict[str, Any] = {"metadata": True, "data_change": False, "removes": ()}


@pytest.mark.parametrize(
    ("current", "by_append", "by_vectors_on", "by_property", "by_recluster", "by_overwrite"),
    [
        (append(kind=Kind.SET_PROPERTIES, **ALTER), OK, MC, MC, OK, OK),
        (append(kind=Kind.SET_PROPERTIES, protocol=True, **ALTER), OK, PC, MC, OK, OK),
        (append(kind=Kind.CLUSTER_BY, domains=CLUSTERING, **{**ALTER, "metadata": False}), OK, OK, MC, CT, CT),
        (append(kind=Kind.CLUSTER_BY, protocol=True, domains=CLUSTERING, **ALTER), OK, PC, MC, CT, CT),
        (reader(Kind.ADD_CONSTRAINT, **ALTER), CA, MC, MC, OK, CA),
        (append(kind=Kind.DROP_FEATURE, protocol=True, drops=("x",), **ALTER), OK, PC, MC, OK, OK),
        (reader(Kind.REORG, data_change=False), OK, OK, OK, OK, DR),
        (reader(Kind.REMOVE_MAPPING, metadata=True), CA, MC, MC, OK, CA),
        (reader(Kind.REPLACE_TABLE, metadata=True, domains=CLUSTERING), CA, MC, MC, CT, CT),
        (append(kind=Kind.RESTORE), CW, CW, CW, CW, CW),
        (reader(Kind.OVERWRITE, domains=CLUSTERING), CA, OK, MC, CT, CT),
        (reader(Kind.OVERWRITE), CA, OK, MC, OK, CA),
    ],
    ids=lambda value: value.kind.value if isinstance(value, CurrentTransaction) else "",
)
def test_statements_and_overwrites_as_losers(
    current: CurrentTransaction,
    by_append: Conflict | None,
    by_vectors_on: Conflict | None,
    by_property: Conflict | None,
    by_recluster: Conflict | None,
    by_overwrite: Conflict | None,
) -> None:
    """The table of delta-2.7."""
    all_committed = (appended(), VECTORS_RAISED, PROPERTY, RECLUSTER, OVERWRITTEN)
    expected = [by_append, by_vectors_on, by_property, by_recluster, by_overwrite]
    assert [decide(committed, current).conflict for committed in all_committed] == expected
