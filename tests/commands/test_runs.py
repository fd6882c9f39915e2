"""``runs`` lists earlier applies from the logs, and ``undo`` leads back to the values from before one of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.commands.conftest import Cli, FakeSpark, Repository
from tests.commands.log_lake import Logged, append, count_rows, set_property

BEFORE = "{isolation: default, properties: {owner.team: web, note: null}, clustering: none}"
AFTER = "{isolation: Serializable, properties: {owner.team: payments, note: new}, clustering: [kind]}"


@pytest.fixture
def orders(repo: Repository, cli: Cli, fake_spark: FakeSpark) -> Path:
    """A table that one apply led from ``BEFORE`` to ``AFTER``."""
    table = repo.table("orders", properties={"owner.team": "web"})
    repo.policies({"orders": AFTER})
    assert cli("apply", "--yes").code == 0
    return table


def run_of(table: Path) -> str:
    """The id of the newest run on a table."""
    return Logged(table).stamps[-1]["run"]


def test_runs_lists_each_apply_with_its_tables_and_commits(repo: Repository, orders: Path, cli: Cli) -> None:
    set_property(orders, "owner.team", "web")
    assert cli("apply", "--yes").code == 0
    (found,) = {run_of(orders)}
    ran = cli("runs")
    assert ran.code == 0
    assert f"{found}  2023-11-14" in ran.out
    assert "Runs: 2 runs on 1 table." in ran.out
    runs = json.loads(cli("runs", "--format", "json").out)["runs"]
    assert [len(each["tables"][0]["commits"]) for each in runs] == [1, len(Logged(orders).stamps) - 1]
    assert runs[0]["stamp"]["run"] == found


def test_runs_says_so_if_no_commit_was_made_by_an_apply(repo: Repository, cli: Cli) -> None:
    repo.table("orders")
    repo.policies({"orders": "{isolation: default}"})
    assert cli("runs").out == "No runs: no commit of these tables was made by an apply.\n"


def test_runs_reports_a_table_that_cannot_be_read_and_lists_the_others(
    repo: Repository, orders: Path, cli: Cli
) -> None:
    repo.policies({"orders": AFTER, "gone": "{isolation: default}"})
    ran = cli("runs")
    assert ran.code == 1
    assert "no such directory" in ran.flat
    assert "1 run on 1 table; 1 not readable" in ran.out


def test_undo_alone_shows_the_change_and_writes_nothing(repo: Repository, orders: Path, cli: Cli) -> None:
    policy = (repo.root / "policies" / "lake.yaml").read_text()
    ran = cli("undo", run_of(orders)[:6])
    assert ran.code == 0
    said = ran.flat
    assert "isolation Serializable → default" in said
    assert "properties.note new → not set" in said
    assert "protocol features: clustering (no statement drops it), domainMetadata (`features" in said
    assert (repo.root / "policies" / "lake.yaml").read_text() == policy


def test_an_undo_that_is_applied_restores_every_value(repo: Repository, orders: Path, cli: Cli) -> None:
    run = run_of(orders)
    ran = cli("undo", run, "--write", "--yes", "--out", "undo.json")
    assert ran.code == 0, ran.err
    assert cli("apply", "undo.json", "--yes").code == 0
    assert Logged(orders).properties == {"owner.team": "web"}
    assert json.loads(Logged(orders).last("domainMetadata")["configuration"])["clusteringColumns"] == []
    assert cli("plan").out.startswith("No changes")
    again = cli("undo", run)
    assert "already so" in again.out
    assert again.code == 0


def test_a_feature_that_a_run_added_is_dropped_again_where_delta_can(
    repo: Repository, cli: Cli, fake_spark: FakeSpark
) -> None:
    table = repo.table("orders")
    count_rows(table)
    repo.policies({"orders": "{features: {v2Checkpoint: supported, timestampNtz: supported}, row_tracking: enabled}"})
    assert cli("apply", "--yes").code == 0
    ran = cli("undo", run_of(table), "--write", "--yes")
    assert ran.code == 0, ran.err
    said = ran.flat
    assert "features.v2Checkpoint supported → absent" in said
    assert "v2Checkpoint: dropped" in (repo.root / "policies" / "lake.yaml").read_text()
    assert "DROP FEATURE `v2Checkpoint`" in said
    assert "checkpointProtection can be dropped only by truncating the history" in said
    stays = "rowTracking (`row_tracking: dropped` removes it), timestampNtz (no statement drops it)"
    assert f"domainMetadata (`features: {{domainMetadata: dropped}}` removes it), {stays}" in said


def test_vectors_that_a_run_turned_on_are_not_among_what_stays(
    repo: Repository, cli: Cli, fake_spark: FakeSpark
) -> None:
    table = repo.table("orders")
    repo.policies({"orders": "{deletion_vectors: enabled}"})
    assert cli("apply", "--yes").code == 0
    out = cli("undo", run_of(table)).out
    assert "deletion_vectors  enabled → dropped" in out
    assert "stays" not in out


def test_the_policy_file_keeps_its_comments_and_other_tables(repo: Repository, cli: Cli, fake_spark: FakeSpark) -> None:
    repo.table("orders", properties={"owner.team": "web"})
    repo.table("users")
    lake = repo.lake
    text = (
        f"version: 1\ntables:\n  # the ledger\n  delta.`{lake}/orders`:\n    properties:\n"
        f"      owner.team: payments  # ours\n  delta.`{lake}/users`: {{isolation: default}}\n"
    )
    repo.policies(text)
    assert cli("apply", "--yes").code == 0
    assert cli("undo", run_of(lake / "orders"), "--write", "--yes").code == 0
    assert (repo.root / "policies" / "lake.yaml").read_text() == text.replace("payments", "web")


def test_a_value_that_was_changed_after_the_run_is_not_undone(repo: Repository, orders: Path, cli: Cli) -> None:
    policy = (repo.root / "policies" / "lake.yaml").read_text()
    run = run_of(orders)
    set_property(orders, "owner.team", "finance")
    ran = cli("undo", run, "--write", "--yes")
    assert ran.code == 3
    assert "now finance, which the run did not set" in ran.flat
    assert (repo.root / "policies" / "lake.yaml").read_text() == policy


def test_an_undo_of_one_table_leaves_the_others_of_the_run(repo: Repository, cli: Cli, fake_spark: FakeSpark) -> None:
    for name in ("a", "b"):
        repo.table(name, properties={"owner.team": "web"})
    repo.policies(dict.fromkeys(("a", "b"), "{properties: {owner.team: payments}}"))
    assert cli("apply", "--yes").code == 0
    assert cli("undo", run_of(repo.lake / "a"), "--select", "*/a*", "--write", "--yes").code == 0
    text = (repo.root / "policies" / "lake.yaml").read_text()
    assert (text.count("web"), text.count("payments")) == (1, 1)


def test_appends_of_others_between_the_commits_do_not_matter(repo: Repository, orders: Path, cli: Cli) -> None:
    append(orders, "WRITE", [])
    found = json.loads(cli("undo", run_of(orders), "--format", "json").out)
    assert {each["outcome"] for each in found["tables"][0]["values"]} == {"undo"}


def test_a_table_whose_state_before_the_run_cannot_be_read_is_refused_with_the_place_of_the_values(
    repo: Repository, orders: Path, cli: Cli
) -> None:
    run, made = run_of(orders), len(Logged(orders).stamps)
    (orders / "_delta_log" / f"{1:020d}.json").write_text("{")
    ran = cli("undo", run, "--look-back", made)
    assert ran.code == 3
    assert "the plan file and the report of the run hold the values" in ran.flat


def test_a_masked_value_is_neither_shown_nor_written(repo: Repository, cli: Cli, fake_spark: FakeSpark) -> None:
    repo.table("orders", properties={"secret.key": "hunter2"})
    (repo.root / "tablectl.yaml").write_text("reports: {mask: ['secret.*']}\n")
    repo.policies({"orders": "{properties: {secret.key: hunter3}}"})
    assert cli("apply", "--yes").code == 0
    ran = cli("undo", run_of(repo.lake / "orders"), "--write", "--yes")
    assert "hunter" not in ran.out + ran.err
    assert "hides its value" in ran.out + ran.err


def test_an_unknown_run_is_an_error_that_says_where_runs_are_listed(repo: Repository, orders: Path, cli: Cli) -> None:
    ran = cli("undo", "ffff")
    assert ran.code == 64
    assert "`tablectl runs` lists the runs" in ran.err


@pytest.mark.parametrize("option", ["--yes", "--out=x.json"])
def test_options_of_writing_need_write(repo: Repository, orders: Path, cli: Cli, option: str) -> None:
    ran = cli("undo", run_of(orders), option)
    assert ran.code == 64
    assert "needs --write" in ran.err


def test_an_undo_says_before_it_writes_which_consent_its_plan_needs(
    repo: Repository, cli: Cli, fake_spark: FakeSpark
) -> None:
    """A column mapping is a change of metadata, and removing it a rewrite of the table."""
    table = repo.table("orders")
    repo.policies({"orders": "{column_mapping: name}"})
    assert cli("apply", "--yes").code == 0
    ran = cli("undo", run_of(table))
    assert (
        f"{repo.name('orders')}: column_mapping: the plan will refuse it: it rewrites all data of the table" in ran.err
    )
    assert "consent with `rewrite: allowed`, and limit it with `max_bytes`" in ran.err


def test_a_plan_file_that_an_editor_saved_with_a_mark_is_read(repo: Repository, cli: Cli) -> None:
    repo.table("orders")
    repo.policies({"orders": "{isolation: Serializable}"})
    assert cli("plan", "--out", "p.json").code == 0
    plan = Path("p.json")
    plan.write_bytes(b"\xef\xbb\xbf" + plan.read_bytes())
    assert "isolation" in cli("show", "p.json").out
