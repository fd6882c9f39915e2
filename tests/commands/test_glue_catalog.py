"""Commands on tables of AWS Glue: names are looked up there, also by an apply whose Spark does not know Glue."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tablectl.delta.names import TableName
from tests.commands.conftest import Cli, FakeSpark, Repository
from tests.commands.log_lake import LogEngine, Logged, create
from tests.s3 import REGION, S3Server

pytest.importorskip("pyparsing", reason="moto needs it for Glue")


@pytest.fixture
def glue(s3: S3Server, repo: Repository) -> Any:
    from moto.core.models import DEFAULT_ACCOUNT_ID
    from moto.glue.models import glue_backends

    glue_backends[DEFAULT_ACCOUNT_ID][REGION].reset()
    client = s3.boto3("glue")
    client.create_database(DatabaseInput={"Name": "sales"})
    (repo.root / "tablectl.yaml").write_text(
        f"engine: {{catalog: lake}}\ncatalogs:\n  lake: {{type: glue, region: {REGION}, url: '{s3.url}'}}\n"
    )
    return client


def add(glue: Any, name: str, location: Path | str, provider: str = "delta", **more: Any) -> None:
    storage = {"Location": str(location)}
    parameters = {"spark.sql.sources.provider": provider}
    table = {"Name": name, "Parameters": parameters, "StorageDescriptor": storage, **more}
    glue.create_table(DatabaseName="sales", TableInput=table)


def test_import_plan_and_apply(
    repo: Repository, cli: Cli, glue: Any, fake_spark: FakeSpark, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(_engine: LogEngine, table: TableName) -> str:
        raise AssertionError(f"Spark was asked for {table.text}")

    monkeypatch.setattr(LogEngine, "location", unknown)
    orders = create(repo.lake / "orders", properties={"owner.team": "web"})
    add(glue, "orders", orders)
    add(glue, "raw", "s3://lake/raw", "parquet")
    add(glue, "seen", "", TableType="VIRTUAL_VIEW")
    ran = cli("import", "lake.sales.*", "--out", "policies/lake.yaml")
    assert ran.code == 0, ran.err
    assert "lake.sales.raw is not a Delta table (its format is parquet): left out\n" in ran.err
    assert "lake.sales.seen is a view: left out\n" in ran.err
    assert cli("plan", "--detailed-exitcode").code == 0
    assert fake_spark.engines == []
    repo.policies("version: 1\ntables:\n  sales.orders: {properties: {owner.team: payments}}\n")
    assert cli("plan", "--out", "p.json", "--detailed-exitcode").code == 2
    assert fake_spark.engines == []
    applied = cli("apply", "p.json")
    assert applied.code == 0, applied
    assert fake_spark.sent == [f"ALTER TABLE `delta`.`{orders}`\nSET TBLPROPERTIES ('owner.team' = 'payments')"]
    assert Logged(orders).properties == {"owner.team": "payments"}


def test_a_name_that_leads_elsewhere_since_the_plan_is_not_changed(
    repo: Repository, cli: Cli, glue: Any, fake_spark: FakeSpark
) -> None:
    add(glue, "orders", create(repo.lake / "orders"))
    repo.policies("version: 1\ntables:\n  sales.orders: {properties: {owner.team: payments}}\n")
    cli("plan", "--out", "p.json")
    storage = {"Location": str(create(repo.lake / "orders_2"))}
    moved = {"Name": "orders", "Parameters": {"spark.sql.sources.provider": "delta"}, "StorageDescriptor": storage}
    glue.update_table(DatabaseName="sales", TableInput=moved)
    applied = cli("apply", "p.json", "--format", "json")
    assert applied.code != 0
    assert json.loads(applied.out)["tables"][0]["message"].startswith("the name now leads to ")
    assert fake_spark.sent == []


def test_a_catalog_that_cannot_be_asked_fails_its_tables_alone(repo: Repository, cli: Cli, glue: Any) -> None:
    repo.table("events")
    repo.policies(
        f"version: 1\ntables:\n  sales.gone: {{isolation: Serializable}}\n"
        f"  {repo.name('events')}: {{isolation: Serializable}}\n"
    )
    plan = json.loads(cli("plan", "--format", "json").out)
    assert [each["name"] for each in plan["failures"]] == ["lake.sales.gone"]
    assert len(plan["tables"]) == 1
