"""``advise``: from a log to a policy, as a user sees it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.commands.conftest import Cli, Repository
from tests.insight.advice.job_log import MINUTE, MONDAY, SECOND, JobLog


def flat(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture
def busy(repo: Repository) -> JobLog:
    """Four jobs that each update their own region, and hardly ever rest."""
    log = JobLog(repo.root / "lake" / "orders")
    log.regions(rounds=12)
    return log


def test_jobs_with_regions_of_their_own_get_partitions(cli: Cli, busy: JobLog) -> None:
    ran = cli("advise", f"delta.`{busy.path}`")
    assert ran.code == 0, ran.err
    text = flat(ran.out)
    assert "A02 partition by region: the conditions of these jobs restrict it to different values" in text
    assert "writer-seconds a week" in text
    assert "partitioning: [region]" in ran.out
    assert "rewrite: allowed" in ran.out
    assert "r1" not in ran.out.replace("orders", ""), "a literal is data"


def test_the_written_policy_plans_what_was_advised(cli: Cli, repo: Repository, busy: JobLog) -> None:
    assert cli("advise", f"delta.`{busy.path}`", "--out", "advised.yaml").code == 0
    assert Path("advised.yaml").read_text().startswith("# Written by `tablectl advise`")
    plan = json.loads(cli("plan", "advised.yaml", "--format", "json").out)
    assert [change["attribute"] for change in plan["tables"][0]["changes"]] == ["partitioning"]
    assert cli("advise", f"delta.`{busy.path}`", "--out", "advised.yaml").code == 64, "no file is overwritten"


def test_two_hours_of_writes_are_extrapolated_with_low_confidence(cli: Cli, busy: JobLog) -> None:
    advice = json.loads(cli("advise", f"delta.`{busy.path}`", "--format", "json").out)["tables"][0]["advice"]
    assert [each["confidence"] for each in advice] == ["low"]


def test_what_a_policy_declares_is_not_advised_again(cli: Cli, repo: Repository, busy: JobLog) -> None:
    repo.policies(f"version: 1\ntables:\n  delta.`{busy.path}`: {{partitioning: [region], rewrite: allowed}}\n")
    assert "A02" not in cli("advise").out


def test_files_that_no_commit_names_count_failed_writes(cli: Cli, busy: JobLog) -> None:
    for number in range(60):
        file = busy.path / f"left-{number}.parquet"
        file.write_bytes(b"x")
        os.utime(file, (MONDAY / 1000 + 60, MONDAY / 1000 + 60))
    listed = json.loads(cli("advise", f"delta.`{busy.path}`", "--list-files", "--format", "json").out)["tables"][0]
    assert any("60 data files that no commit names" in each for each in listed["advice"][0]["evidence"])
    assert "corrected by the files" in listed["advice"][0]["computed"]


def test_a_listing_without_such_files_ends_the_advice(cli: Cli, busy: JobLog) -> None:
    assert "A02" not in cli("advise", f"delta.`{busy.path}`", "--list-files").out


def test_a_calm_table_gets_no_advice(cli: Cli, repo: Repository) -> None:
    log = JobLog(repo.root / "lake" / "calm")
    for _ in range(60):
        log.wait(60 * MINUTE)
        log.write("MERGE", "(s.id#1 = id#2)", took=20 * SECOND)
    ran = cli("advise", f"delta.`{log.path}`")
    assert (ran.code, ran.out) == (0, "Nothing to advise: no recommendation for 1 table.\n")


def test_jobs_that_no_setting_keeps_apart_are_to_run_one_after_the_other(cli: Cli, repo: Repository) -> None:
    log = JobLog(repo.root / "lake" / "full")
    for _ in range(20):
        for operation in ("MERGE", "DELETE"):
            log.wait(60 * MINUTE)
            log.write(operation, "(id#2 > 3)", took=15 * MINUTE)
    (advice,) = json.loads(cli("advise", f"delta.`{log.path}`", "--format", "json").out)["tables"][0]["advice"]
    assert (advice["code"], advice["declare"]) == ("A01", [])
    assert "MERGE by id" in advice["do"]
    assert "DELETE by id" in advice["do"]


def test_a_busy_and_calm_log_cannot_be_judged_without_a_listing(cli: Cli, repo: Repository) -> None:
    log = JobLog(repo.root / "lake" / "calm")
    for day in range(20):
        for hour, operation in ((8, "MERGE"), (14, "DELETE")):
            log.now = MONDAY + (day * 24 + hour) * 60 * MINUTE
            log.write(operation, "(id#2 > 3)", took=4 * 60 * MINUTE)
    untold = json.loads(cli("advise", f"delta.`{log.path}`", "--format", "json").out)["tables"][0]["untold"]
    assert any("is unknown without --list-files" in each for each in untold)
    listed = json.loads(cli("advise", f"delta.`{log.path}`", "--format", "json", "--list-files").out)["tables"][0]
    assert listed["untold"] == []


def test_unused_deletion_vectors_stay_if_their_drop_locks_out_clients(cli: Cli, repo: Repository) -> None:
    log = JobLog(repo.root / "lake" / "surplus", features=("deletionVectors",))
    table = json.loads(cli("advise", f"delta.`{log.path}`", "--format", "json").out)["tables"][0]
    assert table["advice"] == []
    (asked,) = table["untold"]
    assert "locks out" in asked
    assert "declare `clients`" in asked


def test_one_table_that_cannot_be_read_costs_no_other(cli: Cli, repo: Repository, busy: JobLog) -> None:
    ran = cli("advise", f"delta.`{busy.path}`", "delta.`/nowhere/t`")
    assert ran.code == 1
    assert "no such directory" in ran.out
    assert "A02" in ran.out


def test_the_reason_of_a_refusal_hides_what_the_configuration_hides(cli: Cli, repo: Repository) -> None:
    log = JobLog(repo.root / "lake" / "kept", properties={"delta.deletedFileRetentionDuration": "interval 40 days"})
    log.regions(rounds=12)
    repo.policies(f"version: 1\ntables:\n  delta.`{log.path}`: {{retention: {{log: 33 days}}}}\n")
    shown = cli("advise", "--format", "json").out
    assert "33 days" in shown
    (repo.root / "tablectl.yaml").write_text('reports: {mask: ["delta.logRetentionDuration"]}\n')
    hidden = cli("advise", "--format", "json").out
    assert "a plan refuses it, because" in hidden
    assert "33 days" not in hidden


@pytest.mark.parametrize("form", ["json", "markdown", "html"])
def test_every_format_has_the_advice(cli: Cli, busy: JobLog, form: str) -> None:
    out = cli("advise", f"delta.`{busy.path}`", "--format", form).out
    assert "partition by region" in out
    if form == "json":
        assert json.loads(out)["tables"][0]["advice"][0]["benefit"] == "writer-seconds a week"


def test_without_tables_and_policies_it_says_how_to_name_tables(cli: Cli, repo: Repository) -> None:
    ran = cli("advise")
    assert (ran.code, ran.out) == (64, "")
    assert "error: no tables are named, and no policy names any\n  hint: name tables or patterns, such as" in ran.err
