"""The comment, SARIF and JUnit of a plan tell everything that a merge turns on."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tablectl.reports.comment_parts import read_groups
from tests.commands.conftest import Cli, Repository
from tests.commands.log_lake import SPARK, append, create, set_property

_HOUR = {"delta.deletedFileRetentionDuration": "interval 1 hours"}
_COLUMNS = {"id": "long", "amount": "long", "day": "date", "note": "string"}


def file(name: str, *, vector: bool = False, **statistics: Any) -> dict[str, Any]:
    """An added file with 1,000 rows and these statistics of columns: (least, greatest, nulls)."""
    told: dict[str, Any] = {"numRecords": 1000, "minValues": {}, "maxValues": {}, "nullCount": {}}
    for column, (least, greatest, nulls) in statistics.items():
        if least is not None:
            told["minValues"][column], told["maxValues"][column] = least, greatest
        told["nullCount"][column] = nulls
    add = {"path": name, "partitionValues": {}, "size": 1000, "modificationTime": 0, "dataChange": True}
    vectors = {"deletionVector": {"storageType": "u", "pathOrInlineDv": "ab", "sizeInBytes": 1, "cardinality": 1}}
    return {"add": {**add, "stats": json.dumps(told), **(vectors if vector else {})}}


def reports(cli: Cli, *options: str) -> tuple[int, str, dict[str, Any], str]:
    """The exit code of a plan, its comment, its SARIF and its JUnit."""
    files = ("plan.md", "plan.sarif", "plan.xml")
    ran = cli("plan", *(word for each in files for word in ("--report", each)), *options)
    assert ran.code in {0, 3}, ran.err
    code = ran.code
    comment, sarif, junit = (Path(each).read_text(encoding="utf-8") for each in files)
    return code, comment, json.loads(sarif)["runs"][0], junit


def codes(sarif: dict[str, Any]) -> set[str]:
    return {each["ruleId"] for each in sarif["results"]}


def base(repo: Repository, monkeypatch: pytest.MonkeyPatch, *tables: tuple[str, str]) -> None:
    """The policies of the base branch, as the step ``base`` of a job saves them."""
    folder = repo.root.parent / "base"
    (folder / "policies").mkdir(parents=True)
    (folder / "tablectl.yaml").write_text("policies: policies\n")
    lines = "".join(f"  delta.`{repo.lake}/{name}`: {policy}\n" for name, policy in tables)
    (folder / "policies" / "lake.yaml").write_text(f"version: 1\ntables:\n{lines}" if lines else "version: 1\n")
    monkeypatch.setenv("TABLECTL_BASE_CONFIG", str(folder / "tablectl.yaml"))
    assert os.environ["TABLECTL_BASE_CONFIG"]


def test_a_vacuum_that_a_merge_turns_on_makes_the_comment_say_so(repo: Repository, cli: Cli) -> None:
    repo.table("orders", properties=_HOUR)
    repo.policies({"orders": "{upkeep: {vacuum: {every: 1 day}}}"})
    code, comment, sarif, junit = reports(cli)
    assert code == 0
    assert "No changes" not in comment
    for said in ("VACUUM", "every 1 day", "1 hour", "L006", "L032"):
        assert said in comment
    assert {"L006", "L032"} <= codes(sarif)
    assert "L006" in junit
    assert "L032" in junit


def test_a_plan_tells_what_the_first_vacuum_would_delete(repo: Repository, cli: Cli) -> None:
    table = repo.table("orders", properties=_HOUR)
    append(table, "DELETE", [{"remove": {"path": "part-0.parquet", "deletionTimestamp": 1, "dataChange": True}}])
    for log in (table / "_delta_log").glob("*.json"):
        removed = (
            '{"numRemovedFiles": "1", "numRemovedBytes": "100"}' if "remove" in log.read_text() else '{"numFiles": "2"}'
        )
        log.write_text(
            log.read_text().replace('"operationParameters"', f'"operationMetrics": {removed}, "operationParameters"')
        )
    repo.policies({"orders": "{upkeep: {vacuum: {every: 1 day}}}"})
    comment = reports(cli)[1]
    assert "(so far 1 file, 100 B)" in comment


def test_upkeep_that_the_base_branch_has_too_changes_nothing(
    repo: Repository, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.table("orders", properties=_HOUR)
    base(repo, monkeypatch, ("orders", "{upkeep: {vacuum: {every: 1 day}}}"))
    repo.policies({"orders": "{upkeep: {vacuum: {every: 1 day}}}"})
    comment = reports(cli)[1]
    assert "No changes" in comment
    assert "VACUUM" not in comment


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("{upkeep: {vacuum: {every: 7 days}}}", "{upkeep: {vacuum: {every: 1 day}}}", ["every 7 days", "every 1 day"]),
        ("{upkeep: {vacuum: {every: 7 days}}}", "{tags: [a]}", ["upkeep.vacuum", "every 7 days", "not set"]),
        ("{tags: [a]}", "{tags: [a], locked: {until: 2099-01-31, reason: x, owner: ann}}", ["locked", "2099-01-31"]),
        ("{tags: [a]}", "{tags: [a, b]}", ["tags", "[a, b]"]),
        ("{tags: [a]}", "{tags: [a], allow: [lockout]}", ["allow", "lockout"]),
        ("{tags: [a], properties: {owner.team: web}}", "{tags: [a]}", ["properties.owner.team", "not set"]),
    ],
)  # fmt: skip
def test_a_plan_tells_what_differs_from_the_base_branch(
    before: str, after: str, said: list[str], repo: Repository, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.table("orders", properties={"owner.team": "web"})
    base(repo, monkeypatch, ("orders", before))
    repo.policies({"orders": after})
    comment = reports(cli)[1]
    assert "No changes" not in comment
    for each in said:
        assert each in comment


def test_a_plan_names_a_table_that_a_branch_takes_out_of_the_policies(
    repo: Repository, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.table("orders")
    repo.table("visits")
    base(repo, monkeypatch, ("orders", "{tags: [a]}"), ("visits", "{tags: [a]}"))
    repo.policies({"orders": "{tags: [a]}"})
    comment = reports(cli)[1]
    assert "No changes" not in comment
    assert "visits" in comment


def test_a_constraint_that_rows_violate_by_the_statistics_is_refused(repo: Repository, cli: Cli) -> None:
    table = create(repo.lake / "orders", columns=_COLUMNS)
    append(table, "WRITE", [file("a", amount=(0, 4, 3)), file("b", amount=(6, 90, 0))], client=SPARK)
    repo.policies({"orders": '{constraints: {large: "amount > 5"}}'})
    code, comment, sarif, junit = reports(cli)
    assert code == 3
    assert "1 of 4 files" in comment
    assert "from 0 to 4" in comment
    assert "1,000 rows" in comment
    assert "refused" in codes(sarif)
    assert "from 0 to 4" in junit


@pytest.mark.parametrize(
    ("constraint", "added", "refused"),
    [
        ("amount > 5", file("a", amount=(6, 9, 0)), False),
        ("amount > 5", file("a", amount=(5, 9, 0)), True),
        ("amount >= 5", file("a", amount=(5, 9, 0)), False),
        ("amount < 5", file("a", amount=(0, 5, 0)), True),
        ("amount <= 5", file("a", amount=(0, 5, 0)), False),
        ("5 < amount", file("a", amount=(5, 9, 0)), True),
        ("amount = 5", file("a", amount=(5, 6, 0)), True),
        ("amount <> 5", file("a", amount=(5, 5, 0)), True),
        ("amount <> 5", file("a", amount=(4, 6, 0)), False),
        ("amount > 5", file("a", amount=(6, 9, 1)), True),
        ("amount > 5 OR amount IS NULL", file("a", amount=(0, 9, 1)), False),
        ("amount IS NOT NULL", file("a", amount=(6, 9, 1)), True),
        ("amount IS NOT NULL AND id > 0", file("a", amount=(6, 9, 0), id=(0, 5, 0)), True),
        ("amount BETWEEN 1 AND 5", file("a", amount=(1, 6, 0)), True),
        ("amount IN (1, 5)", file("a", amount=(1, 6, 0)), True),
        ("amount IN (1, 6)", file("a", amount=(1, 6, 0)), False),
        ("NOT amount > 5", file("a", amount=(6, 9, 0)), False),
        ("amount > -5", file("a", amount=(-5, 9, 0)), True),
        ("amount > 5", file("a", vector=True, amount=(0, 9, 0)), False),
        ("amount > 5", file("a", amount=(None, None, 1000)), True),
        ("day >= '2026-01-01'", file("a", day=("2025-12-31", "2026-02-01", 0)), True),
        ("day >= DATE '2026-01-01'", file("a", day=("2026-01-01", "2026-02-01", 0)), False),
        ("note <> ''", file("a", note=("", "z", 0)), False),
        ("amount > 5.5", file("a", amount=(5, 9, 0)), True),
        ("amount > id", file("a", amount=(0, 9, 0), id=(10, 20, 0)), False),
    ],
)  # fmt: skip
def test_only_rows_that_the_statistics_prove_are_a_reason_to_refuse(
    constraint: str, added: dict[str, Any], refused: bool, repo: Repository, cli: Cli
) -> None:
    table = create(repo.lake / "orders", columns=_COLUMNS)
    append(table, "WRITE", [added], client=SPARK)
    repo.policies({"orders": f'{{constraints: {{large: "{constraint}"}}}}'})
    assert cli("plan").code == (3 if refused else 0)


def test_a_file_without_tight_statistics_proves_nothing(repo: Repository, cli: Cli) -> None:
    table = create(repo.lake / "orders", columns=_COLUMNS)
    added = file("a", amount=(0, 9, 0))
    added["add"]["stats"] = added["add"]["stats"].replace("{", '{"tightBounds": false, ', 1)
    append(table, "WRITE", [added], client=SPARK)
    repo.policies({"orders": '{constraints: {large: "amount > 5"}}'})
    assert cli("plan").code == 0


def test_a_plan_that_overwrites_what_others_set_says_who(repo: Repository, cli: Cli) -> None:
    set_property(repo.table("orders"), "delta.logRetentionDuration", "interval 90 days")
    repo.policies({"orders": "{retention: {log: 60 days}}"})
    comment = reports(cli)[1]
    assert "overwrites what others set on 1 table" in comment
    assert "overwrites <code>retention.log</code>, set by Delta Spark 4.4.0 on 2023-11-14 in version 2" in comment


def test_the_plans_of_shards_keep_what_a_merge_turns_on(
    repo: Repository, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("orders", "visits", "clicks")
    for name in names:
        repo.table(name, properties=_HOUR)
    base(repo, monkeypatch, *((name, "{tags: [a]}") for name in (*names, "gone")))
    repo.policies(dict.fromkeys(names, "{tags: [a], upkeep: {vacuum: {every: 1 day}}}"))
    for shard in (1, 2):
        assert cli("plan", "--shard", f"{shard}/2", "--out", f"{shard}.json").code == 0
    assert cli("plan", "--merge", "1.json", "2.json", "--out", "merged.json").code == 0
    assert cli("plan", "--out", "whole.json").code == 0
    merged, whole = (json.loads(Path(each).read_text()) for each in ("merged.json", "whole.json"))
    assert merged == whole
    assert len(whole["besides"]) == 4


def test_the_next_comment_says_what_is_new_besides_settings(
    repo: Repository, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.table("orders", properties=_HOUR)
    base(repo, monkeypatch, ("orders", "{tags: [a]}"))
    comments = []
    for policy in ("{tags: [a]}", "{tags: [a], upkeep: {vacuum: {every: 1 day}}}"):
        repo.policies({"orders": policy})
        comments.append(reports(cli)[1])
    old, new = map(read_groups, comments)
    assert old == {}
    assert [each.weight for each in (new or {}).values()] == ["upkeep"]
