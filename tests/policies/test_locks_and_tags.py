"""Locks, and profiles that tags attach."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from tablectl.attributes.policy import Policy
from tablectl.lint_rules.rule import table_subject
from tablectl.model.table_options import TableLock, TableOptions
from tablectl.planning.lint import lint
from tablectl.planning.plan_table import plan_table
from tablectl.policies.effective_policy import explain
from tests.builders import live_table

LOCK = TableLock("2027-01-31", "audit", "finance")
LOCKED = TableOptions(locked=LOCK)
POLICY = Policy({"properties": {"a": "b"}})
Read = Callable[..., Any]


def test_a_tag_attaches_the_profile_of_its_name(read: Read) -> None:
    specs = read("""
version: 1
profiles: {gold: {isolation: Serializable}}
defaults: {tags: [gold]}
tables: {lake.s.t: {}, lake.s.u: {tags: [raw]}}
""")
    assert [spec.policy.isolation for spec in specs.tables] == ["Serializable", None]
    (found,) = explain(specs, "lake.s.t").resolved[:1]
    assert (found.key, found.won.title) == ("isolation", "profile gold (tag gold)")


def test_an_attached_profile_outranks_one_of_a_tag_and_patterns_outrank_both(read: Read) -> None:
    specs = read("""
version: 1
profiles:
  gold: {properties: {a: gold, b: gold, c: gold}}
  silver: {properties: {a: silver, b: silver}}
tables:
  lake.s.t: {tags: [gold], profiles: [silver]}
  lake.s.*: {properties: {a: pattern}}
""")
    (spec,) = specs.tables
    assert spec.policy.properties == {"a": "pattern", "b": "silver", "c": "gold"}


def test_a_profile_does_not_remove_the_tag_that_attaches_it(read: Read) -> None:
    specs = read("""
version: 1
profiles: {gold: {tags: [silver], isolation: Serializable, properties: {a: gold}}, silver: {properties: {a: silver}}}
defaults: {tags: [gold]}
tables: {lake.s.t: {}}
""")
    (spec,) = specs.tables
    assert (spec.tags, spec.policy.isolation, spec.policy.properties) == (("gold",), "Serializable", {"a": "gold"})


def test_a_profile_may_give_the_tag_that_attaches_another(read: Read) -> None:
    specs = read("""
version: 1
profiles: {silver: {tags: [gold]}, gold: {isolation: Serializable}}
tables: {lake.s.t: {profiles: [silver]}}
""")
    assert specs.tables[0].policy.isolation == "Serializable"


def test_a_lock_is_read_with_all_its_parts(read: Read) -> None:
    specs = read("""
version: 1
profiles: {audit: {locked: {until: 2027-01-31, reason: audit, owner: finance}}}
tables: {lake.s.t: {tags: [audit]}}
""")
    assert specs.tables[0].options.locked == LOCK


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{until: 2027-02-30, reason: a, owner: b}", "is not one"),
        ("{until: soon, reason: a, owner: b}", "a day such as 2027-01-31"),
        ("{until: 2027-01-31}", "needs `reason` and `owner`"),
        ('{until: 2027-01-31, reason: "a\\nb", owner: c}', "one line"),
    ],
)
def test_a_wrong_lock_is_an_error(wrong: Callable[[str], list[str]], text: str, why: str) -> None:
    (problem,) = wrong(f"version: 1\ntables: {{lake.s.t: {{locked: {text}}}}}\n")
    assert why in problem


@pytest.mark.parametrize(("today", "refused"), [("2027-01-31", True), ("2027-02-01", False)])
def test_a_plan_refuses_each_change_until_the_last_day(today: str, *, refused: bool) -> None:
    plan = plan_table(POLICY, live_table(), "oss", LOCKED.on(date.fromisoformat(today)))
    assert plan is not None
    assert bool(plan.refusals) is refused
    if refused:
        assert plan.refusals[0].reason == "the table is locked until 2027-01-31 by finance: audit"
        assert plan.statements == ()


@pytest.mark.parametrize(
    ("today", "text"),
    [
        ("2027-01-01", "the lock ends in 30 days"),
        ("2027-01-31", "the lock ends today"),
        ("2027-03-01", "the lock ended on 2027-01-31"),
    ],
)
def test_lint_tells_when_a_lock_ends(today: str, text: str) -> None:
    live = live_table()
    subject = table_subject(POLICY, live, (), "oss", options=LOCKED)
    subject = replace(subject, today=date.fromisoformat(today))
    (found,) = (each for each in lint(subject, live.name, "lint") if each.code == "L024")
    assert text in found.message
