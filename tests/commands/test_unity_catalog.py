"""Commands on tables of a Unity Catalog: no Spark, and no storage but what the catalog vends."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tablectl.engine import spark as spark_module
from tablectl.model.errors import LiveError
from tablectl.storage.log_stores import Stores
from tests.catalogs.unity_server import RECORDINGS, UnityServer, serving
from tests.commands.conftest import Repository, Result

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


@pytest.mark.parametrize(
    "command", [["plan"], ["drift"], ["status"], ["lint"], ["apply", "--yes"], ["import", "lake.s.t"]]
)
@pytest.mark.parametrize("job", [{"CI_MERGE_REQUEST_IID": "5"}, {"CHANGE_ID": "5"}, {"BUILD_REASON": "PullRequest"}])
def test_a_branch_in_a_job_of_its_merge_request_sends_no_token_and_runs_no_command(
    repo: Repository,
    cli: Cli,
    unity: UnityServer,
    monkeypatch: pytest.MonkeyPatch,
    command: list[str],
    job: dict[str, str],
) -> None:
    """The attacker points the catalog at a server of his own. Without the base's file, nothing is used."""
    for name, value in (job | {"UNITY_CATALOG_TOKEN": "t0ken-of-ci"}).items():
        monkeypatch.setenv(name, value)
    with serving(UnityServer()) as evil:
        (repo.root / "tablectl.yaml").write_text(
            f"catalogs: {{lake: {{type: unity, url: '{evil.url}'}}}}\nengine: {{catalog: lake}}\n"
            "notify: [{command: [touch, stolen]}]\n"
        )
        policies(repo, "  lake.sales.man: {isolation: Serializable}\n")
        done = cli(*command)
        assert (done.code, evil.asked) == (64, [])
    assert "tablectl.yaml: `catalogs`, `engine`, `notify` count only once they are merged" in done.err
    assert "TABLECTL_BASE_CONFIG" in done.err
    assert not (repo.root / "stolen").exists()
    assert cli("validate").code == 0


@pytest.mark.parametrize("name", ["AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "MY_UNITY_CATALOG_TOKEN", "TABLECTL_ENV"])
def test_a_branch_at_home_sends_no_other_secret_of_the_environment(repo: Repository, cli: Cli, name: str) -> None:
    (repo.root / "tablectl.yaml").write_text(
        f"catalogs: {{lake: {{type: unity, url: 'https://x', token_variable: {name}}}}}\n"
    )
    done = cli("plan")
    assert done.code == 1
    assert "needs UNITY_CATALOG_TOKEN, or that with a suffix such as UNITY_CATALOG_TOKEN_PROD" in done.err


def test_a_branch_at_home_sends_no_token_to_another_host_than_the_one_next_to_it(
    repo: Repository, cli: Cli, unity: UnityServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user names the host where the token is set, outside of every checkout."""
    monkeypatch.setenv("UNITY_CATALOG_TOKEN", "t0ken-of-mine")
    monkeypatch.setenv("UNITY_CATALOG_TOKEN_HOST", "unity.example.com")
    policies(repo, "  lake.sales.man: {isolation: Serializable}\n")
    done = cli("plan")
    assert (done.code, unity.asked) == (64, [])
    assert "UNITY_CATALOG_TOKEN_HOST allows unity.example.com alone" in done.err
    monkeypatch.setenv("UNITY_CATALOG_TOKEN_HOST", "127.0.0.1")
    assert cli("plan").code == 0
    assert len(unity.asked) == 1


@pytest.fixture
def lake_log(repo: Repository, unity: UnityServer) -> Path:
    """The recorded log, at a place of this machine."""
    place = repo.lake / "man"
    place.mkdir(parents=True)
    shutil.copytree(RECORDINGS / "man_delta_log", place / "_delta_log")
    unity.loads["sales.man"]["metadata"]["location"] = str(place)
    return place


@pytest.mark.usefixtures("lake_log")
def test_a_catalog_that_disagrees_with_the_log_is_drift_of_its_own(repo: Repository, cli: Cli) -> None:
    policies(repo, "  sales.man: {isolation: Serializable}\n")
    done = cli("drift")
    assert done.code == 2, done.err
    said = done.flat
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
    assert [each["change"]["attribute"] for each in table["differences"]] == ["isolation"]
    assert table["trouble"]


def test_what_the_catalog_sets_by_itself_is_not_imported(repo: Repository, cli: Cli, unity: UnityServer) -> None:
    done = cli("import", "lake.sales.man")
    assert done.code == 0, done.err
    assert yaml.safe_load(done.out)["tables"] == {
        "lake.sales.man": {"isolation": "Serializable", "clustering": ["id"], "properties": {"owner.team": "rest"}}
    }
    (comment,) = [line for line in done.out.splitlines()[1:] if "#" in line]  # and not a line for each of them
    assert "# left out: 11 settings of the catalog or Delta itself: " in comment
    assert "row_tracking" in comment


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
        ("{type: hive}", "is not a value of `catalogs.lake.type`"),
        ("{type: unity}", "needs `url`"),
        ("{type: unity, url: 'https://u:p@x'}", "user or a password"),
        ("{type: unity, url: 'https://x', token: abc}", "unknown key"),
        ("{type: unity, url: 'https://x', token_variable: 'dapi-12 34'}", "never the token itself"),
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


def test_the_recorded_tables_are_planned_with_every_read_of_storage_failing(
    repo: Repository, cli: Cli, unity: UnityServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []

    def refused(_stores: Stores, location: str) -> None:
        opened.append(location)
        raise LiveError(f"{location}: no right to read it")

    monkeypatch.setattr(Stores, "open", refused)
    policies(repo, "  sales.man: {isolation: default, clustering: [id]}\n  sales.ext: {isolation: Serializable}\n")
    plan = json.loads(cli("plan", "--format", "json").out)
    (table,) = plan["tables"]
    assert [change["attribute"] for change in table["changes"]] == ["isolation"]
    assert table["statements"][0]["phase"] == "closed", "without a history every kind of writer is expected"
    assert [each["name"] for each in plan["failures"]] == ["lake.sales.ext"]
    assert len(opened) == 2


@pytest.fixture
def databricks(repo: Repository, unity: UnityServer) -> UnityServer:
    """A managed table of Databricks: its entry has more than that of the open-source server."""
    unity.tables["sales.man"] |= {
        "enable_predictive_optimization": "INHERIT",
        "effective_predictive_optimization_flag": {"value": "ENABLE", "inherited_from_type": "CATALOG"},
    }
    unity.tables["sales.ext"] |= {"enable_predictive_optimization": "INHERIT"}
    with (repo.root / "tablectl.yaml").open("a") as file:
        file.write("\n")
    text = (repo.root / "tablectl.yaml").read_text()
    (repo.root / "tablectl.yaml").write_text(
        text.replace("{catalog: lake}", '{catalog: lake, dialect: databricks, runtime: "18.1"}')
    )
    return unity


def planned(cli: Cli, *more: str) -> Any:
    done = cli("plan", "--format", "json", *more)
    return json.loads(done.out)


def test_settings_of_the_catalog_are_planned_from_its_answers(
    repo: Repository, cli: Cli, databricks: UnityServer
) -> None:
    policies(repo, "  sales.man: {predictive_optimization: disabled, managed: true, clustering: auto}\n")
    (table,) = planned(cli)["tables"]
    assert [each["reason"] for each in table["refusals"]] == []
    assert [each["sql"] for each in table["statements"]] == [
        "ALTER TABLE `lake`.`sales`.`man`\nDISABLE PREDICTIVE OPTIMIZATION",
        "ALTER TABLE `lake`.`sales`.`man`\nCLUSTER BY AUTO",
    ]
    assert {each["phase"] for each in table["statements"]} == {"closed"}
    assert {each["evidence"] for each in table["statements"]} == {"documented only"}
    assert databricks.asked.count("GET /api/2.1/unity-catalog/tables/lake.sales.man") == 1


def test_every_report_marks_statements_that_were_never_run(
    repo: Repository, cli: Cli, databricks: UnityServer, tmp_path: Path
) -> None:
    policies(repo, "  sales.man: {predictive_optimization: disabled}\n")
    for form in ("text", "markdown", "junit", "sarif", "html", "json"):
        assert "documented only" in " ".join(cli("plan", "--format", form).out.split()), form
    assert cli("plan", "--out", str(tmp_path / "p.json")).code == 0
    assert "documented only" in " ".join(cli("show", str(tmp_path / "p.json")).out.split())


def test_an_external_table_becomes_a_managed_one_first(repo: Repository, cli: Cli, databricks: UnityServer) -> None:
    path = repo.table("orders")
    databricks.add_external("web.orders", str(path), enable_predictive_optimization="INHERIT")
    policies(repo, "  web.orders: {predictive_optimization: enabled, managed: true}\n")
    (table,) = planned(cli)["tables"]
    assert [each["verb"] for each in table["statements"]] == ["SET MANAGED"]
    assert "D005" in {each["code"] for each in table["findings"]}


def test_the_open_source_catalog_does_not_tell_predictive_optimization(
    repo: Repository, cli: Cli, databricks: UnityServer
) -> None:
    del databricks.tables["sales.man"]["enable_predictive_optimization"]
    del databricks.tables["sales.man"]["effective_predictive_optimization_flag"]
    policies(repo, "  sales.man: {predictive_optimization: enabled}\n")
    (table,) = planned(cli)["tables"]
    assert [each["reason"] for each in table["refusals"]] == ["no catalog tells whether predictive optimization is on"]


def test_drift_of_a_setting_of_the_catalog_is_drift(repo: Repository, cli: Cli, databricks: UnityServer) -> None:
    policies(repo, "  sales.man: {predictive_optimization: enabled}\n")
    (table,) = json.loads(cli("drift", "--format", "json").out)["tables"]
    assert [(each["change"]["attribute"], each["change"]["before"]) for each in table["differences"]] == [
        ("predictive_optimization", "inherit")
    ]


def test_a_runtime_that_is_too_old_is_reported_by_validate_explain_and_plan(
    repo: Repository, cli: Cli, databricks: UnityServer
) -> None:
    config = repo.root / "tablectl.yaml"
    config.write_text(config.read_text().replace("18.1", "14.3"))
    policies(repo, "  sales.man: {clustering: auto}\n")
    validated = json.loads(cli("validate", "--format", "json").out)
    assert [each["code"] for each in validated["findings"]] == ["D002"]
    (value,) = json.loads(cli("explain", "lake.sales.man", "--format", "json").out)["values"]
    assert [(each["capability"]["since"], each["fulfilled"]) for each in value["runtime"]] == [([15, 4], False)]
    said = " ".join(cli("explain", "lake.sales.man").out.split())
    assert "CLUSTER BY AUTO needs Databricks Runtime 15.4 or newer, which `engine.runtime` is not" in said
    assert "https://docs.databricks.com/aws/en/sql/language-manual/sql-ref-syntax-ddl-cluster-by" in said
    (table,) = planned(cli)["tables"]
    assert "Databricks Runtime 14.3 cannot run it" in table["refusals"][0]["reason"]
    assert "fail" in " ".join(cli("explain", "lake.sales.man").out.split())


def test_a_plan_as_databricks_has_no_safe_phase(repo: Repository, cli: Cli, unity: UnityServer) -> None:
    path = repo.table("orders")
    unity.add_external("web.orders", str(path))
    policies(repo, "  web.orders: {deletion_vectors: enabled}\n")
    (mine,) = planned(cli)["tables"]
    assert "free" in {each["phase"] for each in mine["statements"]}
    (theirs,) = planned(cli, "--as", "databricks")["tables"]
    assert {each["phase"] for each in theirs["statements"]} == {"closed"}
