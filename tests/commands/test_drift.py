"""``drift`` on real logs: what differs, who brought it, and the exit codes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import tablectl
from tests.commands.conftest import AnsweringTerminal, Cli, FakeSpark, Repository
from tests.commands.log_lake import Logged, append, set_property


def rewrite(path: Path, version: int, **facts: Any) -> None:
    """Put more into the ``commitInfo`` of a commit."""
    file = path / "_delta_log" / f"{version:020d}.json"
    first, *rest = file.read_text().splitlines()
    info = json.loads(first)
    info["commitInfo"].update(facts)
    file.write_text("\n".join([json.dumps(info), *rest]) + "\n")


def overwrite(path: Path) -> int:
    """A full overwrite, which clears the clustering columns without a word."""
    domain = {"domain": "delta.clustering", "configuration": '{"clusteringColumns":[]}', "removed": False}
    version = append(path, "WRITE", [{"domainMetadata": domain}])
    rewrite(path, version, operationParameters={"mode": "Overwrite"}, userName="jane@example.com")
    return version


def test_nothing_differs(repo: Repository, cli: Cli) -> None:
    repo.table("orders", properties={"owner.team": "web"})
    repo.policies({"orders": "{properties: {owner.team: web}, clustering: none}"})
    ran = cli("drift")
    assert (ran.code, ran.out) == (0, "No drift: 1 table checked.\n")


def test_a_foreign_change_is_reported_with_who_when_and_how(repo: Repository, cli: Cli) -> None:
    table = repo.table("orders", properties={"owner.team": "web"})
    repo.policies({"orders": "{properties: {owner.team: web}}"})
    set_property(table, "owner.team", "payments")
    job = {"jobId": "12", "jobName": "nightly", "runId": "5"}
    rewrite(table, 2, userName="jane@example.com", job=job, clusterId="0123-abc")
    append(table, "WRITE", [])
    ran = cli("drift")
    assert ran.code == 2
    assert ran.out == (
        f"~ {repo.name('orders')}  changed by others\n"
        "  version 3\n"
        "    properties.owner.team  declared web, found payments  policies/lake.yaml:3\n"
        "      changed by jane@example.com (Delta Spark 4.4.0), job nightly 12, run 5,\n"
        "      cluster 0123-abc\n"
        "    since    version 2, 2023-11-14 22:13:20 UTC: SET TBLPROPERTIES; before that\n"
        "             it was web\n"
        "    by       jane@example.com (Delta Spark 4.4.0), job nightly 12, run 5,\n"
        "             cluster 0123-abc\n"
        "\n"
        "Drift: 1 table differs in 1 value.\n"
    )


def test_a_change_from_a_databricks_notebook_names_it(repo: Repository, cli: Cli) -> None:
    table = repo.table("orders", properties={"owner.team": "web"})
    repo.policies({"orders": "{properties: {owner.team: web}}"})
    set_property(table, "owner.team", "payments")
    made = {"userName": "jane@example.com", "engineInfo": "Databricks-Runtime/15.4.x-scala2.12", "isBlindAppend": True}
    rewrite(table, 2, **made, notebook={"notebookId": "4431"}, clusterId="0514-ab", isolationLevel="WriteSerializable")
    said = cli("drift").flat
    assert "jane@example.com (Databricks 15.4), notebook 4431, cluster 0514-ab" in said
    (found,) = json.loads(cli("drift", "--format", "json").out)["tables"]
    assert found["differences"][0]["origin"]["commit"]["job"] == {"notebookId": "4431", "clusterId": "0514-ab"}


def test_an_overwrite_that_cleared_the_clustering_is_named_next_to_our_own_apply(
    repo: Repository, cli: Cli, fake_spark: object
) -> None:
    table = repo.table("orders")
    repo.policies({"orders": "{clustering: [id]}"})
    assert cli("apply", "--yes").code == 0
    (stamp,) = Logged(table).stamps
    version = overwrite(table)
    ran = cli("drift")
    told = ran.flat
    assert f"since version {version}, 2023-11-14 22:13:20 UTC: WRITE mode Overwrite; before that it was [id]" in told
    assert f"last by tablectl in version {version - 1}," in told
    assert f"run {stamp['run']}, plan {stamp['plan'][:12]}" in told


def test_a_change_that_tablectl_made_itself_names_its_run(repo: Repository, cli: Cli, fake_spark: object) -> None:
    table = repo.table("orders")
    repo.policies({"orders": "{properties: {owner.team: web}}"})
    assert cli("apply", "--yes").code == 0
    repo.policies({"orders": "{properties: {owner.team: payments}}"})
    ran = cli("drift", "--format", "json")
    (found,) = json.loads(ran.out)["tables"][0]["differences"]
    assert (found["change"]["after"], found["change"]["before"], found["origin"]["was"]) == ("payments", "web", None)
    assert found["origin"]["commit"]["stamp"]["run"] == Logged(table).stamps[0]["run"]


def test_the_deletes_that_wrote_vectors_are_to_blame_for_a_table_that_is_not_purged(repo: Repository, cli: Cli) -> None:
    table = repo.table("orders", features=["deletionVectors"], vectors=1)
    rewrite(table, 1, operation="DELETE", operationMetrics={"numDeletionVectorsAdded": "1"})
    append(table, "WRITE", [])
    repo.policies({"orders": "{deletion_vectors: purged}"})
    found = json.loads(cli("drift", "--format", "json").out)["tables"][0]["differences"][0]
    assert (found["change"]["attribute"], found["change"]["before"]) == ("deletion_vectors", "disabled")
    assert found["origin"]["commit"]["version"] == 1


def test_history_is_looked_through_as_far_as_one_says(repo: Repository, cli: Cli) -> None:
    table = repo.table("orders")
    repo.policies({"orders": "{properties: {owner.team: web}}"})
    for _ in range(5):
        append(table, "WRITE", [])
    assert "since    version 0" in cli("drift").out
    ran = cli("drift", "--look-back", 3)
    assert "before version 4, the oldest one in the history" in ran.out
    assert ran.code == 2


def test_a_table_that_cannot_be_read_is_an_error_and_the_others_are_told(repo: Repository, cli: Cli) -> None:
    repo.table("orders")
    repo.policies({"orders": "{isolation: Serializable}", "gone": "{isolation: Serializable}"})
    ran = cli("drift")
    assert ran.code == 1
    assert "no such directory" in ran.flat
    assert ran.out.endswith("Drift: 1 table differs in 1 value; 1 not readable.\n")


def test_a_history_that_is_damaged_is_an_error_next_to_what_differs(repo: Repository, cli: Cli) -> None:
    table = repo.table("orders")
    append(table, "WRITE", [])
    set_property(table, "owner.team", "web")
    (table / "_delta_log" / f"{2:020d}.json").write_text("{\n")
    protocol = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
    append(table, "UPGRADE PROTOCOL", [protocol, {"metaData": Logged(repo.table("other")).last("metaData")}])
    repo.policies({"orders": "{isolation: Serializable}"})
    ran = cli("drift")
    assert ran.code == 1
    assert "declared Serializable, found default" in ran.out
    assert "its history cannot be read" in ran.flat


def test_a_selection_and_a_wrong_one(repo: Repository, cli: Cli) -> None:
    repo.table("orders")
    repo.table("events")
    repo.policies({"orders": "{isolation: Serializable}", "events": "{isolation: Serializable, tags: [web]}"})
    assert [each["name"] for each in json.loads(cli("drift", "--tag", "web", "--format", "json").out)["tables"]] == [
        repo.name("events")
    ]
    assert cli("drift", "--select", "nothing").code == 64
    assert cli("drift", "--look-back", 0).code == 64


def test_it_is_a_function_too(repo: Repository) -> None:
    table = repo.table("orders")
    repo.policies({"orders": "{isolation: Serializable}"})
    set_property(table, "delta.isolationLevel", "WriteSerializable")
    found = tablectl.drift(directory=repo.root)
    (difference,) = found.tables[0].differences
    assert difference.origin.commit is not None
    assert (difference.change.before, difference.origin.commit.version, difference.source.line) == (
        "WriteSerializable",
        2,
        3,
    )
    assert found.exit_code == 2


POLICY = """version: 1
defaults: {isolation: Serializable}  # pinned
tables:
  # the orders
  delta.`LAKE/orders`:
    clustering: [id]   # by day
    properties: {owner.team: "web"}   # who
  delta.`LAKE/events`: {unmanaged: [isolation]}
"""


def drifted(repo: Repository) -> Path:
    table = repo.table("orders", properties={"owner.team": "pay"})
    repo.table("events")
    repo.policies(POLICY.replace("LAKE", str(repo.lake)))
    file = repo.root / "policies" / "lake.yaml"
    file.chmod(0o640)
    assert table.exists()
    return file


ADOPTED = POLICY.replace("[id]", "none").replace('"web"', "pay").replace("# who\n", "# who\n    isolation: default\n")


def test_adopt_shows_how_files_change_and_asks(repo: Repository, cli: Cli, monkeypatch: Any) -> None:
    file = drifted(repo)
    before = file.read_bytes()
    ran = cli("drift", "--adopt")
    assert (ran.code, file.read_bytes()) == (64, before)
    assert (
        "-    clustering: [id]   # by day\n"
        '-    properties: {owner.team: "web"}   # who\n'
        "+    clustering: none   # by day\n"
        "+    properties: {owner.team: pay}   # who\n"
        "+    isolation: default\n"
    ) in ran.out
    monkeypatch.setattr("sys.stdin", AnsweringTerminal("n\n"))
    ran = cli("drift", "--adopt")
    assert (ran.code, file.read_bytes()) == (2, before)
    assert "nothing was written" in ran.err
    monkeypatch.setattr("sys.stdin", AnsweringTerminal("y\n"))
    ran = cli("drift", "--adopt")
    assert (ran.code, "wrote policies/lake.yaml" in ran.err) == (0, True)
    assert file.read_text() == ADOPTED.replace("LAKE", str(repo.lake))
    assert file.stat().st_mode & 0o777 == 0o640
    assert cli("drift").code == 0
    assert "--yes needs --adopt" in cli("drift", "--yes").err


def test_adopt_for_machines(repo: Repository, cli: Cli) -> None:
    drifted(repo)
    ran = cli("drift", "--adopt", "--yes", "--format", "json")
    told = json.loads(ran.out)["adoption"]
    assert (ran.code, told["written"], told["files"], told["left"]) == (0, True, ["policies/lake.yaml"], [])
    assert [(each["attribute"], each["key"], each["value"]) for each in told["adopted"]] == [
        ("isolation", "", "default"),
        ("clustering", "", "none"),
        ("properties", "owner.team", "pay"),
    ]
    ran = cli("drift", "--adopt", "--yes", "--format", "json")
    assert (ran.code, json.loads(ran.out)["adoption"]["written"]) == (0, False)


def test_what_cannot_be_adopted_stays_drift(repo: Repository, cli: Cli) -> None:
    table = repo.table("orders", properties={"owner.team": "pay"})
    set_property(table, "delta.isolationLevel", "SnapshotIsolation")
    repo.policies({"orders": "{isolation: Serializable, properties: {owner.team: '${TEAM}', cost: '1'}}"})
    ran = cli("drift", "--adopt", "--yes", "--var", "TEAM=web")
    assert ran.code == 2
    said = ran.flat
    assert "skipped properties.owner.team of" in said
    assert "it holds a variable: '${TEAM}'" in said
    assert '"SnapshotIsolation" is not a value of `isolation`' in said
    again = json.loads(cli("drift", "--var", "TEAM=web", "--format", "json").out)
    assert [each["change"]["key"] for each in again["tables"][0]["differences"]] == ["", "owner.team"]


def test_a_file_that_changed_meanwhile_is_not_written_over(repo: Repository, cli: Cli, monkeypatch: Any) -> None:
    file = drifted(repo)

    class Slow(AnsweringTerminal):
        def readline(self) -> str:
            file.write_text("version: 1\n")
            return "y\n"

    monkeypatch.setattr("sys.stdin", Slow(""))
    ran = cli("drift", "--adopt")
    assert ran.code == 1
    assert "policies/lake.yaml: the file has changed since it was read" in ran.err
    assert file.read_text() == "version: 1\n"


def test_a_linked_file_with_a_mark_in_front_and_windows_line_ends_stays_so(repo: Repository, cli: Cli) -> None:
    file = drifted(repo)
    real = repo.root / "elsewhere.yaml"
    real.write_bytes(b"\xef\xbb\xbf" + file.read_bytes().replace(b"\n", b"\r\n"))
    file.unlink()
    file.symlink_to(real)
    assert cli("drift", "--adopt", "--yes").code == 0
    assert file.is_symlink()
    wanted = ADOPTED.replace("LAKE", str(repo.lake)).encode().replace(b"\n", b"\r\n")
    assert real.read_bytes() == b"\xef\xbb\xbf" + wanted


def test_masked_values_are_neither_shown_nor_adopted(repo: Repository, cli: Cli) -> None:
    table = repo.table("orders", properties={"auth.token": "old-hidden", "owner.team": "pay"})
    set_property(table, "auth.token", "live-hidden")
    rewrite(table, 2, operationParameters={"properties": '{"auth.token":"live-hidden"}'})
    repo.policies({"orders": "{properties: {auth.token: policy-hidden, owner.team: web}}"})
    (repo.root / "tablectl.yaml").write_text("reports: {mask: ['*token*']}\n")
    for form in ("text", "json"):
        ran = cli("drift", "--format", form)
        assert ran.code == 2
        assert "-hidden" not in ran.out + ran.err
    ran = cli("drift", "--adopt", "--yes")
    assert ran.code == 2
    assert "-hidden" not in ran.out + ran.err
    assert "reports.mask hides its value" in ran.flat
    assert "-hidden" not in cli("drift", "--adopt", "--yes", "--format", "json").out
    assert "{auth.token: policy-hidden, owner.team: pay}" in (repo.root / "policies" / "lake.yaml").read_text()


def test_tables_that_slipped_through_are_listed_and_fail_ci_if_asked(
    repo: Repository, cli: Cli, fake_spark: FakeSpark
) -> None:
    repo.table("managed")
    repo.policies({"managed": "{properties: {owner.team: web}}"})
    assert cli("apply", "--yes").code == 0
    wild = repo.lake / "wild"
    shutil.copytree(repo.table("old"), wild)
    first = wild / "_delta_log/00000000000000000000.json"
    first.write_text(first.read_text().replace("1700000000000", "1800000000000"))
    fake_spark.catalog = {("spark_catalog", "s", "wild"): wild, ("spark_catalog", "s", "old"): repo.lake / "old"}
    ran = cli("drift", "--fail-on", "unmanaged")
    assert ran.code == 0
    assert "without --all, only tables that policies name or match are looked at" in ran.err
    assert "tablectl status 'delta.`FOLDER/*`' --fail-on unmanaged" in ran.err
    ran = cli("drift", "--all")
    assert ran.code == 0
    text = ran.flat
    assert "1 table created since the last apply, not as a policy declares" in text
    assert "s.wild: created on 2027-01-15 08:00:00 UTC by" in text
    ran = cli("drift", "--all", "--fail-on", "unmanaged", "--format", "json")
    assert ran.code == 2
    (found,) = json.loads(ran.out)["slipped"]
    assert (found["table"], found["command"]) == ("s.wild", "tablectl import s.wild")


def test_drift_is_not_green_where_the_catalog_shows_nothing(repo: Repository, cli: Cli, fake_spark: FakeSpark) -> None:
    repo.table("managed", properties={"owner.team": "web"})
    repo.policies({"managed": "{properties: {owner.team: web}}"})
    fake_spark.catalog = {}
    for command in ("status", "drift"):
        ran = cli(command, "--all", "--fail-on", "unmanaged")
        assert ran.code == 1, command
