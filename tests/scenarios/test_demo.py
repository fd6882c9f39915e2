"""The demo is the first thing a new user sees."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.spark


def test_the_demo_ends_with_nothing_but_the_one_refusal(
    cli: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = cli("demo", "lake with space")
    assert ran.code == 0, ran.out + ran.err
    first, last = ran.out.split("$ tablectl plan\n")
    assert "Plan: 7 tables to change" in first
    assert "Apply: 7 applied; 1 refused" in first
    assert "Plan: 1 refused; 8 unchanged." in last
    assert "it rewrites all data of the table" in last
    # Statements are shown as they are sent, so their lines are not wrapped.
    code = re.compile(r"TBLPROPERTIES|^\s+[.#(]")
    wrapped = (line for line in ran.out.splitlines() if str(tmp_path) not in line and not code.search(line))
    assert max(map(len, wrapped)) <= 80

    shown = cli("show", "lake with space/plans/first.json")
    assert shown.out in ran.out
    root = tmp_path / "lake with space"
    monkeypatch.chdir(root)
    told = ran.out.split("To go on:\n")[1].splitlines()
    commands = [shlex.split(line, comments=True)[1:] for line in told if line.startswith("  tablectl ")]
    assert [each[0] for each in commands] == ["plan", "explain", "conflicts"]
    for command in commands:
        again = cli(*command)
        assert again.code == (3 if command[0] == "plan" else 0), again.err  # the refusal is left
    assert "3 tables match their policies" in cli("plan", "--tag", "sales").out

    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    first, *then = page.split("```sh\n")[1].split("```")[0].replace("\\`", "`").splitlines()
    assert shlex.split(first, comments=True) == ["tablectl", "demo", "my-lake"]
    for line in then:
        program, *arguments = shlex.split(line.replace("$PWD/my-lake", str(root)), comments=True)
        if program == "cd":
            monkeypatch.chdir(tmp_path / arguments[0])
        else:
            assert cli(*arguments).code == 0, line


def test_the_demo_overwrites_nothing(cli: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("", encoding="utf-8")
    refused = cli("demo", "mine")
    assert refused.code == 64
    assert "not an empty folder" in refused.err
