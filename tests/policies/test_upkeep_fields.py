"""``upkeep:`` of a policy: values, layers, and what excludes it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tablectl.model.upkeep import OptimizePolicy, UpkeepPolicy, VacuumPolicy
from tablectl.policies.declared_tables import Specs

INHERITED = "version: 1\ndefaults: {{upkeep: {{optimize: {{small_files: 30%, every: 7 days}}, vacuum: 7 days}}}}\n{}"


def upkeep(read: Callable[..., Specs], entry: str) -> UpkeepPolicy | None:
    (table,) = read(INHERITED.format(f"tables:\n  a.b: {{{entry}}}\n")).tables
    return table.upkeep


def test_it_is_inherited(read: Callable[..., Specs]) -> None:
    assert upkeep(read, "isolation: Serializable") == UpkeepPolicy(
        optimize=OptimizePolicy(small_files="30%", every="7 days"), vacuum=VacuumPolicy(every="7 days")
    )


def test_each_kind_is_overridden_as_a_whole(read: Callable[..., Specs]) -> None:
    found = upkeep(read, "upkeep: {optimize: {every: 1 day, target: 1 GB}}")
    assert found is not None
    assert found.optimize == OptimizePolicy(target="1 GB", every="1 day")
    assert found.vacuum == VacuumPolicy(every="7 days")


def test_one_kind_can_be_cancelled_and_all_of_it(read: Callable[..., Specs]) -> None:
    found = upkeep(read, "upkeep: {optimize: never}")
    assert found is not None
    assert found.optimize is None
    assert upkeep(read, "unmanaged: [upkeep]") is None


def test_tables_that_databricks_maintains_declare_none(wrong: Callable[..., list[str]]) -> None:
    (problem,) = wrong(
        "version: 1\ntables:\n  a.b:\n    predictive_optimization: enabled\n    upkeep: {vacuum: 7 days}\n",
        dialect="databricks",
    )
    assert "`predictive_optimization: enabled` and `upkeep.vacuum: every 7 days` exclude each other" in problem


@pytest.mark.parametrize("size", ["-1", "128 megabytes", "128MiB", "128 MB or so"])
def test_the_hint_about_a_size_says_which_units_there_are(table_wrong: Callable[..., list[str]], size: str) -> None:
    (problem,) = table_wrong(f"upkeep: {{optimize: {{every: 1 day, target: {size}}}}}")
    assert problem.count("is not a size") == 1
    assert "needs a number and a unit, such as '500 MB': B, kB, MB, GB, TB or PB" in problem


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("{optimize: {}}", "`upkeep.optimize` needs `small_files` or `every`"),
        ("{optimize: {target: 128 MB}}", "`upkeep.optimize` needs `small_files` or `every`"),
        ("{optimize: {small_files: 0%}}", '"0%" is not a percentage'),
        ("{optimize: {small_files: 101%}}", '"101%" is not a percentage'),
        ("{optimize: {every: 1 day, target: 1 kB}}", '"1 kB" is not a size'),
        ("{vacuum: {every: 1 minute}}", '"1 minute" is not an interval'),
        ("{vacuum: {every: 99999999999 days}}", '"99999999999 days" is not an interval'),
        ("{vacuum: {}}", "`upkeep.vacuum` needs `every`"),
        ("{vacum: 7 days}", 'unknown key "upkeep.vacum"'),
    ],
)
def test_what_is_wrong_is_named(table_wrong: Callable[..., list[str]], value: str, problem: str) -> None:
    assert any(problem in each for each in table_wrong(f"upkeep: {value}"))


def test_it_never_changes_the_options_of_a_plan(read: Callable[..., Specs]) -> None:
    (one,) = read("version: 1\ntables:\n  a.b: {isolation: Serializable}\n").tables
    (two,) = read("version: 1\ntables:\n  a.b: {isolation: Serializable, upkeep: {vacuum: 7 days}}\n").tables
    assert (one.policy, one.options, one.window) == (two.policy, two.options, two.window)
