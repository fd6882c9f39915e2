"""A dbt project next to the policies: what both set, and the way from its configuration to policies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.commands.conftest import Cli, FakeSpark, Repository
from tests.commands.log_lake import create, set_property


@pytest.fixture
def manifest(repo: Repository) -> Path:
    def node(name: str, **config: Any) -> dict[str, Any]:
        made = {"resource_type": "model", "database": "lake", "schema": "sales", "alias": name}
        return {**made, "original_file_path": f"models/{name}.sql", "config": {"materialized": "table", **config}}

    properties = {"delta.isolationLevel": "WriteSerializable", "owner.team": "web"}
    nodes = {
        "model.shop.orders": node("orders", tblproperties=properties),
        "model.shop.events": node("events", liquid_clustered_by="day"),
        "model.shop.seen": {**node("seen"), "config": {"materialized": "view"}},
    }
    path = repo.root / "manifest.json"
    path.write_text(json.dumps({"metadata": {"adapter_type": "databricks"}, "nodes": nodes}))
    (repo.root / "tablectl.yaml").write_text("engine: {catalog: lake, dialect: databricks}\n")
    return path


def test_import_writes_policies_and_says_what_to_remove(repo: Repository, cli: Cli, manifest: Path) -> None:
    ran = cli("import", "--dbt", "manifest.json", "--out", "policies/dbt.yaml")
    assert (ran.code, ran.out) == (0, "")
    text = Path("policies/dbt.yaml").read_text()
    assert "  lake.sales.events:\n    clustering: [day]\n" in text
    assert "  lake.sales.orders:\n    isolation: WriteSerializable\n    properties:\n      owner.team: web\n" in text
    assert cli("validate").code == 0
    assert 'remove from models/events.sql (model.shop.events):\n  liquid_clustered_by: "day"\n' in ran.err
    assert '  tblproperties: {"delta.isolationLevel": "WriteSerializable"}\n' in ran.err
    again = cli("import", "--dbt", "manifest.json", "--out", "policies/dbt.yaml")
    assert "import does not overwrite it" in again.err
    assert cli("import", "--dbt", "manifest.json", "--all").code == 64


@pytest.mark.parametrize("form", ["text", "json"])
def test_import_writes_no_secret_of_dbt_and_prints_none(repo: Repository, cli: Cli, manifest: Path, form: str) -> None:
    """The file is made to be committed, and the list of what to remove is in the log of a job."""
    body = json.loads(manifest.read_text())
    config = body["nodes"]["model.shop.orders"]["config"]
    config["tblproperties"] |= {"password": "DBTSECRET", "app.token": "DBTSECRET", "dsn": "postgres://u:DBTSECRET@h/x"}
    manifest.write_text(json.dumps(body))
    for more in ([], ["--out", "policies/dbt.yaml"]):
        ran = cli("import", "--dbt", "manifest.json", "--format", form, *more)
        assert ran.code == 0
        assert "DBTSECRET" not in ran.out + ran.err
        assert "the policy does not declare app.token, dsn, password: leave that in dbt" in ran.err
    text = Path("policies/dbt.yaml").read_text()
    assert "DBTSECRET" not in text
    assert "# left out: password: `reports.mask` hides its value" in text
    assert "# left out: dsn: its value holds a credential; declare it with a variable" in text
    assert "owner.team: web" in text


def test_lint_names_both_places_and_who_alternates(
    repo: Repository, cli: Cli, manifest: Path, fake_spark: FakeSpark
) -> None:
    orders = create(repo.lake / "orders", properties={"owner.team": "web"})
    for level in ("Serializable", "WriteSerializable", "Serializable"):
        set_property(orders, "delta.isolationLevel", level)
    repo.policies(
        f"version: 1\ntables:\n  sales.orders:\n    location: {orders}\n    isolation: Serializable\n"
        "    properties: {owner.team: web}\n"
    )
    assert "B00" not in cli("lint").out
    found = json.loads(cli("lint", "--dbt", "manifest.json", "--format", "json").out)
    told = {each["code"]: each["message"] for each in found["tables"][0]["findings"] if each["code"].startswith("B")}
    assert told["B001"] == (
        "properties.owner.team is set in two places, alike: "
        "policies/lake.yaml:6 and models/orders.sql (model.shop.orders)"
    )
    assert told["B002"] == (
        "the policy declares isolation as Serializable, dbt sets WriteSerializable: "
        "policies/lake.yaml:5 and models/orders.sql (model.shop.orders)"
    )
    assert told["B003"].startswith("isolation alternates: Serializable by ")
    assert cli("lint", "--dbt", "gone.json").code == 64


def project(repo: Repository, **configs: dict[str, Any]) -> None:
    nodes = {
        f"model.shop.{name}": {
            "resource_type": "model",
            "database": "lake",
            "schema": "sales",
            "alias": name,
            "original_file_path": f"models/{name}.sql",
            "config": {"materialized": "table", **config},
        }
        for name, config in configs.items()
    }
    (repo.root / "manifest.json").write_text(json.dumps({"metadata": {"adapter_type": "databricks"}, "nodes": nodes}))
    (repo.root / "tablectl.yaml").write_text("engine: {catalog: lake, dialect: databricks}\n")


def test_only_what_the_policies_declare_is_to_be_removed_from_dbt(repo: Repository, cli: Cli) -> None:
    properties = {
        "delta.parquet.compression.codec": "zstd",
        "DELTA.APPENDONLY": True,
        "delta.tuneFileSizesForRewrites": True,
        "delta.feature.allowColumnDefaults": "supported",
        "delta.autoOptimize.optimizeWrite": "{{ var('x') }}",
        "quality": "gold",
    }
    project(
        repo,
        a={"tblproperties": properties},
        b={"liquid_clustered_by": ["a"], "partition_by": "b"},
        c={"partition_by": "{{ var('x') }}", "tblproperties": {"quality": "gold"}},
    )
    ran = cli("import", "--dbt", "manifest.json", "--format", "json")
    made = json.loads(ran.out)
    declared = yaml.safe_load(made["policies"])
    for table in made["remove"]:
        entry = {**declared.get("defaults", {}), **declared["tables"][f"lake.sales.{table['model'][-1]}"]}
        values = sum(len(value) if key == "properties" else 1 for key, value in entry.items())
        assert len(table["lines"]) == values
    left = {each["model"][-1]: each["left_out"] for each in made["remove"]}
    gone = {key for line in made["remove"][0]["lines"] for key in json.loads(line.partition(": ")[2])}
    assert set(left["a"]) == properties.keys() - gone
    assert {"delta.feature.allowColumnDefaults", "delta.autoOptimize.optimizeWrite"} <= set(left["a"])
    assert len(left["b"]) == 1
    assert left["c"] == ["partitioning"]
    assert "the policy does not declare partitioning: leave that in dbt" in ran.err


@pytest.mark.parametrize("written", ["`ID`, n.x", ["id", "N.x"], "`id`, `n`.`x`"])
def test_columns_of_dbt_are_those_of_the_policy_in_any_spelling(
    repo: Repository, cli: Cli, fake_spark: FakeSpark, written: Any
) -> None:
    orders = create(repo.lake / "orders")
    project(repo, orders={"liquid_clustered_by": written})
    repo.policies(f"version: 1\ntables:\n  sales.orders:\n    location: {orders}\n    clustering: [id, n.x]\n")
    found = json.loads(cli("lint", "--dbt", "manifest.json", "--format", "json").out)
    codes = [each["code"] for each in found["tables"][0]["findings"] if each["code"].startswith("B")]
    assert codes == ["B001"]
