"""The registry of attributes, and what no policy can ask for."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from tablectl.attributes.policy import ATTRIBUTES, Policy, attribute, check_declarable
from tablectl.model.plan import Change, Value


def test_attributes_are_the_fields_of_a_policy_in_their_order() -> None:
    assert [entry.name for entry in ATTRIBUTES] == list(Policy.model_fields)


def test_attributes_are_found_by_name() -> None:
    assert [attribute(entry.name) for entry in ATTRIBUTES] == list(ATTRIBUTES)
    with pytest.raises(KeyError):
        attribute("clusterin")


def test_policies_are_strict() -> None:
    for body in ({"clusterin": "none"}, {"clustering": "id"}, {"isolation": "x"}, {"properties": {"a": 1}}):
        with pytest.raises(ValidationError):
            Policy.model_validate(body)


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
        ("properties", "delta.logRetentionDuration", "interval 1 week"),
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
        ("properties", "", "x"),
        ("properties", "a", ("x",)),
        ("properties", "delta.enableDeletionVectors", "true"),
        ("properties", "delta.feature.rowTracking", "supported"),
        ("properties", "delta.constraints.c", "x > 1"),
        ("properties", "delta.minWriterVersion", "7"),
        ("properties", "delta.appendonly", "true"),
        ("properties", "delta.appendOnly", "perhaps"),
        ("properties", "delta.targetFileSize", "1gb"),
        ("properties", "location", "/elsewhere"),
        ("tables", "", "x"),
    ],
)
def test_what_none_can(name: str, key: str, after: Value) -> None:
    with pytest.raises(ValueError):
        check_declarable(Change(attribute=name, key=key, before=None, after=after), "oss")
