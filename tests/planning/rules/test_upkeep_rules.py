"""The rules about upkeep, each on a policy that it is about, and on one that has nothing to find."""

from __future__ import annotations

from dataclasses import replace

from tablectl.attributes.policy import Policy
from tablectl.delta.names import parse_table
from tablectl.delta.protocol import Protocol
from tablectl.lint_rules.rule import LintedState, table_subject
from tablectl.model.catalog_answers import CatalogEntry
from tablectl.model.table import LiveTable
from tablectl.model.upkeep import OptimizePolicy, UpkeepPolicy, VacuumPolicy
from tablectl.planning.lint import lint
from tests.builders import live_table

NAME = parse_table("lake.sales.orders")
MONTHLY = UpkeepPolicy(optimize=OptimizePolicy(every="28 days"), vacuum=VacuumPolicy(every="28 days"))


def found(upkeep: UpkeepPolicy | None, live: LiveTable | None = None, dialect: str = "oss") -> list[tuple[str, str]]:
    """Codes and messages on a live table."""
    state = table_subject(Policy(), live or live_table(), (), dialect)
    return [(each.code, each.message) for each in lint(replace(state, upkeep=upkeep), NAME, "lint")]


def of_policy(upkeep: UpkeepPolicy, **policy: object) -> list[str]:
    """Codes on a policy alone."""
    state = LintedState.of_policy(Policy(policy), "oss")
    return [each.code for each in lint(replace(state, upkeep=upkeep), NAME, "validate") if each.code >= "L030"]


def test_a_policy_alone_is_compared_with_what_it_declares() -> None:
    assert found(MONTHLY) == []
    assert found(None) == []
    assert of_policy(MONTHLY) == []
    assert of_policy(MONTHLY, retention={"deleted_files": "interval 1 hour"}) == ["L032"]


def test_vacuum_on_a_table_that_keeps_files_for_hours() -> None:
    short = live_table(properties={"delta.deletedFileRetentionDuration": "interval 1 hour"})
    assert ("L032", "vacuum is declared, and deleted files are kept 1 hour") in found(MONTHLY, short)
    assert "L032" not in dict(found(UpkeepPolicy(optimize=OptimizePolicy(every="7 days")), short))


def test_upkeep_of_a_table_that_its_catalog_maintains() -> None:
    managed = live_table(protocol=Protocol(3, 7, frozenset({"catalogManaged"}), frozenset({"catalogManaged"})))
    assert [code for code, _ in found(MONTHLY, managed)] == ["L030"]
    assert [code for code, _ in found(None, managed)] == []
    optimized = replace(live_table(), entry=CatalogEntry(optimized=True))
    why = "upkeep is declared, and predictive optimization of Databricks maintains it"
    assert ("L030", why) in found(MONTHLY, optimized, "databricks")
