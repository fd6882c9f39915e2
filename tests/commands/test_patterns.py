"""Patterns from the command line, over real logs and a catalog that stands in for Spark's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.commands.conftest import Cli, FakeSpark, Repository
from tests.commands.log_lake import Logged


@pytest.fixture
def lake(repo: Repository) -> Repository:
    repo.table("raw/a")
    repo.table("raw/b", properties={"debug": "on"})
    repo.table("raw/_staging")
    (repo.lake / "raw" / "plain").mkdir()
    repo.policies({"raw/*": "{isolation: Serializable, tags: [raw]}", "raw/b": "{properties: {debug: null}}"})
    return repo


def names(out: str) -> list[str]:
    return [Path(table["location"]).name for table in json.loads(out)["tables"]]


def test_a_pattern_of_paths_is_planned_and_applied_without_a_catalog(
    cli: Cli, lake: Repository, fake_spark: FakeSpark
) -> None:
    planned = cli("plan", "--out", "p.json")
    assert (planned.code, fake_spark.engines) == (0, [])
    assert planned.out.count("default → Serializable") == 2
    assert planned.out.endswith("Plan: 2 tables to change (2 blocking), 3 statements.\n")
    assert cli("apply", "p.json").code == 0
    assert Logged(lake.lake / "raw" / "a").properties == {"delta.isolationLevel": "Serializable"}
    assert Logged(lake.lake / "raw" / "b").properties == {"delta.isolationLevel": "Serializable"}
    again = cli("plan", "--detailed-exitcode")
    assert (again.code, again.out) == (0, "No changes. 2 tables match their policies.\n")


def test_new_tables_are_picked_up_and_the_digest_of_the_policies_stays(cli: Cli, lake: Repository) -> None:
    before = json.loads(cli("plan", "--format", "json").out)
    lake.table("raw/c")
    after = json.loads(cli("plan", "--format", "json").out)
    assert (len(before["tables"]), len(after["tables"])) == (2, 3)
    assert before["policies"] == after["policies"]


@pytest.mark.parametrize(
    ("args", "found"),
    [(["--select", "*/a"], ["a"]), (["--tag", "raw"], ["a", "b"]), (["--select", "*/raw/?"], ["a", "b"])],
)
def test_tables_are_selected_among_those_found(cli: Cli, lake: Repository, args: list[str], found: list[str]) -> None:
    assert names(cli("plan", "--format", "json", *args).out) == found


COMMANDS = [["plan"], ["drift"], ["lint"], ["status"], ["plan", "--format", "markdown"], ["plan", "--format", "json"]]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_pattern_that_matches_nothing_is_never_green(cli: Cli, lake: Repository, command: list[str]) -> None:
    (lake.lake / "rwa").mkdir()
    lake.policies({"rwa/*": "{isolation: Serializable}", "raw/*": "{}"})
    result = cli(*command)
    assert result.code == 1
    assert "matches no table" in result.out
    assert "lake.yaml:3" in result.out or "markdown" in command
    lake.policies({"rwa/*": "{isolation: Serializable, may_be_empty: true}", "raw/*": "{}"})
    assert cli(*command).code == 0


@pytest.mark.parametrize("args", [["--select", "*/a"], ["--tag", "raw"]])
def test_a_selection_does_not_fail_because_of_another_pattern(cli: Cli, lake: Repository, args: list[str]) -> None:
    (lake.lake / "empty").mkdir()
    lake.policies({"raw/*": "{isolation: Serializable, tags: [raw]}", "empty/*": "{isolation: Serializable}"})
    assert (cli("plan", *args).code, cli("plan").code) == (0, 1)


def test_an_apply_of_the_other_tables_ends_with_the_pattern_that_matches_nothing(cli: Cli, lake: Repository) -> None:
    (lake.lake / "rwa").mkdir()
    lake.policies({"rwa/*": "{isolation: Serializable}", "raw/*": "{}"})
    assert cli("apply", "--yes").code == 1


def test_an_import_of_a_pattern_that_matches_nothing_is_never_green(cli: Cli, lake: Repository) -> None:
    (lake.lake / "rwa").mkdir()
    result = cli("import", lake.name("rwa/*"))
    assert (result.code, result.out) == (1, "")
    assert "matches no table" in result.err


def test_a_pattern_that_may_be_empty_is_reported_and_passes(cli: Cli, lake: Repository) -> None:
    name = lake.name("rwa/*")
    (lake.lake / "rwa").mkdir()
    lake.policies({"rwa/*": "{isolation: Serializable, may_be_empty: true}"})
    result = cli("plan", "--out", "p.json")
    assert (result.code, result.out) == (0, f"? {name}  matches no table\n\nNo changes. No tables.\n")
    assert json.loads((lake.root / "p.json").read_text())["unmatched"] == [name]
    assert cli("show", "p.json").out == result.out


@pytest.mark.parametrize("command", COMMANDS[:4], ids=" ".join)
def test_policies_without_any_table_are_never_green(cli: Cli, lake: Repository, command: list[str]) -> None:
    lake.policies("version: 1\ntables: {}\n")
    result = cli(*command)
    assert result.code == 1
    assert "no policy names a table" in result.out


def test_the_title_of_a_comment_says_that_no_table_was_looked_at(cli: Cli, lake: Repository) -> None:
    (lake.lake / "rwa").mkdir()
    lake.policies({"rwa/*": "{isolation: Serializable}"})
    assert "⚠ No table was looked at" in cli("plan", "--format", "markdown").out.splitlines()[0]
    assert "⚠ No table was looked at" in cli("drift", "--format", "markdown").out.splitlines()[0]


def test_catalog_tables_are_listed_by_schema(cli: Cli, repo: Repository, fake_spark: FakeSpark) -> None:
    for name in ("orders", "returns"):
        fake_spark.catalog["lake", "sales", name] = repo.table(name)
    fake_spark.catalog["lake", "web", "orders"] = repo.table("web")
    repo.policies("version: 1\ntables:\n  lake.*.orders: {isolation: Serializable}\n  lake.nix.*:\n")
    result = cli("plan", "--out", "p.json")
    assert result.code == 1
    assert "~ 2 tables  BLOCKING\n  lake.sales.orders, lake.web.orders\n" in result.out
    assert "lake.sales.returns" not in result.out
    assert "x lake.nix.*  not readable\n    error    the schema lake.nix does not exist" in result.out
    assert result.out.endswith("Plan: 2 tables to change (2 blocking), 2 statements; 1 not readable.\n")
    assert cli("apply", "p.json").code == 5
    assert Logged(repo.lake / "web").properties == {"delta.isolationLevel": "Serializable"}


def test_patterns_that_contradict_each_other_are_told_with_their_places(cli: Cli, lake: Repository) -> None:
    lake.policies({"*/a": "{isolation: Serializable}", "r*/?": "{isolation: default}"})
    result = cli("plan")
    assert (result.code, result.out) == (1, "")
    assert "policies/lake.yaml:4:" in result.err
    assert "at policies/lake.yaml:3:" in result.err
    assert cli("validate").out == "0 tables and 2 patterns: every policy is valid.\n"
    assert cli("plan", "--select", "*/nix").code == 1


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_the_lease_of_a_table_that_a_pattern_found_is_shown(cli: Cli, lake: Repository) -> None:
    cli("apply", "--yes")
    assert "free; last held" in cli("window", "show", lake.name("raw/a")).out


def test_a_pattern_of_the_command_line_gets_no_words_on_policies(cli: Cli, lake: Repository) -> None:
    name = f"delta.`{lake.lake}/raw/rwa*`"
    for command in ("import", "status", "advise"):
        result = cli(command, name)
        said = " ".join((result.out + result.err).split())
        assert result.code == 1
        assert f"{name}: matches no table" in said
        assert said.count("matches no table") == 1
        assert "may_be_empty" not in said
