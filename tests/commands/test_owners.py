"""``owner:`` of tables: where reports name it."""

from __future__ import annotations

import json

from tests.commands.conftest import Cli, Repository
from tests.commands.log_lake import set_property


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
