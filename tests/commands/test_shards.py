"""``plan --shard`` in several jobs, and ``plan --merge`` of their plans."""

from __future__ import annotations

import pytest

from tests.commands.conftest import Cli, FakeSpark, Repository


@pytest.fixture
def seven(repo: Repository) -> Repository:
    """Seven tables, of which three change."""
    for name in "abcdefg":
        repo.table(name, properties={"team": "web"})
    changing = dict.fromkeys("ace", "{properties: {team: pay}}")
    repo.policies({**dict.fromkeys("bdfg", "{properties: {team: web}}"), **changing})
    return repo


def test_the_shards_together_are_the_plan_and_can_be_applied(
    cli: Cli, seven: Repository, fake_spark: FakeSpark
) -> None:
    shown = cli("plan", "--out", "whole.json")
    for number in (1, 2, 3):
        shard = cli("plan", "--shard", f"{number}/3", "--out", f"shard-{number}.json")
        assert shard.code == 0
        assert f"shard {number}/3: " in shard.err
    merged = cli("plan", "--merge", "shard-3.json", "shard-1.json", "shard-2.json", "--out", "merged.json")
    assert (seven.root / "merged.json").read_bytes() == (seven.root / "whole.json").read_bytes()
    assert (merged.code, merged.out) == (0, shown.out)
    assert cli("apply", "merged.json", "--yes").code == 0
    assert len(fake_spark.sent) == 3
    assert cli("plan", "--detailed-exitcode").code == 0


def test_a_merge_has_the_exit_code_and_the_limits_of_a_plan(cli: Cli, seven: Repository) -> None:
    for number in (1, 2):
        cli("plan", "--shard", f"{number}/2", "--out", f"{number}.json")
    assert cli("plan", "--merge", "1.json", "2.json", "--detailed-exitcode").code == 2
    over = cli("plan", "--merge", "1.json", "2.json", "--max-tables", "2", "--out", "p.json")
    assert over.code != 0
    assert not (seven.root / "p.json").exists()


def test_what_cannot_be_merged_is_said(cli: Cli, seven: Repository) -> None:
    cli("plan", "--shard", "1/2", "--out", "1.json")
    cli("plan", "--out", "whole.json")
    for arguments, why in (
        (["1.json"], "shard 2 of 2 is missing"),
        (["1.json", "1.json"], "both shard 1/2"),
        (["whole.json"], "not the plan of a shard"),
        (["none.json"], "No such file"),
        ([], "--merge needs the plans of all shards"),
        (["1.json", "--select", "*"], "--merge takes plans as they are"),
    ):
        result = cli("plan", "--merge", *arguments)
        assert result.code != 0
        assert why in " ".join(result.err.split())
    assert "is not a shard" in cli("plan", "--shard", "3/2").err
