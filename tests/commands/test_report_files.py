"""Formats and files of reports on the command line."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from tablectl.commands import report_files as report_files_module
from tablectl.model.errors import TablectlError
from tests.commands.conftest import Cli, FakeSpark, Repository

POLICY = (
    "version: 1\ntables:\n  delta.`{lake}/a`:\n    isolation: Serializable\n    properties: {{db.password: hunter2}}\n"
)


@pytest.fixture
def one(repo: Repository) -> Repository:
    repo.table("a")
    repo.policies(POLICY.format(lake=repo.lake))
    return repo


def lines(sarif: str) -> set[tuple[str, int]]:
    places = [each["locations"][0]["physicalLocation"] for each in json.loads(sarif)["runs"][0]["results"]]
    return {(each["artifactLocation"]["uri"], each["region"]["startLine"]) for each in places}


def test_each_format(cli: Cli, one: Repository) -> None:
    assert cli("plan", "--format", "markdown").out.startswith(
        "**🟡 Plan: Concurrent writes fail once** · 🟡 <b>1 blocking</b>"
    )
    assert cli("plan", "--format", "junit").out.startswith("<?xml")
    assert cli("plan", "--format", "html").out.startswith("<!doctype html>")
    assert lines(cli("plan", "--format", "sarif").out) == set(), "wanted changes are not results"


def test_many_reports_of_one_plan(cli: Cli, one: Repository) -> None:
    result = cli("plan", "--out", "p.json", "--report", "out/plan.md", "--report", "out/plan.sarif.json")
    assert (result.code, result.out.splitlines()[-1]) == (0, "Plan: 1 table to change (1 blocking), 1 statement.")
    assert "The whole plan" not in Path("out/plan.md").read_text()
    assert json.loads(Path("out/plan.sarif.json").read_text())["runs"]
    shown = cli("show", "p.json", "--format", "sarif", "--report", "again.md")
    assert shown.out == Path("out/plan.sarif.json").read_text()
    assert Path("again.md").read_text() == Path("out/plan.md").read_text()


def test_pending_changes_fail_where_they_are_asked_for(cli: Cli, one: Repository) -> None:
    assert 'failures="0"' in cli("plan", "--format", "junit").out
    asked = cli("plan", "--format", "junit", "--detailed-exitcode")
    assert (asked.code, 'type="pending"' in asked.out) == (2, True)


def test_paths_count_from_the_root_of_the_repository(
    cli: Cli, one: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    (one.root.parent / ".git").mkdir()
    assert {file for file, _ in lines(cli("drift", "--format", "sarif").out)} == {"repo/policies/lake.yaml"}


def test_a_saved_plan_finds_its_lines_again(cli: Cli, one: Repository) -> None:
    cli("plan", "--out", "p.json")
    (one.root / "policies/lake.yaml").write_text("# moved\n" + POLICY.format(lake=one.lake))
    result = cli("show", "p.json", "--format", "markdown")
    assert ("policies/lake.yaml:5" in result.out, "policies/lake.yaml:6" in result.out) == (True, True)
    assert result.err == ""
    one.policies({"a": "{isolation: Serializable}"})
    assert "the policies have changed since the plan was made" in cli("show", "p.json", "--format", "sarif").err
    (one.root / "policies/lake.yaml").write_text("version: 2\n")
    broken = cli("show", "p.json", "--format", "markdown")
    assert (broken.code, "policies/lake.yaml:" in broken.out) == (0, False)
    assert "the lines of the policies are not known: policies/lake.yaml:1:10" in broken.err


def test_masked_values(cli: Cli, one: Repository) -> None:
    (one.root / "tablectl.yaml").write_text("reports: {mask: ['*.password']}\n")
    for form in ("text", "json", "markdown", "sarif", "junit", "html"):
        result = cli("plan", "--format", form, "--out", "p.json", "--detailed-exitcode")
        assert ("db.password" in result.out) == (form != "sarif"), "no results of wanted changes"
        assert "hunter2" not in result.out
        assert "hunter2" not in cli("show", "p.json", "--format", form).out
    assert "hunter2" in Path("p.json").read_text()


def test_a_masked_value_is_applied(cli: Cli, one: Repository, fake_spark: FakeSpark) -> None:
    (one.root / "tablectl.yaml").write_text("reports: {mask: ['*.password']}\n")
    result = cli("apply", "--yes", "--report", "run.md", "--report", "run.xml", "--report", "run.html")
    assert (result.code, "hunter2" in result.out) == (0, False)
    assert "'hunter2'" in fake_spark.sent[0]
    assert Path("run.md").read_text().startswith("**✅ Apply: Applied and verified** · 1 applied")
    assert 'tests="1" failures="0"' in Path("run.xml").read_text()
    page = Path("run.html").read_text()
    assert ("hunter2" in page, "SET TBLPROPERTIES" in page, "gate" in page) == (False, True, True)


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--report", "plan.pdf"], "--report plan.pdf has no known format"),
        (["--report", "a.md", "--report", "a.md"], "--report a.md is to be written twice"),
        (["--report", "p.json", "--out", "./p.json"], "--report p.json is the plan itself"),
    ],
)
def test_names_that_do_not_do(cli: Cli, one: Repository, args: list[str], says: str) -> None:
    result = cli("plan", *args)
    assert (result.code, result.out) == (64, "")
    assert says in result.err


def test_a_place_that_cannot_be_written_is_reported_before_anything_runs(
    cli: Cli, one: Repository, fake_spark: FakeSpark, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = os.open

    def read_only(path: str | Path, flags: int, *more: int, **named: int) -> int:
        if flags & os.O_EXCL:
            raise OSError(30, "Read-only file system")
        return opened(path, flags, *more, **named)

    monkeypatch.setattr(os, "open", read_only)
    for command in (["plan"], ["apply", "--yes"]):
        result = cli(*command, "--report", "reports/run.md")
        assert (result.code, result.out, fake_spark.sent) == (1, "", [])
        assert result.err == (
            "error: reports/run.md: Read-only file system\n  hint: choose a place that can be written\n"
        )


def test_a_report_below_a_file(cli: Cli, one: Repository) -> None:
    Path("file").write_text("")
    result = cli("plan", "--report", "file/plan.md")
    assert (result.code, "error: file/plan.md: " in result.err) == (1, True)


def test_nothing_stays_of_the_question_whether_a_file_can_be_written(cli: Cli, one: Repository) -> None:
    cli("plan", "--report", "out/plan.md")
    assert [each.name for each in Path("out").iterdir()] == ["plan.md"]


def test_a_disk_that_is_full_after_the_commit(
    cli: Cli, one: Repository, fake_spark: FakeSpark, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, _data: bytes) -> None:
        raise TablectlError(f"{path}: No space left on device")

    monkeypatch.setattr(report_files_module, "write_file", full)
    result = cli("apply", "--yes", "--report", "run.md")
    assert (result.code, "run.md: No space left on device" in result.err) == (5, True)
    assert "applied and verified" in result.out


def test_what_is_printed_holds_to_the_schema_that_is_printed(cli: Cli, one: Repository, fake_spark: FakeSpark) -> None:
    plan_schema, run_schema = (json.loads(cli("schema", "--of", of).out) for of in ("plan", "run"))
    Draft202012Validator(plan_schema).validate(json.loads(cli("plan", "--format", "json").out))
    Draft202012Validator(run_schema).validate(json.loads(cli("apply", "--yes", "--format", "json").out))
    assert cli("schema").out == cli("schema", "--of", "policies").out


def test_drift_in_every_format(cli: Cli, one: Repository) -> None:
    (one.root / "tablectl.yaml").write_text("reports: {mask: []}\n")
    files = [f"out/drift{suffix}" for suffix in (".md", ".sarif", ".xml", ".html", ".json", ".txt")]
    result = cli("drift", *(word for file in files for word in ("--report", file)))
    assert (result.code, result.out) == (2, Path("out/drift.txt").read_text())
    assert lines(Path("out/drift.sarif").read_text()) == {("policies/lake.yaml", 4), ("policies/lake.yaml", 5)}
    assert cli("drift", "--format", "markdown").out == Path("out/drift.md").read_text()
    times = re.compile(r' (?:time|timestamp)="[^"]*"')
    xml = cli("drift", "--format", "junit").out
    assert times.sub("", xml) == times.sub("", Path("out/drift.xml").read_text())
    made = re.compile(r"[0-9-]{10} [0-9:]{8} UTC")  # when the report was made
    page = cli("drift", "--format", "html").out
    assert made.sub("", page) == made.sub("", Path("out/drift.html").read_text())
    (one.root / "tablectl.yaml").write_text("reports: {mask: ['*.password']}\n")
    assert "hunter2" in Path("out/drift.md").read_text()
    assert "hunter2" not in cli("drift", "--format", "markdown").out


def test_what_was_adopted_is_in_the_file_too(cli: Cli, one: Repository) -> None:
    (one.root / "tablectl.yaml").write_text("reports: {mask: []}\n")
    result = cli("drift", "--adopt", "--yes", "--report", "drift.json")
    assert result.code == 0
    assert json.loads(Path("drift.json").read_text())["adoption"]["written"] is True
    assert result.out.count("declared Serializable, found default") == 1
    assert cli("drift", "--format", "markdown").out.startswith("**✅ Drift: No drift** · 1 without drift")


def test_what_is_wrong_in_policies_stands_at_its_line(cli: Cli, one: Repository) -> None:
    assert lines(cli("validate", "--format", "sarif").out) == set()
    (one.root / "policies/lake.yaml").write_text(
        "version: 1\ntables:\n  a.b:\n    clusterin: [x]\n    isolation: Best\n"
    )
    result = cli("validate", "--format", "sarif")
    assert (result.code, lines(result.out)) == (1, {("policies/lake.yaml", 4), ("policies/lake.yaml", 5)})
    first, second = json.loads(result.out)["runs"][0]["results"]
    assert "did you mean `clustering`?" in first["message"]["text"]
    assert first["partialFingerprints"] != second["partialFingerprints"]
    assert "logicalLocations" not in first["locations"][0]


def test_conflicts_show_no_masked_value(cli: Cli, one: Repository) -> None:
    (one.root / "tablectl.yaml").write_text("reports: {mask: []}\n")
    for form in ("text", "json"):
        assert "hunter2" in cli("conflicts", one.name("a"), "--format", form).out
    (one.root / "tablectl.yaml").write_text("reports: {mask: ['*.password']}\n")
    for form in ("text", "json"):
        assert "hunter2" not in cli("conflicts", one.name("a"), "--format", form).out


def test_no_report_replaces_its_plan(cli: Cli, one: Repository, fake_spark: FakeSpark) -> None:
    cli("plan", "--out", "p.json")
    before = Path("p.json").read_bytes()
    for command in ("show", "apply"):
        result = cli(command, "p.json", "--report", "p.json")
        assert (result.code, "--report p.json is the plan itself" in result.err) == (64, True)
    assert (Path("p.json").read_bytes(), fake_spark.sent) == (before, [])
