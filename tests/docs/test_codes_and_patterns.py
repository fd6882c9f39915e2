"""What docs/exit-codes.md and docs/policies.md say of codes and patterns is what the program knows."""

from __future__ import annotations

import re
from pathlib import Path

from tablectl.delta.names import TableName
from tablectl.model.errors import ExitCode
from tablectl.policies.variables import Variables, read_table_key

ROOT = Path(__file__).parents[2]
POLICIES = (ROOT / "docs" / "policies.md").read_text(encoding="utf-8")
EXIT_CODES = (ROOT / "docs" / "exit-codes.md").read_text(encoding="utf-8")


def test_the_exit_codes_of_the_page_are_those_of_the_program() -> None:
    known = [int(code) for code in ExitCode]
    assert [int(code) for code in re.findall(r"^\| (\d+) \|", EXIT_CODES, re.MULTILINE)] == known


def test_the_patterns_of_the_page_are_patterns() -> None:
    table = POLICIES.split("| key | stands for |")[1].split("\n\n")[0]
    keys = [
        first or second for first, second in re.findall(r"`` (.+?) ``|`([^`]+)`", table.replace("`_delta_log`", ""))
    ]
    assert len(keys) == 5
    for key in keys:
        assert not isinstance(read_table_key(key.strip('"'), Variables({"LAKE": "/lake"}), "lake"), TableName), key
