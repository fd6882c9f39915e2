"""``init``: a repository that works as it stands."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tablectl.cli.scaffold import scaffold
from tablectl.version import __version__
from tests.cli.conftest import Cli, Repository

ROOT = Path(__file__).parents[2]


def load(path: Path | str) -> Any:
    return yaml.safe_load(Path(path).read_text(encoding="utf-8"))


def test_an_empty_folder_becomes_a_repository(repo: Repository, cli: Cli) -> None:
    ran = cli("init")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == (
        "created tablectl.yaml\n"
        "created policies/tables.yaml\n"
        "created plans/.gitignore\n"
        "created .github/workflows/tablectl.yml\n"
        "created .pre-commit-config.yaml\n"
        "\n"
        "Next:\n"
        "  tablectl import TABLES… --output policies/tables.yaml --force\n"
        "  tablectl validate\n"
        "  tablectl plan\n"
        "  git init && git add --all && pre-commit install\n"
    )
    assert cli("validate").code == 0
    assert cli("plan", "--detailed-exitcode").code == 0


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
    Path("tablectl.yaml").write_text(re.sub(r"(?m)^# ( *[a-z]+:)", r"\1", config))
    assert cli("validate").code == 0


def test_all_that_is_in_the_way_is_told_and_nothing_is_written(repo: Repository, cli: Cli) -> None:
    Path("tablectl.yaml").write_text("policies: mine\n")
    Path(".pre-commit-config.yaml").symlink_to("nowhere")
    ran = cli("init", ".", "delta.`/none`")
    assert ran.code == 1
    assert ran.err == (
        "error: .pre-commit-config.yaml: the file exists already\n"
        "  hint: init overwrites nothing: move these files away, or edit them by hand\n"
        "tablectl.yaml: the file exists already\n"
    )
    assert sorted(each.name for each in Path().iterdir()) == [".pre-commit-config.yaml", "tablectl.yaml"]
    Path("file").write_text("")
    assert "this is not a folder" in cli("init", "file").err


def test_a_table_that_cannot_be_read_keeps_everything_from_being_written(repo: Repository, cli: Cli) -> None:
    repo.table("orders")
    ran = cli("init", "new", repo.name("gone"), repo.name("orders"), f"delta.`{repo.lake}/x*`")
    assert ran.code == 1
    assert "no such directory" in ran.err
    assert "matches no table" in ran.err
    assert not Path("new").exists()


def test_for_machines(repo: Repository, cli: Cli) -> None:
    told = json.loads(cli("init", "new", "--format", "json").out)
    assert told["created"] == list(scaffold())
    assert told["next"][0] == "cd new"


def test_its_workflow_is_one_for_pull_requests_merges_schedules_and_by_hand() -> None:
    """What it does is tested in ``tests/ci/test_action.py``."""
    workflow = yaml.safe_load(scaffold()[".github/workflows/tablectl.yml"])
    assert set(workflow["jobs"]) == {"plan", "apply", "drift"}
    assert set(workflow[True]) == {
        "pull_request",
        "merge_group",
        "push",
        "schedule",
        "workflow_dispatch",
    }  # YAML 1.1: `on` is true
    assert workflow["env"]["TABLECTL"] == f"=={__version__}"


def test_the_hook_of_a_new_repository_is_ours(repo: Repository) -> None:
    (hook,) = yaml.safe_load(scaffold()[".pre-commit-config.yaml"])["repos"][0]["hooks"]
    (own,) = load(ROOT / ".pre-commit-hooks.yaml")
    assert {key: own[key] for key in ("id", "name", "entry", "language", "files", "pass_filenames")} == {
        key: hook[key] for key in ("id", "name", "entry", "language", "files", "pass_filenames")
    }
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
    assert sorted(listed.stdout.split()) == sorted(scaffold())


def test_what_it_writes_can_be_read_by_others(repo: Repository, cli: Cli) -> None:
    cli("init")
    assert stat.S_IMODE(Path("tablectl.yaml").stat().st_mode) == 0o644
