"""``apply --canary`` from the command line: its options, and what is printed."""

from __future__ import annotations

import json

import pytest

from tests.commands.conftest import Cli, FakeSpark, Repository


@pytest.fixture
def lake(repo: Repository, fake_spark: FakeSpark) -> Repository:
    for name in "abc":
        repo.table(name)
    repo.policies(dict.fromkeys("abc", "{isolation: Serializable}"))
    return repo


def test_the_first_table_is_looked_at_before_the_others_start(lake: Repository, cli: Cli) -> None:
    ran = cli("apply", "--yes", "--canary", "1", "--soak", "0", "--format", "json")
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)["canary"]
    (seen,) = found["tables"]
    assert (seen["table"], seen["writes"], seen["orphans"]) == (f"delta.`{lake.lake}/a`", 0, 0)
    assert seen["notes"] == ["nothing observed: no write was committed since the change"]
    assert (found["stop_if"], found["reason"], found["not_started"]) == ("failed 1", "", [])


def test_a_table_that_fails_is_named_with_those_that_were_not_started(lake: Repository, cli: Cli) -> None:
    (lake.lake / "a" / "_tablectl").write_text("no folder")
    ran = cli("apply", "--yes", "--canary", "1", "--soak", "0")
    said = ran.flat
    assert ran.code != 0
    assert "2 tables not started" in said
    assert "`--stop-if-failed 1` is reached, by 1" in said


def test_the_configuration_may_say_it_and_the_command_line_may_not(lake: Repository, cli: Cli) -> None:
    (lake.root / "tablectl.yaml").write_text("window: {canary: 2, soak: 0, stop_if_failed: 0, stop_if_silent: 2}\n")
    assert json.loads(cli("apply", "--yes", "--format", "json").out)["canary"]["stop_if"] == "silent 2"
    lake.policies(dict.fromkeys("abc", "{isolation: default}"))
    assert json.loads(cli("apply", "--yes", "--canary", "0", "--format", "json").out)["canary"] is None


def test_options_without_a_number_of_tables_are_wrong_usage(lake: Repository, cli: Cli) -> None:
    assert cli("apply", "--yes", "--soak", "5").code == 64
    assert cli("apply", "--yes", "--stop-if-silent", "2").code == 64
    assert "nothing would stop" in cli("apply", "--yes", "--canary", "1", "--stop-if-failed", "0").err


def test_a_condition_of_an_earlier_version_names_the_thresholds(lake: Repository, cli: Cli) -> None:
    (lake.root / "tablectl.yaml").write_text("window: {canary: 2, stop_if: failed > 0}\n")
    assert "write `stop_if_failed: N`, `stop_if_silent: N` or both" in cli("plan").err
