"""A stored text that delta-rs ignores: found by lint, replaced by a plan, and then left alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.commands.conftest import Cli, FakeSpark, Repository
from tests.commands.log_lake import Logged

LOG, FILES = "delta.logRetentionDuration", "delta.deletedFileRetentionDuration"


def stored(table: Path) -> dict[str, str]:
    """The properties of the newest metadata."""
    commits = sorted((table / "_delta_log").glob("*.json"))
    found = [json.loads(line) for commit in commits for line in commit.read_text().splitlines()]
    properties: dict[str, str] = [each["metaData"] for each in found if "metaData" in each][-1]["configuration"]
    return properties


def test_the_text_is_replaced_once_and_never_flaps(repo: Repository, cli: Cli, fake_spark: FakeSpark) -> None:
    table = repo.table("orders", properties={LOG: "60 days", FILES: "2 weeks"})
    repo.policies({"orders": "{retention: {log: 60 days}}"})
    assert cli("drift").code == 2
    planned = cli("plan", "--out", "plan.json")
    said = planned.flat
    assert "60 days → interval 60 days" in said
    assert f"L022 warning: delta-rs ignores the stored text of {LOG}, 60 days: it reads interval 60 days" in said
    assert (
        f"SET TBLPROPERTIES ('{LOG}' = '60 days')" in json.loads(Path("plan.json").read_text())["tables"][0]["undo"][0]
    )
    assert cli("apply", "plan.json", "--yes").code == 0
    assert stored(table) == {LOG: "interval 60 days", FILES: "2 weeks"}
    for policy in ("60 days", "interval 60 days", "INTERVAL 1440 HOURS", "8 weeks 4 days"):
        repo.policies({"orders": f"{{retention: {{log: {policy}}}}}"})
        assert cli("plan", "--detailed-exitcode").code == 0
        assert cli("drift").code == 0
    assert FILES in cli("lint").out
    assert LOG not in cli("lint").out


def test_a_plan_file_with_the_text_that_spark_alone_reads_is_refused(
    repo: Repository, cli: Cli, fake_spark: FakeSpark
) -> None:
    table = repo.table("orders")
    repo.policies({"orders": "{retention: {log: 60 days}}"})
    assert cli("plan", "--out", "plan.json").code == 0
    forged = json.loads(Path("plan.json").read_text().replace("interval 60 days", "60 days"))
    Path("plan.json").write_text(json.dumps(forged))
    assert cli("apply", "plan.json", "--yes").code in {1, 3}
    assert LOG not in stored(table)


def test_an_adoption_leaves_a_policy_that_means_the_same(repo: Repository, cli: Cli) -> None:
    repo.table("orders", properties={LOG: "60 days", FILES: "3 weeks"})
    policy = "{retention: {log: 1440 hours, deleted_files: 2 weeks}}"
    repo.policies({"orders": policy})
    ran = cli("drift", "--adopt", "--yes")
    assert ran.code == 2
    assert "retention.log" in ran.out
    assert "the policy declares it already: apply it" in ran.flat
    text = Path("policies/lake.yaml").read_text()
    assert policy.replace("2 weeks", "interval 3 weeks") in text


def test_an_undo_through_policies_leaves_the_text_that_every_client_reads(
    repo: Repository, cli: Cli, fake_spark: FakeSpark
) -> None:
    table = repo.table("orders", properties={LOG: "60 days", FILES: "2 weeks"})
    repo.policies({"orders": "{retention: {log: 60 days, deleted_files: 3 weeks}}"})
    assert cli("apply", "--yes").code == 0
    run = Logged(table).stamps[-1]["run"]
    assert cli("undo", run, "--write", "--yes").code == 0
    text = Path("policies/lake.yaml").read_text()
    assert "{log: 60 days, deleted_files: interval 2 weeks}" in text
    assert cli("apply", "--yes").code == 0
    assert stored(table) == {LOG: "interval 60 days", FILES: "interval 2 weeks"}
    ran = cli("undo", run, "--write", "--yes")
    assert "log" not in ran.out.replace(str(repo.lake), "")
    assert "No changes. 1 table matches its policy." in ran.out


def test_an_import_leaves_the_text_out_and_plans_to_nothing(repo: Repository, cli: Cli) -> None:
    repo.table("orders", properties={LOG: "60 days", FILES: "interval 2 weeks"})
    assert cli("import", repo.name("orders"), "--out", "policies/lake.yaml").code == 0
    assert "# left out: retention.log is 60 days" in Path("policies/lake.yaml").read_text()
    assert cli("validate").code == 0
    assert cli("plan", "--detailed-exitcode").code == 0


def test_each_line_of_check_mends_its_own_property(repo: Repository, cli: Cli) -> None:
    repo.table("orders", properties={LOG: "60 days", FILES: "2 weeks"})
    found = json.loads(cli("check", f"{repo.lake}/*", "--format", "json").out)
    declared = {
        risk["says"].split()[6]: [each[:2] for each in risk["declare"]]
        for risk in found["tables"][0]["risks"]
        if risk["code"] == "L022"
    }
    assert declared == {f"{LOG},": [["retention", "log"]], f"{FILES},": [["retention", "deleted_files"]]}


@pytest.mark.parametrize(
    ("key", "text", "code"),
    [
        (FILES, "P30D", "L034"),
        (FILES, "30", "L034"),
        (FILES, "interval 1 month", "L034"),
        (FILES, "INTERVAL '7' DAY", "L034"),
        (FILES, "", "L034"),
        (FILES, "-1 days", "L036"),
        (LOG, "P30D", "L036"),
        ("delta.checkpointInterval", "0", "L034"),
        ("delta.appendOnly", "yes", "L034"),
        ("delta.dataSkippingNumIndexedCols", "all", "L034"),
        ("delta.enableDeletionVectors", "yes", "L034"),
        ("delta.dataSkippingStatsColumns", "`id, c", "L034"),
    ],
)
def test_check_and_status_name_a_text_that_delta_cannot_read(
    repo: Repository, cli: Cli, key: str, text: str, code: str
) -> None:
    table = repo.table("orders", properties={key: text})
    checked = cli("check", str(table))
    assert code in checked.out
    assert key in checked.flat
    assert ("cannot read" in cli("status", str(table)).flat) is (code == "L034")


def test_seven_days_in_capitals_are_not_reported(repo: Repository, cli: Cli) -> None:
    table = repo.table("orders", properties={FILES: "7 DAYS"})
    assert FILES not in cli("check", str(table)).out
