"""One table's part of a plan."""

from __future__ import annotations

import json
from collections.abc import Callable

from tablectl.attributes.policy import Policy
from tablectl.model.plan import ProtocolFact, TablePlan
from tablectl.model.safe_text import cut
from tablectl.model.table import LiveTable
from tablectl.planning.plan_table import plan_table
from tablectl.support.typed_json import json_form

Live = Callable[..., LiveTable]
TablePlanner = Callable[..., TablePlan]


def test_a_table_as_declared_has_no_plan(live: Live) -> None:
    assert plan_table(Policy(), live(), "oss") is None
    assert plan_table(Policy({"isolation": "default", "deletion_vectors": "purged"}), live(), "oss") is None


def test_a_refused_table_keeps_its_changes_and_is_left_out_whole(live: Live, table_plan: TablePlanner) -> None:
    plan = table_plan(live(), isolation="WriteSerializable", clustering=("id",))
    assert [change.id for change in plan.changes] == ["isolation", "clustering"]
    assert [refusal.change for refusal in plan.refusals] == ["isolation"]
    assert plan.statements == ()
    assert plan.protocol_after == plan.basis.protocol
    assert not plan.applies


def test_the_protocol_after_all_statements(live: Live, table_plan: TablePlanner) -> None:
    plan = table_plan(live(), deletion_vectors="enabled", clustering=("id",))
    assert plan.protocol_after == ProtocolFact(
        reader=3,
        writer=7,
        reader_features=("deletionVectors",),
        writer_features=("appendOnly", "clustering", "deletionVectors", "domainMetadata", "invariants"),
    )
    assert [finding.code for finding in plan.findings] == ["P001", "P002", "L017"]
    assert [(each.name, each.reader, each.leaves) for each in plan.features] == [
        ("clustering", False, "never"),
        ("deletionVectors", True, "with history"),
        ("domainMetadata", False, "freely"),
    ]


def test_statements_raise_the_protocol_one_after_the_other(live: Live, table_plan: TablePlanner) -> None:
    # Both in the closed phase: each adds its features to the list, and nothing that a number would imply.
    key = "delta.dataSkippingStatsColumns"
    plan = table_plan(live(), clustering=("id",), properties={"delta.enableChangeDataFeed": "true", key: "id"})
    assert [statement.verb for statement in plan.statements] == ["SET TBLPROPERTIES", "CLUSTER BY"]
    assert set(plan.protocol_after.writer_features) == {
        "appendOnly",
        "changeDataFeed",
        "clustering",
        "domainMetadata",
        "invariants",
    }


LONG = cut("v" * 5_000_000)


def test_a_long_value_stands_in_a_plan_as_its_digest_and_is_not_put_back(live: Live) -> None:
    policy = Policy({"properties": {"owner.team": "web"}})
    planned = plan_table(policy, live(properties={"owner.team": LONG}), "oss")
    assert planned is not None
    assert planned.changes[0].before == LONG
    assert planned.undo == ()
    assert planned.statements[0].undo == ()
    assert planned.statements[0].undo_note == (
        "the loss of the value of owner.team: it has more than 10,000 characters, so no undo is printed"
    )
    assert len(dump_plan_of(planned)) < 10_000


def test_a_long_value_that_delta_cannot_read_is_not_put_back_either(live: Live) -> None:
    stored = live(properties={"delta.enableDeletionVectors": LONG})
    planned = plan_table(Policy({"deletion_vectors": "enabled"}), stored, "oss")
    assert planned is not None
    assert planned.undo == (
        "ALTER TABLE `lake`.`s`.`t`\nUNSET TBLPROPERTIES IF EXISTS ('delta.enableDeletionVectors')",
    )


def test_a_long_value_as_declared_is_not_a_change(live: Live) -> None:
    same = live(properties={"owner.team": LONG})
    assert plan_table(Policy({"properties": {"owner.team": "v" * 5_000_000}}), same, "oss") is None
    assert plan_table(Policy({"properties": {"owner.team": "v" * 4_999_999 + "w"}}), same, "oss") is not None


def dump_plan_of(planned: TablePlan) -> str:
    return json.dumps(json_form(planned))
