"""``clustering``: which columns Delta collects statistics for."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from tablectl.attributes.base import ChangeTarget
from tablectl.attributes.clustering import Clustering
from tablectl.attributes.policy import basis_of
from tablectl.attributes.value_types import STATS_KEYS, has_statistics
from tablectl.model.plan import Change
from tablectl.model.table import LiveTable

_COUNT, _NAMES = STATS_KEYS


@pytest.mark.parametrize(
    ("properties", "column", "has"),
    [
        ({}, ("id",), True),
        ({}, ("address", "City"), True),
        ({_COUNT: "0"}, ("id",), False),
        ({_COUNT: "7"}, ("address", "City"), True),
        ({_COUNT: "6"}, ("address", "City"), False),
        ({_COUNT: "8"}, ("address", "street.no"), True),
        ({_COUNT: "-1"}, ("a.b",), True),
        ({_NAMES: "`a.b`"}, ("a.b",), True),
        ({_NAMES: "a.b"}, ("a.b",), False),
        ({_NAMES: "address"}, ("address", "City"), True),
        ({_NAMES: "address.CITY"}, ("address", "City"), True),
        ({_NAMES: "address.city"}, ("address", "street.no"), False),
        ({_NAMES: "day", _COUNT: "-1"}, ("id",), False),
        ({_NAMES: ""}, ("id",), False),
        ({_NAMES: "not a list"}, ("id",), False),
        ({_COUNT: "many"}, ("id",), True),
    ],
)
def test_statistics(
    live: Callable[..., LiveTable], properties: Mapping[str, str], column: tuple[str, ...], has: bool
) -> None:
    table = live(properties=properties)
    assert has_statistics(column, table.schema, table.property) is has


def test_the_plan_outranks_the_live_table(live: Callable[..., LiveTable]) -> None:
    table = live(properties={_NAMES: "day"})
    named, unset = ChangeTarget("oss", {_NAMES.lower(): "id"}), ChangeTarget("oss", {_NAMES.lower(): None})
    assert has_statistics(("id",), table.schema, lambda key: named.property(table, key))
    assert has_statistics(("id",), table.schema, lambda key: unset.property(table, key))


def test_no_plan_has_data_optimized_that_its_policy_does_not_ask_for(live: Callable[..., LiveTable]) -> None:
    change = Change(attribute="clustering", key="data", before="outdated", after="clustered")
    with pytest.raises(ValueError, match="not asked for"):
        Clustering().act(change, basis_of(live()))
