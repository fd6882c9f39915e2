"""What differs between a policy and a live table."""

from __future__ import annotations

from collections.abc import Callable

from tablectl.attributes.policy import Policy
from tablectl.model.table import LiveTable
from tablectl.planning.diff import diff

Live = Callable[..., LiveTable]


def test_absent_means_not_managed(live: Live) -> None:
    table = live(properties={"delta.isolationLevel": "Serializable", "owner": "x"}, clustering=(("id",),))
    assert diff(Policy(), table) == ()


def test_changes_come_in_the_order_of_the_attributes_and_of_the_keys(live: Live) -> None:
    policy = Policy(
        {
            "properties": {"b": "1", "a": "1"},
            "partitioning": ("day",),
            "clustering": ("id",),
            "deletion_vectors": "enabled",
            "isolation": "Serializable",
        }
    )
    assert [change.id for change in diff(policy, live())] == [
        "isolation",
        "deletion_vectors",
        "clustering",
        "partitioning",
        "properties.a",
        "properties.b",
    ]


def test_only_what_differs_is_a_change(live: Live) -> None:
    policy = Policy({"isolation": "Serializable", "properties": {"a": "1", "b": "2"}})
    table = live(properties={"delta.isolationLevel": "Serializable", "a": "1"})
    (change,) = diff(policy, table)
    assert (change.id, change.before, change.after) == ("properties.b", None, "2")


def test_a_change_takes_the_types_of_its_columns_for_granted(live: Live) -> None:
    (change,) = diff(Policy({"clustering": ("CUSTOMER", "day")}), live())
    assert [(fact.column, fact.type) for fact in change.columns] == [("Customer", "string"), ("day", "date")]
