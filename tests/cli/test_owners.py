"""``owner:`` of tables: the list, CODEOWNERS, and where reports name it."""

from __future__ import annotations

import json

from tests.cli.conftest import Cli, Repository
from tests.cli.log_lake import set_property

POLICY = """version: 1
defaults: {owner: "@acme/platform"}
profiles: {gold: {owner: gold@example.com}}
tables:
  a.b: {}
  a.c: {owner: Payments}
  "z.*": {profiles: [gold]}
"""


def write(repo: Repository) -> None:
    (repo.root / ".git").mkdir()
    (repo.root / "policies").mkdir()
    (repo.root / "policies/a b.yaml").write_text(POLICY)
    (repo.root / "policies/none.yaml").write_text("version: 1\ntables: {x.y: }\n")


def test_owners_of_tables_and_patterns(repo: Repository, cli: Cli) -> None:
    write(repo)
    ran = cli("owners")
    assert ran.out.splitlines() == [
        "-                 x.y  policies/none.yaml:2",
        "@acme/platform    a.b  policies/a b.yaml:5",
        "Payments          a.c  policies/a b.yaml:6",
        "gold@example.com  z.*  policies/a b.yaml:7",
    ]
    assert json.loads(cli("owners", "--format", "json").out)[1]["owner"] == "@acme/platform"


def test_codeowners_has_accounts_and_says_what_is_none(repo: Repository, cli: Cli) -> None:
    write(repo)
    assert cli("owners", "--format", "codeowners").out.splitlines() == [
        "# policies/a b.yaml: Payments is no @user, @org/team or address",
        "/policies/a\\ b.yaml @acme/platform gold@example.com",
    ]
    assert cli("owners", "--format", "xml").code == 64


def test_plan_drift_and_status_name_the_owner(repo: Repository, cli: Cli) -> None:
    table = repo.table("orders", properties={"owner.team": "web"})
    repo.policies({"orders": "{owner: Payments, properties: {owner.team: web}}"})
    set_property(table, "owner.team", "x")
    for command in ("plan", "drift"):
        assert (
            "owner  Payments" in " ".join(cli(command, "--verbose").out.split("  ")) or "Payments" in cli(command).out
        )
    assert json.loads(cli("plan", "--format", "json").out)["tables"][0]["owner"] == "Payments"
    assert json.loads(cli("drift", "--format", "json").out)["tables"][0]["owner"] == "Payments"
    assert json.loads(cli("status", "--format", "json").out)["tables"][0]["owner"] == "Payments"


def test_plans_go_to_the_folder_of_plans(repo: Repository, cli: Cli) -> None:
    repo.table("orders")
    repo.policies({"orders": "{properties: {a: b}}"})
    (repo.root / "tablectl.yaml").write_text("plans: saved\n")
    assert cli("plan", "--out", "first.json").code == 0
    assert (repo.root / "saved/first.json").exists()
    assert cli("show", "first.json").code == 0
    assert cli("plan", "--out", "here/second.json").code == 0
    assert (repo.root / "here/second.json").exists()
    (repo.root / "other.json").write_bytes((repo.root / "saved/first.json").read_bytes())
    assert cli("show", "other.json").code == 0
