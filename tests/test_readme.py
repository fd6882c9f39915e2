"""The README says what the program does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import typer

import tablectl
from tablectl.cli.app import app
from tablectl.model.errors import ExitCode
from tablectl.model.names import TableName
from tablectl.reports.explain_text import explain_text
from tablectl.reports.style import Style
from tablectl.specs.config import load_config
from tablectl.specs.policies import load_specs
from tablectl.specs.targets import read_target
from tablectl.specs.variables import Variables

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_its_policy_is_valid(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(blocks("yaml")[0], encoding="utf-8")
    specs = load_specs([tmp_path], variables={"LAKE": "/lake"}, environ={})
    assert [spec.name.text for spec in specs.tables] == ["delta.`/lake/events`", "sales.orders"]


def test_its_configuration_is_valid(tmp_path: Path) -> None:
    (tmp_path / "tablectl.yaml").write_text(blocks("yaml")[1], encoding="utf-8")
    assert load_config(tmp_path, {}).state == "s3://bucket/tablectl"


def test_its_exit_codes_are_those_of_the_program() -> None:
    table = README.split("| exit code | meaning |")[1].split("\n\n")[0]
    assert [int(code) for code in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)] == [int(code) for code in ExitCode]


def test_every_command_and_option_is_named() -> None:
    group = typer.main.get_command(app)
    for name, command in getattr(group, "commands").items():  # noqa: B009  # typer's own copy of click
        names = [f"{name} {sub}" for sub in command.commands] if hasattr(command, "commands") else [name]
        for each in names:
            assert f"tablectl {each}" in README
    options = {option for options in re.findall(r"(--[a-z-]+)", README) for option in [options]}
    known = {
        "--out",
        "--select",
        "--tag",
        "--var",
        "--format",
        "--detailed-exitcode",
        "--remote",
        "--yes",
        "--epoch",
        "--reason",
    }
    assert known <= options


def test_its_patterns_are_patterns() -> None:
    table = README.split("| key | stands for |")[1].split("\n\n")[0]
    keys = [
        first or second for first, second in re.findall(r"`` (.+?) ``|`([^`]+)`", table.replace("`_delta_log`", ""))
    ]
    assert len(keys) == 5
    for key in keys:
        assert not isinstance(read_target(key.strip('"'), Variables({"LAKE": "/lake"}), "lake"), TableName), key


EXPLAINED = """version: 1
defaults:
  isolation: default
  properties: {owner.team: nobody}
tables:
  "lake.sales.*":
    isolation: Serializable

  lake.sales.orders:
    clustering: [customer_id]

    unmanaged: [owner.team]
"""


def test_what_it_says_that_explain_says_is_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("policies").mkdir()
    Path("policies/sales.yaml").write_text(EXPLAINED, encoding="utf-8")
    said = explain_text(tablectl.explain("lake.sales.orders"), Style())
    assert f"```\n$ tablectl explain lake.sales.orders\n{said}```\n" in README


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))], ids=lambda page: page.name
)
def test_the_python_of_every_page_is_python(page: Path) -> None:
    for block in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
        compile(block, page.name, "exec")
