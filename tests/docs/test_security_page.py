"""The threat model of SECURITY.md names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROWS = [line for line in (ROOT / "SECURITY.md").read_text("utf-8").splitlines() if "::test_" in line]


def test_each_threat_has_a_test_that_exists() -> None:
    assert len(ROWS) > 20
    for row in ROWS:
        file, name = re.findall(r"`([\w/]+\.py)::(test_\w+)`", row)[0]
        assert f"def {name}(" in (ROOT / "tests" / file).read_text("utf-8"), row


def test_each_kind_of_attacker_has_rows() -> None:
    who = {each.strip() for row in ROWS for each in row.split("|")[1].split(",")}
    assert who == {
        *("a branch", "a lake writer", "a catalog"),
        *("another user of the machine", "an operator's mistake"),
    }
