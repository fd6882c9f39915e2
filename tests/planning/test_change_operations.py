"""Each change is judged in the light of all the others."""

from __future__ import annotations

from collections.abc import Callable

from tablectl.attributes.policy import Policy, basis_of
from tablectl.model.operations import SetProperties, UnsetProperties
from tablectl.model.table import LiveTable
from tablectl.planning.derive_statements import operations_for, refusals_for
from tablectl.planning.diff import diff

Live = Callable[..., LiveTable]
_MANIFEST = "delta.compatibility.symlinkFormatManifest.enabled"


def test_operations_follow_from_the_changes(live: Live) -> None:
    table = live(properties={"b": "1"})
    changes = diff(Policy({"isolation": "Serializable", "properties": {"b": None}}), table)
    operations = operations_for(changes, basis_of(table))
    assert [each.change for each in operations] == [change.id for change in changes]
    assert [each.operation for each in operations] == [
        SetProperties((("delta.isolationLevel", "Serializable"),)),
        UnsetProperties(("b",)),
    ]


def test_a_change_that_another_makes_possible_is_not_refused(live: Live) -> None:
    table = live(properties={_MANIFEST: "true"})
    alone = diff(Policy({"deletion_vectors": "enabled"}), table)
    together = diff(Policy({"deletion_vectors": "enabled", "properties": {_MANIFEST: "false"}}), table)
    assert [refusal.change for refusal in refusals_for(alone, table, "oss")] == ["deletion_vectors"]
    assert refusals_for(together, table, "oss") == ()


def test_a_change_that_another_makes_impossible_is(live: Live) -> None:
    table = live()
    changes = diff(Policy({"clustering": ("id",), "properties": {"delta.dataSkippingStatsColumns": "day"}}), table)
    assert [refusal.change for refusal in refusals_for(changes, table, "oss")] == ["clustering"]


def test_every_refusal_is_given_at_once(live: Live) -> None:
    table = live(partition_columns=("day",))
    changes = diff(Policy({"isolation": "WriteSerializable", "clustering": ("id",)}), table)
    found = refusals_for(changes, table, "oss")
    assert [refusal.change for refusal in found] == ["isolation", "clustering"]
    assert all(refusal.reason and refusal.fix for refusal in found)
    assert [refusal.change for refusal in refusals_for(changes, table, "databricks")] == ["clustering"]
