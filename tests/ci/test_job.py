"""What a job reads and prints."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from tablectl.ci.job import CiJob, CommandResult, run_tablectl
from tablectl.model.errors import UsageError
from tests.ci.conftest import read_outputs


def test_no_value_ends_its_output_or_begins_another(tmp_path: Path) -> None:
    hostile = "x\nEOF\nevil<<EOF\nyes\nEOF\nplan-run=1"
    CiJob({"GITHUB_OUTPUT": str(tmp_path / "out")}).output(exit_code=2, changes=True, report=hostile)
    assert read_outputs(tmp_path / "out") == {"exit-code": "2", "changes": "true", "report": hostile}


def test_an_annotation_is_one_line() -> None:
    log = io.StringIO()
    CiJob({}, log=log).tell("error", "100 %\n::add-mask::x")
    assert log.getvalue() == "::error title=tablectl::100 %25%0A::add-mask::x\n"


def test_what_a_command_prints_is_not_an_order_to_the_runner() -> None:
    log = io.StringIO()

    def run(_args: Sequence[str]) -> CommandResult:
        log.write("::add-mask::everything\n")
        return CommandResult(0, "")

    CiJob({}, run, log).tablectl("plan")
    first, said, last = log.getvalue().splitlines()
    mark = first.removeprefix("::stop-commands::")
    assert (said, last) == ("::add-mask::everything", f"::{mark}::")
    assert len(mark) == 32


@pytest.mark.parametrize("name", ["../x", "a b", "a" * 61, "$(id)", "-x"])
def test_a_name_is_one_for_artifacts_and_folders(name: str) -> None:
    with pytest.raises(UsageError):
        CiJob({"INPUT_NAME": name}).folder  # noqa: B018


def test_a_run_is_named_by_its_number() -> None:
    assert CiJob({"INPUT_PLAN_RUN": " 42 "}).number("plan_run") == 42
    assert CiJob({}).number("plan_run") is None
    with pytest.raises(UsageError, match="`plan-run`"):
        CiJob({"INPUT_PLAN_RUN": "1/../../repos"}).number("plan_run")


def test_arguments_are_lines_and_no_shell_reads_them() -> None:
    assert CiJob({"INPUT_ARGUMENTS": "--max-tables=20\n\n  --select=lake.$(id) x\n"}).arguments == [
        "--max-tables=20",
        "--select=lake.$(id) x",
    ]


@pytest.mark.parametrize(
    ("arguments", "env"),
    [("", None), ("--tag=env", None), ("--env=prod", "prod"), ("--tag=x\n--env\nprod\n--wait=1", "prod")],
)
def test_the_environment_of_the_arguments(arguments: str, env: str | None) -> None:
    assert CiJob({"INPUT_ARGUMENTS": arguments}).named_env == env


@pytest.mark.parametrize("event", ["", "[]", '{"pull_request": 7}', '{"pull_request": {"number": "7; rm"}}', "\xff"])
def test_an_event_of_any_form_is_of_no_pull_request(tmp_path: Path, event: str) -> None:
    (tmp_path / "event.json").write_text(event, encoding="latin-1")
    assert CiJob({"GITHUB_EVENT_PATH": str(tmp_path / "event.json")}).pull_request is None
    assert CiJob({}).pull_request is None


def test_a_command_sees_no_token_and_no_module_of_the_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    monkeypatch.setenv("INPUT_TOKEN", "ghs_secret")
    (tmp_path / "tablectl.py").write_text("import os; print(os.environ)")
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "p.yaml").write_text("version: 1\ntables: {a.b: {clusterin: [x]}}\n")
    ran = run_tablectl(["validate"])
    assert ran.code == 1
    assert "did you mean `clustering`?" in ran.err
    said = capfd.readouterr()
    assert said.err == ran.err
    assert "ghs_secret" not in said.out + said.err
    assert os.environ["INPUT_TOKEN"] == "ghs_secret"
