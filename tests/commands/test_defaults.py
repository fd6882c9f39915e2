"""``tablectl defaults``: settings for makers of tables."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

import tablectl
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


def test_a_session_in_python_is_given_the_same_settings(cli: Cli) -> None:
    given: dict[str, str] = {}
    session = SimpleNamespace(conf=SimpleNamespace(set=given.__setitem__))
    left = tablectl.set_defaults(session, ["lake.sales.returns"])
    assert given == {f"{PREFIX}isolationLevel": "Serializable", f"{PREFIX}logRetentionDuration": "interval 10 days"}
    assert [each.what for each in left] == ["my.password = hunter2"]


def test_a_table_that_a_pattern_matches_can_be_named(cli: Cli) -> None:
    ran = cli("defaults", "spark", "--select", "lake.sales.returns")
    assert ran.out == f"{PREFIX}isolationLevel Serializable\n{PREFIX}logRetentionDuration interval 10 days\n"


@pytest.mark.parametrize("glob", ["lake.other.table", "lake.other.*", "ordrs*"])
def test_a_name_that_no_policy_knows_is_wrong_usage(cli: Cli, glob: str) -> None:
    assert cli("defaults", "spark", "--select", glob).code == 64


def test_the_settings_are_written_to_a_file(cli: Cli) -> None:
    assert cli("defaults", "spark", "--output", "conf.txt").code == 0
    assert Path("conf.txt").read_text() == f"{PREFIX}isolationLevel Serializable\n"


def test_the_maker_and_the_form_of_what_is_left_are_known(cli: Cli) -> None:
    ran = cli("defaults", "sprak")
    assert (ran.code, "did you mean `spark`?" in ran.err) == (64, True)
    left = json.loads(cli("defaults", "spark", "--format", "json").out)["left"]
    assert any("clustering" in each["what"] for each in left)


def test_a_value_that_reports_hide_is_named_and_not_printed(cli: Cli) -> None:
    assert "not set: my.password: `reports.mask` hides its value" in cli("defaults", "spark").err
