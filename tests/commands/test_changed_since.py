"""``--changed-since``: tables whose effective policy differs from that at a commit."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tablectl.applying.approval import policies_digest
from tablectl.commands.project import Project
from tablectl.planning.plan_file import load_plan
from tests.commands.conftest import Cli, Repository
from tests.support.test_git import bare


def git(*words: str) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, *words], check=True, capture_output=True)


@pytest.fixture
def committed(repo: Repository) -> Repository:
    for name in ("orders", "events", "raw/a"):
        repo.table(name)
    write(repo, "Serializable", "web", "on")
    git("init", "-q", "-b", "main")
    git("add", "policies")
    git("commit", "-q", "-m", "first")
    return repo


def write(repo: Repository, isolation: str, team: str, debug: str) -> None:
    repo.policies(
        "version: 1\ntables:\n"
        f"  delta.`{repo.lake}/orders`: {{isolation: {isolation}}}\n"
        f"  delta.`{repo.lake}/events`: {{properties: {{owner.team: {team}}}}}\n"
        f"  delta.`{repo.lake}/raw/*`: {{properties: {{debug: '{debug}'}}}}\n"
    )


def planned(cli: Cli, ref: str = "main") -> list[str]:
    ran = cli("plan", "--changed-since", ref, "--format", "json")
    assert ran.code == 0, ran.err
    plan = json.loads(ran.out)
    return sorted(each["location"].rpartition("/")[2] for each in plan["tables"])


def test_only_changed_policies_are_planned(committed: Repository, cli: Cli) -> None:
    assert planned(cli) == []
    write(committed, "Serializable", "payments", "on")
    assert planned(cli) == ["events"]
    write(committed, "Serializable", "web", "off")
    assert planned(cli) == ["a"]


def test_comments_layout_and_other_files_do_not_count(committed: Repository, cli: Cli) -> None:
    file = next(Path("policies").glob("*.yaml"))
    file.write_text("# said again\n" + file.read_text().replace("version: 1\n", "version: 1\n\n"))
    file.rename("policies/renamed.yaml")
    assert planned(cli) == []


def test_a_new_table_and_a_variable_count(committed: Repository, cli: Cli) -> None:
    committed.table("new")
    file = next(Path("policies").glob("*.yaml"))
    file.write_text(file.read_text() + f"  delta.`{committed.lake}/new`: {{isolation: Serializable}}\n")
    assert planned(cli) == ["new"]


def test_policies_that_were_wrong_or_missing_then_count_as_changed(committed: Repository, cli: Cli) -> None:
    file = next(Path("policies").glob("*.yaml"))
    right = file.read_text()
    file.write_text("version: 7\n")
    git("commit", "-qam", "wrong")
    file.write_text(right)
    assert planned(cli) == ["a", "events", "orders"]


@pytest.mark.parametrize("ref", ["no-such-branch", "--output=x", ""])
def test_a_commit_that_git_does_not_know_is_an_error(committed: Repository, cli: Cli, ref: str) -> None:
    if not ref:
        assert cli("plan", "--changed-since", ref).code == 0
        return
    ran = cli("plan", f"--changed-since={ref}")
    assert ran.code == 64
    assert "fetch-depth: 0" in ran.err
    assert not Path("x").exists()


def test_a_link_out_of_the_repository_counts_as_changed(committed: Repository, cli: Cli) -> None:
    file = next(Path("policies").glob("*.yaml"))
    shared = committed.lake.parent / "shared.yaml"
    file.rename(shared)
    file.symlink_to(shared)
    git("commit", "-q", "-a", "-m", "a link")
    assert planned(cli, "HEAD") == planned_all(cli) != []


def test_a_folder_of_the_branch_that_looks_like_a_repository_runs_nothing(
    repo: Repository, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder of ``tablectl.yaml`` is below the root, and the branch puts a repository there, whose remote is a
    program.
    """
    lake = repo.root / "lake-policies"
    repo.table("orders")
    (lake / "policies").mkdir(parents=True)
    (lake / "policies" / "p.yaml").write_text(
        f"version: 1\ntables:\n  delta.`{repo.lake}/orders`: {{isolation: Serializable}}\n"
    )
    git("init", "-q", "-b", "main")
    git("add", "--all")
    git("commit", "-q", "-m", "base")
    base = subprocess.run(["git", "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    bare(lake, tmp_path / "pwned")
    monkeypatch.chdir(lake)
    assert planned(cli, base) == []
    assert not (tmp_path / "pwned").exists()
    subprocess.run(["git", "rev-parse", "--verify", f"{base}^{{commit}}"], check=False, capture_output=True)
    assert (tmp_path / "pwned").exists(), "the attack works where Git looks for the repository itself"


def test_a_tag_with_the_name_of_the_branch_is_not_compared_with(committed: Repository, cli: Cli) -> None:
    """Whoever may push makes a tag at the commit of his own, since which nothing has changed."""
    write(committed, "Serializable", "payments", "on")
    git("checkout", "-q", "-b", "mine")
    git("commit", "-q", "-a", "-m", "mine")
    git("tag", "main")
    ran = cli("plan", "--changed-since", "main")
    assert (ran.code, "write refs/heads/main" in ran.err) == (64, True)
    assert planned(cli, "refs/heads/main") == ["events"]


def planned_all(cli: Cli) -> list[str]:
    plan = json.loads(cli("plan", "--format", "json").out)
    return sorted(each["location"].rpartition("/")[2] for each in plan["tables"])


@pytest.fixture
def split(committed: Repository) -> Repository:
    """The tables in files of their own, and the pattern in a third."""
    for file in Path("policies").glob("*.yaml"):
        file.unlink()
    lake = committed.lake
    write_file("orders", f"  delta.`{lake}/orders`: {{isolation: Serializable}}\n")
    write_file("events", f"  delta.`{lake}/events`: {{properties: {{owner.team: web}}}}\n")
    write_file("shared", f"  delta.`{lake}/[eo]*`: {{properties: {{debug: 'on'}}}}\n")
    git("add", "-A", "policies")
    git("commit", "-q", "-m", "split")
    return committed


def write_file(name: str, tables: str) -> None:
    Path("policies", f"{name}.yaml").write_text(f"version: 1\ntables:\n{tables}")


def test_a_changed_file_changes_its_tables_alone(split: Repository, cli: Cli) -> None:
    assert planned(cli) == []
    write_file("events", f"  delta.`{split.lake}/events`: {{properties: {{owner.team: payments}}}}\n")
    assert planned(cli) == ["events"]


def test_a_changed_pattern_changes_tables_of_files_that_are_as_they_were(split: Repository, cli: Cli) -> None:
    write_file("shared", f"  delta.`{split.lake}/[eo]*`: {{properties: {{debug: 'off'}}}}\n")
    assert planned(cli) == ["events", "orders"]


def test_a_pattern_that_is_gone_changes_them_too(split: Repository, cli: Cli) -> None:
    Path("policies", "shared.yaml").unlink()
    assert planned(cli) == ["events", "orders"]


def test_a_file_that_lost_its_pattern_changes_them_too(split: Repository, cli: Cli) -> None:
    write_file("shared", f"  delta.`{split.lake}/raw/a`: {{isolation: Serializable}}\n")
    assert planned(cli) == ["a", "events", "orders"]


def test_a_changed_variable_changes_them_too(split: Repository, cli: Cli) -> None:
    Path("tablectl.yaml").write_text("policies: policies\nvariables: {TEAM: web}\n")
    write_file("events", f"  delta.`{split.lake}/events`: {{properties: {{owner.team: '${{TEAM}}'}}}}\n")
    git("add", "-A", "policies", "tablectl.yaml")
    git("commit", "-q", "-m", "a variable")
    Path("tablectl.yaml").write_text("policies: policies\nvariables: {TEAM: payments}\n")
    assert planned(cli) == ["events"]


def test_an_entry_that_is_gone_leaves_the_table_to_the_pattern(split: Repository, cli: Cli) -> None:
    write_file("orders", f"  delta.`{split.lake}/raw/a`: {{isolation: Serializable}}\n")
    assert planned(cli) == ["a", "orders"]


def test_a_renamed_file_declares_what_it_did(split: Repository, cli: Cli) -> None:
    Path("policies", "events.yaml").rename("policies/renamed.yaml")
    assert planned(cli) == []


def test_a_table_that_a_file_as_it_was_declares_too_is_an_error(split: Repository, cli: Cli) -> None:
    write_file("events", f"  delta.`{split.lake}/orders`: {{isolation: Serializable}}\n")
    ran = cli("plan", "--changed-since", "main")
    assert ran.code == 1
    assert "declared twice: first at policies/events.yaml" in ran.err
    assert "policies/orders.yaml" in ran.err


def test_a_location_that_a_file_as_it_was_declares_too_is_an_error(split: Repository, cli: Cli) -> None:
    write_file("events", f"  lake.sales.clicks: {{location: {split.lake}/orders, isolation: Serializable}}\n")
    ran = cli("plan", "--changed-since", "main")
    assert (ran.code, "lies where" in ran.err) == (1, True)


def test_an_error_in_a_file_that_is_as_it_was_is_found(split: Repository, cli: Cli) -> None:
    Path("policies", "wrong.yaml").write_text(f"version: 1\ntables:\n  delta.`{split.lake}/raw/a`: {{isolation: no}}\n")
    git("add", "-A", "policies")
    git("commit", "-q", "-m", "wrong")
    ran = cli("plan", "--changed-since", "main")
    assert (ran.code, "policies/wrong.yaml" in ran.err) == (1, True)


def test_defaults_of_a_file_that_is_as_it_was_count_for_profiles(split: Repository, cli: Cli) -> None:
    profile = "version: 1\nprofiles:\n  plain: {unmanaged: [isolation]}\n"
    Path("policies", "profiles.yaml").write_text(profile)
    orders = f"  delta.`{split.lake}/orders`: {{properties: {{a: b}}, profiles: [plain]}}\n"
    Path("policies", "orders.yaml").write_text(f"version: 1\ndefaults: {{isolation: Serializable}}\ntables:\n{orders}")
    assert cli("validate").code == 0
    git("add", "-A", "policies")
    git("commit", "-q", "-m", "a profile")
    write_file("events", f"  delta.`{split.lake}/events`: {{properties: {{owner.team: payments}}}}\n")
    assert planned(cli) == ["events"]
    assert cli("explain", f"delta.`{split.lake}/events`").code == 0


def test_a_glob_may_match_only_tables_that_did_not_change(split: Repository, cli: Cli) -> None:
    assert cli("plan", "--changed-since", "main", "--select", "*orders*").code == 0
    write_file("shared", f"  delta.`{split.lake}/[eo]*`: {{properties: {{debug: 'off'}}}}\n")
    assert cli("plan", "--changed-since", "main", "--select", "*nothing*").code == 64


def test_the_plan_states_the_policies_of_its_tables(split: Repository, cli: Cli) -> None:
    write_file("events", f"  delta.`{split.lake}/events`: {{properties: {{owner.team: payments}}}}\n")
    assert cli("plan", "--changed-since", "main", "--out", "p.json").code == 0
    plan = load_plan(Path("p.json").read_bytes(), "p.json")
    head = subprocess.run(["git", "rev-parse", "main"], check=True, capture_output=True, text=True).stdout.strip()
    assert plan.changed_since == head
    assert policies_digest(plan, Project.open().policies()) == plan.policies
    write_file("orders", f"  delta.`{split.lake}/orders`: {{properties: {{a: b}}}}\n")
    assert policies_digest(plan, Project.open().policies()) == plan.policies
    write_file("events", f"  delta.`{split.lake}/events`: {{properties: {{owner.team: data}}}}\n")
    assert policies_digest(plan, Project.open().policies()) != plan.policies


def test_a_plan_that_read_all_policies_states_the_same(split: Repository, cli: Cli) -> None:
    write_file("shared", f"  delta.`{split.lake}/[eo]*`: {{properties: {{debug: 'off'}}}}\n")
    write_file("more", f"  delta.`{split.lake}/raw/*`: {{properties: {{debug: 'off'}}}}\n")
    assert cli("plan", "--changed-since", "main", "--out", "p.json").code == 0
    plan = load_plan(Path("p.json").read_bytes(), "p.json")
    assert len(plan.tables) == 3
    assert policies_digest(plan, Project.open().policies()) == plan.policies


def test_shards_of_changed_tables_are_merged(split: Repository, cli: Cli) -> None:
    write_file("shared", f"  delta.`{split.lake}/[eo]*`: {{properties: {{debug: 'off'}}}}\n")
    since = ("--changed-since", "main")
    for number in (1, 2):
        assert cli("plan", *since, "--shard", f"{number}/2", "--out", f"{number}.json").code == 0
    assert cli("plan", "--merge", "1.json", "2.json", "--out", "merged.json").code == 0
    assert cli("plan", *since, "--out", "whole.json").code == 0
    assert Path("merged.json").read_bytes() == Path("whole.json").read_bytes()
    assert cli("plan", "--shard", "2/2", "--out", "all.json").code == 0
    assert "different `changed_since`" in cli("plan", "--merge", "1.json", "all.json").err
