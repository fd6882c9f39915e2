"""plan → apply → plan on real tables through the command line, proven by the Delta log itself."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest

from tablectl.engine.spark import SparkEngine

pytestmark = pytest.mark.spark

Cli = Callable[..., Any]
Policies = Callable[[str], None]
Log = Callable[[Path], list[dict[str, Any]]]


def test_a_table_is_brought_to_its_policy_in_as_few_commits_as_delta_allows(
    spark: Any, cli: Cli, policies: Policies, log: Log, tmp_path: Path
) -> None:
    orders = tmp_path / "lake" / "orders"
    spark.sql(f"""CREATE TABLE delta.`{orders}` (id BIGINT, day DATE, note STRING) USING delta
        TBLPROPERTIES ('stray' = 'x', 'other' = 'y', 'kept' = 'z')""")
    spark.sql(f"INSERT INTO delta.`{orders}` SELECT id, current_date(), 'n' FROM range(100)")
    policies(f"""
  delta.`{orders}`:
    isolation: Serializable
    deletion_vectors: enabled
    clustering: [id, DAY]
    properties:
      delta.checkpointRetentionDuration: interval 60 days
      owner.team: payments
      stray: null
      other: null
""")

    planned = cli("plan", "--out", "plans/p.json", "--detailed-exitcode")
    assert planned.code == 2, planned.err
    applied = cli("apply", "plans/p.json", "--format", "json")
    assert applied.code == 0, applied.out + applied.err
    assert cli("plan", "--detailed-exitcode").code == 0

    ours = log(orders)[2:]
    assert [commit["commitInfo"]["operation"] for commit in ours] == [
        "SET TBLPROPERTIES",  # deletion vectors alone: writers in flight survive it
        "CLUSTER BY",
        "SET TBLPROPERTIES",
        "UNSET TBLPROPERTIES",
    ]
    saved = json.loads((tmp_path / "plans" / "p.json").read_text(encoding="utf-8"))
    run = applied.json()
    for commit in ours:
        stamp = json.loads(commit["commitInfo"]["userMetadata"])
        assert stamp == {"tablectl": {"plan": saved["sha256"], "run": run["run"], "by": ANY}}
        assert "add" not in commit
        assert "remove" not in commit
    assert (
        ours[1]["domainMetadata"]["configuration"]
        == '{"clusteringColumns":[["id"],["day"]],"domainName":"delta.clustering"}'
    )
    assert ours[3]["metaData"]["configuration"] == {
        "delta.enableDeletionVectors": "true",
        "delta.isolationLevel": "Serializable",
        "delta.checkpointRetentionDuration": "interval 60 days",
        "kept": "z",
        "owner.team": "payments",
    }
    after = saved["tables"][0]["protocol_after"]
    protocol = next(commit["protocol"] for commit in reversed(ours) if "protocol" in commit)
    assert (after["reader"], after["writer"]) == (protocol["minReaderVersion"], protocol["minWriterVersion"])
    assert after["writer_features"] == sorted(protocol["writerFeatures"])
    assert after["reader_features"] == sorted(protocol["readerFeatures"])
    assert cli("window", "show", f"delta.`{orders}`").out.startswith(f"delta.`{orders}`: free; last held (epoch 1)")


def test_what_is_already_so_makes_no_commit(spark: Any, cli: Cli, policies: Policies, log: Log, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    spark.sql(f"""CREATE TABLE delta.`{ledger}` (id BIGINT) USING delta TBLPROPERTIES (
        'delta.isolationLevel' = 'serializable', 'delta.checkpointRetentionDuration' = 'interval 8 weeks',
        'delta.appendOnly' = 'false')""")
    policies(f"""
  delta.`{ledger}`:
    isolation: Serializable
    clustering: none
    partitioning: none
    deletion_vectors: disabled
    properties:
      delta.checkpointRetentionDuration: interval 56 days
      delta.appendOnly: false
      delta.enableChangeDataFeed: false
      nothing.here: null
""")
    assert "1 table matches its policy" in cli("plan").out
    assert cli("apply", "--yes").code == 0
    assert len(log(ledger)) == 1
    assert not (ledger / "_tablectl").exists(), "an empty apply takes no lease"


def test_vectors_are_purged_while_their_writers_wait_and_the_rows_stay(
    spark: Any, cli: Cli, policies: Policies, log: Log, tmp_path: Path
) -> None:
    table = tmp_path / "returns"
    spark.sql(
        f"CREATE TABLE delta.`{table}` (id BIGINT) USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
    )
    spark.sql(f"INSERT INTO delta.`{table}` SELECT id FROM range(1000)")
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id % 3 = 0")
    rows = spark.sql(f"SELECT count(*), sum(id) FROM delta.`{table}`").collect()
    policies(f"\n  delta.`{table}`:\n    deletion_vectors: purged\n")

    assert cli("plan", "--out", "p.json").code == 0
    assert cli("apply", "p.json").code == 0
    assert [commit["commitInfo"]["operation"] for commit in log(table)[3:]] == ["REORG", "SET TBLPROPERTIES"]
    assert spark.sql(f"SELECT count(*), sum(id) FROM delta.`{table}`").collect() == rows
    assert "deletionVector" not in json.dumps([commit.get("add") for commit in log(table)[3:]])
    assert "1 table matches its policy" in cli("plan").out

    again = cli("apply", "p.json")
    assert again.code == 0, "the same plan again is verified and makes no commit"
    assert "unchanged" in again.out
    assert len(log(table)) == 5


def test_a_refused_or_unreadable_table_never_stops_the_others(
    spark: Any, cli: Cli, policies: Policies, log: Log, tmp_path: Path
) -> None:
    good, day = tmp_path / "good", tmp_path / "day"
    spark.sql(f"CREATE TABLE delta.`{good}` (id BIGINT) USING delta")
    spark.sql(f"CREATE TABLE delta.`{day}` (id BIGINT, day DATE) USING delta PARTITIONED BY (day)")
    (tmp_path / "plain").mkdir()
    policies(f"""
  delta.`{good}`: {{isolation: Serializable}}
  delta.`{day}`: {{clustering: [id], isolation: Serializable}}
  delta.`{tmp_path}/plain`: {{isolation: Serializable}}
  delta.`{tmp_path}/missing`: {{isolation: Serializable}}
""")
    planned = cli("plan", "--out", "p.json")
    assert planned.code == 1
    assert "DELTA_ALTER_TABLE_CLUSTER_BY_ON_PARTITIONED_TABLE_NOT_ALLOWED" in planned.out
    assert "not a Delta table" in planned.out
    assert "1 table to change (1 blocking), 1 statement; 1 refused; 2 not readable." in planned.out.replace("\n ", "")
    applied = cli("apply", "p.json", "--format", "json")
    assert applied.code == 5
    outcomes = {table["name"].split("/")[-1].strip("`"): table["outcome"] for table in applied.json()["tables"]}
    assert outcomes == {"good": "applied", "day": "refused"}
    assert len(log(good)) == 2
    assert len(log(day)) == 1


def test_a_statement_that_delta_refuses_is_reported_with_its_class_and_the_others_go_on(
    spark: Any, cli: Cli, policies: Policies, log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad, good = tmp_path / "bad", tmp_path / "good"
    for table in (bad, good):
        spark.sql(f"CREATE TABLE delta.`{table}` (id BIGINT, s STRUCT<a: INT>) USING delta")
    policies(f"""
  delta.`{bad}`: {{properties: {{owner.team: a}}}}
  delta.`{good}`: {{properties: {{owner.team: a}}}}
""")
    execute = SparkEngine.execute

    def with_a_value_that_delta_refuses(self: SparkEngine, sql: str, *rest: Any, **more: Any) -> None:
        # Whatever Delta is known to refuse, the plan refuses: only a newer Delta refuses more.
        wrong = sql.replace("'owner.team' = 'a'", "'delta.appendOnly' = 'maybe'") if str(bad) in sql else sql
        execute(self, wrong, *rest, **more)

    monkeypatch.setattr(SparkEngine, "execute", with_a_value_that_delta_refuses)
    applied = cli("apply", "--yes", "--format", "json")
    assert applied.code == 5
    runs = {table["name"].split("/")[-1].strip("`"): table for table in applied.json()["tables"]}
    assert runs["good"]["outcome"] == "applied"
    assert runs["bad"]["outcome"] == "failed"
    assert runs["bad"]["statements"][0]["condition"], runs["bad"]
    assert len(log(bad)) == 1


def test_a_plan_goes_stale_by_what_it_changes_and_by_nothing_else(
    spark: Any, cli: Cli, policies: Policies, log: Log, tmp_path: Path
) -> None:
    table = tmp_path / "t"
    spark.sql(f"CREATE TABLE delta.`{table}` (id BIGINT, day DATE) USING delta")
    policies(f"\n  delta.`{table}`:\n    clustering: [id]\n    properties: {{owner.team: a}}\n")
    cli("plan", "--out", "p.json")
    spark.sql(f"INSERT INTO delta.`{table}` VALUES (1, current_date())")
    spark.sql(f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ('unrelated' = 'x')")
    spark.sql(f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ('owner.team' = 'b')")

    stale = cli("apply", "p.json")
    assert stale.code == 3
    assert "properties.owner.team was not set and is b" in stale.out
    assert "version 3: SET TBLPROPERTIES" in stale.out
    assert len(log(table)) == 4

    spark.sql(f"ALTER TABLE delta.`{table}` UNSET TBLPROPERTIES ('owner.team')")
    assert cli("apply", "p.json").code == 0, "what the plan changes reads as before again"
    assert cli("plan", "--detailed-exitcode").code == 0


@pytest.mark.parametrize(
    ("meanwhile", "words"),
    [
        ("CREATE OR REPLACE TABLE {t} USING delta AS SELECT 1L AS id, current_date() AS day", "a new table id"),
        ("ALTER TABLE {t} DROP COLUMN day", "column day is gone"),
    ],
)
def test_a_replaced_table_and_a_dropped_column_make_a_plan_stale(
    spark: Any, cli: Cli, policies: Policies, log: Log, tmp_path: Path, meanwhile: str, words: str
) -> None:
    table = tmp_path / "t"
    spark.sql(f"""CREATE TABLE delta.`{table}` (id BIGINT, day DATE) USING delta
        TBLPROPERTIES ('delta.columnMapping.mode' = 'name')""")
    policies(f"\n  delta.`{table}`:\n    clustering: [day]\n")
    cli("plan", "--out", "p.json")
    spark.sql(meanwhile.format(t=f"delta.`{table}`"))
    stale = cli("apply", "p.json")
    assert stale.code == 3
    assert words in stale.out
    assert len(log(table)) == 2


def test_write_serializable_is_refused_in_words_unless_the_table_has_it(
    spark: Any, cli: Cli, policies: Policies, log: Log, tmp_path: Path
) -> None:
    table = tmp_path / "t"
    spark.sql(f"CREATE TABLE delta.`{table}` (id BIGINT) USING delta")
    policies(f"\n  delta.`{table}`:\n    isolation: WriteSerializable\n")
    refused = cli("plan")
    assert refused.code == 3
    said = " ".join(refused.out.split())
    assert "open-source Delta can set only the isolation level Serializable" in said

    from deltalake import DeltaTable

    DeltaTable(str(table)).alter.set_table_properties(
        {"delta.isolationLevel": "WriteSerializable"}, raise_if_not_exists=False
    )
    assert cli("plan").code == 0
    assert len(log(table)) == 2


def test_an_edited_plan_is_refused_before_anything_runs(
    spark: Any, cli: Cli, policies: Policies, log: Log, tmp_path: Path
) -> None:
    table = tmp_path / "t"
    spark.sql(f"CREATE TABLE delta.`{table}` (id BIGINT) USING delta")
    policies(f"\n  delta.`{table}`:\n    properties: {{owner.team: a}}\n")
    cli("plan", "--out", "p.json")
    file = tmp_path / "p.json"
    file.write_text(
        file.read_text(encoding="utf-8").replace("'owner.team' = 'a'", "'owner.team' = 'b'"), encoding="utf-8"
    )
    edited = cli("apply", "p.json")
    assert edited.code == 3
    assert "edited or damaged" in edited.err
    assert len(log(table)) == 1


def test_a_read_only_table_directory_is_an_error_of_that_table(
    spark: Any, cli: Cli, policies: Policies, log: Log, tmp_path: Path
) -> None:
    closed, good = tmp_path / "closed", tmp_path / "good"
    for table in (closed, good):
        spark.sql(f"CREATE TABLE delta.`{table}` (id BIGINT) USING delta")
    policies(f"""
  delta.`{closed}`: {{isolation: Serializable}}
  delta.`{good}`: {{isolation: Serializable}}
""")
    # A file in the place of the records' folder: permissions do not stop a test that runs as root.
    (closed / "_tablectl").write_text("", encoding="utf-8")
    applied = cli("apply", "--yes")
    assert applied.code == 5
    assert "state:" in applied.out
    assert (len(log(closed)), len(log(good))) == (1, 2)
    (tmp_path / "tablectl.yaml").write_text(f"state: {tmp_path}/state\n", encoding="utf-8")
    assert cli("apply", "--yes").code == 0
    assert len(log(closed)) == 2


def test_the_python_functions_use_a_session_next_to_the_one_handed_in(
    spark: Any, policies: Policies, tmp_path: Path
) -> None:
    import tablectl

    table = tmp_path / "t"
    spark.sql(f"CREATE TABLE delta.`{table}` (id BIGINT) USING delta")
    policies("\n  delta.`${LAKE}/t`: {isolation: Serializable}\n")
    lake = {"LAKE": str(tmp_path)}
    plan = tablectl.plan(spark=spark, directory=tmp_path, variables=lake)
    report = tablectl.apply(plan, spark=spark, directory=tmp_path, variables=lake)
    assert report.exit_code == 0
    assert [table.outcome for table in report.tables] == ["applied"]
    assert tablectl.plan(directory=tmp_path, variables=lake).unchanged == (f"delta.`{table}`",)
    assert spark.conf.get("spark.databricks.delta.commitInfo.userMetadata", None) is None


def test_a_table_dropped_since_the_plan_is_not_brought_back_as_a_folder_of_lease_records(
    spark: Any, cli: Cli, policies: Policies, tmp_path: Path
) -> None:
    table = tmp_path / "gone"
    spark.sql(f"CREATE TABLE delta.`{table}` (id BIGINT) USING delta")
    policies(f"\n  delta.`{table}`: {{isolation: Serializable}}\n")
    cli("plan", "--out", "p.json")
    shutil.rmtree(table)
    assert cli("apply", "p.json").code == 1
    assert not table.exists()


def test_one_table_under_two_paths_is_planned_under_neither(
    spark: Any, cli: Cli, policies: Policies, tmp_path: Path
) -> None:
    (tmp_path / "lake").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "lake")
    spark.sql(f"CREATE TABLE delta.`{tmp_path}/lake/t` (id BIGINT) USING delta")
    policies(f"""
  delta.`{tmp_path}/lake/t`: {{properties: {{owner.team: a}}}}
  delta.`{tmp_path}/link/t`: {{properties: {{owner.team: b}}}}
""")
    planned = cli("plan")
    assert planned.code == 1
    assert planned.out.count("name this table twice") == 1


def test_a_statement_keeps_the_phase_that_was_reviewed(
    spark: Any, cli: Cli, policies: Policies, tmp_path: Path
) -> None:
    table = tmp_path / "t"
    spark.sql(f"CREATE TABLE delta.`{table}` (id BIGINT, note STRING) USING delta CLUSTER BY (id)")
    spark.sql(f"INSERT INTO delta.`{table}` VALUES (1, 'a')")
    policies(f"\n  delta.`{table}`: {{clustering: [note], data_skipping: [note]}}\n")
    cli("plan", "--out", "p.json")
    (run,) = cli("apply", "p.json", "--format", "json").json()["tables"]
    assert [statement["phase"] for statement in run["statements"]] == ["closed", "closed"]
