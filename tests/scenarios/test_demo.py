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
    said, *steps = [line for line in ran.err.splitlines() if re.match(r"The demo builds|\d of 4|  table \d of 8", line)]
    assert f"8 small Delta tables below {tmp_path / 'lake with space'}" in said
    assert [step.partition(" of ")[0].strip() for step in steps] == [*"12", *(f"table {n}" for n in range(1, 9)), *"34"]
    assert len(ran.out.splitlines()) < 110
    first, last = ran.out.split("$ tablectl plan\n")
    assert "Plan: 6 tables to change" in first
    assert "Apply: 6 applied; 1 refused" in first
    assert "Plan: 1 refused; 7 unchanged." in last
    assert "it rewrites all data of the table" in last
    assert re.search(r"It took \d+ s:\n +\d+ s  starting Spark\n +\d+ s  making 8 tables\n( +\d+ s  .*\n){2}\Z", last)
    # Statements are shown as they are sent, so their lines are not wrapped.
    code = re.compile(r"TBLPROPERTIES|^\s+[.#(]")
    wrapped = (line for line in ran.out.splitlines() if str(tmp_path) not in line and not code.search(line))
    assert max(map(len, wrapped)) <= 80

    root = tmp_path / "lake with space"
    for name in ("plan", "apply"):
        assert f"{shlex.quote(str(root))}/reports/{name}.html" in last
        page = (root / "reports" / f"{name}.html").read_text(encoding="utf-8")
        assert page.startswith("<!doctype html>")
    assert "<svg" in page, "the timeline of the apply"
    monkeypatch.chdir(root)
    told = ran.out.split("To go on:\n")[1].splitlines()
    commands = [shlex.split(line, comments=True)[1:] for line in told if line.startswith("  tablectl ")]
    assert [each[0] for each in commands] == ["show", "plan", "explain", "conflicts"]
    for command in commands:
        again = cli(*command)
        assert again.code == (3 if command[0] == "plan" else 0), again.err  # the refusal is left
    assert "2 tables match their policies" in cli("plan", "--tag", "sales").out


def test_the_demo_overwrites_nothing(cli: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("", encoding="utf-8")
    refused = cli("demo", "mine")
    assert refused.code == 64
    assert "not an empty folder" in refused.err
