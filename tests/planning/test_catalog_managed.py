"""Statements that Delta refuses on catalog-managed tables are refused in the plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tablectl.attributes.policy import Policy
from tablectl.delta.protocol import Protocol
from tablectl.model.file_layout import ClusteringState, FileGroup
from tablectl.model.plan import TablePlan
from tablectl.model.table import CatalogFacts, LiveTable
from tablectl.model.table_options import TableOptions
from tablectl.planning.plan_table import CONDITION, plan_table

READ = frozenset({"catalogManaged", "deletionVectors", "v2Checkpoint", "vacuumProtocolCheck"})
MANAGED = Protocol(3, 7, READ, READ | {"clustering", "domainMetadata", "inCommitTimestamp", "rowTracking"})


def planned(live: LiveTable, dialect: str = "oss", options: TableOptions = TableOptions(), **policy: Any) -> TablePlan:  # noqa: B008
    found = plan_table(Policy(policy), live, dialect, options)
    assert found is not None
    return found


CASES: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"deletion_vectors": "purged"}, {"vectors": 3}, "deletion_vectors"),
    ({"deletion_vectors": "dropped"}, {"vectors": 0}, "deletion_vectors"),
]


@pytest.mark.parametrize(("policy", "facts", "change"), CASES)
def test_what_delta_refuses_is_refused_before_it_is_sent(
    live: Callable[..., LiveTable], policy: dict[str, Any], facts: dict[str, Any], change: str
) -> None:
    table = live(protocol=MANAGED, properties={"delta.enableDeletionVectors": "true"}, **facts)
    plan = planned(table, **policy)
    assert (change, CONDITION) in [(each.change, each.condition) for each in plan.refusals]
    assert plan.statements == ()


def test_a_drop_says_that_it_would_half_succeed(live: Callable[..., LiveTable]) -> None:
    table = live(protocol=MANAGED, properties={"delta.enableDeletionVectors": "true"})
    (refusal,) = planned(table, deletion_vectors="dropped").refusals
    assert "only after it has committed UNSET delta.enableDeletionVectors" in refusal.reason


def test_optimize_is_refused_and_cluster_by_is_not(live: Callable[..., LiveTable]) -> None:
    marks = ClusteringState(parts=(FileGroup(columns=None, files=3, bytes=9),))
    table = live(protocol=MANAGED, clustering=(), marks=marks, optimize="full")
    plan = planned(table, options=TableOptions(optimize="full", rewrite="allowed"), clustering=("id",))
    assert "OPTIMIZE" in plan.refusals[0].reason
    alone = planned(live(protocol=MANAGED, clustering=()), clustering=("id",))
    assert alone.refusals == ()
    assert [each.verb for each in alone.statements] == ["CLUSTER BY"]


def test_properties_can_be_changed(live: Callable[..., LiveTable]) -> None:
    plan = planned(live(protocol=MANAGED), isolation="Serializable", deletion_vectors="enabled")
    assert plan.refusals == ()
    assert plan.statements


@pytest.mark.parametrize(
    ("dialect", "who"), [("oss", "run by tablectl on open source"), ("databricks", "run by dbt-databricks'")]
)
def test_what_ran_on_the_open_source_server_is_verified_for_its_dialect_alone(
    live: Callable[..., LiveTable], dialect: str, who: str
) -> None:
    """``tests/unity/test_apply.py`` runs every form that a plan does not refuse."""
    table = live(protocol=MANAGED, clustering=(), catalog=CatalogFacts(7))
    plan = planned(table, dialect, isolation="Serializable", clustering=("id",))
    assert {each.verb for each in plan.statements} == {"SET TBLPROPERTIES", "CLUSTER BY"}
    assert all(each.evidence.startswith(who) for each in plan.statements)


REQUIRED = {
    "delta.enableDeletionVectors": "true",
    "delta.checkpointPolicy": "v2",
    "delta.enableInCommitTimestamps": "true",
    "delta.checkpoint.writeStatsAsJson": "true",
    "delta.checkpoint.writeStatsAsStruct": "true",
}
FORBIDDEN: list[tuple[str, dict[str, Any]]] = [
    ("deletion_vectors", {"deletion_vectors": "disabled"}),
    ("properties.delta.checkpointPolicy", {"properties": {"delta.checkpointPolicy": "classic"}}),
    ("properties.delta.checkpointPolicy", {"properties": {"delta.checkpointPolicy": None}}),
    ("properties.delta.enableInCommitTimestamps", {"properties": {"delta.enableInCommitTimestamps": "false"}}),
    ("properties.delta.checkpoint.writeStatsAsJson", {"properties": {"delta.checkpoint.writeStatsAsJson": "false"}}),
    ("properties.delta.checkpoint.writeStatsAsStruct", {"properties": {"delta.checkpoint.writeStatsAsStruct": None}}),
]


@pytest.mark.parametrize(("change", "policy"), FORBIDDEN)
def test_a_value_that_the_catalogs_contract_forbids_poisons_no_table(
    live: Callable[..., LiveTable], change: str, policy: dict[str, Any]
) -> None:
    """The server takes it, and then answers 400 to every commit that changes the protocol."""
    table = live(protocol=MANAGED, properties=REQUIRED)
    plan = planned(table, **policy)
    assert [each.change for each in plan.refusals] == [change]
    assert "refuses each later change of the table's protocol" in plan.refusals[0].reason
    assert plan.statements == ()
    assert planned(table, "databricks", **policy).refusals == ()
    other = Protocol(3, 7, READ - {"catalogManaged"}, MANAGED.writer_features - {"catalogManaged"})
    assert planned(live(protocol=other, properties=REQUIRED), **policy).refusals == ()


def test_a_poisoned_table_can_be_repaired(live: Callable[..., LiveTable]) -> None:
    table = live(protocol=MANAGED, properties={**REQUIRED, "delta.enableDeletionVectors": "false"}, vectors=0)
    assert planned(table, deletion_vectors="enabled").refusals == ()
    table = live(protocol=MANAGED, properties={**REQUIRED, "delta.enableInCommitTimestamps": "false"})
    assert planned(table, properties={"delta.enableInCommitTimestamps": "TRUE"}).refusals == ()


def test_no_refusal_recommends_what_another_one_refuses(live: Callable[..., LiveTable]) -> None:
    table = live(protocol=MANAGED, properties=REQUIRED, vectors=0)
    fixes = [each.fix for each in planned(table, deletion_vectors="dropped").refusals]
    assert fixes
    assert not any("deletion_vectors: disabled" in fix for fix in fixes)


def test_databricks_runs_them(live: Callable[..., LiveTable]) -> None:
    table = live(protocol=MANAGED, vectors=3, properties={"delta.enableDeletionVectors": "true"})
    assert CONDITION not in [
        each.condition for each in planned(table, "databricks", deletion_vectors="purged").refusals
    ]


def test_other_tables_are_not_concerned(live: Callable[..., LiveTable]) -> None:
    protocol = Protocol(3, 7, READ - {"catalogManaged"}, MANAGED.writer_features - {"catalogManaged"})
    table = live(protocol=protocol, vectors=3, properties={"delta.enableDeletionVectors": "true"})
    assert planned(table, deletion_vectors="purged").refusals == ()
