"""Settings of Databricks' catalog on the fake lake: no commit shows them, and the catalog confirms them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tablectl.attributes.policy import Policy
from tablectl.delta.databricks_runtimes import parse_runtime
from tablectl.model.catalog_answers import CatalogEntry
from tablectl.model.run_report import RunOutcome
from tablectl.model.table import CatalogFacts
from tablectl.model.table_options import TableOptions
from tablectl.planning.plan_table import plan_table
from tests.applying.world import World

MANAGED = CatalogEntry(managed=True, optimization="inherit", optimized=True)
EXTERNAL = CatalogEntry(managed=False, optimization="inherit")


def world(runtime: str = "", **facts: Any) -> World:
    made = World(dialect="databricks", runtime=runtime)
    made.lake.add("lake.s.orders", "/lake/orders", **facts)
    return made


def test_a_setting_of_the_catalog_is_applied_without_a_commit() -> None:
    made = world(entry=MANAGED)
    run = made.run(made.plan(predictive_optimization="disabled"))
    assert (run.outcome, run.changed) == (RunOutcome.APPLIED, ("predictive_optimization",))
    assert made.table.live.entry == CatalogEntry(True, "disabled", optimized=True)
    assert made.table.stamped == []


def test_a_setting_that_another_program_changed_stops_the_run() -> None:
    made = world(entry=MANAGED)
    plan = made.plan(predictive_optimization="disabled")
    made.table.states[-1] = replace(made.table.live, entry=CatalogEntry(True, "enabled", optimized=True))
    assert made.run(plan).outcome is RunOutcome.STALE
    assert made.sent == []


def test_a_table_that_moved_is_confirmed_by_its_catalog() -> None:
    made = world(entry=EXTERNAL)
    run = made.run(made.plan(managed="true"))
    assert run.outcome is RunOutcome.APPLIED
    assert run.message.startswith("SET MANAGED: the catalog confirms it; the table is at another location now")
    assert [sql.split("\n")[1] for sql in made.sent] == ["SET MANAGED"]


def test_a_move_that_the_catalog_does_not_confirm_is_unknown() -> None:
    made = world(entry=EXTERNAL)
    plan = made.plan(managed="true")

    def undone(table: Any, _sql: str) -> None:
        table.states[-1] = replace(table.live, entry=EXTERNAL)

    made.after = undone
    run = made.run(plan)
    assert run.outcome is RunOutcome.UNKNOWN
    assert "the catalog does not confirm it" in run.message


def test_a_plan_names_who_fails_by_the_documentation() -> None:
    made = world(entry=EXTERNAL)
    (statement,) = made.plan(managed="true").statements
    assert statement.fails.startswith("jobs that use the path (a newer edition of the page: they are redirected)")
    assert statement.evidence == "documented only"


def test_everything_else_is_applied_before_the_table_moves() -> None:
    made = world(entry=EXTERNAL)
    assert made.run(made.plan(managed="true", isolation="Serializable")).outcome is RunOutcome.APPLIED
    assert ["TBLPROPERTIES" in made.sent[0], "SET MANAGED" in made.sent[1]] == [True, True]


def test_partitions_become_clustering_columns_by_one_statement() -> None:
    made = world("18.1", partition_columns=("day",))
    plan = made.plan(clustering=("day", "id"), partitioning="none")
    run = made.run(plan)
    assert (run.outcome, run.changed) == (RunOutcome.APPLIED, ("clustering", "partitioning"))
    assert made.table.live.partition_columns == ()
    assert len(made.sent) == 1
    assert made.run(plan, "bea").outcome is RunOutcome.ALREADY


def test_automatic_clustering_is_applied_and_stays_as_the_columns_change() -> None:
    made = world("15.4", entry=MANAGED)
    plan = made.plan(clustering="auto")
    assert made.run(plan).outcome is RunOutcome.APPLIED
    made.table.commit("CLUSTER BY", "databricks", clustering=(("id",),))
    assert made.run(plan, "bea").outcome is RunOutcome.ALREADY


def rewritten() -> World:
    """A table without row filters, before the rewrite that a runtime without the statement needs."""
    made = world("17.3", partition_columns=("day",), entry=CatalogEntry(managed=True, filtered=False))
    made.options = TableOptions(rewrite="allowed", max_bytes=5000, allow=("masked_rewrite",))
    return made


def test_an_older_runtime_rewrites_the_table_by_name_and_clusters_it() -> None:
    made = rewritten()
    plan = made.plan(clustering=("day", "id"), partitioning="none")
    assert plan.statements[0].evidence == "documented only"
    run = made.run(plan)
    assert (run.outcome, run.changed) == (RunOutcome.APPLIED, ("clustering", "partitioning")), run.message
    assert made.table.live.partition_columns == ()
    assert [sql.split()[0] for sql in made.sent] == ["OVERWRITE", "ALTER"]
    assert made.run(plan, "bea").outcome is RunOutcome.ALREADY


def test_a_filter_that_came_after_the_plan_stops_the_rewrite() -> None:
    made = rewritten()
    plan = made.plan(partitioning="none")
    made.table.states[-1] = replace(made.table.live, entry=CatalogEntry(managed=True, filtered=True))
    run = made.run(plan)
    assert (run.outcome, made.sent) == (RunOutcome.REFUSED, [])
    assert "row filters or column masks" in run.message


def managed(version: int) -> dict[str, Any]:
    """What the catalog says after a change of metadata."""
    return {"catalog": CatalogFacts(version)}


def test_new_data_does_not_make_the_plan_of_a_catalog_managed_table_stale() -> None:
    made = World()
    made.lake.add("lake.s.orders", "/lake/orders", **managed(0))
    plan = made.plan(isolation="Serializable")
    made.table.commit("WRITE", "etl")
    assert made.run(plan).outcome is RunOutcome.APPLIED


def test_another_change_of_metadata_makes_it_stale_and_is_named() -> None:
    made = World()
    made.lake.add("lake.s.orders", "/lake/orders", **managed(0))
    plan = made.plan(isolation="Serializable")
    made.table.commit("ADD COLUMNS", "ben", **managed(1))
    run = made.run(plan)
    assert run.outcome is RunOutcome.STALE
    assert "its catalog names version 1, ADD COLUMNS by ben, and the plan saw 0" in run.message
    assert made.sent == []


def test_the_commits_of_the_plan_itself_do_not_make_it_stale() -> None:
    made = World()
    made.lake.add("lake.s.orders", "/lake/orders", **managed(0))
    plan = made.plan(isolation="Serializable", clustering=("id",))

    def follows(table: Any, _sql: str) -> None:
        table.states[-1] = replace(table.live, **managed(table.live.version))

    made.after = follows
    assert made.run(plan).outcome is RunOutcome.APPLIED
    assert len(made.sent) == 2


def test_a_table_with_iceberg_reads_moves_only_with_consent_to_lose_their_history() -> None:
    made = world("17.2", entry=EXTERNAL, properties={"delta.universalFormat.enabledFormats": "iceberg"})
    refused = plan_table(Policy({"managed": "true"}), made.live(), "databricks", runtime=parse_runtime("17.2"))
    assert refused is not None
    (refusal,) = refused.refusals
    assert "gives up the history of Iceberg reads" in refusal.reason
    made.options = TableOptions(truncate_history=True)
    (statement,) = made.plan(managed="true").statements
    assert statement.sql.endswith("SET MANAGED TRUNCATE UNIFORM HISTORY")
    assert statement.undo_note.startswith("the history of Iceberg reads")
