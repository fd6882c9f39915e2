"""What a user reads of a mistake: everything at once, with the line of the policy and what is probably meant."""

from __future__ import annotations

import json
from typing import Any

import pytest

import tablectl
from tablectl.model.errors import UsageError
from tests.commands.conftest import Cli, FakeSpark, Repository
from tests.commands.log_lake import Logged, append


def flat(text: str) -> str:
    return " ".join(text.split())


def test_all_refusals_of_a_table_come_at_once_with_the_line_and_what_is_meant(cli: Cli, repo: Repository) -> None:
    repo.table("orders")
    repo.policies({"orders": "{partitioning: [kindd, month], data_skipping: [dayy]}"})
    said = flat(cli("plan").out)
    assert "the table has no column kindd (DELTA_COLUMN_NOT_FOUND_IN_SCHEMA) (`policies/lake.yaml:3`)" in said
    assert "did you mean kind?" in said
    assert "the table has no column month" in said
    assert "name a column of the table (id, day, kind)" in said
    assert "it rewrites all data of the table (`policies/lake.yaml:3`)" in said
    assert "did you mean day?" in said


def test_two_misspelt_clustering_columns_are_both_named(cli: Cli, repo: Repository) -> None:
    repo.table("orders")
    repo.policies({"orders": "{clustering: [idd, kindd]}"})
    refused = json.loads(cli("plan", "--format", "json").out)["tables"][0]["refusals"]
    assert [(each["reason"], each["fix"]) for each in refused] == [
        ("the table has no column idd", "did you mean id?"),
        ("the table has no column kindd", "did you mean kind?"),
    ]


def test_a_table_that_is_not_there_is_shown_with_the_line_that_names_it(cli: Cli, repo: Repository) -> None:
    repo.policies({"ordres": "{isolation: Serializable}"})
    assert "policy   `policies/lake.yaml:3`" in cli("plan").out


def test_what_the_same_policy_asks_for_is_not_said_of_the_table(cli: Cli, repo: Repository) -> None:
    repo.table("orders", partitions=["day"])
    policy = "{partitioning: none, rewrite: allowed, properties: {delta.appendOnly: true}}"
    repo.policies({"orders": policy})
    said = flat(cli("plan").out)
    assert "the same policy makes the table append-only" in said
    assert "apply `partitioning` first, and declare delta.appendOnly after that" in said


def test_each_table_that_differs_from_a_saved_plan_has_a_line_of_its_own(cli: Cli, repo: Repository) -> None:
    for name in ("a", "b"):
        repo.table(name)
    repo.policies(dict.fromkeys(("a", "b"), "{properties: {owner.team: pay}}"))
    assert cli("plan", "--out", "plan.json").code == 0
    repo.policies(dict.fromkeys(("a", "b"), "{properties: {owner.team: web}}"))
    lines = cli("apply", "plan.json").err.splitlines()
    assert sum("`properties.owner.team` is not what the policies declare" in line for line in lines) == 2


@pytest.mark.parametrize(
    ("policy", "title"),
    [
        ("{properties: {owner.team: pay}}", "Concurrent writes fail once"),
        ("{deletion_vectors: enabled}", "Cannot be undone in full"),
        ("{partitioning: [kind], rewrite: allowed}", "Rewrites all data of 1 table"),
    ],
)
def test_the_title_of_a_plan_is_its_verdict(cli: Cli, repo: Repository, policy: str, title: str) -> None:
    repo.table("orders")
    repo.policies({"orders": policy})
    assert f"Plan: {title}**" in cli("plan", "--format", "markdown").out


def test_print_of_a_plan_is_the_plan_and_its_repr_has_no_values(repo: Repository) -> None:
    repo.table("orders")
    repo.policies({"orders": "{properties: {owner.team: pay}}"})
    made = tablectl.plan()
    assert "properties.owner.team  not set → pay" in str(made)
    assert repr(made) == "Plan(1 table)"


@pytest.mark.parametrize(
    ("function", "given", "says"),
    [
        ("apply", {"plan_or_paths": 3}, "plan_or_paths=3: it takes a text or a list of texts"),
        ("plan", {"select": 3}, "select=3: it takes a text or a list of texts"),
        ("plan", {"variables": ["LAKE"]}, "--var 'LAKE' is not NAME=VALUE"),
    ],
)
def test_wrong_arguments_get_a_message(repo: Repository, function: str, given: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError) as raised:
        getattr(tablectl, function)(**given)
    assert raised.value.message == says


def test_a_guard_says_what_it_guards() -> None:
    assert repr(tablectl.guard(None, "/lake/orders", "append")) == "Guard('/lake/orders', 'append')"


def test_the_last_write_is_that_of_others(cli: Cli, repo: Repository, fake_spark: FakeSpark) -> None:
    path = repo.table("orders")
    before = json.loads(cli("status", repo.lake / "orders", "--format", "json").out)["tables"][0]["written_at"]
    repo.policies({"orders": "{properties: {owner.team: pay}}"})
    assert cli("apply", "--yes").code == 0
    (row,) = json.loads(cli("status", "--format", "json").out)["tables"]
    assert row["written_at"] == before < row["applied_at"]
    append(path, "WRITE", [])
    (row,) = json.loads(cli("status", "--format", "json").out)["tables"]
    assert row["written_at"] > row["applied_at"]


def test_runs_say_who_applied_where_and_in_which_job(
    cli: Cli, repo: Repository, fake_spark: FakeSpark, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = repo.table("orders")
    repo.policies({"orders": "{properties: {owner.team: pay}}"})
    server = {"GITHUB_SERVER_URL": "https://github.example", "GITHUB_REPOSITORY": "acme/lake", "GITHUB_RUN_ID": "7"}
    for name, value in {**server, "GITHUB_ACTOR": "alice"}.items():
        monkeypatch.setenv(name, value)
    assert cli("apply", "--yes").code == 0
    assert "by       alice on " in cli("runs").out
    assert "https://github.example/acme/lake/actions/runs/7" in flat(cli("runs").out)
    assert Logged(path).stamps[0]["by"].startswith("alice on ")
