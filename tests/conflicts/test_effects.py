"""What the commits of each operation hold."""

from __future__ import annotations

from dataclasses import replace

from tablectl.conflicts.effects import effect_of
from tablectl.model.operations import ClusterBy, Purge, SetProperties, UnsetProperties
from tablectl.model.plan import Basis, CommitEffect, ProtocolFact

_BASIS = Basis(
    protocol=ProtocolFact(reader=1, writer=2),
    partitioned=False,
    clustered=False,
    identity=False,
    schema_writers=False,
    overwrites=False,
    clients=(),
    vectors=None,
    files=None,
    bytes=None,
)
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
    assert effect_of(SetProperties(keys), _BASIS) == CommitEffect(
        sets=keys, features=("deletionVectors", "v2Checkpoint")
    )
    assert effect_of(SetProperties(keys), _MODERN) == CommitEffect(sets=keys, features=("v2Checkpoint",))


def test_an_unset_removes_keys_and_never_a_feature() -> None:
    assert effect_of(UnsetProperties(("a", "b")), _MODERN) == CommitEffect(removes=("a", "b"))


def test_clustering_writes_its_domain_and_brings_two_features_once() -> None:
    first = effect_of(ClusterBy((("id",),)), _BASIS)
    assert first == CommitEffect(features=("clustering", "domainMetadata"), domains=("delta.clustering",))
    assert effect_of(ClusterBy(()), _MODERN) == CommitEffect(domains=("delta.clustering",))


def test_a_purge_rewrites_files_and_no_metadata() -> None:
    assert effect_of(Purge(), _MODERN) == CommitEffect(rewrites_files=True)
