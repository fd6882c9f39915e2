"""``init``: a repository that works as it stands."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import yaml

from tablectl.commands import lock
from tablectl.commands.init import scaffold
from tablectl.commands.lock import ci_files
from tablectl.model.install_source import CiSystem, parse_source
from tablectl.policies.read_config import load_config
from tests.commands.conftest import Cli, FakeSpark, Repository
from tests.commands.log_lake import create

ROOT = Path(__file__).parents[2]


def load(path: Path | str) -> Any:
    return yaml.safe_load(Path(path).read_text(encoding="utf-8"))


GIT = f"git+https://git.example/o/r@{'0' * 40}"
WRITTEN = (
    "created tablectl.yaml\n"
    "created policies/tables.yaml\n"
    "created policies/README.md\n"
    "created tablectl.schema.json\n"
    "created plans/.gitignore\n"
    "created plans/README.md\n"
    "created .gitignore\n"
    "created .pre-commit-config.yaml\n"
)


@pytest.fixture(autouse=True)
def installed_from_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "_origin", lambda _distribution: None)


def test_an_empty_folder_becomes_a_repository(repo: Repository, cli: Cli) -> None:
    ran = cli("init", "--source", GIT)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == (
        WRITTEN + "created .github/workflows/tablectl.yml\n"
        "created requirements/tablectl-plan.lock\n"
        "created requirements/tablectl-apply.lock\n"
        "created requirements/tablectl.txt\n"
        "\n"
        "Next:\n"
        "  tablectl import TABLES… --out policies/tables.yaml --force\n"
        "  tablectl validate\n"
        "  tablectl plan\n"
        "  git init && git add --all && pre-commit install\n"
    )
    assert cli("validate").code == 0
    assert "no policy names a table" in cli("plan").out


@pytest.mark.parametrize("place", ["delta.`{lake}/*`", "{lake}", "{lake}/"])
def test_an_empty_lake_gets_a_pattern_for_its_first_tables(repo: Repository, cli: Cli, place: str) -> None:
    repo.lake.mkdir(exist_ok=True)
    ran = cli("init", "new/lake", place.format(lake=repo.lake))
    assert ran.code == 0, ran.err
    assert "`tablectl create` makes the first one" in ran.err
    os.chdir("new/lake")
    assert cli("validate").code == 0
    assert cli("plan").code == 0
    schema = {"type": "struct", "fields": [{"name": "id", "type": "long", "nullable": True, "metadata": {}}]}
    Path("orders.json").write_text(json.dumps(schema))
    shown = cli("create", f"delta.`{repo.lake}/orders`", "--schema", "orders.json", "--show")
    assert shown.out == f"CREATE TABLE `delta`.`{repo.lake}/orders` (\n  `id` BIGINT\n)\nUSING DELTA\n", shown.err


def test_with_tables_its_first_plan_is_empty(repo: Repository, cli: Cli) -> None:
    repo.table("orders", properties={"owner.team": "web"})
    ran = cli("init", "new/lake", f"delta.`{repo.lake}/*`")
    assert ran.code == 0
    assert "  cd new/lake\n  tablectl plan\n" in ran.out
    os.chdir("new/lake")
    assert cli("plan", "--detailed-exitcode").out == "No changes. 1 table matches its policy.\n"
    assert cli("drift").code == 0


def test_the_example_in_its_policies_is_one(repo: Repository, cli: Cli) -> None:
    cli("init")
    text = Path("policies/tables.yaml").read_text()
    Path("policies/tables.yaml").write_text(text.replace("tables: {}", "tables:").replace("#  ", "  "))
    assert cli("validate").out == "1 table: every policy is valid.\n"
    config = Path("tablectl.yaml").read_text()
    config = re.sub(r"(?m)^# ( *[a-z]+:)", r"\1", config).replace("HOST/PATH@COMMIT", f"host/path@{'0' * 40}")
    Path("tablectl.yaml").write_text(config)
    assert cli("validate").code == 0


def test_all_that_is_in_the_way_is_reported_and_nothing_is_written(repo: Repository, cli: Cli) -> None:
    Path("tablectl.yaml").write_text("policies: mine\n")
    Path("tablectl.schema.json").symlink_to("nowhere")
    ran = cli("init", ".", "delta.`/none`")
    assert ran.code == 1
    assert ran.err == (
        "error: tablectl.schema.json: this file exists\n"
        "  hint: init overwrites nothing: move these files away, or edit them by hand\n"
        "tablectl.yaml: this file exists\n"
    )
    assert sorted(each.name for each in Path().iterdir()) == ["tablectl.schema.json", "tablectl.yaml"]
    Path("file").write_text("")
    assert "this is not a folder" in cli("init", "file").err


def test_a_table_that_cannot_be_read_is_a_comment_and_costs_the_others_nothing(repo: Repository, cli: Cli) -> None:
    for name in ("orders", "a[x]", "b?*/deep/er/than/three"):
        repo.table(name)
    (repo.table("broken") / "_delta_log" / f"{0:020d}.json").write_text("not JSON\n")
    ran = cli("init", "new", repo.lake, repo.name("gone"), "--source", GIT)
    assert ran.code == 1
    assert "gone: no such directory" in ran.err
    assert f"{repo.lake}/broken/_delta_log/{0:020d}.json:1: " in ran.err
    text = Path("new/policies/tables.yaml").read_text()
    assert list(load("new/policies/tables.yaml")["tables"]) == [
        "delta.`${LAKE}/a[[]x]`",
        "delta.`${LAKE}/b[?][*]/deep/er/than/three`",
        "delta.`${LAKE}/orders`",
    ]
    comments = [line for line in text.splitlines() if line.startswith("  # left out: ")]
    assert [line.split(": ")[1] for line in comments] == ["delta.`${LAKE}/broken`", "delta.`${LAKE}/gone`"]
    assert len(comments) == 2
    os.chdir("new")
    assert cli("plan").code == 0
    assert "No changes" in cli("plan").out


def test_of_nothing_but_tables_that_cannot_be_read_nothing_is_written(repo: Repository, cli: Cli) -> None:
    ran = cli("init", "new", repo.name("gone"), f"delta.`{repo.lake}/x*`")
    assert ran.code == 1
    assert "no such directory" in ran.err
    assert "matches no table" in ran.err
    assert not Path("new").exists()


def test_a_relative_folder_is_a_place(repo: Repository, cli: Cli) -> None:
    repo.table("orders")
    Path("here").symlink_to(repo.lake)
    assert cli("init", "new", "here").code == 0
    assert list(load("new/policies/tables.yaml")["tables"]) == [
        repo.name("orders").replace(str(repo.lake), f"{repo.root}/here")
    ]


def test_for_machines(repo: Repository, cli: Cli) -> None:
    told = json.loads(cli("init", "new", "--format", "json").out)
    assert told["created"] == [*scaffold(), ".github/workflows/tablectl.yml"]
    assert told["next"][0] == "cd new"


def test_its_workflow_is_one_for_pull_requests_merges_schedules_and_by_hand() -> None:
    """What it does is tested in ``tests/ci/test_action.py``."""
    workflow = yaml.safe_load(ci_files(CiSystem.GITHUB)[".github/workflows/tablectl.yml"])
    assert set(workflow["jobs"]) == {"plan", "check", "apply", "drift"}
    assert set(workflow[True]) == {
        "pull_request",
        "merge_group",
        "push",
        "schedule",
        "workflow_dispatch",
    }  # YAML 1.1: `on` is true


def test_no_source_means_a_workflow_that_waits_for_one_and_no_package_of_an_index(repo: Repository, cli: Cli) -> None:
    ran = cli("init")
    told = "\nThe workflow cannot install tablectl yet: this one was installed from a place\nthat other machines"
    assert ran.out.startswith(WRITTEN + "created .github/workflows/tablectl.yml\n" + told)
    assert not Path("requirements").exists()
    for file in Path().rglob("*"):
        assert not file.is_file() or not re.search(r"tablectl(\[\w+\])?==", file.read_text())
    assert "nothing says where CI installs tablectl from" in cli("lock").err


def test_what_init_says_fits_a_terminal_and_names_the_chosen_ci(cli: Cli, repo: Repository) -> None:
    ran = cli("init", "--catalog", "none", "--ci", "gitlab")
    assert max(map(len, ran.out.splitlines())) <= 80
    assert "  tablectl lock\n" in ran.out
    assert Path(".gitlab-ci.yml").exists()
    assert "  tablectl import 'delta.`/data/lake/*`' --out policies/tables.yaml --force\n" in ran.out


def test_the_folder_of_all_tables_is_a_variable(repo: Repository, cli: Cli) -> None:
    repo.table("orders")
    repo.table("sales/items")
    assert cli("init", "new", repo.lake).code == 0
    assert load("new/tablectl.yaml")["variables"] == {"LAKE": str(repo.lake)}
    assert list(load("new/policies/tables.yaml")["tables"]) == ["delta.`${LAKE}/orders`", "delta.`${LAKE}/sales/items`"]
    os.chdir("new")
    assert cli("plan").out == "No changes. 2 tables match their policies.\n"


def test_the_name_of_a_table_is_not_taken_for_the_folder(repo: Repository, cli: Cli) -> None:
    repo.table("orders")
    repo.table("items")
    assert cli("init", f"delta.`{repo.lake}/*`").code == 0
    assert len(load("policies/tables.yaml")["tables"]) == 2
    ran = cli("init", repo.lake)
    assert (ran.code, f"tablectl init lake-policies {repo.lake}" in ran.err) == (64, True)
    assert sorted(each.name for each in repo.lake.iterdir()) == ["items", "orders"]


def test_a_lake_whose_tables_lie_deeper_is_not_taken_for_the_folder(repo: Repository, cli: Cli) -> None:
    repo.table("prod/emea/sales/orders")
    ran = cli("init", repo.lake)
    assert (ran.code, f"{repo.lake} holds Delta tables" in " ".join(ran.err.split())) == (64, True)
    assert [each.name for each in repo.lake.iterdir()] == ["prod"]
    Path("checkout/.git").mkdir(parents=True)
    Path("checkout/samples").symlink_to(repo.lake)
    assert cli("init", "checkout").code == 0, "a checkout may hold a sample"


@pytest.mark.parametrize(
    ("remote", "source"),
    [
        ("https://git.example/o/r.git", "git+https://git.example/o/r.git@"),
        ("git@git.example:o/r.git", "git+ssh://git@git.example/o/r.git@"),
        ("https://user:token@git.example/o/r", None),
        ("/work/other", None),
        (None, None),
    ],
)
@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_a_checkout_is_installed_from_its_remote_and_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, remote: str | None, source: str | None
) -> None:
    def git(*words: str) -> str:
        named = ("-c", "user.name=a", "-c", "user.email=a@example.com")
        return subprocess.run(["git", *named, *words], cwd=tmp_path, check=True, capture_output=True, text=True).stdout

    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "first")
    if remote:
        git("remote", "add", "origin", remote)
    record = json.dumps({"url": f"file://{tmp_path}", "dir_info": {"editable": True}})

    class Installed:
        def read_text(self, _name: str) -> str:
            return record

    monkeypatch.undo()
    monkeypatch.setattr(metadata, "distribution", lambda _name: Installed())
    found = lock.recorded_source()
    assert (found and found[0].text) == (source and source + git("rev-parse", "HEAD").strip())


@pytest.mark.parametrize("source", [None, "wheels"])
def test_without_a_commit_to_install_from_the_hook_runs_the_installed_tablectl(source: str | None) -> None:
    place = parse_source(source) if source else None
    (hook,) = yaml.safe_load(scaffold(source=place)[".pre-commit-config.yaml"])["repos"][0]["hooks"]
    assert hook["language"] == "system"
    assert "additional_dependencies" not in hook


@pytest.mark.parametrize("address", ["https://git.example/acme/tablectl", "ssh://git@git.example/acme/tablectl"])
def test_the_hook_installs_itself_from_the_commit_of_a_repository(address: str) -> None:
    found = scaffold(source=parse_source(f"git+{address}@{'a' * 40}"))[".pre-commit-config.yaml"]
    assert yaml.safe_load(found)["repos"] == [
        {"repo": address, "rev": "a" * 40, "hooks": [{"id": load(ROOT / ".pre-commit-hooks.yaml")[0]["id"]}]}
    ]


def test_files_that_most_repositories_have_are_kept(repo: Repository, cli: Cli) -> None:
    Path(".git").mkdir()
    Path(".gitignore").write_text("mine\n")
    ran = cli("init", "--ci", "none")
    assert ran.code == 0
    assert Path(".gitignore").read_text() == "mine\n"
    assert ".gitignore exists and is kept. Add to it:\n" in ran.out
    assert "  spark-warehouse/\n" in ran.out
    assert "git init" not in ran.out
    assert "created .gitignore" not in ran.out


def test_editors_find_the_schema_of_a_policy_file(repo: Repository, cli: Cli) -> None:
    cli("init")
    first = Path("policies/tables.yaml").read_text().splitlines()[0]
    schema = Path("policies") / first.removeprefix("# yaml-language-server: $schema=")
    assert json.loads(schema.read_text())["$schema"].startswith("https://json-schema.org/")


def test_lock_writes_the_files_of_the_setting(repo: Repository, cli: Cli) -> None:
    cli("init", "--source", GIT, "--ci", "none")
    assert cli("lock", "--ci", "gitlab").out == (
        "wrote requirements/tablectl-plan.lock\n"
        "wrote requirements/tablectl-apply.lock\n"
        "wrote requirements/tablectl.txt\n"
        "wrote .gitlab-ci.yml\n"
    )
    assert Path("requirements/tablectl.txt").read_text() == (
        f"tablectl-guard @ {GIT}#subdirectory=packages/tablectl-guard\ntablectl @ {GIT}\n"
    )
    assert "lock writes over no workflow" in cli("lock", "--ci", "gitlab").err
    assert cli("lock").code == 0


def test_the_hashes_of_a_url_must_be_known(repo: Repository, cli: Cli) -> None:
    Path("tablectl.yaml").write_text("install: {source: https://files.example/tablectl}\n")
    assert "the hash of tablectl-guard and tablectl at https://files.example/tablectl is unknown" in cli("lock").err
    hashes = f"{{tablectl: sha256:{'a' * 64}, tablectl-guard: sha256:{'b' * 64}}}"
    Path("tablectl.yaml").write_text(f"install: {{source: https://files.example/tablectl, hashes: {hashes}}}\n")
    assert cli("lock").code == 0
    assert f"    --hash=sha256:{'a' * 64}\n" in Path("requirements/tablectl.txt").read_text()


def test_wheels_of_a_folder_must_exist(repo: Repository, cli: Cli) -> None:
    ran = cli("init", "--source", "wheels")
    assert "put the two wheels of tablectl" in ran.err
    assert not Path("tablectl.yaml").exists()


@pytest.mark.parametrize(
    "source",
    [
        "tablectl",  # a folder of that name, never a package of an index
        GIT,
        "wheels/",
        "https://files.example:8443/a/b",
    ],
)
def test_sources(source: str) -> None:
    made = parse_source(source).requirement("tablectl", "0.1.0")
    assert made.startswith(("./", "tablectl @ git+", "tablectl @ https://"))


@pytest.mark.parametrize(
    "source",
    [
        "",
        "git+https://git.example/o/r@main",
        "git+https://git.example/o/r",
        "http://files.example/wheels",
        "../wheels",
        "wheels; id",
        "https://files.example/$(id)",
        "https://user:secret@files.example/",
        f"{GIT}\n-r evil",
        "-r",
    ],
)
def test_no_sources(source: str, cli: Cli) -> None:
    with pytest.raises(ValueError, match=r"^needs git\+https"):
        parse_source(source)


@pytest.mark.parametrize(
    ("record", "source"),
    [
        ({"url": "https://h/o/r", "vcs_info": {"vcs": "git", "commit_id": "0" * 40}}, f"git+https://h/o/r@{'0' * 40}"),
        ({"url": "https://h/w/x.whl", "archive_info": {"hashes": {"sha256": "a" * 64}}}, "https://h/w"),
        ({"url": "file:///work/tablectl", "dir_info": {"editable": True}}, None),
        ({"url": "file:///x.whl", "archive_info": {"hashes": {"sha256": "a" * 64}}}, None),
        ({"url": "https://h/w/x.whl", "archive_info": {}}, None),
        ({"url": "https://h/o/r", "vcs_info": {"vcs": "git", "commit_id": "main"}}, None),
        ([], None),
        (None, None),
    ],
)
def test_pip_records_where_it_installed_from(
    monkeypatch: pytest.MonkeyPatch, record: object, source: str | None
) -> None:
    class Installed:
        def read_text(self, _name: str) -> str | None:
            return None if record is None else json.dumps(record)

    monkeypatch.undo()
    monkeypatch.setattr(metadata, "distribution", lambda _name: Installed())
    found = lock.recorded_source()
    assert (found and found[0].text) == source


def test_the_hook_of_a_new_repository_is_ours(repo: Repository) -> None:
    (hook,) = yaml.safe_load(scaffold()[".pre-commit-config.yaml"])["repos"][0]["hooks"]
    (own,) = load(ROOT / ".pre-commit-hooks.yaml")
    for key in ("id", "name", "entry", "files", "pass_filenames"):
        assert own[key] == hook[key]
    assert own["language"] == "python"
    assert [ROOT / each for each in own["additional_dependencies"]] == [ROOT / "packages" / "tablectl-guard"]
    wanted = re.compile(hook["files"])
    assert [
        bool(wanted.search(name)) for name in ("policies/a/b.yml", "tablectl.yaml", "src/tablectl.yaml", "x.yaml")
    ] == [
        True,
        True,
        False,
        False,
    ]


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_saved_plans_stay_out_of_git(repo: Repository, cli: Cli) -> None:
    cli("init")
    subprocess.run(["git", "init", "-q"], check=True)
    Path("plans/today.json").write_text("{}")
    listed = subprocess.run(
        ["git", "ls-files", "--others", "--exclude-standard"], check=True, capture_output=True, text=True
    )
    assert sorted(listed.stdout.split()) == sorted([*scaffold(), ".github/workflows/tablectl.yml"])


def test_what_it_writes_can_be_read_by_others(repo: Repository, cli: Cli) -> None:
    cli("init")
    assert stat.S_IMODE(Path("tablectl.yaml").stat().st_mode) == 0o644


# A catalog


def engine_of(*options: str, cli: Cli) -> Any:
    ran = cli("init", "new", "--ci", "none", "--catalog", *options)
    assert (ran.code, ran.err) == (0, "")
    assert "tablectl import --all --out policies/tables.yaml --force" in ran.out
    found = load("new/tablectl.yaml")
    load_config(Path("new"), {})
    shutil.rmtree("new")
    return found


def test_a_hive_metastore_is_connected_by_its_service_or_its_database(repo: Repository, cli: Cli) -> None:
    hive = {"spark.sql.catalogImplementation": "hive"}
    assert engine_of("hive", cli=cli)["engine"] == {"conf": hive}
    uris = {"spark.hadoop.hive.metastore.uris": "thrift://m:9083"}
    assert engine_of("hive", "--catalog-url", "thrift://m:9083", cli=cli)["engine"] == {"conf": {**hive, **uris}}
    Path("pg.jar").write_bytes(b"")
    url = "jdbc:postgresql://db.example/metastore"
    conf = engine_of("hive", "--catalog-url", url, "--catalog-driver", "pg.jar", cli=cli)["engine"]["conf"]
    assert conf["spark.hadoop.javax.jdo.option.ConnectionURL"] == url
    assert conf["spark.hadoop.javax.jdo.option.ConnectionPassword"] == "${env.METASTORE_PASSWORD}"
    assert conf["spark.driver.extraClassPath"] == str(Path("pg.jar").absolute())


def test_glue_and_unity_are_entries_of_catalogs(repo: Repository, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    found = engine_of("glue", cli=cli)
    assert found["catalogs"] == {"lake": {"type": "glue", "region": "eu-west-1"}}
    assert found["engine"] == {"catalog": "lake"}
    found = engine_of("unity", "--catalog-url", "https://uc.example", "--catalog-name", "main", cli=cli)
    assert found["catalogs"] == {"main": {"type": "unity", "url": "https://uc.example"}}
    assert found["engine"] == {"catalog": "main"}


def test_the_commented_connector_of_unity_catalog_is_valid_once_it_is_uncommented(repo: Repository, cli: Cli) -> None:
    cli("init", "new", "--ci", "none", "--catalog", "unity", "--catalog-url", "https://uc.example")
    file = Path("new/tablectl.yaml")
    text = file.read_text()
    begin = text.index("#   conf:")
    lines = text[begin:].splitlines()[:3]
    file.write_text(text.replace("\n".join(lines), "\n".join(line.removeprefix("# ") for line in lines)))
    conf = load_config(Path("new"), {}).engine.conf
    spark = ".".join(metadata.version("pyspark").split(".")[:2])
    assert conf == {
        "spark.jars.packages": f"io.unitycatalog:unitycatalog-spark_{spark}_2.13:0.6.0",
        "spark.sql.catalog.lake": "io.unitycatalog.spark.UCSingleCatalog",
    }


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--catalog", "iceberg"], "is not one of 'hive', 'glue', 'unity', 'none'"),
        (["--catalog-url", "thrift://m:9083"], "go with --catalog"),
        (["--catalog", "unity"], "needs --catalog-url"),
        (["--catalog", "glue", "--catalog-url", "https://x"], "does not go with --catalog glue"),
        (["--catalog", "hive", "--catalog-url", "ftp://x"], "is not a Hive metastore"),
        (["--catalog", "hive", "--catalog-url", "jdbc:oracle:x"], "is not a Hive metastore"),
        (["--catalog", "hive", "--catalog-url", "jdbc:postgresql://h/d"], "needs --catalog-driver"),
        (["--catalog", "hive", "--catalog-url", "jdbc:postgresql://h/d?user=a&password=geheim"], "holds a user"),
        (["--catalog", "unity", "--catalog-url", "https://me:geheim@uc.example"], "holds a user"),
        (["--catalog", "hive", "--catalog-name", "x"], "--catalog-name 'x' cannot be used"),
        (["--catalog", "glue", "--catalog-name", "a.b"], "--catalog-name 'a.b' cannot be used"),
        (["--catalog", "glue", "--catalog-driver", "x.jar"], "goes with a jdbc: address"),
    ],
)
def test_options_of_a_catalog_that_make_no_sense_are_errors(
    repo: Repository, cli: Cli, options: list[str], said: str
) -> None:
    ran = cli("init", "new", *options)
    assert ran.code == 64
    assert said in ran.err
    assert "geheim" not in ran.err
    assert not Path("new").exists()


def test_the_first_policies_come_from_the_catalog_that_was_named(
    repo: Repository, cli: Cli, fake_spark: FakeSpark
) -> None:
    fake_spark.catalog["spark_catalog", "sales", "orders"] = create(repo.lake / "orders", properties={"a.b": "c"})
    Path("tablectl.yaml").write_text("engine: {catalog: other}\n")
    ran = cli("init", "new", "sales.*", "--catalog", "hive", "--catalog-url", "thrift://m:9083")
    assert ran.code == 0, ran.err
    assert dict(fake_spark.options[0].conf)["spark.hadoop.hive.metastore.uris"] == "thrift://m:9083"
    os.chdir("new")
    assert cli("plan", "--detailed-exitcode").code == 0


def test_an_existing_repository_is_not_told_to_start_git_again(repo: Repository, cli: Cli) -> None:
    Path(".git").mkdir()
    ran = cli("init", "policies-of-lake")
    assert "git init" not in ran.out
    assert "git add --all && pre-commit install" in ran.out
    first = Path("policies-of-lake/policies/tables.yaml").read_text().splitlines()[0]
    assert first == "# yaml-language-server: $schema=../tablectl.schema.json"
    assert json.loads(Path("policies-of-lake/tablectl.schema.json").read_text())["type"] == "object"
    assert "spark-warehouse/" in Path("policies-of-lake/.gitignore").read_text()
