"""``tablectl upkeep``: what is due, and a run of it, on real logs."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

import tablectl
from tablectl.log import file_facts
from tests.commands.conftest import Cli, FakeSpark, Repository
from tests.commands.log_lake import Logged, _add, append, create, set_property

UPKEEP = "{upkeep: {optimize: {small_files: 30%}, vacuum: {every: 7 days}}}"


@pytest.fixture
def lake(repo: Repository) -> Repository:
    """A table of forty small files, one of two files, and one without upkeep."""
    for name in ("many", "few", "other"):
        repo.table(name)
    append(repo.lake / "many", "WRITE", [_add(f"small-{number}.parquet") for number in range(40)])
    repo.policies({"many": UPKEEP, "few": "{upkeep: {optimize: {small_files: 30%}}}", "other": "{}"})
    return repo


def rows(text: str) -> dict[str, dict[str, Any]]:
    return {row["table"].rstrip("`").rsplit("/", 1)[-1]: row for row in json.loads(text)["tables"]}


def test_logs_say_what_is_due_without_spark(cli: Cli, lake: Repository, fake_spark: FakeSpark) -> None:
    result = cli("upkeep", "--format", "json")
    assert result.code == 0
    found = rows(result.out)
    assert {name: row["state"] for name, row in found.items()} == {"many": "due", "few": "not due"}
    many = found["many"]
    assert [(task["kind"], task["due"]) for task in many["tasks"]] == [("optimize", True), ("vacuum", True)]
    assert (many["files"], many["small_files"], many["small_bytes"]) == (42, 42, 4200)
    assert many["policy"] == "policies/lake.yaml:3"
    assert not fake_spark.sent


@pytest.mark.parametrize("form", ["text", "markdown", "html"])
def test_each_format_says_it(cli: Cli, lake: Repository, form: str) -> None:
    result = cli("upkeep", "--format", form)
    assert result.code == 0
    assert "Due on 1 table" in result.out or "1 due" in result.out
    assert "100% of its bytes are in 42 small files" in result.out


def test_what_is_due_is_done_and_then_nothing_is_due(cli: Cli, lake: Repository, fake_spark: FakeSpark) -> None:
    result = cli("upkeep", "--apply", "--format", "json")
    assert result.code == 0, result.err
    (table,) = json.loads(result.out)["tables"]
    assert (table["name"], table["outcome"]) == (lake.name("many"), "applied")
    assert [info["operation"] for info in Logged(lake.lake / "many").infos[3:]] == [
        "OPTIMIZE",
        "VACUUM START",
        "VACUUM END",
    ]
    assert len(Logged(lake.lake / "many").stamps) == 3
    assert rows(cli("upkeep", "--format", "json").out)["many"]["tasks"][0]["due"] is False


@pytest.mark.parametrize(
    ("given", "named"),
    [(("--within", "6h"), "--within"), (("--wait", "5"), "--wait"), (("--override", "audit"), "--override")],
)
def test_an_option_of_a_run_without_apply_is_an_error_and_not_ignored(
    cli: Cli, lake: Repository, given: tuple[str, str], named: str
) -> None:
    result = cli("upkeep", *given)
    assert (result.code, result.out) == (64, "")
    assert f"{named}: only with --apply" in result.err
    assert f"tablectl upkeep --apply {named} …" in result.err


def test_all_such_options_are_named_at_once(cli: Cli, lake: Repository) -> None:
    result = cli("upkeep", "--within", "6h", "--override", "audit", "--wait", "5")
    assert "--override, --wait, --within: only with --apply" in result.err


def test_an_override_needs_a_reason_that_one_line_of_a_commit_holds(cli: Cli, lake: Repository) -> None:
    assert "needs a reason" in cli("upkeep", "--apply", "--override", " ").err
    assert "needs a reason" in cli("upkeep", "--apply", "--override", "a\x1b[2Jb").err


def test_a_stream_with_more_commits_than_are_read_is_not_vacuumed_by_each_run(
    cli: Cli, lake: Repository, fake_spark: FakeSpark, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_facts, "MOST_COMMITS", 5)
    lake.policies({"many": "{upkeep: {optimize: {every: 7 days}, vacuum: {every: 7 days}}}"})
    for _ in range(2):
        for number in range(6):
            append(lake.lake / "many", "WRITE", [_add(f"batch-{len(fake_spark.sent)}-{number}.parquet")])
        assert cli("upkeep", "--apply").code == 0
    assert [sql.split()[0] for sql in fake_spark.sent] == ["OPTIMIZE", "VACUUM"]
    append(lake.lake / "many", "WRITE", [_add(f"last-{number}.parquet") for number in range(6)])
    assert rows(cli("upkeep", "--format", "json").out)["many"]["state"] == "not due"
    assert "upkeep" not in rows(cli("status", "--debt", "--format", "json").out)["many"]


def test_python_tells_and_does_the_same(lake: Repository, fake_spark: FakeSpark) -> None:
    found = tablectl.upkeep(directory=lake.root)
    assert [each.state for each in found.tables] == ["due", "not due"]
    assert "Due on 1 table" in found.to_markdown()
    assert not fake_spark.sent
    report = tablectl.run_upkeep(directory=lake.root, select=[lake.name("many")])
    assert (report.exit_code, [each.outcome for each in report.tables]) == (0, ["applied"])
    left = [task.kind for row in tablectl.upkeep(directory=lake.root).tables for task in row.tasks if task.due]
    assert left == ["vacuum"]  # the commits of this lake are of 2023


def test_files_that_failed_writes_left_are_counted_if_asked_for(cli: Cli, lake: Repository) -> None:
    table = lake.lake / "many"
    left = table / "part-00000-left.parquet"
    left.write_bytes(b"12345")
    os.utime(left, ns=(Logged(table).infos[1]["timestamp"] * 1_000_000,) * 2)
    row = rows(cli("upkeep", "--list-files", "--format", "json").out)["many"]
    assert (row["unnamed_files"], row["unnamed_bytes"]) == (1, 5)
    out = " ".join(cli("upkeep", "--list-files").out.split())
    assert "1 that no commit names, 5 B: of failed writes" in out, out
    assert rows(cli("upkeep", "--format", "json").out)["many"]["unnamed_files"] is None


def test_files_that_are_newer_than_the_last_commit_are_counted_too(cli: Cli, lake: Repository) -> None:
    (lake.lake / "many" / "part-00000-now.parquet").write_bytes(b"12345")
    row = rows(cli("upkeep", "--list-files", "--format", "json").out)["many"]
    assert (row["unnamed_files"], row["unnamed_bytes"]) == (1, 5)
    out = " ".join(cli("upkeep", "--list-files", "--select", lake.name("few")).out.split())
    assert "0 that no commit names" in out


def test_a_log_without_metrics_does_not_say_that_vacuum_deletes_nothing(cli: Cli, lake: Repository) -> None:
    out = " ".join(cli("upkeep").out.split())
    assert "how many files no reader can need any more is unknown: a commit has no metrics of it" in out
    assert "deletes 0 files" not in out


def test_help_names_the_formats_that_upkeep_has(cli: Cli) -> None:
    assert ".txt, .json, .md, .html" in " ".join(cli("upkeep", "--help").out.split())
    assert ".sarif, .xml" in " ".join(cli("plan", "--help").out.split())
    refused = cli("upkeep", "--report", "due.pdf").err
    assert "use a name that ends in .txt, .json, .md, .html" in refused


def test_a_selection_without_upkeep_is_not_told_that_no_policy_has_any(cli: Cli, lake: Repository) -> None:
    result = cli("upkeep", "--select", lake.name("other"))
    assert result.code == 0
    assert "No selected table declares upkeep" in result.out
    lake.policies({"other": "{}"})
    assert "No table declares upkeep" in cli("upkeep").out


def test_a_plan_does_not_see_upkeep(cli: Cli, lake: Repository) -> None:
    assert json.loads(cli("plan", "--format", "json").out)["tables"] == []


def test_runs_and_undo_know_it(cli: Cli, lake: Repository, fake_spark: FakeSpark) -> None:
    cli("upkeep", "--apply")
    run = json.loads(cli("runs", "--format", "json").out)["runs"][0]["stamp"]["run"]
    undo = cli("undo", run)
    assert (undo.code, "nothing to undo" in undo.err + undo.out) == (0, True)


def test_status_tells_the_debt(cli: Cli, lake: Repository) -> None:
    found = rows(cli("status", "--debt", "--format", "json").out)["many"]
    assert [each.split()[0] for each in found["upkeep"]] == ["optimize", "vacuum"]
    assert (found["small_files"], found["log_files"]) == (42, 3)
    assert "due: optimize" in cli("status", "--debt").out


def test_explain_says_where_it_comes_from(cli: Cli, lake: Repository) -> None:
    out = cli("explain", lake.name("many")).out
    assert "upkeep.optimize" in out
    assert "small_files 30%, target 128 MB" in out


def test_a_retention_that_delta_cannot_read_is_refused_and_not_taken_for_a_week(cli: Cli, lake: Repository) -> None:
    set_property(lake.lake / "many", "delta.deletedFileRetentionDuration", "interval 1 fortnight")
    shown = cli("upkeep")
    assert shown.code == 3
    assert "is 'interval 1 fortnight', which is not an interval: Delta refuses VACUUM" in " ".join(shown.out.split())


def test_a_locked_table_takes_no_upkeep(cli: Cli, lake: Repository, fake_spark: FakeSpark) -> None:
    lock = "locked: {until: 2999-01-31, reason: audit, owner: finance}"
    lake.policies({"many": f"{{{lock}, upkeep: {{vacuum: 7 days}}}}"})
    found = rows(cli("upkeep", "--format", "json").out)["many"]
    assert (found["state"], found["reason"]) == ("not due", "locked until 2999-01-31 by finance: audit")
    assert cli("upkeep", "--apply").code == 0
    assert not fake_spark.sent


def test_a_catalog_managed_table_is_not_read_by_path(cli: Cli, repo: Repository) -> None:
    create(repo.lake / "managed", features=["catalogManaged"])
    repo.policies({"managed": UPKEEP})
    result = cli("upkeep", "--format", "json")
    assert result.code == 1
    assert "managed by its catalog" in rows(result.out)["managed"]["reason"]


def test_one_table_that_cannot_be_read_costs_the_others_nothing(cli: Cli, lake: Repository) -> None:
    lake.policies({"gone": UPKEEP}, "more.yaml")
    result = cli("upkeep", "--format", "json")
    assert (result.code, rows(result.out)["many"]["state"]) == (1, "due")


def test_a_retention_that_changed_in_between_is_found_under_the_lease(
    cli: Cli, lake: Repository, fake_spark: FakeSpark
) -> None:
    set_property(lake.lake / "many", "delta.deletedFileRetentionDuration", "interval 1 day")
    lake.policies({"many": "{retention: {deleted_files: 30 days, log: 60 days}, upkeep: {vacuum: 7 days}}"})
    shown = cli("upkeep")
    assert (shown.code, "VACUUM would keep files for interval 1 day" in shown.flat) == (3, True)
    result = cli("upkeep", "--apply", "--format", "json")
    (table,) = json.loads(result.out)["tables"]
    assert (result.code, table["outcome"]) == (3, "refused")
    assert "VACUUM would keep files for interval 1 day" in table["message"]
    assert not fake_spark.sent
