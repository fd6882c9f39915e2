"""Statements that the engine's Databricks Runtime is too old for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tablectl.attributes.policy import Policy
from tablectl.delta.databricks_runtimes import CAPABILITIES, can, capability, parse_runtime
from tablectl.model.plan import TablePlan
from tablectl.model.table import LiveTable
from tablectl.model.table_options import TableOptions
from tablectl.planning.plan_table import plan_table
from tests.builders import VECTORS


def planned(live: LiveTable, runtime: str, truncate: bool = False, **policy: Any) -> TablePlan:
    options = TableOptions(truncate_history=truncate)
    found = plan_table(Policy(policy), live, "databricks", options, runtime=parse_runtime(runtime))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("runtime", "policy", "refused"),
    [
        ("12.2", {"clustering": ("id",)}, ["clustering"]),
        ("13.3", {"clustering": ("id",)}, []),
        ("serverless", {"clustering": ("id",)}, []),
        ("11.3", {"deletion_vectors": "enabled"}, ["deletion_vectors"]),
        ("12.2", {"deletion_vectors": "enabled"}, []),
        ("13.3", {"row_tracking": "enabled", "isolation": "Serializable"}, ["row_tracking"]),
        ("10.4", {"isolation": "WriteSerializable"}, []),
        ("9.1", {"properties": {"delta.enableInCommitTimestamps": "true"}}, []),
    ],
)
def test_a_plan_fits_its_runtime(
    live: Callable[..., LiveTable], runtime: str, policy: dict[str, Any], refused: list[str]
) -> None:
    plan = planned(live(), runtime, **policy)
    assert [each.change for each in plan.refusals] == refused
    assert bool(plan.statements) is not bool(refused)


def test_a_drop_without_loss_of_history_needs_a_newer_runtime(live: Callable[..., LiveTable]) -> None:
    table = live(protocol=VECTORS, properties={"delta.enableDeletionVectors": "true"})
    (refusal,) = planned(table, "15.4", deletion_vectors="dropped").refusals
    assert "DROP FEATURE f needs 16.3 (documented only, seen on 2026-11-22: https://" in refusal.reason
    assert planned(table, "16.4", deletion_vectors="dropped").refusals == ()
    assert planned(table, "15.4", truncate=True, deletion_vectors="dropped").refusals == ()


def test_without_a_runtime_nothing_is_refused(live: Callable[..., LiveTable]) -> None:
    plan = plan_table(Policy({"clustering": ("id",)}), live(), "databricks")
    assert plan is not None
    assert (plan.refusals, bool(plan.statements)) == ((), True)


def test_no_statement_is_safe_for_writers_on_databricks(live: Callable[..., LiveTable]) -> None:
    """A change of metadata makes every concurrent write fail there (D15)."""
    everything: dict[str, Any] = {
        "isolation": "WriteSerializable",
        "deletion_vectors": "enabled",
        "clustering": ("id",),
        "row_tracking": "enabled",
        "properties": {"owner.team": "web", "delta.logRetentionDuration": "interval 9 days"},
    }
    statements = planned(live(), "serverless", **everything).statements
    assert statements
    assert "free" not in {each.phase for each in statements}


def test_unknown_is_said_and_never_guessed() -> None:
    unknown = capability("in_commit_timestamps", "enable")
    assert can(parse_runtime("99.9"), unknown) is None
    assert can(parse_runtime("serverless"), unknown) is None


def test_each_capability_has_a_source_and_a_name_of_its_own() -> None:
    assert len({(each.feature, each.action) for each in CAPABILITIES}) == len(CAPABILITIES)
    for each in CAPABILITIES:
        assert "https://" in each.source
        assert each.date
        assert each.form


@pytest.mark.parametrize("text", ["", "15", "15.4 LTS", "15.4.1", "0.1", "-1.0", "serverless2", "15,4", "999.1"])
def test_a_runtime_is_a_version_or_serverless(text: str) -> None:
    with pytest.raises(ValueError, match="Databricks Runtime"):
        parse_runtime(text)


def test_later_runtimes_can_do_what_earlier_ones_can() -> None:
    order = [parse_runtime(text) for text in ("10.4", "12.2", "14.3", "15.4", "16.4", "17.3", "18.1", "serverless")]
    for each in CAPABILITIES:
        answers = [can(runtime, each) for runtime in order]
        assert answers == sorted(answers, key=bool) or answers == [None] * len(order)
