"""A table's matrix as it is, and as its policy would make it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tablectl.attributes.policy import Policy
from tablectl.conflicts.transactions import Level
from tablectl.delta.protocol import Client
from tablectl.insight.conflict_context import Assumption
from tablectl.insight.conflict_report import ConflictReport, conflict_report
from tablectl.insight.matrix import CellVerdict
from tablectl.model.table_options import TableOptions
from tests.builders import live_table

OLD, NEW = Client("delta-spark", (3, 2, 0)), Client("delta-spark", (4, 4, 0))
DATABRICKS = Client("databricks", (14, 3))


@pytest.fixture
def look() -> Callable[..., ConflictReport]:
    def made(policy: Policy | None, dialect: str = "oss", **facts: Any) -> ConflictReport:
        return conflict_report(live_table(**facts), policy, dialect)

    return made


def test_clients_come_from_the_history_and_those_with_equal_outcomes_share_a_view(
    look: Callable[..., ConflictReport],
) -> None:
    found = look(None, clients=(OLD, NEW, Client("delta-spark", (4, 3, 1))))
    assert [view.clients for view in found.views] == [(OLD,), (Client("delta-spark", (4, 3, 1)), NEW)]
    assert not found.declared


def test_a_history_without_clients_counts_as_the_strictest_client(look: Callable[..., ConflictReport]) -> None:
    (view,) = look(None, clients=()).views
    assert view.clients == (Client("unknown"),)
    assert view.live.cell("insert", "vectors-on").verdict is not CellVerdict.COMMITS


def test_the_dialect_brings_databricks(look: Callable[..., ConflictReport]) -> None:
    found = look(None, "databricks")
    assert found.views[0].clients == (Client("databricks"),)
    assert found.views[0].live.setting.level is Level.WRITE_SERIALIZABLE


def test_clients_that_are_named_replace_those_of_the_history() -> None:
    found = conflict_report(live_table(), None, "oss", Assumption(((Client("databricks", (14, 2)), True),)))
    (view,) = found.views
    assert view.live.setting.photon is True


def test_a_policy_is_followed_to_its_end(look: Callable[..., ConflictReport]) -> None:
    found = look(Policy({"deletion_vectors": "enabled", "clustering": ("day",), "isolation": "Serializable"}))
    (view,) = found.views
    assert view.planned is not None
    after = view.planned.setting
    assert (after.vectors, after.clustered, after.stored_level) == (True, True, Level.SERIALIZABLE)
    assert view.planned.cell("cluster", "set-same").verdict is CellVerdict.COMMITS


def test_a_table_that_is_as_declared_has_no_second_matrix(look: Callable[..., ConflictReport]) -> None:
    found = look(Policy({"deletion_vectors": "disabled"}))
    assert (found.declared, found.changes, found.views[0].planned) == (True, (), None)


def test_what_apply_refuses_is_shown_all_the_same(look: Callable[..., ConflictReport]) -> None:
    found = look(Policy({"partitioning": ("day",)}))
    assert found.refused == ("partitioning",)
    assert found.views[0].planned is not None
    assert found.views[0].planned.cell("update", "update").verdict is CellVerdict.DEPENDS


def test_a_rewrite_with_consent_is_not_refused() -> None:
    found = conflict_report(
        live_table(), Policy({"partitioning": ("day",)}), "oss", options=TableOptions(rewrite="allowed")
    )
    assert (found.refused, [view.planned and view.planned.setting.partitioned for view in found.views]) == ((), [True])


def test_clustering_takes_the_place_of_partitions(look: Callable[..., ConflictReport]) -> None:
    (view,) = look(Policy({"clustering": ("id",), "partitioning": "none"}), partition_columns=("day",)).views
    assert view.planned is not None
    assert (view.planned.setting.partitioned, view.planned.setting.clustered) == (False, True)
