"""Shards: every table is in one of them, and all of them together are the plan of all tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablectl.model.errors import PlanFileError, UsageError
from tablectl.model.plan import Plan
from tablectl.planning.plan_file import MOST_SHARDS, Shard, dump_plan, load_plan, merge_plans

Shards = Callable[[int], list[tuple[str, Plan]]]


@pytest.fixture
def whole(rich: Plan) -> Plan:
    """A plan of all tables, each with a location of its own."""
    places = [each.table.parts[0] if each.table.is_path else f"/lake/{at}" for at, each in enumerate(rich.tables)]
    tables = [replace(each, location=place) for each, place in zip(rich.tables, places, strict=True)]
    return replace(
        rich,
        tables=tuple(sorted(tables, key=lambda each: each.name)),
        failures=tuple(sorted(rich.failures, key=lambda each: (each.name, each.message))),
        unchanged=tuple(sorted(rich.unchanged)),
    )


@pytest.fixture
def shards(whole: Plan) -> Shards:
    """A plan in shards, as ``plan --shard`` makes them."""

    def split(count: int) -> list[tuple[str, Plan]]:
        return [(f"{number}.json", _part(whole, Shard(number, count))) for number in range(1, count + 1)]

    return split


def _part(plan: Plan, shard: Shard) -> Plan:
    return replace(
        plan,
        tables=tuple(each for each in plan.tables if shard.has(each.name)),
        unchanged=tuple(each for each in plan.unchanged if shard.has(each)),
        shard=shard.text,
    )


@given(name=st.text(), count=st.integers(1, MOST_SHARDS))
def test_a_table_is_in_exactly_one_shard(name: str, count: int) -> None:
    assert sum(Shard(number, count).has(name) for number in range(1, count + 1)) == 1


def test_shards_are_of_about_equal_size() -> None:
    sizes = [sum(Shard(number, 4).has(f"lake.sales.t{table}") for table in range(4000)) for number in (1, 2, 3, 4)]
    assert min(sizes) > 900


@pytest.mark.parametrize("text", ["", "1", "0/2", "3/2", "1/0", "1/1001", "a/b", "1/2/3", "-1/2", "01/2", "１/２"])
def test_other_texts_are_not_shards(text: str) -> None:
    with pytest.raises(UsageError, match="is not a shard"):
        Shard.parse(text)


@pytest.mark.parametrize("count", [1, 2, 7])
def test_the_merged_plan_is_the_plan_of_all_tables_byte_by_byte(whole: Plan, shards: Shards, count: int) -> None:
    files = [(name, load_plan(dump_plan(plan), name)) for name, plan in shards(count)]
    assert dump_plan(merge_plans(files[::-1])) == dump_plan(whole)


def test_a_plan_of_all_tables_does_not_name_a_shard(whole: Plan) -> None:
    assert b'"shard"' not in dump_plan(whole)


def test_the_digest_covers_the_shard(shards: Shards) -> None:
    edited = dump_plan(shards(2)[0][1]).replace(b'"shard": "1/2"', b'"shard": "2/2"')
    with pytest.raises(PlanFileError, match="digest does not match"):
        load_plan(edited, "1.json")


def test_a_pattern_that_one_shard_found_a_table_for_is_matched(shards: Shards) -> None:
    one, two = shards(2)
    found = merge_plans([("1", replace(one[1], unmatched=("a.*", "b.*"))), ("2", replace(two[1], unmatched=("b.*",)))])
    assert found.unmatched == ("b.*",)


def test_plans_that_are_not_all_shards_of_one_plan_are_refused(whole: Plan, shards: Shards) -> None:
    (one, two), three = shards(2), shards(3)
    _refused("shard 2 of 2 is missing", [one])
    _refused("shard 1, 3 of 3 is missing", [three[1]])
    _refused("both shard 1/2", [one, one, two])
    _refused("shards of 2 and of 3", [one, two, three[2]])
    _refused("not the plan of a shard", [one, ("p.json", whole)])
    for key, other in (
        ("dialect", replace(two[1], dialect="other")),
        ("policies", replace(two[1], policies="other")),
        ("env", replace(two[1], env="other")),
    ):
        _refused(f"different `{key}`", [one, ("2.json", other)])


def test_a_table_in_two_shards_is_refused(whole: Plan, shards: Shards) -> None:
    one, two = shards(2)
    _refused("is in two shards", [one, (two[0], replace(two[1], unchanged=whole.unchanged, tables=whole.tables))])
    (first, *_) = whole.tables
    moved = replace(first, name="lake.other.name")
    _refused("location", [(one[0], replace(one[1], tables=(first,))), (two[0], replace(two[1], tables=(moved,)))])


def _refused(why: str, plans: list[tuple[str, Plan]]) -> None:
    with pytest.raises(PlanFileError, match=why):
        merge_plans(plans)
