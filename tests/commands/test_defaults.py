"""``tablectl defaults``: settings for makers of tables, and their comparison with a file in CI."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.commands.conftest import Cli, Repository

POLICIES = """version: 1
defaults:
  isolation: Serializable
  properties: {my.password: "hunter2"}
tables:
  lake.sales.*: {retention: {log: 10 days}}
  lake.sales.orders: {clustering: [id]}
  lake.raw.*: {may_be_empty: true}
"""
PREFIX = "spark.databricks.delta.properties.defaults."


@pytest.fixture(autouse=True)
def policies(repo: Repository) -> None:
    repo.policies(POLICIES)


def test_a_session_gets_what_all_tables_need_and_the_rest_is_named_once(cli: Cli) -> None:
    ran = cli("defaults", "spark")
    assert (ran.code, ran.out) == (0, f"{PREFIX}isolationLevel Serializable\n")
    assert "hunter2" not in ran.out + ran.err
    notes = [line for line in ran.err.splitlines() if "logRetentionDuration" in line]
    assert len(notes) == 1
    assert "lake.sales.orders (policies/lake.yaml:7), lake.sales.* (policies/lake.yaml:6)" in notes[0]


def test_a_table_that_a_pattern_matches_can_be_named(cli: Cli) -> None:
    ran = cli("defaults", "spark", "--select", "lake.sales.returns")
    assert ran.out == f"{PREFIX}isolationLevel Serializable\n{PREFIX}logRetentionDuration interval 10 days\n"


@pytest.mark.parametrize("glob", ["lake.other.table", "lake.other.*", "orders"])
def test_a_name_that_no_policy_knows_is_wrong_usage(cli: Cli, glob: str) -> None:
    assert cli("defaults", "spark", "--select", glob).code == 64


def test_a_file_is_compared_with_the_policies(cli: Cli) -> None:
    assert cli("defaults", "spark", "--output", "conf.txt").code == 0
    assert cli("defaults", "spark", "--check", "conf.txt").code == 0
    Path("conf.txt").write_text(f"{PREFIX}isolationLevel WriteSerializable\n{PREFIX}appendOnly true\n")
    ran = cli("defaults", "spark", "--check", "conf.txt", "--format", "json")
    wrong = {"setting": "delta.isolationLevel", "wanted": "Serializable", "found": "WriteSerializable"}
    assert ran.code == 2
    assert json.loads(ran.out)["wrong"] == [wrong]
    assert "also sets delta.appendOnly" in ran.err
    assert cli("defaults", "spark", "--check", "missing.txt").code == 1


def test_the_clauses_of_several_tables_are_not_compared_with_one_file(cli: Cli) -> None:
    Path("orders.sql").write_text(cli("defaults", "sql", "--select", "lake.sales.orders").out)
    assert cli("defaults", "sql", "--check", "orders.sql").code == 64
    assert cli("defaults", "sql", "--check", "orders.sql", "--select", "lake.sales.orders").code == 0


def test_a_file_of_another_form_and_one_with_nothing_to_compare_fail_and_say_why(cli: Cli, repo: Repository) -> None:
    Path("job.py").write_text(cli("defaults", "python").out)
    assert cli("defaults", "python", "--check", "job.py").code == 0
    ran = cli("defaults", "spark", "--check", "job.py")
    assert (ran.code, "job.py:1:1: this line is not a setting" in ran.err) == (1, True)
    Path("job.py").write_bytes(b"\xff")
    assert "it is not text in UTF-8" in cli("defaults", "python", "--check", "job.py").err
    Path("conf.txt").write_text("spark.sql.shuffle.partitions 5\n")
    repo.policies("version: 1\ntables: {lake.sales.orders: {clustering: [id]}}\n")
    ran = cli("defaults", "spark", "--check", "conf.txt")
    assert (ran.code, "nothing is compared" in ran.err) == (1, True)


def test_the_maker_and_the_form_of_what_is_left_are_known(cli: Cli) -> None:
    ran = cli("defaults", "sprak")
    assert (ran.code, "did you mean `spark`?" in ran.err) == (64, True)
    left = json.loads(cli("defaults", "spark", "--format", "json").out)["left"]
    assert any("clustering" in each["what"] for each in left)


def test_a_comparison_names_what_it_does_not_compare(cli: Cli) -> None:
    assert cli("defaults", "spark", "--output", "conf.txt").code == 0
    ran = cli("defaults", "spark", "--check", "conf.txt")
    assert "not compared: my.password: `reports.mask` hides its value" in ran.err
