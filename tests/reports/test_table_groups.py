"""Equal changes are one group, and the group that matters most comes first."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from time import process_time
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablectl.attributes.policy import Policy
from tablectl.delta import keys
from tablectl.delta.protocol import Client, Protocol
from tablectl.documents.style import Style
from tablectl.model.file_layout import ClusteringState, FileGroup
from tablectl.model.plan import Finding, Plan, ProtocolFact, Rewrite, TableFailure, TablePlan
from tablectl.model.safe_text import natural_key
from tablectl.model.table import LiveTable
from tablectl.model.table_options import TableOptions
from tablectl.planning.plan_table import plan_table
from tablectl.policies.yaml_nodes import SourceFile
from tablectl.reports.document_markdown import LIMIT
from tablectl.reports.report_context import Context
from tablectl.reports.table_groups import Weight, failure_groups, plan_groups
from tests.builders import CLUSTERED, VECTORS
from tests.reports.fleet import fleet, renamed
from tests.reports.rendered import plan_markdown, plan_sarif, plan_text

Golden = Callable[[str, str], None]
Planned = Callable[..., TablePlan]
Live = Callable[..., LiveTable]


def of(*tables: TablePlan) -> Plan:
    return Plan(format=1, tool="0.1.0", dialect="oss", policies="0" * 64, tables=tables)


@pytest.mark.parametrize(("count", "distinct"), [(1, 1), (9, 7), (200, 1), (10_000, 40)])
def test_text_and_comment_of_a_fleet(golden: Golden, table_planned: Planned, count: int, distinct: int) -> None:
    plan = fleet(table_planned, count, distinct)
    assert len(plan_groups(plan)) == distinct
    golden(f"fleet-{count}.txt", plan_text(plan, Style()))
    golden(f"fleet-{count}.md", plan_markdown(plan, Context(plan_file="plans/today.json")))


def test_two_hundred_equal_tables_fit_one_terminal_screen(table_planned: Planned) -> None:
    table = table_planned(
        "lake.sales.model",
        {},
        {"isolation": "Serializable", "deletion_vectors": "enabled", "clustering": ("customer_id",)},
    )
    text = plan_text(of(*(renamed(table, number) for number in range(200))), Style(width=80))
    assert len(text.splitlines()) <= 24


def test_verbose_shows_each_table_in_natural_order(table_planned: Planned) -> None:
    text = plan_text(fleet(table_planned, 12, 1), Style(), verbose=True)
    names = re.findall(r"(?m)^~ (\S+)", text)
    assert names == [f"lake.sales.t{number}" for number in range(1, 13)]
    assert text.count("ALTER TABLE `lake`.`sales`.`t10`") >= 1


def test_a_difference_in_value_impact_or_statement_is_another_group(table_planned: Planned) -> None:
    table = table_planned("lake.sales.model", {"properties": {"a": "1"}}, {"properties": {"a": "2"}})
    one, other = renamed(table, 1), renamed(table, 2)
    assert len(plan_groups(of(one, other))) == 1
    value = replace(other, changes=(replace(other.changes[0], before="x"),))
    impact = replace(other, statements=(replace(other.statements[0], fails="everything fails"),))
    statement = replace(other, statements=(replace(other.statements[0], sql="ALTER TABLE x"),))
    for different in (value, impact, statement):
        assert len(plan_groups(of(one, different))) == 2


def test_sizes_are_added_up(table_planned: Planned) -> None:
    table = table_planned("lake.sales.model", {}, {"properties": {"a": "2"}})

    def rewriting(number: int, size: int | None) -> TablePlan:
        rewrite = Rewrite(vectors=None, everything=True, files_at_most=number, bytes_at_most=size)
        made = renamed(table, number)
        return replace(made, statements=(replace(made.statements[0], rewrite=rewrite),))

    (group,) = plan_groups(of(rewriting(3, 1_000), rewriting(4, 500)))
    assert group.weight is Weight.REWRITE
    assert group.effects[0].text == "rewrites all data of 2 tables: 7 files, 1.5 kB"
    (unknown,) = plan_groups(of(rewriting(3, 1_000), rewriting(4, None)))
    assert unknown.effects[0].text.endswith("7 files, 1.0 kB and what 1 table of unknown size holds")


def cells(comment: str, name: str) -> list[str]:
    """The row of a table in a comment: tables, changes, and the effects after and during the apply."""
    (row,) = (line for line in comment.splitlines() if line.startswith("<tr><td>") and name in line)
    change, effect = re.findall("<td>(.*?)</td>", row)
    after, during = re.split("<i>During the apply</i><br>", effect.removeprefix("<i>After the apply</i><br>"))
    return [*change.split("<br><br>"), after, during]


def test_what_stays_is_apart_from_what_fails_during_the_apply(plan: Plan) -> None:
    _, _, stays, passing = cells(plan_markdown(plan, Context()), "lake.sales.orders")
    assert "cannot be undone in full: clustering can never be dropped" in stays
    assert "readers need protocol 3" in stays
    assert passing == "as said above"
    assert "concurrent writes" not in stays


def test_what_every_changed_table_does_is_said_once_above_the_rows(plan: Plan) -> None:
    alike = "streams with a schemaTrackingLocation or on Databricks stop once and must be started again."
    comment, text = plan_markdown(plan, Context()), " ".join(plan_text(plan, Style()).split())
    assert f"<p>Every table that changes: {alike}</p>" in comment.partition("<table>")[0]
    assert "tables: concurrent writes fail once;" in comment.partition("<table>")[0]
    assert "stop once and must be started again" not in comment.partition("<table>")[2].partition("</table>")[0]
    assert text.startswith(f"Every table that changes: writes that run then fail once; {alike}")
    alone = plan_text(replace(plan, tables=plan.tables[:1]), Style())
    assert "Every table" not in alone
    assert "  during    writes that run then fail once\n" in alone


def test_a_refused_table_is_not_described_as_if_its_change_would_run(plan: Plan) -> None:
    (refused,) = (each for each in plan.tables if each.refusals)
    needs = Finding(code="P002", severity="note", message="writers need protocol 7")
    refused = replace(refused, findings=(needs,), protocol_after=ProtocolFact(reader=3, writer=7))
    said = plan_text(replace(plan, tables=(refused,), failures=()), Style(), verbose=True)
    assert "refused: " in said
    assert "P002" not in said
    assert "protocol" not in said


def test_a_group_says_the_range_of_its_sizes(table_planned: Planned) -> None:
    table = table_planned("lake.sales.model", {}, {"properties": {"a": "2"}})
    sized = [
        replace(renamed(table, number), basis=replace(table.basis, files=number, bytes=1_000 * number))
        for number in (2, 40)
    ]
    names, *_ = cells(plan_markdown(of(*sized), Context()), "lake.sales.t2</code><br>")
    assert names.endswith("<code>lake.sales.t40</code><br>2 to 40 files, 2.0 kB to 40.0 kB")
    unknown = replace(sized[1], basis=replace(sized[1].basis, files=None))
    names, *_ = cells(plan_markdown(of(sized[0], unknown), Context()), "lake.sales.t2</code><br>")
    assert "files" not in names


def test_a_warning_about_the_result_stands_in_the_row(table_planned: Planned) -> None:
    table = table_planned("lake.sales.model", {}, {"retention": {"deleted_files": "2 hours"}})
    finding = Finding(code="L006", severity="warning", message="deleted files are kept 2 hours only")
    _, _, stays, _ = cells(plan_markdown(of(replace(table, findings=(finding,))), Context()), "lake.sales.model")
    assert "L006: deleted files are kept 2 hours only" in stays


def test_tables_that_cannot_be_read_for_one_reason_share_it_without_the_path_of_the_first() -> None:
    gone = [TableFailure(name=f"delta.`/lake/{name}`", message=f"/lake/{name}: no such directory") for name in "ab"]
    (group,) = failure_groups(gone)
    assert group.failure.message == "no such directory"
    assert failure_groups(gone[:1])[0].failure.message == "/lake/a: no such directory"


def test_every_irreversible_table_is_named_though_their_group_is_one_row(table_planned: Planned) -> None:
    table = table_planned("lake.sales.model", {}, {"clustering": ("customer_id",)})
    comment = plan_markdown(of(*(renamed(table, number) for number in range(1, 26))), Context())
    (line,) = (each for each in comment.splitlines() if "25 tables cannot be restored" in each)
    assert [f"<code>lake.sales.t{number}</code>" in line for number in range(1, 26)] == [True] * 25
    many = plan_markdown(of(*(renamed(table, number) for number in range(10_000))), Context())
    assert re.search(r"<code>lake.sales.t299</code> and 9,\d{3} more|and 9,\d{3} more", many)
    assert len(many) <= LIMIT


def test_a_consent_is_shown_with_its_line_in_the_policy(table_planned: Planned) -> None:
    old = Client("delta-rs", (0, 15, 0))
    table = table_planned("lake.sales.model", {"clients": (old,)}, {"clustering": ("customer_id",)})
    consented = replace(table, basis=replace(table.basis, options=TableOptions(allow=("lockout",))), refusals=())
    finding = Finding(code="P004", severity="warning", message="delta-rs 0.15.0 wrote it", about="clustering")
    consented = replace(consented, findings=(finding,))
    sources = {"lake.sales.model": {"allow": SourceFile("policies/sales.yaml", 9, 5)}}
    context = Context(sources=sources, blob="https://github.com/acme/lake/blob/1f")
    _, change, _, _ = cells(plan_markdown(of(consented), context), "lake.sales.model")
    assert "consent <code>allow: [lockout]</code><br>" in change
    assert '<a href="https://github.com/acme/lake/blob/1f/policies/sales.yaml#L9">' in change
    without = replace(consented, basis=replace(consented.basis, options=TableOptions()))
    assert len(plan_groups(of(consented, renamed(without, 2)))) == 2


MARKS = ClusteringState(parts=(FileGroup(columns=("order_id",), files=9, bytes=9_000),))
FULL_REWRITES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "partitioning": ({"partition_columns": ("order_date",)}, {"partitioning": ("customer_id",)}, {}),
    "column_mapping": ({"properties": {keys.COLUMN_MAPPING: "name"}}, {"column_mapping": "none"}, {}),
    "uniform": ({}, {"uniform": "iceberg_v2"}, {}),
    "clustering.data": (
        {"protocol": CLUSTERED, "clustering": (("order_id",),), "marks": MARKS, "optimize": "full"},
        {"clustering": ("customer_id",)},
        {"optimize": "full"},
    ),
}


@pytest.mark.parametrize("change", FULL_REWRITES)
def test_a_full_rewrite_runs_only_with_the_consent_that_the_plan_names(change: str, live: Live) -> None:
    """A reviewer reads "consent rewrite: refused" as "this will not happen"."""
    facts, policy, options = FULL_REWRITES[change]
    table = live("lake.sales.model", **facts)
    without = plan_table(Policy(policy), table, "oss", TableOptions(**options))
    consented = plan_table(Policy(policy), table, "oss", TableOptions(**options, rewrite="allowed"))
    assert without is not None
    assert consented is not None
    assert [(each.change, each.reason, each.fix) for each in without.refusals] == [
        (
            change,
            "it rewrites all data of the table",
            "consent with `rewrite: allowed`, and limit it with `max_bytes`",
        )
    ]
    assert (without.statements, consented.refusals) == ((), ())
    (group,) = plan_groups(of(consented))
    assert (group.weight, [each.text for each in group.consents]) == (Weight.REWRITE, ["rewrite: allowed"])
    assert any(re.match("rewrites all data: .*, because ", each.text) for each in group.effects)


def test_each_setting_has_its_own_line(table_planned: Planned) -> None:
    table = table_planned("lake.sales.model", {}, {"isolation": "Serializable", "properties": {"a": "2"}})
    sources = {
        "lake.sales.model": {
            "isolation": SourceFile("p.yaml", 4, 5),
            "properties.a": SourceFile("p.yaml", 7, 5),
        }
    }
    context = Context(sources=sources, blob="https://github.com/acme/lake/blob/1f")
    _, change, _, _ = cells(plan_markdown(of(table), context), "lake.sales.model")
    links = re.findall(r"<code>([^<]*)</code><br><a href=\"\S+#L(\d+)\"", change)
    assert links == [("isolation: default → Serializable", "4"), ("properties.a: not set → 2", "7")]


def test_a_comment_of_any_number_of_tables_has_room_for_what_the_job_adds(table_planned: Planned) -> None:
    for count, distinct in ((1, 1), (1_000, 1_000), (10_000, 40)):
        text = plan_markdown(fleet(table_planned, count, distinct), Context())
        assert len(text.encode()) <= LIMIT - 3_000


def test_groups_are_ordered_by_weight(plan: Plan) -> None:
    weights = [group.weight for group in plan_groups(plan)]
    assert weights == sorted(weights)
    assert weights[0] is Weight.REFUSED


def test_every_refusal_comes_with_its_fix(plan: Plan) -> None:
    refused = plan_groups(plan)[0]
    said = [each.text for each in refused.effects]
    for refusal in refused.first.refusals:
        assert any(refusal.reason in text for text in said)
        assert f"fix: {refusal.fix}" in said


def test_tables_that_cannot_be_read_for_one_reason_are_one_group() -> None:
    failures = [TableFailure(name=f"lake.s.t{n}", message=f"/lake/t{n}/_delta_log: permission denied") for n in (10, 9)]
    other = TableFailure(name="lake.s.x", message="/lake/x: not a Delta table")
    found = failure_groups([*failures, other])
    assert [group.names for group in found] == [("lake.s.t9", "lake.s.t10"), ("lake.s.x",)]


def test_ten_thousand_tables_take_seconds(table_planned: Planned) -> None:
    plan = fleet(table_planned, 10_000, 40)
    started = process_time()
    plan_groups(plan)
    assert process_time() - started < 20


@given(st.lists(st.integers(0, 10**30), min_size=2, max_size=6))
def test_numbers_in_names_are_ordered_by_their_value(numbers: list[int]) -> None:
    names = [f"t{number}x" for number in numbers]
    assert sorted(names, key=natural_key) == [f"t{number}x" for number in sorted(numbers)]


@given(st.text(max_size=30), st.text(max_size=30))
def test_any_two_names_can_be_compared(one: str, other: str) -> None:
    assert (natural_key(one) < natural_key(other)) in {True, False}
    assert len(natural_key("9" * 1_000_000)) == 3


def test_a_rollback_that_leaves_the_protocol_upgraded_restores_nothing_for_clients(table_planned: Planned) -> None:
    """The undo of row tracking unsets a property. Its features stay, and with them the clients that lack them."""
    (group,) = plan_groups(of(table_planned("lake.sales.model", {}, {"row_tracking": "enabled"})))
    said = [each.text for each in group.effects if each.lasting]
    assert "a rollback leaves protocol features that only DROP FEATURE removes: domainMetadata, rowTracking" in said
    assert "can be undone" not in said
    comment = plan_markdown(of(group.first), Context())
    assert "<b>1 table cannot be restored in full by a rollback</b>: <code>lake.sales.model</code>" in comment


@pytest.mark.parametrize("severity", ["warning", "ignored"])
def test_no_report_says_that_readers_need_nothing_new_where_reader_2_brings_the_column_mapping(
    table_planned: Planned, severity: Literal["warning", "ignored"]
) -> None:
    vectors = {"protocol": VECTORS, "properties": {keys.DELETION_VECTORS: "true"}}
    table = table_planned("lake.sales.model", vectors, {"deletion_vectors": "dropped", "column_mapping": "name"})
    assert table.protocol_after.reader == 2
    codes = {each.code: each for each in table.findings}
    assert codes["P001"].message == "readers need protocol 2 with columnMapping"
    found = tuple(replace(each, severity=severity) if each.code == "P001" else each for each in table.findings)
    plan = of(replace(table, findings=found))
    for text in (plan_text(plan, Style(width=400)), plan_markdown(plan, Context())):
        assert "the log does not say who reads the table" in text
        assert "readers need nothing new" not in text
        assert ("readers need protocol 2 with columnMapping" in text) is (severity == "warning")
    rules = [each["ruleId"] for each in json.loads(plan_sarif(plan, Context()))["runs"][0]["results"]]
    assert "P001" in rules  # SARIF names an ignored finding and its reason


def test_a_plan_that_only_drops_a_reader_feature_needs_nothing_new_of_readers(table_planned: Planned) -> None:
    vectors = {"protocol": VECTORS, "properties": {keys.DELETION_VECTORS: "true"}}
    (group,) = plan_groups(of(table_planned("lake.sales.model", vectors, {"deletion_vectors": "dropped"})))
    (said,) = [each.text for each in group.effects if "the writers in the log" in each.text]
    assert said.endswith("; readers need nothing new")


def test_a_rollback_that_leaves_what_a_statement_implies_does_not_restore_the_table(table_planned: Planned) -> None:
    """The features are there from an earlier time, so the protocol stays as it is."""
    features = frozenset({"columnMapping", "icebergCompatV1", "deletionVectors"})
    facts = {
        "protocol": Protocol(1, 2).raised(features),
        "properties": {keys.COLUMN_MAPPING: "none", keys.DELETION_VECTORS: "true"},
    }
    table = table_planned("lake.sales.model", facts, {"uniform": "iceberg_v1"})
    assert table.features == ()
    (group,) = plan_groups(of(table))
    said = [each.text for each in group.effects if each.lasting]
    assert "a rollback leaves `column_mapping: name`, `deletion_vectors: disabled`" in said
    both = table_planned("lake.sales.model", facts, {"uniform": "iceberg_v1", "deletion_vectors": "disabled"})
    (group,) = plan_groups(of(both))
    assert "a rollback leaves `column_mapping: name`" in [each.text for each in group.effects]


def test_a_full_rewrite_says_why_it_is_one(table_planned: Planned) -> None:
    facts = {"partition_columns": ("order_date",)}
    table = table_planned("lake.sales.model", facts, {"partitioning": ("customer_id",)})
    write = Rewrite(vectors=None, everything=True, files_at_most=3, bytes_at_most=1_000)
    property_set = table_planned("lake.sales.other", {}, {"properties": {"a": "2"}}).statements[0]
    rewritten = replace(table, refusals=(), statements=(replace(property_set, verb="OVERWRITE", rewrite=write),))
    (group,) = plan_groups(of(rewritten))
    assert group.effects[0].text == (
        "rewrites all data: 3 files, 1.0 kB, because the partition columns of existing data change in no other way"
    )


def test_the_last_line_of_an_irreversible_plan_does_not_call_it_safe(table_planned: Planned) -> None:
    table = table_planned("lake.sales.model", {}, {"clustering": ("customer_id",)})
    text = plan_text(of(table), Style())
    assert text.endswith("Plan: 1 table to change (1 irreversible), 1 statement.\n")
