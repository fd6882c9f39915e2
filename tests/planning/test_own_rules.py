"""Lint rules of your own: whatever they do, they cost no plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from tablectl.attributes.policy import Policy
from tablectl.delta.names import parse_table
from tablectl.lint_rules import LintSetting, Severities
from tablectl.model.table import LiveTable
from tablectl.planning.lint import MOST_FINDINGS, own_findings, with_own_rules
from tablectl.planning.plan_table import plan_table
from tablectl.policies.declared_tables import TableSpec
from tablectl.policies.own_rules import OwnRule, TableToLint
from tablectl.policies.yaml_nodes import SourceFile

Live = Callable[..., LiveTable]

SPEC = TableSpec(
    parse_table("lake.s.t"),
    Policy({"isolation": "Serializable"}),
    None,
    ("gold",),
    {},
    SourceFile("f", 1, 1),
    owner="ann",
)


def found(live: LiveTable, check: Any) -> list[tuple[str, str]]:
    return list(own_findings([OwnRule("ACME001", "acme", check)], SPEC, live))


def test_a_rule_sees_the_table_and_its_policy(live: Live) -> None:
    seen: list[TableToLint] = []
    found(live(properties={"a": "b"}), seen.append)
    (table,) = seen
    assert (table.owner, table.tags, table.declared["isolation"]) == ("ann", ("gold",), "Serializable")
    assert table.properties["a"] == "b"
    with pytest.raises(TypeError):
        table.properties["a"] = "c"  # type: ignore[index]


def _raises(_table: TableToLint) -> Iterator[str]:
    yield "first"
    raise LookupError("no such\nthing")


def _exits(_table: TableToLint) -> Iterable[str]:
    raise SystemExit(3)


def _numbers(_table: TableToLint) -> Iterable[Any]:
    return [1]


def _endless(_table: TableToLint) -> Iterator[str]:
    while True:
        yield "again"


@pytest.mark.parametrize(
    ("check", "code", "message"),
    [
        (_raises, "R001", "the rule ACME001 of acme failed: LookupError: no such thing"),
        (_exits, "R001", "the rule ACME001 of acme failed: SystemExit: 3"),
        (_numbers, "R001", "the rule ACME001 of acme returned int instead of text"),
        (lambda _table: 5, "R001", "the rule ACME001 of acme failed: TypeError: 'int' object is not iterable"),
        (None, "R001", "the rule ACME001 of acme cannot be loaded:"),
        (lambda _table: "one text", "ACME001", "one text"),
    ],
)
def test_a_rule_that_fails_is_a_finding_that_names_it(live: Live, check: Any, code: str, message: str) -> None:
    assert found(live(), check) == [(code, message)]


def test_a_rule_that_finds_nothing_finds_nothing(live: Live) -> None:
    assert found(live(), lambda _table: None) == []
    assert found(live(), lambda _table: ()) == []


def test_endless_findings_and_long_ones_are_cut(live: Live) -> None:
    assert len(found(live(), _endless)) == MOST_FINDINGS + 1
    ((_, message),) = found(live(), lambda _table: ["x" * 10_000 + "\x1b[31m"])
    assert len(message) == 500


def plan_with(live: LiveTable, check: Any, **settings: LintSetting) -> Any:
    severities = with_own_rules(Severities(settings), [OwnRule("ACME001", "acme", check)], SPEC)
    return plan_table(SPEC.policy, live, "oss", severities=severities)


def test_a_finding_is_a_warning_unless_the_configuration_says_otherwise(live: Live) -> None:
    plan = plan_with(live(), lambda _table: ["bad"])
    assert [(each.code, each.severity) for each in plan.findings if each.code == "ACME001"] == [("ACME001", "warning")]
    assert plan.statements
    refused = plan_with(live(), lambda _table: ["bad"], ACME001=LintSetting("error"))
    assert [(each.reason, each.condition) for each in refused.refusals] == [("bad", "ACME001")]


def test_a_rule_that_fails_costs_no_plan(live: Live) -> None:
    plan = plan_with(live(), _raises)
    assert plan.statements
    assert any(each.code == "R001" for each in plan.findings)
