"""Commands on tables of a Unity Catalog: no Spark, and no storage but what the catalog vends."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from tablectl.engine import spark as spark_module
from tests.catalogs.unity_server import RECORDINGS, UnityServer, serving
from tests.cli.conftest import Repository, Result

Cli = Callable[..., Result]


@pytest.fixture
def unity(repo: Repository, monkeypatch: pytest.MonkeyPatch) -> Iterator[UnityServer]:
    with serving(UnityServer()) as server:
        server.add_recorded()
        config = f"engine: {{catalog: lake}}\ncatalogs:\n  lake: {{type: unity, url: '{server.url}'}}\n"
        (repo.root / "tablectl.yaml").write_text(config)
        monkeypatch.setattr(spark_module, "open_spark", lambda *_: pytest.fail("Spark was started"))
        yield server


def policies(repo: Repository, body: str) -> None:
    repo.policies(f"version: 1\ntables:\n{body}")


def test_a_catalog_managed_table_is_planned_from_one_answer(repo: Repository, cli: Cli, unity: UnityServer) -> None:
    policies(repo, "  sales.man: {isolation: Serializable, clustering: [id], row_tracking: enabled}\n")
    done = cli("plan", "--format", "json")
    assert done.code == 0, done.err
    plan = json.loads(done.out)
    assert plan["unchanged"] == ["lake.sales.man"]
    assert unity.asked == ["GET /api/2.1/unity-catalog/delta/v1/catalogs/lake/schemas/sales/tables/man"]


def test_a_pattern_lists_the_catalog(repo: Repository, cli: Cli, unity: UnityServer) -> None:
    path = repo.table("orders")
    unity.add_external("web.orders", str(path))
    policies(repo, "  lake.*.orders: {isolation: Serializable}\n  lake.sales.man: {isolation: Serializable}\n")
    plan = json.loads(cli("plan", "--format", "json").out)
    assert [table["name"] for table in plan["tables"]] == ["lake.web.orders"]
    assert plan["unchanged"] == ["lake.sales.man"]


def test_a_catalog_that_does_not_answer_fails_its_tables_alone(repo: Repository, cli: Cli, unity: UnityServer) -> None:
    repo.table("orders")
    policies(
        repo, f"  lake.sales.none: {{isolation: Serializable}}\n  {repo.name('orders')}: {{isolation: Serializable}}\n"
    )
    done = cli("plan", "--format", "json")
    plan = json.loads(done.out)
    assert [(each["name"], each["message"]) for each in plan["failures"]] == [
        ("lake.sales.none", "lake.sales.none does not exist")
    ]
    assert len(plan["tables"]) == 1


def test_no_catalog_is_asked_about_other_tables(repo: Repository, cli: Cli, unity: UnityServer) -> None:
    repo.table("orders")
    repo.policies({"orders": "{isolation: Serializable}"})
    assert cli("plan").code == 0
    assert unity.asked == []


def test_the_catalogs_of_a_branch_do_not_count_before_its_merge(
    repo: Repository, cli: Cli, unity: UnityServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A branch must not send the token of CI to a server of its choice."""
    base = tmp_path / "base.yaml"
    base.write_text((repo.root / "tablectl.yaml").read_text())
    monkeypatch.setenv("TABLECTL_BASE_CONFIG", str(base))
    monkeypatch.setenv("UNITY_CATALOG_TOKEN", "t0ken-of-ci")
    with serving(UnityServer()) as evil:
        (repo.root / "tablectl.yaml").write_text(
            f"catalogs: {{lake: {{type: unity, url: '{evil.url}'}}}}\nengine: {{catalog: lake}}\n"
        )
        policies(repo, "  lake.sales.man: {isolation: Serializable}\n")
        assert json.loads(cli("plan", "--format", "json").out)["unchanged"] == ["lake.sales.man"]
        assert evil.asked == []
    assert len(unity.asked) == 1


@pytest.fixture
def lake_log(repo: Repository, unity: UnityServer) -> Path:
    """The recorded log, at a place of this machine."""
    place = repo.lake / "man"
    place.mkdir(parents=True)
    (place / "_delta_log").symlink_to(RECORDINGS / "man_delta_log")
    unity.loads["sales.man"]["metadata"]["location"] = str(place)
    return place


@pytest.mark.usefixtures("lake_log")
def test_a_catalog_that_disagrees_with_the_log_is_drift_of_its_own(repo: Repository, cli: Cli) -> None:
    policies(repo, "  sales.man: {isolation: Serializable}\n")
    done = cli("drift")
    assert done.code == 2, done.err
    said = " ".join(done.out.split())
    assert "property owner.team is rest in the catalog and not set in the log" in said
    assert "1 table differs between catalog and log" in said
    (table,) = json.loads(cli("drift", "--format", "json").out)["tables"]
    assert table["differences"] == []
    assert table["catalog"] == [{"what": "property owner.team", "catalog": "rest", "log": None}]
    for form in ("markdown", "junit", "sarif", "html"):
        assert "owner.team" in cli("drift", "--format", form).out


@pytest.mark.usefixtures("lake_log")
def test_masked_values_of_a_catalog_stay_hidden(repo: Repository, cli: Cli) -> None:
    with (repo.root / "tablectl.yaml").open("a") as file:
        file.write("reports: {mask: ['owner.*']}\n")
    policies(repo, "  sales.man: {isolation: Serializable}\n")
    for form in ("text", "json", "markdown", "junit", "sarif", "html"):
        assert "rest in" not in cli("drift", "--format", form).out
    (table,) = json.loads(cli("drift", "--format", "json").out)["tables"]
    assert table["catalog"][0]["catalog"] != "rest"


def test_without_a_right_on_storage_drift_is_that_of_the_catalog(
    repo: Repository, cli: Cli, unity: UnityServer
) -> None:
    policies(repo, "  sales.man: {isolation: default}\n")
    done = cli("drift", "--format", "json")
    (table,) = json.loads(done.out)["tables"]
    assert [each["attribute"] for each in table["differences"]] == ["isolation"]
    assert table["trouble"]


def test_what_the_catalog_sets_by_itself_is_not_imported(repo: Repository, cli: Cli, unity: UnityServer) -> None:
    done = cli("import", "lake.sales.man")
    assert done.code == 0, done.err
    assert yaml.safe_load(done.out)["tables"] == {
        "lake.sales.man": {"isolation": "Serializable", "clustering": ["id"], "properties": {"owner.team": "rest"}}
    }
    assert "row_tracking is enabled, which the catalog sets by itself" in done.out + done.err


def test_a_refused_statement_leaves_the_table_alone(repo: Repository, cli: Cli, unity: UnityServer) -> None:
    policies(repo, "  sales.man: {deletion_vectors: dropped}\n")
    plan = json.loads(cli("plan", "--format", "json").out)
    (table,) = plan["tables"]
    assert [each["condition"] for each in table["refusals"]] == ["DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION"]


def test_a_plan_shows_what_another_dialect_would_mean(repo: Repository, cli: Cli, unity: UnityServer) -> None:
    policies(repo, "  sales.man: {isolation: default}\n")
    done = cli("plan", "--as", "databricks", "--format", "json")
    assert json.loads(done.out)["dialect"] == "databricks"
    said = " ".join(done.err.split())
    assert "`isolation: default` means WriteSerializable on Databricks and Serializable on open-source Delta" in said
    assert "lake.sales.man" in said
    assert "means" not in cli("plan").err
    assert cli("plan", "--as", "databricks", "--out", "p.json").code == 64
    assert cli("plan", "--as", "spark").code == 64


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{type: hive}", "`catalogs.lake.type` needs"),
        ("{type: unity}", "needs `url`"),
        ("{type: unity, url: 'https://u:p@x'}", "user or a password"),
        ("{type: unity, url: 'https://x', token: abc}", "unknown key"),
        ("{type: unity, url: 'https://x', token_variable: 'dapi-12 34'}", "name of an environment variable"),
        ("{type: unity, url: 'https://x', profile: DEV}", "only `login: databricks`"),
        ("{type: spark, url: 'https://x'}", "engine.conf"),
    ],
)
def test_wrong_entries_name_their_line(repo: Repository, cli: Cli, entry: str, message: str) -> None:
    (repo.root / "tablectl.yaml").write_text(f"catalogs:\n  lake: {entry}\n")
    policies(repo, "  lake.sales.man: {isolation: Serializable}\n")
    done = cli("plan")
    assert done.code in {1, 64}
    assert message in done.err
