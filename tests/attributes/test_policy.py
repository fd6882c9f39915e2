"""The registry of attributes, and what no policy can ask for."""

from __future__ import annotations

import pytest

from tablectl.attributes.policy import ATTRIBUTES, Policy, attribute, changed_values, check_declarable, needs_of
from tablectl.model.plan import Change, Value
from tablectl.model.table_options import NO_OPTIONS


def test_a_policy_has_a_value_for_each_attribute() -> None:
    policy = Policy({"isolation": "Serializable", "clustering": None})
    assert {entry.name: getattr(policy, entry.name) for entry in ATTRIBUTES if entry.name != "isolation"} == {
        entry.name: None for entry in ATTRIBUTES if entry.name != "isolation"
    }
    assert policy.isolation == "Serializable"
    assert policy == Policy({"isolation": "Serializable"})
    with pytest.raises(AttributeError):
        _ = policy.isolatoin


def test_a_policy_takes_only_attributes() -> None:
    with pytest.raises(TypeError, match="isolatoin is not an attribute"):
        Policy({"isolatoin": "Serializable"})


def test_declared_values_are_in_the_order_of_the_attributes() -> None:
    assert list(Policy({"properties": {"a": "b"}, "isolation": "default"}).declared) == ["isolation", "properties"]


def test_what_is_declared() -> None:
    policy = Policy({"clustering": ("id",), "properties": {"a": "b", "c": None}})
    assert policy.declared == {"clustering": ("id",), "properties": {"a": "b", "c": None}}
    assert list(policy.values()) == [
        ("clustering", "", ("id",)),
        ("properties", "a", "b"),
        ("properties", "c", None),
    ]


@pytest.mark.parametrize(
    ("name", "key", "value", "needed"),
    [
        ("deletion_vectors", "", "purged", True),
        ("deletion_vectors", "", "dropped", True),
        ("deletion_vectors", "", "disabled", False),
        ("properties", "delta.compatibility.symlinkFormatManifest.enabled", "TRUE", True),
        ("properties", "delta.compatibility.symlinkFormatManifest.enabled", "false", False),
        ("properties", "delta.compatibility.symlinkFormatManifest.enabled", None, False),
        ("properties", "owner.team", "true", False),
        ("isolation", "", "Serializable", False),
    ],
)
def test_when_vectors_are_counted(name: str, key: str, value: Value, *, needed: bool) -> None:
    assert needs_of([(name, key, value)], NO_OPTIONS).vectors is needed


@pytest.mark.parametrize(("value", "needed"), [("enabled", True), ("disabled", False)])
def test_when_files_are_counted(value: Value, *, needed: bool) -> None:
    tracking, vectors = (
        [Change(attribute=name, before=None, after=value)] for name in ("row_tracking", "deletion_vectors")
    )
    assert needs_of(changed_values(tracking), NO_OPTIONS).size is needed
    assert not needs_of(changed_values(vectors), NO_OPTIONS).size


def test_attributes_are_found_by_name() -> None:
    assert [attribute(entry.name) for entry in ATTRIBUTES] == list(ATTRIBUTES)
    with pytest.raises(KeyError):
        attribute("clusterin")


def test_policies_are_strict() -> None:
    for body in ({"clustering": "id"}, {"clustering": ()}, {"isolation": "x"}, {"properties": {"a": 1}}):
        with pytest.raises(ValueError, match="no policy can declare"):
            Policy(body)


@pytest.mark.parametrize(
    ("name", "key", "after"),
    [
        ("isolation", "", "WriteSerializable"),
        ("deletion_vectors", "", "purged"),
        ("clustering", "", ("id", "address.city")),
        ("clustering", "", "none"),
        ("partitioning", "", ("day",)),
        ("properties", "owner.team", "payments"),
        ("properties", "owner.team", None),
        ("properties", "delta.checkpointRetentionDuration", "interval 1 week"),
    ],
)
def test_what_a_policy_can_ask_for(name: str, key: str, after: Value) -> None:
    check_declarable(Change(attribute=name, key=key, before=None, after=after), "oss")


@pytest.mark.parametrize(
    ("name", "key", "after"),
    [
        ("isolation", "", "SnapshotIsolation"),
        ("isolation", "", None),
        ("isolation", "", ("Serializable",)),
        ("isolation", "x", "Serializable"),
        ("deletion_vectors", "", "off"),
        ("clustering", "", "id"),
        ("clustering", "", ("",)),
        ("clustering", "", ()),
        ("clustering", "data", "outdated"),
        ("clustering", "date", "clustered"),
        ("properties", "", "x"),
        ("properties", "a", ("x",)),
        ("properties", "delta.enableDeletionVectors", "true"),
        ("properties", "delta.feature.rowTracking", "supported"),
        ("properties", "delta.constraints.c", "x > 1"),
        ("properties", "delta.minWriterVersion", "7"),
        ("properties", "delta.appendonly", "true"),
        ("properties", "delta.appendOnly", "perhaps"),
        ("properties", "delta.tuneFileSizesForRewrites", "1gb"),
        ("properties", "location", "/elsewhere"),
        ("tables", "", "x"),
    ],
)
def test_what_none_can(name: str, key: str, after: Value) -> None:
    with pytest.raises(ValueError):
        check_declarable(Change(attribute=name, key=key, before=None, after=after), "oss")
