"""``check``: from a folder to what is wrong in it, without policies."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from tablectl.commands import read_tables
from tablectl.log.find_tables import find_paths
from tests.commands.conftest import Cli, FakeSpark, Repository
from tests.insight.advice.job_log import JobLog


def flat(text: str) -> str:
    return " ".join(text.split())


HOUR = {"delta.deletedFileRetentionDuration": "interval 1 hours"}


@pytest.fixture
def lake(repo: Repository) -> Repository:
    """Tables with each kind of risk, in two layers of folders."""
    repo.table("orders", properties=HOUR)
    repo.table("returns", properties=HOUR)
    repo.table(
        "sales/items", properties={"delta.enableDeletionVectors": "true"}, features=["deletionVectors"], vectors=1
    )
    repo.table("sales/log", properties={"delta.enableExpiredLogCleanup": "false"})
    repo.table("fine")
    JobLog(repo.lake / "stock").regions(rounds=12)
    return repo


def harms(result_json: str) -> list[tuple[str, str, str]]:
    found = json.loads(result_json)["tables"]
    return [(Path(t["location"]).name, r["harm"], r["code"]) for t in found for r in t["risks"]]


def test_a_folder_is_checked_without_policies_and_the_worst_comes_first(cli: Cli, lake: Repository) -> None:
    ran = cli("check", lake.lake)
    assert (ran.code, ran.err) == (0, "")
    order = [
        ran.out.index(each) for each in ("data or history at risk", "writers at risk", "debt", "closed to some clients")
    ]
    assert order == sorted(order)
    assert "`retention: {deleted_files: 7 days}`" in ran.out
    assert "`partitioning: [region]`" in ran.out
    assert "6 tables" in ran.out.splitlines()[-3]


def test_equal_risks_of_two_tables_are_one_entry(cli: Cli, lake: Repository) -> None:
    out = cli("check", lake.lake).out
    assert out.count("deleted files are kept 1 hour only (L006)") == 1
    assert "! 2 tables  data or history at risk\n  orders, returns\n" in out


def test_the_folder_of_the_tables_stands_once(cli: Cli, lake: Repository) -> None:
    out = cli("check", lake.lake).out
    assert out.startswith(f"In {lake.lake}/:\n")
    assert out.count(str(lake.lake)) == 2, "above the tables, and in the next command"


def test_the_written_policies_mend_what_was_found(cli: Cli, lake: Repository) -> None:
    assert cli("check", lake.lake, "--out", "fixes.yaml").code == 0
    planned = json.loads(cli("plan", "fixes.yaml", "--format", "json").out)
    assert {each["name"] for each in planned["tables"] if each["changes"] and not each["refusals"]} == {
        lake.name("orders"),
        lake.name("returns"),
        lake.name("sales/log"),
        lake.name("stock"),
    }
    assert cli("check", lake.lake, "--out", "fixes.yaml").code == 64, "no file is overwritten"


def test_a_table_that_cannot_be_read_costs_the_others_nothing(cli: Cli, lake: Repository) -> None:
    (lake.lake / "fine" / "_delta_log" / f"{0:020d}.json").write_text("not JSON\n")
    ran = cli("check", lake.lake, "--format", "json")
    assert ran.code == 1
    found = {Path(each["location"]).name: each["error"] for each in json.loads(ran.out)["tables"]}
    assert [name for name, error in found.items() if error] == ["fine"]


def test_a_place_without_tables_is_one_error(cli: Cli, repo: Repository) -> None:
    for place in (repo.lake, repo.lake / "typo"):
        ran = cli("check", place)
        assert ran.code == 1
        assert ran.out.count("not looked up") == 1, ran.out


def test_a_table_a_pattern_and_a_relative_folder_are_places(
    cli: Cli, lake: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(lake.lake)
    for place, count in (
        ("orders", 1),
        ("sales", 2),
        ("./orders", 1),
        (f"{lake.lake}/*", 4),
        (".", 6),
        (lake.name("orders"), 1),
        ("./sales", 2),
    ):
        assert len(json.loads(cli("check", place, "--format", "json").out)["tables"]) == count, place


def test_without_a_place_the_tables_of_the_policies_are_checked(cli: Cli, lake: Repository) -> None:
    refused = cli("check")
    assert (refused.code, "name a folder" in refused.err) == (64, True)
    lake.policies({"orders": "{isolation: Serializable}"})
    assert [each[0] for each in harms(cli("check", "--format", "json").out)] == ["orders"]


def test_only_clients_that_a_policy_declares_are_a_finding(cli: Cli, lake: Repository) -> None:
    out = cli("check", lake.lake / "sales" / "items").out
    assert "closed to some clients" in out
    assert "Nothing is wrong if you use none of them" in flat(out)
    assert out.endswith("Check: 1 table of 200 B; 1 table closed to some clients.\n")
    lake.policies({"sales/items": "{clients: {deltalake: 1.6.6}}"})
    assert harms(cli("check", "--format", "json").out) == [("items", "clients locked out", "L023")]


def test_two_findings_of_a_rule_on_one_table_are_not_two_tables(cli: Cli, repo: Repository) -> None:
    texts = {"delta.appendOnly": "TRUE", "delta.logRetentionDuration": "60 days"}
    place = repo.table("ledger", properties=texts)
    out = cli("check", place).out
    assert "ledger, " not in out
    assert "in the largest" not in out
    assert all(f"delta-rs ignores the stored text of {key}" in flat(out) for key in texts)


@pytest.mark.parametrize("command", ["check", "status", "advise", "import"])
def test_policies_with_an_error_are_left_out_when_a_place_is_named(cli: Cli, lake: Repository, command: str) -> None:
    (lake.root / "policies").mkdir(exist_ok=True)
    (lake.root / "policies" / "x.yaml").write_text("version: 1\ntables: {'delta.`${LAKE}/x`': {}}\n")
    ran = cli(command, lake.lake)
    assert ran.code == 0
    assert "stock" in ran.out
    assert flat(ran.err).count("the policies of this folder are left out: policies/x.yaml:2") == 1
    assert command == "import" or cli(command).code == 1


def test_what_a_policy_declares_already_is_not_found_again(cli: Cli, lake: Repository) -> None:
    lake.policies({"orders": "{retention: {deleted_files: 7 days}}"})
    assert not harms(cli("check", lake.lake / "orders", "--format", "json").out)


def test_masked_values_are_neither_shown_nor_written(cli: Cli, repo: Repository) -> None:
    (repo.root / "tablectl.yaml").write_text("reports: {mask: [delta.appendOnly]}\n")
    repo.table("ledger", properties={"delta.appendOnly": "TRUE"})
    ran = cli("check", repo.lake, "--out", "fixes.yaml")
    assert "the stored text" not in ran.out
    assert "declare " not in ran.out
    assert not Path("fixes.yaml").exists()


@pytest.mark.parametrize("form", ["markdown", "html"])
def test_the_report_says_what_the_text_says(cli: Cli, lake: Repository, form: str) -> None:
    out = cli("check", lake.lake, "--format", form).out.replace("<wbr>", "")
    assert "deleted files are kept 1 hour only (L006)" in out
    assert "retention: {deleted_files: 7 days}" in out


def test_the_name_of_a_catalog_means_all_of_its_tables(cli: Cli, repo: Repository, fake_spark: FakeSpark) -> None:
    fake_spark.catalog = {
        ("spark_catalog", "sales", "orders"): repo.table("orders", properties=HOUR),
        ("spark_catalog", "web", "clicks"): repo.table("clicks"),
    }
    found = json.loads(cli("check", "spark_catalog", "--format", "json").out)["tables"]
    assert [each["table"] for each in found] == ["sales.orders", "web.clicks"]


def test_a_table_deep_below_a_place_is_looked_at(cli: Cli, repo: Repository) -> None:
    repo.table("prod/sales/fine")
    repo.table("prod/emea/sales/ops/orders", properties=HOUR)
    ran = cli("check", repo.lake)
    assert "deleted files are kept 1 hour only (L006)" in ran.out
    assert "2 tables" in ran.out
    assert cli("status", repo.lake).out.count("orders") == 1
    assert cli("advise", repo.lake).code == 0


def test_a_search_that_stopped_says_where_and_fails(
    cli: Cli, repo: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a/orders", "b/orders", "c/d/e/f/orders"):
        repo.table(name)
    monkeypatch.setattr(read_tables, "find_paths", partial(find_paths, folders=3))
    for command in ("check", "status", "advise", "import"):
        ran = cli(command, repo.lake)
        assert ran.code == 1
        assert f"the search stopped before its end: not entered: {repo.lake}/c" in ran.flat + " ".join(ran.err.split())


def test_a_folder_is_a_place_in_a_repository_too(cli: Cli, repo: Repository) -> None:
    """A word that the policies have for a table is that table."""
    repo.table("orders", properties=HOUR)
    Path("lake").symlink_to(repo.lake)
    Path("orders").mkdir()
    Path("my-lake").symlink_to(repo.lake)
    repo.policies({"orders": "{}"})
    for place in ("lake", "my-lake", "lake/orders", "orders"):
        assert "(L006)" in cli("check", place).out, place
    assert 'no policy names a table "nothing"' in cli("check", "nothing").err


def test_a_place_without_tables_is_answered_in_a_sentence(repo: Repository, cli: Cli) -> None:
    orders = repo.table("sales/orders")
    (repo.root / "empty").mkdir()
    (repo.root / "file").write_text("")
    ran = cli("check", "empty")
    assert ran.code == 1
    assert f"{repo.root / 'empty'}: holds no Delta table" in " ".join(ran.out.split())
    for place, said, hint in (
        ("file", "is a file", "name the folder of a table"),
        (f"{orders}/_delta_log", "is in the log of a table", f"name the folder of the table: {orders}"),
        (f"{orders}/_delta_log/00000000000000000000.json", "is in the log of a table", f"{orders}\n"),
    ):
        ran = cli("check", place)
        assert (ran.code, said in ran.err, hint in ran.err) == (64, True, True), ran.err


def test_a_place_where_files_of_policies_stand_is_answered_with_what_takes_it(repo: Repository, cli: Cli) -> None:
    repo.table("sales/orders")
    assert "it holds tables: `tablectl check`" in cli("plan", str(repo.lake)).err
    assert "one table is `--select sales.orders`" in cli("plan", "sales.orders").err
