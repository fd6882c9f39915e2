"""What the commits of each operation hold."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tablectl.model.commit_contents import Kind, MetadataChange, ProtocolChange
from tablectl.model.operations import (
    ClusterBy,
    DropFeature,
    Purge,
    RemoveMapping,
    Repartition,
    SetProperties,
    UnsetProperties,
    UpgradeUniform,
)
from tablectl.model.plan import Backfill, CommitEffect, ProtocolFact
from tests.builders import make_basis

_BASIS = make_basis()
_MODERN = replace(
    _BASIS,
    protocol=ProtocolFact(
        reader=3,
        writer=7,
        reader_features=("deletionVectors",),
        writer_features=("clustering", "deletionVectors", "domainMetadata"),
    ),
)


def test_a_set_holds_its_keys_and_the_features_that_are_missing() -> None:
    keys = (("delta.checkpointPolicy", "v2"), ("delta.enableDeletionVectors", "true"), ("owner", "x"))
    assert SetProperties(keys).effect(_BASIS) == CommitEffect(sets=keys, features=("deletionVectors", "v2Checkpoint"))
    assert SetProperties(keys).effect(_MODERN) == CommitEffect(sets=keys, features=("v2Checkpoint",))


def test_row_tracking_brings_the_domains_that_it_keeps_its_marks_in() -> None:
    on = SetProperties((("delta.enableRowTracking", "true"),))
    assert on.effect(_BASIS).features == ("domainMetadata", "rowTracking")
    assert on.effect(_MODERN).features == ("rowTracking",)


def test_an_unset_removes_keys_and_never_a_feature() -> None:
    assert UnsetProperties(("a", "b")).effect(_MODERN) == CommitEffect(removes=("a", "b"))


def test_clustering_writes_its_domain_and_brings_two_features_once() -> None:
    first = ClusterBy(("id",)).effect(_BASIS)
    assert first == CommitEffect(features=("clustering", "domainMetadata"), domains=("delta.clustering",))
    assert ClusterBy(()).effect(_MODERN) == CommitEffect(domains=("delta.clustering",))


def test_a_feature_that_readers_must_know_leaves_its_checkpoints_protected() -> None:
    assert DropFeature("deletionVectors").effect(_MODERN) == CommitEffect(
        features=("checkpointProtection",), drops=("deletionVectors",)
    )
    assert DropFeature("rowTracking").effect(_MODERN) == CommitEffect(drops=("rowTracking",))
    assert DropFeature("deletionVectors", truncate_history=True).effect(_MODERN) == CommitEffect(
        drops=("deletionVectors",), truncates_history=True
    )


@pytest.mark.parametrize(
    ("operation", "kinds"),
    [
        (
            DropFeature("deletionVectors"),
            [Kind.TOMBSTONES, Kind.EMPTY, Kind.EMPTY, Kind.EMPTY, Kind.DROP_FEATURE],
        ),
        (
            DropFeature("deletionVectors", truncate_history=True),
            [Kind.TOMBSTONES, Kind.EMPTY, Kind.DROP_FEATURE],
        ),
        (
            DropFeature("checkpointProtection", truncate_history=True),
            [Kind.EMPTY, Kind.UNSET_PROPERTIES, Kind.DROP_FEATURE],
        ),
    ],
    ids=str,
)
def test_a_feature_is_dropped_by_the_last_of_several_commits(operation: DropFeature, kinds: list[Kind]) -> None:
    made = operation.commits(_MODERN)
    assert [commit.kind for commit in made] == kinds
    assert made[-1].protocol is not None
    assert made[-1].protocol.removes == (operation.name,)


def test_a_purge_rewrites_files_and_no_metadata() -> None:
    assert Purge().effect(_MODERN) == CommitEffect(rewrites_files=True)


def test_every_alter_writes_the_metadata_but_a_clustering_of_a_clustered_table() -> None:
    (unset,) = UnsetProperties(("a",)).commits(_BASIS)
    assert (unset.kind, unset.metadata) == (Kind.UNSET_PROPERTIES, MetadataChange(removes=("a",)))
    (first,) = ClusterBy(("id",)).commits(_BASIS)
    assert first.metadata == MetadataChange()
    assert first.protocol == ProtocolChange(adds=("clustering", "domainMetadata"))
    (again,) = ClusterBy(()).commits(_MODERN)
    assert (again.metadata, again.protocol, again.domains) == (None, None, ("delta.clustering",))


def test_a_purge_is_not_a_blind_append_and_an_alter_is_one() -> None:
    (purge,) = Purge().commits(_MODERN)
    assert (purge.blind, purge.data_change, len(purge.added), len(purge.removed)) == (False, False, 1, 1)
    (alter,) = SetProperties((("a", "1"),)).commits(_MODERN)
    assert (alter.blind, alter.added, alter.removed) == (True, (), ())


def test_row_tracking_on_is_three_commits_and_two_where_the_protocol_has_it() -> None:
    on = ("delta.enableRowTracking", "true")
    upgrade, backfill, last = SetProperties((on,)).commits(_BASIS)
    assert upgrade.protocol == ProtocolChange(adds=("domainMetadata", "rowTracking"))
    assert (backfill.kind, backfill.data_change) == (Kind.BACKFILL, False)
    assert last.metadata is not None
    assert (last.metadata.tag, last.protocol) == ("row tracking", None)
    both = SetProperties((("delta.enableDeletionVectors", "true"), on)).commits(_BASIS)[-1]
    assert both.metadata is not None
    assert (both.metadata.tag, both.protocol) == ("", ProtocolChange(adds=("deletionVectors",)))
    has = replace(_BASIS, protocol=ProtocolFact(reader=1, writer=7, writer_features=("domainMetadata", "rowTracking")))
    assert [committed.kind for committed in SetProperties((on,)).commits(has)] == [Kind.BACKFILL, Kind.SET_PROPERTIES]
    assert len(SetProperties((("delta.enableRowTracking", "false"),)).commits(_BASIS)) == 1


def test_the_feature_of_row_tracking_brings_two_properties_and_only_if_it_is_named() -> None:
    (named,) = SetProperties((("delta.feature.rowTracking", "supported"),)).commits(_BASIS)
    assert named.protocol == ProtocolChange(adds=("domainMetadata", "rowTracking"))
    assert named.metadata is not None
    assert [key for key, _ in named.metadata.sets] == [
        "delta.rowTracking.materializedRowIdColumnName",
        "delta.rowTracking.materializedRowCommitVersionColumnName",
    ]
    has = replace(_BASIS, protocol=ProtocolFact(reader=1, writer=7, writer_features=("domainMetadata", "rowTracking")))
    (again,) = SetProperties((("delta.feature.rowTracking", "supported"),)).commits(has)
    assert (again.metadata, again.protocol) == (MetadataChange(), None)
    (needed,) = SetProperties((("delta.feature.icebergCompatV3", "supported"),)).commits(_BASIS)
    assert needed.protocol == ProtocolChange(adds=("columnMapping", "domainMetadata", "icebergCompatV3", "rowTracking"))
    assert needed.metadata == MetadataChange()


@pytest.mark.parametrize(("files", "commits"), [(1, 1), (22_000, 1), (22_001, 2), (1_000_000, 46)])
def test_a_backfill_is_as_many_commits_as_its_files_take(files: int, commits: int) -> None:
    on = SetProperties((("delta.enableRowTracking", "TRUE"),))
    found = on.backfill(replace(_BASIS, files=files, bytes=7))
    assert found == Backfill(files_at_most=files, bytes_at_most=7, commits_at_most=commits)


def test_without_files_or_their_number_no_backfill_is_reported() -> None:
    on = SetProperties((("delta.enableRowTracking", "true"),))
    assert on.backfill(replace(_BASIS, files=0)) is None
    assert on.backfill(replace(_BASIS, files=None)) is None
    assert SetProperties((("a", "true"),)).backfill(replace(_BASIS, files=3)) is None


def test_a_repartition_is_a_full_overwrite_that_changes_the_table_itself() -> None:
    assert Repartition(("day",)).effect(_BASIS) == CommitEffect(rewrites_files=True, repartitions=True)
    (made,) = Repartition(("day",)).commits(_BASIS)
    assert (made.kind, made.repartitions, made.data_change, made.blind) == (Kind.OVERWRITE, True, True, False)
    assert made.metadata == MetadataChange(beyond=True, schema="other")
    clustered = replace(_BASIS, clustered=True)
    assert Repartition(()).effect(clustered).domains == ("delta.clustering",)


def test_the_upgrade_to_iceberg_is_settings_files_and_format() -> None:
    first, files, last = UpgradeUniform(2).commits(_BASIS)
    assert first.metadata is not None
    assert dict(first.metadata.sets)["delta.columnMapping.mode"] == "name"
    assert first.protocol == ProtocolChange(adds=("columnMapping", "icebergCompatV2"))
    assert (files.kind, files.data_change, first.blind) == (Kind.REORG, False, True)
    assert last.metadata == MetadataChange(sets=(("delta.universalFormat.enabledFormats", "iceberg"),))


def test_without_files_or_for_v1_nothing_is_rewritten_and_a_mapping_stays() -> None:
    for version, files in ((1, 3), (2, 0)):
        basis = replace(_BASIS, files=files, stored=(("delta.columnMapping.mode", "NAME"),))
        effect = UpgradeUniform(version).effect(basis)
        assert "delta.columnMapping.mode" not in dict(effect.sets)
        assert [commit.kind for commit in UpgradeUniform(version).commits(basis)] == [
            Kind.UPGRADE_UNIFORM,
            Kind.SET_PROPERTIES,
        ]


def test_a_mapping_is_new_in_top_level_fields_alone_where_no_column_holds_a_struct() -> None:
    on = SetProperties((("delta.columnMapping.mode", "name"),))
    schemas = [on.commits(replace(_BASIS, nested=nested))[0].metadata for nested in (False, True)]
    assert [change and change.schema for change in schemas] == ["mapping", "other"]


def test_a_mapping_is_removed_in_one_commit_that_rewrites_everything() -> None:
    (made,) = RemoveMapping().commits(_BASIS)
    assert (made.kind, made.blind, made.data_change) == (Kind.REMOVE_MAPPING, False, False)
    assert made.metadata == MetadataChange(sets=(("delta.columnMapping.mode", "none"),), schema="other")
    assert (len(made.added), len(made.removed)) == (1, 1)
