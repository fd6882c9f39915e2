"""What a plan is expected to cost the writers of a table, from its log to the reports."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tablectl.commands.plan
from tests.commands.conftest import Cli, FakeSpark, Repository
from tests.commands.log_lake import append

HOUR = 3_600_000
MONDAY = 1_791_158_400_000
"""5 October 2026, 00:00 UTC."""


def merged(path: Path, at: int, took: int) -> None:
    """A MERGE whose commit says when it was made and how long it took, in milliseconds."""
    version = append(path, "MERGE", [{"add": {"path": f"{at}.parquet", "size": 1, "dataChange": True}}])
    file = path / "_delta_log" / f"{version:020d}.json"
    info, *rest = file.read_text().splitlines()
    body = json.loads(info)
    body["commitInfo"] |= {
        "timestamp": at,
        "operationMetrics": {"executionTimeMs": str(took)},
        "readVersion": version - 1,
    }
    file.write_text("\n".join([json.dumps(body), *rest]) + "\n")


@pytest.fixture
def nightly(repo: Repository) -> Repository:
    """A table with a MERGE of half an hour each night, at 02:00 UTC."""
    path = repo.table("a")
    for day in range(30):
        merged(path, MONDAY + (day * 24 + 2) * HOUR + HOUR // 2, HOUR // 2)
    repo.policies({"a": "{isolation: Serializable}"})
    return repo


def flat(text: str) -> str:
    return " ".join(text.split())


def test_every_format_tells_the_loss(cli: Cli, nightly: Repository) -> None:
    cli("plan", "--out", "p.json", "--report", "p.md", "--report", "p.html")
    loss = json.loads((nightly.root / "p.json").read_text())["tables"][0]["loss"]
    assert (loss["writes"], len(loss["failed"]), loss["unknown"]) == (30, 168, "")
    assert 0.4 < loss["failed"][2] < 0.6
    assert loss["failed"][12] == pytest.approx(0, abs=0.01)
    assert loss["failed"][loss["quietest"]] < 0.01
    for text in (
        cli("plan").out,
        cli("show", "p.json").out,
        *((nightly.root / f).read_text() for f in ("p.md", "p.html")),
    ):
        assert "expected loss: now (" in flat(text)
        assert "failed writes" in text


def test_the_loss_does_not_depend_on_the_time_of_the_plan(cli: Cli, nightly: Repository) -> None:
    cli("plan", "--out", "one.json")
    cli("plan", "--out", "two.json", "--no-cache")
    assert (nightly.root / "one.json").read_bytes() == (nightly.root / "two.json").read_bytes()


def test_a_new_table_tells_how_little_it_knows(cli: Cli, repo: Repository) -> None:
    repo.table("a")
    repo.policies({"a": "{isolation: Serializable}"})
    assert "expected loss: unknown: too few to tell (1 write in the log since" in flat(cli("plan").out)


def test_many_tables_are_not_read_for_it(cli: Cli, nightly: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tablectl.commands.plan, "MOST_WITH_LOSSES", 0)
    assert json.loads(cli("plan", "--format", "json").out)["tables"][0]["loss"] is None
    assert "expected loss" not in cli("plan", "--verbose").out


def test_an_apply_takes_a_plan_with_a_loss(cli: Cli, nightly: Repository, fake_spark: FakeSpark) -> None:
    cli("plan", "--out", "p.json")
    assert cli("apply", "p.json").code == 0
    assert cli("plan", "--detailed-exitcode").code == 0


# Waiting


def test_an_apply_that_waits_for_a_quiet_moment_starts_on_a_quiet_table(
    cli: Cli, nightly: Repository, fake_spark: FakeSpark
) -> None:
    result = cli("apply", "--yes", "--when", "quiet", "--within", "90m", "--report", "run.json")
    assert (result.code, "applied and verified" in result.out) == (0, True)
    (table,) = json.loads((nightly.root / "run.json").read_text())["tables"]
    assert table["quiet"]["limit"] == 0.1
    assert "quiet moment" in result.out


def test_the_limit_is_in_the_configuration(cli: Cli, nightly: Repository, fake_spark: FakeSpark) -> None:
    (nightly.root / "tablectl.yaml").write_text("window: {quiet: 2.5}\n")
    cli("apply", "--yes", "--when", "quiet", "--report", "run.json")
    (table,) = json.loads((nightly.root / "run.json").read_text())["tables"]
    assert table["quiet"]["limit"] == 2.5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--within", "6h"], "--within is for --when quiet"),
        (["--when", "night"], "'--when': 'night' is not one of 'quiet'"),
        (["--when", "quiet", "--within", "soon"], "'--within': needs a duration, such as 2h30m or 1d, not 'soon'"),
        (["--when", "quiet", "--within", "8d"], "'--within': needs a duration of at most 7d, not '8d'"),
        (["--when", "quiet", "--within", "0m"], "'--within': needs a duration longer than nothing, not '0m'"),
    ],
)
def test_wrong_options_are_said_before_anything_is_read(
    cli: Cli, repo: Repository, options: list[str], message: str
) -> None:
    result = cli("apply", *options)
    assert result.code == 64
    assert message in result.err
