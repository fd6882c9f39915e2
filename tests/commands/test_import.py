"""``import``: policies written from live tables, which plan to nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

import tablectl
from tablectl.commands import import_tables as import_tables_module
from tablectl.delta.names import TableName
from tablectl.model.errors import LimitError
from tablectl.planning import import_table
from tablectl.policies.repository import load_specs
from tablectl.policies.write_yaml import TableEntry
from tests.commands.conftest import Cli, FakeSpark, Repository
from tests.commands.log_lake import create, set_property


def test_what_is_imported_plans_to_nothing(repo: Repository, cli: Cli) -> None:
    orders = repo.table("orders", properties={"owner.team": "on", "delta.columnMapping.maxColumnId": "3"})
    repo.table("raw/events", partitions=["day"], properties={"delta.appendOnly": "true"})
    set_property(orders, "delta.isolationLevel", "serializable")
    ran = cli("import", f"delta.`{repo.lake}/orders`", f"delta.`{repo.lake}/raw/*`", "--out", "policies/lake.yaml")
    assert (ran.code, ran.out) == (0, "")
    assert "wrote 2 tables to policies/lake.yaml; `tablectl plan` changes none of them" in ran.err
    assert Path("policies/lake.yaml").read_text() == (
        "# Written by `tablectl import`: what these tables are. What no line names is not managed.\n"
        "version: 1\n\ntables:\n"
        f"  delta.`{repo.lake}/orders`:\n"
        "    # left out: delta.columnMapping.maxColumnId is written by Delta itself\n"
        "    isolation: Serializable\n"
        "    properties:\n"
        '      owner.team: "on"\n'
        "\n"
        f"  delta.`{repo.lake}/raw/events`:\n"
        "    partitioning: [day]\n"
        "    properties:\n"
        "      delta.appendOnly: true\n"
    )
    ran = cli("plan", "--detailed-exitcode")
    assert (ran.code, ran.out) == (0, "No changes. 2 tables match their policies.\n")


def test_a_catalog_is_imported_whole_and_planned_without_it(repo: Repository, cli: Cli, fake_spark: FakeSpark) -> None:
    (repo.root / "tablectl.yaml").write_text("engine: {catalog: lake}\n")
    common = {"cost.center": "7", "cost.unit": "EUR"}
    for schema, table in (("sales", "orders"), ("sales", "returns"), ("web", "clicks")):
        place = create(repo.lake / schema / table, properties={"owner.team": schema, **common})
        fake_spark.catalog["lake", schema, table] = place
    ran = cli("import", "--all", "--out", "policies/all.yaml")
    assert ran.code == 0
    text = Path("policies/all.yaml").read_text()
    assert "defaults:\n  properties:\n    cost.center: 7\n    cost.unit: EUR\n" in text
    assert f"  lake.sales.orders:\n    location: {repo.lake}/sales/orders\n" in text
    Path("policies/all.yaml").rename("elsewhere.yaml")
    assert tablectl.import_tables(everything=True).text == text
    Path("elsewhere.yaml").rename("policies/all.yaml")
    opened = len(fake_spark.engines)
    assert cli("plan", "--detailed-exitcode").code == 0
    assert len(fake_spark.engines) == opened


def test_tables_with_an_entry_are_left_out(repo: Repository, cli: Cli) -> None:
    repo.table("orders")
    repo.table("events")
    repo.policies({"orders": "{isolation: Serializable}"})
    ran = cli("import", f"delta.`{repo.lake}/*`")
    assert f"{repo.name('orders')} is declared at policies/lake.yaml:3 already: left out" in ran.err
    assert repo.name("events") in ran.out
    assert repo.name("orders") not in ran.out
    ran = cli("import", f"delta.`{repo.lake}/*`", "--out", "policies/lake.yaml", "--force")
    assert ran.code == 0
    assert repo.name("orders") in Path("policies/lake.yaml").read_text()


def test_no_file_is_written_over(repo: Repository, cli: Cli) -> None:
    repo.table("orders")
    Path("mine.yaml").write_text("precious")
    ran = cli("import", repo.name("orders"), "--out", "mine.yaml")
    assert (ran.code, Path("mine.yaml").read_text()) == (1, "precious")
    assert "import does not overwrite it" in ran.err


def test_what_cannot_be_read_is_an_error_and_the_rest_is_written(repo: Repository, cli: Cli) -> None:
    repo.table("orders")
    ran = cli("import", repo.name("orders"), repo.name("gone"), "--out", "-")
    assert ran.code == 1
    assert "no such directory" in ran.err
    assert repo.name("orders") in ran.out
    ran = cli("import", repo.name("gone"), "--out", "none.yaml")
    assert (ran.code, Path("none.yaml").exists()) == (1, False)


@pytest.mark.parametrize(
    "folder", ["a[1]", "a*", "?", "[", "[!a]", "[]]", "a]b", "`*`", "${X}*", "$${X}[", "ü [*] {b}: #"]
)
def test_a_folder_that_reads_as_a_pattern_gets_an_escaped_key(repo: Repository, cli: Cli, folder: str) -> None:
    repo.table(folder)
    repo.table("a1")
    odd = TableName("", (f"{repo.lake}/{folder}",)).text
    for number, place in enumerate((f"delta.`{repo.lake}/*`", repo.lake, str(repo.lake / folder))):
        file = Path(f"{number}.yaml")
        ran = cli("import", place, "--out", file)
        assert (ran.code, "left out" in ran.err) == (0, False), ran.err
        named = {each.name.text for each in load_specs([file], variables={}, environ={}).tables}
        assert named == ({odd} if number == 2 else {odd, repo.name("a1")})
        assert "No changes" in cli("plan", file).out


def test_a_value_that_no_policy_can_hold_costs_the_other_tables_nothing(
    repo: Repository, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the reader of live tables lets through and the reader of policies refuses."""
    repo.table("orders", properties={"owner.team": "a"})
    repo.table("bad", properties={"owner.team": "b"})
    made = import_table.policy_of_table

    def wrong(live: Any, *args: Any, **options: Any) -> TableEntry:
        entry = made(live, *args, **options)
        return replace(entry, declared=(("no_attribute", "", "x"),)) if entry.key.endswith("bad`") else entry

    monkeypatch.setattr(import_tables_module, "policy_of_table", wrong)
    ran = cli("import", repo.lake, "--out", "found.yaml")
    assert ran.code == 1
    assert f"{repo.name('bad')}: " in ran.err
    text = Path("found.yaml").read_text()
    assert list(yaml.safe_load(text)["tables"]) == [repo.name("orders")]
    assert f"  # left out: {repo.name('bad')}: " in text


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ([], "no table is named"),
        (["--all", "lake.s.t"], "--all goes without tables"),
        (["orders"], "'orders' has 1 part"),
        (["delta.`${LAKE}/x`"], "the variable LAKE is not defined"),
    ],
)
def test_wrong_usage(repo: Repository, cli: Cli, args: list[str], said: str) -> None:
    ran = cli("import", *args)
    assert ran.code == 64
    assert said in ran.err


def test_for_machines_and_as_a_function(repo: Repository, cli: Cli) -> None:
    repo.table("orders", properties={"delta.feature.x": "supported", "owner.team": "web"})
    told = json.loads(cli("import", repo.name("orders"), "--format", "json").out)
    assert told["tables"] == [repo.name("orders")]
    assert told["left_out"] == {repo.name("orders"): ["delta.feature.x raises the protocol"]}
    found = tablectl.import_tables(repo.name("orders"), directory=repo.root)
    assert found.text == told["policies"]
    assert (found.exit_code, found.failures) == (0, ())


def test_a_function_call_without_tables_says_so() -> None:
    with pytest.raises(tablectl.TablectlError, match="no table is named"):
        tablectl.import_tables()


def test_many_tables(repo: Repository, cli: Cli) -> None:
    for number in range(200):
        repo.table(f"t{number:03d}", properties={"owner.team": "web", "n": str(number)})
    ran = cli("import", f"delta.`{repo.lake}/*`", "--out", "policies/all.yaml")
    assert "wrote 200 tables" in ran.err
    assert cli("plan").out == "No changes. 200 tables match their policies.\n"


def test_values_that_no_one_shall_see_are_left_out(repo: Repository, cli: Cli) -> None:
    (repo.root / "tablectl.yaml").write_text('reports: {mask: ["*password*"]}\n')
    repo.table("orders", properties={"db.password": "hunter2", "owner.team": "web"})
    ran = cli("import", f"delta.`{repo.lake}/orders`")
    assert "hunter2" not in ran.out + ran.err
    assert "# left out: db.password: `reports.mask` hides its value" in ran.out
    assert "owner.team: web" in ran.out


def test_a_folder_without_policies_declares_nothing_yet(repo: Repository, cli: Cli) -> None:
    repo.table("orders")
    (repo.root / "policies").mkdir(exist_ok=True)
    assert cli("import", f"delta.`{repo.lake}/orders`", "--out", "policies/lake.yaml").code == 0


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ("  delta.`/lake/other`: {isolation: Serializable}\n", "delta.`/lake/other`"),
        ("  'lake.s.*': {isolation: Serializable}\n", "lake.s.*"),
        ("profiles:\n  gold: {isolation: Serializable}\n", "the profile gold"),
        ("  # orders are late on Mondays\n", "the comment in line "),
        ("  delta.`/lake/other`: {isolation: no such level}\n", "cannot be read"),
    ],
)
def test_force_drops_nothing_that_the_import_does_not_write(repo: Repository, cli: Cli, more: str, named: str) -> None:
    repo.table("orders")
    file = Path("policies/lake.yaml")
    assert cli("import", repo.lake, "--out", file).code == 0
    file.write_text("# yaml-language-server: $schema=../tablectl.schema.json\n" + file.read_text())
    assert cli("import", repo.lake, "--out", file, "--force").code == 0
    assert file.read_text().startswith("# yaml-language-server: $schema=../tablectl.schema.json\n# Written by ")
    kept = file.read_text() + more
    file.write_text(kept)
    ran = cli("import", repo.lake, "--out", file, "--force")
    assert ran.code == 1
    assert named in ran.err
    assert file.read_text() == kept


def test_tables_that_the_configuration_ignores_are_left_out_everywhere(repo: Repository, cli: Cli) -> None:
    for name in ("orders", "orders__dbt_tmp", "a/b__dbt_tmp"):
        repo.table(name)
    (repo.table("broken__dbt_tmp") / "_delta_log" / f"{0:020d}.json").write_text("no JSON\n")
    Path("tablectl.yaml").write_text("ignore: ['*__dbt_tmp']\n")
    ran = cli("import", repo.lake, "--out", "policies/lake.yaml")
    assert (ran.code, "dbt_tmp" in Path("policies/lake.yaml").read_text()) == (0, False)
    assert cli("check", repo.lake).out.count("dbt_tmp") == 0
    Path("policies/lake.yaml").write_text(f"version: 1\ntables:\n  {repo.name('*')}: {{isolation: Serializable}}\n")
    planned = json.loads(cli("plan", "--format", "json").out)
    assert ([each["name"] for each in planned["tables"]], planned["failures"]) == ([repo.name("orders")], [])
    named = repo.name("orders__dbt_tmp")
    assert named in cli("import", named).out, "whoever names a table means it"


def test_the_most_tables_that_a_plan_may_change_are_a_setting(repo: Repository, cli: Cli) -> None:
    repo.table("a")
    repo.table("b")
    repo.policies({"a": "{isolation: Serializable}", "b": "{isolation: Serializable}"})
    Path("tablectl.yaml").write_text("max_tables: 1\n")
    ran = cli("plan", "--out", "p.json")
    assert (ran.code, Path("p.json").exists()) == (cli("plan", "--max-tables", "1").code, False)
    assert "the plan changes 2 tables, and at most 1 may change" in ran.err
    assert cli("plan", "--max-tables", "2", "--out", "p.json").code == 0
    assert "at most 1 may change" in cli("apply", "p.json", "--yes").err
    with pytest.raises(LimitError):
        tablectl.apply("p.json")
