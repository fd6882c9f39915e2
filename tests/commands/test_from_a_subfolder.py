"""`tablectl.yaml` is looked for upward, as Git looks for `.git`."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from tablectl.policies.read_config import repository_above
from tests.commands.conftest import Cli, Repository


@pytest.fixture
def below(repo: Repository, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in the folder of the policies, which is the current one; the plans go to `plans`."""
    repo.table("orders")
    repo.policies({"orders": "{isolation: Serializable}"})
    (repo.root / "tablectl.yaml").write_text("plans: plans\n")
    (repo.root / "plans").mkdir()
    folder = repo.root / "policies" / "more"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    return folder


def test_a_command_in_a_subfolder_has_the_policies_above(cli: Cli, below: Path, repo: Repository) -> None:
    ran = cli("plan", "--out", "today.json", "--report", "here.md")
    assert ran.code == 0, ran.err
    assert "1 table to change" in ran.out
    assert (repo.root / "plans" / "today.json").is_file(), "the folder that tablectl.yaml names"
    assert (below / "here.md").is_file(), "a path is from where it was typed"
    assert cli("show", "today.json").code == 0
    assert cli("validate").code == 0
    (repo.root / "policies" / "wrong.yaml").write_text("version: 2\n")
    assert "../wrong.yaml:1" in cli("validate").err.replace("../../policies/", "../")


@pytest.mark.parametrize("file", ["tablectl.yaml", ".git"])
def test_the_nearest_file_and_the_root_of_a_checkout_end_the_search(cli: Cli, below: Path, file: str) -> None:
    (below / file).mkdir() if file == ".git" else (below / file).write_text("")
    assert repository_above() == Path()
    assert "to start here: `tablectl init`" in cli("plan").err


def test_a_file_in_a_folder_of_another_user_is_not_read(below: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It could name commands to run: anybody can put one into ``/tmp``."""
    real = Path.stat

    def as_if(path: Path, **given: bool) -> os.stat_result | SimpleNamespace:
        found = real(path, **given)
        if path.name != "policies":
            return found
        return SimpleNamespace(st_uid=found.st_uid + 1, st_mode=found.st_mode)

    assert repository_above() == Path("../..")
    monkeypatch.setattr(Path, "stat", as_if)
    assert repository_above() == Path()
