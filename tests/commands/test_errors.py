"""What is said when a command has no result: to people on standard error, to programs in place of the result."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tablectl.commands import apply, plan, report_facts
from tablectl.commands import output as output_module
from tablectl.reports import render
from tests.commands.conftest import Cli, FakeSpark, Repository


@pytest.fixture
def one(repo: Repository) -> Repository:
    repo.table("a")
    repo.policies({"a": "{isolation: Serializable, properties: {owner.team: web}}"})
    return repo


TABLE = "lake.sales.orders"
COMMANDS = (
    ["plan"],
    ["apply"],
    ["drift"],
    ["import", TABLE],
    ["explain", TABLE],
    ["explain", "ConcurrentAppendException", "--table", TABLE],
    ["conflicts", TABLE],
    ["conflicts", TABLE, "--between", "SELECT 1", "SELECT 2"],
    ["window", "show", TABLE],
    ["window", "break", TABLE, "--reason", "r"],
    ["init", "new", TABLE],
)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_what_is_wrong_in_files_is_json_where_results_are(cli: Cli, one: Repository, command: list[str]) -> None:
    Path("tablectl.yaml").write_text("engine: {dialekt: oss}\nwindow: {ttl: 5}\n")
    result = cli(*command, "--format", "json")
    body = json.loads(result.out)
    assert (result.code, body["exit_code"]) == (1, 1)
    assert body["problems"][0] == {
        "file": "tablectl.yaml",
        "line": 1,
        "column": 10,
        "message": 'unknown key "engine.dialekt"',
        "hint": "did you mean `dialect`?",
    }
    assert len(body["problems"]) == 2
    assert result.err == cli(*command).err
    assert "error: tablectl.yaml:1:10: unknown key" in result.err


def test_so_are_other_errors(cli: Cli, one: Repository) -> None:
    assert json.loads(cli("plan", "--tag", "x", "--format", "json").out) == {
        "error": "--tag 'x' is on no table",
        "hint": "tags in these policies: there are none",
        "problems": [],
        "exit_code": 64,
    }
    refused = json.loads(cli("apply", "none.json", "--format", "json").out)
    assert (refused["error"], refused["exit_code"]) == ("none.json: No such file or directory", 1)
    assert json.loads(cli("show", "none.json", "--format", "json").out) == refused
    assert json.loads(cli("validate", "--env", "qa", "--format", "json").out)["exit_code"] == 64


def test_validate_says_it_to_both(cli: Cli, one: Repository) -> None:
    one.policies({"a": "{isolaton: Serializable}"})
    for form, key in (("json", "problems"), ("sarif", "runs")):
        result = cli("validate", "--format", form)
        assert (result.code, bool(json.loads(result.out)[key])) == (1, True)
        assert result.err == cli("validate").err
        assert "error: policies/lake.yaml:3:" in result.err


def test_one_document_is_printed_and_no_second_one(cli: Cli, one: Repository) -> None:
    result = cli("plan", "--max-tables", "0", "--format", "json")
    assert result.code == 3
    assert json.loads(result.out)["error"].startswith("the plan changes 1 table"), "no plan that an apply would take"
    assert "error: the plan changes 1 table" in result.err


@pytest.mark.parametrize("form", ["text", "markdown", "sarif", "html"])
def test_other_formats_have_no_errors(cli: Cli, one: Repository, form: str) -> None:
    result = cli("plan", "--tag", "x", "--format", form)
    assert (result.code, result.out) == (64, "")


# Reports that cannot be made


def broken(*_: Any, **__: Any) -> str:
    raise KeyError("phase")


@pytest.mark.parametrize("form", ["text", "json", "html"])
def test_a_run_whose_report_cannot_be_made_says_what_it_committed(
    cli: Cli, one: Repository, fake_spark: FakeSpark, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.setattr(apply, "document_of_run", broken)
    result = cli("apply", "--yes", "--format", form, "--report", "run.md")
    assert (result.code, len(fake_spark.sent)) == (5, 1)
    assert f"{one.name('a')}: applied and verified; committed as version 2\n" in result.err
    assert "report cannot be made: KeyError: 'phase'" in result.err
    assert "Traceback" not in result.err
    if form == "json":
        assert json.loads(result.out)["exit_code"] == 5


def test_a_disk_that_is_full_under_the_result(
    cli: Cli, one: Repository, fake_spark: FakeSpark, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(stream: object, text: str) -> None:
        if stream is sys.stdout:
            raise OSError(28, "No space left on device")
        sys.stderr.write(text)

    cli("plan", "--out", "p.json")
    monkeypatch.setattr(output_module, "_write", full)
    result = cli("apply", "p.json", "--format", "json")
    assert (result.code, result.out) == (5, "")
    assert "error: the result cannot be written: No space left on device" in result.err
    assert "committed as version 2" in result.err


def test_one_report_that_cannot_be_made_keeps_no_other_back(
    cli: Cli, one: Repository, fake_spark: FakeSpark, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(render, "document_markdown", broken)
    result = cli("apply", "--yes", "--report", "run.md", "--report", "run.html")
    assert (result.code, Path("run.html").exists(), Path("run.md").exists()) == (5, True, False)
    assert result.out.splitlines()[-1] == "Apply: 1 applied; 1 commit made."
    assert "error: the markdown report cannot be made: KeyError: 'phase'" in result.err
    assert "committed as" not in result.err  # the text told


def test_a_run_without_commits_whose_report_cannot_be_made_is_an_error(
    cli: Cli, one: Repository, fake_spark: FakeSpark, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli("apply", "--yes")
    monkeypatch.setattr(apply, "document_of_run", broken)
    assert cli("apply", "--yes").code == 1


def test_ctrl_c_while_a_report_is_written_is_not_a_run_without_commits(
    cli: Cli, one: Repository, fake_spark: FakeSpark, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any, **__: Any) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(apply, "document_of_run", interrupted)
    result = cli("apply", "--yes")
    assert (result.code, "error: interrupted" in result.err, "committed as version" in result.err) == (5, True, True)


def test_a_plan_whose_report_cannot_be_made_is_an_error(
    cli: Cli, one: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "document_of_plan", broken)
    result = cli("plan", "--format", "html")
    assert (result.code, result.out) == (1, "")
    assert (
        "error: the html report cannot be made: KeyError: 'phase'\n  hint: this is a mistake of tablectl" in result.err
    )


def test_lines_of_policies_are_looked_up_before_anything_runs(
    cli: Cli, one: Repository, fake_spark: FakeSpark, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report_facts, "policy_lines_of", broken)
    result = cli("apply", "--yes", "--report", "run.md")
    assert result.code == 1
    assert "error: unexpected error: KeyError: 'phase'\n" in result.err
    assert fake_spark.sent == []
