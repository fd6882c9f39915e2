"""``doctor``: each check, and what it says to do."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from tablectl.commands import doctor
from tablectl.engine import spark
from tablectl.model.errors import EngineError, WindowError
from tablectl.storage.records import DiskRecords
from tests.catalogs.unity_server import UnityServer, serving
from tests.commands.conftest import Cli, Repository
from tests.commands.log_lake import create
from tests.s3 import S3Server


@pytest.fixture(autouse=True)
def healthy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "java_problem", lambda _environ: None)
    for name in ("GITHUB_ACTIONS", "GITLAB_CI"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def lake(repo: Repository) -> Repository:
    repo.table("orders")
    repo.policies({"orders": "{isolation: Serializable}"})
    return repo


def checks(cli: Cli, *args: str) -> dict[str, dict[str, Any]]:
    ran = cli("doctor", "--format", "json", *args)
    body = json.loads(ran.out)
    assert ran.code == (0 if body["healthy"] else 1)
    return {each["subject"]: each for each in body["checks"]}


def test_a_healthy_machine(cli: Cli, lake: Repository) -> None:
    ran = cli("doctor")
    assert ran.code == 0, ran.out
    assert "ok    policies: 1 table, 0 patterns\n" in ran.out
    assert f"ok    {lake.name('orders')}: its log can be read, version " in ran.out
    assert "put if absent, read, list and delete work in" in ran.out
    records = lake.lake / "orders" / "_tablectl"
    assert [each for each in records.rglob("*") if each.is_file()] == []


def test_a_check_leaves_nothing_behind(cli: Cli, lake: Repository) -> None:
    """An empty folder in a table looks like a lease to those who list it."""
    assert cli("doctor").code == 0
    assert not (lake.lake / "orders" / "_tablectl").exists()
    kept = lake.lake / "orders" / "_tablectl" / "guards" / "guard.json"
    kept.parent.mkdir(parents=True)
    kept.write_text("{}")
    assert cli("doctor").code == 0
    assert [each.name for each in (lake.lake / "orders" / "_tablectl").rglob("*")] == ["guards", "guard.json"]


def test_only_plans(cli: Cli, lake: Repository) -> None:
    assert cli("doctor", "--read-only").code == 0
    assert not (lake.lake / "orders" / "_tablectl").exists()


def test_nothing_is_here_yet(cli: Cli, repo: Repository) -> None:
    found = checks(cli)["policies"]
    assert found["health"] == "fail"
    assert found["found"] == "policies: no such file or directory"
    assert "tablectl init" in found["fix"]


def test_no_java(cli: Cli, lake: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "java_problem", lambda _environ: "there is no Java")
    assert checks(cli)["Java"] == {"health": "fail", "subject": "Java", "found": "there is no Java", "fix": ""}
    Path("tablectl.yaml").write_text("engine: {remote: 'sc://spark:15002'}\n")
    assert "Java" not in checks(cli)


@pytest.mark.parametrize(
    ("engine", "package", "extra"),
    [
        ("remote: databricks", "databricks-connect", "databricks"),
        ("remote: 'databricks://DEV'", "databricks-connect", "databricks"),
        ("remote: 'sc://spark:15002'", "pyspark", "spark"),
        ("dialect: databricks, warehouse: 1234567890abcdef", "databricks-sql-connector", "warehouse"),
        ("thrift: 'spark:10000'", "impyla", "thrift"),
    ],
)
def test_the_package_of_the_engine_is_named(
    cli: Cli, lake: Repository, monkeypatch: pytest.MonkeyPatch, engine: str, package: str, extra: str
) -> None:
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    Path("tablectl.yaml").write_text(f"engine: {{{engine}}}\n")
    found = checks(cli)
    assert found[package]["fix"] == f"see docs/install.md, extra `{extra}`"
    assert ("pyspark" in found) == (package == "pyspark")


def test_a_wrong_configuration(cli: Cli, lake: Repository) -> None:
    Path("tablectl.yaml").write_text("engin: {}\n")
    found = checks(cli)["tablectl.yaml"]
    assert (found["health"], found["found"]) == ("fail", 'tablectl.yaml:1: unknown key "engin"')


def test_a_table_that_is_gone_hides_no_other(cli: Cli, repo: Repository) -> None:
    repo.table("orders")
    repo.policies({"gone": "{isolation: Serializable}", "orders": "{isolation: Serializable}"})
    found = checks(cli)
    assert found[repo.name("gone")]["health"] == "fail"
    assert found[repo.name("orders")]["health"] == "ok"


def test_a_missing_right_is_named(cli: Cli, lake: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_self: DiskRecords, _name: str) -> None:
        raise WindowError("the right to delete records is missing")

    monkeypatch.setattr(DiskRecords, "delete", refused)
    found = checks(cli)[f"records of {lake.name('orders')}"]
    assert (found["health"], found["found"]) == ("fail", "the right to delete records is missing")
    assert "--read-only" in found["fix"]


def test_a_store_that_replaces_records_is_found(cli: Cli, lake: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DiskRecords, "create", lambda _self, _name, _data: True)
    found = checks(cli)[f"records of {lake.name('orders')}"]
    assert "If-None-Match" in found["found"]
    assert "state:" in found["fix"]


def test_a_clock_that_is_behind(cli: Cli, lake: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 0.0)
    found = checks(cli)["clock"]
    assert found["health"] == "fail"
    assert "NTP" in found["fix"]


def test_a_branch_that_chooses_its_configuration(cli: Cli, lake: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_EVENT_NAME", "pull_request")
    assert "TABLECTL_BASE_CONFIG" in checks(cli)["CI"]["fix"]


DYNAMO = "conf: {spark.delta.logStore.s3a.impl: io.delta.storage.S3DynamoDBLogStore}"


@pytest.mark.parametrize(
    ("engine", "health", "fix"),
    [
        ("{}", "note", "`spark.delta.logStore.s3a.impl: io.delta.storage.S3DynamoDBLogStore`"),
        ("{conf: {spark.delta.logStore.s3.impl: io.delta.storage.S3DynamoDBLogStore}}", "note", "logStore.s3a.impl"),
        (f"{{{DYNAMO}}}", "ok", ""),
        ("{exclusive_commits: true}", "ok", ""),
        ("{remote: 'sc://spark'}", "ok", ""),
        ("{dialect: databricks}", "ok", ""),
    ],
)
def test_commits_that_another_driver_can_overwrite(
    cli: Cli, repo: Repository, s3: S3Server, bucket: str, engine: str, health: str, fix: str
) -> None:
    s3.upload(create(repo.lake / "orders") / "_delta_log", bucket, "lake/orders/_delta_log")
    place = bucket.replace("s3:", "s3a:")
    repo.policies(f"version: 1\ntables:\n  delta.`{place}/lake/orders`: {{isolation: Serializable}}\n")
    Path("tablectl.yaml").write_text(f"engine: {engine}\n")
    found = checks(cli)[f"commits in {place}"]
    assert (found["health"], fix in found["fix"]) == (health, True), found
    assert f"commits in {place}" not in checks(cli, "--read-only")


@pytest.fixture
def unity(monkeypatch: pytest.MonkeyPatch) -> Iterator[UnityServer]:
    """A Unity Catalog, and a Spark whose catalogs are those of ``engine.conf``."""

    class Spark:
        def __init__(self, conf: Mapping[str, str]) -> None:
            self.conf = conf

        def schemas(self, catalog: str) -> tuple[str, ...]:
            if f"spark.sql.catalog.{catalog}" not in self.conf:
                raise EngineError(f"the catalog {catalog} does not exist")
            return ("sales",)

        def close(self) -> None:
            pass

    monkeypatch.setattr(spark, "open_spark", lambda options, _stamp="": Spark(options.conf))
    with serving(UnityServer()) as server:
        yield server


def configure(url: str, conf: str = "{}", more: str = "") -> None:
    Path("tablectl.yaml").write_text(
        f"catalogs: {{lake: {{type: unity, url: '{url}'}}}}\nengine: {{catalog: lake, conf: {conf}{more}}}\n"
    )


CONNECTOR = "{spark.sql.catalog.lake: io.unitycatalog.spark.UCSingleCatalog}"


def test_a_catalog_that_needs_no_spark_is_asked_itself(cli: Cli, lake: Repository, unity: UnityServer) -> None:
    configure("http://127.0.0.1:1", CONNECTOR)
    found = checks(cli, "--engine")
    assert found["catalog lake"]["health"] == "fail"
    assert "http://127.0.0.1:1" in found["catalog lake"]["found"]
    assert found["engine"] == {"health": "ok", "subject": "engine", "found": "a local Spark starts", "fix": ""}


def test_a_catalog_that_shows_no_schema_is_not_healthy(cli: Cli, lake: Repository, unity: UnityServer) -> None:
    """A Unity Catalog answers 200 with an empty list if the token's user lacks every right."""
    configure(unity.url, CONNECTOR)
    found = checks(cli)["catalog lake"]
    assert (found["health"], found["found"]) == ("fail", "it answers, 0 schemas")
    assert "USE CATALOG" in found["fix"]
    unity.add_recorded()
    assert checks(cli)["catalog lake"]["health"] == "ok"


def test_a_connector_that_engine_conf_lacks_fails_before_an_apply_does(
    cli: Cli, lake: Repository, unity: UnityServer
) -> None:
    configure(unity.url)
    found = checks(cli)["connector of lake"]
    assert (found["health"], found["found"]) == (
        "fail",
        "engine.conf has no spark.sql.catalog.lake, which an apply needs",
    )
    assert checks(cli, "--engine")["connector of lake"]["found"] == "the catalog lake does not exist"
    assert "connector of lake" not in checks(cli, "--read-only")  # this machine only plans
    configure(unity.url, CONNECTOR)
    assert "connector of lake" not in checks(cli)
    assert checks(cli, "--engine")["connector of lake"]["found"] == "Spark lists it, 1 schema"
    configure(unity.url, more=", remote: 'sc://localhost:1'")
    assert "connector of lake" not in checks(cli)  # the server has the settings


def test_a_token_that_is_bound_to_another_host_reaches_no_engine(
    cli: Cli, lake: Repository, unity: UnityServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(unity.url, CONNECTOR)
    monkeypatch.setenv("UNITY_CATALOG_TOKEN", "secret")
    monkeypatch.setenv("UNITY_CATALOG_TOKEN_HOST", "unity.example.com")
    monkeypatch.setattr(spark, "open_spark", lambda _options, _stamp="": pytest.fail("Spark got the token"))
    found = checks(cli, "--engine")
    for subject in ("catalog lake", "connector of lake"):
        assert "UNITY_CATALOG_TOKEN_HOST allows unity.example.com alone" in found[subject]["found"]
