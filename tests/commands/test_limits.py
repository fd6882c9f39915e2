"""``--exclude``, ``--max-tables`` and ``--max-bytes``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tablectl
from tablectl.model.errors import LimitError
from tests.commands.conftest import Cli, FakeSpark, Repository


@pytest.fixture
def three(repo: Repository) -> Repository:
    for name in ("orders", "events", "returns"):
        repo.table(name)
    repo.policies(f"version: 1\ntables:\n  delta.`{repo.lake}/*`: {{isolation: Serializable}}\n")
    return repo


def test_what_is_excluded_is_not_planned(three: Repository, cli: Cli) -> None:
    planned = json.loads(cli("plan", "--exclude", "*orders*", "--exclude", "*events*", "--format", "json").out)
    assert [table["name"] for table in planned["tables"]] == [three.name("returns")]
    assert [
        each["name"] for each in json.loads(cli("drift", "--exclude", "*[os]rder*", "--format", "json").out)["tables"]
    ] == [
        three.name("events"),
        three.name("returns"),
    ]
    ran = cli("plan", "--exclude", "nothing")
    assert (ran.code, "--exclude 'nothing' matches no table" in ran.err) == (64, True)
    assert "--exclude leaves no table" in cli("plan", "--exclude", "*").err
    assert [table.name for table in tablectl.plan(exclude=["*orders*", "*events*"]).tables] == [three.name("returns")]


def test_a_plan_that_is_too_large_is_shown_and_not_saved(three: Repository, cli: Cli) -> None:
    ran = cli("plan", "--max-tables", 2, "--out", "plans/p.json")
    assert ran.code == 3
    assert "3 tables to change" in ran.out
    assert "the plan changes 3 tables, and at most 2 may change" in ran.err
    assert not Path("plans/p.json").exists()
    assert cli("plan", "--max-tables", 3, "--max-bytes", "0", "--out", "plans/p.json").code == 0
    assert Path("plans/p.json").exists()


def test_an_apply_that_is_too_large_runs_nothing(three: Repository, cli: Cli, fake_spark: FakeSpark) -> None:
    assert cli("plan", "--out", "plans/p.json").code == 0
    for args in (["--yes"], ["plans/p.json"]):
        ran = cli("apply", *args, "--max-tables", 1)
        assert (ran.code, fake_spark.sent) == (3, [])
    with pytest.raises(LimitError):
        tablectl.apply(max_tables=2)
    assert cli("apply", "plans/p.json", "--max-tables", 3).code == 0
    assert len(fake_spark.sent) == 3


def test_data_that_would_be_rewritten(repo: Repository, cli: Cli) -> None:
    repo.table("orders", features=["deletionVectors"], vectors=1, properties={"delta.enableDeletionVectors": "true"})
    repo.policies({"orders": "{deletion_vectors: purged}"})
    ran = cli("plan", "--max-bytes", "0.1kB")
    assert (ran.code, "'--max-bytes': '0.1kB' is not a size; for example 20GB" in ran.err) == (64, True)
    assert (
        "the plan rewrites up to 200 bytes, and at most 100 may be rewritten" in cli("plan", "--max-bytes", "100").err
    )
    assert cli("plan", "--max-bytes", "1 kB").code == 0


def test_every_report_says_that_the_plan_is_refused(three: Repository, cli: Cli) -> None:
    said = "the plan changes 3 tables, and at most 2 may change"
    files = [f"r.{form}" for form in ("md", "html", "sarif", "xml", "json")]
    ran = cli("plan", "--max-tables", 2, *(word for file in files for word in ("--report", file)))
    assert ran.code == 3
    for file in files[:-1]:
        assert said in Path(file).read_text(encoding="utf-8"), file
    assert Path("r.md").read_text(encoding="utf-8").startswith("**⛔ Plan: Refused**")
    # As JSON it would be a plan that an apply takes.
    assert not Path("r.json").exists()
    printed = cli("plan", "--max-tables", 2, "--format", "json")
    assert (printed.code, json.loads(printed.out)["error"].partition(": ")[0]) == (3, said)


def test_one_glob_is_not_a_list_of_letters(three: Repository) -> None:
    assert [table.name for table in tablectl.plan(select="*events*").tables] == [three.name("events")]
