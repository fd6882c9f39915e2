"""Whole runs through the command line, on real tables, in a folder of the test's own."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tablectl.commands.command_line import run_cli


@dataclass(frozen=True)
class Ran:
    """What a command gave back."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


def operations(commits: list[dict[str, Any]]) -> list[str]:
    """What each of some commits did."""
    return [commit["commitInfo"]["operation"] for commit in commits]


@pytest.fixture
def cli(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Ran]:
    """Runs ``tablectl …`` in ``tmp_path``; its engine is a session next to the shared one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")

    def call(*args: str) -> Ran:
        capsys.readouterr()
        code = run_cli(list(args), {})
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return call


@pytest.fixture
def policies(tmp_path: Path) -> Callable[[str], None]:
    """Writes ``policies/tables.yaml`` with these tables."""

    def write(tables: str) -> None:
        folder = tmp_path / "policies"
        folder.mkdir(exist_ok=True)
        (folder / "tables.yaml").write_text(f"version: 1\ntables:\n{tables}", encoding="utf-8")

    return write


@pytest.fixture
def log() -> Callable[[Path], list[dict[str, Any]]]:
    """All commits of a table as their log has them: one map of actions by kind for each version."""

    def read(table: Path) -> list[dict[str, Any]]:
        commits = []
        for file in sorted((table / "_delta_log").glob("*.json")):
            actions = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line]
            commits.append({kind: value for action in actions for kind, value in action.items()})
        return commits

    return read
