"""Who alters a table: five logs in which a job fails the others at each run, and two healthy ones."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tablectl.attributes.policy import basis_of
from tablectl.insight.altering_jobs import altering_jobs
from tablectl.model.altering_job import AlteringJob
from tablectl.reports.rivals import rival_advice, rival_text
from tests.builders import live_table
from tests.commands.log_lake import append
from tests.insight.advice.job_log import DAY, MINUTE, SECOND, JobLog

REMOVE = {"remove": {"path": "part-0.parquet", "partitionValues": {}, "size": 1, "dataChange": True}}
NIGHTLY = {"job": {"jobId": "7", "jobName": "dbt nightly docs"}}


def alter(log: JobLog, operation: str, actions: list[dict[str, Any]], **info: Any) -> None:
    """One ALTER by someone else."""
    version = append(log.path, operation, actions)
    file = log.path / "_delta_log" / f"{version:020d}.json"
    first, *rest = file.read_text().splitlines()
    body = json.loads(first)
    body["commitInfo"] |= {"timestamp": log.now, "readVersion": version - 1, "isBlindAppend": True, **info}
    file.write_text("\n".join([json.dumps(body), *rest]) + "\n")


def metadata(log: JobLog, **more: Any) -> dict[str, Any]:
    """The ``metaData`` that the table has, with other contents."""
    lines = (log.path / "_delta_log" / f"{0:020d}.json").read_text().splitlines()
    found: dict[str, Any] = next(body for line in lines if "metaData" in (body := json.loads(line)))
    return {"metaData": found["metaData"] | more}


OLD = "Apache-Spark/4.0.1 Delta-Lake/4.0.0"
NEW = "Apache-Spark/4.2.0 Delta-Lake/4.4.0"


def busy(path: Path, hourly: Callable[[JobLog, int], None], client: str = OLD) -> JobLog:
    """A table on which a MERGE of 25 minutes begins each half hour, for two weeks, and what else is done each hour."""
    log = JobLog(path / "t")
    for half in range(14 * 48):
        log.wait(25 * MINUTE)
        log.write("MERGE", "(id#1L = id#2L)", took=25 * MINUTE, job={"jobName": "orders"}, engineInfo=client)
        log.wait(5 * MINUTE)
        if half % 2:
            hourly(log, half)
    return log


def found_in(log: JobLog) -> tuple[AlteringJob, ...]:
    commits = [each.commit for each in log.past().commits]
    return altering_jobs(commits, basis_of(live_table()), "oss")


def told(log: JobLog) -> list[str]:
    found = found_in(log)
    sys.stdout.write("".join(f"{rival_text(each)}\n    do: {rival_advice(each)}\n" for each in found) or "nothing\n")
    return [rival_text(each) for each in found]


def test_a_job_that_sets_the_same_properties_at_each_run_is_named_with_its_price(tmp_path: Path) -> None:
    def hourly(log: JobLog, _half: int) -> None:
        parameters = {"properties": json.dumps({"owner": "docs"})}
        alter(log, "SET TBLPROPERTIES", [metadata(log)], operationParameters=parameters, **NIGHTLY)

    (text,) = told(busy(tmp_path, hourly=hourly))
    assert text.startswith(
        "SET TBLPROPERTIES by job dbt nightly docs (owner): 336 commits in 14 days, since 2026-11-02"
    )
    assert "335 of them change nothing" in text  # what the first one changed is not known
    assert text.endswith("139.7 failed writes, 58.2 h of work each week of MERGE by orders")


def test_what_changes_nothing_fails_no_writer_that_adopts_it(tmp_path: Path) -> None:
    def hourly(log: JobLog, _half: int) -> None:
        alter(log, "SET TBLPROPERTIES", [metadata(log)], **NIGHTLY)

    assert told(busy(tmp_path, hourly=hourly, client=NEW)) == []


def test_comments_that_no_job_signs_are_of_a_client_that_is_not_named(tmp_path: Path) -> None:
    def hourly(log: JobLog, half: int) -> None:
        parameters = {"column": json.dumps({"name": "v", "type": "long", "metadata": {"comment": f"{half}"}})}
        alter(log, "CHANGE COLUMN", [metadata(log, description=f"{half}")], operationParameters=parameters)

    log = busy(tmp_path, hourly=hourly)
    told(log)
    (found,) = found_in(log)
    assert (found.who, found.nothing, found.kind, found.keys) == ("", 0, "columns", ("v",))
    assert "by not named (Delta Spark 4.4.0)" in rival_text(found)
    assert "userMetadata" in rival_advice(found)


def test_a_load_that_replaces_the_table_is_named_by_its_user_metadata(tmp_path: Path) -> None:
    def hourly(log: JobLog, _half: int) -> None:
        alter(log, "CREATE OR REPLACE TABLE AS SELECT", [metadata(log), REMOVE], userMetadata="reload customers")

    (text,) = told(busy(tmp_path, hourly=hourly))
    assert text.startswith("CREATE OR REPLACE TABLE AS SELECT by reload customers: 336 commits")


def test_writes_that_carry_metadata_are_one_series(tmp_path: Path) -> None:
    def hourly(log: JobLog, half: int) -> None:
        file = {
            "add": {"path": f"i{half}", "partitionValues": {}, "size": 1, "modificationTime": 0, "dataChange": True}
        }
        alter(log, "WRITE", [metadata(log, description=f"{half}"), file], operationParameters={"mode": "Append"})

    log = busy(tmp_path, hourly=hourly)
    told(log)
    (found,) = found_in(log)
    assert (found.kind, found.commits) == ("writes", 336)
    assert "identity column" in rival_advice(found)


def test_two_jobs_that_optimize_are_named_and_one_is_not(tmp_path: Path) -> None:
    def optimize(*jobs: str) -> Any:
        def hourly(log: JobLog, half: int) -> None:
            log.write("OPTIMIZE", took=20 * SECOND, job={"jobName": jobs[half // 2 % len(jobs)]}, removes=2)

        return hourly

    assert {each.who for each in found_in(busy(tmp_path / "a", hourly=optimize("tidy", "compact")))} == {
        "job tidy",
        "job compact",
    }
    assert told(busy(tmp_path / "b", hourly=optimize("tidy"))) == []


def test_tables_without_such_jobs_are_silent(tmp_path: Path) -> None:
    def nothing(_log: JobLog, _half: int) -> None:
        """The MERGE alone."""

    def ours(log: JobLog, _half: int) -> None:
        alter(
            log,
            "SET TBLPROPERTIES",
            [metadata(log)],
            userMetadata=json.dumps({"tablectl": 1, "run": "r"}, separators=(",", ":")),
        )

    assert told(busy(tmp_path / "a", hourly=nothing)) == []
    assert told(busy(tmp_path / "b", hourly=ours)) == []


def test_a_series_that_costs_less_than_half_a_write_a_week_is_silent(tmp_path: Path) -> None:
    log = JobLog(tmp_path / "t")
    for _ in range(14):
        log.wait(DAY)
        log.write("MERGE", "(id#1L = id#2L)", took=MINUTE, job={"jobName": "orders"})
        alter(log, "SET TBLPROPERTIES", [metadata(log)], **NIGHTLY)
    assert told(log) == []


def test_a_job_does_not_count_against_itself(tmp_path: Path) -> None:
    def hourly(log: JobLog, _half: int) -> None:
        alter(log, "SET TBLPROPERTIES", [metadata(log)], job={"jobName": "orders"})

    assert told(busy(tmp_path, hourly=hourly)) == []
