"""The README says what the program does."""

from __future__ import annotations

import re
from pathlib import Path

from tablectl.commands.list import COMMANDS
from tablectl.delta.names import TableName
from tablectl.model.errors import ExitCode
from tablectl.policies.config_file import load_config
from tablectl.policies.identifiers import read_table_key
from tablectl.policies.policy_document import load_specs
from tablectl.policies.variables import Variables

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
POLICIES = (ROOT / "docs" / "policies.md").read_text(encoding="utf-8")
EXIT_CODES = (ROOT / "docs" / "exit-codes.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_its_policy_is_valid(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(blocks("yaml")[1], encoding="utf-8")
    specs = load_specs([tmp_path], variables={"LAKE": "/lake"}, environ={})
    assert [spec.name.text for spec in specs.tables] == ["delta.`/lake/events`", "sales.orders"]


def test_its_configuration_is_valid(tmp_path: Path) -> None:
    (tmp_path / "tablectl.yaml").write_text(blocks("yaml")[-1], encoding="utf-8")
    assert load_config(tmp_path, {}).state == "s3://bucket/tablectl"


def test_its_exit_codes_are_those_of_the_program() -> None:
    known = [int(code) for code in ExitCode]
    assert [int(code) for code in re.findall(r"^\| (\d+) \|", EXIT_CODES, re.MULTILINE)] == known
    short = README.split("Exit codes: ")[1].split("\n\n")[0]
    assert [int(code) for code in re.findall(r"(?:^|· |\n)(\d+) [a-z]", short)] == known


def test_every_command_and_option_is_named() -> None:
    for name in COMMANDS:
        assert f"tablectl {name}" in README
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
    table = POLICIES.split("| key | stands for |")[1].split("\n\n")[0]
    keys = [
        first or second for first, second in re.findall(r"`` (.+?) ``|`([^`]+)`", table.replace("`_delta_log`", ""))
    ]
    assert len(keys) == 5
    for key in keys:
        assert not isinstance(read_table_key(key.strip('"'), Variables({"LAKE": "/lake"}), "lake"), TableName), key


def test_its_table_of_attributes_is_that_of_the_page() -> None:
    tables = [
        text.split("| attribute | values |")[1].split("\n\n")[0].replace("docs/", "") for text in (README, POLICIES)
    ]
    assert tables[0] == tables[1], "docs/policies.md has the same table as the README"
    assert set(re.findall(r"(?m)^\| `(\w+)` \|", tables[0])) >= {"isolation", "deletion_vectors", "properties"}
