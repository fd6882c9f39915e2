"""Recipes of ``sh`` that a transcript cannot show: their scripts are run here."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.docs.conftest import Place
from tests.docs.pages import ROOT, Block, blocks

RECIPES = ROOT / "docs" / "recipes.md"


def section(title: str) -> list[Block]:
    """The blocks of a recipe."""
    page = RECIPES.read_text(encoding="utf-8")
    start = page[: page.index(f"## {title}\n")].count("\n") + 1
    end = start + page.splitlines()[start:].index(next(x for x in page.splitlines()[start:] if x.startswith("## ")))
    return [each for each in blocks(RECIPES) if start < each.line <= end]


@pytest.mark.skipif(shutil.which("jq") is None, reason="no jq here")
def test_codeowners_has_the_owners_of_each_policy_file(place: Callable[[], Place]) -> None:
    policies, script = section("Make CODEOWNERS from the owners of tables")
    here = place()
    Path("policies").mkdir()
    Path(policies.file).write_text(policies.text, encoding="utf-8")
    command, _, rest = script.text.partition("\n")
    Path("status.json").write_text(here.run(command.partition(" > ")[0]), encoding="utf-8")
    subprocess.run(["bash", "-euc", rest], check=True, timeout=60)
    assert Path("CODEOWNERS").read_text() == "/policies/sales.yaml @example/sales returns@example.com\n"
